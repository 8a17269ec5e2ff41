"""The text that promtool reads: Prometheus' own parser finds in it what was put in."""

import io
import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from edgebed.metrics.openmetrics import SampleStore

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)
VALUES = st.floats(allow_infinity=False) | st.sampled_from([math.inf, -math.inf])


def parsed(book: SampleStore) -> dict[tuple, list[tuple[float, float]]]:
    """Series -> (Unix time, value) of each of its samples."""
    text = io.StringIO()
    book.write(text)
    found: dict[tuple, list[tuple[float, float]]] = {}
    for family in text_string_to_metric_families(text.getvalue()):
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            found.setdefault(key, []).append((float(sample.timestamp), sample.value))
    return found


def same(a: float, b: float) -> bool:
    """Equal, or both no number."""
    return a == b or (math.isnan(a) and math.isnan(b))


@given(st.lists(st.tuples(TEXTS, VALUES), max_size=8))
def test_what_is_written_can_be_read(samples: list[tuple[str, float]]) -> None:
    """Whatever labels and values there are: each series once, its samples in order."""
    book = SampleStore()
    for at_s, (label, value) in enumerate(samples):
        book.add(float(at_s), [GaugeMetricFamily("edgebed_x", 'A "gauge"\\\n.', value)], {"run": label})
        book.add(float(at_s), [CounterMetricFamily("edgebed_y", "A counter.", at_s)], {"run": label})

    found = parsed(book)
    assert book.samples == 2 * len(samples) == sum(map(len, found.values()))
    for at_s, (label, value) in enumerate(samples):
        read = dict(found["edgebed_x", ("run", label)])
        assert same(read[at_s], value)
        assert dict(found["edgebed_y_total", ("run", label)])[at_s] == at_s


def test_a_series_has_one_value_at_a_time_and_goes_forward() -> None:
    """A node that was read when it stopped is not read again at that time."""
    book = SampleStore()
    for at_s, value in ((5.0, 1.0), (5.0, 2.0), (4.0, 3.0), (6.0, 4.0)):
        book.add(at_s, [GaugeMetricFamily("edgebed_x", "A gauge.", value)], {})

    assert list(parsed(book).values()) == [[(5.0, 1.0), (6.0, 4.0)]]
    assert (book.first_s, book.last_s, book.samples) == (4.0, 6.0, 2)
