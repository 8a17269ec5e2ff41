"""The controller's side of a link's helper, over a connection as the engine gives it: what is said when it fails."""

import contextlib
import queue
import socket
import struct
import threading
import types
from collections.abc import Iterator

import docker
import msgspec
import pytest
from node_plans import plan_of_role

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.core.records import Clock
from edgebed.emulation import shaping
from edgebed.emulation.orders import ClockLine, HelperCommand
from edgebed.runtimes.containers import links
from edgebed.runtimes.containers.engine import Conversation, Stream
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.site import EngineNetwork, Site

STDOUT, STDERR = 1, 2
DEADLINE_S = 20.0
CUT = Injection(node="edge-0", action="cut")


class Engine:
    """Stands in for the engine: one helper, whose end of the connection the test holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.near, self.helper = socket.socketpair()
        self.removed: list[str] = []
        self.nexts: list[str] = []
        """What the helpers say that come after one that was removed, the last first."""
        self.node_is_running = True
        self.api = types.SimpleNamespace(
            create_container=lambda *_, **__: {"Id": "helper"},
            create_host_config=lambda **_: {},
            start=lambda _: None,
            remove_container=self._remove,
            inspect_container=lambda _: {"State": {"Running": self.node_is_running}},
        )
        self.clients = {"": self}
        monkeypatch.setattr(links, "conversing", self._conversing)

    def of(self, node: TrainingNode) -> "Engine":
        """The one that has every node."""
        return self

    @contextlib.contextmanager
    def _conversing(self, client: docker.DockerClient, container: str) -> Iterator[Conversation]:
        yield Conversation(Stream(socket.SocketIO(self.near, "rwb")))

    def _remove(self, container: str, **_: bool) -> None:
        self.removed.append(container)
        self.helper.close()
        if self.nexts:
            self.near.close()
            self.near, self.helper = socket.socketpair()
            if said := self.nexts.pop():
                self.says(said)

    def says(self, text: str, stream: int = STDOUT) -> None:
        """A frame of the engine's."""
        self.helper.sendall(struct.pack(">BxxxI", stream, len(text)) + text.encode())


@pytest.fixture
def node() -> TrainingNode:
    """A worker whose link changes."""
    link = LinkPlan(uplink_bit_s=1_000_000, changes=(LinkChange(at_s=1.0, uplink_bit_s=2_000_000),))
    return plan_of_role(node="edge-0", role="worker", device_class="edge", link=link)


@pytest.fixture
def engine(monkeypatch) -> Iterator[Engine]:
    """With its connection."""
    made = Engine(monkeypatch)
    yield made
    made.near.close()
    made.helper.close()


@pytest.fixture
def complaints() -> queue.SimpleQueue[EdgebedError]:
    """What the launcher is told."""
    return queue.SimpleQueue()


@pytest.fixture
def made(engine, node, complaints) -> Links:
    """Links of a trial with that worker."""
    site = Site(data=EngineNetwork("1" * 64, "10.1.0.0/16", "10.1.0.1"), name="name", labels={})
    plan = TrainingPlan(scenario="-", trial="-", question="-", seed=1, nodes=(node,))
    return Links(engine, site, "image", plan, complaints.put)


def listening() -> threading.Thread:
    """The thread that listens to the helper."""
    (found,) = [thread for thread in threading.enumerate() if thread.name == "edge-0-link"]
    return found


@pytest.mark.parametrize("words", ["", "MemoryError\n"])
def test_a_helper_that_dies_without_an_answer_is_complained_of(engine, made, node, complaints, words):
    """Killed or with a traceback: its link would follow its timeline no more, and nobody would know."""
    engine.says('{"interface":"eth1"}\n')
    made.set(node, 1, "container")

    engine.says(f"Traceback (most recent call last):\n{words}" if words else "", STDERR)
    engine.helper.shutdown(socket.SHUT_RDWR)

    assert str(complaints.get(timeout=DEADLINE_S)) == (
        "the link of edge-0 does not change any more: the helper that sets the link ended: "
        f"{words.strip() or 'without a word'}"
    )


def test_a_helper_that_says_what_is_wrong_is_quoted(engine, made, node, complaints):
    """It has been refused something while the link was to change."""
    engine.says('{"interface":"eth1"}\n')
    made.set(node, 1, "container")
    engine.says('{"problem":"the kernel refuses"}\n')
    engine.helper.shutdown(socket.SHUT_WR)

    assert str(complaints.get(timeout=DEADLINE_S)).endswith("does not change any more: the kernel refuses")


def test_a_helper_whose_node_has_ended_is_not_complained_of(engine, made, node, complaints):
    """It goes with its node."""
    engine.says('{"interface":"eth1"}\n')
    helper = made.set(node, 1, "container")
    thread = listening()
    made.release(helper)
    thread.join(DEADLINE_S)

    assert engine.removed == [helper.container]
    assert complaints.empty()


