"""What a node may use of the machine, and the names of a class's nodes."""

from pydantic import Field

from edgebed.scenario.choices import CPUS_MAX, CPUS_MIN
from edgebed.scenario.section import Memory, Section

MAX_COUNT = 100_000


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
