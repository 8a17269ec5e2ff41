"""What an optimizer does: a step of a flat vector along its gradient, whatever library the vectors are of.

`learning/optimizers.py` calls it with tensors of torch; numpy's arrays do as well, so that nothing here needs torch.
Nothing is written in place: whoever still holds the parameters of an earlier step goes on seeing these. Each entry is
computed by itself, so a model cut into pieces takes the same steps as the whole, bit for bit.

Shapes: n parameters.
"""

from typing import Any, ClassVar


class Descent:
    """How parameters follow their gradient."""

    moments: ClassVar[int] = 0
    """Vectors of n entries that it remembers from one step to the next; zeros before the first."""

    def __init__(self, config: Any) -> None:
        """`config` has a learning rate and when that falls (optimizer/rate.py)."""
        self.config = config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> fresh ones, after step `number`, from 0, at that learning rate."""
        raise AssertionError(f"{type(self).__name__} does not say how it steps")
