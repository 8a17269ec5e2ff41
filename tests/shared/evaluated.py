"""Evaluations of a classification, as records and as arrays."""

from typing import Any

import numpy as np

from edgebed.core.records import Evaluated
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.learning.objectives.classification import Classification

MEASURES = Classification.measures


def evaluation(version: int, accuracy: float = 0.5, loss: float = 1.0, *, final: bool = False) -> Evaluated:
    """What the evaluator tells of a test set of one example."""
    return Evaluated(version=version, measured={"accuracy": accuracy, "loss": loss}, final=final)


def evaluations(version: Any, accuracy: Any, loss: Any = None, **columns: Any) -> Evaluations:
    """Evaluations after so many updates; of what is not given there are zeros."""
    versions, nothing = np.asarray(version, dtype=np.int64), np.zeros(len(version))
    given = {"t": nothing, "final": nothing > 0, "egress_bytes": nothing, "ingress_bytes": 0 * versions}
    measured = {"accuracy": accuracy, "loss": nothing if loss is None else loss}
    return Evaluations(
        **{"bits": 0 * versions} | given | columns,
        version=versions,
        measured={name: np.asarray(values, dtype=np.float64) for name, values in measured.items()},
        measures=MEASURES,
    )
