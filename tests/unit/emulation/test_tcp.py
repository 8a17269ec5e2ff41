"""Acknowledgements are counted on real connections, and nothing else is."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

import pytest
import zmq

from edgebed.core.framing import CONGESTION_CONTROLS, HEADER_BYTES, SEGMENT_BYTES, wire_bytes
from edgebed.emulation import tcp
from edgebed.emulation.tcp import IncomingCount

MEGABYTE = 1_000_000
OPENING_PACKETS_MAX = 3
"""Packets without payload that only open or close a connection."""
LOOPBACK_SAVES = wire_bytes(MEGABYTE) - MEGABYTE
"""Segments on the loopback interface are up to 64 kB large."""


@pytest.fixture
def listener():
    """A socket that listens on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def counter_of(listener, **options):
    """The count for that socket."""
    return IncomingCount(f"tcp://127.0.0.1:{listener.getsockname()[1]}", **options)


def connect(listener):
    """Both ends of a connection: the client's, the server's."""
    client = socket.create_connection(listener.getsockname())
    return client, listener.accept()[0]


def transfer(source, target, size=MEGABYTE):
    """Send `size` bytes, and wait until all have come."""
    sender = threading.Thread(target=source.sendall, args=(bytes(size),))
    sender.start()
    left = size
    while left:
        left -= len(target.recv(65_536))
    sender.join()


def packets(counter):
    """The count in packets."""
    return counter.read().ack_bytes / HEADER_BYTES


def test_what_the_server_sends_is_acknowledged_and_what_it_receives_is_not_counted(listener):
    """A megabyte each way; there is at most one acknowledgement a segment."""
    counter = counter_of(listener)
    client, server = connect(listener)
    with client, server:
        opened = packets(counter)
        transfer(server, client)
        acknowledged = packets(counter)
        transfer(client, server)

        assert opened <= OPENING_PACKETS_MAX
        assert opened < acknowledged <= opened + MEGABYTE / SEGMENT_BYTES + 1
        assert packets(counter) - acknowledged < acknowledged - opened  # 700 segments of payload came in


def test_all_that_came_is_counted_with_its_headers(listener):
    """A megabyte in at least as many segments as it fills, each with its header; nothing of what was sent."""
    counter = counter_of(listener)
    client, server = connect(listener)
    with client, server:
        opened = counter.read().all_bytes
        transfer(client, server)
        came = counter.read().all_bytes - opened

        assert wire_bytes(MEGABYTE) - LOOPBACK_SAVES <= came <= 1.1 * wire_bytes(MEGABYTE)


def test_connections_that_have_ended_still_count(listener):
    """And those that come after them are added."""
    counter = counter_of(listener)
    client, server = connect(listener)
    with client, server:
        transfer(server, client)
        before = packets(counter)
    after = packets(counter)
    client, server = connect(listener)
    with client, server:
        transfer(server, client)

        assert before <= after <= before + OPENING_PACKETS_MAX
        assert packets(counter) > after


def test_sockets_of_other_ports_and_other_kinds_are_strangers(listener):
    """The clients' ends are in this process as well, and so are the management network's connections."""
    one, another = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as other, one, another, socket.socket(type=socket.SOCK_DGRAM):
        client, server = connect(other)
        with client, server:
            transfer(server, client)

            assert counter_of(listener).read() == (0, 0)
            assert counter_of(other).read().ack_bytes > 0


def test_the_connections_of_a_zeromq_socket_are_found():
    """Its own thread opens them; its address is what ZeroMQ says."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        router.bind("tcp://127.0.0.1:*")
        address = router.getsockopt_string(zmq.LAST_ENDPOINT)
        counter = IncomingCount(address)
        dealer.connect(address)
        dealer.send(b"")
        identity, _ = router.recv_multipart()
        opened = counter.read().ack_bytes
        router.send_multipart([identity, bytes(MEGABYTE)])
        dealer.recv()

        assert counter.read().ack_bytes > opened > 0


def test_where_the_kernel_does_not_tell_nothing_is_said(listener, tmp_path, monkeypatch):
    """No list of open files; or an older kernel's shorter structure."""
    client, server = connect(listener)
    with client, server:
        assert counter_of(listener, open_files=tmp_path / "missing").read() is None

        monkeypatch.setattr(tcp, "INFO_BYTES", tcp.RECEIVED.size - 1)
        assert counter_of(listener).read() is None


def test_a_file_that_is_closed_meanwhile_is_passed_over(listener, tmp_path):
    """The list is of a moment ago."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    (tmp_path / str(descriptor)).touch()

    assert counter_of(listener, open_files=tmp_path).read() == (0, 0)


def test_looking_leaves_nothing_open(listener):
    """Not one file, and the sockets still work."""
    client, server = connect(listener)
    with client, server:
        counter = counter_of(listener)
        counter.read()
        before = sum(1 for _ in tcp.OPEN_FILES.iterdir())
        for _ in range(5):
            counter.read()

        assert sum(1 for _ in tcp.OPEN_FILES.iterdir()) == before
        transfer(server, client, 10)


SO_RCVBUFFORCE = 33
"""The option of a socket, of socket.h: a receive buffer of a size, whatever the system allows."""


def test_a_connection_counts_what_is_not_acknowledged_and_not_what_a_full_reader_holds_up(listener):
    """A megabyte to who reads it takes little; to who does not read, its buffer fills, which is not the link's time."""
    with contextlib.suppress(PermissionError):  # who is not root has the buffer that the kernel makes by and by
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2 * MEGABYTE)
    client, server = connect(listener)
    with client, server:
        opened = tcp.counters(client.fileno())
        transfer(client, server)
        read = tcp.counters(client.fileno())
        client.setblocking(False)
        for _ in range(200):
            with contextlib.suppress(BlockingIOError):
                client.send(bytes(MEGABYTE))
        time.sleep(0.3)
        unread = tcp.counters(client.fileno())
        came = tcp.counters(server.fileno())

    assert opened.inode == read.inode == unread.inode != came.inode
    assert opened.unacknowledged_s <= read.unacknowledged_s <= unread.unacknowledged_s < read.unacknowledged_s + 0.2
    assert (opened.is_waiting, unread.is_waiting, opened.repeated) == (False, True, 0)
    assert came.came_bytes > 1.5 * MEGABYTE


def test_a_connection_has_the_congestion_control_that_is_chosen_and_not_the_machines(listener):
    """Who is not root may choose Reno alone, or what the machine allows; a file that is none is passed over."""
    client, server = connect(listener)
    with client, server:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        before = tcp.counters(client.fileno()).congestion_control
        tcp.choose_congestion_control(client.fileno())
        after = tcp.counters(client.fileno()).congestion_control
        ended = client.fileno()
    tcp.choose_congestion_control(ended)

    assert before == "reno"
    assert after == "cubic" if os.geteuid() == 0 else after in CONGESTION_CONTROLS


def test_what_is_no_connection_has_no_counters(listener):
    """An ordinary file, and a number that is closed."""
    with Path(os.devnull).open() as file:
        assert tcp.counters(file.fileno()) is None
        number = file.fileno()
    assert tcp.counters(number) is None
