"""Tables of text that the terminal and the pages of comparisons share."""

from collections.abc import Sequence
from typing import NamedTuple


class Faint(str):
    """A cell whose difference is within chance; a page shows it faintly."""

    __slots__ = ()


class Grid(NamedTuple):
    """One table; the first column names its rows."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    @property
    def columns(self) -> dict[str, list[str]]:
        """The texts under each heading."""
        return {name: [row[place] for row in self.rows] for place, name in enumerate(self.head)}
