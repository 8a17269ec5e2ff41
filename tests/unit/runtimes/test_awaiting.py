"""Where a push is, by what TCP says of its connection."""

from types import SimpleNamespace

import pytest
import zmq
from run_secret import SECRET
from waiting import until

from edgebed.emulation.tcp import TcpProgress
from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.awaiting import Awaiting
from edgebed.runtimes.live.data_endpoints import DataDealer
from edgebed.runtimes.live.sockets import bind, data_socket

PUSH = [bytes(100), bytes(1000)]
WIRE_BYTES = 100 + 2 + 1000 + 9  # each frame with its ZMTP header


def progress(acked=500, received=300):
    """A connection that has been used before."""
    return TcpProgress(acked, received, 0.0, 0)


@pytest.fixture
def data():
    """A worker's end, as far as it is asked."""
    made = SimpleNamespace(outbox=[], now=progress(), is_encrypted=False)
    made.connection = SimpleNamespace(look=lambda: made.now)
    return made


@pytest.fixture
def awaiting(data):
    """It has been asked for everything about a push that has been handed over."""
    made = Awaiting(data)
    made.ask()
    made.handed_over(PUSH)
    for point in ("during-push", "after-push", "during-pull"):
        made.await_(point)
    return made


def reached(awaiting, now=1.0):
    """The points that have come."""
    return list(awaiting.reached(now))


def test_points_come_one_after_the_other_as_tcp_has_it(awaiting, data):
    """The push is with the network at once; every byte of it is acknowledged; then something comes."""
    assert reached(awaiting) == ["during-push"]
    data.now = progress(500 + WIRE_BYTES - 1)
    assert reached(awaiting) == []
    data.now = progress(500 + WIRE_BYTES)
    assert reached(awaiting) == ["after-push"]
    data.now = progress(500 + WIRE_BYTES, 301)
    assert reached(awaiting) == ["during-pull"]
    assert reached(awaiting) == []


def test_without_a_connection_nothing_has_left(awaiting, data):
    """It begins when there is one, and counts from there."""
    data.outbox.append(PUSH)
    data.now = progress(0, 0)
    assert reached(awaiting) == []
    data.now = progress(134, 107)
    assert reached(awaiting) == []

    data.outbox.clear()
    data.now = progress(134 + WIRE_BYTES, 107)
    assert reached(awaiting) == ["during-push", "after-push"]


def test_what_the_shell_itself_holds_is_leaving_when_half_of_it_has_left(data):
    """It is handed over only at the end."""
    awaiting = Awaiting(data)
    awaiting.ask()
    awaiting.leaving(1.0, 3.0)
    awaiting.await_("during-push")
    awaiting.await_("after-push")
    data.now = progress(10_000)

    assert reached(awaiting, 1.9) == []
    assert reached(awaiting, 2.0) == ["during-push"]
    assert reached(awaiting, 4.0) == []


def test_the_next_message_begins_anew(awaiting):
    """What was awaited of the one before is not."""
    awaiting.ask()

    assert not awaiting.points
    assert awaiting.before is None


@pytest.mark.parametrize("security", ["plain", "curve"])
def test_a_message_is_as_long_as_tcp_finds_it(context, security):
    """Whatever is put around its frames."""
    credentials = Credentials.of(SECRET, security)
    server = data_socket(context, zmq.ROUTER, credentials)
    worker = DataDealer(data_socket(context, zmq.DEALER, credentials), pytest.fail)
    worker.move(bind(server, "127.0.0.1"))
    until(lambda: worker.look() or worker.is_connected, "connection", every_s=0.01)
    awaiting = Awaiting(worker)

    for frames in (PUSH, [bytes(size) for size in (0, 200, 222, 223, 255, 256, 70_000)]):
        awaiting.handed_over(frames)
        worker.socket.send_multipart(frames)
        assert server.recv_multipart()[1:] == frames
        until(lambda: worker.connection.look().acked >= awaiting.before.acked + awaiting.size, "all", every_s=0.01)
        assert worker.connection.look().acked == awaiting.before.acked + awaiting.size
    for socket in (worker.monitor, worker.socket, server):
        socket.close(linger=0)
