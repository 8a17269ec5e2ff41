"""Which runs the rows of a paper need, how each is begun, and which of those that are there count."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from finished_runs import completed_run, open_books, write_journal
from tiny_paper import tiny_paper, write_paper

from edgebed.core.errors import ScenarioError
from edgebed.journal.run_folder import RunFolder, runs_of, write_atomically
from edgebed.running.results import Run
from edgebed.running.run import own_code, without_report
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.studies.cells.cells import CellRun, PaperCells, Size, check_rows, runs_of_rows
from edgebed.studies.cells.jobs import JobRunner
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import RunIndex, state_of
from edgebed.studies.cells.running_cells import CellRunner, Pace, distinct, going_on, run_text
from edgebed.studies.papers.measuring import accuracy
from edgebed.studies.papers.paper import AtLeast, Near, OverUpdates
from edgebed.studies.reproduction.reproduction import evaluate


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PaperCells:
    """Those of the tiny paper, whose folder is the current one."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    return PaperCells(tiny_paper())


def with_push(cells: PaperCells, **settings: object) -> PaperCells:
    """Cells of the tiny paper with other settings of its row `push`."""
    first, second = cells.paper.tables
    rows = second.rows | {"push": dataclasses.replace(second.rows["push"], **settings)}
    return PaperCells(dataclasses.replace(cells.paper, tables=(first, dataclasses.replace(second, rows=rows))))


def runner_in(cells: PaperCells, root: Path, tell: Callable[[str], None]) -> CellRunner:
    """One that goes on with what is there, none of it kept elsewhere."""
    kept = ResultCache(cells, root / "kept")
    return CellRunner(
        cells=cells,
        report=without_report,
        root=root,
        cache=kept,
        resume=True,
        processes=1,
        progress=None,
        tell=tell,
    )


def test_a_run_that_several_rows_use_is_wanted_once() -> None:
    """All of the first seed come before any of the second, so that every row has a value soon."""
    paper = tiny_paper()

    assert runs_of_rows(paper, list(paper.rows)) == [
        CellRun("asgd", 1.0, 1),
        CellRun("adacomp", 0.5, 1),
        CellRun("asgd", 1.0, 2),
        CellRun("adacomp", 0.5, 2),
    ]


def test_only_the_cells_of_the_chosen_rows_are_wanted() -> None:
    """At the size that the user asks for."""
    paper = tiny_paper()

    assert runs_of_rows(paper, ["push", "perfect"], Size(scale=0.1, seeds=1)) == [CellRun("adacomp", 0.1, 1)]
    assert runs_of_rows(paper, ["push"], Size(seeds=2, first_seed=7)) == [
        CellRun("adacomp", 0.5, 7),
        CellRun("adacomp", 0.5, 8),
    ]


def test_an_unknown_row_is_refused_with_those_there_are() -> None:
    """With the one that was probably meant."""
    with pytest.raises(ScenarioError, match="tiny has no row 'asg'; did you mean 'asgd'"):
        check_rows(tiny_paper(), ["asg", "push"])
    assert check_rows(tiny_paper(), ["push", "asgd"]) == ["asgd", "push"]
    assert check_rows(tiny_paper(), []) == ["asgd", "difference", "push", "perfect"]


def test_a_cell_of_full_size_is_the_scenario_itself(cells: PaperCells) -> None:
    """Only the seed is set."""
    spec = cells.spec(CellRun("asgd", 1.0, 2))

    assert spec.sets == ("seed=2",)
    assert spec.updates == 1200
    assert spec.command == ("edgebed run scenarios/tiny/digits.yaml --runtime simulation --variant asgd --set seed=2")


def test_a_smaller_cell_has_as_many_evaluations(cells: PaperCells) -> None:
    """Their interval is scaled with the updates."""
    run = CellRun("asgd", 0.25, 1)
    plan = cells.plans([run])[run]
    evaluator = next(node for node in plan.nodes if node.role == "evaluator")

    assert plan.stop_updates == 300
    assert evaluator.evaluate_every_updates == 30


def test_what_is_planned_is_what_the_command_would_run(cells: PaperCells) -> None:
    """Variant, seed and overrides."""
    run = CellRun("adacomp", 0.5, 2)
    spec, plan = cells.spec(run), cells.plans([run])[run]
    trial = load_scenario(spec.scenario, spec.sets).only([spec.variant]).trials["adacomp"]

    assert (plan.scenario, plan.trial, plan.seed) == ("tiny-digits", "adacomp", 2)
    assert plan.stop_updates == trial.stop.updates == 600


