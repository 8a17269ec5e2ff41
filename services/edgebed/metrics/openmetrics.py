"""Samples of many times as OpenMetrics, the text from which `promtool` makes blocks for Prometheus.

https://prometheus.io/docs/specs/om/open_metrics_spec/: metrics one after the other, each with all its series, each
series with all its samples in order of time.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import TextIO

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.samples import Sample

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class SampleStore:
    """Series by metric, in the order in which they were added."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, dict[str, _Samples]]] = {}
        self.first_s = float("inf")
        self.last_s = float("-inf")
        """Times of the first and the last sample, in Unix seconds."""
        self.samples = 0

    def add(self, at_s: float, families: Iterable[MetricFamily], labels: Mapping[str, str]) -> None:
        """Add values read at `at_s`, in Unix seconds; `labels` are added to their series' own.

        A series that was read at that time, or later, stays as it is.
        """
        self.first_s, self.last_s = min(self.first_s, at_s), max(self.last_s, at_s)
        for family in families:
            if family.name not in self._families:
                self._families[family.name] = (family.type, family.documentation, {})
            series = self._families[family.name][2]
            for sample in family.samples:
                name = _series(sample, labels)
                known = series.get(name)
                if known is None:
                    known = series[name] = _Samples()
                self.samples += known.add(at_s, sample.value)

    def write(self, file: TextIO) -> None:
        """Write all metrics to `file`."""
        for name, (kind, text, series) in self._families.items():
            file.write(f"# HELP {name} {text.translate(_ESCAPES)}\n# TYPE {name} {kind}\n")
            for prefix, samples in series.items():
                file.writelines(samples.lines(prefix))
        file.write("# EOF\n")


class _Samples:
    """The samples of one series."""

    __slots__ = ("times", "values")

    def __init__(self) -> None:
        self.times = array("d")
        self.values = array("d")

    def add(self, at_s: float, value: float) -> int:
        """Add a sample if it is newer than the last; return how many were added: one, or none."""
        if self.times and at_s <= self.times[-1]:
            return 0
        self.times.append(at_s)
        self.values.append(value)
        return 1

    def lines(self, prefix: str) -> Iterable[str]:
        return (f"{prefix} {_number(value)} {at_s:.3f}\n" for at_s, value in zip(self.times, self.values, strict=True))


def _series(sample: Sample, labels: Mapping[str, str]) -> str:
    """A series in OpenMetrics' notation: its name and labels."""
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in {**labels, **sample.labels}.items())
    return f"{sample.name}{{{pairs}}}"


def _number(value: float) -> str:
    return "NaN" if value != value else repr(value).replace("inf", "Inf")  # noqa: PLR0124 # NaN differs from itself
