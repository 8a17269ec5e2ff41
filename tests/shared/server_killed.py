"""A server without a log that is killed ten times in one run, when it has applied so many updates, for all runtimes."""

from typing import Any

from random_faults import Told

from edgebed.core import records

KILLS = 10
EVERY = 25
"""Updates between two checkpoints."""
UPDATES = 900
CHANCE = 0.02
"""Of 359 images an accuracy of 96 % has a standard deviation of a hundredth, the difference of two one and a half."""
SEEDS = range(1, 4)
"""Of the runs without a kill, whose accuracies tell the spread."""


def scenario_of(seed: int, how: str = "living") -> dict[str, Any]:
    """`living`: nobody is killed; `restart`: each fault kills and launches; `policy`: on_failure launches."""
    kind = {"living": None, "restart": "restart", "policy": "kill"}[how]
    kills = [60 * (k + 1) + 7 * k % 40 for k in range(KILLS)]  # anywhere between two checkpoints
    return {
        "name": f"server-{how}-{seed}",
        "question": "Does a model that lost its server ten times learn as well?",
        "seed": seed,
        "task": {"data": "digits", "split": "iid", "model": "small", "batch_size": 10},
        "method": "asgd",
        "fleet": {"edge": {"count": 4, "waiting": {"exponential": "20ms"}}},
        "evaluation": {"every": "100 updates"},
        "checkpoints": {"every": f"{EVERY} updates"},
        "server": {"durability": "none"},
        "stop": {"updates": UPDATES},
        "on_failure": "restart" if how == "policy" else "ignore",
        "restart_delay": "0s",
        "faults": [{kind: "server", "at_update": k} | _delay(how) for k in kills] if kind else [],
    }


def _delay(how: str) -> dict[str, str]:
    return {"delay": "0s"} if how == "restart" else {}


def accuracy(told: Told) -> float:
    """That of the final model."""
    return next(record.measured["accuracy"] for _, record in reversed(told.of(records.Evaluated)) if record.final)


def check_killed(told: Told, living: list[float]) -> None:
    """It has gone on ten times from the last checkpoint, its books close, and it has learnt as well.

    As well: its accuracy is below the lowest of the `living` runs, if at all, by less than these differ among each
    other, or than chance makes of two accuracies on so few images.
    """
    restored = [record.version for _, record in told.of(records.Restored)]
    killed = [record for _, record in told.of(records.Fault) if record.action == "kill"]
    books = told.accounting

    assert told.ended[1].outcome == "completed"
    assert len(killed) == len(restored) == KILLS
    assert restored == sorted(restored)
    assert {version % EVERY for version in restored} == {0}
    assert books.closes, books.problems
    assert (books.total.applied, books.total.unexplained) == (UPDATES, 0)
    assert books.total.lost_with_server >= KILLS
    assert accuracy(told) >= min(living) - max(max(living) - min(living), CHANCE)