def test_cells_that_are_the_same_at_a_size_run_once(cells: PaperCells) -> None:
    """As where two cells of one variant differ in the size alone."""
    runs = [CellRun("asgd", 0.5, 1), CellRun("adacomp", 0.5, 1), CellRun("again", 0.5, 1)]
    recipes = {run: cells.spec(run) for run in runs[:2]}

    assert list(distinct(recipes | {runs[2]: recipes[runs[0]]})) == runs[:2]


def test_where_the_scenarios_are_looked_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current folder, and in the checkout."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=rf"looked for {tmp_path}/scenarios/tiny and .*scenarios/tiny"):
        PaperCells(tiny_paper())


def test_a_cell_without_an_end_is_refused(cells: PaperCells) -> None:
    """Its size could not be said."""
    path = Path("scenarios/tiny/digits.yaml")
    path.write_text(path.read_text().replace("updates: 1200", "time: 5s"))
    with pytest.raises(ScenarioError, match=r"digits.yaml: variant 'asgd' has no stop.updates"):
        cells.spec(CellRun("asgd", 1.0, 1))


def test_the_time_left_is_that_of_the_same_cell(cells: PaperCells) -> None:
    """A cell that has not been run yet takes as long an update as the others do together."""
    left = {run: cells.spec(run) for run in (CellRun("asgd", 1.0, 2), CellRun("adacomp", 0.5, 1))}
    pace = Pace()

    assert pace.left_s(left) is None
    pace.note("asgd", 1200, 8.0)
    pace.note("failed at once", 0, 100.0)
    assert pace.left_s(left) == pytest.approx(8.0 + 4.0)
    pace.note("adacomp", 600, 1.0)
    assert pace.left_s(left) == pytest.approx(8.0 + 1.0)
    assert pace.text(left) == "; about 9.00 s to go"
    assert pace.text(left, passed_s=3.0) == "; about 3.00 s to go"  # three at a time
    assert pace.text({}) == Pace().text(left) == ""


def test_a_run_is_announced_with_its_size(cells: PaperCells) -> None:
    """The share of the paper's updates where it is not all."""
    full, half = CellRun("asgd", 1.0, 2), CellRun("adacomp", 0.5, 1)

    assert run_text(full, cells.spec(full)) == "asgd, seed 2: 1,200 updates"
    assert run_text(half, cells.spec(half)) == "adacomp, seed 1: 600 updates, 50 % of the paper's"


def test_how_to_go_on_is_the_same_command() -> None:
    """With --resume, once, unless what is there counts in any case."""
    assert going_on(["edgebed", "reproduce", "tiny"]) == "edgebed reproduce tiny --resume"
    assert going_on(["edgebed", "reproduce", "tiny", "--resume"]) == "edgebed reproduce tiny --resume"
    assert going_on(["edgebed", "reproduce", "--budget", "3h"]) == "edgebed reproduce --budget 3h"
    assert going_on(["edgebed", "reproduce", "--no-run"]) == "edgebed reproduce --no-run"


def test_a_trial_with_faults_is_not_gone_on_with(cells: PaperCells, tmp_path: Path) -> None:
    """Nodes that had died would be there again, so its result would be another."""
    path = Path("scenarios/tiny/digits.yaml")
    path.write_text(path.read_text() + "faults: [{ kill: edge-0, at_update: 50 }]\n")
    run = CellRun("asgd", 1.0, 1)
    plan = cells.plans([run])[run]
    folder = RunFolder.create(tmp_path / "runs", plan.scenario)
    folder.write_manifest(seed=1, runtime="simulation", command=[], trials=["asgd"])
    folder.trial("asgd").make(plan)
    (found,) = RunIndex(tmp_path / "runs").find(plan)
    said: list[str] = []
    runner = runner_in(cells, tmp_path / "runs", said.append)

    assert found.state == "broken off"
    job = runner._job(run, cells.spec(run), plan)
    assert JobRunner(index=RunIndex(tmp_path), report=without_report, tell=said.append).go_on(job, found, plan) is None
    assert said == [
        "tiny-digits/0001 broke off and is begun anew: in a resumed trial, nodes that had died are there again"
    ]
    folder.reopen(["edgebed", "resume"])
    assert list(RunIndex(tmp_path / "runs").find(plan)) == []


def test_a_run_that_somebody_holds_is_in_progress(cells: PaperCells, tmp_path: Path) -> None:
    """The most useful of several runs of the same plan is taken, the newest first."""
    run = CellRun("asgd", 1.0, 1)
    plan = cells.plans([run])[run]
    finder = RunIndex(tmp_path / "runs")
    assert not finder.knows(plan.scenario, plan.trial, plan.seed)
    for _ in range(2):
        folder = RunFolder.create(tmp_path / "runs", plan.scenario)
        folder.write_manifest(seed=1, runtime="simulation", command=[], trials=["asgd"])
        folder.trial("asgd").make(plan)

    assert finder.knows(plan.scenario, plan.trial, plan.seed)
    assert not finder.knows(plan.scenario, plan.trial, 2)
    with folder.locked():
        assert [(each.run.path.name, each.state) for each in finder.find(plan)] == [
            ("0002", "in progress"),
            ("0001", "broken off"),
        ]
    other = cells.plans([CellRun("asgd", 0.5, 1)])
    assert [list(finder.find(plan)) for plan in other.values()] == [[]]


