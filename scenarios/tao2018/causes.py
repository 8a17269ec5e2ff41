"""What may be why something was found that differs from Tao, Li 2018."""

from edgebed.studies.papers.paper import Cause, read_as

RATE = "learning rate 0.1 / (2 e) where e is number of epochs"


def constant_rate(row: str) -> Cause:
    """The schedule, for a row of standard SGD."""
    return Cause("A learning rate that stays 0.1.", row=read_as(row, "constant rate"), against=RATE)


SCHEDULE = constant_rate("one-std-ten-epochs")


def rate_by_updates(row: str) -> Cause:
    """The schedule, for a row of smaller mini-batches."""
    return Cause(
        "A learning rate that falls with updates: one that falls with passes through the images stays higher for "
        "smaller mini-batches, which make fewer of them.",
        row=read_as(row, "rate by updates"),
        against=RATE,
    )


def magnitudes(row: str) -> Cause:
    """The threshold of residuals, for a row of table 2."""
    return Cause(
        "A threshold of residuals that is the mean of magnitudes.",
        row=read_as(row, "magnitudes"),
        against="threshold, the sum of g over d",
    )
