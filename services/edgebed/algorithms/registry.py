"""The parts a method is made of, by name, and the named methods: presets of parts.

A part is a module in a folder beside this file, with a `Config` that has its name; a line of a table below, or in
optimizer/, adds it, and nothing else names it. Or it is the user's own, and its name is an import path (custom.py):
docs/creating-a-method.md.
"""

import functools
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.batches import Cut
from edgebed.algorithms.compressor import Compressor, WithBuffers
from edgebed.algorithms.custom import own_part
from edgebed.algorithms.descent import Descent
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.fragments import Fragments
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.local_work.base import LocalWork
from edgebed.algorithms.optimizer import OPTIMIZERS
from edgebed.algorithms.several import Several
from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Method, Part, Task, TrainingNode, WorkerPlan


def _table(folder: str, *modules: str) -> dict[str, ModuleType]:
    """Modules of a folder by the names that their `Config`s have, in the order given."""
    found = [importlib.import_module(f"edgebed.algorithms.{folder}.{module}") for module in modules]
    return {module.Config.name: module for module in found}


AGGREGATIONS = _table(
    "aggregation",
    "asynchronous",
    "synchronous",
    "stale_synchronous",
    "scaffold",
    "feddyn",
    "fednova",
    "buffered",
    "delayed_nesterov",
    "mixing",
    "dc_asgd",
)
COMPRESSIONS = _table(
    "compression",
    "none",
    "top_k",
    "random_k",
    "threshold",
    "esgd",
    "dgc",
    "block_top_k",
    "int8",
    "qsgd",
    "sign",
    "powersgd_local",
    "nothing",
)
LOCAL_WORKS = _table(
    "local_work",
    "gradient_step",
    "local_steps",
    "controlled_steps",
    "dynamic_steps",
    "streaming",
    "alone",
)
LAYERWISE_RULES = _table(
    "layerwise",
    "back_propagation",
    "synthetic_gradients",
    "synthetic_inputs",
    "decoupled_greedy",
    "direct_minimisation",
)
EXCHANGES = _table(
    "exchange",
    "dense",
    "int8",
    "top_k",
)

KINDS: dict[str, dict[str, ModuleType]] = {
    "aggregation": AGGREGATIONS,
    "compression": COMPRESSIONS,
    "downlink": COMPRESSIONS,
    "beside_compression": COMPRESSIONS,
    "beside_downlink": COMPRESSIONS,
    "local_work": LOCAL_WORKS,
    "learning": LAYERWISE_RULES,
    "optimizer": OPTIMIZERS,
    "module_optimizer": OPTIMIZERS,
    "input_optimizer": OPTIMIZERS,
    "exchange": EXCHANGES,
}
FAMILIES: dict[str, tuple[str, ...]] = {
    "parameter-server": ("aggregation", "compression", "local_work"),
    "layer-wise": ("learning", "optimizer", "exchange"),
}
"""The kinds of parts that a method has: of workers that push gradients, and of shards of a model."""
LIKE: dict[str, str] = {
    "module_optimizer": "optimizer", "input_optimizer": "optimizer",
    "downlink": "compression", "beside_compression": "compression", "beside_downlink": "compression",
}  # fmt: skip
"""Kinds that a method may have besides, and what settings are taken from where it says nothing itself. Without a
`module_optimizer` the optimizer trains modules; without an `input_optimizer` those that predict inputs are trained as
the others; without a `downlink` models travel whole. `beside_…` are of vectors that travel beside the model, which are
whole without them."""
BESIDE = {"compression": "beside_compression", "downlink": "beside_downlink"}

_LAYERWISE = {"optimizer": {"name": "adam"}, "exchange": {"name": "dense"}}

_FEDOPT = {
    "name": "synchronous", "learning_rate": 0.01, "epsilon": 1e-3, "corrected": False, "weights": "examples",
}  # fmt: skip

