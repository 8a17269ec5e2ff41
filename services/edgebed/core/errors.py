"""What can go wrong, sorted by whose fault it is; the command line turns each into its exit code.

A message says where, what, what is allowed and what to do next; a `LocatedProblem` has these as values. A broken
invariant is an `assert`, never one of these.
"""

import errno
from typing import Any, NamedTuple

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a disk, or of a user's part of it, that is full."""
REMEDIES = {
    **dict.fromkeys(FULL, "make room, or choose another folder with {option}"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "give yourself the right to, or choose another folder with {option}"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "let more files be open (ulimit -n), or run fewer nodes"),
    errno.EROFS: "its file system cannot be written to; choose another folder with {option}",
    errno.ENOENT: "its folder is gone; make it again, or choose another with {option}",
    errno.ELOOP: "it is a link, and nothing is written through one; take it away",
}
"""Remedies by error number, where a file could not be written."""

KERNEL_LACKS = "this kernel has no"
"""Words by which a lack of the kernel's is known wherever it is told."""


def unwritten(error: OSError, option: str) -> str:
    """Say why a file could not be written, and what to do: `cannot be written: No space left on device; make room, …`.

    `option` is the one that chooses another folder.
    """
    remedy = REMEDIES.get(error.errno or 0, "choose another folder with {option}").format(option=option)
    return f"cannot be written: {error.strerror}; {remedy}"


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


class EdgebedError(Exception):
    """Base of the errors that edgebed reports to a person without a traceback."""

    exit_code = 3


class ScenarioError(EdgebedError):
    """The user's mistake: a scenario, an option or a file that cannot be used. Found before anything starts.

    `located` holds every mistake found, with its place where that is known.
    """

    exit_code = 2

    def __init__(self, *problems: str | LocatedProblem) -> None:
        self.located = tuple(NOWHERE.problem(each) if isinstance(each, str) else each for each in problems)
        super().__init__("\n".join(self.problems))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return every mistake as one complete message."""
        return tuple(map(str, self.located))

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[LocatedProblem, ...]]:
        return type(self), self.located


class OwnCodeError(EdgebedError):
    """A part that is the user's own failed at its work; says which, in what, why, and the line of the user's file."""

    exit_code = 3

    def at(self, when: str) -> "OwnCodeError":
        """Return this error with its time in front: `step 7`."""
        return OwnCodeError(f"{when}: {self}")

    def on(self, node: str) -> "OwnCodeError":
        """Return this error with its node in front."""
        return OwnCodeError(f"{node}, {self}")


class InfrastructureError(EdgebedError):
    """The machine, the network or a node failed; the scenario was fine."""

    exit_code = 3


class KernelLackError(InfrastructureError):
    """The kernel, of this machine or of an engine, lacks something; nobody's mistake, and no right would help."""

    def __init__(self, what: str, module: str) -> None:
        """`what` is lacking, which `module` has where the kernel was built with it."""
        super().__init__(lacking(what, module))


def lacking(what: str, module: str) -> str:
    """Say that the kernel lacks something, and what to do."""
    return f"{KERNEL_LACKS} {what} (modprobe {module} loads it, where it was built)"


WITHOUT_LOG = "--from-checkpoint"
"""Option that resumes a run without its server's log; a reason that names it is one that the log is of no use."""


class DamagedFileError(EdgebedError):
    """A file that a node goes on from is damaged: the node would fail in the same way if it were started anew."""


class Uncountable(Exception):  # noqa: N818 - what the model is
    """A model's operations cannot be counted, and why."""
