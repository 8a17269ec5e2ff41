"""What a report and a terminal say of runs: of a whole one all, of others what is another, as files hold it."""

import io
import re
import shutil
from pathlib import Path

import goldens
import msgspec
import pytest
from conditioned_runs import PROBLEM, run_of
from rich.console import Console
from sample_runs import make_plan, sample_entries, write_sample_run

from edgebed.core import records
from edgebed.core.plan import Shard
from edgebed.journal.journal import JournalWriter
from edgebed.reports.run.brief import links_brief, results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.terminal import show
from edgebed.running.results import Run

FOLDER = Path(__file__).parent / "goldens"
BEGUN = records.Trial(scenario="s", trial="x", seed=7, runtime="process", nodes=6, parameters=9)
NODES = ("server", "evaluator", "edge-0", "edge-1", "phone-0", "phone-1")
REFUSALS = [f"refused edge-{k}~f00{k}: the code of edge-{k} (a) is not the controller's (b)" for k in range(3)]
OF_SHARDS = {"shard": Shard(end=1)}
CAPPED = {"cpus": 0.25, "memory_bytes": 2**26, "num_examples": 30}


def asgd():
    """The entries of the sample's trial `asgd`."""
    return list(sample_entries(push_bytes=40_000, reach=0.975))


def run_with(root, *entries, asgd=asgd, files=lambda run: None, **manifest):
    """The sample's run with another trial `asgd`, with more entries in it, after what is done to its files."""
    run = write_sample_run(root, {"asgd": [*asgd(), *entries], "adacomp": sample_entries(push_bytes=520, seed=1)})
    if manifest:
        given = {"runtime": "process", "command": [], "trials": ["asgd", "adacomp"]} | manifest
        run.folder.write_manifest(seed=7, **given)
    files(run)
    return Run(run.folder)


def notes(*texts):
    """Notes of the controller."""
    return [(5.0, "controller", records.Note(text=text)) for text in texts]


def replan(run, trial, **settings):
    """Set what workers of a trial are planned with."""
    plan = make_plan(trial)
    nodes = (msgspec.structs.replace(node, **settings) if node.role == "worker" else node for node in plan.nodes)
    run.folder.trial(trial).make(msgspec.structs.replace(plan, nodes=tuple(nodes)))


def cut(run):
    """Leave half a line at the end of a journal, and nothing of the other trial."""
    shutil.rmtree(run.path / "adacomp")
    with (run.path / "asgd/events.jsonl").open("ab") as file:
        file.write(b'{"t":1')


def without(*names):
    """Remove files and folders of a run."""

    def remove(run):
        for name in names:
            (run.path / name).unlink() if (run.path / name).is_file() else shutil.rmtree(run.path / name)

    return remove


def begins(**trials):
    """A run of trials that fail before training, or soon after it has begun."""
    missing = [
        (4.0, "controller", records.Node(name="edge-0", state="missing", reason="no hello")),
        (5.0, "controller", records.Ended(outcome="failed", reason="edge-0 never came")),
    ]
    return lambda root: write_sample_run(
        root, {name: [(3.0, "controller", BEGUN)] * begun + missing for name, begun in trials.items()}
    )


def changed_by_hand(run):
    """Change links of nodes by hand, one for good."""
    with JournalWriter(run.folder.trial("asgd").journal) as journal:
        for node, asked_s, change in (("edge-0", 1.0, "uplink 20kbit"), ("edge-1", 1.5, "uplink 1mbit"),
                                      ("edge-0", 2.0, "latency 40ms"), ("edge-1", 2.5, "as planned")):  # fmt: skip
            fault = records.Fault(name="by hand", action="link", target=node, asked_s=asked_s, change=change)
            journal.write(asked_s, "controller", fault)


