"""What becomes due while a node computes: a thread of its own sees to it, so that a node is heard however long it is.

The thread that hosts the heart does its jobs, too, so that no push waits until another thread has a core. While a job
goes on it needs neither heart nor sockets, and lends them: whoever has the lock may use them. This thread looks from
time to time whether they are lent. It is stopped with its process, so a frozen one is silent.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Self

SOON_S = 0.01
"""Seconds from one look to the next at least, where something is to leave."""


class Meanwhile:
    """A thread that calls `see_to` while something is lent, until the `with` block ends."""

    def __init__(self, see_to: Callable[[], float], every_s: float | None) -> None:
        """`see_to` returns the seconds until something is due again; it is called every `every_s`, or sooner.

        None: there is no thread.
        """
        self.see_to = see_to
        self.every_s = every_s
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, name="meanwhile", daemon=True)
        self.problem: Exception | None = None
        """What went wrong in the thread."""

    def __enter__(self) -> Self:
        self.lock.acquire()
        if self.every_s is not None:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.lock.release()
        if self.every_s is not None:
            self.thread.join()

    @contextlib.contextmanager
    def lending(self) -> Iterator[None]:
        """Lend heart and sockets; raises what went wrong with them meanwhile."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()
        if self.problem:
            raise self.problem

    def _watch(self) -> None:
        assert self.every_s is not None
        wait_s = self.every_s
        while not self.ended.wait(wait_s):
            wait_s = self.every_s
            if self.problem or not self.lock.acquire(blocking=False):
                continue
            try:
                wait_s = min(wait_s, max(SOON_S, self.see_to()))
            except Exception as error:  # noqa: BLE001 - it is raised where the node can end of it
                self.problem = error
            finally:
                self.lock.release()
