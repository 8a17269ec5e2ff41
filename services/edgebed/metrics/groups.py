"""Groups of a node's metrics, and how each follows from records; `exporter.py` says which role has which.

A group is a function that returns what it does with each kind of record that it is fed by.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edgebed.core.records import (
    Appended,
    Dropped,
    Evaluated,
    Link,
    Phases,
    Record,
    Refused,
    ShardPhases,
    Step,
    Taught,
    Traffic,
    Transfers,
    Update,
    Usage,
)
from edgebed.metrics.families import Families, closed_values

REPORT_S = 1.0
"""Workers report their phases as often."""
STEPS_MAX = 100_000
"""Steps of a report that are told one by one: no worker makes as many in a second."""
Observers = Mapping[type[Record], Callable[[Any], None]]
"""Functions that take a record into account, by its kind."""
Group = Callable[[Families], Observers]


def updates(families: Families) -> Observers:
    """Pushes that the server applied or refused."""
    applied = families.child("edgebed_ps_updates_total", "applied")
    staleness = families.child("edgebed_ps_update_staleness_versions")
    update_bytes = families.child("edgebed_ps_update_bytes_total")
    algorithm_bytes = families.child("edgebed_ps_algorithm_bytes_total")

    def observe_update(record: Update) -> None:
        applied.inc()
        staleness.observe(record.staleness)
        update_bytes.inc(record.bytes)
        algorithm_bytes.inc(record.bits / 8)

    def observe_refused(record: Refused) -> None:
        families.child("edgebed_ps_updates_total", record.code).inc(record.count)

    return {Update: observe_update, Refused: observe_refused}


def traffic(families: Families) -> Observers:
    """Bytes at the server's interface, and models that it sent."""

    def observe_traffic(record: Traffic) -> None:
        interface_bytes = {"ingress": record.ingress_interface, "egress": record.egress_interface}
        for direction, total in interface_bytes.items():
            families.raise_to(total, "edgebed_link_bytes_total", direction, record.interface)
        whole, whole_bytes = record.pulls - record.pulls_changed, record.pull_bytes - record.pull_changed_bytes
        families.raise_to(whole, "edgebed_ps_pulls_total", "full")
        families.raise_to(whole_bytes, "edgebed_ps_pull_bytes_total", "full")
        families.raise_to(record.pulls_changed, "edgebed_ps_pulls_total", "changed-since")
        families.raise_to(record.pull_changed_bytes, "edgebed_ps_pull_bytes_total", "changed-since")
        families.raise_to(record.ack_bytes, "edgebed_ps_acknowledgement_bytes_total")

    return {Traffic: observe_traffic}


def log(families: Families) -> Observers:
    """What the server's log takes."""

    def observe_appended(record: Appended) -> None:
        families.raise_to(record.bytes, "edgebed_ps_log_bytes_total")
        families.raise_to(record.append_s, "edgebed_ps_log_seconds_total")
        families.raise_to(record.syncs, "edgebed_ps_log_syncs_total")
        families.raise_to(record.waited, "edgebed_ps_log_waited_messages_total")
        families.raise_to(record.waited_s, "edgebed_ps_log_wait_seconds_total")

    return {Appended: observe_appended}


def phases(families: Families) -> Observers:
    """Steps of a worker, and the seconds of their phases."""
    iterations = families.child("edgebed_worker_iterations_total")
    durations = families.child("edgebed_worker_step_duration_seconds")
    before = Phases(steps=0, compute_s=0.0, encode_s=0.0, wait_s=0.0, pause_s=0.0)
    begun_s = 0.0
    """Time so far of an iteration that has not ended in the reports before: one that lasts, or froze."""

    def observe_phases(record: Phases) -> None:
        nonlocal before, begun_s
        steps, total_s = max(0, record.steps - before.steps), 0.0
        for phase in closed_values("edgebed_worker_phase_seconds_total", "phase"):
            grown_s = max(0.0, getattr(record, f"{phase}_s") - getattr(before, f"{phase}_s"))
            families.child("edgebed_worker_phase_seconds_total", phase).inc(grown_s)
            total_s += grown_s
        late_s = total_s - REPORT_S if total_s > 2 * REPORT_S else 0.0  # the node stood still: in one of its iterations
        if steps:
            mean_s = (total_s - late_s) / steps
            durations.observe(begun_s + late_s + mean_s)
            for _ in range(min(steps, STEPS_MAX) - 1):
                durations.observe(mean_s)
            begun_s = 0.0
        elif record.steps:  # before its first step a worker waits for all others
            begun_s += total_s
        iterations.inc(steps)
        before = record

    return {Phases: observe_phases}


def shard_steps(families: Families) -> Observers:
    """Steps of a shard."""
    steps = families.child("edgebed_shard_steps_total")
    return {Step: lambda _: steps.inc()}


def modules(families: Families) -> Observers:
    """Work on gradient modules, and how well they learn."""

    def observe_phases(record: ShardPhases) -> None:
        for phase in closed_values("edgebed_shard_phase_seconds_total", "phase"):
            families.raise_to(getattr(record, f"{phase}_s"), "edgebed_shard_phase_seconds_total", phase)

    def observe_taught(record: Taught) -> None:
        of = record.shard, "inputs" if record.inputs else "gradient"
        families.child("edgebed_shard_taught_total", *of).inc()
        families.child("edgebed_shard_taught_loss_total", *of).inc(record.loss)

    return {ShardPhases: observe_phases, Taught: observe_taught}


def evaluations(families: Families) -> Observers:
    """Models that were evaluated."""
    count = families.child("edgebed_evaluations_total")
    return {Evaluated: lambda _: count.inc()}


def dropped(families: Families) -> Observers:
    """Messages that nobody could read."""

    def observe_dropped(record: Dropped) -> None:
        families.child("edgebed_messages_dropped_total", record.socket).inc(record.count)

    return {Dropped: observe_dropped}


def starved(families: Families) -> Observers:
    """Seconds in which the node was denied its share of the machine."""
    return {Usage: lambda record: families.raise_to(record.starved_s, "edgebed_starved_seconds_total")}


def conditions(families: Families) -> Observers:
    """What was asked of a node's link, what holds, and what the node was denied."""
    interface = ""
    transfers: dict[tuple[str, str, str], Transfers] = {}
    observe_starved = starved(families)[Usage]

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
            if bit_s is None:
                families.forget(*key)
            else:
                families.child(*key).set(bit_s / 8)
        families.child("edgebed_link_differs").set(1 if record.problem else 0)

    def observe_usage(record: Usage) -> None:
        observe_starved(record)
        families.raise_to(record.uplink_drops, "edgebed_link_dropped_packets_total", "egress")
        families.raise_to(record.downlink_drops, "edgebed_link_dropped_packets_total", "ingress")
        if interface and "edgebed_ps_updates_total" not in families:  # the server's are in its `Traffic`
            families.raise_to(record.uplink_bytes, "edgebed_link_bytes_total", "egress", interface)
            families.raise_to(record.downlink_bytes, "edgebed_link_bytes_total", "ingress", interface)

    def observe_transfers(record: Transfers) -> None:
        transfers[record.name, record.direction, record.to] = record
        everybody = transfers.values()
        families.raise_to(sum(each.time_s for each in everybody), "edgebed_transfer_seconds_total")
        families.raise_to(sum(each.asked_s for each in everybody), "edgebed_transfer_asked_seconds_total")
        families.raise_to(sum(each.impossible for each in everybody), "edgebed_transfer_impossible_total")

    return {Link: observe_link, Usage: observe_usage, Transfers: observe_transfers}
