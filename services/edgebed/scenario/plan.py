"""The plan: every node of a trial with its caps, its data and its parts, fixed by the scenario and the seed.

These are plain msgspec structs, so that a node can read its own entry without importing pydantic. `planning.py` makes
them from a scenario; nothing here decides anything. Times are seconds, memory is bytes, CPU is cores.
"""

import math
from typing import Any, Literal

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One exchangeable part of a method by name, with the settings its `Config` declares."""

    name: str
    settings: dict[str, Any] = {}


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter-server method: three independent choices (see `algorithms/`)."""

    name: str
    """What to call it in tables: the preset's name, or `custom`."""
    aggregation: Part
    compression: Part
    local_work: Part


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """The random pause a worker makes between its gradient and its push, to emulate slow or busy devices."""

    distribution: Literal["constant", "uniform", "exponential"] = "constant"
    low_s: float = 0.0
    """Constant: the pause. Uniform: its lower end."""
    high_s: float = 0.0
    """Uniform: the upper end."""
    mean_s: float = 0.0
    """Exponential: the mean."""


class TensorLayout(msgspec.Struct, frozen=True):
    """A named parameter tensor and its place in the flat parameter vector, in order."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Entries in the flat vector."""
        return math.prod(self.shape)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained, as every node needs to know it."""

    model: str
    """A built-in name (`small`, `mlp`, `cnn`) or `package.module:function`."""
    input_shape: tuple[int, ...]
    """Shape of one input without the batch axis, e.g. (1, 28, 28)."""
    classes: int
    layout: tuple[TensorLayout, ...]
    """The model's parameters in the order of the flat vector."""
    batch_size: int
    inputs: Literal["unit", "standardized"] = "unit"
    """`unit`: 8-bit pixels scaled to [0, 1], floats as they are; `standardized`: each image to mean 0, variance 1."""
    gradient_time_s: float
    """Virtual time of one gradient on a device of compute speed 1; only the simulation uses it."""
    python_path: tuple[str, ...] = ()
    """Folders in which the user's own `package.module` is found."""


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that one node is told when it joins."""

    node: str
    """Unique name: `server`, `evaluator`, `<class>-<index>` for workers."""
    role: Literal["server", "worker", "evaluator"]
    device_class: str
    """The fleet's class for a worker, else the role."""
    seed: int
    cpus: float | None = None
    """CPU cap in cores; None: no cap."""
    memory_bytes: int | None = None
    compute_speed: float = 1.0
    """Relative to the machine itself: 0.5 takes twice as long for a gradient."""
    waiting: Waiting = Waiting()
    task: Task
    method: Method
    num_examples: int = 0
    """Size of the node's own part of the data."""
    label_counts: tuple[int, ...] = ()
    """How many of them carry each label."""
    evaluate_every_updates: int | None = None
    evaluate_every_s: float | None = None
    stop_updates: int | None = None
    """Server: the update that ends the trial."""
    trace: bool = False
    """Journal every message sent and received."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One trial: the scenario, or one of its variants, with all that chance decides decided."""

    scenario: str
    trial: str
    """The variant's name, or the method's where the scenario has none."""
    question: str
    seed: int
    nodes: tuple[NodePlan, ...]
    """server, evaluator, then the workers in order of class and index."""
    stop_updates: int | None = None
    stop_time_s: float | None = None
    stop_accuracy: float | None = None
    join_deadline_s: float = 60.0
    """How long no node may start, join or become ready before going on without those that are not ready (workers), or
    giving up (server, evaluator)."""
    stall_deadline_s: float = 60.0
    """How long the run may make no progress before it is ended."""
    expectations: tuple[tuple[str, str, float], ...] = ()
    """(measure, comparison, bound), e.g. ("final_accuracy", ">=", 0.97)."""

    def workers(self) -> tuple[NodePlan, ...]:
        """The worker nodes, in order."""
        return tuple(node for node in self.nodes if node.role == "worker")

    def node(self, name: str) -> NodePlan:
        """The node called `name`; KeyError if there is none."""
        for node in self.nodes:
            if node.node == name:
                return node
        raise KeyError(name)
