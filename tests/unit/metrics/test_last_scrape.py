"""A node that is told to stop serves its last values until they have been read, over loopback."""

import contextlib
import http.client
import threading
from dataclasses import dataclass

import pytest
import zmq
from live_shell import shell_of
from node_plans import plan_of_role
from run_secret import CREDENTIALS

from edgebed.metrics.discovery import HttpServer, serve_metrics
from edgebed.metrics.exporter import NodeMetrics
from edgebed.runtimes.live.data_endpoints import DataDealer
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.lingering import linger
from edgebed.runtimes.live.sockets import data_socket, management_socket
from edgebed.wire import messages

HOST = "127.0.0.1"
TIMEOUT_S = 20.0
PLAN = plan_of_role(node="edge-0", role="worker", device_class="edge")


@dataclass
class Hosted:
    """A worker's shell in a thread, and its controller's end of the connection."""

    controller: RouterEndpoint
    pages: HttpServer
    thread: threading.Thread
    waits: threading.Event
    """Set once the node waits for its last scrape."""

    def stop(self, linger_s: float) -> None:
        """Tell it to end."""
        self.controller.send("edge-0", messages.Stop(sender="controller", reason="done", linger_s=linger_s), [])

    def visit(self, headers: dict[str, str]) -> None:
        """Ask for its metrics."""
        connection = http.client.HTTPConnection(HOST, self.pages.port, timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers=headers)
            assert connection.getresponse().status == 200

    def has_ended(self) -> bool:
        """Whether it ends, without waiting for what it would wait for in vain."""
        self.thread.join(TIMEOUT_S)
        return not self.thread.is_alive()


@pytest.fixture
def hosted():
    """A worker in the middle of training; its heart has nothing to do."""

    class Heart:
        def handle(self, event, now):
            return []

    def complain(reason):
        raise AssertionError(reason)

    with contextlib.ExitStack() as stack:
        context = zmq.Context()
        stack.callback(context.destroy, linger=0)
        router = management_socket(context, zmq.ROUTER, CREDENTIALS)
        port = router.bind_to_random_port(f"tcp://{HOST}")
        dealer = management_socket(context, zmq.DEALER, CREDENTIALS, "edge-0")
        management = DealerEndpoint(dealer, "controller", "management", complain)
        management.lost_for_s(0.0)
        dealer.connect(f"tcp://{HOST}:{port}")
        assert dealer.poll(TIMEOUT_S * 1000, zmq.POLLOUT)
        management.send(messages.Hello(sender="edge-0", pid=1), [])
        assert router.poll(TIMEOUT_S * 1000)
        data = DataDealer(data_socket(context, zmq.DEALER, CREDENTIALS), complain)
        metrics = NodeMetrics("worker")
        pages, _ = serve_metrics(metrics.registry, HOST)
        stack.enter_context(contextlib.closing(pages))
        waits = threading.Event()
        expect_scrape = pages.visits.expect_scrape

        def expect_and_tell():
            expect_scrape()
            waits.set()

        pages.visits.expect_scrape = expect_and_tell
        life = Lifetime(epoch_ns=0, began_s=0.0)
        node = shell_of(PLAN, Heart(), management, DataEnds(None, {"server": data}), life, metrics=metrics)

        def run():
            node.run()
            linger(life, pages.visits, management)

        thread = threading.Thread(target=run)
        thread.start()
        made = Hosted(RouterEndpoint(router, "management", complain), pages, thread, waits)
        yield made
        with contextlib.suppress(zmq.ZMQError):
            made.stop(0.0)
            made.stop(0.0)
        thread.join()
        dealer.disable_monitor()


def test_a_node_that_nobody_scrapes_leaves_at_once(hosted):
    """The controller knows, and allows no time."""
    hosted.stop(linger_s=0.0)

    assert hosted.has_ended()
    assert not hosted.waits.is_set()


def test_a_node_leaves_when_its_last_values_have_been_read(hosted):
    """By Prometheus; a person who looks at the page is not who is waited for."""
    hosted.stop(linger_s=1_000.0)
    assert hosted.waits.wait(TIMEOUT_S)
    hosted.visit({})
    hosted.visit({})
    assert hosted.thread.is_alive()

    hosted.visit({"X-Prometheus-Scrape-Timeout-Seconds": "2"})
    assert hosted.has_ended()


def test_a_node_that_is_told_twice_leaves_at_once(hosted):
    """Whoever is in a hurry need not wait for Prometheus."""
    hosted.stop(linger_s=1_000.0)
    assert hosted.waits.wait(TIMEOUT_S)
    hosted.stop(linger_s=1_000.0)

    assert hosted.has_ended()


def test_a_node_waits_no_longer_than_it_may(hosted):
    """Prometheus may have gone."""
    hosted.stop(linger_s=0.2)

    assert hosted.waits.wait(TIMEOUT_S)
    assert hosted.has_ended()


def test_a_node_whose_controller_is_gone_waits_for_nobody(hosted):
    """A second later at most."""
    hosted.stop(linger_s=1_000.0)
    assert hosted.waits.wait(TIMEOUT_S)
    hosted.controller.socket.close(linger=0)

    assert hosted.has_ended()
