"""Telemonitoring of 42 people with Parkinson's disease: the score of their state, from measures of their voice.

Tsanas, Little, McSharry, Ramig 2009, Accurate telemonitoring of Parkinson's disease progression by non-invasive speech
tests, IEEE Transactions on Biomedical Engineering; UCI machine learning repository, CC BY 4.0.

A person's recordings are cut by time: later ones are for testing. The six or so of one session stay together. Scores
were taken three times in half a year, and are straight lines between: two recordings that are near in time have almost
the same one, whatever the voice. For the same reason the time is no input. Age and sex tell people apart, so hold whole
people out for what a voice alone can tell.

Shapes: N recordings.
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.parts import Shares, in_parts, places
from edgebed.learning.data_sets.uci import files

FILE = "parkinsons_updrs.data"
PERSON, TIME = "subject#", "test_time"
TARGETS = {"motor": ("motor_UPDRS",), "total": ("total_UPDRS",), "both": ("motor_UPDRS", "total_UPDRS")}
INPUTS = (
    "age", "sex", "Jitter(%)", "Jitter(Abs)", "Jitter:RAP", "Jitter:PPQ5", "Jitter:DDP", "Shimmer", "Shimmer(dB)",
    "Shimmer:APQ3", "Shimmer:APQ5", "Shimmer:APQ11", "Shimmer:DDA", "NHR", "HNR", "RPDE", "DFA", "PPE",
)  # fmt: skip
COLUMNS = (PERSON, *INPUTS[:2], TIME, *TARGETS["both"], *INPUTS[2:])
SESSION_D = 0.5
"""Days without a recording that lie between two sessions at least: recordings of one are minutes apart."""
PAGE = "https://doi.org/10.24432/C5ZS3N"


@dataclass(frozen=True, kw_only=True)
class Config(Shares):
    """Recordings by person."""

    target: Literal["total", "motor", "both"] = "total"
    """The score that is asked for: `total`, from 0 to 176; `motor`, a part of it, from 0 to 108; or both."""


def find(folders: Sequence[Path]) -> Path | None:
    """Return the file; None if there is none."""
    folder = files.first(folders, FILE)
    return folder and folder / FILE


def load(config: Config, folders: Sequence[Path]) -> DataSet:
    """Return the recordings of all people; ScenarioError where the file is missing or broken.

    Inputs are standardised by the training recordings, and targets are points above the mean of those; without people
    who are held out.
    """
    path = find(folders)
    if path is None:
        raise files.absent("parkinsons", FILE, PAGE, folders)
    lines = files.rows(path, COLUMNS, heading=True)
    values = {name: files.numbers(path, lines, name) for name in COLUMNS}
    if missing := [name for name in COLUMNS if np.isnan(values[name]).any()]:
        raise ScenarioError(f"{path}: {missing[0]} is missing in a line.")
    order = np.lexsort((values[TIME], values[PERSON]))
    people, times = values[PERSON][order].astype(np.int64), values[TIME][order]
    parts = places(people, config, blocks=sessions(people, times))
    inputs, targets = (
        np.stack([values[name][order] for name in of], axis=1) for of in (INPUTS, TARGETS[config.target])
    )
    mean = targets[parts.train].mean(axis=0)
    x = files.standardised(inputs, inputs[parts.train]).astype(np.float32)
    y = (targets - mean).astype(np.float32)
    y = y if config.target == "both" else y[:, 0]
    return _from(mean, in_parts(x, y, people, parts))


def _from(mean: NDArray[np.float64], data: DataSet) -> DataSet:
    """Return the data whose targets are points above this mean, with a note on that."""
    told = " and ".join(f"{each:.2f}" for each in mean)
    return data.replaced(note=f"targets are points above the training mean, {told}", fit=functools.partial(_fit, mean))


def _fit(mean: NDArray[np.float64], data: DataSet) -> DataSet:
    """Return the data by its present training recordings, of targets that are points above another mean."""
    x, y = data.train.inputs[""], data.train.targets[""]
    shift = y.mean(axis=0, dtype=np.float64)
    parts = {
        which: dataclasses.replace(
            part,
            inputs={"": files.standardised(part.inputs[""], x).astype(np.float32)},
            targets={"": (part.targets[""] - shift).astype(np.float32)},
        )
        for which, part in data.parts.items()
    }
    return _from(mean + shift, data.replaced(**parts))


def sessions(people: NDArray[np.int64], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """(N,) numbers, increasing, of the sessions that recordings belong to, which are in order of people and times."""
    begins = (np.diff(people, prepend=people[:1]) != 0) | (np.diff(times, prepend=times[:1]) > SESSION_D)
    return np.cumsum(begins)
