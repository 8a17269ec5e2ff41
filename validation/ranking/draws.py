"""The draws of one scenario, each by a name, so that a setting that is drawn besides changes none of the others."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from edgebed.core import chance

T = TypeVar("T")
Document = dict[str, Any]
Drawing = Literal["usual", "edges"]
"""What scenarios are drawn: usual ones (generate.py), or such where virtual time has most to get wrong (edges.py)."""
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)


class Drawn(NamedTuple):
    """A drawn scenario."""

    name: str
    document: Document
    """The scenario as its file has it."""
    traits: tuple[str, ...]
    """What is special about it, e.g. `link of the server`, `fault: freeze`."""


class Draws:
    """The draws of one scenario, each by a name."""

    def __init__(self, seed: int, number: int, study: str = "ranks") -> None:
        """The scenario with this number of a seed; each kind of `study` has draws of its own."""
        self.seed = seed
        self.number = number
        self.study = study

    def share(self, what: str) -> float:
        """A number from 0 to 1."""
        return chance.uniform(self.seed, f"{self.study}/{what}", k=self.number)

    def chance(self, what: str, probability: float) -> bool:
        """Whether something is so, with this probability."""
        return self.share(what) < probability

    def one(self, what: str, choices: Sequence[T]) -> T:
        """One of the choices, each as likely."""
        return choices[int(self.share(what) * len(choices))]

    def shuffled(self, what: str, choices: Sequence[T]) -> list[T]:
        """The choices in an order of which each is as likely."""
        ranked = sorted(range(len(choices)), key=lambda place: self.share(f"{what}/{place}"))
        return [choices[place] for place in ranked]

    def some(self, what: str, choices: Sequence[T], count: int) -> list[T]:
        """Some of the choices, in their order."""
        return [choices[place] for place in sorted(self.shuffled(what, range(len(choices)))[:count])]

    def weighted(self, what: str, weights: Mapping[str, float]) -> str:
        """One of the keys, as likely as its weight says; the weights sum to 1."""
        share = self.share(what)
        for choice, weight in weights.items():
            share -= weight
            if share < 0:
                return choice
        return choice

    def between(self, what: str, low: float, high: float) -> float:
        """A number between two, each ratio as likely."""
        return low * math.exp(math.log(high / low) * self.share(what))
