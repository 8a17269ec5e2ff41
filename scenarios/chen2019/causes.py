"""What may be why something was found that differs from Chen et al. 2019."""

from edgebed.studies.papers.paper import Cause, read_as

MEAN = (
    "What modules predict. One implementation with the paper's schedule, which loses nothing, has them predict the "
    "gradient of a mini-batch's mean loss (github.com/nitarshan/decoupled-neural-interfaces), 256 times smaller here "
    "than an example's."
)


def of_mean(row: str, reading: str = "mean loss") -> Cause:
    """What modules predict, for a row of table 1."""
    return Cause(MEAN, row=read_as(row, reading))


CAP = Cause(
    "The cap of a device, by the profile of each layer: a core for each, as the paper's containers have. Messages are "
    "not in it. The rest is the first device's module, convolutions, which works about as long as its layer: row "
    "`faster-of-cores-without-modules`.",
    row="faster-of-cores",
)
