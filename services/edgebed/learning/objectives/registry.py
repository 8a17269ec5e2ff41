"""The objectives that a task may have by name, or the user's own by import path."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass

import msgspec

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import MEASURES
from edgebed.core.plan import Part, Task, TrainingPlan
from edgebed.core.quantities import largest_share
from edgebed.learning.objectives.classification import ACCURACY, Classification
from edgebed.learning.objectives.multi_label import MultiLabel
from edgebed.learning.objectives.next_token import NextToken
from edgebed.learning.objectives.objective import Arrays, Objective, Supervised
from edgebed.learning.objectives.regression import Regression

OBJECTIVES: dict[str, type[Objective]] = {
    "classification": Classification,
    "multi-label": MultiLabel,
    "regression": Regression,
    "next-token": NextToken,
}
BY_LOSS = {
    **dict.fromkeys(("mse", "l2", "squared"), "regression"),
    **dict.fromkeys(("mae", "l1", "absolute"), "{ name: regression, loss: absolute }"),
    **dict.fromkeys(("huber", "smoothl1"), "{ name: regression, loss: huber }"),
    **dict.fromkeys(("ce", "nll", "crossentropy", "categoricalcrossentropy"), "classification"),
    "squaredsoftmax": "{ name: classification, loss: squared-softmax }",
    **dict.fromkeys(("bce", "bcewithlogits", "binarycrossentropy"), "multi-label"),
    **dict.fromkeys(("lm", "languagemodel", "causallm", "perplexity"), "next-token"),
}
"""Losses, as they are called elsewhere, in lower-case letters and digits, and the objective that has each."""
WHOSE_MAX = 3
"""Measures of other objectives that are named where one is unknown, at most."""
MEASURE_NAME = r"[a-z][a-z0-9_]{0,39}"
TAKEN = frozenset(
    (
        *("run", "trial", "t", "time_s", "version", "final", "bits", "ingress_bytes", "egress_bytes", "traffic_bytes"),
        *("updates", "time"),
        *(name.removeprefix("last_") for name in MEASURES if name.startswith("last_")),
    )
)
"""Names of what stands beside a task's measures in tables, and in a summary."""
PREFIXES = ("validation_", "tuned_")
"""What the columns of other values of a measure begin with."""
ASKED = (
    "a Supervised has loss_of(self, outputs, targets) and sums_of(self, outputs, targets), any other Objective "
    "loss(self, model, batch) and sums(self, model, batch)"
)


def class_of(name: str, python_path: Sequence[str] = ()) -> type[Objective]:
    """Return the objective of that name, or the user's own class; ScenarioError where it is none."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    found = imports.resolve(name, python_path)
    at = imports.begins(found)
    if not (isinstance(found, type) and issubclass(found, Objective)):
        raise ScenarioError(f"{name}: no objective; derive a class from edgebed.Supervised or edgebed.Objective{at}")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise ScenarioError(f"{name}: it has no {' and no '.join(missing)}; {ASKED}{at}")
    if not isinstance(found.Config, type) or not is_dataclass(found.Config):
        raise ScenarioError(
            f"{name}: its Config is no dataclass; write @dataclass(frozen=True, kw_only=True) above{at}"
        )
    if problem := _wrong_measures(getattr(found, "measures", ())):
        raise ScenarioError(f"{name}: {problem}{at}")
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


def by_loss(given: object) -> str:
    """Return the objective that has a loss of that name, as a scenario writes it; "" if none has."""
    return BY_LOSS.get(re.sub("[^a-z0-9]", "", str(given).lower()).removesuffix("loss"), "")


def others_that_take(name: str, targets: Sequence[Arrays], stated: int | None) -> list[str]:
    """Return the built-in objectives, but for that of the name, that take such targets."""
    found = []
    for other, code in OBJECTIVES.items():
        try:
            code().outputs(targets, stated)
        except ScenarioError:
            continue
        if other != name:
            found.append(other)
    return found


def whose_told(given: str, known: Iterable[str], names_of: Callable[[Sequence[TaskMeasure]], Iterable[str]]) -> str:
    """Say which objectives have what is called so, or begins so, and is not known; "" if none has."""
    whose: dict[str, list[str]] = {}
    for objective, code in OBJECTIVES.items():
        for name in names_of(code.measures):
            if (name == given or name.startswith(f"{given}_")) and name not in known:
                whose.setdefault(name, []).append(objective)
    if len(whose) > WHOSE_MAX:
        return ""
    return "".join(f"; {name} comes with objective: {' or '.join(of)}" for name, of in whose.items())


def most_frequent_class(plan: TrainingPlan) -> tuple[int, float] | None:
    """The test set's most frequent class, with its share: what the headline is of who always says it.

    None where the headline is none of which that holds.
    """
    of_hits = ACCURACY.name, ACCURACY.unit, ACCURACY.better
    is_share_of_hits = any((each.name, each.unit, each.better) == of_hits for each in plan.measures[:1])
    return largest_share(plan.evaluator.label_counts) if is_share_of_hits else None


def _wrong_measures(measures: object) -> str:
    """Say what is wrong with the measures that an objective declares; "" if nothing is."""
    if not isinstance(measures, tuple) or not measures or not all(isinstance(each, TaskMeasure) for each in measures):
        declared = f"`measures` is {measures!r}" if measures else "it declares no `measures`"
        return f'{declared}; give a tuple of TaskMeasure, the headline first: measures = (TaskMeasure("mae"),)'
    names = [each.name for each in measures]
    for each in measures:
        try:
            msgspec.convert(msgspec.to_builtins(each), TaskMeasure)
        except msgspec.ValidationError as error:
            return f"the measure {each.name!r}: {error}; better is 'less' or 'more', scale 'linear' or 'log'"
        if not re.fullmatch(MEASURE_NAME, each.name):
            return f"no name of a measure: {each.name!r}; lower-case letters, digits and _, a letter first, at most 40"
        if each.name in TAKEN or each.name.startswith(PREFIXES) or names.count(each.name) > 1:
            return f"the measure '{each.name}' has the name of another column or measure; give it one of its own"
    return ""
