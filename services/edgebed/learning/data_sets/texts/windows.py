"""Texts as windows of tokens: each place of a window has the token that follows as its target.

Texts are cut into parts before they are cut into windows, so that no window reaches from one part into another, and
windows of a part do not overlap.

Shapes: T tokens a window, W windows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.parts import Shares, cut

Tokens = NDArray[np.int64]


def windows(tokens: Tokens, length: int) -> tuple[Tokens, Tokens]:
    """(W, T) inputs and targets; what does not fill a window at the end is left out."""
    count = max(0, len(tokens) - 1) // length
    inputs, targets = (tokens[first : first + count * length].reshape(count, length) for first in (0, 1))
    return inputs, targets


def in_windows(
    texts: Sequence[tuple[str, Tokens]], length: int, shares: Shares, outputs: int, note: str = ""
) -> DataSet:
    """Return the windows of texts, each with the name of its client, or with "" where there are no clients.

    ScenarioError where a part has no window.
    """
    pieces = [(client, cut(tokens, shares)) for client, tokens in texts]
    parts = {}
    for k, which in enumerate(("train", "validation", "test")):
        found = [(client, *windows(parts_of[k], length)) for client, parts_of in pieces]
        inputs, targets = (np.concatenate([each[which] for each in found]) for which in (1, 2))
        clients = np.repeat([client for client, *_ in found], [len(each) for _, each, _ in found])
        if len(inputs):
            parts[which] = (inputs, targets, None if "" in clients else clients)
        elif which != "validation" or shares.validation:
            longest = max(len(parts_of[k]) for _, parts_of in pieces)
            raise ScenarioError(
                f"length: {length} is too long: a window has one token more, and the longest {which} part has {longest}"
            )
    return DataSet(**parts, outputs=outputs, note=note)  # type: ignore[arg-type]
