"""An index of runs that have already measured a cell: found by their plans, never by their names or who began them.

A trial counts where its plan is the plan wanted, whatever code of edgebed made it: all that chance or a user decides is
in there, but for the user's own modules, which must be what they were. What the scenario asks and expects may
differ, since neither affects training. Searching is quick: manifests are read once, plans only of runs with the right
trial and seed, and journals not at all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.plan import Plan, ProgramsPlan, TrainingPlan
from edgebed.core.planned.plan_file import dump_plan, load_plan
from edgebed.core.reading import read_json
from edgebed.core.runtimes import Runtime, is_virtual
from edgebed.journal.run_folder import RunFolder, TrialFolder, runs_of
from edgebed.journal.series_divergence import RAN_TO_END
from edgebed.running.run import own_code, program_files

State = Literal["completed", "in progress", "broken off"]
STATES: tuple[State, ...] = ("completed", "in progress", "broken off")
"""States of a trial, the most useful first."""
SIMULATION: Runtime = "simulation"


class FoundTrial(NamedTuple):
    """A trial with the wanted plan."""

    run: RunFolder
    trial: TrialFolder
    state: State


class _Facts(NamedTuple):
    """The constant facts in a manifest."""

    runtime: str
    seed: int
    trials: tuple[str, ...]


class _Accounting(msgspec.Struct, frozen=True):
    """The part of a trial's accounting that is read here."""

    closes: bool


class _Outcome(msgspec.Struct, frozen=True):
    """The part of a trial's summary that is read here."""

    trial: str
    outcome: str
    accounting: _Accounting | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the trial ran to its end and its accounting closes, as in the summary."""
        return self.outcome in RAN_TO_END and (self.accounting is None or self.accounting.closes)


class _Outcomes(msgspec.Struct, frozen=True):
    """The part of a run's summary that is read here."""

    trials: tuple[_Outcome, ...] = ()
    programs: tuple[_Outcome, ...] = ()


class RunIndex:
    """Finds trials among the runs in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._facts: dict[Path, _Facts] = {}

    def knows(self, scenario: str, trial: str, seed: int, runtime: Runtime = SIMULATION) -> bool:
        """Whether there is a run that may be of use, so that a plan is worth making."""
        return next(self._candidates(scenario, trial, seed, runtime), None) is not None

    def find(self, plan: Plan, runtime: Runtime = SIMULATION) -> Iterator[FoundTrial]:
        """Trials with this plan, the newest first."""
        for run in self._candidates(plan.scenario, plan.trial, plan.seed, runtime):
            if is_planned(run, plan):
                yield FoundTrial(run, run.trial(plan.trial), state_of(run, plan.trial))

    def completed(self, plan: Plan, runtime: Runtime = SIMULATION) -> FoundTrial | None:
        """The newest trial with this plan that ran to its end, whether it diverged or not."""
        return next((found for found in self.find(plan, runtime) if found.state == "completed"), None)

    def _candidates(self, scenario: str, trial: str, seed: int, runtime: Runtime) -> Iterator[RunFolder]:
        for run in reversed(runs_of(self.root, scenario)):
            facts = self._facts_of(run)
            if facts and facts.runtime == runtime and facts.seed == seed and trial in facts.trials:
                yield run

    def _facts_of(self, run: RunFolder) -> _Facts | None:
        if run.path not in self._facts:
            manifest = run.read_manifest()
            if not manifest:
                return None
            self._facts[run.path] = _Facts(
                runtime=str(manifest.get("runtime")),
                seed=int(manifest.get("seed", -1)),
                trials=tuple(manifest.get("trials", ())),
            )
        return self._facts[run.path]


def state_of(run: RunFolder, trial: str) -> State:
    """The state of a trial, by the summary of its run; one whose accounting does not close counts as broken off."""
    try:
        outcomes = read_json(run.summary, _Outcomes, "a summary")
    except EdgebedError:
        return "in progress" if run.is_running() else "broken off"
    done = any(each.trial == trial and each.is_sound for each in outcomes.trials + outcomes.programs)
    return "completed" if done else "broken off"


def is_planned(run: RunFolder, plan: Plan) -> bool:
    """Whether a run's trial has the wanted plan.

    It has not where the run was resumed after faults: nodes that had died were there again.
    """
    try:
        stored = run.trial(plan.trial).read_any_plan()
    except EdgebedError:  # no plan was written, or one of another form
        return False
    manifest = run.read_manifest()
    if plan.faults and manifest.get("resumed"):
        return False
    wanted = load_plan(msgspec.json.decode(dump_plan(plan)))  # as if read from a file
    is_live = not is_virtual(str(manifest.get("runtime")))
    if _essence(stored, is_live=is_live) != _essence(wanted, is_live=is_live):
        return False
    was, now = manifest.get("own_code", {}), {}
    if isinstance(plan, TrainingPlan):
        now = own_code([plan])
    elif isinstance(plan, ProgramsPlan):
        now = program_files([plan], run.path.parent.parent.resolve())
    return all(now.get(path, digest) == digest for path, digest in was.items())


def _essence(plan: TrainingPlan | ProgramsPlan, *, is_live: bool) -> Plan:
    """The plan without what is only shown or expected, and without the folders in which modules were found.

    Of a live run also without what holds in virtual time alone: what exchanges and restarts take. What is expected of
    programs is judged with their plan.
    """
    if isinstance(plan, ProgramsPlan):
        return msgspec.structs.replace(plan, question="")
    of_task: dict[str, Any] = {"python_path": ()}
    of_node: dict[str, Any] = {}
    if is_live:
        of_task["exchange_time_s"] = of_node["restart_s"] = 0.0
    nodes = tuple(
        msgspec.structs.replace(node, task=msgspec.structs.replace(node.task, **of_task), **of_node)
        for node in plan.nodes
    )
    return msgspec.structs.replace(
        plan, nodes=nodes, question="", expectations=(), expects_trusted=False, is_profiled=False, sweep_level=None,
    )  # fmt: skip
