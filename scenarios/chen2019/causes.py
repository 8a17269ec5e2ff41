"""What may be why something was found that differs from Chen et al. 2019."""

from edgebed.studies.papers.paper import Cause, read_as


def of_mean(row: str) -> Cause:
    """What modules are taught, for a row of table 1."""
    return Cause("What modules are taught: the gradient of the mini-batch's mean loss.", row=read_as(row, "mean loss"))


CAP = Cause(
    "The cap of a device: a core for each, as the paper's containers have, by the profile of each layer and without "
    "messages.",
    row="faster-of-cores",
)
