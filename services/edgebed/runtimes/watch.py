"""What the user sees of a running trial; the same for every runtime.

Its records tell it, but for what only the heart of the controller knows.
"""

import time
from collections.abc import Callable

import msgspec

from edgebed.observe.standing import Standing, Status
from edgebed.roles import records
from edgebed.roles.controller import Controller

SHOW_S = 0.25


class Watch:
    """Follows the records of a trial and shows its status a few times a second of real time."""

    def __init__(
        self, heart: Controller, show: Callable[[Status], None], observe: Callable[[records.Record], None]
    ) -> None:
        """`show` gets the status, `observe` every record."""
        self.heart = heart
        self.show = show
        self.observe = observe
        self.standing = Standing(heart.plan, heart.past.began_s if heart.past else None)
        self.interrupted = False
        self.next_s = 0.0

    def follow(self, t: float, node: str, record: records.Record) -> None:
        """Take from a record, said by `node` at `t` seconds of the trial, what the user watches."""
        self.observe(record)
        self.standing.follow(t, node, record)

    def tick(self, now: float) -> None:
        """Show the status if it is time to; `now` is the trial's."""
        wall_s = time.monotonic()
        if wall_s < self.next_s:
            return
        self.next_s = wall_s + SHOW_S
        state = "waiting for Prometheus' last scrape" if self.heart.is_lingering else self.heart.phase.value
        health = {name: member.health for name, member in self.heart.members.items()}
        status = self.standing.status(now, wall_s)
        self.show(msgspec.structs.replace(status, state=state, interrupted=self.interrupted, health=health))
