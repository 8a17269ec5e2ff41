"""The Python interface to a run, and the logs of its nodes."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

import edgebed
from edgebed.core import records
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.journal.logs import log_lines


def test_a_run_is_loaded_by_name(sample_run, monkeypatch):
    """Arrays, plan, summary and exit code of each trial, in order."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(sample_run.path.parent.parent))
    run = edgebed.load("sample")

    assert (list(run.trials), run.scenario, run.exit_code) == (["asgd", "adacomp"], "sample", 0)
    assert run.path == sample_run.path
    assert run.trials["asgd"].plan.trial == "asgd"
    assert run.trials["asgd"].series.evaluations.values.dtype == np.float64
    assert isinstance(next(iter(run.trials["asgd"].events()))[2], records.Trial)


def test_a_checkpoint_is_the_flat_parameters(sample_run):
    """What was saved comes back; without one the error names the path."""
    trial = sample_run.trials["asgd"]
    theta = np.arange(5, dtype=np.float32)
    np.savez(trial.folder.final_checkpoint, theta=theta, version=2)

    assert (trial.checkpoint() == theta).all()
    with pytest.raises(EdgebedError, match=r"adacomp/checkpoints/final\.npz: no checkpoint"):
        sample_run.trials["adacomp"].checkpoint()


def test_a_run_interrupted_in_its_first_trial_is_interrupted(tmp_path, make_sample_run, make_sample_entries):
    """That the second never began does not turn 130 into a failure."""
    run = make_sample_run(tmp_path, {"asgd": make_sample_entries(outcome="interrupted")})
    run.folder.write_manifest(seed=7, runtime="process", command=[], trials=["asgd", "adacomp"])

    assert edgebed.load(run.path).exit_code == 130


def test_an_unreadable_plan_is_named(sample_run):
    """A broken file is an error with its path, not a traceback of the decoder."""
    (sample_run.path / "asgd" / "plan.json").write_text("{")

    with pytest.raises(EdgebedError, match=r"asgd/plan\.json: not readable as a plan"):
        _ = sample_run.trials["asgd"].plan


def test_importing_edgebed_imports_nothing_heavy():
    """A node of the fleet does not pay for results and reports."""
    code = "import sys, edgebed; print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'msgspec')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = edgebed.walk


def write_logs(run):
    """Two logs in one trial, one in the other."""
    for trial, node, text in (
        ("asgd", "server", "one\ntwo\n"), ("asgd", "edge-0", "three\n"), ("adacomp", "server", "four\n"),
    ):  # fmt: skip
        run.folder.trial(trial).log(node).write_text(text)


def test_logs_say_who_wrote_each_line(sample_run):
    """All, one node of all trials, or one log alone, which needs no prefix."""
    write_logs(sample_run)
    folder = sample_run.folder

    assert list(log_lines(folder)) == [
        "asgd/edge-0: three",
        "asgd/server: one",
        "asgd/server: two",
        "adacomp/server: four",
    ]
    assert list(log_lines(folder, node="server", trial="asgd")) == ["one", "two"]
    assert list(log_lines(folder, node="edge-0")) == ["asgd/edge-0: three"]


def test_unknown_nodes_and_trials_list_those_there_are(sample_run):
    """A typing mistake is answered with the names."""
    write_logs(sample_run)

    with pytest.raises(ScenarioError, match="no node 'edge-9'; there are server, evaluator, edge-0, edge-1"):
        list(log_lines(sample_run.folder, node="edge-9"))
    with pytest.raises(ScenarioError, match="no trial 'sgd'; there are asgd, adacomp"):
        list(log_lines(sample_run.folder, trial="sgd"))


def test_following_a_log_ends_with_the_run(sample_run):
    """Appended lines come as they are whole, the last ones even if cut; it needs no results."""
    write_logs(sample_run)
    log = sample_run.folder.trial("asgd").log("server")
    script = iter(("three\nfo", "ur\nfive", None))
    hold = contextlib.ExitStack()

    def pause(_):
        text = next(script)
        if text is None:
            hold.close()
        else:
            with log.open("a") as file:
                file.write(text)

    with hold:
        hold.enter_context(sample_run.folder.locked())
        lines = list(log_lines(sample_run.folder, node="server", trial="asgd", follow=True, pause=pause))

    assert lines == ["one", "two", "three", "four", "five"]


def test_a_simulated_run_says_that_it_has_no_logs(sample_run):
    """Silence would look like a fault."""
    sample_run.folder.write_manifest(seed=7, runtime="simulation", command=[], trials=["asgd", "adacomp"])

    with pytest.raises(ScenarioError, match="a simulated run has no node logs"):
        list(log_lines(sample_run.folder))


def test_a_run_that_goes_on_says_so(tmp_path, make_sample_run, make_sample_entries):
    """Its trial is running, not unfinished, and there is no result yet."""
    run = make_sample_run(tmp_path, {"asgd": list(make_sample_entries())[:100]})
    with run.folder.locked():
        summary = edgebed.load(run.path).summary

    assert (summary.text, summary.trials[0].outcome) == ("No result yet: the run is still running.", "running")
