"""The controller's Prometheus metrics: the trial, its model, and its nodes as the controller sees them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from edgebed.core.measures.task import TEST, VALIDATION
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.core.quantities import RESULTS, VERDICTS
from edgebed.core.records import (
    Continued,
    Dropped,
    Ended,
    Evaluated,
    Fault,
    Finished,
    HostLoad,
    Joined,
    Measured,
    Node,
    Record,
    Refused,
    Restored,
    Resumed,
    Step,
    Traffic,
    Trial,
    Unanswered,
    Unauthenticated,
    Update,
    Usage,
)
from edgebed.journal.folds import Counters, Timeline, total
from edgebed.metrics import table
from edgebed.metrics.families import Families, closed_values
from edgebed.metrics.resources import ResourceCollector


@dataclass
class TrialProgress:
    """How far a trial is; times are Unix time in seconds, by `clock`."""

    plan: Plan
    clock: Callable[[], float]
    began_s: float | None = None
    """When training began, or would have begun if it had never stood still since; None: it stands still."""
    trained_s: float = 0.0
    """Seconds of training before that."""
    version: int = 0
    updated_s: float | None = None
    """When training began, or the last update was applied; None before, and once the final model is measured."""
    is_final: bool = False
    is_done: bool = False

    def moved(self) -> None:
        """Note that the trial goes on."""
        if not self.is_final:  # reports of the last steps may come later
            self.updated_s = self.clock()

    def began(self, trained_s: float) -> None:
        """Note that training begins, or goes on after a resumption."""
        self.is_final = False
        self.moved()
        if self.began_s is None:
            self.began_s = self.clock() - trained_s

    def stands_at(self, trained_s: float) -> None:
        """Note that training stands still until it goes on."""
        self.began_s, self.trained_s = None, trained_s

    def measured_final(self) -> None:
        """Note that the final model has been measured."""
        self.is_final, self.updated_s = True, None

    def ended(self, outcome: str) -> None:
        """Note that the trial is over."""
        self.is_done, self.updated_s = outcome == "completed", None

    def share(self) -> float:
        """Progress towards the nearest of the trial's limits; a level to be reached does not say how far it is."""
        if self.is_done:
            return 1.0
        shares = [0.0]
        if isinstance(self.plan, TrainingPlan) and self.plan.stop_updates:
            shares.append(self.version / self.plan.stop_updates)
        if self.plan.stop_time_s:
            trained_s = self.trained_s if self.began_s is None else self.clock() - self.began_s
            shares.append(trained_s / self.plan.stop_time_s)
        return min(1.0, max(shares))

    def stalled(self) -> float:
        """Share of the stall deadline that has passed since the last update; 0 when none is awaited.

        From the last update on the final evaluation is awaited, for as long again.
        """
        if self.updated_s is None or not isinstance(self.plan, TrainingPlan):
            return 0.0
        return min(1.0, (self.clock() - self.updated_s) / self.plan.stall_deadline_s)


