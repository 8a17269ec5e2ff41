"""The plan: every node of a trial with its caps, its data and its parts, fixed by the scenario and the seed.

These are plain msgspec structs, so that a node can read its own entry without importing pydantic. `planning.py` makes
them from a scenario; nothing here decides anything. Times are seconds, memory is bytes, CPU is cores.
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from edgebed.core.bounds import Amount, Count, PositiveAmount, PositiveCount, Seed
from edgebed.core.measures.task import TEST, VALIDATION, Level, TaskMeasure
from edgebed.core.planned.clients import ByClient, together
from edgebed.core.planned.device_core import REFERENCE, Core
from edgebed.core.planned.fault import FaultPlan, Injection, PointTrigger
from edgebed.core.planned.hosts import HostPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.node import CommonPlan
from edgebed.core.planned.program import Program, ProgramPlan


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One exchangeable part of a method or a task by name, with its settings."""

    name: str
    settings: dict[str, Any] = {}


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """A method: independent choices, one of each kind that its family has (see `algorithms/`)."""

    name: str
    """Name in tables: the preset's, or `custom`."""
    parts: dict[str, Part]
    """Parts by kind: `aggregation`, `compression`, `local_work`; or of layer-wise training `learning`, `optimizer`,
    `exchange`, and perhaps `module_optimizer` and `input_optimizer`."""

    @property
    def is_layerwise(self) -> bool:
        """Whether the model's layers lie on different nodes."""
        return "learning" in self.parts


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """The random pause a worker makes between its gradient and its push, to emulate slow or busy devices."""

    distribution: Literal["constant", "uniform", "exponential"] = "constant"
    low_s: Amount = 0.0
    """The pause if constant; its lower end if uniform."""
    high_s: Amount = 0.0
    """Upper end of a uniform pause."""
    mean_s: Amount = 0.0
    """Mean of an exponential pause."""


class TensorLayout(msgspec.Struct, frozen=True):
    """A named tensor and its place in the model's flat vector, in order."""

    name: str
    shape: tuple[Count, ...]
    is_buffer: bool = False
    """Whether the tensor is a buffer, such as a running mean, and no parameter."""

    @property
    def size(self) -> int:
        """Entries in the flat vector."""
        return math.prod(self.shape)


class ArrayForm(msgspec.Struct, frozen=True):
    """An array of each example, as the model or the objective is given it."""

    name: str
    """Its name among several; empty: it is the only one, and given by position."""
    shape: tuple[Count, ...]
    """Shape without the axis of examples."""
    dtype: str
    """`uint8`, which is scaled to [0, 1] on its way to the model, `int64`, `bool` or `float32`."""

    @property
    def nbytes(self) -> int:
        """Bytes of one example's."""
        return math.prod(self.shape) * {"uint8": 1, "bool": 1, "float32": 4}.get(self.dtype, 8)


InputShape = tuple[int, ...] | dict[str, tuple[int, ...]]
"""Shape of an example's input, e.g. (1, 28, 28); by name where there are several arrays."""


def shape_of(inputs: tuple[ArrayForm, ...]) -> InputShape:
    """The shape of inputs of these forms."""
    if len(inputs) == 1 and not inputs[0].name:
        return inputs[0].shape
    return {form.name: form.shape for form in inputs}


