"""Waiting for something that must come."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], what: str, deadline_s: float = 60.0, every_s: float = 0.1) -> Any:
    """The first value of `condition()` that is true, asked so often."""
    end_s = time.monotonic() + deadline_s
    while not (value := condition()):
        assert time.monotonic() < end_s, f"{what}: not within {deadline_s:g} s"
        time.sleep(every_s)
    return value
