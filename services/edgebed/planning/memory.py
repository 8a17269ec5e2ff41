"""How much memory a node needs in a container of its own, and which caps are below that.

A node above its cap is killed by the kernel, so a cap that cannot hold the node is found before anything starts. The
constants are measured: each role as a process of its own in a memory cgroup (torch 2.13, numpy 2.4, Python 3.11 on
x86-64), as the peak of its anonymous and kernel memory, which is also the lowest limit that it lived under. File pages
are given back under pressure and do not count, but for a little room: a process whose code hardly fits reads it from
the disk again and again. Inputs of up to 234 MiB, models of 5 thousand to 20 million parameters, batches of 10 to 512
and 2 to 16 workers were tried: what is said here is 2 to 20 % above what was measured, and up to 40 % for models of
tens of MiB and for batches of hundreds of images. Among them are residual networks, transformers and recurrent models,
where a sum over many layers is held, and little of it is in use at a time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from edgebed.algorithms.compressor import Compressor
from edgebed.algorithms.local_work.trial import LARGE, copies_held
from edgebed.algorithms.registry import (
    aggregation_of,
    compresses_down,
    compression_of,
    sees_inputs,
    small_local_work_of,
    vectors_of,
)
from edgebed.core.console import say
from edgebed.core.errors import Location, ScenarioError
from edgebed.core.plan import EvaluatorPlan, Method, ServerPlan, Shard, Task, TrainingNode, TrainingPlan, WorkerPlan
from edgebed.core.units import format_memory
from edgebed.learning.allocator import EVALUATION_CHUNK, MMAP_THRESHOLD_BYTES
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.models.examined import Footprint, constant_bytes, footprint
from edgebed.planning.planning import PlannedTraining
from edgebed.planning.shard_memory import CONSTANT_COPIES, MIB, TORCH_BYTES, examples_bytes
from edgebed.roles.server.due_models import room_for
from edgebed.scenario.schema import Scenario

PYTHON_BYTES = 30 * MIB  # interpreter, numpy, ZeroMQ, metrics; measured: 27 MiB
FORKED_BYTES = 30 * MIB  # of a node that shares torch with the process that it was forked from; measured: 29 MB
PEER_BYTES = 50_000  # buffers of a connection
ACTIVATION_COPIES = 3  # with the gradients that flow back through them, where few operations have most of them
TRAINING_OPERATIONS = 6  # of the widest, whose gradients flow back at a time, where there are many
EVALUATION_COPIES = 2  # no gradients, but a chunk's arrays are freed only after the next one's are made
EVALUATION_OPERATIONS = 3

UNCAPPED_ROOM = 4
"""Times what a node needs that its container may use where the scenario caps no memory."""
UNCAPPED_BYTES_MIN = 1024 * MIB


@dataclass(frozen=True, kw_only=True)
class Copies:
    """How often a model is in a node's memory at once."""

    kept: float
    """Copies while the model's arrays are small: what is freed stays with the process (learning/allocator.py)."""
    returned: float
    """Copies where arrays are above the allocator's threshold, and go back to the kernel when freed."""

    def bytes(self, model_bytes: int) -> float:
        """Bytes for a model; never less for a larger one."""
        return max(self.kept * min(model_bytes, MMAP_THRESHOLD_BYTES), self.returned * model_bytes)


EVALUATOR_COPIES = Copies(kept=9.0, returned=5.0)
WORKER_COPIES = Copies(kept=8.5, returned=6.5)
SELECTED_WORKER_COPIES = 6.0  # of the share that is sent: positions take 8 bytes each while they are encoded
SELECTED_SERVER_COPIES = 8.0
DENSE_SERVER_COPIES, DENSE_PEER_COPIES = 6.0, 1.25  # all workers may push at once
SPARSE_SERVER_COPIES, SPARSE_PEER_COPIES = 4.5, 0.5  # the models of slow workers are on their way
TUNING_COPIES = 3  # a client's own model, its gradient, and the next
BACKUP_COPIES = 10  # weights and two moments, of the last backup and of the one that comes; and the model itself
SHAPED_PEER_COPIES = 1.0  # a model may be on its way to every worker


