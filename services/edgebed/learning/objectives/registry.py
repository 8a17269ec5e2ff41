"""The objectives that a task may have by name, or the user's own by import path."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import MEASURES
from edgebed.core.plan import Plan
from edgebed.core.quantities import largest_share
from edgebed.learning.objectives.classification import ACCURACY, CrossEntropy, Squared
from edgebed.learning.objectives.objective import Objective

OBJECTIVES: dict[str, type[Objective]] = {"cross-entropy": CrossEntropy, "squared": Squared}
MEASURE_NAME = r"[a-z][a-z0-9_]{0,39}"
TAKEN = frozenset(
    (
        *("run", "trial", "t", "time_s", "version", "final", "bits", "ingress_bytes", "egress_bytes", "traffic_bytes"),
        *("updates", "time", "window", "methods", "over", "seeds"),
        *(name.removeprefix("last_") for name in MEASURES if name.startswith("last_")),
    )
)
"""Names of what stands beside a task's measures in tables, in `stop` and `sweep`, and in a summary."""


def objective_of(name: str, python_path: Sequence[str] = ()) -> Objective:
    """Return the objective of that name, or of the user's own class; ScenarioError where it is none."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]()
    found = imports.resolve(name, python_path)
    if not (isinstance(found, type) and issubclass(found, Objective)):
        raise ScenarioError(
            f"{name}: no objective; derive a class from {Objective.__module__}.{Objective.__qualname__}"
        )
    from edgebed.algorithms.custom import watched_class  # loads numpy, which reading a journal's lines does not need

    _check_declared(name, getattr(found, "measures", ()))
    own = imports.call(
        name, watched_class("objective", name, found, {"loss": _wrong_loss, "measured": _wrong_measured})
    )
    assert isinstance(own, Objective)
    return own


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


def _wrong_loss(result: Any, _: Objective, outputs: Any, labels: Any) -> str:
    if not _is_number(result) or not hasattr(result, "requires_grad"):
        return f"returned {_shown(result)}, not a tensor of one number"
    is_followed = result.requires_grad or not outputs.requires_grad
    return "" if is_followed else "returned a tensor that does not follow from the outputs, so nothing could be learnt"


def _wrong_measured(result: Any, own: Objective, *_: Any) -> str:
    names = [each.name for each in own.measures]
    if not isinstance(result, dict) or sorted(map(str, result)) != sorted(names):
        said = ", ".join(map(str, result)) or "nothing" if isinstance(result, dict) else _shown(result)
        return f"returned {said}, not a sum and its weight for each of {', '.join(names)}, which `measures` declares"
    for name, found in result.items():
        if not isinstance(found, tuple | list) or len(found) != 2 or not all(map(_is_number, found)):
            return f"returned {_shown(found)} as {name}, not a sum and its weight, e.g. (hits.sum(), len(labels))"
        if not 0.0 <= float(found[1]) < math.inf:
            return f"returned {float(found[1]):g} as the weight of {name}; it is the number of examples, or 0 and more"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or math.prod(getattr(value, "shape", (0,))) == 1


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {'' if shape is None else tuple(shape)}".strip()


def declared(names: Iterable[str]) -> tuple[TaskMeasure, ...]:
    """Return the measures of these names as built-in objectives declare them, e.g. for a journal without its plan."""
    known = {each.name: each for objective in OBJECTIVES.values() for each in objective.measures}
    return tuple(known.get(name) or TaskMeasure(name=name) for name in names) or CrossEntropy.measures
