"""The live shell of the controller: hosts its heart for the runtimes whose nodes are processes or containers.

It alone writes the run folder. Nodes come and go through a launcher; everything else comes over the management network.
"""

import heapq
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

import numpy as np
import zmq
from numpy.typing import NDArray

from edgebed.errors import InfrastructureError
from edgebed.observe.journal import JournalWriter
from edgebed.roles import records
from edgebed.roles.controller import NAME, Controller, Phase
from edgebed.roles.events import Effect, Event, Interrupted, Journal, NodeExited, Received, Send, Stop, Wake, Woken
from edgebed.runtimes.endpoint import RouterEndpoint
from edgebed.runtimes.sockets import management_socket
from edgebed.runtimes.watch import SHOW_S, Watch
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import decode_dense


class Launcher(Protocol):
    """What a runtime must be able to do with nodes."""

    name: str
    notes: tuple[str, ...]

    def fileno(self) -> int:
        """A file descriptor that is readable when `exits` has something to say."""
        ...

    def launch(self, node: str, controller_address: str) -> None:
        """Start a node; it says hello to the controller by itself."""
        ...

    def exits(self) -> Iterator[tuple[str, str]]:
        """(node, how it ended) for those that ended since the last call."""
        ...

    def close(self) -> None:
        """Leave nothing running."""
        ...


@dataclass
class LiveController:
    """Hosts the controller's heart for one trial; `run` returns when the trial is over and every node is gone."""

    heart: Controller
    launcher: Launcher
    journal: JournalWriter
    keep_checkpoint: Callable[[int, NDArray[np.float32]], None]
    watch: Watch
    host: str = "127.0.0.1"
    epoch_ns: int = field(default_factory=time.monotonic_ns)
    timers: list[tuple[float, str]] = field(default_factory=list)
    interruptions: int = 0
    over: bool = False

    def now(self) -> float:
        """Seconds of the trial."""
        return (time.monotonic_ns() - self.epoch_ns) * 1e-9

    def run(self) -> None:
        """Launch every node, host the heart until it stops, leave nothing behind."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        socket = management_socket(context, zmq.ROUTER)
        self.heart.epoch_ns = self.epoch_ns
        self.endpoint = RouterEndpoint(socket, "management", self._complain)
        try:
            address = f"tcp://{self.host}:{socket.bind_to_random_port(f'tcp://{self.host}')}"
            for text in self.launcher.notes:
                self._journal(records.Note(text=text))
            with self._interruptible():
                self._carry_out(self.heart.launch(self.now()))
                for node in self.heart.plan.nodes:
                    self.launcher.launch(node.node, address)
                self._serve(socket)
        finally:
            self.launcher.close()
            socket.close(linger=0)
            context.term()

    def _serve(self, socket: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self.launcher.fileno(), zmq.POLLIN)
        seen_interruptions = 0
        while not self.over:
            now = self.now()
            self.watch.tick(now)
            due_s = min(now + SHOW_S, self.timers[0][0] if self.timers else now + SHOW_S)
            ready = dict(poller.poll(max(0, int((due_s - now) * 1000) + 1)))
            for event in self.endpoint.receive(limit=1024):
                try:
                    self._received(event)
                except RemoteWireError as error:
                    self._complain(f"from {event.peer!r}: {error}")
            if self.launcher.fileno() in ready:
                for node, reason in self.launcher.exits():
                    self._handle(NodeExited(node, reason))
            while self.timers and self.timers[0][0] <= self.now():
                self._handle(Woken(heapq.heappop(self.timers)[1]))
            if self.interruptions > seen_interruptions:
                seen_interruptions = self.interruptions
                self.watch.interrupted = True
                self._handle(Interrupted())
            if self.interruptions > 1:
                return  # asked twice: do not wait for goodbyes

    def _received(self, event: Received) -> None:
        message = event.message
        if not self.heart.knows(event) and not isinstance(message, messages.Hello):
            self._complain(f"from {event.peer!r}: {type(message).__name__} of a stranger")
            return
        if isinstance(message, messages.Report):
            self.journal.write_many((t, message.sender, record) for t, record in message.records)
            for _, record in message.records:
                self.watch.follow(record)
        elif isinstance(message, messages.Checkpoint):
            theta = decode_dense(message.tensors[0], event.frames)
            self.keep_checkpoint(message.version, theta)
        self._handle(event)

    def _handle(self, event: Event) -> None:
        self._carry_out(self.heart.handle(event, self.now()))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.endpoint.send(effect.to, effect.message, effect.frames)
            elif isinstance(effect, Journal):
                self._journal(effect.record)
            elif isinstance(effect, Wake):
                heapq.heappush(self.timers, (effect.at_s, effect.token))
            elif isinstance(effect, Stop):
                self.over = True

    def _journal(self, record: records.Record) -> None:
        self.journal.write(round(self.now(), 6), NAME, record)
        self.watch.follow(record)

    def _complain(self, reason: str) -> None:
        self._journal(records.Dropped(socket="management", reason=reason))

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the run in order; a second one at once."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.interruptions += 1

        previous = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        except InfrastructureError:
            if self.heart.phase is not Phase.OVER:
                self._journal(records.Ended(outcome="failed", reason="the launcher failed"))
            raise
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
