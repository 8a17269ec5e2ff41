"""How much memory a shard needs whatever layers it has: the process itself, and its part of the data."""

from edgebed.algorithms.layerwise.rule import Rule

MIB = 2**20
TORCH_BYTES = 164 * MIB  # Python with torch; measured: 150 MiB, and room for the pages of its code that are in use
DATA_COPIES = 2  # as received, and in one piece
LABEL_BYTES = 9  # as received, and as int64
CONSTANT_COPIES = 5  # as received, in one piece, as the model's function makes them, in place; measured: 3.8 to 4.6


def examples_bytes(count: int, example_bytes: int) -> int:
    """Bytes of `count` training examples with their labels; `example_bytes` is 0 for a shard that sees labels alone."""
    return count * (DATA_COPIES * example_bytes + LABEL_BYTES)


def own_bytes(rule: Rule, examples: int, example_bytes: int, *, is_first: bool) -> int:
    """Bytes of a shard's process without layers."""
    sees_inputs = is_first or rule.synthetic_inputs
    return TORCH_BYTES + examples_bytes(examples, example_bytes if sees_inputs else 0)
