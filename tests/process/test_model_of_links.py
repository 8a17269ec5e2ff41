"""The transport's own model of links in real time: two live shells, real sockets, and links that must be felt.

A talker sends pushes and a listener answers with models, each of a given size; whoever receives one notes how long it
was on its way by its own words. A busy machine can only make it longer, so the least of several is compared.
"""

import itertools
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
import zmq
from live_shell import shell_of
from node_plans import plan_of_role
from run_secret import CREDENTIALS

from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.core.plan import TrainingNode
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.model.link_model import link_model_of
from edgebed.roles.events import EndNode, MessageReceived, Observe, Send, Wake, Woken
from edgebed.runtimes.live import paced_link as held_link
from edgebed.runtimes.live.data_endpoints import DataDealer, DataRouter
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.paced_link import HAND_OVER_S, PacedLink
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.sockets import bind, data_socket, management_socket
from edgebed.wire import messages
from edgebed.wire.tensors import cut

pytestmark = pytest.mark.timed

MBIT = 1_000_000
PUSH_BYTES = 12_700
MODEL_BYTES = 847_000
SILENCE_S = 0.02  # in which the burst of 1,600 bytes gathers at 1 mbit
NUM_DRAWS = 16  # of which one at least finds its thread a core at once, on a busy machine too
AS_FAST_AS_THE_MACHINE = LinkPlan()


def payload(name: str, size: int) -> tuple[messages.Tensor, list]:
    """A tensor of about `size` bytes."""
    return messages.Tensor(name, "uint8", (size,), "dense", size), cut(np.zeros(size, np.uint8).data)


@dataclass
class Ways:
    """How long the messages that a heart received were on their way, in seconds."""

    push_bytes: int
    model_bytes: int
    num_pushes: int
    took_s: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    count: int = 0

    def note(self, event: MessageReceived, now: float) -> None:
        """It is there."""
        self.took_s.append(now - event.message.sent_s)
        self.sizes.append(event.bytes)


class Talker(Ways):
    """Pushes, waits for the answer and a moment, pushes again; stops after the last one."""

    def handle(self, event: MessageReceived | Woken, now: float) -> list:
        """Start, a model, or the end of the silence."""
        if isinstance(event, Observe):
            return []
        if isinstance(event, MessageReceived) and isinstance(event.message, messages.Model):
            self.note(event, now)
            return [Wake(now + SILENCE_S, "push")]
        if self.count == self.num_pushes:
            return [EndNode("all is said")]
        tensor, frames = payload("update", self.push_bytes)
        push = messages.Push(sender="edge-0", incarnation=1, step=self.count, base=0, loss=0.0, tensors=(tensor,))
        self.count += 1
        return [Send("server", push, frames)]


class Listener(Ways):
    """Answers every push with a model."""

    def handle(self, event: MessageReceived, now: float) -> list:
        """Start or a push."""
        if isinstance(event, Observe):
            return []
        if isinstance(event.message, messages.Start):
            return []
        self.note(event, now)
        tensor, frames = payload("theta", self.model_bytes)
        model = messages.Model(sender="server", version=1, final=False, tensors=(tensor,))
        return [Send(event.peer, model, frames)]


def node_plan(node: str, role: str, link: LinkPlan) -> TrainingNode:
    """A node with that link."""
    return plan_of_role(node=node, role=role, link=link)


def converse(
    talker: LinkPlan,
    listener: LinkPlan = AS_FAST_AS_THE_MACHINE,
    *,
    push: int = 100,
    model: int = 100,
    num_pushes: int = 4,
    roles: tuple[type[Talker], type[Listener]] = (Talker, Listener),
) -> tuple[Talker, Listener, LiveNode]:
    """Both hearts and the talker's shell, when all is said."""
    context = zmq.Context()
    try:
        management = management_socket(context, zmq.ROUTER, CREDENTIALS)
        management_address = bind(management, "127.0.0.1")
        hearts = tuple(role(push, model, num_pushes) for role in roles)
        router = data_socket(context, zmq.ROUTER, CREDENTIALS)
        data_address = bind(router, "127.0.0.1")
        ends = (
            DataEnds(
                None, {"server": DataDealer(data_socket(context, zmq.DEALER, CREDENTIALS, "edge-0~1"), pytest.fail)}
            ),
            DataEnds(DataRouter(router, pytest.fail), {}),
        )
        epoch_ns = time.monotonic_ns()
        nodes = []
        for plan, heart, end in zip(
            (node_plan("edge-0", "worker", talker), node_plan("server", "server", listener)), hearts, ends, strict=True
        ):
            socket = management_socket(context, zmq.DEALER, CREDENTIALS, plan.node)
            socket.connect(management_address)
            assert socket.poll(10_000, zmq.POLLOUT)  # connected
            told = DealerEndpoint(socket, "controller", "management", pytest.fail)
            told.send(messages.Hello(sender=plan.node, pid=1), [])
            assert management.recv_multipart()[0] == plan.node.encode()
            link = PacedLink(plan, link_model_of(plan, "model", "line"))
            nodes.append(shell_of(plan, heart, told, end, Lifetime(epoch_ns), link=link))
        threads = [threading.Thread(target=node.run) for node in nodes]
        for thread in threads:
            thread.start()
        controller = RouterEndpoint(management, "management", pytest.fail)
        start = messages.Start(sender="controller", addresses=(("server", data_address),), began_s=nodes[0].life.now())
        for node in ("server", "edge-0"):
            controller.send(node, start, [])
        threads[0].join(60)
        controller.send("server", messages.Stop(sender="controller", reason="the talker is silent"), [])
        threads[1].join(60)
        assert not any(thread.is_alive() for thread in threads)
        return *hearts, nodes[0]
    finally:
        context.destroy(linger=0)


