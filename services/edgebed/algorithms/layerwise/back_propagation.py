"""Back-propagation through shards: outputs go up, gradients come down, and everybody waits.

With one micro-batch it is what a single process does, bit for bit. With more the shards work at the same time on
different parts of a batch, and the gradients of the parts add up: Huang et al. 2019, GPipe: efficient training of giant
neural networks using pipeline parallelism, NeurIPS, section 2.2. Batch normalisation then sees one part at a time.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of back-propagation through shards."""

    name: Literal["back-propagation"] = "back-propagation"
    micro_batches: int = 1
    """Parts of a mini-batch: the more, the less shards wait for each other, and the more messages there are."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if self.micro_batches < 1:
            raise ValueError(f"micro_batches: {self.micro_batches} is below 1")


def rule(config: Config) -> Rule:
    """Return what a shard does in back-propagation."""
    return Rule(source="gradient", down="gradient", micro_batches=config.micro_batches)
