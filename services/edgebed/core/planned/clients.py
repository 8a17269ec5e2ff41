"""What is measured client by client, as a node's plan has it."""

from collections.abc import Collection, Sequence
from itertools import chain, compress

import msgspec

from edgebed.core.bounds import Count, PositiveAmount, PositiveCount

OF_CLIENTS = ("clients", "sizes", "own")
"""Fields of `ByClient` with a value for each client, or none."""


class FineTune(msgspec.Struct, frozen=True, kw_only=True):
    """Local fine-tuning before a client is measured: gradient descent on the client's own training examples."""

    steps: Count
    learning_rate: float


class ByClient(msgspec.Struct, frozen=True, kw_only=True):
    """The clients whose own examples a node measures a model on."""

    part: str
    """Part of the data that these examples are of."""
    clients: tuple[Count, ...]
    """Numbers of the clients into `Plan.client_names`, in order."""
    sizes: tuple[Count, ...]
    """Number of these examples of each."""
    unseen: tuple[Count, ...] = ()
    """Numbers of those of whom nobody trains on an example."""
    own: tuple[Count, ...] = ()
    """Number of training examples that each is fine-tuned on; none: there is no fine-tuning."""
    fine_tune: FineTune | None = None
    """Local fine-tuning before the measure; None: there is none."""
    every_updates: PositiveCount | None = None
    """Updates from one version that is measured by client to the next; None, with the next: the last model alone."""
    every_s: PositiveAmount | None = None

    def only(self, clients: Collection[int]) -> "ByClient | None":
        """Return the same for these clients alone; None where there is none of them."""
        here = [client in clients for client in self.clients]
        if not any(here):
            return None
        kept = {name: tuple(compress(getattr(self, name), here)) for name in OF_CLIENTS}
        return msgspec.structs.replace(self, **kept, unseen=tuple(each for each in self.unseen if each in clients))


def together(parts: Sequence[ByClient]) -> ByClient | None:
    """What several nodes measure, each on clients of its own; None where nobody does."""
    if not parts:
        return None
    joined = {name: tuple(chain.from_iterable(getattr(each, name) for each in parts)) for name in OF_CLIENTS}
    return msgspec.structs.replace(parts[0], **joined)
