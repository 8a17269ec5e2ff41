"""Connections that bring a message without an end are ended, and no others: over loopback."""

import errno
import os
import re
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq
from raw_zmtp import admitted, frame, is_ended
from run_secret import CREDENTIALS

from edgebed.emulation.tcp import IncomingCount, abort
from edgebed.runtimes.live import message_limits
from edgebed.runtimes.live.authentication import USER, new_identity
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.message_limits import (
    AGAIN,
    GAP,
    MESSAGES,
    SLACK_BYTES,
    STRANGERS_MAX,
    ConnectionLimiter,
    SocketLimits,
)
from edgebed.runtimes.live.sockets import bind, data_socket
from edgebed.wire.frames import encode, size_bytes
from edgebed.wire.messages import Push, Tensor, Working

LARGEST = 1_000_000
NODES = [f"edge-{k}" for k in range(100)]
PATIENCE_S = 20.0


class Guarded:
    """A router, its guard, which looks when it is told to, and what was complained of."""

    def __init__(self, context, **kind):
        self.complaints, self.received = [], 0
        self.context = context
        self.endpoint = RouterEndpoint(data_socket(context, zmq.ROUTER, CREDENTIALS), "data", self.complaints.append)
        self.address = bind(self.endpoint.socket, "127.0.0.1")
        self.endpoint.limits = SocketLimits.for_messages(self.address, LARGEST, **{"at_once": 3, "nodes": NODES} | kind)
        self.guard = ConnectionLimiter(self.endpoint.limits)
        self.opened = []

    def look(self):
        """As the guard and the node do, each in its thread."""
        self.guard.look()
        self.endpoint.look()

    def take(self):
        """All messages that have come."""
        self.received += len(list(self.endpoint.receive()))

    def enter(self):
        """A connection of somebody with the secret who is no node."""
        self.opened.append(admitted(self.address, USER, CREDENTIALS.password))
        return self.opened[-1]

    def dealer(self, node="edge-0"):
        """A node."""
        self.opened.append(data_socket(self.context, zmq.DEALER, CREDENTIALS, new_identity(node)))
        self.opened[-1].setsockopt(zmq.RECONNECT_IVL, -1)
        self.opened[-1].connect(self.address)
        return self.opened[-1]

    @property
    def held(self):
        """Bytes of each connection that are not known to be whole messages, the largest first."""
        connections = self.guard.connections.values()
        return sorted((each.held for each in connections if each.limits), reverse=True)

    def until(self, is_so):
        """Look until it is so."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, (self.held, self.complaints, self.received)
            self.look()
            time.sleep(0.005)

    def close(self):
        """Close all."""
        for each in self.opened:
            each.close()
        self.endpoint.monitor.close(linger=0)
        self.endpoint.socket.close(linger=0)


@pytest.fixture
def make_guarded(context):
    """`make_guarded(at_once=…, is_patient=…)`."""
    made = []

    def make(**kind):
        made.append(Guarded(context, **kind))
        return made[-1]

    yield make
    for each in made:
        each.close()


def push_message(node):
    """A push, whose tensors go beside it."""
    part = LARGEST // 4 // 4
    tensors = tuple(Tensor(f"t{k}", "float32", (part,), "dense", part) for k in range(4))
    return Push(sender=node, incarnation=1, step=0, base=0, loss=1.0, tensors=tensors)


def push(node="edge-0"):
    """The largest message there is, nearly."""
    buffers = encode(push_message(node), [bytes(LARGEST // 4)] * 4)
    assert LARGEST - 1_000 < size_bytes(buffers) <= LARGEST + 1_000
    return buffers


def unended(connection, count):
    """So many bytes of a message that does not end."""
    connection.sendall(frame(bytes(10_000), more=True) * (count // 10_000))


def test_a_message_without_an_end_ends_its_connection(make_guarded):
    """At little more than the limit; it is complained of once."""
    guarded = make_guarded()
    connection = guarded.enter()
    unended(connection, MESSAGES * LARGEST)
    guarded.until(lambda: guarded.held and guarded.held[0] >= MESSAGES * LARGEST)
    assert guarded.complaints == []

    unended(connection, 2 * SLACK_BYTES)
    guarded.until(lambda: guarded.complaints)

    assert is_ended(connection)
    guarded.until(lambda: guarded.held == [])
    assert len(guarded.complaints) == 1
    assert "without the end of a message" in guarded.complaints[0]


def test_messages_that_end_are_let_in_however_many(make_guarded):
    """Far more bytes than any limit, over connections that come and go, one message after the other."""
    guarded = make_guarded()
    for _ in range(3):
        dealer = guarded.dealer()
        for k in range(5):
            dealer.send_multipart(push())
            before = guarded.received
            while guarded.received == before:
                guarded.look()
                guarded.take()
            assert k < 5
        dealer.close(linger=0)
    assert guarded.received == 15
    assert guarded.complaints == []


@pytest.mark.parametrize("is_patient", [True, False])
def test_where_messages_may_wait_nothing_is_concluded_before_they_were_taken(make_guarded, is_patient):
    """From a peer that waits for no answer."""
    guarded = make_guarded(is_patient=is_patient)
    dealer = guarded.dealer()
    for _ in range(4):
        dealer.send_multipart(push())
    if not is_patient:
        guarded.until(lambda: guarded.complaints)
        return
    for _ in range(20):
        guarded.look()
        time.sleep(0.01)
    guarded.until(lambda: guarded.take() or guarded.received == 4)
    connection = guarded.enter()
    unended(connection, MESSAGES * LARGEST + 2 * SLACK_BYTES)
    assert guarded.complaints == []
    guarded.until(lambda: guarded.take() or guarded.complaints)
    assert is_ended(connection)


def test_many_connections_together_are_bounded_and_those_that_never_said_anything_go_first(make_guarded):
    """Each below its own limit."""
    guarded = make_guarded(at_once=1)
    dealer = guarded.dealer()
    dealer.send_multipart([b"no message"])
    while not guarded.complaints:
        guarded.take()
    guarded.complaints.clear()
    others = [guarded.enter() for _ in range(4)]
    for each in others:
        unended(each, int(0.9 * LARGEST))
    guarded.until(lambda: len(guarded.complaints) == 2)
    guarded.until(lambda: len(guarded.held) == 3)

    dealer.send_multipart(push())
    before = guarded.received
    while guarded.received == before:
        guarded.look()
        guarded.take()


def test_what_was_taken_from_a_connection_before_is_not_the_next_ones(make_guarded):
    """The kernel gives a number again."""
    guarded = make_guarded()
    dealer = guarded.dealer()
    dealer.send_multipart(push())
    guarded.until(lambda: guarded.take() or guarded.received == 1)
    guarded.look()
    dealer.close(linger=0)
    guarded.until(lambda: guarded.held == [])
    connection = guarded.enter()
    unended(connection, MESSAGES * LARGEST + 2 * SLACK_BYTES)
    guarded.until(lambda: guarded.complaints)
    assert is_ended(connection)


def test_however_many_files_are_open_connections_are_found_behind_them(make_guarded):
    """A process may have more that are no sockets than there are numbers in a gap."""
    guarded = make_guarded()
    with ExitStack() as files:
        for _ in range(3 * GAP):
            files.enter_context(Path(os.devnull).open())
        connection = guarded.enter()
        unended(connection, MESSAGES * LARGEST + 2 * SLACK_BYTES)
        guarded.until(lambda: guarded.complaints)
        assert is_ended(connection)


def test_whoever_counts_what_comes_in_ends_no_connection(make_guarded):
    """To count is to copy each connection for a moment: the copy is the connection that it was, and no new one."""
    guarded = make_guarded()
    node, messages = guarded.dealer(), 2 * MESSAGES
    for _ in range(messages):
        node.send_multipart(push())
    while guarded.received < messages:
        guarded.take()
    counted, is_over = IncomingCount(guarded.address), threading.Event()

    def count():
        while not is_over.is_set():
            counted.read()

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(2_000):
        guarded.look()
    is_over.set()
    thread.join()

    assert guarded.complaints == []
    assert counted.read().all_bytes > messages * LARGEST


def test_an_aborted_connection_has_nothing_left_to_read():
    """And its other end hears of it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        here, _ = server.accept()
        with here:
            client.sendall(bytes(100_000))
            abort(here)
            with pytest.raises(OSError, match="reset"):
                here.recv(1)
            assert is_ended(client)


