"""Heart disease in four hospitals: whether a patient has it, from 13 findings, many of which are missing.

Janosi, Steinbrunn, Pfisterer, Detrano 1988, Heart disease, UCI machine learning repository, CC BY 4.0. Its four files
`processed.*.data`, or `heart.csv`, which has all of them and the hospital in front.

Missing values: what is a number becomes the mean of the training examples, and a column of its own says that it was
missing; of the kinds of a finding none is set. Pressures and cholesterols of 0 are missing ones: nobody who lives has
them, and a whole hospital does. In `heart.csv` four `ca` of Cleveland that are missing are 0, and stay so.

Patients are divided by chance within hospital and answer, in the same way for every seed of a scenario; two who are
alike in all findings are in the same part.

Shapes: N patients.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance
from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.data_sets.parts import Parts, Shares, in_parts, places
from edgebed.learning.data_sets.uci import files

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
PROCESSED = tuple(f"processed.{hospital}.data" for hospital in HOSPITALS)
TOGETHER = "heart.csv"
COLUMNS = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
    "num",
)  # fmt: skip
KINDS = {"cp": (1, 2, 3, 4), "restecg": (0, 1, 2), "slope": (1, 2, 3), "thal": (3, 6, 7)}
"""Findings that are one of some kinds; all others are numbers, or yes and no."""
NUMBERS = tuple(name for name in COLUMNS if name not in (*KINDS, "num"))
ALWAYS_KNOWN = ("age", "sex")
NEVER_ZERO = ("trestbps", "chol", "thal")
PAGE = "https://doi.org/10.24432/C52P4X"


@dataclass(frozen=True, kw_only=True)
class Config(Shares):
    """Patients by hospital."""

    division: int = 1
    """Number that draws which patients are in which part, of which there are so few that results of two differ."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        super().__post_init__()
        if self.division < 0:
            raise ValueError(f"division: {self.division} is below 0")


def find(folders: Sequence[Path]) -> Path | None:
    """Return the folder with the four files, or else `heart.csv`; None if there is neither."""
    processed, together = files.first(folders, *PROCESSED), files.first(folders, TOGETHER)
    return processed or (together and together / TOGETHER)


def load(config: Config, folders: Sequence[Path]) -> DataSet:
    """Return the patients of all hospitals; ScenarioError where files are missing or broken.

    Numbers are standardised by the training patients, without hospitals that are held out.
    """
    found = find(folders)
    if found is None:
        raise files.absent("heart", f"{', '.join(PROCESSED)} or {TOGETHER}", PAGE, folders)
    hospitals, values = _read_together(found) if found.name == TOGETHER else _read_processed(found)
    labels = (values["num"] > 0).astype(np.int64)
    parts = _divide(hospitals, labels, values, config)
    inputs = features(values, parts.train)
    note = f"{TOGETHER}: 4 missing values of Cleveland's `ca` are zeros there" if found.name == TOGETHER else ""
    return in_parts(inputs, labels, hospitals, parts, outputs=2, note=note).replaced(fit=_fit)


def features(values: dict[str, NDArray[np.float64]], train: NDArray[np.int64]) -> NDArray[np.float32]:
    """(N, 29): 9 numbers, standardised by the training patients; which of 7 are missing; 13 kinds of 4 findings."""
    numbers = np.stack([values[name] for name in NUMBERS], axis=1)
    missing = np.isnan(np.stack([values[name] for name in NUMBERS if name not in ALWAYS_KNOWN], axis=1))
    kinds = np.stack([values[name] == kind for name, all_kinds in KINDS.items() for kind in all_kinds], axis=1)
    return np.concatenate([files.standardised(numbers, numbers[train]), missing, kinds], axis=1, dtype=np.float32)


def _fit(data: DataSet) -> DataSet:
    """Return the data whose numbers are standardised by its present training patients."""
    train = _numbers(data.train)
    parts = {
        which: dataclasses.replace(
            part,
            inputs={"": np.concatenate(
                [files.standardised(_numbers(part), train), part.inputs[""][:, len(NUMBERS) :]],
                axis=1, dtype=np.float32,
            )},
        )
        for which, part in data.parts.items()
    }  # fmt: skip
    return data.replaced(**parts)


def _numbers(part: Examples) -> NDArray[np.float32]:
    """(N, 9): the numbers among the inputs, NaN where one is missing."""
    numbers = part.inputs[""][:, : len(NUMBERS)].copy()
    of_some = [place for place, name in enumerate(NUMBERS) if name not in ALWAYS_KNOWN]
    missing = part.inputs[""][:, len(NUMBERS) :][:, : len(of_some)] == 1.0
    numbers[:, of_some] = np.where(missing, np.nan, numbers[:, of_some])
    return numbers


def _divide(
    hospitals: NDArray[np.str_], labels: NDArray[np.int64], values: dict[str, NDArray[np.float64]], config: Config
) -> Parts:
    """Draw the parts within hospital and answer; patients with the same findings stay together."""
    findings = np.nan_to_num(np.stack([values[name] for name in COLUMNS[:-1]], axis=1), nan=-1.0)
    groups = np.searchsorted(HOSPITALS, hospitals) * 2 + labels
    _, first, alike = np.unique(np.column_stack([groups, findings]), axis=0, return_index=True, return_inverse=True)
    drawn = chance.generator(config.division, "heart-division").permutation(len(groups))
    return places(groups, config, blocks=drawn[first[alike.reshape(-1)]])


def _read_processed(folder: Path) -> tuple[NDArray[np.str_], dict[str, NDArray[np.float64]]]:
    read = [_values(folder / name, files.rows(folder / name, COLUMNS)) for name in PROCESSED]
    hospitals = np.repeat(HOSPITALS, [len(values["num"]) for values in read])
    return hospitals, {name: np.concatenate([values[name] for values in read]) for name in COLUMNS}


def _read_together(path: Path) -> tuple[NDArray[np.str_], dict[str, NDArray[np.float64]]]:
    lines = files.rows(path, ("hospital", *COLUMNS), heading=True)
    hospitals = np.array([line["hospital"] for line in lines])
    if unknown := sorted(set(hospitals.tolist()) - set(HOSPITALS)):
        raise ScenarioError(f"{path}: hospital '{unknown[0]}' is none of {', '.join(HOSPITALS)}.")
    return hospitals, _values(path, lines)


def _values(path: Path, lines: files.Rows) -> dict[str, NDArray[np.float64]]:
    """Return the (N,) values by column, checked."""
    values = {name: files.numbers(path, lines, name) for name in COLUMNS}
    for name in NEVER_ZERO:
        values[name][values[name] == 0.0] = np.nan
    for name in (*ALWAYS_KNOWN, "num"):
        if np.isnan(values[name]).any():
            raise ScenarioError(f"{path}: {name} is missing in a line.")
    for name, allowed in {**KINDS, "num": range(5)}.items():
        if others := set(values[name][~np.isnan(values[name])].tolist()) - set(allowed):
            raise ScenarioError(f"{path}: {name} is {min(others):g}; it is one of {', '.join(map(str, allowed))}.")
    return values
