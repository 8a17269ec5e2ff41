"""The objectives that a task may have by name, or the user's own by import path."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import MEASURES
from edgebed.core.plan import Part, Plan, Task
from edgebed.core.quantities import largest_share
from edgebed.learning.objectives.classification import ACCURACY, Classification
from edgebed.learning.objectives.multi_label import MultiLabel
from edgebed.learning.objectives.next_token import NextToken
from edgebed.learning.objectives.objective import Objective, Supervised
from edgebed.learning.objectives.regression import Regression

if TYPE_CHECKING:
    from edgebed.algorithms.custom import Checks

OBJECTIVES: dict[str, type[Objective]] = {
    "classification": Classification,
    "multi-label": MultiLabel,
    "regression": Regression,
    "next-token": NextToken,
}
MEASURE_NAME = r"[a-z][a-z0-9_]{0,39}"
TAKEN = frozenset(
    (
        *("run", "trial", "t", "time_s", "version", "final", "bits", "ingress_bytes", "egress_bytes", "traffic_bytes"),
        *("updates", "time", "window", "methods", "over", "seeds"),
        *(name.removeprefix("last_") for name in MEASURES if name.startswith("last_")),
    )
)
"""Names of what stands beside a task's measures in tables, in `stop` and `sweep`, and in a summary."""


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
    _check_declared(name, getattr(found, "measures", ()))
    return found


def objective_of(part: Part, python_path: Sequence[str] = ()) -> Objective:
    """Return the objective with its settings; ScenarioError where there is none, or a setting is wrong."""
    found = class_of(part.name, python_path)
    try:
        config = msgspec.convert(part.settings, found.Config)
    except ValueError as error:
        raise ScenarioError(f"{part.name}: {error}") from error
    if part.name in OBJECTIVES:
        return found(config)
    from edgebed.algorithms.custom import watched_class  # loads numpy, which reading a journal's lines does not need

    made = imports.call(part.name, watched_class("objective", part.name, found, CHECKS), config=config)
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
    """Return the measures of all built-in objectives, each once."""
    return declared(dict.fromkeys(each.name for objective in OBJECTIVES.values() for each in objective.measures))


def most_frequent_class(plan: Plan) -> tuple[int, float] | None:
    """The test set's most frequent class, with its share: what the headline is of who always says it.

    None where the headline is none of which that holds.
    """
    of_hits = ACCURACY.name, ACCURACY.unit, ACCURACY.better
    is_share_of_hits = any((each.name, each.unit, each.better) == of_hits for each in plan.measures[:1])
    return largest_share(plan.evaluator.label_counts) if is_share_of_hits else None


def _check_declared(name: str, measures: Any) -> None:
    """ScenarioError unless these are measures that a task can have."""
    if not isinstance(measures, tuple) or not measures or not all(isinstance(each, TaskMeasure) for each in measures):
        raise ScenarioError(f"{name}: it declares no `measures`; give a tuple of TaskMeasure, the headline first")
    for each in measures:
        try:
            msgspec.convert(msgspec.structs.asdict(each), TaskMeasure)
        except msgspec.ValidationError as error:
            raise ScenarioError(f"{name}: no measure: TaskMeasure(name={each.name!r}): {error}") from error
    names = [each.name for each in measures]
    for each in names:
        if not re.fullmatch(MEASURE_NAME, each) or each in TAKEN or names.count(each) > 1:
            raise ScenarioError(
                f"{name}: no name of a measure: '{each}'; lower-case letters, digits and _, a letter first, each once, "
                f"and none of {', '.join(sorted(TAKEN))}"
            )


def _wrong_loss(result: Any, *_: Any) -> str:
    is_number = hasattr(result, "requires_grad") and math.prod(result.shape) == 1
    return (
        "" if is_number else f"returned {_shown(result)}, not a tensor of one number, such as the mean over the batch"
    )


def _wrong_sums(result: Any, *_: Any) -> str:
    if not isinstance(result, dict):
        return f"returned {_shown(result)}, not a dict of sums by name"
    for name, found in result.items():
        if not isinstance(found, tuple | list) or len(found) != 2 or not _is_number(found[1]):
            return f"returned {_shown(found)} as {name}, not a sum and its weight, e.g. (hits.sum(), batch.size)"
        if not 0.0 <= float(found[1]) < math.inf:
            return f"returned {float(found[1]):g} as the weight of {name}; it is the number of examples, or 0 and more"
    return ""


def _wrong_values(result: Any, own: Objective, *_: Any) -> str:
    names = [each.name for each in own.measures]
    if not isinstance(result, dict) or sorted(map(str, result)) != sorted(names):
        said = ", ".join(map(str, result)) or "nothing" if isinstance(result, dict) else _shown(result)
        return f"returned {said}, not a value for each of {', '.join(names)}, which `measures` declares"
    wrong = [name for name, value in result.items() if not isinstance(value, int | float)]
    return f"returned {_shown(result[wrong[0]])} as {wrong[0]}, not a number" if wrong else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or math.prod(getattr(value, "shape", (0,))) == 1


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {'' if shape is None else tuple(shape)}".strip()


CHECKS: "Checks" = {
    "loss": _wrong_loss, "loss_of": _wrong_loss, "sums": _wrong_sums, "sums_of": _wrong_sums, "values": _wrong_values,
}  # fmt: skip
"""What says what is wrong with what the methods of one's own return."""
