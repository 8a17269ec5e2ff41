"""A row that several tables of Tong et al. 2016 have: by how much one training is better than another."""

from edgebed.studies.papers.measuring import accuracy_at, difference
from edgebed.studies.papers.paper import Claim, Row

from .cells import NET


def over_row(
    better: str,
    worse: str,
    updates: int,
    claim: Claim | None,
    note: str = "",
    *,
    what: str = "",
    beside: str = "",
) -> Row:
    """A row for how many points one cell is better than another after so many steps; `what` is in the place of both."""
    return Row(
        what=f"{what or f'{NET[better]} over {NET[worse][0].lower()}{NET[worse][1:]}'}, after {updates:,} steps",
        cells=(better, worse),
        measure=difference(accuracy_at(better, updates), accuracy_at(worse, updates)),
        unit="points",
        with_updates="steady",
        claim=claim,
        note=note,
        beside=beside,
    )
