"""Size of a push as the authors of AdaComp sent it: pickled by Python 2, protocol 2.

Their first release (Hardy-c/AdaComp on GitHub, 439eaeb) sends the number of the pulled version, by each tensor's name a
list of its values and, of a compressed gradient, by each tensor's name a list of the positions in it. Values that were
selected have been wrapped for sorting and are pickled as they are.

    value             9 bytes: a mark and a double
    its wrapper      16: class, tuple, object, an empty dictionary, and the numbers they may be referred to by
    position          2 below 256, 3 below 65,536, else 5
    list              2 for each thousand begun, and some 25 with its name

No pickle is made. Python 2.7 makes 1,905,858 bytes of a dense push of the 211,690-parameter CNN, and at c = 0.01 28,531
without wrappers and 61,696 with them, positions drawn evenly: this is right within 2 %.
"""

from collections.abc import Sequence

VALUE_BYTES = 9
WRAPPER_BYTES = 16
LIST_BYTES = 25
THOUSAND_BYTES = 2


def dense_bytes(sizes: Sequence[int]) -> int:
    """Bytes of a push with every entry of tensors of these sizes."""
    return sum(VALUE_BYTES * size + _list_bytes(size) for size in sizes)


def selected_bytes(sizes: Sequence[int], counts: Sequence[int], *, wrapped: bool = False) -> int:
    """Bytes of a push with so many entries of each tensor, evenly spread; `wrapped`: as the release sends them."""
    value_bytes = VALUE_BYTES + WRAPPER_BYTES * wrapped
    return sum(
        value_bytes * count + sum(_position_bytes(k * size // count) for k in range(count)) + 2 * _list_bytes(count)
        for size, count in zip(sizes, counts, strict=True)
    )


def _list_bytes(length: int) -> int:
    return LIST_BYTES + THOUSAND_BYTES * -(-length // 1000)


def _position_bytes(position: int) -> int:
    return 2 if position < 1 << 8 else 3 if position < 1 << 16 else 5
