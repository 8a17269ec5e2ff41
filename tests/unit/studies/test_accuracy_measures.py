"""Moving averages of the accuracy, the best of them, and what it took to an accuracy."""

import dataclasses

import numpy as np
import pytest
from chen2019.paper import PAPER as CHEN_2019
from evaluated import evaluations
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.measures.task import TaskMeasure
from edgebed.studies.measures import CostToLevel, best_average, moving_average, reach
from edgebed.studies.papers.measuring import accuracy, difference, ratio, resolution, times, updates_to
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.trial_result import FinishedTrial

ACCURACIES = st.lists(st.integers(0, 500).map(lambda right: right / 500), max_size=30)
WINDOWS = st.integers(1, 8)


def evaluated(accuracies, every=100, push_bytes=10):
    """Evaluations after 0, `every`, ... updates; a second is 50 updates."""
    version = np.arange(len(accuracies)) * every
    passed = version * push_bytes
    return evaluations(
        version, accuracies, t=version / 50, ingress_bytes=passed, egress_bytes=3.0 * passed, bits=8 * passed
    )


@given(ACCURACIES, WINDOWS)
def test_a_moving_average_is_the_mean_of_its_window(accuracies, window):
    """Each value with those before it, as few as there are at the beginning."""
    expected = [np.mean(accuracies[max(0, end - window + 1) : end + 1]) for end in range(len(accuracies))]
    assert moving_average(np.array(accuracies), window).tolist() == pytest.approx(expected)


@given(ACCURACIES)
def test_a_window_of_one_changes_nothing(accuracies):
    """To the last bit: a threshold that is met stays met."""
    assert moving_average(np.array(accuracies), 1).tolist() == accuracies


@given(ACCURACIES, WINDOWS)
def test_a_moving_average_stays_within_the_values(accuracies, window):
    """And of values in ascending order it ascends."""
    averages = moving_average(np.sort(np.array(accuracies)), window)
    assert (np.diff(averages) >= -1e-12).all()
    if accuracies:
        assert min(accuracies) - 1e-12 <= averages.min() <= averages.max() <= max(accuracies) + 1e-12


def test_an_average_over_nothing_is_refused():
    """A window has at least one value."""
    with pytest.raises(ValueError, match="over 0 values"):
        moving_average(np.array([0.5]), 0)


def test_the_best_accuracy_is_that_of_a_whole_window():
    """A lucky first evaluation does not count for more than its share."""
    assert best_average(evaluated([0.99, 0.5, 0.7, 0.8]), 2) == pytest.approx(0.75)
    assert best_average(evaluated([0.99, 0.5, 0.7, 0.8])) == 0.99
    assert best_average(evaluated([0.4, 0.6]), 5) == pytest.approx(0.5)
    assert best_average(evaluated([]), 5) is None


@given(ACCURACIES, WINDOWS, st.integers(0, 500).map(lambda right: right / 500))
def test_an_accuracy_is_reached_exactly_if_the_best_is_as_high(accuracies, window, wanted):
    """The two measures never contradict each other; fewer evaluations than a window reach nothing."""
    evaluations = evaluated(accuracies)
    best = best_average(evaluations, window)
    is_reached = len(accuracies) >= window and best is not None and best >= wanted - 1e-9
    assert (reach(evaluations, wanted, window) is not None) == is_reached


@given(st.lists(st.integers(0, 500).map(lambda right: right / 500), min_size=1, max_size=30), WINDOWS)
def test_the_best_accuracy_itself_is_reached(accuracies, window):
    """Where there is a whole window; and nothing above it is."""
    evaluations = evaluated(accuracies)
    best = best_average(evaluations, window)
    assert (reach(evaluations, best, window) is not None) == (len(accuracies) >= window)
    assert reach(evaluations, best + 1e-6, window) is None


@given(st.lists(st.tuples(*[st.integers(0, 500).map(lambda n: n / 500)] * 3), min_size=1, max_size=20), WINDOWS)
def test_what_validation_chooses_does_not_depend_on_the_test_part(accuracies, window):
    """Whatever is measured there: the version, the level that is reached, and which test value is told."""
    validation, *tests = (list(each) for each in zip(*accuracies, strict=True))
    losses = [0.0] * len(validation)
    columns = {"accuracy": np.array(validation), "loss": np.array(losses)}
    first, second = (dataclasses.replace(evaluated(each), validation=columns) for each in tests)
    wanted = evaluated(validation)

    place = wanted.chosen_version() // 100
    assert first.chosen_version() == second.chosen_version() == wanted.chosen_version()
    assert (first.best()["accuracy"], second.best()["accuracy"]) == (tests[0][place], tests[1][place])
    assert first.validated()["accuracy"] == max(validation) == wanted.best()["accuracy"]
    assert reach(first, 0.5, window) == reach(second, 0.5, window) == reach(wanted, 0.5, window)
    averages = moving_average(np.array(validation), window)
    chosen = [k for k, value in enumerate(averages) if value == best_average(wanted, window)]
    assert best_average(first, window) in moving_average(np.array(tests[0]), window)[chosen]


