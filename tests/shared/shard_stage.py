"""Shards and their server, joined by a network that delivers in any order it likes, one message after another.

Three small shards, a server, a store, and a node with all modules where a test wants one: the real hearts and their
real work, without any runtime.
"""

import itertools
import random
from collections import defaultdict, deque
from collections.abc import Mapping

import msgspec
import numpy as np
import torch
from tasks import one_array
from torch import nn

from edgebed.algorithms.layerwise.rule import BatchPart, Rule
from edgebed.core import records
from edgebed.core.plan import Method, ModulesPlan, Part, ServerPlan, Shard, StorePlan, Task, WorkerPlan
from edgebed.learning.optimizers import optimizer
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, LocalHead
from edgebed.learning.shards.module_networks import ModuleNetworks
from edgebed.learning.shards.network import ShardNetwork
from edgebed.learning.trained import Trained
from edgebed.roles.events import Compute, Computed, Journal, MessageReceived, Send, Wake, Woken
from edgebed.roles.layerwise.activation_store import ActivationStore
from edgebed.roles.layerwise.batch_shard import shard_of
from edgebed.roles.layerwise.layer_shard import LayerShard, batch_of
from edgebed.roles.layerwise.module_host import ModuleHost
from edgebed.roles.layerwise.shard_server import ShardServer
from edgebed.roles.layerwise.shard_work import ModuleWork, ShardWork
from edgebed.wire import frames as codec
from edgebed.wire.messages import Start

N, CLASSES, BATCH, STEPS = 96, 4, 16, 12
DRAW = np.random.default_rng(0)
X = DRAW.random((N, 8), dtype=np.float32)
Y = DRAW.integers(0, CLASSES, N)
WIDTHS = (8, 12, 10, CLASSES)
OPTIMIZER = optimizer(name="adam", learning_rate=1e-2)
NAMES = ("edge-0", "edge-1", "edge-2")
TASK = Task(model="x", inputs=one_array((8,)), outputs=CLASSES, layout=(), batch_size=BATCH, gradient_time_s=0.01)
NO_METHOD = Method(
    name="x", parts={"aggregation": Part(name="x"), "compression": Part(name="x"), "local_work": Part(name="x")}
)


def layers() -> list[nn.Sequential]:
    """Three small ones, always the same."""
    torch.manual_seed(1)
    return [
        nn.Sequential(nn.Linear(before, after), *([nn.BatchNorm1d(after), nn.ReLU()] if k < 2 else []))
        for k, (before, after) in enumerate(itertools.pairwise(WIDTHS))
    ]


def head_of(shape: tuple[int, ...]) -> LocalHead:
    """A small one, always the same."""
    torch.manual_seed(200)
    return LocalHead(shape, (CLASSES,))


def inputs_of(index: int) -> InputModule:
    """A small one, always the same."""
    torch.manual_seed(300 + index)
    return InputModule((8,), (WIDTHS[index],), hidden=16)


def module_of(index: int) -> GradientModule:
    """A small one, always the same."""
    torch.manual_seed(100 + index)
    return GradientModule((WIDTHS[index + 1],), CLASSES, hidden=16)


def networks_of(index: int, rule: Rule, elsewhere: bool = False) -> ShardNetwork:
    """One shard, with what the rule wants beside it, unless modules are elsewhere."""
    shard, shape = layers()[index], (WIDTHS[index + 1],)
    is_last = index == len(NAMES) - 1
    return ShardNetwork(
        shard,
        OPTIMIZER,
        gradient_module=module_of(index) if rule.has_module and not is_last and not elsewhere else None,
        input_module=inputs_of(index) if rule.synthetic_inputs and index else None,
        head=head_of(shape) if rule.source == "head" and not is_last else None,
    )


COMMON = {"device_class": "edge", "seed": 3, "task": TASK, "method": NO_METHOD}


def plan_of(index: int, **options) -> WorkerPlan:
    """One shard of three."""
    shard = Shard(
        below=NAMES[index - 1] if index else "",
        above=NAMES[index + 1] if index < 2 else "",
        **{"steps": STEPS, "backup_every": 4, "weights_every": 6} | options,
    )
    return WorkerPlan(node=NAMES[index], num_examples=N, shard=shard, **COMMON)


