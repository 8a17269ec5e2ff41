"""What a process and its cgroup use, read when Prometheus asks."""

import os
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from edgebed.emulation.resources import cgroup_usage, private_bytes, process_usage
from edgebed.metrics import table

PRIVATE_S = 30.0
"""Seconds for which a reading of private memory is used."""


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
