"""A model measured client by client, on each client's own examples; if asked, after steps on its training examples.

Fine-tuning is plain gradient descent from the model that is measured, by mini-batches of the task's size, or of all
examples where a client has fewer: the client's own in a new seeded order every epoch. It has the same draws for every
version of the model, so that two versions differ by themselves.

Shapes: n parameters, N examples, b examples in a mini-batch.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance
from edgebed.core.measures.task import Sums, added
from edgebed.core.planned.clients import ByClient
from edgebed.learning.allocator import EVALUATION_CHUNK
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.data_sets.split import by_client
from edgebed.learning.network import Network


class ClientNetwork:
    """A network, the examples that clients are measured on, and those that they are fine-tuned on."""

    def __init__(
        self, network: Network, plan: ByClient, seed: int, measured: Examples, own: Examples | None = None
    ) -> None:
        """`measured` and `own` say whose their examples are; without `own` nobody is fine-tuned."""
        self.network, self.plan, self.seed = network, plan, seed
        self.measured, self.own = measured, own
        self._places, self._own_places = _places(measured), _places(own)

    def measure(self, theta: NDArray[np.float32], client: int) -> Sums:
        """(n,) weights -> the sums over the client's examples."""
        places = self._places.get(client, _NOWHERE)
        chunks = [places[start : start + EVALUATION_CHUNK] for start in range(0, len(places), EVALUATION_CHUNK)]
        return added([self.network.sums(theta, self.measured, chunk) for chunk in chunks])

    def tuned(self, theta: NDArray[np.float32], client: int) -> NDArray[np.float32] | None:
        """(n,) weights -> fresh (n,) weights after the client's own steps; None where it has no training example."""
        tuning, places = self.plan.fine_tune, self._own_places.get(client, _NOWHERE)
        if tuning is None or self.own is None or not len(places):
            return None
        present = theta.copy()
        for step in range(tuning.steps):
            batch = places[self._batch(client, len(places), step)]
            key = chance.key(self.seed, "fine-tuning", str(client), step)
            gradient, _ = self.network.gradient(present, batch, key, self.own)
            present -= np.where(self.network.is_buffer, gradient, np.float32(tuning.learning_rate) * gradient)
        return present

    def _batch(self, client: int, count: int, step: int) -> NDArray[np.int64]:
        """(b,) places among the client's `count` training examples; a batch ends with its epoch."""
        size = min(self.network.batch_size, count)
        epoch, batch = divmod(step, count // size)
        order = chance.generator(self.seed, "fine-tuning order", str(client), epoch).permutation(count)
        return order[batch * size : (batch + 1) * size]


_NOWHERE = np.zeros(0, np.int64)


def _places(examples: Examples | None) -> dict[int, NDArray[np.int64]]:
    """The places of each client's examples."""
    return {} if examples is None or examples.clients is None else by_client(examples.clients)