def test_more_connections_than_a_run_has_are_ended(make_guarded):
    """Those that said nothing; whoever was heard stays, however many come after it."""
    guarded = make_guarded()
    guarded.endpoint.limits.most = 8
    nodes = [guarded.dealer() for _ in range(3)]
    for received in (3, 6):
        for node in nodes:
            node.send_multipart(push())
        guarded.until(lambda received=received: guarded.take() or guarded.received == received)
        for _ in range(30 if received == 3 else 0):
            guarded.enter()
        guarded.until(lambda: len(guarded.held) <= 8)

    ended = [
        int(re.fullmatch(r".*ended: (\d+) of more than 8 connections, which.*", each)[1]) for each in guarded.complaints
    ]
    assert sum(ended) == 25


def speak(guarded, *nodes):
    """A connection of each of these nodes, in this order, over which a message has been taken."""
    for node in nodes:
        guarded.dealer(node).send_multipart(encode(Working(sender=node)))
        before = guarded.received
        guarded.until(lambda before=before: guarded.take() or guarded.received > before)
    return guarded.opened[-len(nodes) :]


def is_heard(guarded, dealer, node):
    """Whether a message still comes over a node's connection."""
    before = guarded.received
    dealer.send_multipart(encode(Working(sender=node)))
    until_s = time.monotonic() + 1.0
    while guarded.received == before and time.monotonic() < until_s:
        guarded.look()
        guarded.take()
    return guarded.received > before


