"""Tests of the table of actions: what one takes away another gives back, and all is told where it is done."""

from typing import get_args

from edgebed.core.actions import ACTIONS, BRINGS_BACK, TAKES_AWAY, Action


def test_every_action_is_declared_and_every_loss_can_be_undone():
    """A node that is away comes back by an action alone, so each that takes it away has one that undoes it."""
    undone = {action for traits in ACTIONS.values() for action in traits.undoes}

    assert tuple(ACTIONS) == get_args(Action)
    assert undone == TAKES_AWAY
    assert not BRINGS_BACK & TAKES_AWAY


def test_what_is_undone_lasts_as_long_as_what_undoes_it():
    """What is done to a node that is not there must be undone there, too; a launch makes a node that is."""
    lasting = {name: traits.outlasts for name, traits in ACTIONS.items()}
    assert all(lasting[name] == lasting[undone] for name, traits in ACTIONS.items() for undone in traits.undoes)
