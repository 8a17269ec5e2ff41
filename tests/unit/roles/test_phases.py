"""How a shard's time divides: laws of the clock, and what hearts say that they wait for."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.records import ShardPhases
from edgebed.roles.layerwise.phases import OF_JOB, PhaseClock
from edgebed.roles.layerwise.shard_work import ShardJob

NAMES = ("forward", "learn", "teach", "copy", "inputs", "answers")
TURNS = st.lists(st.tuples(st.floats(0.0, 100.0), st.sampled_from((*NAMES, None))), min_size=1, max_size=30)


def total(spent: ShardPhases) -> float:
    """All phases together."""
    return sum(getattr(spent, f"{name}_s") for name in NAMES)


def test_every_job_has_a_phase() -> None:
    """And every phase a field of the record."""
    assert OF_JOB.keys() == set(ShardJob.__args__)
    assert set(ShardPhases.__struct_fields__) == {f"{name}_s" for name in NAMES}


@given(TURNS)
def test_every_instant_is_in_one_phase(turns: list[tuple[float, str | None]]) -> None:
    """Together they are all time but that of no phase, and none ever shrinks."""
    clock, now, idle_s, seen = PhaseClock(), 0.0, 0.0, [ShardPhases()]
    phase: str | None = None
    for gap_s, following in turns:
        idle_s += gap_s if phase is None else 0.0
        now += gap_s
        clock.turn(now, following)  # type: ignore[arg-type]
        phase = following
        seen.append(clock.until(now))

    assert total(seen[-1]) == pytest.approx(now - idle_s)
    for before, after in pairwise(seen):
        assert all(getattr(after, f"{name}_s") >= getattr(before, f"{name}_s") for name in NAMES)


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_looking_changes_nothing(first_s: float, then_s: float) -> None:
    """However often it is read, and a turn to the same phase is none."""
    clock, other = PhaseClock(), PhaseClock()
    for each in (clock, other):
        each.turn(0.0, "learn")
    clock.until(first_s)
    clock.turn(first_s, "learn")

    assert clock.until(first_s + then_s).learn_s == pytest.approx(other.until(first_s + then_s).learn_s)
