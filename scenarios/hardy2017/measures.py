"""Measures for Hardy et al. 2017: accuracies in per cent, ingress in several encodings.

A measure takes the trials of one seed, by cell.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from edgebed.algorithms.compression import top_k
from edgebed.algorithms.registry import configure
from edgebed.studies.measures import CostToLevel, best_average, reach
from edgebed.studies.papers import measuring
from edgebed.studies.papers.measure import Measure
from edgebed.studies.trial_result import FinishedTrial

from . import authors_pickle

WINDOW = 5
"""Evaluations that the moving average of an accuracy is taken over; the paper does not say."""
TARGET = 0.97


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """One way to count the bytes of pushes."""

    key: str
    """Name of the encoding in names of rows."""
    words: str
    ingress: Callable[[FinishedTrial, int], float]
    """Bytes of the first so many updates of a trial, which was evaluated after them."""
    is_the_authors: bool = False
    """Whether the paper's numbers may be in this encoding."""


def accuracy(cell: str) -> Measure:
    """A measure: the paper's metric for one run, the highest moving average, in per cent; None: no evaluation."""
    return measuring.accuracy(cell, WINDOW)


def updates_to_target(cell: str) -> Measure:
    """A measure: updates until the moving average is first 97 %; None if it never is."""
    return measuring.updates_to(cell, TARGET, WINDOW)


def early_accuracy(cell: str) -> Measure:
    """A measure: the mean accuracy in the first tenth of the updates, in per cent; None without any."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        evaluations, updates = trials[cell].evaluations, trials[cell].summary.updates
        early = evaluations.values[evaluations.version * 10 <= updates]
        return 100 * float(early.mean()) if len(early) else None

    return measure


def ingress_to_target(cell: str, encoding: Encoding) -> Measure:
    """A measure: bytes until the moving average is first 97 %; None if it never is."""
    return measuring.reached_by(
        cell,
        lambda trial: reach(trial.evaluations, TARGET, WINDOW),
        lambda trial, reached: encoding.ingress(trial, reached.updates),
    )


def ingress_to_best(cell: str, encoding: Encoding, *, below_points: float) -> Measure:
    """A measure: bytes until the moving average is so close to its best; None without an evaluation."""

    def reached(trial: FinishedTrial) -> CostToLevel | None:
        best = best_average(trial.evaluations, WINDOW)
        return None if best is None else reach(trial.evaluations, best - below_points / 100, WINDOW)

    return measuring.reached_by(cell, reached, lambda trial, found: encoding.ingress(trial, found.updates))


def push_bytes(cell: str, encoding: Encoding) -> Measure:
    """A measure: the mean bytes of a push; None for a trial without any."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        updates = trials[cell].summary.updates
        return encoding.ingress(trials[cell], updates) / updates if updates else None

    return measure


def _pickled(wrapped: bool) -> Callable[[FinishedTrial, int], float]:
    """Bytes as the authors would have sent them."""

    def ingress(trial: FinishedTrial, updates: int) -> float:
        server = trial.plan.node("server")
        sizes = [tensor.size for tensor in server.task.layout]
        config = configure("compression", server.method.parts["compression"])
        if not isinstance(config, top_k.Config):
            return updates * authors_pickle.dense_bytes(sizes)
        groups = top_k.Compression(config, [(size,) for size in sizes]).groups
        lengths, counts = [end - start for start, end, _ in groups], [count for _, _, count in groups]
        return updates * authors_pickle.selected_bytes(lengths, counts, wrapped=wrapped)

    return ingress


def _bare(trial: FinishedTrial, updates: int) -> float:
    """Bytes at four bytes a value, or two where the method says so, and four a position."""
    return float(trial.evaluations.bits[_measured_at(trial, updates)]) / 8


def _sent(trial: FinishedTrial, updates: int) -> float:
    """Bytes that were sent."""
    return float(trial.evaluations.ingress_bytes[_measured_at(trial, updates)])


def _measured_at(trial: FinishedTrial, updates: int) -> int:
    return int(np.searchsorted(trial.evaluations.version, updates))


PICKLED = Encoding(key="pickle", words="pickled, plain floats", ingress=_pickled(wrapped=False), is_the_authors=True)
RELEASED = Encoding(
    key="pickle-released", words="pickled as the release does", ingress=_pickled(wrapped=True), is_the_authors=True
)
BARE = Encoding(key="bare", words="4 bytes a value and 4 a position", ingress=_bare)
SENT = Encoding(key="ours", words="our encoding", ingress=_sent)