Pull = Literal["full", "changed-since"]
"""Answers to a push: the whole model, or its changes since the worker's last."""
GRADIENT_TIME_S = 0.005
"""The virtual time of a gradient whose operations cannot be counted, where nothing else is said."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained, as every node needs to know it."""

    model: str
    """A built-in name (`small`, `mlp`, `cnn`) or `package.module:function`."""
    inputs: tuple[ArrayForm, ...]
    """What the model is given of an example."""
    targets: tuple[ArrayForm, ...] = (ArrayForm("", (), "int64"),)
    """What the objective is given of an example beside that."""
    outputs: PositiveCount
    """Number of the model's outputs: classes, labels, numbers that are predicted, or entries of a vocabulary."""
    layout: tuple[TensorLayout, ...]
    """Tensors that training changes, parameters and buffers, in the flat vector's order."""
    batch_size: PositiveCount
    scaling: Literal["unit", "standardized"] = "unit"
    """`unit`: 8-bit pixels scaled to [0, 1], floats as they are; `standardized`: each image to mean 0, variance 1."""
    gradient_time_s: Amount
    """Virtual time of one gradient at a compute speed of 1, as the scenario says or counted; simulation only."""
    gradient_flop: int = 0
    """Operations of one gradient, as counted; 0: `gradient_time_s` holds on every device."""
    uncounted: str = ""
    """Why they could not be counted; empty: they were, or need not be."""
    compression_time_s: Amount = 0.0
    """Virtual time of compressing and encoding a push where a gradient takes `gradient_time_s`; simulation only."""
    exchange_time_s: Amount = 0.0
    """Virtual time of a push and its answer beside link and computation, on any device; only the simulation uses it."""
    objective: Part = Part(name="classification")
    """What training minimises, and what is measured (learning/objectives/)."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Sizes of the model by name, such as `width`, where they are not its authors'."""
    python_path: tuple[str, ...] = ()
    """Folders in which the user's own `package.module` is found."""


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Part of the model that a node has, and the nodes beside it."""

    first: Count = 0
    """Number of the part's first layer."""
    end: Count = 0
    """Number of the layer behind the part's last."""
    below: str = ""
    """The node that its inputs come from; empty: it has the examples themselves."""
    above: str = ""
    """The node that its outputs go to; empty: it has the model's end."""
    store: str = ""
    """Node that stores what shards send each other until it is asked for; empty: they send it to each other."""
    modules: str = ""
    """The node that has all gradient modules; empty: each lies beside its layers."""
    queue: Count = 4
    """Outputs that may be on their way or unanswered at a time."""
    frozen: bool = False
    """Whether the layers keep their initial weights."""
    batches: Count | None = None
    """Batches of an epoch, where all epochs have the same and what is exchanged is stored by batch; None: by step."""
    steps: Count | None = None
    """Mini-batches of the whole training; None: without end."""
    backup_every: PositiveCount | None = None
    """Steps from one backup of all that training depends on to the next."""
    weights_every: PositiveCount | None = None
    """Steps from one copy of the weights for the evaluator to the next."""
    owners: tuple[tuple[str, int], ...] = ()
    """For the node that has all gradient modules: the shards that own them, from the bottom, and the end of each."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Server: each node that it stores backups of, and how many of the model's weights it has."""
    memory_bytes: Count = 0
    """Memory of the layers, with moments and with what they hold until their gradient is there, about."""
    kept_bytes: Count = 0
    """Memory of what is stored by batch, at most."""
    costs: tuple[tuple[str, float], ...] = ()
    """Costs by kind of work: its share of a whole gradient's time; see roles/layerwise/shard_time.py."""


Durability = Literal["none", "log", "fsync"]
"""What a server has answered outlasts: nothing but its checkpoints do; its process, by a log; the machine's power."""
NonFinite = Literal["take", "refuse"]


class TrainerPlan(CommonPlan, frozen=True, kw_only=True):
    """The part of the plan of every node that has a role in training."""

    restart_s: Amount = 0.0
    """Virtual time that a restart takes beside its delay; only the simulation uses it."""
    task: Task
    method: Method
    trace: bool = False
    """Journal every message sent and received."""

    @property
    def compute_speed(self) -> float:
        """Speed relative to the machine's; only workers have one of their own."""
        return 1.0

    @property
    def core(self) -> Core | None:
        """The node's core, where the scenario says which; only workers have one of their own."""
        return None

    @property
    def gradient_s(self) -> float:
        """Virtual time of one gradient here, without a cap and at compute speed 1."""
        flop = self.task.gradient_flop
        return self.core.gradient_s(flop) if self.core and flop else self.task.gradient_time_s

    def batch_s(self, share: float) -> float:
        """Virtual time of the gradient of a mini-batch with so much of the examples of a whole one."""
        flop = self.task.gradient_flop
        if share == 1.0 or not flop:
            return share * self.gradient_s
        return (self.core or REFERENCE).gradient_s(round(share * flop))

    @property
    def compression_s(self) -> float:
        """Virtual time of compressing a push here, without a cap and at compute speed 1: longer as a gradient is."""
        return self.task.compression_time_s * (self.gradient_s / self.task.gradient_time_s)

    @property
    def num_examples(self) -> int:
        """Size of the node's own part of the data; 0 for roles without data."""
        return 0

    @property
    def pushes(self) -> bool:
        """Whether the node pushes updates to the server."""
        return False


