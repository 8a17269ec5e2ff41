"""What each aggregation promises, read from the journals of whole trials with workers of any speed."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core import records

Simulate = Callable[..., Any]  # conftest.py
UPDATES = 120
SPEEDS = st.lists(st.sampled_from([0.05, 0.2, 0.5, 1.0, 3.0]), min_size=2, max_size=5)
FEW = settings(max_examples=settings.default.max_examples // 3)


def trained(simulate: Simulate, method: dict[str, Any], speeds: list[float], pauses: str = "5ms") -> Any:
    """A trial with a worker of each speed, whose pauses differ from one to the next."""
    outcome = simulate(
        {
            "name": "laws",
            "seed": 4,
            "task": {"data": "digits", "fraction": 0.2, "model": "small", "batch_size": 5, "gradient_time": "10ms"},
            "method": method,
            "fleet": {
                f"w{k}": {"compute_speed": speed, "waiting": {"uniform": ["0s", pauses]}}
                for k, speed in enumerate(speeds)
            },
            "evaluation": {"every": f"{UPDATES} updates"},
            "stop": {"updates": UPDATES},
        }
    )
    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes, outcome.accounting.problems
    return outcome


def updates_of(outcome: Any) -> list[records.Update]:
    """In order."""
    return [record for _, record in outcome.of(records.Update)]


def steps_of(outcome: Any) -> dict[str, list[int]]:
    """Which of its own pushes of each worker are in the model, in order."""
    found: dict[str, list[int]] = {}
    for update in updates_of(outcome):
        found.setdefault(update.worker, []).append(update.step)
    return found


@pytest.mark.parametrize("bound", [0, 1, 4])
@FEW
@given(speeds=SPEEDS)
def test_nobody_computes_further_ahead_than_the_bound(simulate: Simulate, bound: int, speeds: list[float]) -> None:
    """Stale-synchronous: a worker's clock when it began, less the slowest's when it pushed, is never more."""
    outcome = trained(simulate, {"preset": "ssp", "aggregation": {"bound": bound}}, speeds)
    clocks = dict.fromkeys((node.node for node in outcome.plan.workers()), 0)
    for update in updates_of(outcome):
        assert clocks[update.worker] - min(clocks.values()) <= bound
        clocks[update.worker] += 1
    assert max(clocks.values()) - min(clocks.values()) <= bound + 1  # one that has pushed, and waits


def test_the_bound_is_reached_and_is_what_holds_back_the_fast(simulate: Simulate) -> None:
    """Else it would be no law: with a large one the fast worker is far ahead."""
    ahead = {}
    for bound in (2, 1000):
        steps = steps_of(trained(simulate, {"preset": "ssp", "aggregation": {"bound": bound}}, [1.0, 0.05]))
        ahead[bound] = len(steps["w0-0"]) - len(steps["w1-0"])
    assert ahead[2] in (2, 3)
    assert ahead[1000] > 50


@pytest.mark.parametrize("preset", ["softsync", "fedbuff"])
@FEW
@given(speeds=SPEEDS, count=st.integers(1, 7))
def test_the_model_moves_at_every_so_manieth_push_and_none_is_discarded(
    simulate: Simulate, preset: str, speeds: list[float], count: int
) -> None:
    """Each of a group is counted from the same version; of each worker all pushes are in the model, in order."""
    method: dict[str, Any] = {"preset": preset, "aggregation": {"count": count}}
    if preset == "fedbuff":
        method["local_work"] = {"steps": 2}
    outcome = trained(simulate, method, speeds)
    groups = Counter(update.base + update.staleness for update in updates_of(outcome))

    assert set(groups.values()) == {count}
    assert sorted(groups) == list(range(0, len(updates_of(outcome)), count))
    assert all(steps == list(range(len(steps))) for steps in steps_of(outcome).values())
    assert set(outcome.accounting.total.refused) <= {"finished"}


@FEW
@given(speeds=st.lists(st.sampled_from([0.05, 0.2, 0.5, 1.0, 3.0]), min_size=4, max_size=4))
def test_a_round_with_backup_workers_takes_the_first_and_counts_the_late(
    simulate: Simulate, speeds: list[float]
) -> None:
    """Three of four make a round; each gradient that came later is a refused line, and in no model."""
    outcome = trained(simulate, {"preset": "sync-sgd", "aggregation": {"quorum": 0.75}}, speeds)
    rounds = Counter(update.base for update in updates_of(outcome))
    late = [record for _, record in outcome.of(records.Refused) if record.code == "late"]
    applied = {(update.worker, update.step) for update in updates_of(outcome)}

    assert set(rounds.values()) == {3}
    assert all(update.staleness == 0 for update in updates_of(outcome))
    assert outcome.accounting.total.refused.get("late", 0) == len(late)
    assert not applied & {(record.worker, record.step) for record in late}
    assert applied | {(record.worker, record.step) for record in late} >= {
        (worker, step) for worker, steps in steps_of(outcome).items() for step in range(max(steps))
    }  # nothing of anybody's is missing


def test_who_is_always_the_slowest_is_always_late(simulate: Simulate) -> None:
    """It is dropped again and again, and never waited for."""
    outcome = trained(simulate, {"preset": "sync-sgd", "aggregation": {"quorum": 0.75}}, [1.0, 1.0, 1.0, 0.1])
    late = [record.worker for _, record in outcome.of(records.Refused) if record.code == "late"]

    assert set(steps_of(outcome)) == {"w0-0", "w1-0", "w2-0"}
    assert len(late) > 3
    assert set(late) == {"w3-0"}


def test_a_deadline_ends_a_round_so_long_after_its_first_push(simulate: Simulate) -> None:
    """To the microsecond, while one of them never comes in time."""
    method = {"preset": "sync-sgd", "aggregation": {"deadline_s": 0.25}}
    outcome = trained(simulate, method, [1.0, 1.0, 0.001], pauses="0s")
    ended_s = sorted({t for t, _ in outcome.of(records.Update)})
    between_s = [later - earlier for earlier, later in itertools.pairwise(ended_s)]

    assert len(between_s) > 30
    early = [each for each in between_s if each != pytest.approx(0.26, abs=1e-5)]
    assert len(early) <= 2  # the one in which the slow worker's late push brings it the model anew
    assert all(count == 2 for count in Counter(t for t, _ in outcome.of(records.Update)).values())