@dataclass(frozen=True)
class Need:
    """How much memory a node needs, and what for."""

    parts: Mapping[str, int]
    """Bytes by purpose."""

    @property
    def bytes(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        """The parts that matter, e.g. `torch 164MiB, model 9MiB`, so rounded that they add up to the whole."""
        ends = [math.ceil(end / MIB) for end in accumulate(self.parts.values(), initial=0)]
        return ", ".join(
            f"{name} {end - begin}MiB"
            for name, (begin, end) in zip(self.parts, pairwise(ends), strict=True)
            if end > begin
        )


def mib_text(size: int) -> str:
    """A size as a scenario writes it, rounded up to MiB."""
    return f"{math.ceil(size / MIB)}MiB"


def needs_of(planned: PlannedTraining) -> dict[str, Need]:
    """What each node of a trial needs, by the node's name."""
    task = planned.plan.nodes[0].task
    found, constants = footprint(task), constant_bytes(task)
    return {node.node: need_of(node, planned.plan, planned.data, found, constants) for node in planned.plan.nodes}


def need_of(node: TrainingNode, plan: TrainingPlan, data: DataSet, footprint: Footprint, constants: int = 0) -> Need:
    """How much memory `node` needs, by purpose.

    `footprint` is what one example takes on its way through the model, `constants` the bytes of its tensors that
    training does not change.
    """
    model = 4 * sum(tensor.size for tensor in node.task.layout)
    if not plan.pushes and node.role != "evaluator":
        return _shard_need(node, plan, data, model)
    if isinstance(node, ServerPlan):
        shaped = any(each.link.shaped for each in plan.nodes)
        return _server_need(node, len(plan.workers()), model, shaped=shaped)
    if node.role == "evaluator":
        copied = EVALUATOR_COPIES.bytes(model)
        batch = EVALUATION_CHUNK * evaluation_bytes(footprint)
        if node.by_client and node.by_client.fine_tune:
            copied += TUNING_COPIES * model
            batch = max(batch, node.task.batch_size * gradient_bytes(footprint))
    else:
        assert isinstance(node, WorkerPlan)  # stores and modules serve shards
        row = len(vectors_of(node.method)) * model
        copied = worker_copies(compression_of(node.method, node.task), row) + (row if _keeps_model(node) else 0)
        copied += local_copies(node.method, node.task) * model
        batch = min(node.task.batch_size, node.num_examples) * gradient_bytes(footprint)
        if node.by_client:
            copied += (TUNING_COPIES if node.by_client.fine_tune else 0) * model
            batch = max(batch, EVALUATION_CHUNK * evaluation_bytes(footprint))
    count = node.num_examples + _beside(node)
    examples = examples_bytes(count, data.train.input_bytes)
    kept = {"model": math.ceil(copied), "constants": CONSTANT_COPIES * constants}
    return Need({"torch": TORCH_BYTES, **kept, "data": examples, "batch": batch})


def _beside(node: TrainingNode) -> int:
    """Examples that an evaluator has beside those of the test part, or a worker beside those that it trains on."""
    if isinstance(node, EvaluatorPlan):
        return node.num_validation + (sum(node.by_client.own) if node.by_client else 0)
    return sum(node.by_client.sizes) if isinstance(node, WorkerPlan) and node.by_client else 0


def gradient_bytes(footprint: Footprint) -> int:
    """Bytes of one example while the gradient of its batch is computed."""
    kept, widest = footprint
    return min(ACTIVATION_COPIES * kept, kept + TRAINING_OPERATIONS * widest)


def evaluation_bytes(footprint: Footprint) -> int:
    """Bytes of one example while it is measured."""
    return min(EVALUATION_COPIES * footprint.kept, EVALUATION_OPERATIONS * footprint.widest)


def _shard_need(node: TrainingNode, plan: TrainingPlan, data: DataSet, model: int) -> Need:
    """Estimated, not measured: memory of a shard, or of a node that serves shards."""
    shard = node.shard or Shard()
    if node.role in ("server", "store"):
        backups = BACKUP_COPIES * model if node.role == "server" else 0
        due = _due_models(node, model) if isinstance(node, ServerPlan) else {}
        kept = {"kept by batch": shard.kept_bytes} if node.role == "store" else {}
        connections = PEER_BYTES * len(plan.workers())
        return Need({"Python": PYTHON_BYTES, "connections": connections, "backups": backups} | due | kept)
    inputs = data.train.input_bytes if sees_inputs(node) else 0
    examples = examples_bytes(node.num_examples, inputs)
    layers = {"layers": shard.memory_bytes - shard.kept_bytes, "kept by batch": shard.kept_bytes}
    return Need({"torch": TORCH_BYTES, **layers, "data": examples})


def container_bytes(node: TrainingNode, need: Need) -> int:
    """The memory that a node's container may use: its cap, or else so much that only a node gone astray is stopped."""
    return node.memory_bytes or max(UNCAPPED_BYTES_MIN, UNCAPPED_ROOM * need.bytes)


def worker_copies(compressor: Compressor, model: int) -> float:
    """Bytes for a model of so many, with all that a worker makes of it that compresses its pushes like this."""
    copies = compressor.copies + SELECTED_WORKER_COPIES * (compressor.share or 0.0)
    return WORKER_COPIES.bytes(model) + copies * model


def local_copies(method: Method, task: Task) -> float:
    """How often the model is in memory for the local work alone, as that says; one that does not say it is measured."""
    part, has_buffers = method.parts["local_work"], any(tensor.is_buffer for tensor in task.layout)
    key = part.name, repr(part.settings), has_buffers
    if key not in _local_copies:
        work = small_local_work_of(method, task, LARGE)
        _local_copies[key] = copies_held(work, task.batch_size) if work.copies is None else work.copies
    return _local_copies[key]


_local_copies: dict[tuple[str, str, bool], float] = {}


def _server_need(node: ServerPlan, workers: int, model: int, *, shaped: bool) -> Need:
    share = compression_of(node.method, node.task).share
    if share is None:
        copies = DENSE_SERVER_COPIES + DENSE_PEER_COPIES * workers
    else:
        peer_copies = SHAPED_PEER_COPIES if shaped else SPARSE_PEER_COPIES
        copies = SPARSE_SERVER_COPIES + peer_copies * workers + SELECTED_SERVER_COPIES * share
    aggregation, config = aggregation_of(node.method)
    if node.pull == "changed-since":
        copies += 1  # for each parameter the version that last touched it
    if compresses_down(node.method):
        copies += 2 if aggregation.in_rounds else workers  # what each has
    row = len(aggregation.vectors) * model
    held = copies * row + aggregation.holds(config, workers, share) * model
    models = {f"models for {workers} workers": math.ceil(held)} | _due_models(node, row)
    return Need({"Python": PYTHON_BYTES, "connections": PEER_BYTES * workers} | models)


def _due_models(node: ServerPlan, model: int) -> dict[str, int]:
    """Bytes of the models that wait for the evaluator at most."""
    every, last = node.due_every_updates, node.stop_updates
    if every is None:
        return {}
    due = room_for(model) if last is None else min(room_for(model), last // every + 1)
    return {"models for the evaluator": due * model}


def _keeps_model(node: WorkerPlan) -> bool:
    """Whether a worker needs its last model to make the next one."""
    return node.pull == "changed-since" or compresses_down(node.method)


def tight_caps(plan: TrainingPlan, needs: Mapping[str, Need]) -> Iterator[tuple[TrainingNode, Need]]:
    """For each class whose memory cap is below what a node of it needs: the node that needs most, and its need."""
    worst: dict[str, TrainingNode] = {}
    for node in plan.nodes:
        known = worst.setdefault(node.device_class, node)
        if needs[node.node].bytes > needs[known.node].bytes:
            worst[node.device_class] = node
    for node in worst.values():
        if node.memory_bytes is not None and node.memory_bytes < needs[node.node].bytes:
            yield node, needs[node.node]


def tight_text(node: TrainingNode, need: Need) -> str:
    """A sentence on a memory cap that is too low."""
    assert node.memory_bytes is not None
    who = {"server": "the server", "evaluator": "the evaluator"}.get(node.role, "a worker")
    cap = format_memory(node.memory_bytes)
    return f"{cap} is below the {mib_text(need.bytes)} that {who} of this task needs ({need})"


def tight_forked(planned: PlannedTraining) -> Iterator[str]:
    """Sentences on memory caps that are too low for processes, which share what the first of them has loaded."""
    needs = {
        name: Need({part: FORKED_BYTES if part == "torch" else size for part, size in need.parts.items()})
        for name, need in needs_of(planned).items()
    }
    for node, need in tight_caps(planned.plan, needs):
        yield f"memory cap of {node.device_class}: {tight_text(node, need)}; the kernel may kill it."


def check_caps(scenario: Scenario, trials: Sequence[PlannedTraining], *, force: bool = False) -> None:
    """ScenarioError with every memory cap that cannot hold its node, each where it was written; a warning if forced."""
    tight: dict[Location, tuple[int, str]] = {}
    for planned in trials:
        for node, need in tight_caps(planned.plan, needs_of(planned)):
            path = f"{node.role}.memory" if node.role != "worker" else f"fleet.{node.device_class}.memory"
            place = scenario.place(planned.plan.trial, path)
            tight[place] = max(tight.get(place, (0, "")), (need.bytes, tight_text(node, need)))
    if tight and not force:
        raise ScenarioError(
            *(place.problem(f"{text}; raise it, or run with --force") for place, (_, text) in tight.items())
        )
    for place, (_, text) in tight.items():
        say(f"warning: {place.problem(text)}")
