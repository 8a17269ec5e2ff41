"""The declarations keep Prometheus' conventions, and docs/metrics.md says what they say."""

import re

import pytest

from docs.generate import metrics as metrics_reference
from edgebed.metrics import table

MEASURES = ("bytes", "seconds", "ratio", "cores", "versions")
"""Units that belong into the name; what is merely counted (updates, nodes) is its own noun."""
RESERVED_LABELS = {"le", "quantile", "node", "role", "device_class", "run", "trial", "host", "job", "instance"}
"""Prometheus' own, and those that discovery adds."""

metrics = pytest.mark.parametrize("metric", table.METRICS, ids=lambda metric: metric.name)


@metrics
def test_a_name_has_the_prefix_and_plain_letters(metric):
    """`edgebed_`, lower case, single underscores; digits as in F1."""
    assert re.fullmatch(r"edgebed(_[a-z][a-z0-9]*)+", metric.name)


@metrics
def test_counters_and_only_counters_end_in_total(metric):
    """The suffix tells a reader that a rate makes sense."""
    assert metric.name.endswith("_total") == (metric.type == "counter")


@metrics
def test_a_measure_has_its_base_unit_last(metric):
    """Bytes and seconds, no bits, kilobytes or milliseconds; `_total` alone may follow."""
    assert not re.search(r"bits|milli|micro(?!$)|kilo|mega|percent", metric.name)  # a micro average is none
    if metric.unit in MEASURES:
        assert metric.name.removesuffix("_total").endswith(f"_{metric.unit}")


@metrics
def test_a_help_text_is_a_sentence(metric):
    """It says what is measured, and fits a tooltip."""
    assert metric.help[0].isupper()
    assert metric.help.endswith(".")
    assert len(metric.help) <= 120


@metrics
def test_a_histogram_has_rising_buckets_and_nothing_else_has_any(metric):
    """Prometheus adds the last one, +Inf."""
    assert bool(metric.buckets) == (metric.type == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_names_are_unique():
    """Two metrics of one name would be one to Prometheus."""
    names = [metric.name for metric in table.METRICS]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(
    "metric", [metric for metric in table.METRICS if metric.roles != ("controller",)], ids=lambda metric: metric.name
)
def test_no_label_of_a_node_hides_one_of_discovery(metric):
    """Prometheus would rename it to exported_…; the controller's own are about others, and it is no target's label."""
    assert not {label.name for label in metric.labels} & RESERVED_LABELS


def test_the_document_names_every_metric_once():
    """Every declared metric has its row."""
    rows = re.findall(r"^\| `(edgebed_\w+)` \|", metrics_reference.markdown(), flags=re.MULTILINE)

    assert sorted(rows) == sorted(metric.name for metric in table.METRICS)
