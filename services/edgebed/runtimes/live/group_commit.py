"""Holds back what a server says until the disk has the entries of its log that came before, several at a time.

    append, append ---> one sync, in a thread of its own ---> what was held since leaves, in order

The node's loop goes on meanwhile, so that pushes which come during a sync share the next one.
"""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterator

from edgebed.core.errors import InfrastructureError
from edgebed.roles.events import Effect, Journal, Send
from edgebed.runtimes.server_log import ServerLog


class GroupCommit:
    """The effects of a server that wait for its log; `start` begins the thread that syncs it."""

    def __init__(self, log: ServerLog) -> None:
        self.log = log
        self.held: deque[tuple[int, float, Effect]] = deque()
        """Effects, each with the number of entries that have to be on the disk before, and since when it is held."""
        self.synced = 0
        """Entries that the disk has."""
        self.syncs = 0
        self.waited = 0
        """Messages that were held and have left."""
        self.waited_s = 0.0
        """Seconds that these were held, in total."""
        self.error: InfrastructureError | None = None
        self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._asked = threading.Event()

    def start(self) -> None:
        """Sync the log from now on whenever something waits for it."""
        threading.Thread(target=self._work, name="group-commit", daemon=True).start()

    def fileno(self) -> int:
        """A file descriptor that is readable when `released` has effects."""
        return self.bell

    def hold(self, effect: Effect) -> bool:
        """Hold an effect that others would see, unless the disk has all that came before; return whether it is held."""
        if not isinstance(effect, Send | Journal) or (self.log.appends <= self.synced and not self.held):
            return False
        self.held.append((self.log.appends, time.monotonic(), effect))
        self._asked.set()
        return True

    def released(self) -> Iterator[Effect]:
        """Yield the effects that need not wait any more. InfrastructureError where the log could not be synced."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.bell)
        if self.error:
            raise self.error
        while self.held and self.held[0][0] <= self.synced:
            _, since_s, effect = self.held.popleft()
            if isinstance(effect, Send):
                self.waited += 1
                self.waited_s += time.monotonic() - since_s
            yield effect
        if self.held:
            self._asked.set()

    def commit(self) -> None:
        """Sync what has been appended."""
        number = self.log.appends
        try:
            self.log.file.sync()
        except InfrastructureError as error:
            self.error = error
        self.syncs += 1
        self.synced = number

    def _work(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            self.commit()
            os.eventfd_write(self.bell, 1)
