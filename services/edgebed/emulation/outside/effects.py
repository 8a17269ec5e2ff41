"""What came of a node while a fault held it: CPU time while it was frozen, bytes while its link was cut. Pure.

    done |--settles--|x-------------x| asked to end it     x: the first and the last look between

What was done and did nothing is seen so: by somebody who neither did it nor is the node.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgebed.core.actions import ACTIONS, ENDS_FREEZE, FREEZES, Action
from edgebed.core.records import Fault
from edgebed.emulation.outside.looks import Look

SETTLES_S = 0.5
"""Seconds after a fault was done in which what came before it may still be under way."""
LOOKS_MAX = 200
"""Later looks at a fault that are kept: its end is known within seconds, some five looks each."""


@dataclass
class Effects:
    """The freezes and cuts of one node, as far as looks from outside tell."""

    since_s: dict[Action, float] = field(default_factory=dict)
    """From when on each that holds was to have its effect, in seconds of the monotonic clock."""
    looks: dict[Action, list[Look]] = field(default_factory=dict)
    """The first look since, and later ones, all of one life; of a long one the last of them."""
    counts: dict[str, Any] = field(default_factory=dict)
    """Fields of `Seen`."""

    def done(self, fault: Fault, epoch_s: float, now: float) -> None:
        """Note what was done to the node by `now`; `epoch_s` is the trial's launch, on the monotonic clock."""
        action = fault.action
        if fault.peer:  # of its link's bytes it is not seen for whom they are
            return
        ended: Iterable[Action] = FREEZES if action in ENDS_FREEZE else ACTIONS[action].undoes
        for each in ended:
            self._close(each, min(now, epoch_s + fault.asked_s))
        if action in FREEZES or action == "cut":
            self.since_s.setdefault(action, now + SETTLES_S)

    def add(self, look: Look) -> None:
        """Take in a look."""
        for action, since_s in self.since_s.items():
            looks = self.looks.setdefault(action, [])
            if looks and looks[0].life != look.life:
                looks.clear()
            if look.since_s >= since_s:
                looks.append(look)
            if len(looks) > 2 * LOOKS_MAX:
                del looks[1:-LOOKS_MAX]

    def close(self, now: float) -> None:
        """Note that the trial ends with what holds until `now`."""
        for action in list(self.since_s):
            self._close(action, now)

    def _close(self, action: Action, until_s: float) -> None:
        self.since_s.pop(action, None)
        looks = [look for look in self.looks.pop(action, ()) if look.until_s <= until_s]
        if len(looks) < 2:  # nothing can have grown
            return
        first, last = looks[0], looks[-1]
        name, of = ("frozen", "cpu_s") if action in FREEZES else ("cut", "uplink_bytes")
        before, after = getattr(first, of), getattr(last, of)
        if before is not None and after is not None:
            self._count(f"{name}_{'cpu_s' if name == 'frozen' else 'bytes'}", max(0, after - before))
            self._count(f"{name}_s", last.since_s - first.until_s)
        if name == "frozen":
            whole = [look for look in looks if look.is_whole]
            self._count("frozen_looks", len(whole))
            self._count("frozen_running", sum(not look.is_stopped for look in whole))

    def _count(self, name: str, more: float) -> None:
        if more:
            self.counts[name] = round(self.counts.get(name, 0) + more, 6)
