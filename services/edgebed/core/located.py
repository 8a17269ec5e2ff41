"""A mistake of the user's with the place where it was written, and what could have stood there."""

from typing import Any, NamedTuple

OPTION = "--set "
"""What the source of an option's place begins with."""


class Place(NamedTuple):
    """Where a value was written. Sorts as a reader meets them: the file from top to bottom, then the options."""

    source: str
    """The file as the user named it, or the option `--set a.b=c`; empty for a scenario given as a dict."""
    line: int = 0
    """Line, from 1; 0 where the source has no lines."""
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Choice(NamedTuple):
    """What could have stood in a place, and what was probably meant; reads `did you mean 'x'? allowed: x, y`."""

    allowed: tuple[str, ...]
    meant: tuple[str, ...] = ()

    def __str__(self) -> str:
        guess = f"did you mean {' and '.join(map(repr, self.meant))}? " if self.meant else ""
        return f"{guess}allowed: {', '.join(self.allowed) or 'none'}"


class Location(NamedTuple):
    """A place, and the path of the key that stands there; reads `scenario.yaml:8:12: task.batch_size`."""

    place: Place
    path: tuple[str, ...]

    def __str__(self) -> str:
        path = ".".join(self.path)
        if self.place.source.startswith(f"{OPTION}{path}="):
            path = ""  # the option says it already
        return ": ".join(part for part in (str(self.place), path) if part)

    def problem(self, message: str, choice: Choice | None = None) -> "LocatedProblem":
        """Return a mistake that was made here."""
        return LocatedProblem(self, message, choice)


class LocatedProblem(NamedTuple):
    """A mistake and where it was written; reads as one line."""

    location: Location
    message: str
    """What is wrong, what is allowed, and what to do; it has the words of `choice`, too."""
    choice: Choice | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.location), self.message) if part)

    def as_dict(self) -> dict[str, Any]:
        """Return the mistake for other programs.

        `source` is the file or option, null for a mistake that has no place, as are `line` and `column`, both from 1;
        `allowed` is empty, and `suggestion` null, where neither is known.
        """
        place, choice = self.location.place, self.choice or Choice(())
        return {
            "source": place.source or None,
            "line": place.line or None,
            "column": place.column or None,
            "path": ".".join(self.location.path),
            "message": self.message,
            "allowed": choice.allowed,
            "suggestion": choice.meant[0] if choice.meant else None,
        }


NOWHERE = Location(Place(""), ())
"""The location of a mistake whose sentence says all there is."""
