"""Looks at nodes from outside while they train: a thread of the controller.

About five times a second it looks at all of them, at moments that are drawn, so that nothing regular falls between: who
is stopped for a fifth of the time is found stopped in a training of a few seconds. At the counters of one that has just
told its own account it looks at once. It takes a fiftieth of a core at most: where a round takes longer, as of more
than some twenty nodes, rounds are further apart.
"""

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from edgebed.core.recorded.measured import Seen, Usage
from edgebed.core.recorded.record import Record
from edgebed.core.records import Fault
from edgebed.emulation.outside.looks import Look, Sight
from edgebed.emulation.outside.tracks import Told, Track

ROUND_S = (0.1, 0.3)
"""Seconds between two rounds, each as likely."""
SHARE_MAX = 0.02
"""Share of a core that rounds may take."""
CLOSE_S_MAX = 2.0


class Lookout:
    """A running look-out for nodes; `close` ends it."""

    def __init__(self, sight: Sight, nodes: Sequence[str]) -> None:
        self.sight = sight
        self.nodes = nodes
        self._found: deque[tuple[str, Look]] = deque()
        self._asked: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Nodes to look at now; None: no more."""
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)
        self._thread.start()

    def look_at(self, node: str) -> None:
        """Have the counters of a node read at once. Never blocks."""
        self._asked.put(node)

    def take(self) -> Iterator[tuple[str, Look]]:
        """Yield the looks since the last call."""
        while self._found:
            yield self._found.popleft()

    def close(self) -> None:
        """End the thread when it has looked at what it was asked to; what it has found can still be taken.

        Nobody waits for long: it may be waiting for an engine.
        """
        self._asked.put(None)
        self._thread.join(CLOSE_S_MAX)

    def _run(self) -> None:
        try:
            next_s = time.monotonic()
            while True:
                try:
                    node = self._asked.get(timeout=max(0.0, next_s - time.monotonic()))
                except queue.Empty:
                    next_s = self._look(self.nodes, whole=True)
                    continue
                if node is None:
                    return
                self._look([node], whole=False)
        finally:
            self.sight.close()

    def _look(self, nodes: Sequence[str], *, whole: bool) -> float:
        """Look at nodes; return when the next round is due."""
        began_s, used_s = time.monotonic(), time.thread_time()
        with suppress(Exception):  # whatever it is, the run goes on, and what was not seen is missing in the journal
            self._found.extend(self.sight.look(nodes, whole=whole))
        return began_s + max(random.uniform(*ROUND_S), (time.thread_time() - used_s) / SHARE_MAX)  # noqa: S311


class Outside:
    """What is seen of a trial's nodes from outside, for the journal."""

    def __init__(self, sight: Sight, nodes: Sequence[str]) -> None:
        """Begin to look at the nodes."""
        self.tracks = {name: Track(name) for name in nodes}
        self.is_over = False
        self.lookout = Lookout(sight, nodes)

    def began(self, monotonic_s: float) -> None:
        """Note when training began: what is not as it was set counts from then on."""
        for track in self.tracks.values():
            track.began_s = monotonic_s

    def ended(self, monotonic_s: float) -> None:
        """Note, once, that training was over by then: what is not as it was set no longer counts."""
        if not self.is_over:
            self.is_over = True
            for track in self.tracks.values():
                track.ended_s = monotonic_s

    def told(self, node: str, incarnation: int, epoch_s: float, reported: Iterable[tuple[float, Record]]) -> None:
        """Note a node's own accounts among what it reported, and look at what it counts.

        `epoch_s` is the time of the trial's launch, from which the records' times count, on the monotonic clock.
        """
        for t, record in reported:
            if isinstance(record, Usage) and node in self.tracks:
                self.tracks[node].told(Told(incarnation, epoch_s + t, record.time_s))
                self.lookout.look_at(node)

    def done(self, fault: Fault, epoch_s: float) -> None:
        """Note what was done to a node just now; `epoch_s` as in `told`."""
        if fault.target in self.tracks and not fault.problem and not fault.no_op:
            self.tracks[fault.target].effects.done(fault, epoch_s, time.monotonic())

    def take(self) -> Iterator[Seen]:
        """Yield what is to be journaled since the last call."""
        for node, look in self.lookout.take():
            self.tracks[node].add(look)
            yield from self.tracks[node].seen(look.until_s)

    def close(self) -> Iterator[Seen]:
        """Look no more; yield what is left to be journaled."""
        self.lookout.close()
        yield from self.take()
        for track in self.tracks.values():
            yield from track.at_the_end(time.monotonic())
