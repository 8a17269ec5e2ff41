"""Whose turn it is with what killed controllers have left on this machine's engine, which `edgebed down` removes."""

from contextlib import AbstractContextManager

from one_at_a_time import one_at_a_time


def leftovers() -> AbstractContextManager[None]:
    """For a test that calls `edgebed down`, or needs what one of its controllers has left: no other does meanwhile."""
    return one_at_a_time("leftovers")
