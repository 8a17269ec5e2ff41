"""The part of a node's plan that every role has."""

import msgspec

from edgebed.core.bounds import Count, PositiveAmount, Seed


class CommonPlan(msgspec.Struct, frozen=True, kw_only=True, tag_field="role"):
    """The part of a node's plan that every role has; the role itself is its tag."""

    node: str
    """Unique name: `server`, `evaluator`, `<class>-<index>` for devices of the fleet."""
    device_class: str
    """The fleet's class for a device, else the role."""
    seed: Seed
    host: str = ""
    """The host that it is placed on; empty: there is one alone."""
    cpus: PositiveAmount | None = None
    """CPU cap in cores; None: no cap."""
    memory_bytes: Count | None = None
    check_s: PositiveAmount = 1.0
    """Time from one look at the node to the next; a node that trains sends the controller several heartbeats in it."""

    @property
    def is_vital(self) -> bool:
        """Whether the trial stops without this node."""
        return True
