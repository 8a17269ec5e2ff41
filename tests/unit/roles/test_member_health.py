"""How well a node is, as the controller tells whoever asks."""

import pytest

from edgebed.roles.control.members import Member, State


@pytest.mark.parametrize(
    ("state", "missed", "health"),
    [
        ("expected", 0, "coming"),
        ("joined", 0, "coming"),
        ("ready", 0, "coming"),
        ("running", 0, "good"),
        ("running", 1, "late"),
        ("unresponsive", 2, "failed"),
        ("died", 0, "failed"),
        ("missing", 0, "failed"),
        ("stopped", 0, "over"),
    ],
)
def test_one_missed_check_is_late_and_two_are_a_failure(make_node, state: str, missed: int, health: str) -> None:
    """Whoever is gone has failed, unless it has ended as it should."""
    assert Member(make_node("edge-0", "worker"), state=State(state), missed=missed).health == health
