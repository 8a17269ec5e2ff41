"""Runs that are damaged, or a stranger's: each command says which file, which line and why, and nothing hangs."""

import functools
import json
import operator
import os
import shutil

import numpy as np
import pytest
from command_line import command_line
from finished_runs import RISING, finished_run

from edgebed.algorithms.registry import batches_a_push
from edgebed.core.errors import ScenarioError
from edgebed.core.package import fingerprint
from edgebed.journal.run_folder import RunFolder

pytestmark = pytest.mark.slow

OPTIONS = {"runtime": "simulation", "emulation": "auto", "trace": False, "force": False}
FOREVER = 2**53


@pytest.fixture
def edgebed(monkeypatch, capsys):
    """Runs a command line in this process; gives (exit code, all that it printed)."""
    call = command_line(monkeypatch, capsys)

    def all_of(*words):
        code, *said = call(*words)
        return code, "".join(said)

    return all_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of one trial, asgd, that broke off: it can be gone on with."""
    return finished_run(
        tmp_path_factory.mktemp("runs"), {"asgd": RISING}, sets=["variants.adacomp=null"], outcome=None,
        code=fingerprint(), options=OPTIONS,
    ).folder  # fmt: skip


@pytest.fixture
def run(whole, tmp_path, monkeypatch):
    """A copy of it."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole.path.parents[1], tmp_path / "runs", symlinks=True)
    return RunFolder(tmp_path / "runs" / whole.name)


def with_line(line):
    """A journal with this as its fifth line."""

    def damage(folder):
        journal = folder.trial("asgd").journal
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:4], line + b"\n", *lines[4:]]))

    return damage


def with_file(name, content):
    """A folder that has a file of this content; None: a pipe that nobody writes to."""

    def damage(folder):
        path = folder.path / name
        path.unlink(missing_ok=True)
        if content is None:
            os.mkfifo(path)
        else:
            path.write_bytes(content)

    return damage


def with_plan(*keys, value):
    """A plan that has this in place of what is found by these keys."""

    def damage(folder):
        path = folder.trial("asgd").plan
        plan = json.loads(path.read_bytes())
        *outer, last = keys
        functools.reduce(operator.getitem, outer, plan)[last] = value
        path.write_text(json.dumps(plan))

    return damage


def update(**fields):
    """The line of an update."""
    given = {"incarnation": 1, "step": 3, "version": 4, "base": 0, "staleness": 0, "entries": 1, "bits": 1, "bytes": 1}
    numbers = ",".join(f'"{name}":{value}' for name, value in (given | fields).items())
    return f'{{"t":1,"node":"server","kind":"update","worker":"edge-0",{numbers},"loss":0.5}}'.encode()


REFUSED = (
    b'{"t":1,"node":"server","kind":"refused","peer":"x","code":"duplicate","reason":"","worker":"edge-0",'
    b'"incarnation":1,"step":%d}'
)
DEEP = b"[" * 100_000 + b"]" * 100_000
JOURNALS = {
    "deep": (with_line(b'{"t":1,"node":"x","kind":"note","text":' + DEEP + b"}"), "events.jsonl:5: "),
    "garbage": (with_line(b"\xff\xfe{"), "events.jsonl:5: "),
    "a kind that nobody knows": (with_line(b'{"t":1,"node":"x","kind":"rm"}'), "events.jsonl:5: "),
    "a step of 23 digits": (with_line(update(step=10**23)), "events.jsonl:5: "),
    "a negative version": (with_line(update(version=-3)), "events.jsonl:5: "),
    "a time beyond all times": (with_line(b'{"t":1e300,"node":"x","kind":"note","text":""}'), "events.jsonl:5: "),
    "bytes beyond all sums": (with_line(b"\n".join([update(bytes=FOREVER)] * 1100)), "events.jsonl:1"),
    "a pipe": (with_file("asgd/events.jsonl", None), "events.jsonl: "),
}
PLANS = {
    "half a plan": (with_file("asgd/plan.json", b'{"scenario":'), "plan.json: "),
    "a deep plan": (with_file("asgd/plan.json", DEEP), "plan.json: "),
    "a pipe for a plan": (with_file("asgd/plan.json", None), "plan.json: "),
    "a plan of another form": (
        with_file("asgd/plan.json", b'{"scenario":"x","trial":"x","question":"","seed":1,"nodes":[{}]}'),
        "plan.json: not readable as a plan: ",
    ),
    "a link that loses less than nothing": (
        with_plan("classes", 0, "link", "loss", value=-0.5),
        "plan.json: not readable as a plan: Expected `float` >= 0.0 - at `$.link.loss`",
    ),
    "a link without a rate": (with_plan("classes", 0, "link", "uplink_bit_s", value=0), "`$.link.uplink_bit_s`"),
    "a time beyond all times": (with_plan("stop_time_s", value=1e300), "`$.stop_time_s`"),
    "a number of updates below 0": (with_plan("stop_updates", value=-1), "`$.stop_updates`"),
    "an expectation of nothing known": (
        with_plan("expectations", value=[["happiness", ">=", 1.0]]),
        "plan.json: not readable as a plan: it expects something of 'happiness'",
    ),
    "a level of nothing known": (
        with_plan("stop_level", value={"measure": "happiness", "value": 1.0, "window": 1}),
        "plan.json: not readable as a plan: a level of 'happiness'",
    ),
    "a mean of no evaluation": (
        with_plan("stop_level", value={"measure": "accuracy", "value": 1.0, "window": 0}), "`$.stop_level.window`"
    ),
    "a fault without a step": (
        with_plan("faults", value=[{"name": "f", "node": "edge-0", "trigger": {}, "steps": []}]), "`$.faults[0].steps`"
    ),
    "a manifest of another kind": (with_file("manifest.json", b'{"trials":5}'), "manifest.json: "),
    "a deep manifest": (with_file("manifest.json", DEEP), "manifest.json: "),
}  # fmt: skip
READERS = ("show", "report", "link show", "compare", "export --format csv", "replay --output samples.om", "resume")


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(("damage", "place"), [*JOURNALS.values(), *PLANS.values()], ids=[*JOURNALS, *PLANS])
def test_a_damaged_run_is_an_error_that_names_the_file(edgebed, run, command, damage, place):
    """With its line, where it has lines; the cause behind it, and no traceback."""
    damage(run)
    name, *options = command.split(" --")
    code, printed = edgebed(*name.split(), "pair", *(word for each in options for word in f"--{each}".split()))

    assert code in (2, 3)
    assert "Traceback" not in printed
    error = next(line for line in printed.splitlines() if line.startswith("error: "))
    assert place in error
    assert len(error.partition(place)[2]) > 10