class LinkedPlan(TrainerPlan, frozen=True, kw_only=True):
    """The part of the plan of a node on the data network."""

    link: LinkPlan = LinkPlan()
    changeable: bool = False
    """Whether a fault cuts or changes the node's link: something must hold the link that can do so."""
    shard: Shard | None = None
    """Where layers lie on different nodes: the node's part of the model, or what it has to know of the others'."""

    @property
    def connects_to(self) -> tuple[str, ...]:
        """Return the nodes that this one connects to; the others connect to it."""
        return ()

    @property
    def listens(self) -> bool:
        """Whether others connect to this node on the data network."""
        return True

    @property
    def counts_traffic(self) -> bool:
        """Whether the node reports its data socket's traffic."""
        return self.shard is not None

    @property
    def counts_messages(self) -> bool:
        """Whether the node also reports messages by kind and sender: shards do, who have few neighbours."""
        return self.shard is not None


class ServerPlan(LinkedPlan, frozen=True, kw_only=True, tag="server"):
    """The plan of the server."""

    role: ClassVar[Literal["server"]] = "server"
    epochs_a_push: Amount = 0.0
    """Passes through all workers' data that a push stands for."""
    stop_updates: PositiveCount | None = None
    """Update that ends the trial."""
    pull: Pull = "full"
    """What a push is answered with."""
    silence_s: PositiveAmount | None = None
    """Time after which a worker that was answered, and is silent, has left: its state is released. None: never."""
    checkpoint_every_updates: PositiveCount | None = None
    """Updates from one checkpoint to the next, from which the server can be restored."""
    checkpoint_every_s: PositiveAmount | None = None
    due_every_updates: PositiveCount | None = None
    """Updates from one version that the evaluator measures to the next; None: it measures at times."""
    durability: Durability = "none"
    """What becomes of an update that was answered, when the server dies."""
    non_finite: NonFinite = "take"
    """What becomes of an update that is not finite."""

    @property
    def counts_traffic(self) -> bool:
        """Whether the node reports its data socket's traffic: the server always does."""
        return True


class WorkerPlan(LinkedPlan, frozen=True, kw_only=True, tag="worker"):
    """The plan of a node that trains, the whole model or a layer shard."""

    role: ClassVar[Literal["worker"]] = "worker"
    compute_speed: PositiveAmount = 1.0
    """Speed relative to the machine's: at 0.5 a gradient takes twice as long."""
    core: Core | None = None
    """The device's core; None: the reference."""
    waiting: Waiting = Waiting()
    num_workers: PositiveCount = 1
    """Number of workers in the trial."""
    num_examples: Count = 0
    label_counts: tuple[Count, ...] = ()
    """Number of those examples with each label."""
    clients: tuple[Count, ...] = ()
    """Numbers of the clients whose examples it has, where the data is split by client."""
    by_client: ByClient | None = None
    """Its clients that it measures a model of its own on; None: it has no such model, or no such client."""
    pull: Pull = "full"
    """What a push is answered with."""
    points: tuple[PointTrigger, ...] = ()
    """Where faults wait for the worker."""
    working_s: PositiveAmount | None = None
    """Seconds of work on a push after which, and as often, the worker tells the server that it works. None: never."""

    @property
    def connects_to(self) -> tuple[str, ...]:
        """Return the nodes that this one connects to: the server, and of a shard those above it and for its modules."""
        shard = self.shard or Shard()
        return tuple(name for name in ("server", shard.store or shard.above, shard.modules) if name)

    @property
    def listens(self) -> bool:
        """Whether others connect to this node: the shard below it does, but for where a store is between them."""
        shard = self.shard or Shard()
        return bool(shard.below) and not shard.store

    @property
    def is_vital(self) -> bool:
        """Whether training stops without this node: workers that have the whole model can be replaced by others."""
        return not self.pushes

    @property
    def pushes(self) -> bool:
        """Whether the worker pushes updates to the server: it has the whole model, and no shard of it."""
        return self.shard is None


