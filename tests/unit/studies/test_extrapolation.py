"""What a measure of a shorter run may come to in a training as long as the paper's."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_curves import learned

from edgebed.studies.papers.measuring import accuracy, difference, of_summary
from edgebed.studies.papers.paper import AtLeast, AtMost, Near, Row, Sign
from edgebed.studies.reproduction.extrapolation import has_levelled, lengthened, over_lengths
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.statistics import CONFIDENCE, interval
from edgebed.studies.trial_result import FinishedTrial

UPDATES = 64
DOUBLINGS = 3


def trial(at_first: float, each_doubling: float, until: int = UPDATES, power: float = 1.0) -> FinishedTrial:
    """Evaluated after each update; with a power of 1 its accuracy moves as much in each doubling of the updates."""
    version = np.arange(1, until + 1)
    curve = at_first + each_doubling * np.log2(version) ** power
    return learned(version, curve)


@given(st.floats(0, 1), st.floats(-0.1, 0.1))
def test_what_moves_as_much_in_each_doubling_comes_to_where_the_bound_is(at_first: float, each: float) -> None:
    """An eighth of the updates leaves three doublings."""
    short, whole = trial(at_first, each), trial(at_first, each, UPDATES * 2**DOUBLINGS)
    at_last = of_summary("a", "final_accuracy")

    assert lengthened(at_last, {"a": short}, 1 / 2**DOUBLINGS) == pytest.approx(at_last({"a": whole}))
    assert lengthened(at_last, {"a": short}, 1.0) == at_last({"a": short})


def test_a_difference_is_lengthened_with_both_of_its_cells() -> None:
    """One that learns faster in the end overtakes the other."""
    trials = {"a": trial(0.5, 0.01), "b": trial(0.4, 0.02)}
    measure = difference(accuracy("a"), accuracy("b"))

    assert measure(trials) == pytest.approx(4.0)
    assert lengthened(measure, trials, 1 / 2**DOUBLINGS) == pytest.approx(4.0 - DOUBLINGS)


def test_where_half_of_a_run_tells_nothing_there_is_no_bound() -> None:
    """Too few evaluations; a number of the summary that is of all its updates; a seed without a bound."""
    measure = accuracy("a")

    assert lengthened(measure, {"a": trial(0.5, 0.01, 4)}, 0.5) is None
    whole = trial(0.5, 0.01)
    counted = replace(whole, summary=msgspec.structs.replace(whole.summary, updates_per_s=7.0))
    assert of_summary("a", "updates_per_s")({"a": counted}) == 7.0
    assert lengthened(of_summary("a", "updates_per_s"), {"a": counted}, 0.5) is None
    assert over_lengths([1.0, 2.0], [1.0, None]) is None
    assert over_lengths([1.0], [1.0]) is None
    assert over_lengths([], []) is None


def test_a_curve_has_levelled_once_a_doubling_raises_it_less_than_the_one_before() -> None:
    """In the mean over seeds, and each cell's; a run that is too short for three lengths has not been seen to."""
    slower, faster = trial(0.1, 0.1, power=0.5), trial(0.1, 0.01, power=2.0)

    assert has_levelled([{"a": slower}])
    assert not has_levelled([{"a": faster}])
    assert not has_levelled([{"a": slower, "b": faster}])
    assert has_levelled([{"a": slower}, {"a": slower}, {"a": trial(0.1, 0.001, power=2.0)}])
    assert not has_levelled([{"a": trial(0.1, 0.1, 8, power=0.5)}])


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=5), st.floats(0, 1))
def test_the_bound_holds_the_interval_at_every_length_between(pairs: list[tuple[float, float]], part: float) -> None:
    """Each value moves in a line from what was run to what it may come to."""
    run, later = [first for first, _ in pairs], [last for _, last in pairs]
    bound = over_lengths(run, later)
    between = interval([first + part * (last - first) for first, last in pairs])

    assert bound is not None
    assert bound.ends[0] - 1e-6 <= between.ends[0] <= between.ends[1] <= bound.ends[1] + 1e-6


