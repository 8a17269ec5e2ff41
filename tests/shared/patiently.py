"""What a run does at stated times: tried again with more time where a busy machine came too late for it."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class TooLateError(AssertionError):
    """The run was over, or went on, before that could happen which was to be seen."""


def patiently(attempt: Callable[[int], T]) -> T:
    """What an attempt returns, to which all times may be so many times as long; TooLateError has it tried with more."""
    for times in (1, 4):
        with contextlib.suppress(TooLateError):
            return attempt(times)
    return attempt(16)