def test_a_run_that_broke_off_after_its_end_is_not_run_again(cells: PaperCells, tmp_path: Path) -> None:
    """Only its summary and report are made; a journal that cannot be read is no end, and the cell is run anew."""
    run, said = CellRun("asgd", 0.01, 1), []
    plan = cells.plans([run])[run]
    folder = RunFolder.create(tmp_path / "runs", plan.scenario)
    folder.write_manifest(seed=1, runtime="simulation", command=[], trials=["asgd"])
    folder.trial("asgd").make(plan)
    folder.write_scenario(resolved_yaml(load_scenario(cells.spec(run).scenario, cells.spec(run).sets)))
    write_journal(folder.trial("asgd").journal, (0.1, 0.9), 100)
    runner = runner_in(cells, tmp_path / "runs", said.append)
    runner.run([run])
    assert (runner.failed, state_of(folder, "asgd"), said) == (
        {},
        "completed",
        ["[1/1] asgd, seed 1: 12 updates, 1 % of the paper's"],
    )
    assert len(runs_of(tmp_path / "runs", plan.scenario)) == 1

    folder.summary.unlink()
    journal = folder.trial("asgd").journal
    journal.write_text("nonsense\n" + journal.read_text())
    runner.cache.path.unlink()
    runner = runner_in(cells, tmp_path / "runs", said.append)
    runner.run([run])
    assert runner.failed == {}
    assert "tiny-digits/0001 broke off and is begun anew: " in said[2]
    assert [state_of(each, "asgd") for each in runs_of(tmp_path / "runs", plan.scenario)] == ["broken off", "completed"]


def test_a_run_whose_books_do_not_close_measures_nothing(cells: PaperCells, tmp_path: Path) -> None:
    """Nothing is made of numbers that cannot be relied on, by whichever edgebed its summary is."""
    run, said = CellRun("adacomp", 0.5, 1), []
    folder = completed_run(cells, run, tmp_path)
    folder.write_scenario(resolved_yaml(load_scenario(cells.spec(run).scenario, cells.spec(run).sets)))
    open_books(folder.trial("adacomp").journal)
    evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), said.append)
    assert "events.jsonl: missing, cut or not all accounted for" in said[0]

    write_atomically(folder.summary, Run(folder).summary_json())
    runner = runner_in(cells, tmp_path, said.append)
    runner.run([run])
    assert state_of(folder, "adacomp") == "broken off"
    assert runner.failed[run].startswith("tiny-digits/0001 completed, accounting does not close: the final model is")


def test_what_another_sweep_completes_meanwhile_has_not_failed(cells: PaperCells, tmp_path: Path) -> None:
    """What it still runs at the end has."""
    theirs, ours = CellRun("adacomp", 0.5, 1), CellRun("asgd", 0.01, 1)
    folder = completed_run(cells, theirs, tmp_path)
    summary = folder.summary.read_bytes()
    folder.summary.unlink()

    def tell(line: str) -> None:
        if line.startswith("[2/2]") and completes:
            write_atomically(folder.summary, summary)

    for completes in (False, True):
        runner = runner_in(cells, tmp_path, tell)
        with folder.locked():
            ours = ours._replace(seed=ours.seed + 1)
            runner.run([theirs, ours])
        assert list(runner.failed) == ([] if completes else [theirs])


