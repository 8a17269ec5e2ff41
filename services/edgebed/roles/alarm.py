"""One timer for several deadlines: a heart cannot take a Wake back, so of all that it has asked for the last counts."""

import math

from edgebed.roles.events import Wake


class Alarm:
    """An alarm, which asks for a Wake at the earliest time that it is set to."""

    def __init__(self) -> None:
        self.at_s = math.inf
        self.count = 0

    def set(self, at_s: float) -> list[Wake]:
        """Return the Wake to ask for, unless an earlier one is to come."""
        if at_s >= self.at_s:
            return []
        self.at_s = at_s
        self.count += 1
        return [Wake(at_s, str(self.count))]

    def rings(self, token: str) -> bool:
        """Whether the Wake of this token is the one that counts; then none is to come any more."""
        if token != str(self.count):
            return False
        self.at_s = math.inf
        return True
