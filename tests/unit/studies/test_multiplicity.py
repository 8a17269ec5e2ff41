"""The tests of a table are corrected together: chance alone gives one of twenty tables a finding."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from edgebed.studies.papers.paper import AtLeast, Claim, Near, Never, Paper, Row, Sign, Table
from edgebed.studies.reproduction.findings import judge
from edgebed.studies.reproduction.multiplicity import ERROR, LEAST, holm, p_value
from edgebed.studies.reproduction.reproduction import _judged, _Judgements, _Measured
from edgebed.studies.statistics import interval

SEEDS = 5
TABLES = 400
ROWS = 10
FOUND = ("reproduced", "in direction", "differs", "equal")
P_VALUES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1) | st.floats(0, 0.05), max_size=8)


def row(claim: Claim | None, **settings: Any) -> Row:
    """One that is steady, of one cell."""
    return Row(what="", cells=("a",), measure=lambda _: None, unit="x", claim=claim, **settings)


def p_of(claim: Claim, values: Sequence[float]) -> float:
    """The p value of these values, by seed."""
    return p_value(lambda at: judge(row(claim), dict(enumerate(values, start=1)), confidence=at))


def judged(rows: Mapping[str, Row], values: Mapping[str, Sequence[float | None]]) -> dict[str, _Judgements]:
    """What is found of the rows of a table with these values."""
    table = Table(title="T", seeds=SEEDS, rows=rows)
    paper = Paper(name="p", citation="", text="", window=1, cells={}, tables=(table,))
    needed = {name: {seed: {} for seed in range(1, SEEDS + 1)} for name in rows}
    measured = {name: _Measured(dict(enumerate(values[name], start=1)), [], []) for name in rows}
    return _judged(paper, table, needed, measured)


@pytest.mark.parametrize("values", [(0.5, 1.0, 1.5), (0.2, 0.21, 0.19), (-3.0, -1.0, -2.0, -2.5, -1.5)])
def test_a_p_value_of_a_sign_is_that_of_students_t(values: tuple[float, ...]) -> None:
    """Two-sided, in whichever direction the finding is."""
    count = len(values)
    t = np.mean(values) / np.std(values, ddof=1) * count**0.5
    wanted = 2 * stdtr(count - 1, -abs(t))

    assert (wanted < ERROR) == interval(values).excludes(0.0)
    for sign in (1, -1):
        assert p_of(Sign(sign=sign), values) == pytest.approx(wanted if wanted < ERROR else 1.0, rel=1e-6)


def test_a_p_value_of_a_border_is_that_of_the_distance_from_it() -> None:
    """As of a least value; of what is not found it is one, and of what has no scatter nearly nothing."""
    values = (3.0, 3.1, 3.2, 2.9)
    t = (np.mean(values) - 2.7) / np.std(values, ddof=1) * 2

    assert p_of(AtLeast(value=2.7), values) == pytest.approx(2 * stdtr(3, -t), rel=1e-6)
    assert p_of(AtLeast(value=3.0), values) == 1.0
    assert p_of(AtLeast(value=3.0), (4.0,)) == 1.0
    assert p_of(AtLeast(value=3.0), (4.0, 4.0)) == LEAST


def test_the_size_of_an_effect_has_no_part_in_its_p_value() -> None:
    """The direction is what is tested: a surer interval may leave it and not tell the size any more."""
    values = (0.14, 0.18, 0.2, 0.22, 0.26)
    by_seed = dict(enumerate(values, start=1))
    sized = row(Sign(sign=1, value=0.2))

    assert [judge(sized, by_seed, confidence=at).finding for at in (0.95, 0.998)] == ["reproduced", "in direction"]
    assert p_of(Sign(sign=1, value=0.2), values) == pytest.approx(p_of(Sign(sign=1), values))


@given(
    st.lists(st.floats(-10, 10), min_size=2, max_size=6),
    st.sampled_from(
        [Sign(sign=1), Sign(sign=-1, value=-2.0, margin=0.5), AtLeast(value=1), Near(value=1, tolerance=2)]
    ),
)
def test_a_finding_is_come_to_at_its_p_value_and_not_below(values: list[float], claim: Claim) -> None:
    """And at each larger error up to one in twenty."""
    at = partial(judge, row(claim), dict(enumerate(values, start=1)))
    p = p_value(lambda confidence: at(confidence=confidence))
    found = at().finding

    if found in FOUND:
        alike = {"reproduced", "in direction"} if found in ("reproduced", "in direction") else {found}
        assert LEAST <= p <= ERROR
        assert at(confidence=1 - p).finding in alike
        assert at(confidence=1 - (p + ERROR) / 2).finding in alike
        assert p == LEAST or at(confidence=1 - p * 0.99).finding not in alike
    else:
        assert p == 1.0


@pytest.mark.parametrize(
    ("p_values", "tests", "errors"),
    [
        ((0.001, 0.012, 0.02, 0.04), 4, (0.05 / 4, 0.05 / 3, 0.05 / 2, 0.05)),
        ((0.001, 0.03, 0.04, 0.049), 4, (0.05 / 4, 0.05 / 3, 0.05 / 3, 0.05 / 3)),
        ((0.02, 0.021), 2, (0.05 / 2, 0.05)),
        ((0.03, 0.031), 2, (0.05 / 2, 0.05 / 2)),
        ((0.02, 0.021), 5, (0.05 / 5, 0.05 / 5)),
        ((0.001, 0.012), 5, (0.05 / 5, 0.05 / 4)),
        ((0.04,), 1, (0.05,)),
        ((ERROR / 2, ERROR), 2, (0.05 / 2, 0.05)),
        ((), 3, ()),
    ],
)
def test_from_the_smallest_on_each_test_has_its_step_of_the_ladder(
    p_values: tuple[float, ...], tests: int, errors: tuple[float, ...]
) -> None:
    """One over the number that is left, until one does not hold; those that a table states and has not run count."""
    names = "abcd"[: len(p_values)]
    given = dict(zip(names, p_values, strict=True))

    for turned in (given, dict(reversed(given.items()))):
        levels = holm(turned, tests)
        assert [1 - levels[name] for name in names] == pytest.approx(list(errors))


@given(P_VALUES, st.integers(0, 5))
def test_no_correction_finds_more_than_none_or_less_than_dividing_by_all(p_values: dict[str, float], more: int) -> None:
    """The smallest p value is tested at one over all; what holds has no smaller beside it that does not."""
    tests = len(p_values) + more
    levels = {name: 1 - confidence for name, confidence in holm(p_values, tests).items()}
    found = {name for name, p in p_values.items() if p <= levels[name]}

    assert levels.keys() == p_values.keys()
    assert all(level <= ERROR + 1e-12 for level in levels.values())
    assert found >= {name for name, p in p_values.items() if p < ERROR / max(tests, 1) - 1e-12}
    assert all(p_values[name] <= p_values[other] for name in found for other in p_values.keys() - found)
    if p_values:
        assert levels[min(p_values, key=p_values.__getitem__)] == pytest.approx(ERROR / tests)


@given(P_VALUES, st.integers(1, 5))
def test_more_tests_find_no_more(p_values: dict[str, float], more: int) -> None:
    """A table that states more rows is held to more."""
    few, many = (holm(p_values, len(p_values) + each) for each in (0, more))

    assert all(few[name] <= many[name] for name in p_values)


def test_what_one_test_would_find_a_table_of_ten_does_not() -> None:
    """Nor a table that states nine others, which have not been run; what it would be by itself is kept."""
    close, clear = (0.1, 0.3, 0.5, 0.2, 0.05), (0.19, 0.2, 0.21, 0.2, 0.2)
    rows = {name: row(Sign(sign=1)) for name in "abcdefghij"}

    alone = judged({"a": rows["a"]}, {"a": close})["a"]
    assert (alone.found.finding, alone.by_itself.finding) == ("reproduced", "reproduced")
    for others in (clear, ()):
        first = judged(rows, dict.fromkeys(rows, others) | {"a": close})["a"]
        assert first.by_itself.finding == "reproduced"
        assert first.found.finding == ("reproduced" if others else "not distinguishable")
        assert first.found.measured == alone.found.measured


def test_what_does_not_count_for_a_claim_is_no_test() -> None:
    """Another way to measure it, arithmetic, a claim of never, one that is exact: they take nothing from the others."""
    close = (0.1, 0.3, 0.5, 0.2, 0.05)
    others = {
        "beside": row(Sign(sign=1), beside="a"),
        "arithmetic": row(Sign(sign=1), arithmetic=True),
        "open": row(None),
        "never": row(Never()),
        "exact": row(Sign(sign=1), exact=True),
    }
    values = dict.fromkeys(("a", *others), close) | {"never": (None, *close[1:]), "exact": ()}
    found = {name: each.found.finding for name, each in judged({"a": row(Sign(sign=1)), **others}, values).items()}

    assert found == {
        "a": "reproduced",
        "beside": "reproduced",
        "arithmetic": "consistent",
        "open": None,
        "never": "not distinguishable",
        "exact": None,
    }


def test_a_row_with_fewer_seeds_than_were_stated_has_no_finding_and_takes_a_step() -> None:
    """As one that has not been run: who runs a few first does not choose what is tested."""
    close, clear = (0.1, 0.3, 0.5, 0.2, 0.05), (0.19, 0.2, 0.21, 0.2)
    found = judged({"a": row(Sign(sign=1)), "few": row(Sign(sign=1))}, {"a": close, "few": clear})

    assert (found["few"].found.finding, found["few"].by_itself.finding) == (None, None)
    assert (found["a"].found.finding, found["a"].by_itself.finding) == ("not distinguishable", "reproduced")


@pytest.mark.slow
def test_of_tables_without_anything_to_find_one_in_twenty_has_a_finding() -> None:
    """Of 400 with ten rows of normal scatter around zero; without the correction eight of twenty had."""
    draw = np.random.default_rng(1)
    rows = {str(number): row(Sign(sign=1)) for number in range(ROWS)}
    have = dict.fromkeys(_Judgements._fields, 0)
    for _ in range(TABLES):
        found = judged(rows, {name: draw.normal(size=SEEDS).tolist() for name in rows})
        for each in have:
            have[each] += any(getattr(one, each).finding in FOUND for one in found.values())

    chance = 3 * math.sqrt(ERROR * (1 - ERROR) / TABLES)
    assert have["found"] / TABLES == pytest.approx(ERROR, abs=chance)
    assert have["by_itself"] / TABLES == pytest.approx(1 - (1 - ERROR) ** ROWS, abs=0.08)
