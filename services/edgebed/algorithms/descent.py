"""What an optimizer does: a step of a flat vector along its gradient, whatever library the vectors are of.

`learning/optimizers.py` calls it with tensors of torch, servers and workers with numpy's arrays (`stepped.py`).
Nothing is written in place: whoever still holds the parameters of an earlier step goes on seeing these. Each entry is
computed by itself, so a model cut into pieces takes the same steps as the whole, bit for bit.

Shapes: n parameters.
"""

from typing import Any, ClassVar

EPSILON_MIN = 1.2e-38
"""Least number that 32-bit arithmetic tells from zero with all its digits."""


class Descent:
    """How parameters follow their gradient."""

    moments: ClassVar[int] = 0
    """Vectors of n entries that it remembers from one step to the next; zeros before the first."""

    def __init__(self, config: Any) -> None:
        """`config` has the settings of its moments; of a shard with a learning rate (optimizer/rate.py)."""
        self.config = config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> what to subtract, and fresh moments.

        For step `number`, from 0, at that learning rate.
        """
        raise AssertionError(f"{type(self).__name__} does not say how it steps")

    def pulled(self, parameters: Any, gradient: Any) -> Any:
        """(n,) the gradient with what `weight_decay` adds to it: that of half the sum of squares, so many times."""
        decay = getattr(self.config, "weight_decay", 0.0)
        return gradient + decay * parameters if decay else gradient


def check_moments(config: Any) -> None:
    """Raise ValueError, `field: what`, where a setting of an optimizer is outside its range."""
    if not getattr(config, "epsilon", 1.0) >= EPSILON_MIN:
        raise ValueError(f"epsilon: {config.epsilon:g} is below {EPSILON_MIN:g}, which 32-bit numbers do not resolve")
    for name in ("momentum", "beta_1", "beta_2"):
        if not 0.0 <= getattr(config, name, 0.0) < 1.0:
            raise ValueError(f"{name}: {getattr(config, name):g} is not from 0 to below 1")
    if not getattr(config, "weight_decay", 0.0) >= 0.0:
        raise ValueError(f"weight_decay: {config.weight_decay:g} is below 0")
    has_momentum, name = getattr(config, "momentum", 0.0) > 0.0, getattr(config, "optimizer", "sgd")
    if has_momentum and name != "sgd":
        raise ValueError(f"momentum: {name} has a mean of its own (beta_1), and takes no momentum; leave it out")
    if getattr(config, "nesterov", False) and not has_momentum:
        raise ValueError("nesterov: there is no momentum to look ahead along; give one, e.g. momentum: 0.9")
