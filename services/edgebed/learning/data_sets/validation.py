"""The validation part: training examples that are held out, drawn by the seed within each client.

Whatever is chosen, such as a version of the model, a learning rate or a method, is chosen by these, so that the test
part stays unseen.

Shapes: N examples; places are increasing int64 vectors of positions in 0..N-1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance
from edgebed.learning.data_sets.split import by_client


class Apart(NamedTuple):
    """A division of examples."""

    training: NDArray[np.int64]
    """Places of those that are left for training."""
    validation: NDArray[np.int64]
    """Places of those that are held out."""
    kept: int
    """Clients that are too small for a validation part, and keep all their examples."""


def set_apart(places: NDArray[np.int64], clients: NDArray[np.int64] | None, share: float, seed: int) -> Apart:
    """Hold a share of the examples at `places` out, of each client by itself.

    `clients` are the (N,) clients of all examples; None: nobody's, and the share is drawn from all together. A client
    has its share rounded; it is too small where that is none of its examples, or all of them.
    """
    owners = np.zeros(len(places), np.int64) if clients is None else clients[places]
    is_held = np.zeros(len(places), np.bool_)
    kept = 0
    for client, own in by_client(owners).items():
        count = int(share * len(own) + 0.5)
        if not 0 < count < len(own):
            kept += 1
            continue
        drawn = chance.generator(seed, "validation", k=client).choice(len(own), count, replace=False)
        is_held[own[drawn]] = True
    return Apart(places[~is_held], places[is_held], kept)
