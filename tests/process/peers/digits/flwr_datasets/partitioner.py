"""How rows are dealt out."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class IidPartitioner:
    """To so many clients, in turn."""

    num_partitions: int
