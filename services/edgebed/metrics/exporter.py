"""A node's Prometheus metrics, fed with the records that go to the journal.

`table.py` declares them; this file makes the metrics of one role in a registry of their own and updates them:

    records (Update, Phases, …) --> observe()      -->
    payload, queue of the shell --> count_bytes()  --> registry <-- scraped over HTTP (discovery.py)
    /proc, cgroup               --> at each scrape -->

The journal stays the source of every figure in a report; metrics are the live view of it.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from edgebed.core.plan import Plan
from edgebed.core.quantities import VERDICTS
from edgebed.core.records import (
    Dropped,
    Ended,
    Evaluated,
    Fault,
    Finished,
    HostLoad,
    Joined,
    Link,
    Node,
    Phases,
    Record,
    Refused,
    Restored,
    Resumed,
    ShardPhases,
    Step,
    Taught,
    Traffic,
    Transfers,
    Trial,
    Unanswered,
    Update,
    Usage,
)
from edgebed.emulation.resources import cgroup_usage, private_bytes, process_usage
from edgebed.metrics import table

PRIVATE_S = 30.0
"""Seconds for which a reading of private memory is used."""

disable_created_metrics()  # type: ignore[no-untyped-call] # a second time series for each series, which nobody reads

_TYPES: dict[str, type[Counter] | type[Gauge] | type[Histogram]] = {
    "counter": Counter,
    "gauge": Gauge,
    "histogram": Histogram,
}


class NodeMetrics:
    """The metrics of one node, by its role, or of the `controller`.

    `registry` is a fresh one unless given. Only the shell's thread calls the methods; scrapes may come at any time.
    """

    def __init__(
        self,
        role: str,
        registry: CollectorRegistry | None = None,
        *,
        resources: Collector | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`resources` reads what the node uses (None: this process), `clock` the Unix time in seconds."""
        assert role in table.ROLES
        self.registry = registry or CollectorRegistry()
        self._clock = clock
        self._metrics: dict[str, Any] = {}
        for metric in table.METRICS:
            if role in metric.roles and metric not in table.RESOURCE_METRICS:
                self._metrics[metric.name] = _make(metric, self.registry)
        self.registry.register(resources or ResourceCollector())
        self._children: dict[tuple[str, ...], Any] = {}
        self._totals: dict[tuple[str, ...], float] = {}
        owner = "ps" if role == table.SERVER else "client"
        self._bytes_names = {way: f"edgebed_{owner}_{way}_bytes_total" for way in ("ingress", "egress")}
        self._observers: dict[type[Record], Callable[[Any], None]] = {}
        prepare = {
            table.SERVER: self._prepare_server,
            table.WORKER: self._prepare_worker,
            table.EVALUATOR: self._prepare_evaluator,
            table.CONTROLLER: self._prepare_controller,
            table.STORE: self._prepare_serving,
            table.MODULES: self._prepare_modules,
        }[role]
        prepare()

    def observe(self, record: Record) -> None:
        """Take a record of the journal into account; those that say nothing about this role change nothing."""
        observer = self._observers.get(type(record))
        if observer is not None:
            observer(record)

    def count_bytes(self, direction: str, kind: str, payload_bytes: int) -> None:
        """Count a message of `kind` that came in (`ingress`) or went out (`egress`) on the data network."""
        self._child(self._bytes_names[direction], kind).inc(payload_bytes)
        if direction == "ingress":
            self._child("edgebed_messages_received_total", kind).inc()

    def raise_bytes(self, direction: str, kind: str, payload_bytes: int) -> None:
        """Set the bytes of `kind` that have come in or gone out so far."""
        self._raise_to(payload_bytes, self._bytes_names[direction], kind)

    def iterated(self) -> None:
        """Worker: count a gradient that no `Phases` report."""
        self._metrics["edgebed_worker_iterations_total"].inc()

    def queue_length(self, length: int) -> None:
        """Server: set the number of messages that have been received and not yet handled."""
        self._metrics["edgebed_ps_queue_length"].set(length)

    def shard_queues(self, lengths: Mapping[str, int]) -> None:
        """Shard, or node of modules: set how many inputs and gradients it has queued, by kind."""
        for queue, length in lengths.items():
            self._child("edgebed_shard_queue_length", queue).set(length)

    def start_trial(
        self,
        plan: Plan,
        run: str,
        runtime: str,
        start_timestamp_s: float,
        *,
        applied_bytes: int = 0,
        trained_s: float | None = None,
    ) -> None:
        """Controller: begin a trial of `run`, whose nodes are all expected; drop the values of an earlier trial.

        For a resumed trial, `applied_bytes` is the payload of the pushes that had been applied, and `trained_s` how
        long ago training began, by the trial's clock.
        """
        self._plan = plan
        self._run = run
        self._states: dict[str, str] = {}
        self._version = 0
        self._done = False
        self._is_final = False
        self._updated_s: float | None = None
        self._began_s = None if trained_s is None else start_timestamp_s - trained_s
        """When training began, in Unix time; None before."""
        for metric in table.CONTROLLER_METRICS:
            self._metrics[metric.name].clear()
        self._children.clear()
        for name in ("edgebed_model_accuracy_ratio", "edgebed_model_loss"):
            self._of_trial(name, "test").set(float("nan"))
        self._of_trial("edgebed_model_version").set(0)
        self._applied_bytes: Counter = self._of_trial("edgebed_run_update_bytes_total")
        self._applied_bytes.inc(applied_bytes)
        self._device_classes = {node.node: node.device_class for node in plan.nodes}
        for device_class in self._device_classes.values():
            self._of_trial("edgebed_crashes_total", device_class)
            self._of_trial("edgebed_joins_total", device_class)
            for state in _closed_values("edgebed_nodes", "state"):
                self._of_trial("edgebed_nodes", device_class, state)
        for how in _closed_values("edgebed_updates_lost_total", "how"):
            self._of_trial("edgebed_updates_lost_total", how)
        for node in plan.nodes:
            self._observe_node(Node(name=node.node, state="expected"))
        algorithm = plan.nodes[0].method.name
        self._of_trial("edgebed_run_info", plan.scenario, algorithm, str(plan.seed), runtime).set(1)
        self._of_trial("edgebed_run_start_timestamp_seconds").set(start_timestamp_s)
        self._of_trial("edgebed_run_progress_ratio").set_function(self._progress)
        self._of_trial("edgebed_run_stalled_ratio").set_function(self._stalled)

    def judge_trial(self, *, verdict: str | None, steps_per_s: float | None = None) -> None:
        """Controller: end a trial with the verdict on its conditions, and for shards the steps a second."""
        if verdict is not None:
            self._of_trial("edgebed_trial_verdict").set(VERDICTS.index(verdict))
        if steps_per_s is not None:
            self._of_trial("edgebed_trial_steps_per_second").set(steps_per_s)

    # --- what each role listens to ------------------------------------------------------------------------------

    def _prepare_server(self) -> None:
        applied = self._child("edgebed_ps_updates_total", "applied")
        staleness: Histogram = self._metrics["edgebed_ps_update_staleness_versions"]
        update_bytes: Counter = self._metrics["edgebed_ps_update_bytes_total"]
        algorithm_bytes: Counter = self._metrics["edgebed_ps_algorithm_bytes_total"]

        def observe_update(record: Update) -> None:
            applied.inc()
            staleness.observe(record.staleness)
            update_bytes.inc(record.bytes)
            algorithm_bytes.inc(record.bits / 8)

        def observe_traffic(record: Traffic) -> None:
            interface_bytes = {"ingress": record.ingress_interface, "egress": record.egress_interface}
            for direction, total in interface_bytes.items():
                self._raise_to(total, "edgebed_link_bytes_total", direction, record.interface)
            whole, whole_bytes = record.pulls - record.pulls_changed, record.pull_bytes - record.pull_changed_bytes
            self._raise_to(whole, "edgebed_ps_pulls_total", "full")
            self._raise_to(whole_bytes, "edgebed_ps_pull_bytes_total", "full")
            self._raise_to(record.pulls_changed, "edgebed_ps_pulls_total", "changed-since")
            self._raise_to(record.pull_changed_bytes, "edgebed_ps_pull_bytes_total", "changed-since")
            self._raise_to(record.ack_bytes, "edgebed_ps_acknowledgement_bytes_total")

        def observe_refused(record: Refused) -> None:
            self._child("edgebed_ps_updates_total", record.code).inc(record.count)

        self._observers = {
            Update: observe_update,
            Traffic: observe_traffic,
            Refused: observe_refused,
            Dropped: self._observe_dropped,
            **self._conditions(),
        }

    def _prepare_worker(self) -> None:
        iterations: Counter = self._metrics["edgebed_worker_iterations_total"]
        durations: Histogram = self._metrics["edgebed_worker_step_duration_seconds"]
        before = Phases(steps=0, compute_s=0.0, encode_s=0.0, wait_s=0.0, pause_s=0.0)

        def observe_phases(record: Phases) -> None:
            nonlocal before
            steps, total_s = record.steps - before.steps, 0.0
            for phase in _closed_values("edgebed_worker_phase_seconds_total", "phase"):
                grown_s = max(0.0, getattr(record, f"{phase}_s") - getattr(before, f"{phase}_s"))
                self._child("edgebed_worker_phase_seconds_total", phase).inc(grown_s)
                total_s += grown_s
            for _ in range(steps):
                durations.observe(total_s / steps)
            iterations.inc(steps)
            before = record

        shard_steps: Counter = self._metrics["edgebed_shard_steps_total"]

        self._observers = {
            Phases: observe_phases,
            Step: lambda _: shard_steps.inc(),
            Taught: self._observe_taught,
            ShardPhases: self._observe_shard_phases,
            Dropped: self._observe_dropped,
            **self._conditions(),
        }

    def _prepare_serving(self) -> None:
        self._observers = {Dropped: self._observe_dropped, **self._conditions()}

    def _prepare_modules(self) -> None:
        self._prepare_serving()
        self._observers |= {ShardPhases: self._observe_shard_phases, Taught: self._observe_taught}

    def _prepare_evaluator(self) -> None:
        evaluations: Counter = self._metrics["edgebed_evaluations_total"]
        self._observers = {
            Evaluated: lambda _: evaluations.inc(),
            Dropped: self._observe_dropped,
            Usage: self._observe_starved,
        }

    def _prepare_controller(self) -> None:
        def observe_version(version: int) -> None:
            self._version = version
            self._moved()
            self._of_trial("edgebed_model_version").set(version)

        def observe_update(record: Update) -> None:
            observe_version(record.version)
            self._applied_bytes.inc(record.bytes)

        def observe_trial(_: Trial) -> None:
            self._is_final = False
            self._moved()
            if self._began_s is None:
                self._began_s = self._clock()

        def observe_step(record: Step) -> None:
            self._moved()
            if record.made:
                observe_version(record.made)

        self._observers = {
            Update: observe_update,
            Step: observe_step,
            Resumed: lambda record: observe_version(record.step),
            Finished: lambda _: self._moved(),
            Evaluated: self._observe_evaluated,
            Node: self._observe_node,
            Trial: observe_trial,
            Ended: self._observe_ended,
            Fault: self._observe_fault,
            Joined: lambda record: self._of_trial("edgebed_joins_total", self._class_of(record.worker)).inc(),
            Unanswered: self._observe_unanswered,
            Restored: self._observe_restored,
            HostLoad: self._observe_host,
        }

    def _conditions(self) -> dict[type[Record], Callable[[Any], None]]:
        """Handlers for further records, of a node with a link."""
        interface = ""

        def observe_link(record: Link) -> None:
            nonlocal interface
            interface = record.interface
            limits = {
                ("edgebed_link_asked_bytes_per_second", "egress"): record.uplink_asked,
                ("edgebed_link_asked_bytes_per_second", "ingress"): record.downlink_asked,
                ("edgebed_link_held_bytes_per_second", "egress"): record.uplink_held,
                ("edgebed_link_held_bytes_per_second", "ingress"): record.downlink_held,
            }
            for key, bit_s in limits.items():
                if bit_s is not None:
                    self._child(*key).set(bit_s / 8)
                elif self._children.pop(key, None):
                    self._metrics[key[0]].remove(key[1])
            self._child("edgebed_link_differs").set(1 if record.problem else 0)

        def observe_usage(record: Usage) -> None:
            self._observe_starved(record)
            self._raise_to(record.uplink_drops, "edgebed_link_dropped_packets_total", "egress")
            self._raise_to(record.downlink_drops, "edgebed_link_dropped_packets_total", "ingress")
            if interface and "edgebed_ps_updates_total" not in self._metrics:  # the server's are in its `Traffic`
                self._raise_to(record.uplink_bytes, "edgebed_link_bytes_total", "egress", interface)
                self._raise_to(record.downlink_bytes, "edgebed_link_bytes_total", "ingress", interface)

        transfers: dict[str, Transfers] = {}

        def observe_transfers(record: Transfers) -> None:
            transfers[record.name] = record
            everybody = transfers.values()
            self._raise_to(sum(each.time_s for each in everybody), "edgebed_transfer_seconds_total")
            self._raise_to(sum(each.asked_s for each in everybody), "edgebed_transfer_asked_seconds_total")

        return {Link: observe_link, Usage: observe_usage, Transfers: observe_transfers}

    def _observe_shard_phases(self, record: ShardPhases) -> None:
        for phase in _closed_values("edgebed_shard_phase_seconds_total", "phase"):
            self._raise_to(getattr(record, f"{phase}_s"), "edgebed_shard_phase_seconds_total", phase)

    def _observe_taught(self, record: Taught) -> None:
        of = record.shard, "inputs" if record.inputs else "gradient"
        self._child("edgebed_shard_taught_total", *of).inc()
        self._child("edgebed_shard_taught_loss_total", *of).inc(record.loss)

    def _observe_starved(self, record: Usage) -> None:
        self._raise_to(record.starved_s, "edgebed_starved_seconds_total")

    def _observe_host(self, record: HostLoad) -> None:
        self._of_trial("edgebed_host_busy_ratio").set(record.busy)
        self._of_trial("edgebed_host_steal_ratio").set(record.steal)
        self._of_trial("edgebed_host_load_processes").set(record.load)
        self._of_trial("edgebed_host_wake_lag_seconds").set(record.lag_s)

    def _observe_dropped(self, record: Dropped) -> None:
        self._child("edgebed_messages_dropped_total", record.socket).inc(record.count)

    def _observe_evaluated(self, record: Evaluated) -> None:
        self._of_trial("edgebed_model_accuracy_ratio", "test").set(record.accuracy)
        self._of_trial("edgebed_model_loss", "test").set(record.loss)
        if record.final:
            self._is_final = True
            self._updated_s = None

    def _observe_node(self, record: Node) -> None:
        device_class = self._device_classes[record.name]
        before = self._states.get(record.name)
        if before == record.state:
            return
        since = "edgebed_node_state_timestamp_seconds"
        if before is not None:
            self._of_trial("edgebed_nodes", device_class, before).dec()
            self._forget_of_trial(since, device_class, record.name, before)
        self._of_trial("edgebed_nodes", device_class, record.state).inc()
        self._of_trial(since, device_class, record.name, record.state).set(self._clock())
        self._states[record.name] = record.state
        if record.state == "died":
            self._of_trial("edgebed_crashes_total", device_class).inc()
            crash = self._of_trial("edgebed_node_last_crash_timestamp_seconds", device_class, record.name)
            crash.set(self._clock())

    def _class_of(self, name: str) -> str:
        """The device class of a node; empty for an unknown one."""
        return self._device_classes.get(name, "")

    def _observe_fault(self, record: Fault) -> None:
        result = "failed" if record.problem else "moot" if record.moot else "done"
        self._of_trial("edgebed_faults_total", self._class_of(record.target), record.action, result).inc()
        if result == "done":
            moment = self._of_trial("edgebed_fault_timestamp_seconds", record.action, record.target)
            moment.set(self._clock())

    def _observe_unanswered(self, record: Unanswered) -> None:
        if record.step >= 0:
            self._of_trial("edgebed_updates_lost_total", "unanswered").inc()

    def _observe_restored(self, record: Restored) -> None:
        self._of_trial("edgebed_updates_lost_total", "rolled-back").inc(max(0, self._version - record.version))
        self._version = record.version
        self._of_trial("edgebed_model_version").set(record.version)

    def _moved(self) -> None:
        if not self._is_final:  # reports of the last steps may come later
            self._updated_s = self._clock()

    def _observe_ended(self, record: Ended) -> None:
        self._done = record.outcome == "completed"
        self._updated_s = None

    def _progress(self) -> float:
        """Progress towards the nearest of the trial's limits; a limit of accuracy does not say how far it is."""
        if self._done:
            return 1.0
        shares = [0.0]
        if self._plan.stop_updates:
            shares.append(self._version / self._plan.stop_updates)
        if self._plan.stop_time_s and self._began_s is not None:
            shares.append((self._clock() - self._began_s) / self._plan.stop_time_s)
        return min(1.0, max(shares))

    def _stalled(self) -> float:
        """Seconds since training began, or the last update; nothing before that and once the final model is measured.

        From the last update on the final evaluation is awaited, for as long again.
        """
        if self._updated_s is None:
            return 0.0
        return min(1.0, (self._clock() - self._updated_s) / self._plan.stall_deadline_s)

    def _of_trial(self, name: str, *values: str) -> Any:
        """A series of the controller, with run and trial as its first labels."""
        return self._child(name, self._run, self._plan.trial, *values)

    def _forget_of_trial(self, name: str, *values: str) -> None:
        """Remove a series of the controller."""
        values = (self._run, self._plan.trial, *values)
        del self._children[name, *values]
        self._metrics[name].remove(*values)

    def _child(self, name: str, *values: str) -> Any:
        """A metric's series with these label values; looked up once, since `labels()` costs six times an increment."""
        key = (name, *values)
        child = self._children.get(key)
        if child is None:
            metric = self._metrics[name]
            child = self._children[key] = metric.labels(*values) if values else metric
        return child

    def _raise_to(self, total: float | None, name: str, *values: str) -> None:
        """Raise a counter to `total`, the sum so far; None: not known."""
        if total is not None:
            key = (name, *values)
            self._child(*key).inc(max(0, total - self._totals.get(key, 0)))
            self._totals[key] = total


