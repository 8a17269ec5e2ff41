"""The page of a sweep of programs, and what such a sweep refuses before anything runs."""

import msgspec
import pytest
from program_runs import SCENARIO, finished_run

from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import Runtime
from edgebed.reports.studies.program_sweep_page import program_sweep_page
from edgebed.reports.studies.study import RunOptions, sweep
from edgebed.reports.writing.markdown import write
from edgebed.studies.sweep.programs import ProgramPoint, ProgramSweep

SWEEP = "sweep: { seeds: 2, over: { fleet.home.uplink: [1mbit, 20mbit] } }\n"


@pytest.fixture
def scenario(tmp_path):
    """A scenario of a program with a sweep."""
    path = tmp_path / "told.yaml"
    path.write_text(SCENARIO + SWEEP)
    return path


def test_the_page_has_a_row_for_each_run_and_what_was_missed(tmp_path):
    """A point without a run stands there as well; a verdict and an expectation are words."""
    run = finished_run(tmp_path, seed=1, loss=lambda trial, *_: 0.5 if trial == "fast" else 1.5)
    slow, fast = (run.programs[name].summary for name in ("slow", "fast"))
    values = {"fleet.home.count": "2"}
    points = [
        ProgramPoint(point=f"{name}, count 2", variant=name, values=values, seed=1, run=has, summary=of)
        for name, has, of in (("slow", "told/0001", slow), ("fast", "told/0001", fast), ("other", "", None))
    ]
    result = ProgramSweep(
        scenario="told", question="Which?", runtime="process", axes={"fleet.home.count": ("2",)}, seeds=1,
        points=tuple(points),
    )  # fmt: skip
    write(program_sweep_page(result, "edgebed sweep told.yaml --runtime process"), tmp_path)
    lines = (tmp_path / "told.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]

    assert rows[0] == [
        "variant", "count", "loss", "step", "time", "sent", "exit code", "restarts", "expected", "conditions", "run"
    ]  # fmt: skip
    assert rows[2][:3] + rows[2][-3:] == ["slow", "2", "1.5", "missed", slow.fidelity.verdict, "told/0001"]
    assert rows[3][:3] + rows[3][-3:] == ["fast", "2", "0.5", "met", fast.fidelity.verdict, "told/0001"]
    assert rows[4] == ["other", "2", *["–"] * 9]
    assert "2 of 3 runs in the process runtime." in lines
    missed = [line for line in lines if "expected" in line and not line.startswith("|")]
    assert len(missed) == 2, "both expectations of slow, none of fast"
    assert all("slow, count 2" in line for line in missed)
    assert "edgebed sweep told.yaml --runtime process --resume" in lines
    assert msgspec.json.decode(msgspec.json.encode(result))["points"][0]["summary"]["final"]["loss"] == 1.5


def test_without_running_points_are_listed_for_each_seed(tmp_path, scenario):
    """Nothing is there."""
    result = sweep(scenario, run_options=RunOptions(run=False, runs_dir=tmp_path / "runs")).result

    assert [each.point for each in result.points][:4] == [
        "slow, uplink 1mbit, seed 1", "fast, uplink 1mbit, seed 1",
        "slow, uplink 20mbit, seed 1", "fast, uplink 20mbit, seed 1",
    ]  # fmt: skip
    assert {each.seed for each in result.points} == {1, 2}
    assert not any(each.run for each in result.points)


@pytest.mark.parametrize(
    ("runtime", "jobs", "says"),
    [("simulation", 1, "virtual time cannot run a program"), (None, 2, "programs share this machine")],
)
def test_no_virtual_time_and_nothing_at_once(scenario, runtime: Runtime | None, jobs, says):
    """Programs run for real, one after the other."""
    with pytest.raises(ScenarioError, match=says):
        sweep(scenario, runtime=runtime, jobs=jobs)


def test_methods_are_swept_in_simulation_alone():
    """Another runtime is refused, and nothing runs."""
    with pytest.raises(ScenarioError, match="methods are swept in simulation, and not in the docker runtime"):
        sweep("sweeps/links", runtime="docker")
