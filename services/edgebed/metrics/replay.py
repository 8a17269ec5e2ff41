"""What Prometheus would have read during a trial, made again from its journal.

Each record goes to the metrics of the node that reported it and to the controller's, as it does while a trial runs
(`exporter.py`); every few seconds of the trial's own time, virtual in a simulation, all of them are read. So dashboards
show a finished or a simulated run by the same queries as one in progress.

    journal --> NodeMetrics of each incarnation of each node, and of the controller --> SampleStore (openmetrics.py)

A journal does not contain everything that a node counts: what clients send and receive is left out, and of the server's
ingress that is no applied push the kind is `other`. In a simulation an applied update stands for an iteration.
A node's counters continue in its next incarnation, where Prometheus would have seen a new instance that begins at zero.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from edgebed.core import records
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.journal.folds import Fold, on
from edgebed.journal.journal import Entry
from edgebed.metrics import table
from edgebed.metrics.exporter import NodeMetrics
from edgebed.metrics.openmetrics import SampleStore
from edgebed.metrics.resources import resource_families
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.roles.control.name import NAME as CONTROLLER

STEP_S = 5.0
"""Seconds between two readings, as Prometheus scrapes nodes."""
NODES_JOB, CONTROLLER_JOB = "edgebed-nodes", "edgebed-controller"
"""Names of the jobs in dashboards/prometheus/prometheus.yml."""
UP = frozenset({"started", "joined", "ready", "running"})
"""States of a node in which it answers."""
UNTOLD = ("edgebed_client_", "edgebed_messages_received", "edgebed_ps_queue_length", "edgebed_shard_queue_length")
"""Prefixes of metrics that a journal does not contain."""
TOLD_BY: dict[str, type[records.Record]] = {
    "edgebed_ps_acknowledgement_bytes": records.Traffic,
    "edgebed_ps_pull": records.Traffic,
    "edgebed_ps_log_": records.Appended,
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
"""Prefixes of metrics that only one kind of record sets: without such a record, zero would be a guess."""

COUNTERS = ("counter", "histogram")
"""Kinds of metrics whose samples only increase."""
Counted = dict[tuple[str, tuple[str, ...]], float]
"""Values of counters, by the sample's name and its labels' values."""


class TrialFacts(NamedTuple):
    """What a trial's journal does not say about the trial."""

    run: str
    """Name of the run, `<scenario>/<number>`."""
    runtime: str
    start_s: float
    """When the trial was launched, in Unix time."""
    verdict: str | None = None
    """Verdict on the trial's conditions."""
    result: str | None = None
    """The trial's result, as `core/quantities.py` lists them."""
    steps_per_s: float | None = None
    """Steps a second of the trial's slowest shard."""


def replay(
    plan: Plan,
    journal: Callable[[], Iterable[Entry]],
    told: TrialFacts,
    store: SampleStore,
    step_s: float = STEP_S,
) -> float:
    """Read the metrics of a trial into `store` every `step_s` seconds, and at its end; return that time, in Unix time.

    The `journal` is read twice.
    """
    fleet = _Fleet(plan, told, store, rest_of(journal()))
    next_s = t = 0.0
    for t, node, record in journal():
        while t >= next_s:
            fleet.read(next_s)
            next_s += step_s
        fleet.add(t, node, record)
    fleet.judge(t)
    fleet.read(t)
    return told.start_s + t


def rest_of(entries: Iterable[Entry]) -> Iterator[int]:
    """For each `Traffic` of the server, in order: bytes received by then in its incarnation that were no applied push.

    Pushes that wait for the end of a round have come as well, and are applied later. Since what is no push never
    becomes less, it was at most what is left over at any later time.
    """
    incarnations = _Rest().add_all(entries).incarnations
    return (least for left in incarnations for least in reversed([*accumulate(reversed(left), min)]))


