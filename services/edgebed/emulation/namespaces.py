"""A network namespace for each node of a trial in the process runtime, all held by one process (switch.py).

    controller                       switch
        | --- each node's link ----------> |   makes the namespaces and limits their links
        | <-- each node's home ----------- |
        | --- when training began -------> |   links change with time from here on
        | --- a fault's change ----------> |   of any node's link
        | <-- it is done ----------------- |   or why it cannot be
        | <-- what the kernel refuses ---- |   at any time; then it ends

Messages are JSON, one a line. When its standard input closes, or its controller dies, the process ends; with it and
the nodes' processes everything is gone. Where it dies alone, `mend` makes everything anew in another process, for nodes
that are started anew: the connections of those before are dead, since nothing joins their namespaces. A node runs where
its controller does: it is in its own namespace only while it makes its data sockets (`inside`).
"""

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import END_S, how_it_ended
from edgebed.core.linux import enter_network_namespace
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.orders import Began, HelperChange, HelperReply, Lines
from edgebed.wire.messages import SharedLink
from edgebed.wire.shared_links import share

PORTS_MAX = 1023
"""Nodes that a bridge of the kernel's takes (BR_MAX_PORTS in its sources)."""
TRIES_MAX = 3
"""Times that namespaces are made anew before it is given up."""
PIPE_BYTES = 1 << 20
"""Changes for thousands of nodes fit in, so that nobody waits to say them."""


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace, and the address in it, where a node's data sockets belong."""

    namespace: str
    """Path of the namespace to open, for as long as the process that holds it lives."""
    address: str
    """Address of the interface in the namespace."""


class NamespacesRequest(msgspec.Struct, frozen=True):
    """Nodes that need a namespace each; the first is the server."""

    links: tuple[SharedLink, ...]
    changeable: tuple[str, ...] = ()
    """Nodes whose links faults will change."""


class NamespacesReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answer that all namespaces are there, and every link is limited; or that something is not as it should be."""

    homes: dict[str, Home] = {}
    problem: str = ""
    bridge: str = ""
    """Path of the namespace of the bridge, for as long as the process that holds it lives."""
    ports: dict[str, int] = {}
    """Index of the bridge's port to each node."""


class SwitchEndedError(InfrastructureError):
    """The process that holds the namespaces has ended, and has not said why."""


class Namespaces:
    """Controller's side of the process that holds the namespaces: starts it, and ends it.

    The thread that makes it must last as long: the kernel kills the process with it.
    """

    def __init__(self, links: Mapping[str, LinkPlan], log: Path, changeable: Iterable[str] = ()) -> None:
        """`links` by node, the server's first; faults will change those of the `changeable` ones, and may others'.

        The process's own words go to `log`.

        Raises InfrastructureError where the kernel refuses.
        """
        self.log = log
        self.request = NamespacesRequest(share(links), tuple(changeable))
        self.began_s: float | None = None
        """When training began, in seconds of the monotonic clock, which the process shares."""
        self.unanswered: dict[int, Injection] = {}
        """Changes of links that have been asked for and not answered."""
        self._start()

    def _start(self) -> None:
        try:
            with self.log.open("ab") as file:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "edgebed.emulation.switch"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=file,
                    pipesize=PIPE_BYTES,
                    process_group=0,  # what is sent to the controller's group is the controller's to answer
                )
        except OSError as error:
            raise InfrastructureError(f"the process that holds the namespaces cannot be started: {error}") from error
        assert self.process.stdout is not None
        self.lines = Lines(self.process.stdout.fileno())
        try:
            self._tell(self.request)
            self.made = msgspec.json.decode(self._line(), type=NamespacesReply)
        except BaseException:
            self.process.kill()  # it may be making hundreds of them
            self.close()
            raise

    @property
    def homes(self) -> dict[str, Home]:
        """Where each node's data sockets belong."""
        return self.made.homes

    def mend(self) -> None:
        """Make namespaces with the same addresses in a process that takes the place of one that has ended.

        Links are as planned at this time, but for changes that have not been answered: these are asked for again.
        InfrastructureError where the kernel refuses, or where that process is killed again and again.
        """
        for tries_left in reversed(range(TRIES_MAX)):
            self.close()
            try:
                self._start()
                break
            except SwitchEndedError:
                if not tries_left:
                    raise
        if self.began_s is not None:
            self._tell(Began(self.began_s))
        for number, injection in self.unanswered.items():
            self._tell(HelperChange(injection, number))

    def fileno(self) -> int:
        """A file descriptor that is readable when a change is done, or something has failed."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def began(self, monotonic_s: float) -> None:
        """Note that training began, at this time of the monotonic clock."""
        self.began_s = monotonic_s
        self._tell(Began(monotonic_s))

    def inject(self, number: int, injection: Injection) -> None:
        """Have a node's link cut, healed or changed; `number` is among the `answers`."""
        self.unanswered[number] = injection
        self._tell(HelperChange(injection, number))

    def answers(self) -> Iterator[HelperReply]:
        """Yield the answers to changes that have come; called when `fileno` is readable.

        Raises InfrastructureError with what has failed, where no link is held any more; SwitchEndedError where nobody
        knows what it was.
        """
        while line := self._line(-math.inf):
            answer = msgspec.json.decode(line, type=HelperReply)
            assert answer.done is not None
            self.unanswered.pop(answer.done, None)
            yield answer

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _tell(self, message: NamespacesRequest | Began | HelperChange) -> None:
        """Tell the process something; that it has ended is noticed where it is heard."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()

    def _line(self, until_s: float = math.inf) -> bytes:
        """Return the process's next line; nothing if none has come until then. InfrastructureError if it has failed."""
        line = self.lines.read(until_s)
        if line == b"":
            reason = how_it_ended(self.process, self.log)
            raise SwitchEndedError(f"the process that holds the namespaces ended: {reason}")
        if line is not None:
            failed = msgspec.json.decode(line, type=HelperReply)
            if failed.problem and failed.done is None:
                raise InfrastructureError(f"the nodes' network: {failed.problem}")
        return line or b""


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Context in which the calling thread is in that network namespace; where it was if the name is empty.

    Sockets and threads made in the context stay there. Raises InfrastructureError without the right, or where the
    namespace is gone.
    """
    if not namespace:
        yield
        return
    with contextlib.ExitStack() as stack:
        own, other = (stack.enter_context(_opened(path)) for path in ("/proc/thread-self/ns/net", namespace))
        _enter(other)
        try:
            yield
        finally:
            _enter(own)


@contextlib.contextmanager
def _opened(namespace: str) -> Iterator[int]:
    try:
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InfrastructureError(f"no network namespace {namespace}: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(descriptor: int) -> None:
    try:
        enter_network_namespace(descriptor)
    except OSError as error:
        raise InfrastructureError(f"the network namespace cannot be entered: {error.strerror}") from error
