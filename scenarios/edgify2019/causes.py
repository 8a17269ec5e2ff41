"""What may be why something was found that differs from the post."""

from edgebed.studies.papers.paper import Cause

WARM_UP = "We use sparsity rate warmup"


def one_scale(row: str) -> Cause:
    """The scale of 8-bit integers; `row` is the one with a single scale for the model."""
    return Cause("The scale: one for the whole model in the place of one a tensor. The post names none.", row=row)


def rate_of_weights(row: str) -> Cause:
    """The rate by which federated learning is counted; `row` has that of weights."""
    return Cause(
        "The rate that is counted for federated learning: the post has its rate of zip from weights, and they come to "
        "it with one scale for the whole model. What is sent are changes.",
        row=row,
    )


def no_warm_up(row: str) -> Cause:
    """The first epochs, in which large batch sends more; `row` leaves them out."""
    return Cause("The warm-up, if the post's totals leave it out.", row=row, against=WARM_UP)


SMALLER_NET = Cause(
    "The network has 75,290 parameters where ResNet-18 has eleven million, and four workers train it for 12 of 150 "
    "rounds without flipped or shifted images. Which of these it is was not tried."
)