def test_a_node_has_a_few_connections_whatever_it_says_over_them(make_guarded):
    """Of more, those end that came last; all whom nobody knows are one. Others have theirs."""
    guarded = make_guarded()
    guarded.guard.look()
    mine, *others = speak(guarded, "edge-1", *["edge-0"] * (AGAIN + 6), "edge-2")
    guarded.until(lambda: len(guarded.held) == AGAIN + 2)
    assert is_heard(guarded, mine, "edge-1")
    strangers = [f"nobody-{k}" for k in range(STRANGERS_MAX + 5)]
    speak(guarded, *strangers)
    guarded.until(lambda: len(guarded.held) == AGAIN + 2 + STRANGERS_MAX)

    assert is_heard(guarded, others[-1], "edge-2")
    guarded.look()
    form = re.compile(r"ended: (\d+) of \d+ connections of (.*), which may have (\d+)")
    ended = [form.fullmatch(each) for each in guarded.complaints]
    assert {(each[2], int(each[3])) for each in ended} == {("edge-0", AGAIN), ("strangers", STRANGERS_MAX)}
    assert sum(int(each[1]) for each in ended) == 6 + 5


def test_a_peer_that_does_not_read_is_cut_off(make_guarded):
    """What is to be sent to it is not kept for ever; the next connection of its node is another."""
    guarded = make_guarded()
    silent, other = speak(guarded, "edge-0", "edge-1")
    peers = [silent.getsockopt_string(zmq.IDENTITY), other.getsockopt_string(zmq.IDENTITY)]
    guarded.endpoint.network, sent = "management", 0
    while guarded.endpoint.send(peers[0], push_message("server"), [bytes(250_000)] * 4):
        sent += 1
        assert sent < 1_000
    guarded.until(lambda: len(guarded.held) == 1 and len(guarded.complaints) > 1)

    assert guarded.complaints[1:] == [f"ended: {peers[0]!r} does not read what it is sent"]
    assert guarded.endpoint.send(peers[1], push_message("server"), [bytes(250_000)] * 4)
    guarded.endpoint.network = "data"
    assert is_heard(guarded, other, "edge-1")


def test_connections_are_ended_also_where_no_file_can_be_opened_any_more(make_guarded, monkeypatch):
    """A copy of each, by which the right one is surely met, is a file more."""

    def none_free(number):
        raise OSError(errno.EMFILE, "Too many open files")

    guarded = make_guarded()
    guarded.endpoint.limits.most = 2
    monkeypatch.setattr(message_limits, "borrowed", none_free)
    opened = [guarded.enter() for _ in range(5)]
    guarded.until(lambda: len(guarded.held) == 2 and guarded.complaints)

    assert all(map(is_ended, opened[2:]))


@pytest.mark.parametrize("files", [300, 100_000])
def test_no_more_connections_are_let_in_than_there_may_be_files(monkeypatch, files):
    """But always those that the nodes need."""
    monkeypatch.setattr(message_limits.resource, "getrlimit", lambda _: (files, files))
    all_limits = [
        SocketLimits.for_messages("tcp://127.0.0.1:1", 1, 1, nodes=NODES[:count], used=2) for count in (10, 100)
    ]

    expected = {300: [144, 216], 100_000: [AGAIN * (STRANGERS_MAX + 20), AGAIN * (STRANGERS_MAX + 200)]}
    assert [limits.most for limits in all_limits] == expected[files]