def alone_s(size: int, mbit: float) -> float:
    """What a message of that payload takes after a silence."""
    return (wire_bytes(size) - burst_bytes(round(mbit * MBIT))) * 8 / (mbit * MBIT)


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize(("size", "mbit"), [(PUSH_BYTES, 10), (MODEL_BYTES, 50)])
def test_a_message_after_a_silence_takes_what_its_bytes_take(direction, size, mbit):
    """Within a tenth, and never less, but for what a message needs without any link."""
    up = direction == "up"
    link = LinkPlan(uplink_bit_s=mbit * MBIT) if up else LinkPlan(downlink_bit_s=mbit * MBIT)
    talker, listener, _ = converse(link, push=size if up else 100, model=100 if up else size, num_pushes=NUM_DRAWS)
    found = listener if up else talker
    least_s = [alone_s(size, mbit) for size in found.sizes]

    assert len(found.took_s) == NUM_DRAWS
    assert all(took_s >= expected_s - HAND_OVER_S for took_s, expected_s in zip(found.took_s, least_s, strict=True))
    assert min(found.took_s) == pytest.approx(least_s[0], rel=0.1)


def test_two_links_in_a_row_take_as_long_as_the_slower_one():
    """Not the sum of both; the talker's waiting includes the way there and back."""
    talker, listener, shell = converse(
        LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=50 * MBIT),
        LinkPlan(uplink_bit_s=20 * MBIT, downlink_bit_s=8 * MBIT),
        push=PUSH_BYTES,
        model=MODEL_BYTES,
        num_pushes=NUM_DRAWS // 2,
    )

    assert min(listener.took_s) == pytest.approx(alone_s(PUSH_BYTES, 8), rel=0.1)
    assert min(talker.took_s) == pytest.approx(alone_s(MODEL_BYTES, 20), rel=0.1)
    assert shell.device.times.wait_s >= sum(talker.took_s) + sum(listener.took_s) - 1e-3
    assert shell.metering.traffic.ingress == sum(talker.sizes)
    assert shell.metering.traffic.egress == sum(listener.sizes)


def test_latency_is_felt_by_the_sender_and_by_the_receiver():
    """A message says when it left, after its sender's latency."""
    talker, listener, shell = converse(LinkPlan(latency_s=0.05), LinkPlan(latency_s=0.02), num_pushes=3)

    assert all(took_s >= 0.02 for took_s in listener.took_s)
    assert all(took_s >= 0.05 for took_s in talker.took_s)
    assert shell.device.times.wait_s >= 3 * 2 * (0.05 + 0.02)


def test_without_a_link_nothing_is_held_and_messages_tell_when_they_left():
    """In seconds of the trial, to the microsecond."""
    talker, listener, shell = converse(AS_FAST_AS_THE_MACHINE, num_pushes=20)

    assert shell.connections.link.passage is None
    assert len(talker.took_s) == len(listener.took_s) == 20
    assert all(0 <= took_s < 5 for took_s in itertools.chain(talker.took_s, listener.took_s))


class Flooder(Talker):
    """Pushes all at once, and stops when all have been answered."""

    def handle(self, event: MessageReceived, now: float) -> list:
        """Start or the answer."""
        if isinstance(event, Observe):
            return []
        if isinstance(event.message, messages.Model):
            return [EndNode("all is said")]
        return [effect for _ in range(self.num_pushes) for effect in super(Flooder, self).handle(event, now)]


class Patient(Listener):
    """Answers the last push."""

    def handle(self, event: MessageReceived, now: float) -> list:
        """Start or a push."""
        answer = super().handle(event, now)
        return answer if len(self.sizes) == self.num_pushes else []


def test_what_waits_for_a_link_is_bounded_and_all_of_it_arrives(monkeypatch):
    """A peer that sends more than the link takes waits, as on a real link; it fills no memory."""
    waiting, arrive = [], PacedLink.arrive

    def noting(link: PacedLink, event: MessageReceived, now: float) -> bool:
        there = arrive(link, event, now)
        waiting.append(link.arriving_bytes)
        return there

    monkeypatch.setattr(held_link, "ARRIVING_BYTES_MAX", 50_000)
    monkeypatch.setattr(PacedLink, "arrive", noting)
    slow = LinkPlan(downlink_bit_s=20 * MBIT)
    _, listener, _ = converse(AS_FAST_AS_THE_MACHINE, slow, push=10_000, num_pushes=200, roles=(Flooder, Patient))

    assert len(listener.sizes) == 200
    assert max(waiting) < 50_000 + 64 * 10_100 < sum(listener.sizes) / 2
