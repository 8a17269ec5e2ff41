"""The Prometheus objects of one role's metrics, made from the table, in a registry of their own."""

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from edgebed.metrics import table

disable_created_metrics()  # type: ignore[no-untyped-call] # a second time series for each series, which nobody reads

_TYPES: dict[str, type[Counter] | type[Gauge] | type[Histogram]] = {
    "counter": Counter,
    "gauge": Gauge,
    "histogram": Histogram,
}


class Families:
    """All metrics of a role by name, but for those of resources."""

    def __init__(self, role: str, registry: CollectorRegistry) -> None:
        assert role in table.ROLES
        self.registry = registry
        self._metrics: dict[str, Any] = {
            metric.name: _make(metric, registry)
            for metric in table.METRICS
            if role in metric.roles and metric not in table.RESOURCE_METRICS
        }
        self._children: dict[tuple[str, ...], Any] = {}
        self._totals: dict[tuple[str, ...], float] = {}

    def add(self, metric: table.Metric) -> None:
        """Have a metric that the table has not, as of an own objective's measure; nothing where it is there."""
        if metric.name not in self._metrics:
            self._metrics[metric.name] = _make(metric, self.registry)

    def __contains__(self, name: object) -> bool:
        """Whether the role has a metric of that name."""
        return name in self._metrics

    def child(self, name: str, *values: str) -> Any:
        """A metric's series with these label values; looked up once, since `labels()` costs six times an increment."""
        key = (name, *values)
        child = self._children.get(key)
        if child is None:
            metric = self._metrics[name]
            child = self._children[key] = metric.labels(*values) if values else metric
        return child

    def raise_to(self, total: float | None, name: str, *values: str) -> None:
        """Raise a counter to `total`, the sum so far; None: not known."""
        if total is not None:
            key = (name, *values)
            self.child(*key).inc(max(0, total - self._totals.get(key, 0)))
            self._totals[key] = total

    def begin_again(self, name: str, *values: str) -> None:
        """Have the next total of a counter be one that began at 0."""
        self._totals.pop((name, *values), None)

    def forget(self, name: str, *values: str) -> None:
        """Remove a series, if it is there."""
        if self._children.pop((name, *values), None):
            self._metrics[name].remove(*values)

    def clear(self, metrics: Iterable[table.Metric]) -> None:
        """Remove all series of these metrics."""
        for metric in metrics:
            self._metrics[metric.name].clear()
        self._children.clear()
        self._totals.clear()


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


def closed_values(name: str, label_name: str) -> tuple[str, ...]:
    """All values of a closed label."""
    return next(
        label.examples for metric in table.METRICS if metric.name == name for label in metric.labels
        if label.name == label_name
    )  # fmt: skip