def test_a_helper_that_fails_because_its_node_has_ended_is_not_complained_of(engine, made, node, complaints):
    """The engine takes the network apart before anybody can have heard that the node has ended."""
    engine.says('{"interface":"eth1"}\n')
    made.set(node, 1, "container")
    thread = listening()
    engine.node_is_running = False
    engine.says('{"problem":"there is no network interface eth1"}\n')
    engine.helper.shutdown(socket.SHUT_RDWR)
    thread.join(DEADLINE_S)

    assert not thread.is_alive()
    assert complaints.empty()


def test_a_helper_is_asked_by_number(engine, made, node, complaints):
    """What comes too late for an earlier question is not the answer to this one; a refusal ends nothing."""
    engine.says('{"interface":"eth1"}\n')
    helper = made.set(node, 1, "container")
    engine.says('{"done":6,"problem":"too late"}\n{"done":7}\n')
    helper.change(7, CUT)
    engine.says('{"done":8,"problem":"the kernel refuses"}\n')
    with pytest.raises(InfrastructureError, match=r"^the kernel refuses$"):
        helper.change(8, CUT)

    asked = [msgspec.json.decode(line, type=HelperCommand) for line in engine.helper.recv(1 << 16).splitlines()[1:]]
    assert asked == [HelperCommand(change=CUT, number=7), HelperCommand(change=CUT, number=8)]
    assert complaints.empty()
    thread = listening()
    made.release(helper)
    thread.join(DEADLINE_S)


def test_a_helper_that_has_ended_answers_nothing(engine, made, node, complaints):
    """Whoever asks is told so, and so is whoever asks again."""
    engine.says('{"interface":"eth1"}\n')
    helper = made.set(node, 1, "container")
    engine.says("", STDERR)
    engine.helper.shutdown(socket.SHUT_WR)

    for _ in range(2):
        with pytest.raises(InfrastructureError, match="the helper that sets the link ended: without a word"):
            helper.change(1, CUT)
    assert complaints.get(timeout=DEADLINE_S)


def test_a_helper_that_says_nothing_is_given_up(engine, made, node, monkeypatch):
    """Only so many containers are started at a time: one must not wait for ever. Another one is tried."""
    monkeypatch.setattr(links, "ANSWER_S", 0.05)
    monkeypatch.setattr("edgebed.core.patience.threads_a_core", lambda: 2.0)

    engine.nexts = ['{"problem":"the kernel refuses"}\n', ""]
    with pytest.raises(InfrastructureError, match=r"has said nothing for 0\.1 s, and this machine is busy: 2 threads"):
        made.set(node, 1, "container")
    assert engine.removed == ["helper", "helper"]
    with pytest.raises(InfrastructureError, match=r"^the kernel refuses$"):
        made.set(node, 1, "container")


def heard_by(engine: Engine, lines: int) -> list[HelperCommand]:
    """The next lines that the helper is told, each as it reads it."""
    said = b""
    while said.count(b"\n") < lines:
        said += engine.helper.recv(4096)
    return [msgspec.json.decode(line, type=HelperCommand) for line in said.splitlines()]


def test_a_helper_on_another_host_is_told_how_its_clock_differs(engine, made, node):
    """As its node has measured it: before the training, and whenever that is news; it looks at its timeline anew."""
    engine.says('{"interface":"eth1"}\n')
    made.set(node, 1, "container")
    made.clock_told("edge-1", Clock(offset_s=7.0, own_s=1.0, drift=0.0, error_s=0.1, round_trip_s=0.2))
    made.clock_told("edge-0", Clock(offset_s=-1000.0, own_s=1500.0, drift=1e-4, error_s=0.1, round_trip_s=0.2))
    made.began(510.0)
    first, *others = heard_by(engine, 4)  # the order, and three more
    listener = listening()
    engine.helper.shutdown(socket.SHUT_RDWR)
    listener.join(DEADLINE_S)

    assert first == HelperCommand()
    assert [told.clock for told in others] == [ClockLine(-1000.0, 1500.0, 1e-4)] * 2 + [None]
    assert [told.began for told in others] == [None, None, 510.0]


def test_a_timeline_is_followed_by_the_controllers_clock(monkeypatch, node):
    """It changes a second after training began there, whatever one's own clock shows and however that drifts."""
    own_s, held = [2500.0], []
    monkeypatch.setattr(shaping, "time", types.SimpleNamespace(monotonic=lambda: own_s[0]))
    shaper = types.SimpleNamespace(apply=held.append)
    shaped = shaping.Shaping(lambda _: shaper)
    shaped.add("edge-0", node.link)
    shaped.obey(b'{"clock":{"offset_s":-1000.0,"own_s":1500.0,"drift":-0.001}}')
    shaped.obey(b'{"began":1498.5}')  # there it is 1499

    shaped.tick()
    assert shaped.due_s() == pytest.approx(2500.5)
    own_s[0] = 2500.4
    shaped.tick()
    own_s[0] = 2500.6
    shaped.tick()
    assert [state.uplink_bit_s for state in held] == [1_000_000, 1_000_000, 2_000_000]
    shaped.obey(b'{"clock":{"offset_s":-1002.0,"own_s":2500.6}}')
    shaped.tick()
    assert held[-1].uplink_bit_s == 1_000_000, "it was not that late there"
