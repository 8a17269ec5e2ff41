"""A live shell over loopback: where a push is, a server that moves, faults that the node does to itself."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zmq
from live_shell import shell_of
from run_secret import CREDENTIALS, SECRET
from waiting import until

from edgebed.core import records
from edgebed.core.planned.fault import Injection, PointTrigger, Trigger
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.model.link_model import link_model_of
from edgebed.metrics.discovery import Visits
from edgebed.roles.events import Disconnected, EndNode, MessageReceived, Observe
from edgebed.roles.work import GradientResult
from edgebed.roles.worker import Worker
from edgebed.runtimes.live.data_endpoints import DataDealer, DataRouter
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.heartbeat import HEARTBEAT, heartbeats
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.lingering import linger
from edgebed.runtimes.live.sockets import bind, data_socket, management_socket
from edgebed.wire import messages
from edgebed.wire.tensors import encode_dense

HOST = "127.0.0.1"
PATIENCE_S = 20.0
SIZE = 500_000  # of an update in numbers: more than what a socket takes that nobody reads
POINTS = ("before-push", "during-push", "after-push", "during-pull", "after-pull")


class Work:
    """Gradients out of nothing."""

    def run(self, job):
        """All zero."""
        tensor, frames = encode_dense("update", np.zeros(SIZE, "f4"))
        return GradientResult((tensor,), frames, 1.0, None, 0.0, 0.0)


class LongWork(Work):
    """Gradients that take until somebody says so."""

    def __init__(self):
        self.begun, self.done = threading.Event(), threading.Event()

    def run(self, job):
        """All zero, in the end."""
        self.begun.set()
        assert self.done.wait(PATIENCE_S)
        return super().run(job)


class Stage:
    """A worker's shell in a thread; the test is its controller and its server."""

    def __init__(self, context, plan):
        self.context = context
        self.sockets, self.ends = [], []
        management = self._keep(management_socket(context, zmq.ROUTER, CREDENTIALS))
        self.controller = RouterEndpoint(management, "management", pytest.fail)
        address = bind(management, HOST)
        self.server, self.address = self.listen()
        told = self._keep(management_socket(context, zmq.DEALER, CREDENTIALS, f"{plan.node}~1"))
        told.connect(address)
        assert told.poll(1000 * PATIENCE_S, zmq.POLLOUT)
        self.told = DealerEndpoint(told, "controller", "management", pytest.fail)
        self.told.send(messages.Hello(sender=plan.node, pid=1), [])
        dealer = DataDealer(self._keep(data_socket(context, zmq.DEALER, CREDENTIALS, f"{plan.node}~1")), pytest.fail)
        data = DataEnds(None, {"server": dealer})
        self.data, self.life, self.visits = data, Lifetime(time.monotonic_ns()), Visits()
        self.node = shell_of(plan, Worker(plan), self.told, data, self.life, runner=Work())
        self.hear(messages.Hello)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        self.journal = []

    def run(self):
        """As `live/node.py`."""
        self.node.run()
        linger(self.life, self.visits, self.told)

    def _keep(self, socket):
        self.sockets.append(socket)
        return socket

    def listen(self):
        """A server's end."""
        socket = self._keep(data_socket(self.context, zmq.ROUTER, CREDENTIALS))
        self.ends.append(DataRouter(socket, pytest.fail))
        return self.ends[-1], bind(socket, HOST)

    def close(self):
        """End the shell."""
        self.tell(messages.Stop(sender="controller", reason="enough"))
        self.thread.join()
        for end in (*self.ends, self.told, *self.data.dealers.values()):
            end.monitor.close(linger=0)
        for socket in self.sockets:
            socket.close(linger=0)

    def tell(self, message):
        """As its controller."""
        self.controller.send("edge-0~1", message, [])

    def start(self, address=""):
        """Tell it where the server is."""
        self.tell(
            messages.Start(
                sender="controller", addresses=(("server", address or self.address),), began_s=self.life.now()
            )
        )

    def hear(self, kind, endpoint=None):
        """The next message of a kind, to the controller or to a server; reports are kept."""
        endpoint, until_s = endpoint or self.controller, time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            if endpoint.socket.poll(10):
                for event in endpoint.receive(1):
                    if isinstance(event.message, messages.Report):
                        self.journal += [record for _, record in event.message.records]
                    if isinstance(event.message, kind):
                        return event.message
        raise AssertionError(f"no {kind.__name__}")

    def is_silent(self):
        """Whether nothing comes to the server for a moment."""
        return not self.server.socket.poll(200)

    def answer(self, joins=0, endpoint=None, *, final=False):
        """As the server."""
        tensor, frames = encode_dense("theta", np.zeros(SIZE, "f4"))
        model = messages.Model(sender="server", version=0, final=final, joins=joins, tensors=(tensor,))
        (endpoint or self.server).send("edge-0~1", model, frames)

    def inject(self, action, **what):
        """Tell it what is done to it."""
        self.tell(messages.Inject(sender="controller", injection=Injection(node="edge-0", action=action, **what)))