@pytest.mark.parametrize("looks_first", [True, False], ids=["before-the-first-run", "after-a-failure"])
def test_without_an_engine_all_runs_in_containers_fail_with_one_error(
    cells: PaperCells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_first: bool
) -> None:
    """Where the engine goes while runs are made, one run is tried; those in virtual time are made all the same."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    cells.declared["asgd"] = dataclasses.replace(cells.declared["asgd"], runtime="docker")
    live = [CellRun("asgd", 0.01, seed) for seed in (1, 2, 3)]
    virtual, said = CellRun("adacomp", 0.01, 1), []
    runner = runner_in(cells, tmp_path, said.append)
    if looks_first:
        runner.run([*live, virtual])
    else:
        specs, plans = {run: cells.spec(run) for run in (*live, virtual)}, cells.plans([*live, virtual])
        runner._run_here({run: runner._job(run, spec, plans[run]) for run, spec in specs.items()}, specs)

    (problem,) = runner.problems
    assert problem.startswith("asgd, seed 1, and 2 other runs: no container engine answers: ")
    assert list(runner.failed) == live
    assert [line for line in said if line.startswith("failed: ")][-1].startswith(
        f"failed: {'3' if looks_first else '2'} runs in the docker runtime: no container engine answers: "
    )
    assert sum(line.startswith("[") and "asgd" in line for line in said) == (0 if looks_first else 1)
    assert [run.name for run in runs_of(tmp_path, "tiny-digits")] == ["tiny-digits/0001"]
    assert runner.index.completed(cells.plans([virtual])[virtual], "simulation")


def test_a_run_with_another_module_of_ones_own_does_not_count(cells: PaperCells, tmp_path: Path) -> None:
    """What the user's model was is not in the plan; where its module was found does not matter."""
    path, module = Path("scenarios/tiny/digits.yaml"), Path("nets_of_cells.py")
    path.write_text(path.read_text().replace("model: small", "model: nets_of_cells:tiny"))
    module.write_text(
        "import torch\n\n\ndef tiny():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))\n"
    )
    run = CellRun("asgd", 1.0, 1)
    plan = cells.plans([run])[run]
    elsewhere = tuple(
        msgspec.structs.replace(node, task=msgspec.structs.replace(node.task, python_path=("/elsewhere",)))
        for node in plan.nodes
    )
    for code, nodes in ((own_code([plan]), elsewhere), ({module.name: "another"}, plan.nodes)):
        folder = RunFolder.create(tmp_path / "runs", plan.scenario)
        folder.write_manifest(seed=1, runtime="simulation", command=[], trials=["asgd"], own_code=code)
        folder.trial("asgd").make(msgspec.structs.replace(plan, nodes=nodes))

    assert list(own_code([plan])) == [module.name]
    assert [found.run.name for found in RunIndex(tmp_path / "runs").find(plan)] == ["tiny-digits/0001"]


def test_a_run_whose_journal_is_gone_measures_nothing(cells: PaperCells, tmp_path: Path) -> None:
    """Though it completed: an accuracy that nobody can read was not missed."""
    folder, said = completed_run(cells, CellRun("adacomp", 0.5, 1), tmp_path), []

    def values(row: str) -> dict[int, float | None]:
        found, _ = evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), said.append)
        return next(each.values for rows in found.tables.values() for each in rows if each.row == row)

    assert (values("push"), values("perfect"), said) == ({1: 10.0}, {1: None}, [])
    folder.trial("adacomp").journal.unlink()
    assert (values("push"), values("perfect")) == ({}, {})
    assert "events.jsonl: missing, cut or" in said[0]


def test_a_measure_that_fails_is_named_with_its_row(cells: PaperCells, tmp_path: Path) -> None:
    """It is the mistake of whoever wrote the paper's file."""
    completed_run(cells, CellRun("adacomp", 0.5, 1), tmp_path)
    cells = with_push(cells, measure=lambda trials: trials["adacomp"].nothing)
    with pytest.raises(ScenarioError, match=r"row push, seed 1: its measure failed: AttributeError.*nothing"):
        evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), print)


@pytest.mark.parametrize(("over_updates", "finding"), [("grows", "so far outside"), ("steady", "differs")])
def test_too_little_of_what_grows_contradicts_nothing_in_a_smaller_run(
    cells: PaperCells, tmp_path: Path, over_updates: OverUpdates, finding: str
) -> None:
    """Bytes until the best accuracy are the more, the longer a run is; those of a push are not."""
    completed_run(cells, CellRun("adacomp", 0.5, 1), tmp_path)
    cells = with_push(cells, claim=AtLeast(value=1e12), with_updates=over_updates, exact=True)
    found, _ = evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), print)
    (push,) = [row for rows in found.tables.values() for row in rows if row.row == "push"]
    assert push.finding == finding


@pytest.mark.parametrize(("over_updates", "finding"), [("changes", "reproduced"), ("turns", "so far inside")])
def test_what_may_turn_is_not_bounded_by_how_it_changed(
    cells: PaperCells, tmp_path: Path, over_updates: OverUpdates, finding: str
) -> None:
    """Though it has changed little in the last doubling, and the accuracies have levelled off."""
    for seed in (1, 2):
        completed_run(cells, CellRun("adacomp", 0.5, seed), tmp_path, [0.9 - 0.8 * 0.5**k for k in range(33)])
    cells = with_push(
        cells, measure=accuracy("adacomp"), claim=Near(value=90.0, tolerance=1.0), with_updates=over_updates
    )
    found, _ = evaluate(cells, tmp_path, ResultCache(cells, tmp_path / "kept"), (), Size(), print)
    (push,) = [row for rows in found.tables.values() for row in rows if row.row == "push"]
    assert push.finding == finding
