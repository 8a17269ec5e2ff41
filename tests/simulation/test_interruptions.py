"""Ctrl-C in virtual time: local work of minutes is not waited for, and the run can be resumed."""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from finished_runs import RISING, finished_run
from quick_runs import run as run_quickly

import edgebed
from edgebed.core.plan import TrainingPlan
from edgebed.journal.overview import chosen_by, overview_of
from edgebed.journal.run_folder import RunFolder
from edgebed.journal.summary import TrialSummary
from edgebed.journal.trial_state import TrialStatus
from edgebed.learning.network import Network
from edgebed.running.results import Run
from edgebed.running.run import without_report, write_results
from edgebed.runtimes.simulation import simulation

STEPS = 50
SCENARIO = {
    "name": "long",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "1 updates"},
    "stop": {"updates": 6},
    "method": {"preset": "fedavg", "local_work": {"name": "local-steps", "steps": STEPS}},
}
Gradients = Callable[[int, Callable[[], None]], list[int]]


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> Gradients:
    """Has something happen in the n-th gradient of a run; gives a list that counts them."""

    def install(at: int, happen: Callable[[], None]) -> list[int]:
        plain, calls = Network.gradient, list[int]()

        def gradient(*given: object) -> object:
            calls.append(len(calls) + 1)
            if calls[-1] == at:
                happen()
            return plain(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(Network, "gradient", gradient)
        return calls

    return install


def pressed() -> None:
    """Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def unheard() -> None:
    """Ctrl-C in code that hears of nothing."""
    with contextlib.suppress(BaseException):  # as somebody's may be
        pressed()


@pytest.mark.parametrize("at", [1, STEPS // 2, 3 * STEPS + 7])
def test_local_work_is_not_waited_for(
    gradients: Gradients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: int
) -> None:
    """The gradient in which it comes is the last; what was applied counts, and the trial goes on from there."""
    calls = gradients(at, pressed)
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)
    monkeypatch.undo()

    assert len(calls) == at
    assert (run.exit_code, run.trials["fedavg"].summary.outcome) == (130, "interrupted")
    assert run.trials["fedavg"].summary.updates == 3 * (at > 3 * STEPS)
    again = edgebed.resume("long", runs_dir=tmp_path, processes=1)
    assert (again.exit_code, again.trials["fedavg"].summary.updates) == (0, 6)


def test_whoever_asks_twice_waits_for_no_code_at_all(
    gradients: Gradients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the first did nothing for a while; what there is can be read, and resumed."""
    monkeypatch.setattr(simulation, "PATIENCE_S", 0.0)

    def twice() -> None:
        unheard()
        pressed()

    calls = gradients(7, twice)
    with pytest.raises(KeyboardInterrupt):
        run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)
    run = edgebed.load("long", runs_dir=tmp_path)

    assert len(calls) == 7
    assert run.folder.summary.exists()
    assert (run.exit_code, run.summary.result) == (130, "interrupted")
    assert run.can_be_resumed


class Pressing:
    """Somebody who presses Ctrl-C as one of the trials begins, or is over."""

    def __init__(self, when: str, trial: str) -> None:
        self.when, self.trial = when, trial

    def trial_started(self, plan: TrainingPlan) -> None:
        """A trial begins."""
        self._at("begins", plan.trial)

    def update(self, status: TrialStatus) -> None:
        """It goes on."""

    def trial_ended(self, summary: TrialSummary) -> None:
        """It is over."""
        self._at("is over", summary.trial)

    def _at(self, when: str, trial: str) -> None:
        if (when, trial) == (self.when, self.trial):
            pressed()


@pytest.mark.parametrize(
    ("when", "trial", "outcomes"),
    [
        ("begins", "one", {"one": "interrupted"}),
        ("is over", "one", {"one": "completed", "two": "interrupted"}),
        ("begins", "two", {"one": "completed", "two": "interrupted"}),
    ],
)
def test_an_interruption_while_nothing_trains_is_said_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], when: str, trial: str, outcomes: dict[str, str]
) -> None:
    """Nobody could end that in order; lists find the run by it, and it can be resumed."""
    asgd = {"name": "long", "method": "asgd", "variants": {"one": {}, "two": {}}}
    with pytest.raises(KeyboardInterrupt):
        run_quickly(SCENARIO | asgd, runtime="simulation", runs_dir=tmp_path, progress=Pressing(when, trial))
    run = edgebed.load("long", runs_dir=tmp_path)

    assert {name: each.summary.outcome for name, each in run.trials.items()} == outcomes
    assert run.trials[[*outcomes][-1]].summary.reason == "the user ended the run"
    assert (run.exit_code, run.summary.result) == (130, "interrupted")
    assert chosen_by([overview_of(run.folder)], [], ["interrupted"])
    assert capsys.readouterr().err == "to resume: edgebed resume long/0001\n"
    again = edgebed.resume("long", runs_dir=tmp_path, processes=1)
    assert (again.exit_code, [each.summary.updates for each in again.trials.values()]) == (0, [6, 6])


def test_two_signals_at_once_are_one(gradients: Gradients, tmp_path: Path) -> None:
    """A terminal and what stands between it and the run may both send it."""

    def both() -> None:
        unheard()
        signal.raise_signal(signal.SIGTERM)

    gradients(7, both)
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)

    assert run.trials["fedavg"].summary.outcome == "interrupted"


def test_the_report_of_an_interrupted_run_is_left_out_by_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said before; a complete run's is finished first."""
    written: list[str] = []

    def report(run: Run) -> None:
        pressed()
        written.append(run.folder.name)

    for outcome in ("interrupted", "completed"):
        folder = finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, outcome=outcome).folder
        with pytest.raises(KeyboardInterrupt):
            write_results(folder, report)
        assert folder.summary.exists()

    assert written == ["pair/0002"]
    assert capsys.readouterr().err == (
        "writing the report of what there is; Ctrl-C again leaves it to edgebed report pair/0001\n"
    )
    write_results(RunFolder.find(tmp_path, "pair/1"), without_report)
    assert capsys.readouterr().err == ""