_DILOCO = {
    "name": "local-steps", "optimizer": "adamw", "learning_rate": 4e-4, "beta_2": 0.95, "weight_decay": 0.1,
    "clip_norm": 1.0, "moments": "kept", "counted_in": "steps",
}  # fmt: skip

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    # dense gradients, the learning rate divided by the staleness of the whole update (Hardy et al. 2017, V.B)
    "asgd": {
        "aggregation": {"name": "asynchronous", "staleness": "whole-update"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # dense gradients, corrected by how far the model has moved since (Zheng et al. 2017)
    "dc-asgd": {
        "aggregation": {"name": "dc-asgd"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # the largest gradients across the whole model, divided as in asgd (Hardy et al. 2017, V.B)
    "comp-asgd": {
        "aggregation": {"name": "asynchronous", "staleness": "whole-update"},
        "compression": {"name": "top-k", "fraction": 0.01, "scope": "model"},
        "local_work": {"name": "gradient-step"},
    },
    # the largest gradients of each tensor, divided by the staleness of each parameter (Hardy et al. 2017, IV)
    "adacomp": {
        "aggregation": {"name": "asynchronous", "staleness": "per-parameter"},
        "compression": {"name": "top-k", "fraction": 0.01, "scope": "tensor"},
        "local_work": {"name": "gradient-step"},
    },
    # dense gradients, a round's mean applied in one step (Chen et al. 2016)
    "sync-sgd": {
        "aggregation": {"name": "synchronous"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # the same coordinates while the loss falls, averaged in rounds (Tao, Li 2018)
    "esgd": {
        "aggregation": {"name": "synchronous"},
        "compression": {"name": "esgd"},
        "local_work": {"name": "gradient-step"},
    },
    # the largest of what has added up, momentum at the workers (Lin et al. 2018)
    "dgc": {
        "aggregation": {"name": "synchronous"},
        "compression": {"name": "dgc"},
        "local_work": {"name": "gradient-step"},
    },
    # nobody gets too far ahead of the slowest (Ho et al. 2013)
    "ssp": {
        "aggregation": {"name": "stale-synchronous"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # a step every n-th gradient (Zhang et al. 2016)
    "softsync": {
        "aggregation": {"name": "buffered", "staleness": "divide"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # models that were trained apart are averaged (McMahan et al. 2017)
    "fedavg": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "weights": "examples"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with each worker held to the model that it began with (Li et al. 2020)
    "fedprox": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "weights": "examples"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps", "proximal": 0.01},
    },
    # as fedprox, with nobody waiting: the model is mixed with each that comes (Xie et al. 2019)
    "fedasync": {
        "aggregation": {"name": "mixing"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps", "proximal": 0.005},
    },
    # as fedavg, with momentum at the server (Hsu et al. 2019)
    "fedavgm": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "momentum": 0.9, "weights": "examples"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with Adam at the server (Reddi et al. 2021)
    "fedadam": {
        "aggregation": _FEDOPT | {"optimizer": "adam", "beta_2": 0.99},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with Yogi at the server (Reddi et al. 2021)
    "fedyogi": {
        "aggregation": _FEDOPT | {"optimizer": "yogi", "beta_2": 0.99},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with Adagrad at the server (Reddi et al. 2021)
    "fedadagrad": {
        "aggregation": _FEDOPT | {"optimizer": "adagrad", "beta_1": 0.0},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with steps corrected by how each worker's gradients differ from those of all (Karimireddy et al. 2020)
    "scaffold": {
        "aggregation": {"name": "scaffold", "learning_rate": 1.0},
        "compression": {"name": "none"},
        "local_work": {"name": "controlled-steps"},
    },
    # as fedavg, with each worker's loss bent towards that of all (Acar et al. 2021)
    "feddyn": {
        "aggregation": {"name": "feddyn", "learning_rate": 1.0},
        "compression": {"name": "none"},
        "local_work": {"name": "dynamic-steps"},
    },
    # as fedavg, with each update counted by its number of steps (Wang et al. 2020)
    "fednova": {
        "aggregation": {"name": "fednova", "learning_rate": 1.0, "weights": "examples"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # many steps of AdamW apart, then one of Nesterov's momentum at the server (Douillard et al. 2023)
    "diloco": {
        "aggregation": {"name": "synchronous", "learning_rate": 0.7, "momentum": 0.9, "nesterov": True},
        "compression": {"name": "none"},
        "local_work": _DILOCO | {"steps": 500},
    },
    # as diloco, with a fragment of the model at a time, which travels while the steps go on (Douillard et al. 2025)
    "streaming-diloco": {
        "aggregation": {
            "name": "synchronous",
            "learning_rate": 0.7,
            "momentum": 0.9,
            "nesterov": True,
            "entries": "sent",
        },
        "compression": {"name": "none"},
        "local_work": _DILOCO | {"name": "streaming", "steps": 500, "fragments": 4, "overlap": 5},
    },
    # as diloco, with nobody waiting, and momentum once in every few pushes (Liu et al. 2024)
    "async-diloco": {
        "aggregation": {"name": "delayed-nesterov", "learning_rate": 0.7, "staleness": "power"},
        "compression": {"name": "none"},
        "local_work": _DILOCO | {"steps": 50},
    },
    # as diloco, with the largest entries of blocks in two bits, and no momentum at the server (Sarfi et al. 2025)
    "sparseloco": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "mean": "senders", "clip": "median"},
        "compression": {"name": "block-top-k"},
        "local_work": _DILOCO | {"steps": 30},
    },
    # changes of models that were trained apart, a few at a time (Nguyen et al. 2022)
    "fedbuff": {
        "aggregation": {"name": "buffered", "learning_rate": 1.0, "staleness": "power"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # as fedavg, with nothing exchanged: each worker has its own data alone, which the others are measured against
    "local-only": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "weights": "examples"},
        "compression": {"name": "nothing"},
        "downlink": {"name": "nothing"},
        "local_work": {"name": "alone"},
    },
    # the layers on different nodes, which wait for each other
    "back-propagation": {"learning": {"name": "back-propagation"}, **_LAYERWISE},
    # nobody waits: a module beside each shard predicts the gradient (Jaderberg et al. 2017; Chen et al. 2019)
    "synthetic-gradients": {"learning": {"name": "synthetic-gradients"}, **_LAYERWISE},
    # as synthetic-gradients, and nobody waits for inputs either: a module predicts them (Jaderberg et al. 2017, 2.3)
    "synthetic-inputs": {"learning": {"name": "synthetic-inputs"}, **_LAYERWISE},
    # each shard has a loss of its own (Belilovsky et al. 2020)
    "decoupled-greedy": {"learning": {"name": "decoupled-greedy"}, **_LAYERWISE},
    # back-propagation of the loss and of what modules cannot predict of the gradients (Tong et al. 2016, 5.1)
    "direct-minimisation": {"learning": {"name": "direct-minimisation"}, **_LAYERWISE},
}


def code_of(kind: str, name: str, python_path: Sequence[str] = ()) -> Any:
    """What a part is made of: a built-in one's module, or the same of the user's own, which is looked for there first.

    ScenarioError where there is none, or it is none of that kind.
    """
    if imports.is_import_path(name):
        return own_part(LIKE.get(kind, kind), name, python_path)
    if name not in KINDS[kind]:
        raise ScenarioError(f"{kind} '{name}' is unknown; allowed: {', '.join(KINDS[kind])} or package.module:Name")
    return KINDS[kind][name]


def configure(kind: str, part: Part, python_path: Sequence[str] = ()) -> Any:
    """The part's `Config`, checked; ValueError (msgspec.ValidationError is one) if a setting is wrong."""
    name = {} if imports.is_import_path(part.name) else {"name": part.name}
    return msgspec.convert(part.settings | name, code_of(kind, part.name, python_path).Config)


def _resolved(method: Method, kind: str, python_path: Sequence[str] = ()) -> tuple[Any, Any]:
    """Return what a part of a method is made of, and its settings.

    ScenarioError where there is no such part, or a setting is wrong: the method may be that of a plan from a file.
    """
    if kind not in method.parts:
        raise ScenarioError(f"the method {method.name} has no {kind}, only {', '.join(method.parts) or 'no part'}")
    part = method.parts[kind]
    try:
        return code_of(kind, part.name, python_path), configure(kind, part, python_path)
    except ValueError as error:
        raise ScenarioError(f"the method {method.name}: {kind} '{part.name}': {error}") from error


def vectors_of(method: Method) -> tuple[str, ...]:
    """Return the names of the vectors that travel, the model first; without an aggregation, that alone."""
    return aggregation_of(method)[0].vectors if "aggregation" in method.parts else ("theta",)


def forgetting_of(method: Method) -> tuple[bool, bool]:
    """Whether local work, and compression, forget what they remember when a push is lost, as they say."""
    work, compression = (code_of(kind, method.parts[kind].name) for kind in ("local_work", "compression"))
    return work.LocalWork.forgets_lost, compression.Compression.forgets_lost


def pushes_in_turn(method: Method) -> bool:
    """Whether a push has a part of the model alone, whose turn it is."""
    if "local_work" not in method.parts:
        return False
    code, config = _resolved(method, "local_work")
    return len(code.LocalWork(config).spans(2**30)) > 1


def row_size(method: Method, task: Task) -> int:
    """Return v n: the length of all vectors that travel."""
    return len(vectors_of(method)) * sum(tensor.size for tensor in task.layout)


def compresses_down(method: Method) -> bool:
    """Whether what goes down is compressed: the model, or what is beside it."""
    return "downlink" in method.parts or "beside_downlink" in method.parts


def compression_of(method: Method, task: Task, kind: str = "compression") -> Compressor:
    """Return the compression of the method's pushes; of kind `downlink`, that of its models on the way down.

    It is of all vectors that travel, in a row.
    """
    model, *others = vectors_of(method)
    found = {model: compression_alone(method, task, kind)}
    if kind == "compression" and "local_work" in method.parts:
        parts = local_work_of(method, task).spans(found[model].size)
        found[model] = found[model] if len(parts) == 1 else Fragments(found[model], parts)
    found |= {name: compression_alone(method, task, BESIDE[kind]) for name in others}
    return Several(found) if others else found[model]


def compression_alone(method: Method, task: Task, kind: str) -> Compressor:
    """Return the compression of one vector; where a method has none of that kind it travels whole."""
    if kind not in method.parts:
        kind, method = "compression", Method(name=method.name, parts={"compression": Part(name="none")})
    code, config = _resolved(method, kind, task.python_path)
    sends_buffers = code.Compression.sends_buffers
    shapes = [tensor.shape for tensor in task.layout if not (tensor.is_buffer and sends_buffers)]
    compressor: Compressor = code.Compression(config, shapes)
    is_buffer = buffer_mask(task) if sends_buffers else None
    return compressor if is_buffer is None else WithBuffers(compressor, is_buffer)


def has_own_models(method: Method) -> bool:
    """Whether each worker trains a model of its own, which nobody else ever has."""
    part = method.parts.get("local_work")
    return part is not None and part.name in LOCAL_WORKS and LOCAL_WORKS[part.name].LocalWork.has_own_model


def aggregation_of(method: Method) -> tuple[type[Aggregator], Any]:
    """How its server applies pushes, and the settings of that."""
    code, config = _resolved(method, "aggregation")
    return code.Aggregation, config


def applied_together(method: Method, workers: int) -> int:
    """The largest number of pushes that its server applies in one step."""
    aggregation, config = aggregation_of(method)
    return aggregation.together(config, workers)


def buffer_mask(task: Task) -> NDArray[np.bool_] | None:
    """(n,) where the model's vector holds buffers, which are no parameters; None: nowhere."""
    if not any(tensor.is_buffer for tensor in task.layout):
        return None
    return np.repeat([tensor.is_buffer for tensor in task.layout], [tensor.size for tensor in task.layout])


def local_work_of(method: Method, task: Task) -> LocalWork:
    """Return what the method's workers do between a pull and a push."""
    return _local_work(method, task, buffer_mask(task))


def small_local_work_of(method: Method, task: Task, size: int) -> LocalWork:
    """Return the same for a model of so many parameters; the last of them is a buffer if the task's model has any."""
    return _local_work(
        method, task, np.arange(size) == size - 1 if any(each.is_buffer for each in task.layout) else None
    )


def _local_work(method: Method, task: Task, is_buffer: NDArray[np.bool_] | None) -> LocalWork:
    code, config = _resolved(method, "local_work", task.python_path)
    work: LocalWork = code.LocalWork(config, is_buffer)
    return work


def batches_a_push(plan: WorkerPlan) -> int:
    """Return the mini-batches that a worker goes through between a pull and a push."""
    return _local_work(plan.method, plan.task, None).batches(plan.num_examples, plan.task.batch_size)


def batches_ahead(plan: WorkerPlan) -> int:
    """Return how many of them come after the push, while it travels."""
    return _local_work(plan.method, plan.task, None).ahead


def whole_batches_a_push(plan: WorkerPlan) -> float:
    """Return the same in whole mini-batches: one with half of the examples counts as half."""
    return batches_a_push(plan) * cut_of(plan).mean_size / plan.task.batch_size


def cut_of(plan: WorkerPlan) -> Cut:
    """Return how a worker's examples are cut into mini-batches."""
    return Cut(plan.num_examples, plan.task.batch_size, _local_work(plan.method, plan.task, None).by_epoch)


def notes_of(method: Method) -> tuple[str, ...]:
    """What a reader of its figures must know, where a part is not what its name is known for."""
    notes = (getattr(code_of(kind, part.name), "NOTE", "") for kind, part in method.parts.items())
    return tuple(note for note in notes if note)


def has_modules(method: Method) -> bool:
    """Whether anything beside the layers predicts a gradient or an input."""
    rule = rule_of(method)
    return rule.has_module or rule.synthetic_inputs


def rule_of(method: Method) -> Rule:
    """Return what a layer-wise method asks of a shard."""
    code, config = _resolved(method, "learning")
    rule: Rule = code.rule(config)
    return rule


def sees_inputs(node: TrainingNode) -> bool:
    """Whether a node needs the examples themselves, and not their labels alone."""
    if (shard := node.shard) is None:
        return True
    return node.role == "worker" and (not shard.below or rule_of(node.method).synthetic_inputs)


def descent_of(part: Part) -> Descent:
    """How an optimizer steps; it is one part of two kinds."""
    descent: Descent = code_of("optimizer", part.name).Optimizer(configure("optimizer", part))
    return descent


def exchange_of(method: Method) -> Callable[[NDArray[np.float32]], Exchanged]:
    """Return the function that says what shards send of an array."""
    code, config = _resolved(method, "exchange")
    return functools.partial(code.exchange, config=config)
