"""The data network's ends know their connections: over loopback, with connections that really break."""

import time
from types import SimpleNamespace

import pytest
import zmq
from run_secret import CREDENTIALS

from edgebed.emulation.conditions import LinkState
from edgebed.emulation.tcp import TcpProgress
from edgebed.runtimes.live.authentication import node_of
from edgebed.runtimes.live.data_endpoints import SILENCE_S, DataDealer, DataRouter, patience_s
from edgebed.runtimes.live.sockets import bind, data_socket
from edgebed.wire.messages import Join

PATIENCE_S = 20.0
HOST = "127.0.0.1"


class Ends:
    """A server's end and workers' ends, looked at until something is so."""

    def __init__(self, context):
        self.context = context
        self.routers, self.dealers = [], []
        self.router, self.address = self.listen()
        self.joined, self.broken, self.back = [], [], []

    def listen(self):
        """One more server's end."""
        socket = data_socket(self.context, zmq.ROUTER, CREDENTIALS)
        self.routers.append(DataRouter(socket, pytest.fail))
        return self.routers[-1], bind(socket, HOST)

    def close(self, end):
        """Have one go."""
        for ends in (self.routers, self.dealers):
            if end in ends:
                ends.remove(end)
        end.monitor.close(linger=0)
        end.socket.close(linger=0)

    def dealer(self, identity):
        """One more worker's end, connected to the first server's."""
        made = DataDealer(data_socket(self.context, zmq.DEALER, CREDENTIALS, identity), pytest.fail)
        made.move(self.address)
        self.dealers.append(made)
        return made

    def until(self, is_so, *routers):
        """Look at all of them until it is so."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, (self.joined, self.broken, self.back)
            for router in routers or (self.router,):
                self.joined += [(event.peer, event.message.joins) for event in router.receive()]
                self.broken += router.broken()
            for dealer in self.dealers:
                dealer.socket.poll(0)  # as a shell does: a connection is given up from there
                dealer.look()
                if dealer.take_back():
                    self.back.append(dealer)
            time.sleep(0.001)


def join(dealer, joins=0):
    """Say something, and wait for an answer."""
    dealer.look()
    dealer.ask()
    sender = node_of(dealer.socket.getsockopt_string(zmq.IDENTITY))
    dealer.send(Join(sender=sender, incarnation=1, joins=joins), [])


@pytest.fixture
def ends(context):
    """On loopback."""
    made = Ends(context)
    yield made
    for end in [*made.routers, *made.dealers]:
        made.close(end)


def test_who_was_asking_when_its_connection_broke_is_told_when_there_is_another(ends):
    """Once; and the server is told whose broke. The first connection of all is no news."""
    dealer = ends.dealer("edge-0~1")
    join(dealer)
    ends.until(lambda: ends.joined)
    assert ends.back == []

    dealer.end()
    ends.until(lambda: ends.back and ends.broken)
    assert ends.broken == ["edge-0~1"]

    join(dealer, 1)
    ends.until(lambda: len(ends.joined) == 2)
    assert ends.back == [dealer]


def test_who_was_not_asking_has_lost_nothing(ends):
    """What it says after the break leaves on the new connection, and it is not told to give that up."""
    dealer = ends.dealer("edge-0~1")
    join(dealer)
    ends.until(lambda: ends.joined)
    dealer.answered()

    dealer.end()
    ends.until(lambda: ends.broken)
    join(dealer, 1)
    ends.until(lambda: len(ends.joined) == 2)
    assert ends.back == []


def test_what_the_old_connection_did_not_take_is_dropped_with_it(ends):
    """Else the new server would get what was meant for the connection before."""
    dealer = ends.dealer("edge-0~1")
    join(dealer)
    ends.until(lambda: ends.joined)

    dealer.end()
    assert dealer.monitor.poll(1000 * PATIENCE_S)  # from here on it cannot leave over the old connection
    dealer.outbox.append([b"never leaves"])
    ends.until(lambda: ends.back)
    join(dealer, 1)
    ends.until(lambda: len(ends.joined) == 2)  # the router would complain of what else came before


def test_a_server_that_moved_is_followed_and_its_old_connection_is_no_news(ends):
    """To the same address nothing happens."""
    dealer = ends.dealer("edge-0~1")
    join(dealer)
    ends.until(lambda: ends.joined)
    other, address = ends.listen()

    dealer.move(ends.address)
    assert dealer.is_asking
    dealer.move(address)
    assert not dealer.is_asking
    join(dealer, 1)
    ends.until(lambda: ("edge-0~1", 1) in ends.joined and ends.broken, ends.router, other)
    assert ends.back == []


def test_a_peer_that_is_back_over_another_connection_has_not_left(ends):
    """Of two connections of one name the newer counts: the end of the older, whenever it comes, is no news."""
    first, second = ends.dealer("edge-0~1"), ends.dealer("edge-1~1")
    for dealer in (first, second):
        join(dealer)
    ends.until(lambda: len(ends.joined) == 2)
    again = ends.dealer("edge-0~1")
    join(again, 1)
    ends.until(lambda: len(ends.joined) == 3)

    ends.close(first)
    second.end()
    ends.until(lambda: ends.broken)
    assert ends.broken == ["edge-1~1"]

    again.end()
    ends.until(lambda: len(ends.broken) == 2)
    assert ends.broken == ["edge-1~1", "edge-0~1"]


def test_a_number_that_the_kernel_gives_again_is_the_later_peers(ends, monkeypatch):
    """A message of another peer over it shows that the one before has ended: the monitor, which is late, means that."""
    told = []
    monkeypatch.setattr("edgebed.runtimes.live.endpoint.monitored", lambda _: [told.pop(0) for _ in list(told)])
    ended, accepted = ({"event": event, "value": 7} for event in (zmq.EVENT_DISCONNECTED, zmq.EVENT_ACCEPTED))

    def broken(*come, after=()):
        """Who is gone after these messages over number 7, and then these events."""
        for peer in come:
            ends.router.sort_out([SimpleNamespace(bytes=peer.encode(), get=lambda _: 7)])
        told.extend(after)
        return ends.router.broken()

    assert broken("edge-0~1", "edge-1~1", after=[ended]) == ["edge-0~1"]
    assert broken() == []
    assert broken(after=[ended]) == ["edge-1~1"]
    assert broken(after=[ended]) == []
    assert broken("edge-0~1", after=[ended, accepted]) == []
    assert broken(after=[ended, accepted]) == ["edge-0~1"]
    assert broken("edge-0~1", "edge-1~1", after=[ended, accepted, ended]) == ["edge-0~1", "edge-1~1"]


@pytest.mark.parametrize(
    ("is_asking", "silent_s", "unanswered", "ends_it"),
    [
        (True, 5.0, 2, True),
        (False, 5.0, 2, False),
        (True, 3.0, 2, False),
        (True, 5.0, 1, False),
    ],
    ids=["dead", "asks nothing", "not silent for long", "silent, not asked"],
)
def test_a_connection_is_dead_when_a_server_that_is_asked_says_nothing(ends, is_asking, silent_s, unanswered, ends_it):
    """Only who waits for an answer is in a hurry to know."""
    dealer = ends.dealer("edge-0~1")
    dealer.is_asking, ended = is_asking, []
    dealer.connection = SimpleNamespace(
        look=lambda: TcpProgress(0, 0, silent_s, unanswered), reset=lambda: ended.append(True)
    )

    dealer.end_if_dead(4.0)

    assert bool(ended) == ends_it


def test_patience_grows_with_what_a_packet_takes():
    """At 8 kbit/s one takes a second and a half, each way."""
    assert patience_s() == patience_s(LinkState()) == SILENCE_S
    slow = LinkState(uplink_bit_s=8_000, downlink_bit_s=8_000)
    assert patience_s(slow) == pytest.approx(SILENCE_S + 8 * 2 * 1.514)
    assert patience_s(slow, LinkState(latency_s=0.5)) == pytest.approx(patience_s(slow) + 8 * 2 * 0.5)
