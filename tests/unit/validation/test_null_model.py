"""What a ranking is measured by: a one-line estimate, what errors would lead to, and what leaving trials out hides."""

import math

import pytest
from scipy.stats import norm

from validation.ranking.drawn_again import drawn_again_of
from validation.ranking.drawn_methods import METHODS, MODEL_BYTES
from validation.ranking.estimate import FRAMED, estimated_times
from validation.ranking.generate import draw_scenario
from validation.ranking.null_model import DEVIATIONS, LivePair, null_model, power_of

LIVE = {"a": {"asgd": 4.0, "fedavg": 8.0, "top-k": 2.0}, "b": {"asgd": 5.0, "fedavg": 10.0}}
PAIRS = [
    LivePair("a", "top-k", "asgd", 2.0),
    LivePair("a", "top-k", "fedavg", 4.0),
    LivePair("a", "asgd", "fedavg", 2.0),
    LivePair("b", "asgd", "fedavg", 2.0),
]


def test_the_estimate_of_a_full_link_is_the_time_of_its_bytes() -> None:
    """The saturated server: each method takes as long as the fuller direction of the server's link does."""
    document = draw_scenario(1, 0).document
    found = estimated_times(document)

    assert list(found) == ["asgd", "adacomp", "sync-sgd"]
    bits = 8 * FRAMED * MODEL_BYTES["small"] * document["stop"]["updates"]
    assert found["asgd"] == pytest.approx(bits / 4e6)
    assert found["adacomp"] == pytest.approx(bits * METHODS["adacomp"].pull / 4e6)


def test_what_was_not_drawn_has_no_estimate() -> None:
    """A method with other settings than are drawn, another model or data set, and no number of updates."""
    document = draw_scenario(1, 0).document
    changed = document | {"variants": document["variants"] | {"asgd": {"method": "fedavg"}, "other": {}}}

    assert list(estimated_times(changed)) == ["adacomp", "sync-sgd"]
    assert estimated_times(document | {"task": document["task"] | {"model": "resnet8"}}) == {}
    assert estimated_times(document | {"task": document["task"] | {"data": "mnist"}}) == {}
    assert estimated_times(document | {"stop": {"time": "10s"}}) == {}


def test_the_null_model_is_judged_as_virtual_time_is() -> None:
    """One pair right, one turned, one tied, and errors over mean live times; what has no estimate is left out."""
    estimates = {"a": {"asgd": 4.0, "fedavg": 4.0, "top-k": 6.0}, "b": {"asgd": 6.0, "fedavg": 8.0}, "c": {"asgd": 1.0}}
    found = null_model(LIVE, PAIRS, estimates)

    assert found is not None
    assert (found.tau.pairs, found.tau.turned, found.tau.tied) == (4, 2, 1)
    assert (found.error.places, found.error.largest) == (5, 2.0)
    assert found.error.median == pytest.approx(0.2)
    only = null_model(LIVE, PAIRS, {"b": estimates["b"]})
    assert only is not None
    assert (only.tau.tau, only.error.places) == (1.0, 2)
    assert null_model(LIVE, PAIRS, {}) is None


@pytest.mark.parametrize("ratio", [1.02, 1.1, 1.5])
def test_the_power_of_one_pair_is_that_of_the_normal_distribution(ratio: float) -> None:
    """Its order is right with the probability that two independent errors do not turn it."""
    pair = LivePair("a", "asgd", "fedavg", ratio)
    for found, deviation in zip(power_of([pair]), DEVIATIONS, strict=True):
        right = norm.cdf(math.log(ratio) / (deviation * math.sqrt(2)))
        assert (found.deviation, found.tau) == (deviation, pytest.approx(2 * right - 1, abs=0.06))


def test_larger_errors_leave_less_of_tau() -> None:
    """The mean falls, and is then within the range of the draws; without a pair there is nothing to say."""
    found = power_of([pair._replace(ratio=1.1) for pair in PAIRS])
    taus = [each.tau for each in found]

    assert taus == sorted(taus, reverse=True)
    assert taus[0] == 1.0
    assert taus[-1] < 1.0
    assert found[-1].low < taus[-1] < found[-1].high
    assert power_of([]) == ()


def test_trials_drawn_again_are_set_against_those_that_count() -> None:
    """By the ratio of their times, as far as both are there; the rest is counted."""
    found = drawn_again_of([(11.0, 10.0), (9.0, 10.0), (10.0, 10.0), (None, 10.0), (5.0, None), (None, None)])

    assert (found.trials, found.without_time, found.without_other, found.compared) == (6, 2, 1, 3)
    assert found.ratio == 1.0
    assert found.size_p95 == pytest.approx(0.1)
    assert drawn_again_of([]).ratio is None
