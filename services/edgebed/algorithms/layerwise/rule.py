"""What a method asks of a shard, in the terms that its heart understands.

A step of training is a mini-batch going up through the shards. What comes back down, what a shard learns from, and
whether it waits for that, is all in which the methods differ.
"""

from typing import Literal, NamedTuple

import msgspec

Source = Literal["loss", "gradient", "module", "blend", "direct", "head"]
"""What the gradient of a shard's outputs is of: the loss at the model's end; what came from above; what the gradient
module predicts; a blend of these two; what came from above and the gradient module's loss; the loss of a head of its
own."""


class BatchPart(NamedTuple):
    """A mini-batch, and a part of it."""

    step: int
    micro: int = 0


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A method, as a shard that has another above it sees it. The last shard learns from the loss in any case."""

    source: Source
    """Source that the shard learns from."""
    down: Literal["gradient", "true-gradient", "nothing"]
    """What a shard sends to the one below: the gradient of its inputs, by what it has learnt from; the same by
    back-propagation of the loss; nothing but that it has used what came."""
    micro_batches: int = 1
    """Parts that a mini-batch is cut into."""
    blend: float = 1.0
    """`blend`: the share of the gradient from above."""
    weight: float = 0.0
    """`direct`: weight of the module's loss."""
    synthetic_inputs: bool = False
    """A shard does not wait for its inputs either: it predicts them, and learns to when they come."""
    modules_apart: bool = False
    """Its gradient modules may lie on a node of their own."""
    send_every: int = 1
    """n: outputs of every n-th step go up, from step 0 on, and nothing comes down for the others."""
    match: Literal["step", "batch"] = "step"
    """What is predicted and what comes belong together if they are of one step; or of one batch, in any epoch."""

    def sends(self, step: int) -> bool:
        """Whether outputs of that step go up."""
        return step % self.send_every == 0

    def stride(self, *, is_first: bool) -> int:
        """Steps from one that a shard makes to its next: a shard that needs inputs makes only those that it gets."""
        return 1 if is_first or self.synthetic_inputs else self.send_every

    @property
    def waits(self) -> bool:
        """Whether a shard learns only when a gradient comes, and begins the next step only then."""
        return self.source in ("gradient", "blend", "direct")

    @property
    def is_alone(self) -> bool:
        """Whether nothing lies beside the layers: no module of either kind, and no head."""
        return self.source in ("loss", "gradient") and not self.synthetic_inputs

    @property
    def has_module(self) -> bool:
        """Whether a gradient module is taught what comes from above."""
        return self.source in ("module", "blend", "direct")