class StorePlan(LinkedPlan, frozen=True, kw_only=True, tag="store"):
    """The plan of the node that stores what shards send each other."""

    role: ClassVar[Literal["store"]] = "store"

    @property
    def counts_traffic(self) -> bool:
        """Whether the node reports its data socket's traffic: a store always does."""
        return True

    @property
    def counts_messages(self) -> bool:
        """Whether the node also reports messages by kind and sender: a store always does."""
        return True


class ModulesPlan(LinkedPlan, frozen=True, kw_only=True, tag="modules"):
    """The plan of the node that has all gradient modules."""

    role: ClassVar[Literal["modules"]] = "modules"
    num_examples: Count = 0
    """Size of the data that all shards train with: the node has its labels."""

    @property
    def connects_to(self) -> tuple[str, ...]:
        """Return the nodes that this one connects to: the server; shards connect to it."""
        return ("server",)


class EvaluatorPlan(TrainerPlan, frozen=True, kw_only=True, tag="evaluator"):
    """The plan of the evaluator, which watches over the management network: it has no link, and no part of a model."""

    role: ClassVar[Literal["evaluator"]] = "evaluator"
    num_examples: Count = 0
    """Size of the test part."""
    num_validation: Count = 0
    """Size of the validation part; 0: the task has none."""
    label_counts: tuple[Count, ...] = ()
    """Number of the test part's examples with each label."""
    held_out: tuple[Count, ...] = ()
    """Numbers of the clients that nobody trains on."""
    evaluate_every_updates: PositiveCount | None = None
    """Updates from one version that is measured to the next; None: it measures at times."""
    evaluate_every_s: PositiveAmount | None = None
    by_client: ByClient | None = None
    """What is measured client by client; None: nothing is."""

    @property
    def selects_by(self) -> str:
        """The part of the data by which versions and methods are chosen."""
        return VALIDATION if self.num_validation else TEST

    link: ClassVar[LinkPlan] = LinkPlan()
    changeable: ClassVar[bool] = False
    shard: ClassVar[Shard | None] = None
    connects_to: ClassVar[tuple[str, ...]] = ("server",)
    listens: ClassVar[bool] = False
    counts_traffic: ClassVar[bool] = False
    counts_messages: ClassVar[bool] = False


TrainingNode = ServerPlan | WorkerPlan | EvaluatorPlan | StorePlan | ModulesPlan
"""The plan of a node that has a role in training: all that it is sent when it joins."""
NodePlan = TrainingNode | ProgramPlan
"""The plan of one node."""
Role = Literal["server", "worker", "evaluator", "store", "modules"]
"""Roles of nodes; `store` and `modules` serve shards."""


OnFailure = Literal["ignore", "restart", "restart-all", "stop"]
"""What is done when a node has died, or does not answer; all are restarted together of programs alone."""


Security = Literal["plain", "curve"]
"""How nodes show each other on the data network that they have the secret of the run: by a password, or encrypted."""


Comparison = Literal[">=", "<=", "==", "!=", ">", "<"]
"""How a measure is compared with a bound."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One trial, whatever its nodes run: the scenario, or one of its variants, with all draws made."""

    scenario: str
    trial: str
    """The variant's name; where the scenario has none, the method's, or `program`."""
    question: str
    seed: Seed
    nodes: tuple[NodePlan, ...]
    stop_time_s: Amount | None = None
    join_deadline_s: Amount = 60.0
    """How long no node may start, join or become ready before continuing without those that are not ready (workers), or
    giving up (all others)."""
    faults: tuple[FaultPlan, ...] = ()
    on_failure: OnFailure = "ignore"
    """What is done when a node has died, or has missed two checks: nothing; it is restarted; the trial ends."""
    restart_delay_s: Amount = 1.0
    """`restart`: time from the failure to the launch."""
    check_s: PositiveAmount = 1.0
    """Time between checks: a node without a heartbeat in two in a row has failed; with the next one it is back."""
    expectations: tuple[tuple[str, Comparison, float], ...] = ()
    """(measure, comparison, bound), e.g. ("final_loss", "<=", 0.3)."""
    expects_trusted: bool = False
    """Whether a live run fails if what was asked of links and caps did not hold."""
    hosts: tuple[HostPlan, ...] = ()
    """The hosts that nodes are placed on, the controller's first; none: this machine alone."""

    def neighbours(self) -> "dict[str, tuple[str, ...]]":
        """Return the nodes at the other end of each node's messages, in order; none where edgebed knows of none."""
        return {node.node: () for node in self.nodes}

    def injections(self) -> Iterator[Injection]:
        """Yield everything that faults are to do."""
        return (step.injection for fault in self.faults for step in fault.steps)

    def node(self, name: str) -> NodePlan:
        """Return the node called `name`; KeyError if there is none."""
        return _named(name, self.nodes)


