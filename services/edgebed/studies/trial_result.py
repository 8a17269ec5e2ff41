"""What is stored of a finished trial without its journal: plan, summary, and every evaluation.

A paper's measures read it. Without the plan, which the scenario gives again, it is a few kilobytes of JSON.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from edgebed.algorithms.registry import whole_batches_a_push
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.plan import TrainingPlan
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.summary import TrialSummary
from edgebed.running.results import Trial

DTYPES = {"version": np.int64, "ingress_bytes": np.int64, "bits": np.int64, "final": np.bool_}
"""Types of the columns of an evaluation that are no floats."""
Columns = dict[str, list[Any]]
DIGITS = 8
"""Significant digits of what is measured and no share, which is a mean of single precision."""
OF_VALIDATION = "validation/"
"""What the names of columns of the validation part begin with."""
PASSED = tuple(
    field.name for field in dataclasses.fields(Evaluations) if field.name not in ("measured", "measures", "validation")
)
"""Columns of evaluations beside what was measured."""


@dataclass(frozen=True, kw_only=True)
class FinishedTrial:
    """A trial that ran to its end, with finite losses or not."""

    plan: TrainingPlan
    """Every node with its caps, its data and its parts."""
    summary: TrialSummary
    """The numbers of the report."""
    evaluations: Evaluations
    """What was measured, over updates, time, ingress and bits."""
    batches: float | None = None
    """Whole mini-batches behind the workers' finished updates, of which one with half of the examples is half; None
    where that is not known, or there are none."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """The finished trial; EdgebedError where its journal is missing, cut or incomplete, or its accounting open."""
        if not trial.summary.is_sound:
            broken = "missing, cut or not all accounted for"
            raise EdgebedError(f"{trial.folder.journal}: {broken}, though the trial completed; run it anew")
        return cls(
            plan=trial.plan,
            summary=trial.summary,
            evaluations=trial.series.evaluations,
            batches=_batches(trial.plan, trial.summary),
        )


def _batches(plan: TrainingPlan, summary: TrialSummary) -> float | None:
    if summary.accounting is None or summary.shards:
        return None
    try:
        each = {node.node: whole_batches_a_push(node) for node in plan.workers()}
    except ScenarioError:  # the local work is the user's own, and no longer where it was
        return None
    return sum((life.begun - life.unfinished) * each[life.worker] for life in summary.accounting.lives)


def columns_of(evaluations: Evaluations) -> Columns:
    """Evaluations as columns for JSON; what is not finite is None, and what is no share has DIGITS digits."""
    columns = {name: getattr(evaluations, name).tolist() for name in PASSED}
    for prefix, part in (("", evaluations.measured), (OF_VALIDATION, evaluations.validation)):
        for measure in evaluations.measures if part else ():
            values = part[measure.name].tolist()
            rounded = [float(f"{value:.{DIGITS}g}") for value in values]
            columns[prefix + measure.name] = values if measure.is_share else rounded
    return {name: [short(value) for value in column] for name, column in columns.items()}


def short(value: Any) -> Any:
    """A value as JSON writes it shortest: a whole number of bytes without a point."""
    if not math.isfinite(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def evaluations_of(columns: Columns, measures: tuple[TaskMeasure, ...]) -> Evaluations:
    """Evaluations from columns; EdgebedError where the columns are not those of evaluations."""
    prefixes = ("", OF_VALIDATION) if any(name.startswith(OF_VALIDATION) for name in columns) else ("",)
    names = [*PASSED, *(prefix + measure.name for prefix in prefixes for measure in measures)]
    if sorted(columns) != sorted(names) or len({len(column) for column in columns.values()}) != 1:
        raise EdgebedError(f"evaluations have the columns {', '.join(names)}, all of one length")
    try:
        arrays: dict[str, Any] = {
            name: np.array([np.nan if value is None else value for value in columns[name]])
            .reshape(-1)
            .astype(DTYPES.get(name, np.float64))
            for name in names
        }
        measured, *others = (
            {measure.name: arrays.pop(prefix + measure.name) for measure in measures} for prefix in prefixes
        )
        return Evaluations(**arrays, measured=measured, validation=others[0] if others else {}, measures=measures)
    except (TypeError, ValueError) as error:
        raise EdgebedError(f"evaluations are numbers: {error}") from error
