"""A node's Prometheus metrics, fed with the records that go to the journal.

`table.py` declares them; this file makes the metrics of one role in a registry of their own and updates them:

    records (Update, Phases, …) --> observe()  --> groups.py -->
    payload, queue of the shell --> count_bytes()            --> registry <-- scraped over HTTP (discovery.py)
    /proc, cgroup               --> resources.py, at each scrape -->

The controller's are in `trial_metrics.py`. The journal stays the source of every figure in a report; metrics are the
live view of it.
"""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from edgebed.core.records import Record
from edgebed.metrics import groups, table
from edgebed.metrics.families import Families
from edgebed.metrics.resources import ResourceCollector

GROUPS: Mapping[str, tuple[groups.Group, ...]] = {
    table.SERVER: (groups.updates, groups.traffic, groups.log, groups.dropped, groups.conditions),
    table.WORKER: (groups.phases, groups.shard_steps, groups.modules, groups.dropped, groups.conditions),
    table.EVALUATOR: (groups.evaluations, groups.dropped, groups.starved),
    table.STORE: (groups.dropped, groups.conditions),
    table.MODULES: (groups.modules, groups.dropped, groups.conditions),
}
"""Groups of metrics by role; no two of a role are fed by the same kind of record."""


class NodeMetrics:
    """The metrics of one node, by its role.

    `registry` is a fresh one unless given. Only the shell's thread calls the methods; scrapes may come at any time.
    """

    def __init__(
        self, role: str, registry: CollectorRegistry | None = None, *, resources: Collector | None = None
    ) -> None:
        """`resources` reads what the node uses (None: this process)."""
        self.registry = registry or CollectorRegistry()
        self._families = Families(role, self.registry)
        self.registry.register(resources or ResourceCollector())
        owner = "ps" if role == table.SERVER else "client"
        self._bytes_names = {way: f"edgebed_{owner}_{way}_bytes_total" for way in ("ingress", "egress")}
        self._observers: dict[type[Record], Any] = {}
        for group in GROUPS[role]:
            self._observers |= group(self._families)

    def observe(self, record: Record) -> None:
        """Take a record of the journal into account; those that say nothing about this role change nothing."""
        observer = self._observers.get(type(record))
        if observer is not None:
            observer(record)

    def count_bytes(self, direction: str, kind: str, payload_bytes: int) -> None:
        """Count a message of `kind` that came in (`ingress`) or went out (`egress`) on the data network."""
        self._families.child(self._bytes_names[direction], kind).inc(payload_bytes)
        if direction == "ingress":
            self._families.child("edgebed_messages_received_total", kind).inc()

    def raise_bytes(self, direction: str, kind: str, payload_bytes: int) -> None:
        """Set the bytes of `kind` that have come in or gone out so far."""
        self._families.raise_to(payload_bytes, self._bytes_names[direction], kind)

    def iterated(self) -> None:
        """Worker: count a gradient that no `Phases` report."""
        self._families.child("edgebed_worker_iterations_total").inc()

    def queue_length(self, length: int) -> None:
        """Server: set the number of messages that have been received and not yet handled."""
        self._families.child("edgebed_ps_queue_length").set(length)

    def shard_queues(self, lengths: Mapping[str, int]) -> None:
        """Shard, or node of modules: set how many inputs and gradients it has queued, by kind."""
        for queue, length in lengths.items():
            self._families.child("edgebed_shard_queue_length", queue).set(length)