class TrialMetrics:
    """The metrics of one controller, trial after trial; `start_trial` comes first.

    Only the shell's thread calls the methods; scrapes may come at any time.
    """

    def __init__(self, *, resources: Collector | None = None, clock: Callable[[], float] | None = None) -> None:
        """`resources` reads what the controller uses (None: this process), `clock` the Unix time in seconds.

        None: the wall clock's now, which from then on runs as the monotonic clock does, whoever sets it.
        """
        self.registry = CollectorRegistry()
        self.clock = clock or _unix_clock()
        self._families = Families(table.CONTROLLER, self.registry)
        self.registry.register(resources or ResourceCollector())
        self._labels = "", ""
        """Run and trial."""
        self._states: dict[str, str] = {}
        self._device_classes: dict[str, str] = {}
        self._observers: dict[type[Record], Callable[[Any], None]] = {
            Update: self._observe_update,
            Step: self._observe_step,
            Resumed: lambda record: self._observe_version(record.step),
            Finished: lambda _: self._progress.moved(),
            Evaluated: self._observe_evaluated,
            Node: self._observe_node,
            Trial: lambda record: self._progress.began(record.trained_s),
            Continued: lambda record: self._progress.stands_at(record.trained_s),
            Ended: lambda record: self._progress.ended(record.outcome),
            Fault: self._observe_fault,
            Joined: lambda record: self._child("edgebed_joins_total", self._class_of(record.worker)).inc(),
            Unanswered: self._observe_unanswered,
            Restored: self._observe_restored,
            HostLoad: self._observe_host,
            Unauthenticated: self._observe_unauthenticated,
            Refused: lambda record: self._child("edgebed_run_refused_total", record.code).inc(record.count),
            Dropped: lambda record: self._child("edgebed_run_messages_dropped_total", record.socket).inc(record.count),
        }

    def start_trial(
        self,
        plan: Plan,
        run: str,
        runtime: str,
        start_timestamp_s: float,
        *,
        applied_bytes: int = 0,
        past_traffic: Traffic | None = None,
    ) -> None:
        """Begin a trial of `run`, whose nodes are all expected; drop the values of an earlier trial.

        For a resumed trial, `applied_bytes` is the payload of the pushes that had been applied, and `past_traffic` all
        that had passed the server.
        """
        self._labels = run, plan.trial
        self._progress = TrialProgress(plan, self.clock)
        self._states = {}
        self._started = set[str]()
        self._device_classes = {node.node: node.device_class for node in plan.nodes}
        self._families.clear((*table.CONTROLLER_METRICS, *table.PROGRAM_METRICS))
        if isinstance(plan, TrainingPlan):
            for measure in plan.measures:
                self._families.add(table.measured(measure))
            self._set_measured(plan, {}, {})
            self._child("edgebed_model_version").set(0)
        self._child("edgebed_run_update_bytes_total").inc(applied_bytes)
        self._past_traffic = [past_traffic] if past_traffic else []
        self._server = Counters(Timeline())
        self._raise_traffic()
        for device_class in self._device_classes.values():
            self._child("edgebed_crashes_total", device_class)
            self._child("edgebed_joins_total", device_class)
            for state in closed_values("edgebed_nodes", "state"):
                self._child("edgebed_nodes", device_class, state)
        for how in closed_values("edgebed_updates_lost_total", "how"):
            self._child("edgebed_updates_lost_total", how)
        for name in ("edgebed_connections_unauthenticated_total", "edgebed_run_messages_dropped_total"):
            for socket in closed_values(name, "socket"):
                self._child(name, socket)
        for node in plan.nodes:
            self._observe_node(Node(name=node.node, state="expected"))
        algorithm = plan.nodes[0].method.name if isinstance(plan, TrainingPlan) else "program"
        self._child("edgebed_run_info", plan.scenario, algorithm, str(plan.seed), runtime).set(1)
        self._child("edgebed_run_start_timestamp_seconds").set(start_timestamp_s)
        self._child("edgebed_run_progress_ratio").set_function(self._progress.share)
        self._child("edgebed_run_stalled_ratio").set_function(self._progress.stalled)

    def judge_trial(self, *, verdict: str | None, result: str | None = None, steps_per_s: float | None = None) -> None:
        """End a trial with the verdict on its conditions, its result, and for shards the steps a second."""
        if result is not None:
            self._child("edgebed_trial_result").set(RESULTS.index(result))
        if verdict is not None:
            self._child("edgebed_trial_verdict").set(VERDICTS.index(verdict))
        if steps_per_s is not None:
            self._child("edgebed_trial_steps_per_second").set(steps_per_s)

    def observe(self, record: Record, node: str = "") -> None:
        """Take a record of the journal into account, which `node` reported: of traffic the server's alone."""
        observer = self._observers.get(type(record))
        if observer is not None:
            observer(record)
        if not isinstance(self._progress.plan, TrainingPlan):
            self._observe_program(record, node)
        elif isinstance(record, Node) or (isinstance(record, Traffic) and node == table.SERVER):
            self._server.add(0.0, node, record)
            self._raise_traffic()

    def _observe_program(self, record: Record, node: str) -> None:
        """Take in what a user's program told or did, or its witness says of it; counters of a life begin at 0."""
        if isinstance(record, Measured):
            for name, value in record.measured.items():
                self._child("edgebed_program_measure", self._class_of(node), node, name).set(value)
        elif isinstance(record, Usage):
            of = self._class_of(node), node
            self._raise(record.uplink_bytes, "edgebed_program_link_bytes_total", *of, "egress")
            self._raise(record.downlink_bytes, "edgebed_program_link_bytes_total", *of, "ingress")
            self._raise(record.cpu_s, "edgebed_program_cpu_seconds_total", *of)
            if record.memory_bytes is not None:
                self._child("edgebed_program_memory_peak_bytes", *of).set(record.memory_bytes)
        elif isinstance(record, Node) and record.state == "started":
            of = self._class_of(record.name), record.name
            restarts = self._child("edgebed_program_restarts_total", *of)
            if record.name in self._started:
                restarts.inc()
            self._started.add(record.name)
            self._families.begin_again("edgebed_program_cpu_seconds_total", *self._labels, *of)
            for direction in closed_values("edgebed_program_link_bytes_total", "direction"):
                self._families.begin_again("edgebed_program_link_bytes_total", *self._labels, *of, direction)

    def _raise_traffic(self) -> None:
        """Count what has passed the server in all its incarnations."""
        lives = [*self._past_traffic, *self._server.lives(Traffic).get((table.SERVER,), [])]
        counted = total(lives) if lives else Traffic(ingress_payload=0, egress_payload=0)
        self._raise(counted.pull_bytes, "edgebed_run_pull_bytes_total")
        self._raise(counted.ingress_payload, "edgebed_run_server_bytes_total", "ingress")
        self._raise(counted.egress_payload, "edgebed_run_server_bytes_total", "egress")

    def _raise(self, to: float | None, name: str, *values: str) -> None:
        self._families.raise_to(to, name, *self._labels, *values)

    def _observe_version(self, version: int) -> None:
        self._progress.version = version
        self._progress.moved()
        self._child("edgebed_model_version").set(version)

    def _observe_update(self, record: Update) -> None:
        self._observe_version(record.version)
        self._child("edgebed_run_update_bytes_total").inc(record.bytes)

    def _observe_step(self, record: Step) -> None:
        self._progress.moved()
        if record.made:
            self._observe_version(record.made)

    def _observe_restored(self, record: Restored) -> None:
        lost = max(0, self._progress.version - record.version)
        self._child("edgebed_updates_lost_total", "rolled-back").inc(lost)
        self._progress.version = record.version
        self._child("edgebed_model_version").set(record.version)

    def _observe_evaluated(self, record: Evaluated) -> None:
        assert isinstance(self._progress.plan, TrainingPlan)
        self._set_measured(self._progress.plan, record.measured, record.validation)
        if record.final:
            self._progress.measured_final()

    def _set_measured(self, plan: TrainingPlan, test: Mapping[str, float], validation: Mapping[str, float]) -> None:
        """Tell each measure of the task, NaN where it is not known, and the headline."""
        parts = {TEST: test, **({VALIDATION: validation} if plan.evaluator.num_validation else {})}
        for split, measured in parts.items():
            values = {each.name: measured.get(each.name, float("nan")) for each in plan.measures}
            for each in plan.measures:
                self._child(each.metric, split).set(values[each.name])
            headline = plan.headline
            self._child("edgebed_model_headline", split, headline.titled_unit, headline.better).set(
                values[headline.name] * (100 if headline.is_share else 1)
            )

    def _observe_unanswered(self, record: Unanswered) -> None:
        if record.step >= 0:
            self._child("edgebed_updates_lost_total", "unanswered").inc()

    def _observe_node(self, record: Node) -> None:
        device_class = self._device_classes[record.name]
        before = self._states.get(record.name)
        if before == record.state:
            return
        since = "edgebed_node_state_timestamp_seconds"
        if before is not None:
            self._child("edgebed_nodes", device_class, before).dec()
            self._families.forget(since, *self._labels, device_class, record.name, before)
        self._child("edgebed_nodes", device_class, record.state).inc()
        self._child(since, device_class, record.name, record.state).set(self.clock())
        self._states[record.name] = record.state
        if record.state == "died":
            self._child("edgebed_crashes_total", device_class).inc()
            crash = self._child("edgebed_node_last_crash_timestamp_seconds", device_class, record.name)
            crash.set(self.clock())

    def _observe_fault(self, record: Fault) -> None:
        result = "failed" if record.problem else "no_op" if record.no_op else "done"
        self._child("edgebed_faults_total", self._class_of(record.target), record.action, result).inc()
        if result == "done":
            self._child("edgebed_fault_timestamp_seconds", record.action, record.target).set(self.clock())

    def _observe_host(self, record: HostLoad) -> None:
        self._child("edgebed_host_busy_ratio", record.host).set(record.busy)
        self._child("edgebed_host_steal_ratio", record.host).set(record.steal)
        self._child("edgebed_host_load_processes", record.host).set(record.load)
        self._child("edgebed_host_wake_lag_seconds", record.host).set(record.lag_s)
        for direction, bytes_s in (("ingress", record.received_bytes_s), ("egress", record.sent_bytes_s)):
            if bytes_s is not None:
                self._child("edgebed_host_network_bytes_per_second", record.host, direction).set(bytes_s)
        if record.rate_bit_s:
            self._child("edgebed_host_network_limit_bytes_per_second", record.host).set(record.rate_bit_s / 8)

    def _observe_unauthenticated(self, record: Unauthenticated) -> None:
        self._child("edgebed_connections_unauthenticated_total", record.socket).inc(record.count)

    def _class_of(self, name: str) -> str:
        """The device class of a node; empty for an unknown one."""
        return self._device_classes.get(name, "")

    def _child(self, name: str, *values: str) -> Any:
        """A series of the controller, with run and trial as its first labels."""
        return self._families.child(name, *self._labels, *values)


def _unix_clock() -> Callable[[], float]:
    """A clock that shows Unix time in seconds, and runs on as the monotonic clock does."""
    ahead_s = time.time() - time.monotonic()
    return lambda: ahead_s + time.monotonic()
