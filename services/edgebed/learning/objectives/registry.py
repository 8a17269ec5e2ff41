"""The objectives that a task may have by name, or the user's own by import path."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass

import msgspec

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.plan import Part, Task
from edgebed.learning.objectives.classification import Classification
from edgebed.learning.objectives.multi_label import MultiLabel
from edgebed.learning.objectives.next_token import NextToken
from edgebed.learning.objectives.objective import Objective, Supervised
from edgebed.learning.objectives.regression import Regression

OBJECTIVES: dict[str, type[Objective]] = {
    "classification": Classification,
    "multi-label": MultiLabel,
    "regression": Regression,
    "next-token": NextToken,
}
MEASURE_NAME = r"[a-z][a-z0-9_]{0,39}"
TAKEN = frozenset(
    ("t", "time", "time_s", "version", "updates", "window", "final", "bits", "ingress_bytes", "egress_bytes")
)
"""Names of what stands beside a task's measures in scenarios and tables."""


def class_of(name: str, python_path: Sequence[str] = ()) -> type[Objective]:
    """Return the objective of that name, or the user's own class; ScenarioError where it is none."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    found = imports.resolve(name, python_path)
    if not (isinstance(found, type) and issubclass(found, Objective)):
        raise ScenarioError(
            f"{name}: no objective; derive a class from {Objective.__module__}.{Objective.__qualname__}"
        )
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise ScenarioError(f"{name}: it has no {missing[0]}; see docs/own-models-and-data.md")
    if not is_dataclass(found.Config):
        raise ScenarioError(f"{name}: its Config is no dataclass; write @dataclass(frozen=True, kw_only=True) above")
    _check_measures(name, found)
    return found


def objective_of(part: Part, python_path: Sequence[str] = ()) -> Objective:
    """Return the objective with its settings; ScenarioError where there is none, or a setting is wrong."""
    found = class_of(part.name, python_path)
    try:
        config = msgspec.convert(part.settings, found.Config)
    except ValueError as error:
        raise ScenarioError(f"{part.name}: {error}") from error
    made = imports.call(part.name, found, config=config)
    assert isinstance(made, Objective)
    return made


def objective_of_task(task: Task) -> Objective:
    """Return the task's objective."""
    return objective_of(task.objective, task.python_path)


def supervised(task: Task) -> Supervised:
    """Return the task's objective, for a model in layers; ScenarioError where it needs the whole model."""
    found = objective_of_task(task)
    if not isinstance(found, Supervised):
        raise ScenarioError(
            f"{task.objective.name}: its loss needs the whole model, whose layers lie on several nodes here; derive it "
            f"from {Supervised.__module__}.{Supervised.__qualname__}"
        )
    return found


def declared(names: Iterable[str]) -> tuple[TaskMeasure, ...]:
    """Return the measures of these names as built-in objectives declare them, e.g. for a journal without its plan."""
    known = {each.name: each for objective in reversed(OBJECTIVES.values()) for each in objective.measures}
    return tuple(known.get(name) or TaskMeasure(name=name) for name in names) or Classification.measures


def all_declared() -> tuple[TaskMeasure, ...]:
    """Return the measures of all built-in objectives, each once, and whose each is behind its meaning."""
    of: dict[str, list[str]] = {}
    for name, objective in OBJECTIVES.items():
        for each in objective.measures:
            of.setdefault(each.name, []).append(name)
    whose = {name: "all" if len(names) == len(OBJECTIVES) else ", ".join(names) for name, names in of.items()}
    return tuple(
        msgspec.structs.replace(each, meaning=f"{each.meaning.removesuffix('.')} ({whose[each.name]}).")
        for each in declared(of)
    )


def _check_measures(name: str, found: type[Objective]) -> None:
    measures = [each for each in getattr(found, "measures", ()) if isinstance(each, TaskMeasure)]
    if not measures:
        raise ScenarioError(f"{name}: it declares no `measures`; give a tuple of TaskMeasure, the headline first")
    names = [each.name for each in measures]
    for each in names:
        if not re.fullmatch(MEASURE_NAME, each) or each in TAKEN or names.count(each) > 1:
            raise ScenarioError(
                f"{name}: no name of a measure: '{each}'; lower-case letters, digits and _, a letter first, each once, "
                f"and none of {', '.join(sorted(TAKEN))}"
            )
