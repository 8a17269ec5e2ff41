"""What the user sees of a running trial; the same for every runtime.

It is computed from the trial's records, but for what only the heart of the controller knows.
"""

import time
from collections.abc import Callable

import msgspec

from edgebed.core import records
from edgebed.journal.trial_state import TrialState, TrialStatus
from edgebed.roles.control.controller import Controller
from edgebed.roles.programs.controller import ProgramController

SHOW_S = 0.25


class StatusFeed:
    """Follows the records of a trial and shows its status a few times a second of real time."""

    def __init__(
        self,
        heart: Controller | ProgramController,
        show: Callable[[TrialStatus], None],
        observe: Callable[[records.Record, str], None],
    ) -> None:
        """`show` gets the status, `observe` every record, and who reported it."""
        self.heart = heart
        self.show = show
        self.observe = observe
        self.state = TrialState(heart.plan, heart.past)
        self.interrupted = False
        self.next_s = 0.0

    def follow(self, t: float, node: str, record: records.Record) -> None:
        """Take in a record, said by `node` at `t` seconds of the trial."""
        self.observe(record, node)
        self.state.add(t, node, record)
        if isinstance(record, records.Ended):
            self.next_s = 0.0  # what happened last is shown, too
            self.tick(t)

    def tick(self, now: float) -> None:
        """Show the status if it is time to; `now` is the trial's."""
        wall_s = time.monotonic()
        if wall_s < self.next_s:
            return
        self.next_s = wall_s + SHOW_S
        health = {name: member.health for name, member in self.heart.members.items()}
        status = self.state.status(now, wall_s)
        state = "waiting for Prometheus' last scrape" if self.heart.is_lingering else self.heart.standing
        awaited = ""
        if self.interrupted and not status.is_virtual:
            awaited = f"nodes have {self.heart.grace_s:g} s to end; Ctrl-C again: at once"
        told = msgspec.structs.replace(
            status, state=state, interrupted=self.interrupted, awaited=awaited, health=health
        )
        self.show(told)
