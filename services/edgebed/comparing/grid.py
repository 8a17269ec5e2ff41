"""Tables of text as the terminal and the pages of comparisons show them alike."""

from collections.abc import Sequence
from typing import NamedTuple


class Faint(str):
    """A text of a table that tells no two arms apart; a page shows it faintly."""

    __slots__ = ()


class Grid(NamedTuple):
    """One table; the first column names its rows."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    @property
    def columns(self) -> dict[str, list[str]]:
        """Heading -> the texts under it."""
        return {name: [row[place] for row in self.rows] for place, name in enumerate(self.head)}
