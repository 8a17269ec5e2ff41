"""What a measure of a shorter run may come to in a training as long as the paper's."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from learning_curves import learned

from edgebed.studies.finished import FinishedTrial
from edgebed.studies.papers.measuring import accuracy, difference, of_summary
from edgebed.studies.papers.paper import AtLeast, Near, Never, Row, Sign
from edgebed.studies.reproduction.findings import can_decide, judge
from edgebed.studies.reproduction.lengthening import has_levelled, lengthened, over_lengths
from edgebed.studies.statistics import ConfidenceInterval, interval

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
    counted = replace(whole, summary=msgspec.structs.replace(whole.summary, entries_mean=7.0))
    assert of_summary("a", "entries_mean")({"a": counted}) == 7.0
    assert lengthened(of_summary("a", "entries_mean"), {"a": counted}, 0.5) is None
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

    def finding(row: Row, to: tuple[float, float] | None) -> str | None:
        bound = None if to is None else ConfidenceInterval(mean=sum(to) / 2, low=to[0], high=to[1], seeds=3)
        return judge(row, by_seed, full_size=False, to_full_size=bound)[1]

    assert finding(near, (98.05, 98.9)) == "reproduced"
    assert finding(near, (98.05, 99.1)) == "so far inside"
    assert finding(near, None) == "so far inside"
    difference_row = Row(what="", cells=("a",), measure=accuracy("a"), unit="points", claim=Sign(sign=-1))
    assert finding(difference_row, (90.0, 99.0)) == "differs"
    assert finding(difference_row, (-1.0, 99.0)) == "so far outside"
    assert judge(near, by_seed)[1] == "reproduced"


CLAIMS = (Near(value=50.0, tolerance=10.0), AtLeast(value=50.0), Sign(sign=1), Sign(sign=-1))


@given(st.sampled_from(CLAIMS), st.sampled_from(["%", "points", "s", "x"]), st.floats(-90, 90), st.floats(-90, 90))
def test_more_seeds_may_decide_what_seeds_that_are_all_alike_do(claim, unit, value: float, later: float) -> None:
    """So that one seed tells whether it is worth to run others."""
    assume(value != 0)  # of a difference that is none neither sign is found
    row = Row(what="", cells=("a",), measure=lambda _: None, unit=unit, claim=claim)
    bound = over_lengths([value] * 3, [later] * 3)
    _, found = judge(row, dict.fromkeys((1, 2, 3), value), full_size=False, to_full_size=bound)

    assert can_decide(row, value, later) == (found in ("reproduced", "differs"))


def test_without_a_bound_more_seeds_decide_nothing() -> None:
    """An accuracy that was never reached stays so far inside, one that was reached decides; no value tells nothing."""
    claims = {"near": Near(value=50.0, tolerance=10.0), "never": Never()}
    rows = {
        name: Row(what="", cells=("a",), measure=lambda _: None, unit="%", claim=claim)
        for name, claim in claims.items()
    }

    assert not can_decide(rows["near"], 50.0, None)
    assert can_decide(rows["near"], None, None)
    assert not can_decide(rows["never"], None, None)
    assert can_decide(rows["never"], 50.0, None)
