"""A small fleet: six parameters, a server, an evaluator, a few workers."""

import heapq
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from any_update import ANY_UPDATE
from controlled_fleet import Fleet
from evaluated import MEASURES
from node_plans import know_all, plan_of_role
from staged_world import World
from tasks import one_array

from edgebed.algorithms.registry import PRESETS
from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.core.plan import Method, Part, Task, TensorLayout, TrainingNode, TrainingPlan
from edgebed.core.planned.fault import FaultPlan
from edgebed.core.records import Record
from edgebed.roles.control.controller import ResumedTrial
from edgebed.roles.events import Disconnected, Effect, Journal, MessageReceived, Send, Wake, Woken
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.wire.messages import AnyMessage, Checkpoint, Failed, Finish, Join, Model, Push, Refuse
from edgebed.wire.tensors import decode_dense, encode_update, split_frames

BENCH_WORKERS = ("edge-0", "edge-1", "edge-2")
ONES = ModelUpdate(6, None, np.ones(6, "f4"))

TASK = Task(
    model="small",
    inputs=one_array((1, 8, 8)),
    outputs=10,
    layout=(TensorLayout("w", (2, 2)), TensorLayout("b", (2,))),
    batch_size=4,
    gradient_time_s=0.01,
)


def preset(name: str) -> Method:
    """A preset as the plan has it."""
    parts = {
        kind: Part(name=part["name"], settings={key: value for key, value in part.items() if key != "name"})
        for kind, part in PRESETS[name].items()
    }
    return Method(name=name, parts=parts)


def plan_node(node: str, role: str, **fields: Any) -> TrainingNode:
    """A node of the fleet."""
    given = {"device_class": role, "seed": 1, "task": TASK, "method": preset("asgd"), "num_examples": 10} | fields
    return plan_of_role(node=node, role=role, **given)


@pytest.fixture(scope="session")
def make_node() -> Callable[..., TrainingNode]:
    """`make_node(name, role, **fields)`."""
    return plan_node


@pytest.fixture(scope="session")
def make_plan() -> Callable[..., TrainingPlan]:
    """`make_plan(num_workers, **fields)`: a trial with workers edge-0, edge-1 and so on."""

    def make(num_workers: int = 2, **fields: Any) -> TrainingPlan:
        nodes = (
            plan_node("server", "server", stop_updates=fields.get("stop_updates")),
            plan_node("evaluator", "evaluator", evaluate_every_updates=2),
            *(plan_node(f"edge-{k}", "worker") for k in range(num_workers)),
        )
        return TrainingPlan(
            scenario="test", trial="asgd", question="", seed=1, measures=MEASURES, nodes=nodes, **fields
        )

    return make


@pytest.fixture(scope="session")
def received() -> Callable[..., MessageReceived]:
    """`received(message, frames, peer)`: the event that a message arrived, from its sender's connection."""

    def receive(message: AnyMessage, frames: Any = (), peer: str = "") -> MessageReceived:
        return MessageReceived(peer or message.sender, message, frames, 100)

    return receive


@pytest.fixture(scope="session")
def sent() -> Callable[..., list[tuple[str, AnyMessage]]]:
    """`sent(effects)`: (to, message) of each message among them."""

    def select(effects: list[Effect]) -> list[tuple[str, AnyMessage]]:
        return [(effect.to, effect.message) for effect in effects if isinstance(effect, Send)]

    return select


@pytest.fixture(scope="session")
def journalled() -> Callable[..., list[Record]]:
    """`journalled(effects)`: the records among them."""

    def select(effects: list[Effect]) -> list[Record]:
        return [effect.record for effect in effects if isinstance(effect, Journal)]

    return select


