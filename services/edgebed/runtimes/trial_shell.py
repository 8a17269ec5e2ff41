"""What the controller's shells have in common that host a trial in real time: journal, watchers, probes, signals."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Protocol

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.emulation.outside.lookout import Outside
from edgebed.journal.journal import JournalWriter
from edgebed.roles.control.controller import Phase
from edgebed.roles.control.name import NAME
from edgebed.runtimes.signals import catch_signals, restore_signals
from edgebed.runtimes.watch import StatusFeed


class Probe(Protocol):
    """What tells how busy the nodes' hosts are."""

    def take(self) -> Iterator[tuple[int, records.HostLoad]]:
        """Yield what was found since the last call: (the controller's monotonic clock in ns, load until then)."""
        ...

    def close(self) -> None:
        """End it, soon; what it has found meanwhile can still be taken."""
        ...


class TrialShell:
    """The base of such a shell; what follows without a value is its own to set."""

    heart: Any
    launcher: Any
    journal: JournalWriter
    watch: StatusFeed
    epoch_ns: int
    """The monotonic clock at the trial's launch, from which its time counts."""
    probe: Probe | None = None
    """Measures the hosts while the trial runs."""
    outside: Outside | None = None
    """What is seen of nodes from outside."""
    interruptions: int = 0
    failed: str = ""
    """Why the trial failed; empty: it did not, or not yet."""

    def now(self) -> float:
        """Seconds since the trial's launch."""
        return (time.monotonic_ns() - self.epoch_ns) * 1e-9

    def _close_launcher(self) -> None:
        """Stop everything that still runs; where that fails, what the trial had ended of comes first."""
        ended = str(sys.exception() or self.failed)
        try:
            self.launcher.close()
        except InfrastructureError as error:
            if ended and ended != str(error):
                raise InfrastructureError(f"{ended}. Then: {error}") from error
            raise

    def _journal(self, record: records.Record, node: str = NAME) -> None:
        self._write(self.now(), node, record)

    def _write(self, t: float, node: str, record: records.Record) -> None:
        t = round(t, 6)
        self.journal.write(t, node, record)
        self.watch.follow(t, node, record)

    def _journal_all(self, found: Iterable[records.Record]) -> None:
        for record in found:
            self._journal(record)

    def _note(self, record: records.Record) -> None:
        """Act on what the heart is about to journal: the trial ends, or something was done to a node."""
        if isinstance(record, records.Ended):
            self._release()
            self._end_outside()
            self.failed = record.reason if record.outcome == "failed" else ""
        elif isinstance(record, records.Fault) and self.outside:
            self.outside.done(record, self.epoch_ns * 1e-9)

    def _release(self) -> None:
        """Journal what has been gathered, as is done each second."""
        self._keep_host_load()

    def _note_begin(self, began_s: float) -> None:
        """Let all that measures know that the trial began, in seconds since its launch."""
        self.probe = self.launcher.probe()
        self.launcher.began(self.epoch_ns * 1e-9 + began_s)
        if self.outside:
            self.outside.began(time.monotonic())

    def _keep_host_load(self) -> None:
        for monotonic_ns, load in self.probe.take() if self.probe else ():
            self._write((monotonic_ns - self.epoch_ns) * 1e-9, NAME, load)

    def _end_probe(self) -> None:
        if self.probe:
            self.probe.close()
            self._keep_host_load()
            self.probe = None

    def _end_outside(self) -> None:
        if self.outside:
            outside, self.outside = self.outside, None
            self._journal_all(outside.close())

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM end the run in order; a second one at once."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.interruptions += 1

        previous = catch_signals(interrupt)
        try:
            yield
        except Exception as error:
            if self.heart.phase is not Phase.OVER:
                with suppress(InfrastructureError):  # the journal itself may be what failed
                    self._journal(records.Ended.failed(f"the controller failed: {error}"))
            raise
        finally:
            restore_signals(previous)
