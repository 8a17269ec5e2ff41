"""What is measured client by client, as a node's plan has it."""

import msgspec


class FineTune(msgspec.Struct, frozen=True, kw_only=True):
    """Local fine-tuning before a client is measured: gradient descent on the client's own training examples."""

    steps: int
    learning_rate: float


class ByClient(msgspec.Struct, frozen=True, kw_only=True):
    """The clients whose own examples a node measures a model on."""

    part: str
    """Part of the data that these examples are of."""
    clients: tuple[int, ...]
    """Numbers of the clients into `Plan.client_names`, in order."""
    sizes: tuple[int, ...]
    """Number of these examples of each."""
    unseen: tuple[int, ...] = ()
    """Numbers of those of whom nobody trains on an example."""
    own: tuple[int, ...] = ()
    """Number of training examples that each is fine-tuned on; none: there is no fine-tuning."""
    fine_tune: FineTune | None = None
    """Local fine-tuning before the measure; None: there is none."""
    every_updates: int | None = None
    """Updates from one version that is measured by client to the next; None, with the next: the last model alone."""
    every_s: float | None = None