SAMPLES = {
    "a killed run: no end, a cut last line, a trial that did not begin": lambda root: run_with(
        root, asgd=lambda: asgd()[:200], files=cut
    ),
    "no update": lambda root: write_sample_run(root, {"asgd": []}),
    "no journal, scenario or manifest": lambda root: run_with(
        root, files=without("asgd/events.jsonl", "adacomp", "scenario.yaml", "manifest.json")
    ),
    "no trial": lambda root: write_sample_run(root, {}),
    "a node that died, with its last words": lambda root: run_with(
        root, (5.0, "controller", records.Node(name="edge-0", state="died", reason="killed by SIGKILL")),
        files=lambda run: run.folder.trial("asgd").log("edge-0").write_text(
            "".join(f"<line {n}>\n" for n in range(1, 31))
        ),
    ),
    "from Python there is no command": lambda root: run_with(root, command=["python", "-c", "x"]),
    "the command has the options that were given": lambda root: run_with(
        root, scenario_file="sample.yaml", options={"emulation": "model", "trace": True, "force": True}
    ),
    "the command has no options that are the default": lambda root: run_with(
        root, scenario_file="sample.yaml", options={"emulation": "auto", "trace": False, "force": False}
    ),
    "other caps and other data of a trial: a fleet of its own": lambda root: run_with(
        root, files=lambda run: replan(run, "asgd", **CAPPED)
    ),
    "other nodes of a trial: a fleet of its own": lambda root: run_with(
        root, files=lambda run: run.folder.trial("asgd").make(make_plan("asgd", workers=("edge-0",)))
    ),
    "an update of shards is no one node's": lambda root: run_with(
        root, files=lambda run: replan(run, "asgd", **OF_SHARDS)
    ),
    "times count from the start of training": begins(a=1, b=1),
    "times of a trial without training count from its launch": begins(a=1, b=0),
    "times of trials without training count from their launch": begins(a=0, b=0),
    "what the server's log took and saved": lambda root: run_with(
        root,
        (99.0, "server", records.Appended(entries=1200, bytes=9_000_000, time_s=8.0, append_s=0.1, syncs=900,
                                          waited=900, waited_s=1.8)),
        (99.0, "server", records.Appended(entries=300, bytes=3_000_000, time_s=2.0, append_s=0.1, saved=41)),
    ),
    "an interrupted run is not judged": lambda root: run_with(
        root, (9.0, "controller", records.Ended(outcome="interrupted", reason="x")), asgd=lambda: asgd()[:300],
        files=without("adacomp"),
    ),
    "of many notes the first; a node's own are not shown": lambda root: run_with(
        root, *notes(*(f"Something else, {k}." for k in range(7))), (5.0, "edge-1", records.Note(text="my own"))
    ),
    "notes that say the same of several nodes are shown once; who came too late is no news": lambda root: run_with(
        root, *notes(*REFUSALS, "refused edge-1~ca11: the trial is over", "7 records of phone-1 were lost on the way")
    ),
    "the start-up": lambda root: run_with(
        root, asgd=lambda: [*((0.1, "controller", records.Node(name=name, state="joined")) for name in NODES),
                            (0.5, "controller", BEGUN), *(each for each in asgd() if each[1] == "server")],
    ),
    "a simulation has no rows of what it does not measure": lambda root: run_with(
        root, asgd=lambda: [(0.0, "controller", msgspec.structs.replace(BEGUN, runtime="simulation")), *asgd()[1:]],
        files=without("adacomp"), trials=["asgd"], runtime="simulation",
    ),
    "links that somebody changed; what was undone is over": lambda root: run_with(root, files=changed_by_hand),
}  # fmt: skip
CONDITIONS = {
    "held otherwise": lambda root: run_of(root, problem=PROBLEM),
    "expected to be trusted": lambda root: run_of(root, expects_trusted=True),
    "held otherwise and expected to be trusted": lambda root: run_of(root, problem=PROBLEM, expects_trusted=True),
    "a simulation, expected to be trusted": lambda root: run_of(root, expects_trusted=True, runtime="simulation"),
    "messages too small to tell a rate": lambda root: run_of(root, sent_bytes=100 * 400),
}


ABOUT = {
    "a killed run: no end, a cut last line, a trial that did not begin": (
        "head",
        "Trials",
        "Events",
        "terminal",
    ),
    "no update": ("head", "terminal"),
    "no journal, scenario or manifest": ("head", "How to repeat it"),
    "no trial": ("head", "terminal"),
    "a node that died, with its last words": ("head", "Ends of the logs of nodes that died", "Events"),
    "from Python there is no command": ("How to repeat it",),
    "the command has the options that were given": ("How to repeat it",),
    "the command has no options that are the default": ("How to repeat it",),
    "other caps and other data of a trial: a fleet of its own": ("The fleet",),
    "other nodes of a trial: a fleet of its own": ("The fleet",),
    "an update of shards is no one node's": ("The fleet",),
    "times count from the start of training": ("Events",),
    "times of a trial without training count from its launch": ("Events",),
    "times of trials without training count from their launch": ("Events",),
    "what the server's log took and saved": ("Trials",),
    "an interrupted run is not judged": ("head", "terminal"),
    "of many notes the first; a node's own are not shown": ("terminal",),
    "notes that say the same of several nodes are shown once; who came too late is no news": ("terminal",),
    "the start-up": ("Trials",),
    "a simulation has no rows of what it does not measure": ("Trials", "Did the conditions hold?"),
    "links that somebody changed; what was undone is over": ("links",),
}
"""Which parts of what is said a sample of runs is about."""
OF_CONDITIONS = ("head", "Expectations", "Did the conditions hold?", "terminal", "links")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("name", "first", "others", "whole"),
    [("runs", write_sample_run, SAMPLES, ()), ("conditions", run_of, CONDITIONS, OF_CONDITIONS)],
)
def test_what_is_said_of_a_run(tmp_path, monkeypatch, name, first, others, whole):
    """Its report, its lines on a terminal without the chart, and those of `edgebed link show`."""
    monkeypatch.delenv("COLUMNS", raising=False)
    base, changed = said(first(tmp_path / "first")), {}
    for number, (title, make) in enumerate(others.items()):
        found = said(make(tmp_path / f"{number}"))
        about = ABOUT.get(title, whole)
        changed[title] = goldens.changes(*("\n".join(each.get(part, "") for part in about) for each in (base, found)))

    text = "\n".join(base[part] for part in whole or base)
    goldens.compare(text + goldens.sections(changed), FOLDER / f"{name}.txt")


def said(run):
    """All that is said of a run, by the titles of the page's sections, but for moments, places and this machine."""
    page = re.split(r"^- (?:commit|folder|edgebed): ", to_markdown(report_page(run)), maxsplit=1, flags=re.MULTILINE)[0]
    head, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    parts = {"head": f"{head}exit code {run.exit_code}\n"}
    parts |= {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    for name, brief in (("terminal", results_brief), ("links", links_brief)):
        stream = io.StringIO()
        show(brief(run), Console(file=stream, width=100))
        parts[name] = re.sub(r"^ *\d*[│┤┌└].*\n", "", stream.getvalue(), flags=re.MULTILINE)
    moment = r"\d+ \w+ 20\d\d, \d\d:\d\d UTC"
    return {name: re.sub(moment, "DATE", text.replace(str(run.path), "RUN")) for name, text in parts.items()}