@pytest.mark.parametrize(
    ("keys", "value", "cause"),
    [
        (("local_work", "name"), "sleep", "local_work 'sleep' is unknown; allowed: gradient-step, "),
        (("local_work",), {"name": "local-steps", "settings": {"epochs": -1.0}}, "'local-steps': epochs: -1 is not"),
        ((), {"compression": {"name": "none"}}, "the method asgd has no local_work, only compression"),
    ],
)
def test_a_method_that_nobody_knows_is_told(edgebed, run, keys, value, cause):
    """By whoever would reckon with it."""
    with_plan("common", "method", "parts", *keys, value=value)(run)
    with pytest.raises(ScenarioError) as caught:
        batches_a_push(run.trial("asgd").read_plan().workers()[0])
    assert cause in str(caught.value)
    for command in READERS:
        assert "Traceback" not in edgebed(*command.split(), "pair")[1]


@pytest.mark.parametrize("command", ["events", "watch"])
@pytest.mark.parametrize("name", ["deep", "garbage", "a pipe"])
def test_who_follows_a_journal_is_told_as_well(edgebed, run, command, name):
    """Also where each line is read by itself."""
    damage, place = JOURNALS[name]
    damage(run)
    code, printed = edgebed(command, "pair")

    assert code == 3
    assert place in printed
    assert "Traceback" not in printed


def test_a_damaged_run_does_not_hide_the_others(edgebed, run, tmp_path):
    """The list has a line for it, and the reason beside."""
    other = finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})
    (run.path / "manifest.json").write_bytes(b'{"trials":5}')
    code, printed = edgebed("ls")

    assert code == 0
    assert "damaged" in printed
    assert other.folder.name in printed
    assert "manifest.json: not readable as a manifest: Expected `array`, got `int` - at `$.trials`" in printed


@pytest.mark.parametrize(
    "line",
    [
        update(step=FOREVER), update(version=FOREVER), update(incarnation=FOREVER),
        b'{"t":1,"node":"controller","kind":"restored","version":900000000000}',
        b'{"t":1,"node":"edge-0","kind":"pushes","incarnation":1,"begun":900000000000,"pushed":900000000000}',
        REFUSED % FOREVER,
    ],
)  # fmt: skip
def test_a_gap_is_counted_however_wide_it_is(edgebed, run, line):
    """What is missing in between is a number in the books, not so many steps."""
    with_line(line)(run)
    with_line(b'{"t":0,"node":"server","kind":"joined","worker":"edge-0","incarnation":1}')(run)
    _, printed = edgebed("show", "pair")

    assert "not all accounted for" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("step", [FOREVER, 10**12])
@pytest.mark.parametrize("fields", ['"step":{}', '"step":0,"made":{}', '"step":0,"history":1,"every":9999,"made":{}'])
def test_steps_of_shards_beyond_all_that_was_told_are_refused(edgebed, run, step, fields):
    """Each step has a place in the series, so a line may not stand for any number of them."""
    with_line(f'{{"t":1,"node":"edge-0","kind":"step",{fields.format(step)}}}'.encode())(run)
    code, printed = edgebed("show", "pair")

    assert code == 3
    assert "events.jsonl:5: not a line of a journal: step " in printed


