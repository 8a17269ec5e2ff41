"""The objectives that a task may have by name, or the user's own by import path."""

import re
from collections.abc import Iterable, Sequence

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.learning.objectives.classification import CrossEntropy, Squared
from edgebed.learning.objectives.objective import Objective

OBJECTIVES: dict[str, type[Objective]] = {"cross-entropy": CrossEntropy, "squared": Squared}
MEASURE_NAME = r"[a-z][a-z0-9_]{0,39}"
TAKEN = frozenset(
    ("t", "time", "time_s", "version", "updates", "window", "final", "bits", "ingress_bytes", "egress_bytes")
)
"""Names of what stands beside a task's measures in scenarios and tables."""


def objective_of(name: str, python_path: Sequence[str] = ()) -> Objective:
    """Return the objective of that name, or of the user's own class; ScenarioError where it is none."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]()
    found = imports.resolve(name, python_path)
    if not (isinstance(found, type) and issubclass(found, Objective)):
        raise ScenarioError(
            f"{name}: no objective; derive a class from {Objective.__module__}.{Objective.__qualname__}"
        )
    own = imports.call(name, found)
    declared = [each for each in getattr(own, "measures", ()) if isinstance(each, TaskMeasure)]
    if not declared:
        raise ScenarioError(f"{name}: it declares no `measures`; give a tuple of TaskMeasure, the headline first")
    names = [each.name for each in declared]
    for each in names:
        if not re.fullmatch(MEASURE_NAME, each) or each in TAKEN or names.count(each) > 1:
            raise ScenarioError(
                f"{name}: no name of a measure: '{each}'; lower-case letters, digits and _, a letter first, each once, "
                f"and none of {', '.join(sorted(TAKEN))}"
            )
    assert isinstance(own, Objective)
    return own


def declared(names: Iterable[str]) -> tuple[TaskMeasure, ...]:
    """Return the measures of these names as built-in objectives declare them, e.g. for a journal without its plan."""
    known = {each.name: each for objective in OBJECTIVES.values() for each in objective.measures}
    return tuple(known.get(name) or TaskMeasure(name=name) for name in names) or CrossEntropy.measures