@pytest.fixture
def make_stage(context, make_node):
    """`make_stage(**plan)`: a worker's shell that runs."""
    stages = []

    def make(**asked):
        stages.append(Stage(context, make_node(**asked)))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_stops_at_a_point_and_goes_on_when_told(point, make_stage):
    """Where it says it is: whether its push has come by then shows it. How far it had come it has reported before."""
    trigger = PointTrigger(fault=4, trigger=Trigger(point=point, step=1))
    stage = make_stage(points=(trigger,))
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    stage.hear(messages.Push, stage.server)
    stage.answer()

    if point in ("during-push", "after-push"):
        stage.hear(messages.Push, stage.server)
    reached = stage.hear(messages.Reached)
    assert (reached.fault, reached.step) == (4, 1)
    account = [record for record in stage.journal if isinstance(record, records.Pushes)][-1]
    expected = (1, 1) if "pull" in point else (2, 1) if point == "before-push" else (2, 2)
    assert (account.begun, account.pushed) == expected
    if point in ("during-push", "after-push"):
        stage.answer()
    assert stage.is_silent()

    stage.tell(messages.Proceed(sender="controller"))
    assert stage.hear(messages.Push, stage.server).step == (2 if point in ("during-push", "after-push") else 1)


def test_a_server_that_moved_is_joined_at_its_new_place(make_stage):
    """What the old one was asked is given up, and journaled so; the same place told again is a join anew, too."""
    stage = make_stage()
    stage.start()
    stage.hear(messages.Join, stage.server)
    other, address = stage.listen()

    stage.start(address)
    assert stage.hear(messages.Join, other).joins == 1
    stage.start(address)
    assert stage.hear(messages.Join, other).joins == 2
    stage.answer(2, other)
    assert stage.hear(messages.Push, other).joins == 2
    stage.node.reporter.urgent = True
    while not any(isinstance(record, records.Unanswered) for record in stage.journal):
        stage.hear(messages.Report)


def test_a_connection_that_broke_is_told_to_the_worker_which_joins_anew(make_stage):
    """And its push, which nobody answers any more, is given up."""
    stage = make_stage()
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    stage.hear(messages.Push, stage.server)

    stage.server.end()
    assert stage.hear(messages.Join, stage.server).joins == 1


def test_a_cut_that_the_node_makes_holds_back_what_is_sent_meanwhile(make_stage):
    """After the heal it leaves."""
    stage = make_stage()
    stage.inject("cut")
    stage.start()
    assert stage.is_silent()

    stage.inject("heal")
    assert stage.hear(messages.Join, stage.server).joins == 0


