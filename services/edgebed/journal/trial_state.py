"""The state of a trial, computed from its journal's records alone: what `edgebed run` and `edgebed watch` show.

    plan, (t, node, record) ... --> TrialState --> TrialStatus

Pure: times are handed in. What only the controller knows, e.g. that a node missed a single heartbeat, is added by
runtimes/watch.py.
"""

from collections import Counter

import msgspec

from edgebed.core import records
from edgebed.core.measures.task import TEST, TaskMeasure
from edgebed.core.plan import NodePlan, ProgramsPlan, TrainingPlan
from edgebed.core.runtimes import is_virtual
from edgebed.journal.folds import Counters, Fold, Timeline, on
from edgebed.journal.troubles import Trouble, Troubles
from edgebed.roles.control.controller import Phase, ResumedTrial
from edgebed.roles.control.members import PRESENT

RATE_WINDOW_S = 3.0
READY = ("ready", "running")
"""States of a node that has come up."""


class ClassStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the nodes of a device class."""

    name: str
    states: dict[str, int]
    """Number of nodes in each state."""
    rate_per_s: float = 0.0
    """Updates a second of all its workers; of shards, the mean of their steps a second."""
    share: float | None = None
    """Share of all updates, from 0 to 1; None for shards, and before the first update."""
    cpus_used: float | None = None
    """Cores that a node used of late, on average; None: not reported."""
    cpus_held: float | None = None
    """CPU cap of a node in cores, on average; None where one has none."""

    @property
    def nodes(self) -> int:
        """Number of nodes in the class."""
        return sum(self.states.values())

    @property
    def nodes_up(self) -> int:
        """Number of nodes that are there and answer."""
        return sum(count for state, count in self.states.items() if is_up(state))


class TrialStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a trial."""

    trial: str
    state: str
    """What the trial is doing, e.g. starting, training, stopping."""
    trains: bool = True
    """Whether it trains by a method; else its nodes run programs, and what they measured last is in `measured`."""
    updates: int = 0
    updates_per_s: float | None = None
    """Updates a second, of the last few by the clock, also where time is virtual; None before there are two looks."""
    measured: dict[str, float] = {}
    """What was measured last, on the part `selects_by`; empty before the first evaluation."""
    selects_by: str = TEST
    """Part of the data that versions are chosen by."""
    headline: TaskMeasure | None = None
    """The measure of these that results are told by; None: no trial has begun."""
    ingress_bytes: int | None = 0
    """Payload of the pushes received; None: nothing is pushed."""
    nodes_up: int = 0
    nodes_expected: int = 0
    elapsed_s: float = 0.0
    """Seconds of training; while nodes are started, since they were launched."""
    nodes_ready: int = 0
    """Number of nodes that are ready to train, or have been."""
    stop_updates: int | None = None
    stop_time_s: float | None = None
    is_virtual: bool = False
    """Whether time is virtual: `elapsed_s` is, rates are not."""
    interrupted: bool = False
    awaited: str = ""
    """What a trial that is interrupted waits for; empty: nothing that takes long."""
    health: dict[str, str] = {}
    """Health of each node: coming, good, late (it missed a heartbeat), failed (two, or it is gone) or over."""
    classes: tuple[ClassStatus, ...] = ()
    """The workers' device classes, in the plan's order."""
    hosts: dict[str, float] = {}
    """Share of its cores' time that each of several hosts was busy of late; empty where there is one alone."""
    troubles: tuple[Trouble, ...] = ()
    """What went wrong with nodes so far; of many the first."""
    latest: tuple[Trouble, ...] = ()
    """What went wrong with nodes last."""

    @property
    def standing(self) -> str:
        """Its state in words, for people."""
        return f"interrupted, {self.awaited or 'stopping'}" if self.interrupted else self.state


def is_up(state: str) -> bool:
    """Whether a node in that state is there and answers."""
    return state in PRESENT and state != "unresponsive"


