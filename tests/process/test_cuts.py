"""Links that the kernel cuts and heals: live shells in network namespaces, as TCP really has it."""

import contextlib
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import zmq
from live_shell import shell_of
from node_plans import plan_of_role
from run_secret import CREDENTIALS

from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.means import why_no_namespaces
from edgebed.emulation.namespaces import Namespaces, inside
from edgebed.roles.events import Connected, Disconnected, MessageReceived, Observe, Send, Wake, Woken
from edgebed.roles.work import GradientResult
from edgebed.roles.worker import Worker
from edgebed.runtimes.live.data_endpoints import DataDealer, DataRouter, patience_s
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.sockets import bind, data_socket, management_socket
from edgebed.wire import messages
from edgebed.wire.tensors import encode_dense

pytestmark = pytest.mark.timed

HEALED_S = 5.0
"""After a heal the first message has come by then, however long the cut was."""


class Server:
    """Answers with models of some size, after as long as each worker is to wait."""

    def __init__(self, answer_s: dict[str, float], size: int) -> None:
        self.answer_s = answer_s
        self.size = size
        self.asked: dict[str, tuple[str, int]] = {}
        self.heard: list[tuple[float, str, messages.AnyMessage]] = []

    def handle(self, event: MessageReceived | Woken | Disconnected | Observe, now: float) -> list:
        """A join, a push, or the time to answer."""
        if isinstance(event, Observe):
            return []
        if isinstance(event, Woken):
            peer, joins = self.asked.pop(event.token)
            tensor, frames = encode_dense("theta", np.zeros(self.size // 4, "f4"))
            model = messages.Model(sender="server", version=0, final=False, joins=joins, tensors=(tensor,))
            return [Send(peer, model, frames)]
        if isinstance(event, Disconnected) or isinstance(event.message, messages.Start):
            return []
        self.heard.append((now, event.message.sender, event.message))
        token = str(len(self.heard))
        self.asked[token] = event.peer, event.message.joins
        return [Wake(now + self.answer_s[event.message.sender], token)]


class Noting(Worker):
    """Notes when its connection was back."""

    back = 0

    def handle(self, event, now):
        """As a worker does."""
        self.back += isinstance(event, Connected)
        return super().handle(event, now)


class Work:
    """Updates of some size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def run(self, job):
        """All zero."""
        tensor, frames = encode_dense("update", np.zeros(self.size // 4, "f4"))
        return GradientResult((tensor,), frames, 1.0, None, 0.0, 0.0)


def plan_of(node: str, role: str, link: LinkPlan) -> TrainingNode:
    """A node with that link."""
    return plan_of_role(node=node, role=role, link=link, num_examples=10)


class Network:
    """A server and workers that train in namespaces, in threads of this process."""

    def __init__(
        self, stack: contextlib.ExitStack, folder, link: LinkPlan, server: Server, update_bytes: dict[str, int]
    ):
        names = ("server", *update_bytes)
        links = {"server": LinkPlan()} | dict.fromkeys(update_bytes, link)
        self.namespaces = Namespaces(links, folder / "namespaces.log")
        stack.callback(self.namespaces.close)
        context = zmq.Context()
        self.contexts = [context]
        management = management_socket(context, zmq.ROUTER, CREDENTIALS)
        address = bind(management, "127.0.0.1")
        self.controller = RouterEndpoint(management, "management", pytest.fail)
        self.server = server
        self.nodes: dict[str, LiveNode] = {}
        epoch_ns = time.monotonic_ns()
        for name in names:
            home = self.namespaces.homes[name]
            own = zmq.Context()
            self.contexts.append(own)
            plan = plan_of(name, "server" if name == "server" else "worker", LinkPlan() if name == "server" else link)
            effective = EffectiveLink(plan.link)
            with inside(home.namespace):
                if name == "server":
                    socket = data_socket(own, zmq.ROUTER, CREDENTIALS)
                    self.address = bind(socket, home.address)
                else:
                    socket = data_socket(own, zmq.DEALER, CREDENTIALS, f"{name}~1", patience_s(effective.at(0.0)))
            told = management_socket(context, zmq.DEALER, CREDENTIALS, name)
            told.connect(address)
            assert told.poll(10_000, zmq.POLLOUT)
            end = DealerEndpoint(told, "controller", "management", pytest.fail)
            end.send(messages.Hello(sender=name, pid=1), [])
            assert management.recv_multipart()[0] == name.encode()
            is_server = name == "server"
            router = DataRouter(socket, pytest.fail) if is_server else None
            data = DataEnds(router, {} if is_server else {"server": DataDealer(socket, pytest.fail)})
            self.nodes[name] = shell_of(
                plan, server if is_server else Noting(plan), end, data, Lifetime(epoch_ns),
                runner=None if is_server else Work(update_bytes[name]), link=PacedLink(plan, by_kernel=True),
                timelines={} if is_server else {name: effective},
            )  # fmt: skip
        self.threads = [threading.Thread(target=node.run) for node in self.nodes.values()]
        stack.callback(self.stop)
        for thread in self.threads:
            thread.start()
        for name in names:
            start = messages.Start(sender="controller", addresses=(("server", self.address),), began_s=self.now())
            self.controller.send(name, start, [])

    def now(self) -> float:
        """Seconds of the trial."""
        return self.nodes["server"].life.now()

    def stop(self) -> None:
        """End all shells."""
        for name in self.nodes:
            self.controller.send(name, messages.Stop(sender="controller", reason="enough"), [])
        for thread in self.threads:
            thread.join()
        for context in self.contexts:
            context.destroy(linger=0)

    def inject(self, action: str) -> float:
        """Do it to all workers' links; when it was done."""
        workers = [name for name in self.nodes if name != "server"]
        for name in workers:
            self.namespaces.inject(0, Injection(node=name, action=action))
        done = 0
        while done < len(workers):
            for answer in self.namespaces.answers():
                assert not answer.problem
                done += 1
            time.sleep(0.001)
        return self.now()

    def hear(self, name: str, since_s: float, within_s: float) -> float:
        """When the next message of a worker has come."""
        while True:
            for at_s, sender, _ in list(self.server.heard):
                if sender == name and at_s > since_s:
                    return at_s
            assert self.now() < since_s + within_s, f"nothing of {name} within {within_s} s"
            time.sleep(0.01)


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    """What is to be undone, where this kernel and these rights allow."""
    if reason := why_no_namespaces():
        pytest.skip(reason)
    with contextlib.ExitStack() as made:
        yield made


@pytest.mark.parametrize("cut_s", [4.0, 8.0], ids=["TCP lives", "TCP dies"])
def test_after_a_heal_the_first_message_comes_within_seconds(cut_s, stack, tmp_path):
    """Of one that waited for an answer at the cut, and of one that was pushing; whether its connection lived or not.

    TCP alone would be silent for as long again as the cut was.
    """
    network = Network(
        stack,
        tmp_path,
        LinkPlan(uplink_bit_s=10_000_000, downlink_bit_s=10_000_000),
        Server({"waits": 1.0, "pushes": 0.0}, 100_000),
        {"waits": 2_000, "pushes": 2_000_000},
    )
    for name in ("waits", "pushes"):
        network.hear(name, 0.0, 30.0)
    time.sleep(0.5)  # one push leaves for 1.6 s, one answer is due in a second
    network.inject("cut")
    time.sleep(cut_s)
    healed_s = network.inject("heal")

    for name in ("waits", "pushes"):
        network.hear(name, healed_s, HEALED_S + 1.6)
    if cut_s > 6.0:
        assert all(network.nodes[name].heart.back for name in ("waits", "pushes"))


def test_a_slow_link_is_not_taken_for_dead(stack, tmp_path):
    """At 32 kbit/s a model of 40 kB is on its way for ten seconds, an update for as long."""
    network = Network(
        stack,
        tmp_path,
        LinkPlan(uplink_bit_s=32_000, downlink_bit_s=32_000),
        Server({"edge-0": 0.0}, 40_000),
        {"edge-0": 40_000},
    )
    began_s = network.hear("edge-0", 0.0, 30.0)
    pushed_s = network.hear("edge-0", began_s, 90.0)

    assert pushed_s - began_s > 2 * 40_000 * 8 / 32_000 * 0.8
    assert network.nodes["edge-0"].heart.back == 0
