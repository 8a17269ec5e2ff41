"""Ctrl-C and SIGTERM as a request to end in order; outside the main thread Python allows no handler, so none is set."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM)


def catch_signals(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Install `handler` for Ctrl-C and SIGTERM; return what to restore."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in ENDING}


def restore_signals(previous: dict[signal.Signals, Any]) -> None:
    """Undo `catch_signals`."""
    for number, handler in previous.items():
        signal.signal(number, handler)


@contextmanager
def ending_by_signal() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt while entered."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = catch_signals(interrupt)
    try:
        yield
    finally:
        restore_signals(previous)


@contextmanager
def finishing() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM raise KeyboardInterrupt only after what is soon at its end; a second does not wait."""
    asked = 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise KeyboardInterrupt

    previous = catch_signals(note)
    try:
        yield
    finally:
        restore_signals(previous)
    if asked:
        raise KeyboardInterrupt
