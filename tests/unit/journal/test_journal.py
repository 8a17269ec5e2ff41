"""The journal: what is written is read back, whatever kills the writer."""

import hashlib
import json
import math
import resource
import subprocess
import sys

import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.journal.journal import JournalWriter, journal_hash, read_journal

UPDATE = records.Update(
    worker="edge-0", incarnation=0, step=3, version=4, base=2, staleness=1, entries=7, bits=448, bytes=99, loss=0.5
)
TEXTS = st.text(max_size=20)
COUNTS = st.integers(0, 2**53)
RECORDS = st.one_of(
    st.builds(records.Note, text=TEXTS),
    st.builds(records.Node, name=TEXTS, state=TEXTS, incarnation=COUNTS, reason=TEXTS),
    st.builds(evaluation, version=COUNTS, accuracy=st.floats(0, 1), loss=st.floats(0, 1e9), final=st.booleans()),
    st.builds(records.Refused, peer=TEXTS, code=TEXTS, reason=TEXTS),
    st.builds(records.Traffic, ingress_payload=COUNTS, egress_payload=COUNTS, ingress_interface=st.none() | COUNTS),
)
ENTRIES = st.lists(st.tuples(st.floats(0, 1e6).map(lambda t: round(t, 6)), TEXTS, RECORDS), max_size=8)


@given(entries=ENTRIES, cut=st.integers(0, 200))
def test_a_journal_cut_anywhere_gives_a_prefix_of_what_was_written(tmp_path_factory, entries, cut):
    """Whole lines come back equal; a cut loses at most the lines it reaches, and never raises."""
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many(entries)

    assert list(read_journal(path)) == entries

    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - cut)])
    kept = list(read_journal(path))

    assert kept == entries[: len(kept)]
    assert len(kept) >= path.read_bytes().count(b"\n")


def test_a_line_is_time_node_kind_and_the_record(tmp_path):
    """The format is what the documents promise, and times are rounded to microseconds."""
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write(1.23456789, "server", records.Finished(version=9, reason="updates"))

    expected = {"t": 1.234568, "node": "server", "kind": "finished", "version": 9, "reason": "updates"}
    assert path.read_text() == json.dumps(expected, separators=(",", ":")) + "\n"


def test_writing_many_equals_writing_each(tmp_path):
    """A batch leaves the same bytes as single writes, hence the same hash."""
    entries = [(index / 10, "server", UPDATE) for index in range(5)]
    with JournalWriter(tmp_path / "many") as many, JournalWriter(tmp_path / "each") as each:
        many.write_many(entries)
        for entry in entries:
            each.write(*entry)

    assert journal_hash(tmp_path / "many") == journal_hash(tmp_path / "each")
    assert journal_hash(tmp_path / "each") == hashlib.sha256((tmp_path / "each").read_bytes()).hexdigest()


def test_a_loss_that_is_no_number_comes_back_as_nan(tmp_path):
    """Training that diverges is journaled and read like any other."""
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write(0.0, "evaluator", evaluation(version=1, accuracy=0.1, loss=math.inf))

    ((_, _, record),) = read_journal(path)
    assert math.isnan(record.measured["loss"])
    assert record.measured["accuracy"] == 0.1


def cut_journal(folder):
    """One update, and the start of a line."""
    path = folder / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write(0.0, "server", UPDATE)
    with path.open("ab") as file:
        file.write(b'{"t":1.0,"node":"ser')
    return path


def test_a_cut_last_line_is_left_out_and_reported(tmp_path):
    """The reader keeps what it could not read."""
    path = cut_journal(tmp_path)

    reader = read_journal(path)
    assert list(reader) == [(0.0, "server", UPDATE)]
    assert reader.cut_line == b'{"t":1.0,"node":"ser'


def test_a_last_line_that_lacks_only_its_end_is_left_out_too(tmp_path):
    """Who goes on writing drops it, so that whoever counted it would count a record that is not there."""
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many([(0.0, "server", UPDATE), (1.0, "server", UPDATE)])
    path.write_bytes(path.read_bytes()[:-1])
    counted = list(read_journal(path))
    JournalWriter(path).close()

    assert counted == list(read_journal(path)) == [(0.0, "server", UPDATE)]


class Growing:
    """A journal's file whose last line gets its end just after it was read."""

    def __init__(self, path):
        self.file = path.open("rb")
        self.path = path

    def readline(self):
        """As far as it is written."""
        line = self.file.readline()
        if line and not line.endswith(b"\n"):
            with self.path.open("ab") as end:
                end.write(b'ver"}\n')
        return line

    def read(self, size):
        """What has come meanwhile, too."""
        return self.file.read(size)

    def close(self):
        """As a file."""
        self.file.close()


def test_a_line_that_is_being_written_is_no_damage(tmp_path):
    """It is left out, though there is more when one looks again."""
    path = cut_journal(tmp_path)
    reader = read_journal(path)
    reader.close()
    reader._file = Growing(path)

    assert list(reader) == [(0.0, "server", UPDATE)]
    assert reader.cut_line == b'{"t":1.0,"node":"ser'


def test_a_broken_line_in_the_middle_is_an_error_naming_it(tmp_path):
    """Damage that is no cut is never passed over in silence."""
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many([(0.0, "server", UPDATE)] * 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00\xff garbage\n" + lines[2])

    with pytest.raises(EdgebedError, match=r"events\.jsonl:2: not a line of a journal"):
        list(read_journal(path))


def test_appending_to_a_cut_journal_cuts_the_half_line_off_first(tmp_path):
    """A half line is never followed by another one, also when its tail is longer than a block."""
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write(0.0, "server", UPDATE)
    with path.open("ab") as file:
        file.write(b"x" * 10_000)
    with JournalWriter(path) as journal:
        journal.write(2.0, "server", UPDATE)

    assert [t for t, _, _ in read_journal(path)] == [0.0, 2.0]


def test_a_missing_journal_is_a_plain_error(tmp_path):
    """Reading what is not there names the path."""
    with pytest.raises(EdgebedError, match=r"nothing\.jsonl: the journal cannot be read"):
        read_journal(tmp_path / "nothing.jsonl")


def test_a_journal_that_cannot_be_made_is_an_infrastructure_error(tmp_path):
    """Opening in a folder that is not there names the path and what to do."""
    with pytest.raises(InfrastructureError, match=r"gone/events\.jsonl.*--runs-dir"):
        JournalWriter(tmp_path / "gone" / "events.jsonl")


def test_no_space_left_leaves_whole_lines_and_stays_an_error(tmp_path):
    """The kernel takes half a line, as a full disk does: it is taken back, and nothing follows it."""
    path = tmp_path / "events.jsonl"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    code = f"""
import pathlib
from edgebed.core.errors import InfrastructureError
from edgebed.journal.journal import JournalWriter
from edgebed.core.records import Note
journal = JournalWriter(pathlib.Path({str(path)!r}))
failures = 0
for index in range(100):
    try:
        journal.write(index, "server", Note(text="x" * (60 if index < 50 else 1)))
    except InfrastructureError as error:
        assert "events.jsonl" in str(error)
        failures += 1
print(failures)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=limit, capture_output=True, text=True, check=True, timeout=60
    )
    times = [t for t, _, _ in read_journal(path)]

    assert path.read_bytes().endswith(b"\n")
    assert times == list(range(len(times)))
    assert int(done.stdout) == 100 - len(times) > 80
