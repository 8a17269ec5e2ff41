"""A server with a log, told what happens by a script that hypothesis draws, and killed wherever one likes.

A script is a list of (what, worker): each is one event of the server's, and its log is in memory.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from hypothesis import strategies as st
from node_plans import know_all
from server_laws import check_deadline, check_effects
from tasks import one_array

from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import compression_of
from edgebed.core.plan import Method, ServerPlan, Task, TensorLayout
from edgebed.core.records import Record
from edgebed.roles.events import Append, Effect, Event, Journal, MessageReceived, Send, Wake, Woken
from edgebed.roles.server.entries import is_durable
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.log_file import FolderInMemory
from edgebed.runtimes.server_log import ServerLog
from edgebed.scenario.methods import resolve_method
from edgebed.wire.messages import Failed, Finish, Join, Model, Push, Start
from edgebed.wire.tensors import Buffer, encode_pieces

N = 12
LATER_S = 1e6
"""When another server goes on, unless a test says it: no script takes that long."""
WORKERS = ("edge-0", "edge-1", "edge-2")
TASK = Task(
    model="small", inputs=one_array((1, 8, 8)), outputs=10, layout=(TensorLayout("w", (3, 4)),), batch_size=4,
    gradient_time_s=0.01,
)  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "asgd": {"preset": "asgd"},
    "adacomp": {"preset": "adacomp"},
    "sync": {"preset": "sync-sgd"},
    "quorum": {"preset": "sync-sgd", "aggregation": {"quorum": 0.6, "deadline_s": 0.5, "momentum": 0.5}},
    "plateau": {"preset": "asgd", "aggregation": {"schedule": "plateau", "patience": 0}},
    "ssp": {"preset": "ssp", "aggregation": {"bound": 1}},
    "softsync": {"preset": "softsync", "aggregation": {"count": 3}},
    "downlink": {"preset": "sync-sgd", "downlink": {"name": "int8"}},
}
ACTIONS = ("push", "push", "push", "again", "join", "failed", "later", "start")
SCRIPTS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(WORKERS)), max_size=40)


@functools.cache
def method_of(name: str) -> Method:
    """One of METHODS, as a plan has it."""
    return resolve_method(METHODS[name])


def server_of(method: str, pull: str = "changed-since", kind: type[ParameterServer] = ParameterServer, **fields: Any):
    """A server of that method with a log, whose model is all zeros."""
    plan = ServerPlan(
        node="server", device_class="server", seed=3, task=TASK, method=method_of(method), pull=pull,
        silence_s=4.0, epochs_a_push=0.1, **{"durability": "log"} | fields,
    )  # fmt: skip
    return know_all(kind(plan, np.zeros(N, "f4"), WORKERS))


class Killed(Exception):  # noqa: N818 - it is no error
    """The server's process is gone in the middle of what it does."""