class TrainingPlan(Plan, frozen=True, kw_only=True):
    """A trial that trains by a method."""

    measures: tuple[TaskMeasure, ...] = ()
    """What is measured of the model, the headline first."""
    nodes: tuple[TrainingNode, ...]
    """server, evaluator, what serves shards, then the workers in order of class and index."""
    client_names: tuple[str, ...] = ()
    """The clients that the data comes from, by number; none: it does not say."""
    stop_updates: PositiveCount | None = None
    stop_level: Level | None = None
    """What the trial ends at when it is reached."""
    sweep_level: Level | None = None
    """Where runs of the scenario's sweep end; None: it has none, or the trial ends at a level itself."""
    stall_deadline_s: Amount = 60.0
    """How long the run may make no progress before it is ended."""
    detector: Literal["network", "oracle"] = "network"
    """How the server learns that a worker has failed: from its own connections, or at once from the controller."""
    security: Security = "plain"
    """Live runtimes: how the sockets of the data network authenticate each other."""
    is_profiled: bool = False
    """Whether the virtual times of layers are those of a profile; else they are shares of the task's."""

    @property
    def headline(self) -> TaskMeasure:
        """The measure that results are told by."""
        return self.measures[0]

    @property
    def evaluator(self) -> EvaluatorPlan:
        """The evaluator's plan."""
        return next(node for node in self.nodes if isinstance(node, EvaluatorPlan))

    @property
    def by_client(self) -> ByClient | None:
        """What is measured client by client, of the server's model or of those that workers have; None: nothing is."""
        return together([each for each in (self.evaluator.by_client, *(n.by_client for n in self.workers())) if each])

    @property
    def server(self) -> ServerPlan:
        """The server's plan."""
        return next(node for node in self.nodes if isinstance(node, ServerPlan))

    @property
    def pushes(self) -> bool:
        """Whether workers push updates to the server, and pull models; else they have shards of the model."""
        return self.server.shard is None

    def workers(self) -> tuple[WorkerPlan, ...]:
        """Return the worker nodes, in order."""
        return tuple(node for node in self.nodes if isinstance(node, WorkerPlan))

    def node(self, name: str) -> TrainingNode:
        """Return the node called `name`; KeyError if there is none."""
        return _named(name, self.nodes)

    def pairs(self) -> "tuple[tuple[str, str], ...]":
        """Return who connects to whom on the data network."""
        clients = (node for node in self.nodes if node.role != "evaluator")
        return tuple((client.node, other) for client in clients for other in client.connects_to)

    def neighbours(self) -> "dict[str, tuple[str, ...]]":
        """Return the nodes at the other end of each node's messages, in order."""
        found: dict[str, dict[str, None]] = {node.node: {} for node in self.nodes}
        for client, host in self.pairs():
            found[client][host] = found[host][client] = None
        return {name: tuple(others) for name, others in found.items()}


class ProgramsPlan(Plan, frozen=True, kw_only=True):
    """A trial whose nodes run programs of the user's."""

    program: Program
    nodes: tuple[ProgramPlan, ...]
    """The nodes in order of class and index, which is that of their ranks."""
    silence_s: PositiveAmount = 60.0
    """How long after a death that a fault brought others that nobody planned are its consequence."""


Named = TypeVar("Named", bound=CommonPlan)


def _named(name: str, nodes: tuple[Named, ...]) -> Named:
    for node in nodes:
        if node.node == name:
            return node
    raise KeyError(name)
