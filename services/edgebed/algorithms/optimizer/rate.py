"""The learning rate of shards, whose time is counted in steps."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from edgebed.algorithms.descent import check_moments
from edgebed.algorithms.schedule import Rate


@dataclass(frozen=True, kw_only=True)
class StepRate(Rate):
    """A learning rate that changes with the number of steps."""

    may_rest: ClassVar[bool] = True

    learning_rate: float = 1e-3
    """Learning rate at the first step. 0, of an `input_optimizer` alone: its modules stay as they were drawn."""
    schedule: Literal["step", "cosine"] = "step"
    """How the learning rate changes."""
    zero_at: float = 1e6
    """`cosine`: steps until it is zero."""
    decay_at: list[int] = dataclasses.field(default_factory=list)  # type: ignore[assignment] # whole ones
    """`step`: steps at which the learning rate is multiplied by `decay_by`, counted from 0."""
    decay_by: float = 0.1
    """What the learning rate is multiplied by at the steps of `decay_at`."""
    warm_up: float = 0.0
    """Steps until the learning rate has risen from zero."""
    weight_decay: float = 0.0
    """How often the parameters themselves are added to their gradient."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments(self)
