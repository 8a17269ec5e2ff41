"""What is measured client by client, as a node's plan has it."""

import msgspec

from edgebed.core.bounds import Count, PositiveAmount, PositiveCount


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
