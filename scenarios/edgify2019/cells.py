"""The cells of the post: which variants of `accuracy.yaml` are run, and for how many of its epochs."""

from collections.abc import Callable

from edgebed.studies.papers.paper import Cell

from . import containers, network

LARGE_BATCH_EPOCHS = 100
ROUNDS = 150
EPOCHS = 12
"""Epochs that are trained here, with either method."""
RESNET18_ROUNDS = 3
"""Rounds of ResNet-18, a quarter of an hour of a core. All 150 take half a day."""

WHAT = {
    "large-batch": "Large batch",
    "large-batch-int8": "Large batch, F2I of gradients",
    "large-batch-dgc": "Large batch, DGC, 99.9 % of convolutions left out",
    "large-batch-plateau": "Large batch, learning rate by plateau",
    "large-batch-dgc-plateau": "Large batch, DGC, learning rate by plateau",
    "large-batch-both-ways": "Large batch, F2I of gradients and of what comes down",
    "federated": "Federated learning",
    "federated-int8": "Federated learning, F2I of changes",
    "large-batch-int8-model-scale": "Large batch, F2I of gradients, one scale for the model",
    "federated-int8-model-scale": "Federated learning, F2I of changes, one scale for the model",
    "large-batch-dgc-clipped": "Large batch, DGC, clipped and with a sample",
    "large-batch-hundred-epochs": "Large batch, a hundred epochs of 6,000 images",
    "large-batch-dgc-hundred-epochs": "Large batch, DGC, a hundred epochs of 6,000 images",
    "large-batch-32": "Large batch, 32 workers",
    "large-batch-dgc-32": "Large batch, DGC, 32 workers",
    "federated-32": "Federated learning, 32 workers",
    "federated-int8-32": "Federated learning, F2I of changes, 32 workers",
    "federated-resnet18": "Federated learning, ResNet-18, 32 workers",
}
"""Cells in words."""


def annealed(variant: str, epochs: int) -> Callable[[float], tuple[str, ...]]:
    """Overrides that end the cosine when a shorter training ends."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"variants.{variant}.method.aggregation.zero_at={epochs * scale:g}",)

    return sets


def large_batch(ending: str = "", *, cosine: bool = True) -> Cell:
    """A cell of rounds of gradients."""
    variant, scale = f"large-batch{ending}", EPOCHS / LARGE_BATCH_EPOCHS
    if not cosine:
        return Cell(scenario="accuracy.yaml", variant=variant, scale=scale)
    sets = annealed(variant, LARGE_BATCH_EPOCHS)
    return Cell(scenario="accuracy.yaml", variant=variant, scale=scale, sets=sets, has_own_schedule=True)


def federated(ending: str = "", rounds: int = EPOCHS) -> Cell:
    """A cell of rounds of models."""
    return Cell(scenario="accuracy.yaml", variant=f"federated{ending}", scale=rounds / ROUNDS)


def hundred_epochs(method: str = "") -> Cell:
    """A cell of as many epochs as the post's."""
    return Cell(scenario="accuracy.yaml", variant=f"large-batch{method}-hundred-epochs")


CELLS: dict[str, Cell] = {
    "large-batch": large_batch(),
    "large-batch-int8": large_batch("-int8"),
    "large-batch-dgc": large_batch("-dgc"),
    "federated": federated(),
    "federated-int8": federated("-int8"),
    "large-batch-int8-model-scale": large_batch("-int8-model-scale"),
    "federated-int8-model-scale": federated("-int8-model-scale"),
    "large-batch-dgc-clipped": large_batch("-dgc-clipped"),
    "large-batch-plateau": large_batch("-plateau", cosine=False),
    "large-batch-dgc-plateau": large_batch("-dgc-plateau", cosine=False),
    "large-batch-both-ways": large_batch("-both-ways"),
    "large-batch-hundred-epochs": hundred_epochs(),
    "large-batch-dgc-hundred-epochs": hundred_epochs("-dgc"),
    "large-batch-32": large_batch("-32"),
    "large-batch-dgc-32": large_batch("-dgc-32"),
    "federated-32": federated("-32"),
    "federated-int8-32": federated("-int8-32"),
    "federated-resnet18": federated("-resnet18", RESNET18_ROUNDS),
    **containers.CELLS,
    **network.CELLS,
}