class TrialState(Fold):
    """Follows the records of a trial, also one that broke off and was resumed."""

    def __init__(self, plan: TrainingPlan | ProgramsPlan, past: ResumedTrial | None = None) -> None:
        """`past`: what there was before the first record that will be followed."""
        self.timeline = Timeline(past.began_s if past else None)
        self.counters = Counters(self.timeline)
        self.troubles = Troubles(self.timeline)
        super().__init__(self.counters, self.troubles)
        self.plan = plan
        self.training = plan if isinstance(plan, TrainingPlan) else None
        """The plan; None: the nodes run programs of the user's."""
        self.phase = Phase.LAUNCHED
        self.ended: records.Ended | None = None
        self.updates = 0
        self.ingress_bytes = past.update_bytes if past else 0
        self.measured = past.measured if past else {}
        self.states = {node.node: "expected" for node in plan.nodes}
        workers = plan.nodes if isinstance(plan, ProgramsPlan) else plan.workers()
        self._is_virtual = False
        self._pushes = self.training is not None and self.training.pushes
        self._work: Counter[str] = Counter()
        """Updates applied, or steps made by all its shards, for each device class."""
        self._class_of = {worker.node: worker.device_class for worker in workers}
        self._classes: dict[str, list[NodePlan]] = {}
        for worker in workers:
            self._classes.setdefault(worker.device_class, []).append(worker)
        self._hosts: dict[str, float] = {}
        self._looks: list[tuple[float, int, dict[str, int]]] = []
        """Clock, updates and work by class at the looks of the last few seconds."""

    def status(self, now: float, clock_s: float) -> TrialStatus:
        """The trial's state at `now`, a time of the trial's; `clock_s` is a clock from which rates are computed."""
        self.troubles.tell_gathered(float("inf") if self.ended else self.timeline.elapsed_s(now))
        span_s, updates, work = self._since(clock_s)
        return TrialStatus(
            trial=self.plan.trial,
            state=self.phase.value if self.training else self.phase.value.replace("training", "running"),
            trains=self.training is not None,
            updates=self.updates,
            updates_per_s=max(0, updates) / span_s if span_s > 0.0 else None,
            measured=self.measured,
            selects_by=self.training.evaluator.selects_by if self.training else "",
            headline=self.training.headline if self.training else None,
            ingress_bytes=self.ingress_bytes if self._pushes else None,
            nodes_up=sum(map(is_up, self.states.values())),
            nodes_expected=len(self.states),
            nodes_ready=sum(state in READY for state in self.states.values()),
            elapsed_s=self._elapsed_s(now),
            stop_updates=self.training.stop_updates if self.training else None,
            stop_time_s=self.plan.stop_time_s,
            is_virtual=self._is_virtual,
            classes=tuple(self._class_status(name, span_s, work.get(name, 0)) for name in self._classes),
            hosts=dict(sorted(self._hosts.items())),
            troubles=tuple(self.troubles.told),
            latest=tuple(self.troubles.latest),
        )

    def _elapsed_s(self, now: float) -> float:
        """Seconds of training; while nodes are started, since they were launched."""
        is_starting = self.phase is Phase.LAUNCHED
        return max(0.0, now - self.timeline.launched_s) if is_starting else self.timeline.elapsed_s(now)

    def _since(self, clock_s: float) -> tuple[float, int, dict[str, int]]:
        """Length of the last few seconds, and what was done in them: updates, work of each class."""
        if self.phase is Phase.LAUNCHED:
            self._looks = []
            return 0.0, 0, {}
        self._looks = [look for look in self._looks if look[0] >= clock_s - RATE_WINDOW_S]
        self._looks.append((clock_s, self.updates, dict(self._work)))
        first_s, updates, work = self._looks[0]
        done = {name: count - work.get(name, 0) for name, count in self._work.items()}
        return clock_s - first_s, self.updates - updates, done

    def _class_status(self, name: str, span_s: float, done: int) -> ClassStatus:
        nodes = self._classes[name]
        total = self._work.total() if self._pushes else 0
        caps = [self._cap(node) for node in nodes]
        used = [cpus for node in nodes if (cpus := self._cpus_used(node.node)) is not None]
        known = [cap for cap in caps if cap is not None]
        return ClassStatus(
            name=name,
            states=dict(Counter(self.states[node.node] for node in nodes)),
            rate_per_s=done / span_s / (1 if self._pushes else len(nodes)) if span_s > 0.0 else 0.0,
            share=self._work[name] / total if total else None,
            cpus_used=sum(used) / len(used) if used else None,
            cpus_held=sum(known) / len(known) if len(known) == len(nodes) else None,
        )

    def _cap(self, node: NodePlan) -> float | None:
        usage = self.counters.reports(records.Usage, node.node)
        held = usage.lives[-1].cpus_held if usage else None
        return node.cpus if held is None else held

    def _cpus_used(self, node: str) -> float | None:
        """Cores that a node used between its last two reports; for a first report since training began."""
        usage = self.counters.reports(records.Usage, node)
        if usage is None:
            return None
        last, before = usage.lives[-1], usage.before or records.Usage(time_s=0.0, cpu_s=0.0)
        time_s = last.time_s - before.time_s
        return (last.cpu_s - before.cpu_s) / time_s if time_s > 0.0 else None

    # --- records ------------------------------------------------------------------------------------------------

    @on(records.Continued)
    def _continued(self, _: float, __: str, ___: records.Continued) -> None:
        self.ended, self.phase = None, Phase.LAUNCHED

    @on(records.Trial)
    def _trial(self, t: float, _: str, record: records.Trial) -> None:
        self.phase = Phase.RUNNING
        self.last_t = t  # updates made without a controller may have later times than the one that resumes
        self._is_virtual = is_virtual(record.runtime)

    @on(records.HostLoad)
    def _host(self, _: float, __: str, record: records.HostLoad) -> None:
        if record.host:
            self._hosts[record.host] = record.busy

    @on(records.Update)
    def _update(self, _: float, __: str, record: records.Update) -> None:
        self.updates = record.version
        self.ingress_bytes += record.bytes
        if record.worker in self._class_of:
            self._work[self._class_of[record.worker]] += 1

    @on(records.Step)
    def _step(self, _: float, node: str, record: records.Step) -> None:
        self.updates = record.made or self.updates
        if node in self._class_of:
            self._work[self._class_of[node]] += record.every

    @on(records.Resumed)
    def _resumed(self, _: float, __: str, record: records.Resumed) -> None:
        self.updates = record.step

    @on(records.Restored)
    def _restored(self, _: float, __: str, record: records.Restored) -> None:
        self.updates = record.version
        self.phase = Phase.RUNNING if self.phase is Phase.FINISHING else self.phase

    @on(records.Evaluated)
    def _evaluated(self, _: float, __: str, record: records.Evaluated) -> None:
        self.measured = record.selecting
        self.phase = Phase.ENDING if record.final else self.phase

    @on(records.Measured)
    def _measured(self, _: float, __: str, record: records.Measured) -> None:
        self.measured = self.measured | record.measured

    @on(records.Node)
    def _node(self, _: float, __: str, record: records.Node) -> None:
        if record.name in self.states:
            self.states[record.name] = record.state
        if record.state == "stopped" and self.training and self.phase is not Phase.OVER:
            self.phase = Phase.ENDING

    @on(records.Finished)
    def _finished(self, _: float, __: str, ___: records.Finished) -> None:
        self.phase = Phase.FINISHING

    @on(records.Ended)
    def _ended(self, _: float, __: str, record: records.Ended) -> None:
        self.ended, self.phase = record, Phase.OVER
