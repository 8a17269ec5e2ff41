"""How far training has come, by what is told of it one by one: no record may stand for any number of others."""

UNTOLD_MAX = 10_000
"""Number of consecutive steps, or updates, that may be missing because nobody had time to report them."""


class Reach:
    """The highest step, or number of updates, that was told."""

    def __init__(self, reached: int = 0) -> None:
        self.reached = reached

    def objection(self, step: int, what: str = "step") -> str:
        """Say why that many cannot have been made; empty if they can."""
        is_near = step <= self.reached + UNTOLD_MAX
        return "" if is_near else f"{what} {step:,}, where none beyond {self.reached:,} was reported"

    def note(self, step: int) -> None:
        """Note that so many were told."""
        self.reached = max(step, self.reached)
