"""What becomes of jobs on an executor, whichever it is: workers that die, executors that break down, an early end."""

import dataclasses
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from command_line import command_line
from finished_runs import RISING, SCENARIO, completed_run, finished_run
from tiny_paper import tiny_paper, write_paper

from edgebed.cli.options import spreading
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.package import fingerprint
from edgebed.running.run import without_report
from edgebed.studies.agreement import run_agreement
from edgebed.studies.cells import dask_workers
from edgebed.studies.cells.cells import CellRun, PaperCells
from edgebed.studies.cells.job_host import Setting, run_in_process
from edgebed.studies.cells.job_process import Answer, Question, _answer
from edgebed.studies.cells.jobs import Job, JobResult, JobRunner
from edgebed.studies.cells.parallel import by_time, executing, spread
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.running_cells import CellRunner


class Workers(Executor):
    """An executor that answers at once, by a function of the job; what it raises is what the worker came to."""

    def __init__(self, work: Callable[[Job], JobResult]) -> None:
        self.work = work
        self.jobs: list[Job] = []
        self.marks: set[Path] = set()

    def submit(self, function, question, setting):
        """A future that has its answer, or none that ever gets one where the work returns None."""
        assert function is run_in_process
        job = msgspec.json.decode(question, type=Question).job
        self.jobs.append(job)
        self.marks.add(Path(setting.mark))
        assert Path(setting.mark).exists()
        future = Future()
        try:
            result = self.work(job)
        except ChildProcessError as error:
            future.set_exception(error)
        else:
            if result:
                future.set_result(msgspec.json.encode(Answer(result=result, told=(f"{job.name} was there",))))
        return future


def job(name: str, root: Path, **settings) -> Job:
    """A job that nobody runs."""
    defaults = {"scenario": "x.yaml", "runtime": "simulation", "set": (), "processes": None, "runs_dir": str(root)}
    return Job(name=name, **defaults | settings)


def dying(times: int) -> Callable[[Job], JobResult]:
    """What the workers do whose job `b` makes them die so often."""
    left = [times]

    def work(job: Job) -> JobResult:
        if job.name == "b" and left[0]:
            left[0] -= 1
            raise ChildProcessError("it was killed")
        return JobResult(run=job.name)

    return work


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_study_at_any_moment(number: signal.Signals) -> None:
    """While runs are planned and evaluated, too."""
    with pytest.raises(KeyboardInterrupt), spreading(1, None):
        signal.raise_signal(number)


@pytest.mark.parametrize(("deaths", "failure"), [(0, ""), (1, ""), (2, "it was killed; it was tried 2 times")])
def test_a_worker_that_dies_costs_its_job_alone(tmp_path: Path, deaths: int, failure: str) -> None:
    """The job is run once more, then it has failed; the others have their results."""
    said: list[str] = []
    workers = Workers(dying(deaths))
    jobs = {name: job(name, tmp_path / "runs") for name in "abc"}
    found = dict(spread(workers, jobs, without_report, said.append))

    assert {name: result.failure for name, result in found.items()} == {"a": "", "b": failure, "c": ""}
    assert len(workers.jobs) == 3 + min(deaths, 1)
    assert said.count("b: it was killed; it is run once more") == min(deaths, 1)
    assert "a was there" in said
    assert [each.processes for each in workers.jobs] == [1] * len(workers.jobs)
    assert not any(mark.exists() for mark in workers.marks)
    assert {mark.parent for mark in workers.marks} == {tmp_path / "runs"}


def test_an_executor_that_has_broken_down_fails_what_is_left(tmp_path: Path) -> None:
    """And nothing waits for it."""
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    found = dict(spread(threads, {"a": job("a", tmp_path)}, without_report, lambda _: None))

    assert found["a"].failure == "cannot schedule new futures after shutdown; it was tried 2 times"


def test_what_has_not_begun_when_a_study_ends_never_does(tmp_path: Path) -> None:
    """The mark is gone before anybody waits, so that what has begun can come to its end."""
    futures: list[Future[bytes]] = []
    workers = Workers(lambda job: JobResult() if job.name == "a" else None)
    submit = workers.submit
    workers.submit = lambda *arguments: futures.append(submit(*arguments)) or futures[-1]
    results = spread(workers, {name: job(name, tmp_path) for name in "abc"}, without_report, lambda _: None)
    assert next(results)[0] == "a"
    results.close()

    assert [future.cancelled() for future in futures] == [False, True, True]
    assert not any(mark.exists() for mark in workers.marks)


def test_a_machine_with_other_folders_is_told_so(tmp_path: Path) -> None:
    """Nothing is run there."""
    setting = Setting(mark=str(tmp_path / "runs/.study-1"), folder=str(tmp_path), python_path=(), environment={})
    with pytest.raises(InfrastructureError, match=f"does not see {tmp_path}/runs as it is where the study was begun"):
        run_in_process(b"", setting)


def test_a_machine_with_other_code_is_told_so(tmp_path: Path) -> None:
    """Its results would be another edgebed's."""
    question = Question(job=job("a", tmp_path), report="x:y", code="c0de", words=[])
    answer = _answer(question, fingerprint(), {})

    assert answer.result is not None
    assert "has other code of edgebed; install the same there" in answer.result.failure


def test_runs_in_real_time_are_alone(tmp_path: Path) -> None:
    """On one machine they would take each other's processor; that is said."""
    said: list[str] = []
    jobs = {name: job(name, tmp_path, runtime=name) for name in ("process", "simulation", "docker")}
    virtual, live = by_time(jobs, said.append)

    assert (list(virtual), list(live)) == (["simulation"], ["process", "docker"])
    assert said[1] == (
        "2 runs in real time: one after the other on this machine, at the end, since whatever runs beside one "
        "falsifies its conditions"
    )


