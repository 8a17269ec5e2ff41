"""Finished trials of which nothing is known but their accuracies, as measures read them."""

from collections.abc import Sequence

import msgspec
import numpy as np
from evaluated import MEASURES, evaluations
from numpy.typing import NDArray

from edgebed.journal.summary import TrialSummary
from edgebed.studies.trial_result import FinishedTrial

REQUIRED = [field.name for field in msgspec.structs.fields(TrialSummary) if field.required]
SUMMARY = TrialSummary(**dict.fromkeys(REQUIRED))  # type: ignore[arg-type]  # nothing else of it is read


def learned(
    version: Sequence[int] | NDArray[np.int64], accuracy: Sequence[float] | NDArray[np.float64]
) -> FinishedTrial:
    """A trial that had these accuracies after so many updates."""
    versions, curve = np.asarray(version), np.asarray(accuracy, np.float64)
    return FinishedTrial(
        plan=None,  # type: ignore[arg-type]  # no measure of accuracies reads it
        summary=msgspec.structs.replace(
            SUMMARY, updates=int(versions[-1]), measures=MEASURES, final={"accuracy": float(curve[-1])}
        ),
        evaluations=evaluations(versions, curve),
    )
