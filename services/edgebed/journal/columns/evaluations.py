"""The evaluations of a trial as arrays: what was measured of the model on each part of the data that is held out."""

import dataclasses
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.core.measures.task import TEST, VALIDATION, TaskMeasure
from edgebed.journal.columns.updates import Floats, Ints, Updates
from edgebed.learning.objectives.registry import declared


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluations:
    """The E measurements of the model, in order; every array has shape (E,)."""

    t: Floats
    """When the model reached this version, not when its evaluation was done."""
    version: Ints
    measured: dict[str, Floats]
    """The values of each of the task's measures on the test part, by name."""
    final: NDArray[np.bool_]
    ingress_bytes: Ints
    """Payload of all pushes that made this version: what went up."""
    egress_bytes: Floats
    """Payload of the models that the server had handed out to workers before it applied the last of these pushes: what
    went down for this version. Of a round, all models that its workers began with; of an asynchronous method, those of
    all workers, with those whose answers are still to come. The final evaluation has those of the whole trial: workers
    are sent the final model as well, which is of no use to training, and was paid for. NaN: not known."""
    bits: Ints
    """Bits that the algorithm needs for these pushes, without encoding or framing."""
    measures: tuple[TaskMeasure, ...]
    """What the task measures, the headline first."""
    validation: dict[str, Floats] = dataclasses.field(default_factory=dict)
    """The values of each on the validation part; empty: the task has none."""

    def __len__(self) -> int:
        """Number of evaluations, E."""
        return len(self.t)

    @property
    def headline(self) -> TaskMeasure:
        """The measure that results are told by."""
        return self.measures[0]

    def told_by(self, measure: TaskMeasure) -> "Evaluations":
        """Return the evaluations with another of their measures as the headline."""
        return dataclasses.replace(self, measures=(measure, *(each for each in self.measures if each != measure)))

    @property
    def values(self) -> Floats:
        """The values of the headline by which versions are chosen."""
        return self.selecting[self.headline.name]

    @property
    def selecting(self) -> dict[str, Floats]:
        """What versions are chosen by: the values on the validation part, else on the test part."""
        return self.validation or self.measured

    @property
    def selects_by(self) -> str:
        """The part that these are measured on."""
        return VALIDATION if self.validation else TEST

    @property
    def traffic_bytes(self) -> Floats:
        """Payload up and down together, in bytes; NaN: not known."""
        return self.ingress_bytes + self.egress_bytes

    @property
    def final_value(self) -> float | None:
        """The test part's headline of the last model; None where the trial did not come to its final evaluation."""
        return self.of_last_model().get(self.headline.name)

    def at(self, places: NDArray[np.bool_]) -> Self:
        """The evaluations at some places."""
        chosen: dict[str, Any] = {
            name: column[places] for name, column in vars(self).items() if isinstance(column, np.ndarray)
        }
        for part in ("measured", "validation"):
            chosen[part] = {name: values[places] for name, values in getattr(self, part).items()}
        return dataclasses.replace(self, **chosen)

    def of_last_model(self) -> dict[str, float]:
        """What was measured of the last model on the test part; empty without a final evaluation."""
        return {name: float(values[self.final][-1]) for name, values in self.measured.items() if self.final.any()}

    def last(self) -> dict[str, float]:
        """What was measured last on the test part; empty without any evaluation."""
        return {name: float(values[-1]) for name, values in self.measured.items() if len(self)}

    def best(self) -> dict[str, float]:
        """Each measure on the test part, of the version that was best by it; empty without any evaluation.

        Where there is a validation part, that says which version was best.
        """
        return {
            each.name: float(self.measured[each.name][each.best_place(self.selecting[each.name])])
            for each in self.measures
            if len(self)
        }

    def validated(self) -> dict[str, float]:
        """The best value of each measure on the validation part; empty where there is none."""
        return {each.name: each.best(self.validation[each.name]) for each in self.measures if len(self.validation)}

    def chosen_version(self) -> int | None:
        """The version whose headline was best; None without any evaluation."""
        return int(self.version[self.headline.best_place(self.values)]) if len(self) else None


def evaluations_of(
    evaluated: list[records.Evaluated], updates: Updates, sent_bytes: int | None, measures: tuple[TaskMeasure, ...]
) -> Evaluations:
    """The evaluations of these records, with what had passed by the updates that made each version.

    `sent_bytes`: payload of all models that workers were sent. Without `measures` they are as built-in objectives
    declare them.
    """
    measures = measures or declared({name: None for record in evaluated for name in record.measured})
    parts: dict[str, dict[str, Floats]] = {}
    for part in ("measured", "validation"):
        told = [getattr(record, part) for record in evaluated]
        parts[part] = {
            each.name: np.array([values.get(each.name, math.nan) for values in told], dtype=np.float64)
            for each in measures
            if part == "measured" or any(told)
        }
    final = np.array([record.final for record in evaluated], dtype=np.bool_)
    version = np.array([record.version for record in evaluated], dtype=np.int64)
    reached = np.searchsorted(updates.version, version, side="right")
    egress = np.concatenate([np.zeros(1), updates.egress_bytes])[reached]
    return Evaluations(
        t=np.concatenate([np.zeros(1), updates.t])[reached],
        version=version,
        **parts,
        final=final,
        ingress_bytes=np.concatenate([np.zeros(1, dtype=np.int64), updates.ingress_bytes])[reached],
        egress_bytes=egress if sent_bytes is None else np.where(final, sent_bytes, egress),
        bits=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(updates.bits)])[reached],
        measures=measures,
    )
