"""What may be why something was found that differs from the report of Tong et al. 2016."""

from edgebed.studies.papers.paper import Cause, read_as

RATE = "synthetic gradient (with learning rate 0.01)"
SAME_RATE = "under same learning rate of gradient descent"
LONGER_STEPS = "Steps ten times as long: a learning rate of 0.1 for what synthetic gradients train."


def longer_steps(row: str, against: str = RATE) -> Cause:
    """The length of a step, for one of the rows of what synthetic gradients train."""
    return Cause(LONGER_STEPS, row=read_as(row, "longer steps"), against=against)


def plateau(row: str) -> Cause:
    """The sum over a mini-batch, for a row of synthetic inputs before anything is learnt."""
    return Cause(
        "A loss that is summed over the mini-batch, as in the authors' programs: all images soon get one class, where "
        "a squared loss has hardly a gradient.",
        row=read_as(row, "summed loss"),
    )


GRADIENT_DIFFERENTIATED = Cause(
    "What is differentiated. Here the gradient is a constant in the gradient loss. In a graph that holds the gradient, "
    "as TensorFlow builds it, it is differentiated, too, unless the program says otherwise, and a step takes longer "
    "(`scripts/bench direct`). What the report's program did is not known."
)
PLATEAU_STEPS = 700
"""Steps until which the report's curve of synthetic inputs stays at the accuracy of chance."""


def why_at(cell: str, updates: int) -> Cause | None:
    """What may be why the accuracy of a cell after so many steps is not the report's; None: of back-propagation."""
    row = f"{cell}-{updates}"
    if cell.startswith("bp"):
        return None
    return plateau(row) if (cell, updates) == ("si", PLATEAU_STEPS) else longer_steps(row)