def test_a_run_whose_log_is_damaged_is_resumed_without_it(edgebed, run):
    """The command that is shown works as it stands; other runs are resumed with their log."""
    assert "to resume: edgebed resume pair/0001\n" in edgebed("show", "pair")[1]
    with run.trial("asgd").journal.open("a") as journal:
        reason = "server-log/log of the server: damaged at byte 7 (edgebed resume --from-checkpoint)"
        journal.write(
            json.dumps({"t": 99, "node": "controller", "kind": "ended", "outcome": "failed", "reason": reason})
        )
        journal.write("\n")

    assert "to resume: edgebed resume pair/0001 --from-checkpoint\n" in edgebed("show", "pair")[1]


def saved(**arrays):
    """A checkpoint of these."""

    def damage(folder):
        np.savez(folder.trial("asgd").latest_checkpoint, **arrays)

    return damage


def theta(dtype="float32", size=4810, value=0.0):
    """A model."""
    return np.full(size, value, dtype)


CHECKPOINTS = {
    "shape": (saved(version=3, theta=theta(size=7)), "another model: 7 parameters, where the trial's has 4,810"),
    "dimensions": (saved(version=3, theta=theta().reshape(1, -1)), "theta: float32 of shape (1, 4810)"),
    "dtype": (saved(version=3, theta=theta("complex128")), "theta: complex128 of shape (4810,)"),
    "not finite": (saved(version=3, theta=theta(value=np.nan)), "numbers that are not finite"),
    "negative version": (saved(version=-3, theta=theta()), "version: -3 is no number of updates"),
    "huge version": (saved(version=2**60, theta=theta()), f"version: {2**60} is no number of updates"),
    "version beyond the end": (saved(version=301, theta=theta()), "version: 301, where the trial ends at update 300"),
    "version of a kind": (saved(version="3", theta=theta()), "version: 3 is no number of updates"),
    "state of another": (
        saved(version=3, theta=theta(), state=theta("uint8", 5)),
        "state: not what this aggregation remembers",
    ),
    "state of a kind": (saved(version=3, theta=theta(), state=theta(size=5)), "state: float32"),
    "objects": (saved(version=3, theta=np.array([{}])), "it is no archive of arrays"),
    "nothing": (with_file("asgd/checkpoints/latest.npz", b""), "No data left"),
    "a pipe": (with_file("asgd/checkpoints/latest.npz", None), "it is no file"),
}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("damage", "cause"), CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_run_does_not_go_on_from_a_foreign_checkpoint(edgebed, run, damage, cause):
    """Whatever is wrong with it is said before any node begins."""
    damage(run)
    code, printed = edgebed("resume", "pair", "--processes", "1")

    assert code in (2, 3)
    assert "Traceback" not in printed
    assert "latest.npz: " in printed
    assert cause in printed


@pytest.mark.parametrize("name", ["asgd/events.jsonl", "asgd/logs", "scenario.yaml"])
def test_a_run_does_not_go_on_through_a_link(edgebed, run, tmp_path, name):
    """Its folder may be a stranger's, and whatever the link leads to is not."""
    (tmp_path / "elsewhere").mkdir()
    place = run.path / name
    place.rename(tmp_path / "elsewhere/there")
    place.symlink_to(tmp_path / "elsewhere/there")
    code, printed = edgebed("resume", "pair")

    assert code == 2
    assert f"{place}: it is a link to {tmp_path / 'elsewhere/there'}" in printed


@pytest.mark.usefixtures("undrawn")
def test_a_report_replaces_a_link_and_not_what_it_leads_to(edgebed, run, tmp_path):
    """One that the user names with --output is followed, see test_cli.py."""
    (tmp_path / "precious").write_text("precious")
    run.report.symlink_to(tmp_path / "precious")
    code, _ = edgebed("report", "pair")

    assert code == 0
    assert (tmp_path / "precious").read_text() == "precious"
    assert "<html" in run.report.read_text()


def test_what_a_terminal_would_act_on_is_quoted(edgebed, run):
    """In notes, names and reasons, wherever they are printed; JSON stays what it is."""
    evil = rb"\u001b]0;pwned\u0007\u001b[2J\u009b31m\u202e"
    with_line(b'{"t":1,"node":"controller","kind":"note","text":"' + evil + b'"}')(run)
    with_line(b'{"t":2,"node":"controller","kind":"node","name":"edge-0","state":"died","reason":"' + evil + b'"}')(run)
    for command in ("show", "show --json", "events", "events --json", "logs", "link show", "ls"):
        _, printed = edgebed(*command.split(), *([] if command == "ls" else ["pair"]))
        assert not set("\x1b\x07\x9b\u202e") & set(printed)
    _, shown = edgebed("show", "pair", "--verbose")
    assert r"note: \u001b]0;pwned" in shown


def test_logs_go_to_a_file_as_they_were_written(edgebed, run):
    """Colours and all: only a terminal would act on them."""
    run.trial("asgd").log("edge-0").write_text("\x1b[31mred\x1b[0m\n")

    assert "\x1b[31mred\x1b[0m" in edgebed("logs", "pair", "edge-0")[1]
