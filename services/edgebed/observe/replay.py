"""What Prometheus would have read during a trial, made again from its journal.

Each record goes to the metrics of the node that said it and to the controller's, as it does while a trial goes on
(`metrics.py`); every few seconds of the trial's own time, virtual in a simulation, all of them are read. So dashboards
show a finished or a simulated run by the same queries as one that is going on.

    journal --> NodeMetrics of each life of each node, and of the controller --> Book (openmetrics.py)

A journal does not tell everything that a node counts: what clients send and receive is left out, and of the server's
ingress that is no applied push the kind is `other`. In a simulation an applied update stands for an iteration.
What a node counts goes on in its next life, where Prometheus would have seen another instance that begins at zero.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from edgebed.observe import metrics_table as table
from edgebed.observe.journal import Entry
from edgebed.observe.metrics import NodeMetrics, resource_families
from edgebed.observe.openmetrics import Book
from edgebed.roles import records
from edgebed.roles.controller import NAME as CONTROLLER
from edgebed.scenario.plan import Plan

STEP_S = 5.0
"""Between two readings, as Prometheus reads nodes."""
NODES_JOB, CONTROLLER_JOB = "edgebed-nodes", "edgebed-controller"
"""Names of dashboards/prometheus/prometheus.yml."""
UP = frozenset({"started", "joined", "ready", "running"})
"""States of a node in which it answers."""
LIVES = UP | {"unresponsive"}
"""States of a node that is there."""
UNTOLD = ("edgebed_client_", "edgebed_messages_received", "edgebed_ps_queue_length", "edgebed_shard_queue_length")
"""How metrics begin of which a journal tells nothing."""
TOLD_BY: dict[str, type[records.Record]] = {
    "edgebed_ps_acknowledgement_bytes": records.Traffic,
    "edgebed_ps_pull": records.Traffic,
    "edgebed_worker_phase_seconds": records.Phases,
    "edgebed_worker_step_duration_seconds": records.Phases,
    "edgebed_shard_steps": records.Step,
    "edgebed_shard_phase_seconds": records.ShardPhases,
    "edgebed_link_bytes": records.Usage,
    "edgebed_link_differs": records.Link,
    "edgebed_link_dropped_packets": records.Usage,
    "edgebed_transfer_": records.Transfers,
    "edgebed_starved_seconds": records.Usage,
}
"""How metrics begin that only one kind of record tells of: without one, zero would be a guess."""

COUNTERS = ("counter", "histogram")
"""Kinds of metrics whose samples only rise."""
Counted = dict[tuple[str, tuple[str, ...]], float]
"""Values of counters by the sample's name and its labels' values."""


class Told(NamedTuple):
    """What a trial's journal does not say of the trial."""

    run: str
    """`<scenario>/<number>`"""
    runtime: str
    start_s: float
    """When it was launched, in Unix time."""
    verdict: str | None = None
    """On its conditions."""
    steps_per_s: float | None = None
    """Of its slowest shard."""


def replay(plan: Plan, journal: Callable[[], Iterable[Entry]], told: Told, book: Book, step_s: float = STEP_S) -> float:
    """Read the metrics of a trial into `book` every `step_s` seconds, and at its end; when that was, in Unix time.

    The `journal` is read twice.
    """
    fleet = _Fleet(plan, told, rest_of(journal()))
    next_s = t = 0.0
    for t, node, record in journal():
        while t >= next_s:
            fleet.read(book, next_s)
            next_s += step_s
        fleet.observe(t, node, record, book)
    fleet.judge(t)
    fleet.read(book, t)
    return told.start_s + t


def rest_of(entries: Iterable[Entry]) -> Iterator[int]:
    """For each `Traffic` of the server, in order: bytes that had come by then in this life, and were no applied push.

    Pushes that wait for the end of a round have come as well, and are applied later. Since what is no push never
    becomes less, it was at most what is left over at any later time.
    """
    lives: list[list[int]] = [[]]
    pushed_bytes, state = 0, ""
    for _, node, record in entries:
        match record:
            case records.Node(name=table.SERVER):
                if _begins_life(state, record.state):
                    pushed_bytes = 0
                    lives.append([])
                state = record.state
            case records.Update():
                pushed_bytes += record.bytes
            case records.Traffic() if node == table.SERVER:
                lives[-1].append(max(0, record.ingress_payload - pushed_bytes))
    return (rest for life in lives for rest in reversed([*accumulate(reversed(life), min)]))


def _begins_life(before: str, state: str) -> bool:
    """Whether a node that goes from one state to another, or comes to be in it, is a new process."""
    return state == "started" or (state in UP and before not in LIVES)


