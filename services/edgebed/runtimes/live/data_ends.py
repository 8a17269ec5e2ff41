"""A node's sockets on the data network: one end for those who connect to it, and one for each node that it connects to.

Hearts name nodes, or the connection that a message came on; which socket that is, is known here.
"""

from collections.abc import Iterator, Mapping, Sequence

import zmq

from edgebed.roles.events import MessageReceived
from edgebed.runtimes.live.authentication import node_of
from edgebed.runtimes.live.data_endpoints import DataDealer, DataRouter
from edgebed.runtimes.live.endpoint import Complain
from edgebed.wire.messages import AnyMessage
from edgebed.wire.tensors import Buffer


class DataEnds:
    """All ends of a node on the data network."""

    def __init__(self, router: DataRouter | None, dealers: Mapping[str, DataDealer]) -> None:
        """`dealers`: by the node that each connects to."""
        self.router = router
        self.dealers = dict(dealers)
        self._ends: list[DataRouter | DataDealer] = [*([router] if router else []), *self.dealers.values()]
        self.peers: dict[str, str] = {}
        """The last connection of each node that has sent something."""

    @property
    def sockets(self) -> list[zmq.Socket[bytes]]:
        """Sockets that messages come from."""
        return [end.socket for end in self._ends]

    @property
    def monitors(self) -> list[zmq.Socket[bytes]]:
        """Sockets that report connections made and broken."""
        return [end.monitor for end in self._ends]

    def numbers(self) -> dict[str, int]:
        """Numbers, among the open files, of the connections that stand, by the node at the other end."""
        found = {name: end.connection.number for name, end in self.dealers.items() if end.connection}
        for peer, number in self.router.numbers.items() if self.router else ():
            found[self.target(peer)] = number
        return found

    def complain_to(self, complain: Complain) -> None:
        """Call `complain` for each message that has to be dropped."""
        for end in self._ends:
            end.complain = complain

    # --- messages -----------------------------------------------------------------------------------------------

    def receive(self) -> Iterator[MessageReceived]:
        """Some of the messages that have arrived at each end."""
        for end in self._ends:
            for event in end.receive():
                if end is self.router:
                    self.peers[event.message.sender] = event.peer
                yield event

    def source(self, event: MessageReceived) -> str:
        """The node that a message came from directly: a store hands over what others made."""
        return event.peer if event.peer in self.dealers else event.message.sender

    def target(self, to: str) -> str:
        """The node at the other end of a connection, or the node itself."""
        return node_of(to) or to

    def ask(self, to: str) -> None:
        """Note that something is sent there which may be answered; what broke before that does not concern it."""
        if to in self.dealers:
            self.dealers[to].ask()

    def answered(self, peer: str) -> None:
        """Note that something has come from there."""
        if peer in self.dealers:
            self.dealers[peer].answered()

    def send(self, to: str, message: AnyMessage, frames: Sequence[Buffer]) -> int:
        """Send a message to a node or over a connection; return bytes sent, 0 where there is no connection."""
        if to in self.dealers:
            return self.dealers[to].send(message, frames)
        assert self.router is not None, f"no connection leads to {to}"
        return self.router.send(self.peers.get(to, to), message, frames)

    # --- connections --------------------------------------------------------------------------------------------

    def move(self, addresses: Mapping[str, str]) -> bool:
        """Connect to each node where it is now; return whether a node is elsewhere than before."""
        moved = [name for name, end in self.dealers.items() if end.address not in ("", addresses[name])]
        for name, end in self.dealers.items():
            end.move(addresses[name])
        return bool(moved)

    def look(self) -> bool:
        """Update the state of the connections made here; return whether one has broken since the last look."""
        return True in [end.look() for end in self.dealers.values()]

    def take_back(self) -> bool:
        """Whether a connection has been replaced that broke and lost something; true once."""
        return True in [end.take_back() for end in self.dealers.values()]

    def broken(self) -> Sequence[str]:
        """Peers whose connection to here has ended since the last call."""
        broken = self.router.broken() if self.router else ()
        if broken:
            self.peers = {name: peer for name, peer in self.peers.items() if peer not in broken}
        return broken

    def end_if_dead(self, patience_s: float) -> None:
        """End connections whose other end has been silent for too long."""
        for end in self.dealers.values():
            end.end_if_dead(patience_s)

    def end(self) -> None:
        """End all connections; what has come over them is dropped."""
        while any(True for _ in self.receive()):
            pass
        for end in self._ends:
            end.end()