def test_a_long_cut_that_the_node_makes_ends_its_connection(make_stage, monkeypatch):
    """What was on its way is lost, and it joins anew."""
    monkeypatch.setattr("edgebed.emulation.outage.DEAD_S", 0.0)
    stage = make_stage()
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.inject("cut")
    stage.inject("cpus", cpus=0.25)  # the cut has been made when this has
    until_s = time.monotonic() + PATIENCE_S
    while stage.node.device.pace != 0.25:
        assert time.monotonic() < until_s
    stage.answer()
    time.sleep(0.3)  # nothing tells when ZeroMQ's thread has it; what comes after the heal is not lost

    stage.inject("heal")
    assert stage.hear(messages.Join, stage.server).joins == 1


def test_a_cap_that_the_node_itself_holds_is_changed_and_given_back(make_stage):
    """None: as planned again."""
    stage = make_stage(cpus=0.5)
    assert stage.node.device.pace == 0.5
    stage.node.inject(Injection(node="edge-0", action="cpus", cpus=0.1))
    assert stage.node.device.pace == stage.node.device.cpus == 0.1
    stage.node.inject(Injection(node="edge-0", action="cpus"))
    assert stage.node.device.pace == stage.node.device.cpus == 0.5


def test_memory_without_a_cap_is_not_filled(make_stage):
    """The machine's own would be."""
    stage = make_stage()
    stage.inject("memory")
    while not any(isinstance(record, records.Note) for record in stage.journal):
        stage.hear(messages.Report)


def test_a_worker_reports_its_account(make_stage):
    """When it has changed."""
    stage = make_stage()
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    stage.hear(messages.Push, stage.server)
    expected = records.Pushes(incarnation=1, begun=1, pushed=1)
    while expected not in stage.journal:
        stage.hear(messages.Report)
    stage.answer(final=True)


@pytest.mark.parametrize("trained", [True, False])
def test_only_a_node_that_has_trained_waits_for_its_last_scrape(trained, make_stage, monkeypatch):
    """Another may have heard of the end so late that its controller would give it up for dead."""
    stage, waits = make_stage(), threading.Event()
    monkeypatch.setattr(stage.visits, "expect_scrape", waits.set)
    enough = messages.Stop(sender="controller", reason="enough", linger_s=2 * PATIENCE_S)
    if trained:
        stage.start()
        stage.hear(messages.Join, stage.server)

    stage.tell(enough)
    if trained:
        assert waits.wait(PATIENCE_S)
        stage.tell(enough)  # it need not wait any longer

    stage.thread.join(PATIENCE_S)
    assert not stage.thread.is_alive()
    assert waits.is_set() == trained


def test_signs_of_life_come_from_a_connection_of_their_own(context):
    """As long as they are to, and the thread is gone afterwards."""
    router = management_socket(context, zmq.ROUTER, CREDENTIALS)
    address = bind(router, HOST)
    endpoint = RouterEndpoint(router, "management", pytest.fail)
    with heartbeats(context, address, CREDENTIALS, "edge-0~ab", messages.Alive(sender="edge-0", incarnation=3), 0.03):
        for _ in range(3):
            assert router.poll(1000 * PATIENCE_S)
            (event,) = endpoint.receive(1)
            assert (event.peer, event.message.incarnation) == ("edge-0~ab" + HEARTBEAT, 3)
    assert not any(thread.name == "signs" for thread in threading.enumerate())
    router.close(linger=0)


BUSY = """
import sys, zmq
from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.heartbeat import heartbeats
from edgebed.wire.messages import Alive
given = sys.argv[1], Credentials.of(sys.argv[2]), "edge-0~1", Alive(sender="edge-0", incarnation=1), 0.03, 0.5
with heartbeats(zmq.Context(), *given):
    while True:
        pass
"""