class ServerBench:
    """Tells a server of three workers what happens and keeps what it does; wakes come at their time."""

    def __init__(self, plan, version=0):
        self.server = know_all(ParameterServer(plan, np.zeros(6, "f4"), BENCH_WORKERS, version=version))
        self.now = 0.0
        self.wakes = []
        self.steps = {}
        self.journal = []
        self.sent = []
        """(to, message, frames)"""

    def handle(self, event):
        """The records and messages that come of it, as (records, [(to, message)])."""
        begin = len(self.journal), len(self.sent)
        for effect in self.server.handle(event, self.now):
            if isinstance(effect, Journal):
                self.journal.append(effect.record)
            elif isinstance(effect, Wake):
                heapq.heappush(self.wakes, (effect.at_s, len(self.wakes), effect.token))
            else:
                assert isinstance(effect, Send)
                self.sent.append((effect.to, effect.message, effect.frames))
        return self.journal[begin[0] :], [each[:2] for each in self.sent[begin[1] :]]

    def wait_until(self, at_s):
        """Time passes; the records of what happens meanwhile."""
        begin = len(self.journal)
        while self.wakes and self.wakes[0][0] <= at_s:
            self.now, _, token = heapq.heappop(self.wakes)
            self.handle(Woken(token))
        self.now = at_s
        return self.journal[begin:]

    def join(self, worker, incarnation=1, joins=0, peer=""):
        """A worker joins."""
        return self.tell(Join(sender=worker, incarnation=incarnation, joins=joins), peer=peer)

    def push(self, worker, *, base=None, step=None, incarnation=1, joins=0, peer="", update=None):
        """It pushes: ones, if nothing else is said, computed at the present model, the step after its last."""
        step = self.steps.get((worker, incarnation), -1) + 1 if step is None else step
        self.steps[worker, incarnation] = step
        tensor, frames = encode_update("update", update or ONES)
        base = self.server.aggregation.version if base is None else base
        push = Push(
            sender=worker, incarnation=incarnation, joins=joins, step=step, base=base, loss=1.0, tensors=(tensor,)
        )
        return self.tell(push, frames, peer)

    def disconnect(self, peer):
        """The connection of a peer breaks."""
        return self.handle(Disconnected(peer))

    def fail(self, worker, incarnation=1):
        """The controller says that a worker has failed."""
        return self.tell(Failed(sender="controller", node=worker, incarnation=incarnation))

    def finish(self):
        """The controller ends the training."""
        return self.tell(Finish(sender="controller", reason="enough"))

    def tell(self, message, frames=(), peer=""):
        """A message comes."""
        return self.handle(MessageReceived(peer or message.sender, message, frames, 100))

    def kept(self, kind):
        """All records of a kind."""
        return [record for record in self.journal if isinstance(record, kind)]

    def left(self):
        """(worker, reason) of all who have left, in order."""
        return [(record.worker, record.reason) for record in self.kept(records.Left)]

    def checkpoints(self):
        """(version, final, first parameter) of all that were handed over."""
        handed = [each for each in self.sent if isinstance(each[1], Checkpoint) and each[0] == "controller"]
        models = [decode_dense(*split_frames(message.tensors, frames)["theta"]) for _, message, frames in handed]
        return [
            (message.version, message.final, round(float(theta[0]), 6))
            for (_, message, _), theta in zip(handed, models, strict=True)
        ]

    @staticmethod
    def answers(sent):
        """(to, version) of each model, (to, code) of each refusal."""
        return [
            (to, message.version if isinstance(message, Model) else message.code)
            for to, message in sent if isinstance(message, (Model, Refuse))
        ]  # fmt: skip


@pytest.fixture(scope="session")
def make_bench() -> Callable[..., ServerBench]:
    """`make_bench(version=…, parts={…}, aggregation=Part(…), method=…, **plan)`: a server of three workers, zeros."""

    def make(
        version: int = 0,
        aggregation: Part | None = None,
        method: str = "asgd",
        parts: Mapping[str, Part] = MappingProxyType({}),
        **fields: Any,
    ) -> ServerBench:
        made = preset(method)
        given = parts if aggregation is None else {**parts, "aggregation": aggregation}
        made = msgspec.structs.replace(made, parts=made.parts | {"compression": ANY_UPDATE} | dict(given))
        return ServerBench(plan_node("server", "server", method=made, **fields), version)

    return make


@pytest.fixture(scope="session")
def make_world(make_plan: Callable[..., TrainingPlan]) -> Callable[..., World]:
    """`make_world(*faults, num_workers=2, past=None, **plan_fields)`."""

    def make(*faults: FaultPlan, num_workers: int = 2, past: ResumedTrial | None = None, **fields: Any) -> World:
        return World(make_plan(num_workers, faults=faults, **fields), past)

    return make


@pytest.fixture(scope="session")
def make_fleet(make_plan, received):
    """`make_fleet(num_workers, **plan_fields)`: launched."""

    def make(num_workers=2, **fields):
        return Fleet(make_plan(num_workers, **fields), received)

    return make


@pytest.fixture
def fleet(make_fleet):
    """Two workers, launched."""
    return make_fleet()