def test_cells_in_real_time_go_to_no_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are run here, when those that went to it are done."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    paper = tiny_paper()
    live = dataclasses.replace(paper.cells["asgd"], runtime="process")
    cells = PaperCells(dataclasses.replace(paper, cells={"live": live, "asgd": paper.cells["asgd"]}))
    begun: list[str] = []
    workers = Workers(lambda job: begun.append(f"{job.name}: away") or JobResult())
    monkeypatch.setattr(JobRunner, "run", lambda _, job: begun.append(f"{job.name}: here") or JobResult())
    runner = CellRunner(
        cells=cells,
        root=tmp_path / "runs",
        report=without_report,
        cache=ResultCache(cells, tmp_path / "kept"),
        resume=False,
        processes=4,
        progress=None,
        tell=lambda _: None,
        executor=workers,
    )
    runner.run([CellRun("live", 1.0, 1), CellRun("asgd", 1.0, 1), CellRun("asgd", 1.0, 2)])
    assert begun == ["asgd, seed 1: away", "asgd, seed 2: away", "live, seed 1: here"]
    assert [job.processes for job in workers.jobs] == [4, 4]


def test_what_has_completed_before_an_interruption_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line is written, and the run is not made again where only that line is."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    cells, kept, first = PaperCells(tiny_paper()), tmp_path / "kept.jsonl", CellRun("asgd", 1.0, 1)

    def run(_: JobRunner, job: Job) -> JobResult:
        if "seed 2" in job.name:
            raise KeyboardInterrupt
        completed_run(cells, first, tmp_path / "runs")
        return JobResult()

    monkeypatch.setattr(JobRunner, "run", run)
    runner = CellRunner(
        cells=cells,
        root=tmp_path / "runs",
        report=without_report,
        cache=ResultCache(cells, kept),
        resume=True,
        processes=1,
        progress=None,
        tell=lambda _: None,
    )
    with pytest.raises(KeyboardInterrupt):
        runner.run([first, CellRun("asgd", 1.0, 2)])
    assert ResultCache(cells, kept).find(first)


def test_an_agreement_has_its_simulations_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others one after the other, here, when these are done; the runs are in the order of runtimes and seeds."""

    def made(job: Job) -> Path:
        (seed,) = (int(each.removeprefix("seed=")) for each in job.set)
        return finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=seed, runtime=job.runtime)

    workers = Workers(lambda job: JobResult(run=str(made(job).path)))
    begun: list[str] = []
    monkeypatch.setattr(run_agreement, "begin", lambda job, *_: begun.append(job.name) or made(job))
    runs = run_agreement.run_all(
        without_report, SCENARIO, runtimes=("process", "simulation"), seeds=3, runs_dir=tmp_path, executor=workers
    )
    assert [job.name for job in workers.jobs] == [f"simulation, seed {seed}" for seed in (1, 2, 3)]
    assert begun == [f"process, seed {seed}" for seed in (1, 2, 3)]
    assert [(run.manifest["runtime"], run.manifest["seed"]) for run in runs] == [
        (runtime, seed) for runtime in ("process", "simulation") for seed in (1, 2, 3)
    ]


def test_an_agreement_ends_with_the_first_run_that_fails(tmp_path: Path) -> None:
    """With what went wrong, and of what kind it is."""
    for code, kind in ((2, ScenarioError), (3, InfrastructureError)):
        workers = Workers(lambda _, code=code: JobResult(failure="nothing goes", exit_code=code))
        with pytest.raises(kind, match="simulation, seed 1: nothing goes"):
            run_agreement.run_all(without_report, SCENARIO, seeds=3, runs_dir=tmp_path, executor=workers)


def test_how_many_at_a_time_is_said_once() -> None:
    """By a number or by the executor; one at a time needs none."""
    with executing() as one_by_one, executing(3) as threads:
        assert one_by_one is None
        assert isinstance(threads, ThreadPoolExecutor)
        with executing(1, threads) as given:
            assert given is threads
        with pytest.raises(ScenarioError, match=r"jobs=2: .*give one of the two"), executing(2, threads):
            pass
    with pytest.raises(ScenarioError, match="jobs: 0 is below 1"), executing(0):
        pass


@pytest.mark.parametrize("words", [("--jobs", "0"), ("--jobs", "2", "--dask", "tcp://127.0.0.1:1")])
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    code, _, err = command_line(monkeypatch, capsys)("reproduce", "hardy2017", "--runs-dir", tmp_path, *words)

    assert code == 2
    assert "--jobs" in err
    assert list(tmp_path.iterdir()) == []


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setattr(dask_workers.importlib.util, "find_spec", lambda _: None)
    with (
        pytest.raises(ScenarioError, match=r"pip install 'edgebed\[dask\]' installs it"),
        dask_workers.dask_executor("tcp://127.0.0.1:1", print),
    ):
        pass


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With how one is started."""
    pytest.importorskip("distributed", reason="no distributed: pip install 'edgebed[dask]'")
    monkeypatch.setattr(dask_workers, "CONNECT_S", 0.2)
    with (
        pytest.raises(InfrastructureError, match=r"--dask tcp://127\.0\.0\.1:1: no scheduler answers there"),
        dask_workers.dask_executor("tcp://127.0.0.1:1", print),
    ):
        pass