def test_a_node_that_computes_for_ever_ends_with_its_controller(context):
    """It never comes back to its loop, where it would notice; while the controller is there, it goes on."""
    router = management_socket(context, zmq.ROUTER, CREDENTIALS)
    address = bind(router, HOST)
    command = [sys.executable, "-c", BUSY, address, SECRET]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as node:
        try:
            for _ in range(30):
                assert router.poll(1000 * PATIENCE_S), node.poll()
                router.recv_multipart()
            assert node.poll() is None
            router.close(linger=0)

            assert node.wait(PATIENCE_S) == 1
            assert node.stderr.read() == "edge-0: the controller is gone, and the computation does not end\n"
        finally:
            node.kill()


def test_a_servers_heart_is_told_of_a_connection_that_broke(context, make_node):
    """After what had come over it."""
    happened = []

    class Heart:
        """Notes what happens."""

        def handle(self, event, now):
            """Until a connection has broken."""
            if not isinstance(event, Observe):
                happened.append(type(event.message) if isinstance(event, MessageReceived) else event)
            return [EndNode("it broke")] if isinstance(event, Disconnected) else []

    plan = make_node("server", "server")
    router, told, dealer = (
        data_socket(context, zmq.ROUTER, CREDENTIALS),
        management_socket(context, zmq.DEALER, CREDENTIALS, "server~1"),
        data_socket(context, zmq.DEALER, CREDENTIALS, "edge-0~1"),
    )
    data = DataEnds(DataRouter(router, pytest.fail), {})
    dealer.connect(bind(router, HOST))
    assert dealer.poll(1000 * PATIENCE_S, zmq.POLLOUT)
    DealerEndpoint(dealer, "server", "data", pytest.fail).send(messages.Join(sender="edge-0", incarnation=1), [])
    assert router.poll(1000 * PATIENCE_S)
    dealer.close(linger=0)
    management = DealerEndpoint(told, "controller", "management", pytest.fail)
    node = shell_of(plan, Heart(), management, data, Lifetime(time.monotonic_ns()))

    assert node.run() == "it broke"
    assert happened == [messages.Join, Disconnected("edge-0~1")]
    for socket in (*data.monitors, management.monitor, router, told):
        socket.close(linger=0)


def test_a_worker_is_heard_while_its_gradient_takes_long(make_stage):
    """As often as it is asked to be, by the node's own process; the push follows when the gradient is there."""
    stage = make_stage(working_s=0.05)
    stage.node.device.runner = work = LongWork()
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    for _ in range(3):
        assert stage.hear(messages.Working, stage.server) == messages.Working(sender="edge-0")
    work.done.set()

    assert stage.hear(messages.Push, stage.server).step == 0


def test_a_worker_is_heard_through_a_link_that_its_shell_holds(make_stage):
    """What waits for the link leaves while the gradient goes on."""
    stage = make_stage(working_s=0.05, link=LinkPlan(uplink_bit_s=100_000, latency_s=0.02))
    plan = stage.node.plan
    stage.node.connections.link = PacedLink(plan, link_model_of(plan, "model", "line"))
    stage.node.device.runner = work = LongWork()
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    for _ in range(3):
        stage.hear(messages.Working, stage.server)
    work.done.set()


def test_a_worker_whose_job_does_not_end_tells_of_itself_and_hears_the_controller(make_stage):
    """What is done to it takes effect, and what it measured last is not lost where nobody waits for its job."""
    stage = make_stage()
    stage.node.device.runner = work = LongWork()
    looks = []
    stage.node.metering.observe = lambda: looks.append(stage.node.life.stop)
    stage.start()
    stage.hear(messages.Join, stage.server)
    stage.answer()
    assert work.begun.wait(PATIENCE_S)
    stage.inject("cpus", cpus=0.25)
    until(lambda: stage.node.device.cpus == 0.25, "the cap")
    count = len(looks)
    until(lambda: len(looks) > count + 1, "two looks")
    stage.tell(messages.Stop(sender="controller", reason="enough"))
    until(lambda: looks[-1] is not None, "the last words")

    assert not work.done.is_set()
    work.done.set()