class _Rest(Fold):
    """What the server had received, without the pushes applied by then, at each report of its traffic."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed_bytes = 0
        self.incarnations: list[list[int]] = [[]]

    @on(records.Node)
    def _node(self, _: float, __: str, record: records.Node) -> None:
        if record.name == table.SERVER and record.state == "joined":
            self.pushed_bytes = 0
            self.incarnations.append([])

    @on(records.Update)
    def _update(self, _: float, __: str, record: records.Update) -> None:
        self.pushed_bytes += record.bytes

    @on(records.Traffic)
    def _traffic(self, _: float, node: str, record: records.Traffic) -> None:
        if node == table.SERVER:
            self.incarnations[-1].append(max(0, record.ingress_payload - self.pushed_bytes))


class _Fleet(Fold):
    """The controller and the nodes that exist now."""

    def __init__(self, plan: Plan, told: TrialFacts, store: SampleStore, rest: Iterator[int]) -> None:
        super().__init__()
        self.told = told
        self.store = store
        self.rest = rest
        self.now_s = told.start_s
        self.roles = {node.node: node.role for node in plan.nodes} if isinstance(plan, TrainingPlan) else {}
        """Nodes that have metrics of their own: a user's program has none."""
        self.labels: dict[str, dict[str, str]] = {
            node.node: {
                "job": NODES_JOB, "instance": node.node, "node": node.node, "role": node.role,
                "device_class": node.device_class, "run": told.run, "trial": plan.trial,
                **({"host": node.host} if node.host else {}),
            }
            for node in plan.nodes
        }  # fmt: skip
        self.incarnations: dict[str, _NodeIncarnation] = {}
        self.states: dict[str, str] = {}
        self.listed: dict[str, bool] = {}
        """Whether each node answers that Prometheus asks."""
        self.controller = TrialMetrics(resources=Recorded(), clock=lambda: self.now_s)
        self.controller.start_trial(plan, told.run, told.runtime, told.start_s)

    def add(self, t: float, node: str, record: records.Record) -> None:
        """Take in one record: it goes to the metrics of the controller and of its node, whatever it is."""
        self.now_s = self.told.start_s + t
        self.controller.observe(record, node)
        if incarnation := self.incarnations.get(node):
            incarnation.observe(record)
        super().add(t, node, record)

    @on(records.Traffic)
    def _traffic(self, _: float, node: str, record: records.Traffic) -> None:
        """Count what came to the server besides the applied pushes, and the models that it sent."""
        if node != table.SERVER:
            return
        rest_bytes = next(self.rest)
        if incarnation := self.incarnations.get(node):
            incarnation.metrics.raise_bytes("ingress", "other", rest_bytes)
            incarnation.metrics.raise_bytes("egress", "model", record.pull_bytes)
            incarnation.metrics.raise_bytes("egress", "refuse", record.egress_payload - record.pull_bytes)

    @on(records.Update)
    def _update(self, _: float, node: str, record: records.Update) -> None:
        """Count a push that the server applied, and an iteration of a worker whose phases do not tell of it."""
        if server := self.incarnations.get(node):
            server.metrics.count_bytes("ingress", "push", record.bytes)
        if (worker := self.incarnations.get(record.worker)) and records.Phases not in worker.told:
            worker.metrics.iterated()

    @on(records.Usage)
    def _usage(self, _: float, node: str, record: records.Usage) -> None:
        if incarnation := self.incarnations.get(node):
            incarnation.resources.usage = record

    @on(records.Node)
    def _node(self, _: float, __: str, record: records.Node) -> None:
        """Begin a node's incarnation, or read a silent node for the last time; remove it if it ended in order."""
        name = record.name
        if name not in self.roles:
            return
        before, self.states[name] = self.states.get(name, ""), record.state
        begins = record.state == "started" or (record.state == "joined" and before != "started")
        if begins or (record.state in UP and name not in self.incarnations):
            past = self.incarnations.get(name)
            self.incarnations[name] = _NodeIncarnation(self.roles[name], past.counted() if past else {})
        if record.state in UP:
            self.listed[name] = True
            return
        if self.listed.get(name):
            self.store.add(self.now_s, self.incarnations[name].collect(), self.labels[name])
        if record.state == "stopped":
            self.listed.pop(name, None)
        elif name in self.listed:
            self.listed[name] = False

    def judge(self, t: float) -> None:
        """End the trial, with its verdict."""
        self.now_s = self.told.start_s + t
        self.controller.judge_trial(
            verdict=self.told.verdict, result=self.told.result, steps_per_s=self.told.steps_per_s
        )

    def read(self, t: float) -> None:
        """Read all that answers, at `t` seconds after the launch."""
        at_s = self.now_s = self.told.start_s + t
        self.store.add(at_s, self.controller.registry.collect(), {"job": CONTROLLER_JOB, "instance": CONTROLLER})
        for node, answers in self.listed.items():
            if answers:
                self.store.add(at_s, self.incarnations[node].collect(), self.labels[node])
            up = GaugeMetricFamily("up", "Whether a node answered.", float(answers))
            self.store.add(at_s, [up], self.labels[node])


class _NodeIncarnation:
    """The metrics of one incarnation of a node, whose counters continue those of the incarnations `before`."""

    def __init__(self, role: str, before: Counted) -> None:
        self.before = before
        self.resources = Recorded()
        self.metrics = NodeMetrics(role, CollectorRegistry(), resources=self.resources)
        self.told: set[type[records.Record]] = set()
        """Kinds of records so far."""

    def observe(self, record: records.Record) -> None:
        """Take in a record that the node reported."""
        self.metrics.observe(record)
        self.told.add(type(record))

    def collect(self) -> Iterator[MetricFamily]:
        """All metrics but those that the journal says nothing of."""
        missing = (*UNTOLD, *(name for name, kind in TOLD_BY.items() if kind not in self.told))
        for family in self.metrics.registry.collect():
            if not family.name.startswith(missing):
                if family.type in COUNTERS:
                    family.samples = [self._goes_on(sample) for sample in family.samples]
                yield family

    def counted(self) -> Counted:
        """Last values of the counters."""
        families = [family for family in self.collect() if family.type in COUNTERS]
        return self.before | {_key(sample): sample.value for family in families for sample in family.samples}

    def _goes_on(self, sample: Sample) -> Sample:
        return sample._replace(value=sample.value + self.before.get(_key(sample), 0.0))


def _key(sample: Sample) -> tuple[str, tuple[str, ...]]:
    return sample.name, tuple(sample.labels.values())


class Recorded(Collector):
    """The resources that a node used, by its own last record of them, in place of this process's."""

    usage: records.Usage | None = None

    def collect(self) -> Iterator[MetricFamily]:
        """The resource metrics that the record contains."""
        usage = self.usage
        return resource_families({
            "edgebed_process_cpu_seconds_total": usage.cpu_s,
            "edgebed_cgroup_cpu_throttled_seconds_total": usage.throttled_s,
            "edgebed_cgroup_cpu_limit_cores": usage.cpus_held,
            "edgebed_cgroup_memory_working_set_bytes": usage.memory_bytes,
            "edgebed_cgroup_memory_limit_bytes": usage.memory_held_bytes,
        } if usage else {})  # fmt: skip
