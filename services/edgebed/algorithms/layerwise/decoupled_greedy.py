"""Decoupled greedy learning: each shard has a head and a loss of its own, and nothing comes down.

Belilovsky, Eickenberg, Oyallon 2020, Decoupled greedy learning of CNNs, ICML, Algorithm 1. Differs from the paper: no
replay buffer; a shard that is ahead waits for room in the queue of the next one.

With `send_every: k` the first shard makes every step, the others make the steps 0, k, 2k, ...: those whose outputs
go up, at every boundary.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of decoupled greedy learning."""

    name: Literal["decoupled-greedy"] = "decoupled-greedy"
    send_every: int = 1
    """n: outputs of every n-th step go up; shards above the first learn of these steps alone. Larger: less traffic, and
    less learnt there."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if self.send_every < 1:
            raise ValueError(f"send_every: {self.send_every} is below 1")


def rule(config: Config) -> Rule:
    """Return what a shard does in decoupled greedy learning."""
    return Rule(source="head", down="nothing", send_every=config.send_every)
