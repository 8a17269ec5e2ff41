"""Decoupled greedy learning: each shard has a head and a loss of its own, and nothing comes down.

Belilovsky, Eickenberg, Oyallon 2020, Decoupled greedy learning of CNNs, ICML, Algorithm 1. Differs from the paper: no
replay buffer; a shard that is ahead waits for room in the queue of the next one.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """There is nothing to set."""

    name: Literal["decoupled-greedy"] = "decoupled-greedy"


def rule(config: Config) -> Rule:
    """What a shard does."""
    return Rule(source="head", down="nothing")
