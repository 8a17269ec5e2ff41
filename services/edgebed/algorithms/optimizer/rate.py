"""The learning rate that all optimizers have, and the checks of their settings."""

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate that falls in steps."""

    learning_rate: float = 1e-3
    """Learning rate at the first step. 0, of an `input_optimizer` alone: its modules stay as they were drawn."""
    decay_at: list[int] = dataclasses.field(default_factory=list)
    """Steps at which the learning rate is multiplied by `decay_by`, counted from 0."""
    decay_by: float = 0.1
    """What the learning rate is multiplied by at the steps of `decay_at`."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if not self.learning_rate >= 0.0:
            raise ValueError(f"learning_rate: {self.learning_rate:g} is below 0")
        for name in ("decay_by", "epsilon"):
            if not getattr(self, name, 1.0) > 0.0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not above 0")
        for name in ("momentum", "beta_1", "beta_2"):
            if not 0.0 <= getattr(self, name, 0.0) < 1.0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not from 0 to below 1")
        if any(step < 0 for step in self.decay_at):
            raise ValueError("decay_at: steps are counted from 0")
