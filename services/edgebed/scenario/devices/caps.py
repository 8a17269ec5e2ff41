"""What a node may use of the machine, and the names of a class's nodes."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from pydantic import Field

from edgebed.scenario.choices import CPUS_MAX, CPUS_MIN
from edgebed.scenario.mistakes.problems import Problem
from edgebed.scenario.section import Memory, Section

MAX_COUNT = 100_000


class HasCount(Protocol):
    """A class of nodes."""

    @property
    def count(self) -> int:
        """How many there are."""


class Caps(Section):
    """What a node may use of the machine."""

    cpus: float | None = Field(default=None, ge=CPUS_MIN, le=CPUS_MAX)
    """CPU cap in cores, e.g. 0.5, and 0.01 at least, which is the least that the kernel holds; no cap if left out."""
    memory: Memory | None = None
    """Memory cap; none if left out."""

    @property
    def memory_cap(self) -> int | None:
        """Return the memory cap that holds."""
        return self.memory


def class_nodes(name: str, count: int) -> tuple[str, ...]:
    """Return the nodes of a class: `<class>-<index>`."""
    return tuple(f"{name}-{k}" for k in range(count))


def name_problems(fleet: Mapping[str, HasCount]) -> Iterator[Problem]:
    """Yield classes that are called as a node of another class is: nobody could tell which of both is meant."""
    for name in fleet:
        owner = name.rpartition("-")[0]
        if owner in fleet and name in class_nodes(owner, fleet[owner].count):
            yield Problem(("fleet", name), f"a node of class {owner} has that name; choose another", at_key=True)
