"""What a measure is: a function from the trials of one seed, by cell, to a number in a row's unit.

What it took *to reach an accuracy* is known only as finely as a model was evaluated: such a measure is `Spaced`, and so
is what is made of it, so that no finding rests on a difference that evaluations cannot show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgebed.studies.trial_result import FinishedTrial

Trials = Mapping[str, FinishedTrial]
Measure = Callable[[Trials], float | None]
"""A measure gives None where there is no number, e.g. where an accuracy was never reached."""


@dataclass(frozen=True)
class Spaced:
    """A measure with its resolution: how far the true value may lie from its own, since evaluations lie apart."""

    measure: Measure
    width: Callable[[Trials], float]

    def __call__(self, trials: Trials) -> float | None:
        """The measure's value."""
        return self.measure(trials)


def resolution(measure: Measure, trials: Trials) -> float:
    """How far the true value may lie from a measure's, in its unit; 0 where no evaluation limits it."""
    return measure.width(trials) if isinstance(measure, Spaced) else 0.0


def of_other_cells(measure: Measure, cells: Mapping[str, str]) -> Measure:
    """A measure of other cells in the place of its own, by the name of its own."""

    def renamed(trials: Trials) -> Trials:
        return {own: trials[other] for own, other in cells.items()}

    return Spaced(lambda trials: measure(renamed(trials)), lambda trials: resolution(measure, renamed(trials)))
