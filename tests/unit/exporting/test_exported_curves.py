"""The curves for viewers: few points that leave nothing out."""

import numpy as np
import pytest
from evaluated import evaluations
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.records import Resumed
from edgebed.exporting.curves import POINTS_MAX, RATES_MAX, curves_of
from edgebed.journal.columns.updates import Updates
from edgebed.journal.series import Series, ShardSeries


def series_of(waits, losses=None, **more):
    """Updates so long after each other, of 100 bytes, each as stale as its number's last digit."""
    count = len(waits)
    number = np.arange(1, count + 1)
    whole = {
        name: np.zeros(count, dtype=np.int64) for name in ("worker", "incarnation", "step", "base", "entries", "bits")
    }
    updates = Updates(
        t=np.cumsum(np.array(waits, dtype=np.float64)), version=number, staleness=number % 10, bytes=100 + 0 * number,
        loss=np.ones(count) if losses is None else losses, ingress_bytes=100 * number,
        egress_bytes=300.0 * number, **whole,
    )  # fmt: skip
    return Series(updates=updates, evaluations=evaluations([], []), **more)


def curves(series):
    """By name."""
    return {curve.name: curve for curve in curves_of(series)}


@given(st.lists(st.integers(0, 10_000_000), min_size=1, max_size=50), st.integers(1, 200))
def test_windows_and_rates_hold_every_update(waits, times):
    """Means weighted by the updates of their windows give the sum, rates by their times the number of updates."""
    waits = [wait / 1e6 for wait in waits * times]  # a journal's times are microseconds
    found = curves(series_of(waits))

    stale = found["training/staleness"]
    assert len(stale.value) <= POINTS_MAX
    held = np.diff(stale.version, prepend=0)
    assert stale.version[-1] == held.sum() == len(waits)
    total = sum(number % 10 for number in range(1, len(waits) + 1))
    assert float(held @ stale.value) == pytest.approx(total)
    ingress = found["training/ingress_bytes"]
    np.testing.assert_array_equal(ingress.value, 100.0 * ingress.version)
    np.testing.assert_array_equal(found["training/egress_bytes"].value, 300.0 * ingress.version)
    np.testing.assert_array_equal(found["training/traffic_bytes"].value, 400.0 * ingress.version)
    if sum(waits) > 0.0:
        rate = found["training/updates_per_s"]
        assert len(rate.value) <= RATES_MAX
        assert float(np.diff(rate.t, prepend=0.0) @ rate.value) == pytest.approx(len(waits))
        assert rate.version[-1] == len(waits)
    for curve in found.values():
        assert (np.diff(curve.version) >= 0).all()
        assert (np.diff(curve.t) >= 0.0).all()


def test_up_to_a_thousand_updates_each_is_a_point():
    """As it was."""
    losses = np.linspace(2.0, 0.1, POINTS_MAX)

    np.testing.assert_array_equal(curves(series_of([0.1] * POINTS_MAX, losses))["training/loss"].value, losses)


def test_a_loss_that_is_not_finite_is_not_averaged_away():
    """Its window is not finite either; the others are."""
    losses = np.ones(3 * POINTS_MAX)
    losses[-1] = np.nan
    found = curves(series_of([0.1] * len(losses), losses))["training/loss"].value

    assert np.isnan(found[-1])
    assert np.isfinite(found[:-1]).all()


def test_layer_wise_training_has_neither_pushes_nor_staleness():
    """Zeros would look like a measurement."""
    resumed = ((0.0, Resumed(history=0, step=0)),)

    assert set(curves(series_of([0.1] * 9, shards=ShardSeries(resumed=resumed)))) == {
        "evaluation/accuracy", "evaluation/loss", "training/loss", "training/updates_per_s"
    }  # fmt: skip


def test_a_trial_without_any_update_has_no_curve_of_updates():
    """Its evaluations alone."""
    assert {curve.name for curve in curves_of(Series.empty())} == {"evaluation/accuracy", "evaluation/loss"}