def test_a_finding_that_holds_on_all_that_a_measure_may_come_to_is_final() -> None:
    """And else it is one so far; a training of the paper's length needs no bound."""
    near = Row(what="", cells=("a",), measure=accuracy("a"), unit="%", claim=Near(value=98.5, tolerance=0.5))
    by_seed = {1: 98.1, 2: 98.11, 3: 98.12}

    def finding(row: Row, *later: float | None, confidence: float = CONFIDENCE) -> str | None:
        return judge(row, by_seed, seeds=3, full_size=False, later=later, confidence=confidence).finding

    assert finding(near, 98.8, 98.81, 98.82) == "reproduced"
    assert finding(near, 99.1, 99.11, 99.12) == "so far inside"
    assert finding(near, 98.8, 98.81, None) == "so far inside"
    assert finding(near, 98.5, 98.6, 98.7) == "reproduced"
    assert finding(near, 98.5, 98.6, 98.7, confidence=0.99) == "so far inside"
    assert finding(near) == "so far inside"
    difference_row = Row(what="", cells=("a",), measure=accuracy("a"), unit="points", claim=Sign(sign=-1))
    assert finding(difference_row, 90.0, 90.1, 90.2) == "differs"
    assert finding(difference_row, -1.0, -1.1, -1.2) == "so far outside"
    assert judge(near, by_seed).finding == "reproduced"
    assert judge(near, by_seed, full_size=False, later=[98.8, 98.81, 98.82]).to_full_size == over_lengths(
        list(by_seed.values()), [98.8, 98.81, 98.82]
    )


@pytest.mark.parametrize(
    ("claim", "later", "found"),
    [
        (Sign(sign=1, value=4.0), 2.5, ("reproduced", None)),
        (Sign(sign=1, value=7.0), 3.3, ("in direction", "smaller")),
        (Sign(sign=1, value=7.0), -3.0, ("so far inside", None)),
        (Sign(sign=1, value=1.0), 3.3, ("in direction", "larger")),
        (AtMost(value=4.0, published=2.0), 3.5, ("reproduced", None)),
        (AtMost(value=4.0, published=2.0), 4.5, ("so far inside", None)),
        (AtMost(value=2.0, published=1.0), 2.5, ("differs", None)),
        (AtMost(value=2.0, published=1.0), 1.5, ("so far outside", None)),
    ],
)
def test_a_size_and_a_border_are_final_where_the_last_doubling_leaves_them(
    claim: Sign | AtMost, later: float, found: tuple[str, str | None]
) -> None:
    """Of a difference of three points, by what it may come to."""
    row = Row(what="", cells=("a",), measure=accuracy("a"), unit="points", claim=claim)
    judged = judge(row, {1: 3.0, 2: 3.01, 3: 2.99}, seeds=3, full_size=False, later=[later, later + 0.01, later - 0.01])

    assert (judged.finding, judged.size) == found


CLAIMS = (
    Near(value=50.0, tolerance=10.0), AtLeast(value=50.0), AtMost(value=20.0, published=9.0), Sign(sign=1),
    Sign(sign=-1), Sign(sign=1, value=40.0), Sign(sign=-1, value=-7.0, margin=2.0),
)  # fmt: skip
ALIKE = {"in direction": "reproduced"}


@given(st.sampled_from(CLAIMS), st.sampled_from(["%", "points", "s", "x"]), st.floats(-90, 90), st.floats(-90, 90))
def test_what_is_final_is_found_at_every_length_between(claim, unit, value: float, later: float) -> None:
    """Of seeds that are all alike: in the runs that there are, in the end, and half-way."""
    row = Row(what="", cells=("a",), measure=lambda _: None, unit=unit, claim=claim)
    short, size = judge(row, dict.fromkeys((1, 2, 3), value), full_size=False, later=[later] * 3)[1:3]
    if short not in ("reproduced", "in direction", "differs"):
        return
    to_come = (later,) if unit == "points" or (unit == "%" and later > value) else ()
    for at in (value, *to_come, *((value + each) / 2 for each in to_come)):
        found = judge(row, dict.fromkeys((1, 2, 3), at))
        assert ALIKE.get(found.finding, found.finding) == ALIKE.get(short, short)
        assert size == "not told" or (found.finding, found.size) == (short, size)


@pytest.mark.parametrize(
    ("claim", "values", "later", "found"),
    [
        (Near(value=85.0, tolerance=1.0), (90.0, 90.01, 89.99), (95.0, 95.01, 94.99), ("differs", None)),
        (Sign(sign=1, value=1.0), (3.0, 3.01, 2.99), (9.0, 9.01, 8.99), ("in direction", "larger")),
        (Sign(sign=1, value=7.0), (3.0, 3.01, 2.99), (3.6, 3.61, 3.59), ("in direction", "not told")),
        (Sign(sign=1, value=7.0), (3.0, 3.01, 2.99), (-3.6, -3.61, -3.59), ("so far inside", None)),
    ],
)
def test_an_effect_of_a_short_run_is_final_as_far_as_it_is_the_same_at_both_ends(
    claim: Near | Sign, values: tuple[float, ...], later: tuple[float, ...], found: tuple[str, str | None]
) -> None:
    """Its direction and its size; how far the ends lie apart is no scatter of seeds."""
    row = Row(what="", cells=("a",), measure=lambda _: None, unit="points", claim=claim)
    judged = judge(row, dict(enumerate(values)), full_size=False, later=later)

    assert (judged.finding, judged.size) == found
