"""All that a node has on the data network: one end for those who connect to it, and one for each that it connects to.

Hearts name nodes, or the connection that a message came on; which socket that is, is known here.
"""

from collections.abc import Iterator, Mapping, Sequence

import zmq

from edgebed.roles.events import Received
from edgebed.runtimes.data_endpoints import DataDealer, DataRouter
from edgebed.runtimes.endpoint import Complain
from edgebed.wire.messages import AnyMessage
from edgebed.wire.tensors import Buffer


class DataEnds:
    """The ends together."""

    def __init__(self, router: DataRouter | None, dealers: Mapping[str, DataDealer]) -> None:
        """`dealers` by the node that each connects to."""
        self.router = router
        self.dealers = dict(dealers)
        self._ends: list[DataRouter | DataDealer] = [*([router] if router else []), *self.dealers.values()]
        self.peers: dict[str, str] = {}
        """Of each node that something has come from: its last connection."""

    @property
    def sockets(self) -> list[zmq.Socket[bytes]]:
        """Those that messages come from."""
        return [end.socket for end in self._ends]

    @property
    def monitors(self) -> list[zmq.Socket[bytes]]:
        """Those that tell of connections."""
        return [end.monitor for end in self._ends]

    def complain_to(self, complain: Complain) -> None:
        """Tell this one of each message that has to be dropped."""
        for end in self._ends:
            end.complain = complain

    # --- messages -----------------------------------------------------------------------------------------------

    def receive(self) -> Iterator[Received]:
        """Some of the messages that are there, of each end."""
        for end in self._ends:
            for event in end.receive():
                if end is self.router:
                    self.peers[event.message.sender] = event.peer
                yield event

    def source(self, event: Received) -> str:
        """The node that a message came from directly: a store hands over what others made."""
        return event.peer if event.peer in self.dealers else event.message.sender

    def target(self, to: str) -> str:
        """The node at the other end of a connection, or the node itself."""
        return next((name for name, peer in self.peers.items() if peer == to), to)

    def ask(self, to: str) -> None:
        """Something is sent there, which may be answered; what broke before that is no matter of it."""
        if to in self.dealers:
            self.dealers[to].ask()

    def answered(self, peer: str) -> None:
        """Something has come from there."""
        if peer in self.dealers:
            self.dealers[peer].answered()

    def send(self, to: str, message: AnyMessage, frames: Sequence[Buffer]) -> int:
        """Bytes sent, to a node or over a connection; 0 where there is none."""
        if to in self.dealers:
            return self.dealers[to].send(message, frames)
        assert self.router is not None, f"no connection leads to {to}"
        return self.router.send(self.peers.get(to, to), message, frames)

    # --- connections --------------------------------------------------------------------------------------------

    def move(self, addresses: Mapping[str, str]) -> bool:
        """Connect to each node where it is now; whether one is elsewhere than before."""
        moved = [name for name, end in self.dealers.items() if end.address not in ("", addresses[name])]
        for name, end in self.dealers.items():
            end.move(addresses[name])
        return bool(moved)

    def look(self) -> bool:
        """Learn what has become of the connections that were made here; whether one has broken since the last look."""
        return True in [end.look() for end in self.dealers.values()]

    def take_back(self) -> bool:
        """Whether one is there again in the place of one that broke, and something was lost; told once."""
        return True in [end.take_back() for end in self.dealers.values()]

    def broken(self) -> Sequence[str]:
        """Peers whose connection to here has ended since the last call."""
        return self.router.broken() if self.router else ()

    def end_if_dead(self, patience_s: float) -> None:
        """End those of which the other end has been silent for too long."""
        for end in self.dealers.values():
            end.end_if_dead(patience_s)

    def end(self) -> None:
        """End all; what has come over them is not wanted any more."""
        while any(True for _ in self.receive()):
            pass
        for end in self._ends:
            end.end()
