"""Which run has already measured a cell: found by what was planned, never by what it is called or who began it.

A trial counts where its plan is the plan wanted, whatever code of edgebed made it: all that chance or a user decides is
in there, but for the modules of a user's own, which must be what they were. What the scenario asks and expects may
differ, since neither changes what is done. Looking is quick: manifests are read once, plans only of runs with the right
trial and seed, and journals not at all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from edgebed.errors import EdgebedError
from edgebed.observe.reading import read_json
from edgebed.observe.run_folder import RunFolder, TrialFolder, runs_of
from edgebed.observe.series_divergence import RAN_TO_END
from edgebed.running import own_code
from edgebed.runtimes import Runtime
from edgebed.scenario.plan import Plan

State = Literal["completed", "in progress", "broken off"]
STATES: tuple[State, ...] = ("completed", "in progress", "broken off")
"""The most useful first."""
SIMULATION: Runtime = "simulation"


class Found(NamedTuple):
    """A trial whose plan is the one wanted."""

    run: RunFolder
    trial: TrialFolder
    state: State


class _Facts(NamedTuple):
    """What a manifest says that never changes."""

    runtime: str
    seed: int
    trials: tuple[str, ...]


class _Books(msgspec.Struct, frozen=True):
    """What is of interest of a trial's accounting."""

    closes: bool


class _Outcome(msgspec.Struct, frozen=True):
    """What is of interest of a trial's summary."""

    trial: str
    outcome: str
    accounting: _Books | None = None

    @property
    def is_sound(self) -> bool:
        """As the summary has it."""
        return self.outcome in RAN_TO_END and (self.accounting is None or self.accounting.closes)


class _Outcomes(msgspec.Struct, frozen=True):
    """What is of interest of a run's summary."""

    trials: tuple[_Outcome, ...]


class Finder:
    """Looks for trials among the runs in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._facts: dict[Path, _Facts] = {}

    def knows(self, scenario: str, trial: str, seed: int, runtime: Runtime = SIMULATION) -> bool:
        """Whether there is a run that may be of use, so that a plan is worth making."""
        return next(self._candidates(scenario, trial, seed, runtime), None) is not None

    def find(self, plan: Plan, runtime: Runtime = SIMULATION) -> Iterator[Found]:
        """Trials with this plan, the newest first."""
        for run in self._candidates(plan.scenario, plan.trial, plan.seed, runtime):
            if is_planned(run, plan):
                yield Found(run, run.trial(plan.trial), state_of(run, plan.trial))

    def completed(self, plan: Plan, runtime: Runtime = SIMULATION) -> Found | None:
        """The newest trial with this plan that came to its end, whether it diverged or not."""
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
    """How a trial stands, by the summary of its run; one whose books do not close counts as if it had broken off."""
    try:
        outcomes = read_json(run.summary, _Outcomes, "a summary")
    except EdgebedError:
        return "in progress" if run.is_running() else "broken off"
    done = any(each.trial == trial and each.is_sound for each in outcomes.trials)
    return "completed" if done else "broken off"


def is_planned(run: RunFolder, plan: Plan) -> bool:
    """Whether a run's trial is the one wanted.

    It is not where it was gone on with after faults: nodes that had died were there again.
    """
    try:
        stored = run.trial(plan.trial).read_plan()
    except EdgebedError:  # it did not come to writing a plan, or another edgebed wrote it
        return False
    manifest = run.read_manifest()
    if plan.faults and manifest.get("resumed"):
        return False
    wanted = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)  # as one that is read
    if _essence(stored) != _essence(wanted):
        return False
    was, now = manifest.get("own_code", {}), own_code([plan])
    return all(now.get(path, digest) == digest for path, digest in was.items())


def _essence(plan: Plan) -> Plan:
    """The plan without what is only told or expected, and without the folders in which modules were found."""
    nodes = tuple(
        msgspec.structs.replace(node, task=msgspec.structs.replace(node.task, python_path=())) for node in plan.nodes
    )
    return msgspec.structs.replace(
        plan, nodes=nodes, question="", expectations=(), expects_trusted=False, is_profiled=False
    )