class ResourceCollector(Collector):
    """Reads the process and its cgroup when a scrape asks, and never otherwise; what cannot be read is absent.

    Private memory, which takes longer to read than all else together, is read anew after `PRIVATE_S`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._private_bytes: int | None = None
        self._private_until_s = float("-inf")

    def collect(self) -> Iterator[MetricFamily]:
        """The resource metrics that can be read on this machine."""
        process, cgroup = process_usage(), cgroup_usage()
        values: dict[str, float | None] = {
            "edgebed_cgroup_cpu_seconds_total": cgroup.cpu_s,
            "edgebed_cgroup_cpu_limit_cores": cgroup.cpu_limit_cores,
            "edgebed_cgroup_cpu_periods_total": cgroup.periods,
            "edgebed_cgroup_cpu_throttled_periods_total": cgroup.throttled_periods,
            "edgebed_cgroup_cpu_throttled_seconds_total": cgroup.throttled_s,
            "edgebed_cgroup_memory_working_set_bytes": cgroup.working_set_bytes,
            "edgebed_cgroup_memory_peak_bytes": cgroup.peak_bytes,
            "edgebed_cgroup_memory_limit_bytes": cgroup.memory_limit_bytes,
            "edgebed_cgroup_oom_kills_total": cgroup.oom_kills,
        }
        if process is not None:
            values |= {
                "edgebed_process_cpu_seconds_total": process.cpu_s,
                "edgebed_process_resident_memory_bytes": process.resident_bytes,
                "edgebed_process_private_memory_bytes": self._private(),
                "edgebed_process_threads": process.threads,
            }
        return resource_families(values)

    def _private(self) -> int | None:
        if self._clock() >= self._private_until_s:
            self._private_until_s = self._clock() + PRIVATE_S
            self._private_bytes = private_bytes(os.getpid())
        return self._private_bytes


def resource_families(values: Mapping[str, float | None]) -> Iterator[MetricFamily]:
    """The resource metrics of which a value is known."""
    for metric in table.RESOURCE_METRICS:
        value = values.get(metric.name)
        if value is not None:
            family = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
            yield family(metric.name, metric.help, value=value)


def _make(metric: table.Metric, registry: CollectorRegistry) -> Any:
    """The Prometheus object, with the series of a closed label started at 0."""
    options: dict[str, Any] = {"labelnames": [label.name for label in metric.labels], "registry": registry}
    if metric.buckets:
        options["buckets"] = metric.buckets
    made = _TYPES[metric.type](metric.name, metric.help, **options)
    if len(metric.labels) == 1 and metric.labels[0].closed and metric.type == "counter":
        for value in metric.labels[0].examples:
            made.labels(value)
    return made


def _closed_values(name: str, label_name: str) -> tuple[str, ...]:
    """All values of a closed label."""
    return next(
        label.examples for metric in table.METRICS if metric.name == name for label in metric.labels
        if label.name == label_name
    )  # fmt: skip
