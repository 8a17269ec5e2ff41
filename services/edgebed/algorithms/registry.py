"""The parts a method is made of, by name, and the named methods: presets of parts.

To add a part: write its file, import it here, add it to the table. See docs/creating-a-method.md.
"""

from types import ModuleType
from typing import Any

import msgspec

from edgebed.algorithms.aggregation import asynchronous, synchronous
from edgebed.algorithms.compression import none, top_k
from edgebed.algorithms.local_work import gradient_step
from edgebed.scenario.plan import Part

AGGREGATIONS: dict[str, ModuleType] = {"asynchronous": asynchronous, "synchronous": synchronous}
COMPRESSIONS: dict[str, ModuleType] = {"none": none, "top-k": top_k}
LOCAL_WORKS: dict[str, ModuleType] = {"gradient-step": gradient_step}

KINDS: dict[str, dict[str, ModuleType]] = {
    "aggregation": AGGREGATIONS,
    "compression": COMPRESSIONS,
    "local_work": LOCAL_WORKS,
}

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
}


def configure(kind: str, part: Part) -> Any:
    """The part's `Config`, checked; ValueError (msgspec.ValidationError is one) if a setting is wrong."""
    module = KINDS[kind][part.name]
    return msgspec.convert(part.settings | {"name": part.name}, module.Config)