def test_without_a_validation_part_the_test_part_chooses():
    """As it has no other."""
    found = evaluated([0.1, 0.9, 0.4])

    assert (found.selects_by, found.chosen_version(), found.validated()) == ("test", 100, {})
    assert (found.best()["accuracy"], found.last()["accuracy"]) == (0.9, 0.4)


@given(ACCURACIES, WINDOWS, st.floats(0, 1), st.floats(0, 1))
def test_more_takes_longer(accuracies, window, one, other):
    """A higher accuracy is reached no sooner, and only if the lower one is."""
    evaluations = evaluated(accuracies)
    low, high = (reach(evaluations, wanted, window) for wanted in sorted((one, other)))
    if high is not None:
        assert low is not None
        assert (low.updates, low.time_s, low.ingress_bytes) <= (high.updates, high.time_s, high.ingress_bytes)


def test_what_had_passed_when_it_was_reached():
    """Of the evaluation at the end of the first window that was high enough."""
    evaluations = evaluated([0.1, 0.98, 0.5, 0.97, 0.97, 0.97])
    assert reach(evaluations, 0.97) == CostToLevel(
        updates=100, time_s=2.0, ingress_bytes=1000, since=1.0, egress_bytes=3000, traffic_bytes=4000
    )
    assert reach(evaluations, 0.97, 3) == CostToLevel(
        updates=500, time_s=10.0, ingress_bytes=5000, since=0.2, egress_bytes=15_000, traffic_bytes=20_000
    )
    assert reach(evaluations, 0.99) is None


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_rounding_hides_no_accuracy(window):
    """A mean of the same accuracies is that accuracy, whatever the last bit says."""
    assert reach(evaluated([0.97] * 10), 0.97, window).updates == 100 * (window - 1)


def trials_of(**accuracies):
    """Cells with these evaluations, every 100 updates."""
    return {
        cell: FinishedTrial(plan=None, summary=None, evaluations=evaluated(values))
        for cell, values in accuracies.items()
    }


def test_what_is_taken_to_an_accuracy_is_known_as_finely_as_it_was_evaluated():
    """A hundred of 200 updates; a ratio adds the shares of both, a multiple and a difference their widths."""
    trials = trials_of(a=[0.1, 0.5, 0.9], b=[0.1, 0.5, 0.6, 0.7, 0.9])
    a, b = updates_to("a", 0.9), updates_to("b", 0.9)

    assert (a(trials), resolution(a, trials)) == (200, 100)
    assert (b(trials), resolution(b, trials)) == (400, 100)
    assert resolution(ratio(a, b), trials) == pytest.approx(200 / 400 * (1 / 2 + 1 / 4))
    assert resolution(times(a, 3), trials) == 300
    assert resolution(difference(a, b), trials) == 200


def test_accuracies_and_what_was_never_reached_have_no_width():
    """Nothing is added to where their intervals end."""
    trials = trials_of(a=[0.1, 0.5], b=[0.1, 0.9])

    assert resolution(difference(accuracy("a"), accuracy("b")), trials) == 0
    assert resolution(ratio(updates_to("a", 0.9), updates_to("b", 0.9)), trials) == 0


def test_two_that_reach_it_at_the_same_evaluation_do_not_contradict_that_one_takes_twice_as_long():
    """As published for depth, where both are seen to be there at the second evaluation."""
    row = CHEN_2019.rows["depth-slows"]
    trials = trials_of(**{cell: [0.1, 0.5, 0.9] for cell in row.cells})
    value = row.measure(trials)

    assert (value, resolution(row.measure, trials)) == (1.0, 1.0)
    found = judge(row, {1: value, 2: value}, resolution=resolution(row.measure, trials))
    assert found.finding == "not distinguishable"
    assert judge(row, {1: value, 2: value}).finding == "differs"


def test_what_another_task_measures_is_never_reached():
    """Arms of a comparison may measure different things."""
    assert reach(evaluated([0.9]), 0.5, 1, TaskMeasure(name="perplexity")) is None
