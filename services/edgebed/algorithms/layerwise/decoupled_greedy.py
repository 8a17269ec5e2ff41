"""Decoupled greedy learning: each shard has a head and a loss of its own, and nothing comes down.

Belilovsky, Eickenberg, Oyallon 2020, Decoupled greedy learning of CNNs, ICML, Algorithm 1. Differs from the paper: no
replay buffer; a shard that is ahead waits for room in the queue of the next one.
"""

from typing import Literal

import msgspec

from edgebed.algorithms.layerwise.rule import Rule


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to set."""

    name: Literal["decoupled-greedy"] = "decoupled-greedy"


def rule(config: Config) -> Rule:
    """What a shard does."""
    return Rule(source="head", down="nothing")