class _Fleet:
    """The controller and the nodes that live now."""

    def __init__(self, plan: Plan, told: Told, rest: Iterator[int]) -> None:
        self.told = told
        self.rest = rest
        self.now_s = told.start_s
        self.plans = {node.node: node for node in plan.nodes}
        self.labels: dict[str, dict[str, str]] = {
            node.node: {
                "job": NODES_JOB, "instance": node.node, "node": node.node, "role": node.role,
                "device_class": node.device_class, "run": told.run, "trial": plan.trial,
            }
            for node in plan.nodes
        }  # fmt: skip
        self.lives: dict[str, _Life] = {}
        self.states: dict[str, str] = {}
        self.listed: dict[str, bool] = {}
        """Nodes that Prometheus asks, and whether they answer."""
        self.controller = NodeMetrics(CONTROLLER, resources=Recorded(), clock=lambda: self.now_s)
        self.controller.start_trial(plan, told.run, told.runtime, told.start_s)

    def observe(self, t: float, node: str, record: records.Record, book: Book) -> None:
        """Take in a line of the journal."""
        self.now_s = self.told.start_s + t
        self.controller.observe(record)
        life = self.lives.get(node)
        if life:
            life.observe(record)
        if isinstance(record, records.Traffic) and node == table.SERVER:
            rest_bytes = next(self.rest)
            if life:
                life.count_traffic(record, rest_bytes)
        elif isinstance(record, records.Node):
            self._changed(record, book)
        elif isinstance(record, records.Update) and (worker := self.lives.get(record.worker)):
            worker.iterated()

    def judge(self, t: float) -> None:
        """The trial is over."""
        self.now_s = self.told.start_s + t
        self.controller.judge_trial(verdict=self.told.verdict, steps_per_s=self.told.steps_per_s)

    def read(self, book: Book, t: float) -> None:
        """All that answers, at `t` seconds after the launch."""
        at_s = self.now_s = self.told.start_s + t
        book.add(at_s, self.controller.registry.collect(), {"job": CONTROLLER_JOB, "instance": CONTROLLER})
        for node, answers in self.listed.items():
            if answers:
                book.add(at_s, self.lives[node].collect(), self.labels[node])
            book.add(at_s, [GaugeMetricFamily("up", "Whether a node answered.", float(answers))], self.labels[node])

    def _changed(self, record: records.Node, book: Book) -> None:
        """A node begins a life, or answers no more: it is read for the last time, and gone if it ended in order."""
        name = record.name
        before, self.states[name] = self.states.get(name, ""), record.state
        if _begins_life(before, record.state):
            past = self.lives.get(name)
            self.lives[name] = _Life(self.plans[name].role, past.counted() if past else {})
        if record.state in UP:
            self.listed[name] = True
            return
        if self.listed.get(name):
            book.add(self.now_s, self.lives[name].collect(), self.labels[name])
        if record.state == "stopped":
            self.listed.pop(name, None)
        elif name in self.listed:
            self.listed[name] = False


class _Life:
    """The metrics of one life of a node, whose counters go on from those of the lives `before`."""

    def __init__(self, role: str, before: Counted) -> None:
        self.before = before
        self.resources = Recorded()
        self.metrics = NodeMetrics(role, CollectorRegistry(), resources=self.resources)
        self.told: set[type[records.Record]] = set()
        """Kinds of records so far."""

    def observe(self, record: records.Record) -> None:
        """What the node says."""
        self.metrics.observe(record)
        self.told.add(type(record))
        match record:
            case records.Update():
                self.metrics.count_bytes("ingress", "push", record.bytes)
            case records.Usage():
                self.resources.usage = record

    def iterated(self) -> None:
        """The server applied an update of this worker."""
        if records.Phases not in self.told:
            self.metrics.iterated()

    def collect(self) -> Iterator[MetricFamily]:
        """All but what the journal has told nothing of."""
        missing = (*UNTOLD, *(name for name, kind in TOLD_BY.items() if kind not in self.told))
        for family in self.metrics.registry.collect():
            if not family.name.startswith(missing):
                if family.type in COUNTERS:
                    family.samples = [self._goes_on(sample) for sample in family.samples]
                yield family

    def counted(self) -> Counted:
        """The counters' last values."""
        families = [family for family in self.collect() if family.type in COUNTERS]
        return self.before | {_key(sample): sample.value for family in families for sample in family.samples}

    def _goes_on(self, sample: Sample) -> Sample:
        return sample._replace(value=sample.value + self.before.get(_key(sample), 0.0))

    def count_traffic(self, record: records.Traffic, rest_bytes: int) -> None:
        """What came to the server besides the applied pushes, and the models that it sent."""
        self.metrics.raise_bytes("ingress", "other", rest_bytes)
        self.metrics.raise_bytes("egress", "model", record.pull_bytes)
        self.metrics.raise_bytes("egress", "refuse", record.egress_payload - record.pull_bytes)


def _key(sample: Sample) -> tuple[str, tuple[str, ...]]:
    return sample.name, tuple(sample.labels.values())


class Recorded(Collector):
    """What a node used, by its own last record of it, instead of what this process does."""

    usage: records.Usage | None = None

    def collect(self) -> Iterator[MetricFamily]:
        """Those of the resource metrics that the record tells."""
        usage = self.usage
        return resource_families({
            "edgebed_process_cpu_seconds_total": usage.cpu_s,
            "edgebed_cgroup_cpu_throttled_seconds_total": usage.throttled_s,
            "edgebed_cgroup_cpu_limit_cores": usage.cpus_held,
            "edgebed_cgroup_memory_working_set_bytes": usage.memory_bytes,
            "edgebed_cgroup_memory_limit_bytes": usage.memory_held_bytes,
        } if usage else {})  # fmt: skip
