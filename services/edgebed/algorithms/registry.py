"""The parts a method is made of, by name, and the named methods: presets of parts.

To add a part: write its file, import it here, add it to the table. See docs/creating-a-method.md.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregation import asynchronous, buffered, stale_synchronous, synchronous
from edgebed.algorithms.compression import dgc, esgd, none, powersgd_local, qsgd, sign, threshold, top_k
from edgebed.algorithms.compression import int8 as compression_int8
from edgebed.algorithms.compressor import Apart, Compressor
from edgebed.algorithms.exchange import dense, int8
from edgebed.algorithms.exchange import top_k as exchange_top_k
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.layerwise import (
    back_propagation,
    decoupled_greedy,
    direct_minimisation,
    synthetic_gradients,
    synthetic_inputs,
)
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.local_work import gradient_step, local_steps
from edgebed.algorithms.optimizer import adam, momentum, sgd
from edgebed.scenario.plan import Method, NodePlan, Part, Task

AGGREGATIONS: dict[str, ModuleType] = {
    "asynchronous": asynchronous,
    "synchronous": synchronous,
    "stale-synchronous": stale_synchronous,
    "buffered": buffered,
}
COMPRESSIONS: dict[str, ModuleType] = {
    "none": none,
    "top-k": top_k,
    "threshold": threshold,
    "esgd": esgd,
    "dgc": dgc,
    "int8": compression_int8,
    "qsgd": qsgd,
    "sign": sign,
    "powersgd-local": powersgd_local,
}
LOCAL_WORKS: dict[str, ModuleType] = {"gradient-step": gradient_step, "local-steps": local_steps}

LEARNINGS: dict[str, ModuleType] = {
    "back-propagation": back_propagation,
    "synthetic-gradients": synthetic_gradients,
    "synthetic-inputs": synthetic_inputs,
    "decoupled-greedy": decoupled_greedy,
    "direct-minimisation": direct_minimisation,
}
EXCHANGES: dict[str, ModuleType] = {"dense": dense, "int8": int8, "top-k": exchange_top_k}
OPTIMIZERS: dict[str, ModuleType] = {"sgd": sgd, "momentum": momentum, "adam": adam}

KINDS: dict[str, dict[str, ModuleType]] = {
    "aggregation": AGGREGATIONS,
    "compression": COMPRESSIONS,
    "downlink": COMPRESSIONS,
    "local_work": LOCAL_WORKS,
    "learning": LEARNINGS,
    "optimizer": OPTIMIZERS,
    "module_optimizer": OPTIMIZERS,
    "exchange": EXCHANGES,
}
NOTES = {name: note for name, module in COMPRESSIONS.items() if (note := getattr(module, "NOTE", ""))}
"""Compression -> what a reader of its figures must know, where it is not what its name is known for."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "parameter-server": ("aggregation", "compression", "local_work"),
    "layer-wise": ("learning", "optimizer", "exchange"),
}
"""The kinds of parts that a method has: of workers that push gradients, and of shards of a model."""
LIKE: dict[str, str] = {"module_optimizer": "optimizer", "downlink": "compression"}
"""Kinds that a method may have besides, and what settings are taken from where it says nothing itself. Without a
`module_optimizer` it is the optimizer; without a `downlink` models travel whole."""

_LAYERWISE = {"optimizer": {"name": "adam"}, "exchange": {"name": "dense"}}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    # dense gradients, the learning rate divided by the staleness of the whole update (Hardy et al. 2017, V.B)
    "asgd": {
        "aggregation": {"name": "asynchronous", "staleness": "whole-update"},
        "compression": {"name": "none"},
        "local_work": {"name": "gradient-step"},
    },
    # the largest gradients across the whole model, divided as above (Hardy et al. 2017, V.B)
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
    # the model moves at every so-manieth gradient (Zhang et al. 2016)
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
    # the same, held to the model that they began with (Li et al. 2020)
    "fedprox": {
        "aggregation": {"name": "synchronous", "learning_rate": 1.0, "weights": "examples"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps", "proximal": 0.01},
    },
    # changes of models that were trained apart, a few at a time (Nguyen et al. 2022)
    "fedbuff": {
        "aggregation": {"name": "buffered", "learning_rate": 1.0, "staleness": "power"},
        "compression": {"name": "none"},
        "local_work": {"name": "local-steps"},
    },
    # the layers on different nodes, which wait for each other
    "back-propagation": {"learning": {"name": "back-propagation"}, **_LAYERWISE},
    # nobody waits: a module beside each shard predicts the gradient (Jaderberg et al. 2017; Chen et al. 2019)
    "synthetic-gradients": {"learning": {"name": "synthetic-gradients"}, **_LAYERWISE},
    # nor for what comes from below (Jaderberg et al. 2017, 2.3)
    "synthetic-inputs": {"learning": {"name": "synthetic-inputs"}, **_LAYERWISE},
    # each shard has a loss of its own (Belilovsky et al. 2020)
    "decoupled-greedy": {"learning": {"name": "decoupled-greedy"}, **_LAYERWISE},
    # back-propagation of the loss and of what modules cannot predict of the gradients (Tong et al. 2016, 5.1)
    "direct-minimisation": {"learning": {"name": "direct-minimisation"}, **_LAYERWISE},
}


def configure(kind: str, part: Part) -> Any:
    """The part's `Config`, checked; ValueError (msgspec.ValidationError is one) if a setting is wrong."""
    module = KINDS[kind][part.name]
    return msgspec.convert(part.settings | {"name": part.name}, module.Config)


def compression_of(method: Method, task: Task, kind: str = "compression") -> Compressor:
    """What its pushes are compressed with; of kind `downlink`, what it sends down."""
    part = method.parts[kind]
    shapes = [tensor.shape for tensor in task.layout if not tensor.kept]
    compressor: Compressor = COMPRESSIONS[part.name].Compression(configure(kind, part), shapes)
    kept = kept_of(task)
    return compressor if kept is None else Apart(compressor, kept)


def kept_of(task: Task) -> NDArray[np.bool_] | None:
    """(n,) where the model's vector is no parameter, but what modules keep beside them; None: nowhere."""
    if not any(tensor.kept for tensor in task.layout):
        return None
    return np.repeat([tensor.kept for tensor in task.layout], [tensor.size for tensor in task.layout])


def local_work_of(method: Method, task: Task) -> Any:
    """What its workers do between a pull and a push."""
    part = method.parts["local_work"]
    return LOCAL_WORKS[part.name].LocalWork(configure("local_work", part), kept_of(task))


def batches_a_push(plan: NodePlan) -> int:
    """Mini-batches that a worker goes through between a pull and a push."""
    found: int = local_work_of(plan.method, plan.task).batches(plan.num_examples, plan.task.batch_size)
    return found


def has_modules(method: Method) -> bool:
    """Whether anything beside the layers predicts a gradient or an input."""
    rule = rule_of(method)
    return rule.has_module or rule.synthetic_inputs


def rule_of(method: Method) -> Rule:
    """What a layer-wise method asks of a shard."""
    part = method.parts["learning"]
    rule: Rule = LEARNINGS[part.name].rule(configure("learning", part))
    return rule


def sees_inputs(node: NodePlan) -> bool:
    """Whether a node needs the examples themselves, and not their labels alone."""
    if node.shard is None:
        return True
    return node.role == "worker" and (not node.shard.below or rule_of(node.method).synthetic_inputs)


def exchange_of(method: Method) -> Callable[[NDArray[np.float32]], Exchanged]:
    """What shards send of an array."""
    part = method.parts["exchange"]
    return functools.partial(EXCHANGES[part.name].exchange, config=configure("exchange", part))