class BreakingFolder(FolderInMemory):
    """A folder of a process that may be killed while it begins a new file."""

    left: int | None = None
    """How often a file is still made, begun or named; None: always."""

    def _count_down(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed

    def replace(self, name: str, buffers: Sequence[Buffer], *, synced: bool) -> int:
        """Write a new file, in place of any that has the name."""
        self._count_down()
        return super().replace(name, buffers, synced=synced)

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file."""
        is_new = not self.files[file]
        if is_new:
            self._count_down()
        super().write(file, buffers)
        if is_new:
            self._count_down()


class Recovered(NamedTuple):
    """What another server makes of a log."""

    server: ParameterServer
    log: ServerLog
    replayed: Any


def recover(
    content: bytes, method: str, now: float = LATER_S, kind: type[ParameterServer] = ParameterServer
) -> Recovered:
    """Let another server go on from these bytes."""
    folder = FolderInMemory()
    folder.replace("server.log", [content], synced=False)
    server = server_of(method, kind=kind)
    log = ServerLog(server, folder)
    return Recovered(server, log, log.begin(now))


class LoggedServer:
    """A server, its log, and what it said; `kill` puts another in its place."""

    def __init__(self, method: str, *, bytes_min: int = 1 << 20, kind: type[ParameterServer] = ParameterServer) -> None:
        self.method, self.bytes_min, self.kind = method, bytes_min, kind
        self.folder = BreakingFolder()
        self.now = 0.0
        self.records: list[Record] = []
        """Those that come of entries, each once."""
        self.unreported: list[tuple[float, Any]] = []
        """Those that the controller has not been told of in this life, with their times."""
        self.journal: list[Record] = []
        """Those that the controller has."""
        self.told: list[tuple[str, int]] = []
        """(worker, version) of each model that was sent."""
        self.applied: list[tuple[str, int]] = []
        """(worker, step) of each push that was made, in order."""
        self.steps = dict.fromkeys(WORKERS, -1)
        self.lives = dict.fromkeys(WORKERS, 1)
        self.versions = dict.fromkeys(WORKERS, 0)
        """Of the model that each worker was sent last."""
        self.joined: dict[str, int] = {}
        self.joining: set[str] = set()
        """Workers that wait for the answer to a join."""
        self.pushes: dict[str, tuple[Push, Any]] = {}
        self.given_up: set[tuple[str, int]] = set()
        """(worker, step) of pushes whose worker joined again before they were answered."""
        self.wakes: list[tuple[float, str]] = []
        self.kill_in: int | None = None
        """Effects that are still carried out before the server is killed; None: it is not."""
        self._begin()
        for worker in WORKERS:
            self.do("join", worker)

    def _begin(self) -> None:
        self.server = server_of(self.method, kind=self.kind)
        self.log = ServerLog(self.server, self.folder, bytes_min=self.bytes_min)
        self.log.begin(self.now)
        self.records += [record for _, record in list(self.log.untold)[len(self.records) - self.log.told :]]
        self.unreported = self.log.begin_report()
        self.wakes = []

    @property
    def content(self) -> bytes:
        """The log as it is now."""
        found = self.folder.read("server.log")
        assert found is not None
        return found.read()

    def kill(self) -> None:
        """Kill the server, and let another go on; whoever asked something asks once more."""
        try:
            self._begin()
        except Killed:  # while it begins its log
            self._begin()
        self.tell(Start(sender="controller", workers=tuple(self.joined)))
        for worker in self.joined:
            if worker in self.joining:
                self._join(worker)
            elif worker in self.pushes:
                push, frames = self.pushes[worker]
                self.tell(push, frames)

    def do(self, what: str, worker: str) -> None:
        """One event."""
        self.now += 0.25
        if what == "join":
            if worker in self.pushes:
                self.given_up.add((worker, self.pushes.pop(worker)[0].step))
            self._join(worker)
        elif what == "push" and worker not in self.pushes:
            self.steps[worker] += 1
            self.pushes[worker] = self._push(worker)
            self.tell(*self.pushes[worker])
        elif what == "again" and worker in self.pushes:
            self.tell(*self.pushes[worker])
        elif what == "old" and self.joined.get(worker):
            push, frames = self._push(worker)
            self.steps[worker] += 1
            self.tell(msgspec.structs.replace(push, joins=push.joins - 1, step=self.steps[worker]), frames)
        elif what == "failed":
            self.tell(Failed(sender="controller", node=worker, incarnation=1))
        elif what == "start":
            self.tell(Start(sender="controller", workers=(worker,)))
        elif what == "later":
            self.now += 1.0
            while self.wakes and min(self.wakes)[0] <= self.now:
                self.wakes.remove(due := min(self.wakes))
                self.handle(Woken(due[1]))
            check_deadline(self.server, self.now)

    def _join(self, worker: str) -> None:
        self.joined[worker] = self.joined.get(worker, -1) + 1
        self.joining.add(worker)
        self.tell(Join(sender=worker, incarnation=1, joins=self.joined[worker]))

    def report(self, *, is_answered: bool = True) -> None:
        """Tell the controller, which knows by their numbers the records that it has, and says so."""
        number = self.log.number(self.unreported)
        self.journal += [record for _, record in self.unreported[max(0, len(self.journal) - number) :]]
        self.unreported = []
        if is_answered:
            self.log.has_told(len(self.journal))

    def finish(self) -> None:
        """The controller ends the training."""
        self.tell(Finish(sender="controller", reason="enough"))

    def _push(self, worker: str) -> tuple[Push, Any]:
        step = self.steps[worker]
        draw = np.random.default_rng([WORKERS.index(worker), step])
        gradient = draw.standard_normal(N).astype("f4")
        pieces, _ = compression_of(self.server.plan.method, TASK).compress(gradient, None, StepContext(step))
        tensors, frames = encode_pieces(pieces)
        push = Push(
            sender=worker, incarnation=1, joins=self.joined[worker], step=step,
            base=self.versions[worker], loss=1.0 / (1 + step), tensors=tensors,
        )  # fmt: skip
        return push, [bytes(frame) for frame in frames]

    def tell(self, message: Any, frames: Any = ()) -> None:
        """A message comes."""
        self.handle(MessageReceived(message.sender, message, frames, 100))

    def handle(self, event: Event) -> None:
        """Something happens, and all that comes of it."""
        try:
            effects = self.server.handle(event, self.now)
            check_effects(self.server, effects)
            for effect in effects:
                self._count_down()
                self.log.note(self.now, effect)
                self.carry_out(effect)
            self.log.turn()
        except Killed:
            self.kill()

    def _count_down(self) -> None:
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0:
                self.kill_in = None
                raise Killed

    def carry_out(self, effect: Effect) -> None:
        """As a shell does, in order."""
        if isinstance(effect, Append):
            self.log.take(effect)
        elif isinstance(effect, Journal):
            if is_durable(effect.record):
                self.records.append(effect.record)
                self.unreported.append((self.now, effect.record))
        elif isinstance(effect, Wake):
            self.wakes.append((effect.at_s, effect.token))
        elif isinstance(effect, Send) and isinstance(effect.message, Model):
            self.told.append((effect.to, effect.message.version))
            self.versions[effect.to] = effect.message.version
            self.pushes.pop(effect.to, None)
            self.joining.discard(effect.to)
