"""Whatever a line of a journal has, it is refused with its number, or all that is told of a run can be told."""

import io
import typing

import msgspec
import pytest
from sample_runs import make_plan, sample_entries, write_sample_run

from edgebed.core import records
from edgebed.core.console import make_console
from edgebed.core.errors import EdgebedError
from edgebed.core.units import LARGEST
from edgebed.journal.run_folder import RunFolder
from edgebed.reports.run.brief import links_brief, results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.terminal import show
from edgebed.running.results import Run

EXTREMES = {
    int: (-(2**63), -2, -1, 0, 2**53, 2**64, 10**30),
    float: (-1e308, -1.0, 1e308),
    str: ("\x1b[2J\u202e" * 50,),
}


def base_of(declared):
    """The plain type that a field has beside None; of one with a few values the first of these."""
    if typing.get_origin(declared) is typing.Annotated:
        return typing.get_args(declared)[0]
    if typing.get_origin(declared) in (tuple, dict):
        return typing.get_origin(declared)
    if typing.get_origin(declared) is typing.Literal:
        return typing.get_args(declared)[0]
    return next((base_of(each) for each in typing.get_args(declared) if each is not type(None)), declared)


def parts_of(declared):
    """What a field may be, with the bounds of each."""
    if typing.get_origin(declared) in (typing.Annotated, typing.Literal) or not typing.get_args(declared):
        return {declared}
    return set().union(*map(parts_of, typing.get_args(declared)))


def largest(declared):
    """The largest number that a field may be; what is none is any."""
    if base_of(declared) is tuple:
        return ()
    if base_of(declared) is dict:
        return dict.fromkeys(("accuracy", "loss"), largest(typing.get_args(declared)[-1]))
    for part in parts_of(declared):
        for meta in getattr(part, "__metadata__", ()):
            return base_of(part)(LARGEST if meta.le is None else min(meta.le, LARGEST))
    return {str: "edge-0", bool: True, "kill": "kill"}.get(base_of(declared), ())


def strange_lines(kind):
    """A line for each field of a record and each strange value of it; the others are what they could be."""
    types = {field.name: base_of(field.type) for field in msgspec.structs.fields(kind)}
    plain = {int: 1, float: 1.0, str: "edge-0", bool: True, tuple: [], dict: {}, "kill": "kill"}
    line = {"t": 1.0, "node": "edge-0", "kind": kind.__struct_config__.tag}
    line |= {name: plain.get(each, []) for name, each in types.items()}
    for name, each in types.items():
        for value in EXTREMES.get(each, ()):
            yield line | {name: value}


@pytest.mark.slow
@pytest.mark.parametrize("kind", records.RECORDS, ids=lambda kind: kind.__name__)
def test_a_strange_number_is_refused_or_told(tmp_path, kind):
    """Nothing but an error that names the line; no number takes time or memory by its size."""
    run = write_sample_run(tmp_path, {"adacomp": list(sample_entries(updates=20))})
    journal = run.folder.trial("adacomp").journal
    lines = journal.read_bytes().splitlines(keepends=True)
    for line in strange_lines(kind):
        journal.write_bytes(b"".join([*lines[:10], encoded(line), b"\n", *lines[10:]]))
        found = Run(RunFolder(run.path))
        refusal = ""
        try:
            found.summary_json()
        except EdgebedError as error:
            refusal = str(error)
        if refusal:
            assert f"{journal}:11: " in refusal
            continue
        console = make_console(io.StringIO(), width=100)
        show(results_brief(found), console)
        show(links_brief(found), console)
        assert "\x1b[2J" not in console.file.getvalue()


@pytest.mark.parametrize("kind", records.RECORDS, ids=lambda kind: kind.__name__)
def test_every_number_of_a_record_says_what_it_may_be(kind):
    """A field without bounds takes numbers that no column can hold."""
    declared = {field.name: parts_of(field.type) for field in msgspec.structs.fields(kind)}

    assert not [name for name, parts in declared.items() if {int, float} & parts]


def encoded(line):
    """As JSON, with numbers of any size."""
    return msgspec.json.encode({name: msgspec.Raw(str(value).encode()) if type(value) is int else value
                                for name, value in line.items()})  # fmt: skip


def test_a_report_of_the_strangest_numbers_that_are_read(tmp_path):
    """Charts and tables as well."""
    entries = list(sample_entries(updates=20))
    for kind in records.RECORDS:
        if kind in (records.Step, records.Taught, records.Resumed, records.BackedUp, records.Trial):
            continue  # another kind of training, or the beginning of this
        fields = {field.name: largest(field.type) for field in msgspec.structs.fields(kind)}
        entries.insert(10, (float(LARGEST), "edge-0", kind(**fields)))
    run = write_sample_run(tmp_path, {"adacomp": entries})

    assert make_plan().nodes[0].node in to_html(report_page(Run(run.folder)))
