"""What a task measures of a model: declared by its objective (learning/objectives/), and told by plans.

It is measured on the test part of the data, and on the validation part where the task has one: whatever is chosen, such
as when to stop, the best version or a method, is then chosen by that. What is measured of some examples is a set of
named sums with their weights, so that a whole is made of its parts; the objective makes the values of the measures of
them. A task's headline, the measure that it declares first, is what its results are told by.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from edgebed.core.bounds import PositiveCount
from edgebed.core.quantities import number_text, percent_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""Parts of the data."""
FALL_MIN = 0.05
"""What must have been lost from the best value to the last to be said not to have stayed, as a share."""
Sums = dict[str, tuple[Any, float]]
"""By name a sum over examples, a number or an array of numbers, and the sum's weight."""


class TaskMeasure(msgspec.Struct, frozen=True):
    """A measure of a task."""

    name: str
    """Name in scenarios, journals and results."""
    meaning: str = ""
    unit: str = "number"
    """`share`, which is from 0 to 1 and read in per cent; `number`; or the symbol of a unit, which follows values."""
    better: Literal["more", "less"] = "less"
    label: str = ""
    """What people read, e.g. `MAE`; the name if left out, with a space for each `_`."""
    scale: Literal["linear", "log"] = "linear"
    """The scale on which equal distances mean alike: that of a chart's axis."""

    @property
    def words(self) -> str:
        """The measure as sentences and tables call it."""
        return self.label or self.name.replace("_", " ")

    @property
    def symbol(self) -> str:
        """The unit as it follows values and stands at axes; empty where there is none."""
        return {"share": "%", "number": ""}.get(self.unit, self.unit)

    @property
    def metric(self) -> str:
        """Name of the Prometheus metric."""
        return f"edgebed_model_{self.name}" + ("_ratio" if self.is_share else "")

    def words_on(self, part: str) -> str:
        """The measure with the part that it was measured on, where that is not the test part."""
        return self.words if part == TEST else f"{part} {self.words}"

    def text(self, value: float | None) -> str:
        """A value as people read it."""
        if self.is_share:
            return percent_text(value)
        text = number_text(value)
        return f"{text} {self.symbol}".rstrip() if value is not None and math.isfinite(value) else text

    def rank(self, value: float | None) -> float:
        """A number by which values are in order, the best first and the unknown last."""
        if value is None or math.isnan(value):
            return math.inf
        return -value if self.better == "more" else value

    def gain(self, value: Any, over: Any) -> Any:
        """By how much a value is better than another; of arrays each."""
        return value - over if self.better == "more" else over - value

    def progress(self, start: float, value: float) -> float:
        """By how much a value is better than one before it, on the measure's own scale."""
        if self.scale == "log" and start > 0.0 < value:
            return float(self.gain(math.log(value), math.log(start)))
        return float(self.gain(value, start))

    @property
    def title(self) -> str:
        """The measure at the beginning of a sentence."""
        return self.words[:1].upper() + self.words[1:]

    @property
    def is_share(self) -> bool:
        """Whether values are shares, which people read in per cent, and whose differences they read in points."""
        return self.unit == "share"

    @property
    def titled_unit(self) -> str:
        """The measure with its unit, e.g. `accuracy (%)`."""
        return f"{self.words} ({self.symbol})" if self.symbol else self.words

    def points_text(self, difference: float) -> str:
        """A difference of two values, in points where they are shares."""
        return f"{100 * difference:.2f} points" if self.is_share else self.text(difference)

    def level_text(self, value: float) -> str:
        """A value that was asked for, with no more digits than it has."""
        return f"{100 * value if self.is_share else value:.6g} {self.symbol}".rstrip()

    def level_told(self, value: float) -> str:
        """A value that was asked for with the measure's name, e.g. `97 % accuracy`, `perplexity 12`."""
        text = self.level_text(value)
        return f"{text} {self.words}" if self.is_share else f"{self.words} {text}"

    def is_reached(self, value: float, level: float) -> bool:
        """Whether a value is as good as another."""
        return value >= level if self.better == "more" else value <= level

    def told(self, value: float | None, part: str = TEST) -> str:
        """A value with the measure's name in front."""
        return f"{self.words_on(part)} {self.text(value)}"

    def best(self, values: "NDArray[np.float64] | Sequence[float]") -> float:
        """The best of some values."""
        return float(values[self.best_place(values)])

    def has_fallen(self, best: float, final: float) -> bool:
        """Whether the last value is so far from the best that people must be told."""
        return bool(self.gain(best, final) > FALL_MIN * (1.0 if self.is_share else abs(best)))

    def best_place(self, values: "NDArray[np.float64] | Sequence[float]") -> int:
        """The place of the best of some values, of several the first; what is no number is the worst."""
        ranks = [math.inf if math.isnan(value) else self.rank(value) for value in values]
        return ranks.index(min(ranks))


class Level(msgspec.Struct, frozen=True):
    """A value of a measure that the mean of some evaluations is to reach."""

    measure: str
    value: float
    window: PositiveCount = 1


def added(each: Sequence[Sums]) -> Sums:
    """The sums over all parts, added in their order."""
    found: Sums = {}
    for part in each:
        for name, (total, weight) in part.items():
            total_before, weight_before = found.get(name, (0.0, 0.0))
            found[name] = total_before + total, weight_before + weight
    return found