class Stage:
    """All nodes; each pair of them has a line, on which messages keep their order."""

    def __init__(self, rule: Rule, seed: int, paces: Mapping[str, float] | None = None, **options) -> None:
        """Who has a pace of a tenth is done with its work a tenth as often as others, as long as there is a choice."""
        self.rule, self.options = rule, options
        self.paces = paces or {}
        self.choice = random.Random(seed)
        self.lines: dict[tuple[str, str], deque] = defaultdict(deque)
        self.journal: list[tuple[str, records.Record]] = []
        self.unanswered_max = 0
        theta = np.concatenate([Trained(each, OPTIMIZER).weights() for each in layers()])
        sizes = [len(Trained(each, OPTIMIZER).weights()) for each in layers()]
        self.has_host = bool(options.get("modules"))
        self.names = (*NAMES, "modules") if self.has_host else NAMES
        kept = Shard(sizes=tuple(zip(self.names, [*sizes, 0], strict=False)), steps=STEPS)
        self.hearts = {"server": ShardServer(ServerPlan(node="server", shard=kept, **COMMON), theta)}
        stored = Shard(batches=options["batches"]) if options.get("batches") else kept
        self.hearts["store"] = ActivationStore(StorePlan(node="store", shard=stored, **COMMON))
        self.works: dict[str, ShardWork | ModuleWork] = {}
        self.incarnations: dict[str, int] = dict.fromkeys(self.names, 0)
        for name in self.names:
            self.launch(name)

    def launch(self, name: str) -> None:
        """A new life of a shard; what was on its way to or from the one before is lost."""
        self.incarnations[name] += 1
        for line, messages in self.lines.items():
            if name in line:
                messages.clear()
        if name == "modules":
            shard = msgspec.structs.replace(plan_of(1).shard, owners=((NAMES[0], 1), (NAMES[1], 2)))
            plan = ModulesPlan(node=name, shard=shard, num_examples=N, **COMMON)
            self.hearts[name] = ModuleHost(plan, self.incarnations[name])
            self.works[name] = ModuleWork(
                ModuleNetworks({NAMES[k]: module_of(k) for k in range(2)}, OPTIMIZER), {"": Y}
            )
        else:
            index = NAMES.index(name)
            self.hearts[name] = shard_of(plan_of(index, **self.options), self.rule, self.incarnations[name])
            self.works[name] = ShardWork(networks_of(index, self.rule, self.has_host), self.rule, X, {"": Y})
        start = Start(sender="controller", addresses=(("server", "data"),))
        self.lines["controller", name].append(MessageReceived("controller", start, [], 0))

    def run(self, until: int | None = None) -> None:
        """Deliver until nothing is left, or so many times."""
        count = 0
        while (until is None or count < until) and any(self.lines.values()):
            count += 1
            lines = sorted(line for line, waiting in self.lines.items() if waiting)
            weights = [self.paces.get(sender, 1.0) if sender == receiver else 1.0 for sender, receiver in lines]
            ((sender, receiver),) = self.choice.choices(lines, weights)
            event = self.lines[sender, receiver].popleft()
            if isinstance(event, MessageReceived):
                message, frames = codec.decode(codec.encode(event.message, event.frames), "data") if sender in (
                    self.hearts
                ) else (event.message, event.frames)  # fmt: skip
                event = MessageReceived(sender, message, frames, event.bytes)
            self.carry_out(receiver, self.hearts[receiver].handle(event, 0.0))
            heart = self.hearts[receiver]
            self.delivered(receiver)
            if isinstance(heart, LayerShard):
                self.unanswered_max = max(self.unanswered_max, len(heart.unanswered))

    def delivered(self, receiver: str) -> None:
        """Something has just been handled: a test may look."""

    def run_through(self, deaths: list[tuple[int, str]]) -> None:
        """Until nothing is left; each node dies so many deliveries after the one before."""
        for deliveries, victim in deaths:
            self.run(deliveries)
            if not self.server.finished:
                self.launch(victim)
        self.run()

    def carry_out(self, name: str, effects: list) -> None:
        """Work is done at once, and its result comes when it likes."""
        for effect in effects:
            if isinstance(effect, Journal):
                self.journal.append((name, effect.record))
            elif isinstance(effect, Compute):
                self.lines[name, name].append(Computed(self.works[name].run(effect.job)))
            elif isinstance(effect, Send) and effect.to in self.hearts:
                self.lines[name, effect.to].append(MessageReceived(name, effect.message, effect.frames, 0))
            elif isinstance(effect, Wake) and effect.token.startswith("begin"):
                self.lines[name, name].append(Woken(effect.token))
            else:
                assert isinstance(effect, Send | Wake), effect

    @property
    def server(self) -> ShardServer:
        """It is finished where training is."""
        heart = self.hearts["server"]
        assert isinstance(heart, ShardServer)
        return heart

    def surviving_steps(self, name: str) -> list[int]:
        """The mini-batches that a shard learnt of, without those that were rolled back."""
        begins = [(record.history, record.step) for _, record in self.journal if isinstance(record, records.Resumed)]
        limit = {
            history: min([step for later, step in begins if later > history], default=STEPS) for history, _ in begins
        }
        return [
            record.step
            for node, record in self.journal
            if node == name and isinstance(record, records.Step) and record.step < limit[record.history]
        ]


def one_after_the_other(rule: Rule) -> np.ndarray:
    """The same in a plain loop, as the papers write it."""
    shards = [networks_of(index, rule) for index in range(3)]
    for step in range(STEPS):
        at, batch = BatchPart(step), batch_of(plan_of(0), step)
        h, below = X[batch], None
        for shard in shards if rule.sends(step) else shards[:1]:
            outputs = shard.forward(at, h, {"": Y[batch]})
            if shard is shards[-1]:
                gradient, _ = shard.final_gradient(at)
            else:
                gradient = shard.head_gradient(at)[0] if shard.head else shard.synthetic_gradient(at)
            passed = shard.backward(at, gradient)
            shard.step()
            if below and below.predictor:
                below.teach(at, passed)
            h, below = outputs, shard
    return np.concatenate([shard.weights() for shard in shards])
