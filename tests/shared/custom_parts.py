"""Parts and a fault of somebody's own, in a folder outside the package: copies of built-in ones under other names."""

import inspect
from pathlib import Path

from edgebed.algorithms.optimizer import OPTIMIZERS
from edgebed.algorithms.registry import (
    AGGREGATIONS,
    COMPRESSIONS,
    EXCHANGES,
    LAYERWISE_RULES,
    LOCAL_WORKS,
)
from edgebed.scenario.faults.registry import KINDS

FAULT = inspect.getsource(KINDS["freeze"]).replace("class Freeze(", "class Hiccup(").replace("freeze: T", "hiccup: T")
IMPORTS = """
from typing import ClassVar

from pydantic import Field

from edgebed.scenario.faults.settings.entry import FaultSection, for_a_while
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.section import Duration


"""
SCENARIO = """
name: own
question: Do parts of my own do what built-in ones do?
seed: 3
task: { data: digits, model: small, batch_size: 10 }
fleet: { edge: { count: 3, waiting: 50ms } }
evaluation: { every: 20 updates }
stop: { updates: 60 }
expect: { updates_unexplained: "== 0" }
variants:
  trial:
    method: { aggregation: AGGREGATION, compression: { name: COMPRESSION, fraction: 0.1 }, local_work: LOCAL_WORK }
    faults: [{ KIND: edge-0, at: 50ms, for: 100ms, name: pause }]
"""


def own_package(folder: Path) -> str:
    """Writes a package whose name no other test uses, and returns its name."""
    package = f"mine_{abs(hash(str(folder)))}"
    (folder / package).mkdir()
    files = {
        "__init__": "",
        "rounds": inspect.getsource(AGGREGATIONS["synchronous"]),
        "sparse": inspect.getsource(COMPRESSIONS["top-k"]),
        "work": inspect.getsource(LOCAL_WORKS["gradient-step"]),
        "faults": IMPORTS + FAULT.replace('"freeze"\n', '"hiccup"\n', 1),
    }
    for name, text in files.items():
        (folder / package / f"{name}.py").write_text(text, encoding="utf-8")
    return package


def scenario_of(folder: Path, package: str = "") -> Path:
    """A scenario with the parts and the fault of that package, or with the built-in ones that they were copied from."""
    names = {
        "AGGREGATION": f"{package}.rounds:Aggregation" if package else "synchronous",
        "COMPRESSION": f"{package}.sparse:Compression" if package else "top-k",
        "LOCAL_WORK": f"{package}.work:LocalWork" if package else "gradient-step",
        "KIND": f"{package}.faults:Hiccup" if package else "freeze",
    }
    text = SCENARIO
    for placeholder, name in names.items():
        text = text.replace(placeholder, name)
    path = folder / f"{'own' if package else 'built-in'}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


LAYERWISE = """
name: layers
seed: 3
task: { data: digits, model: mlp, batch_size: 10 }
fleet: { edge: { count: 2 } }
evaluation: { every: 10 updates }
stop: { updates: 20 }
variants:
  trial:
    method: { learning: LEARNING, exchange: EXCHANGE, optimizer: { name: OPTIMIZER, learning_rate: 0.01 } }
"""


def layerwise_scenario_of(folder: Path, package: str = "") -> Path:
    """Likewise, of shards; the package gets three modules more."""
    names = {"LEARNING": "back-propagation", "EXCHANGE": "int8", "OPTIMIZER": "adam"}
    if package:
        tables = {
            "LEARNING": (LAYERWISE_RULES, "rule"),
            "EXCHANGE": (EXCHANGES, "exchange"),
            "OPTIMIZER": (OPTIMIZERS, ""),
        }
        for placeholder, (table, _) in tables.items():
            source = inspect.getsource(table[names[placeholder]])
            (folder / package / f"{placeholder.lower()}.py").write_text(source, encoding="utf-8")
        names = {key: f"{package}.{key.lower()}:{called or 'Optimizer'}" for key, (_, called) in tables.items()}
    text = LAYERWISE
    for placeholder, name in names.items():
        text = text.replace(placeholder, name)
    path = folder / f"{'own' if package else 'built-in'}-layers.yaml"
    path.write_text(text, encoding="utf-8")
    return path
