"""Standard output and standard error of the command line.

A reader that has left (`| head`) ends the output in silence, not the command, which keeps its exit code. A stream that
is closed is as good as /dev/null; one that cannot encode a character gets a plainer one; a full disk is an error.

What is printed may hold text of anybody: names and notes of a stranger's run, what a scenario says, a node's log. So
whatever a terminal would act on, or not show, is quoted on its way out, in the way of JSON, where it thereby stays what
it was.
"""

import codecs
import contextlib
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TextIO

from edgebed.errors import InfrastructureError

if TYPE_CHECKING:
    from rich.console import Console

PLAINER = str.maketrans({
    "–": "-", "·": "-", "…": "~", "✓": "+", "✗": "x", "━": "-", "╸": "-", "╺": "-",
    "─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+",
})  # fmt: skip
"""What stands for a character that a stream cannot encode; any other is a question mark."""
ENCODING_ERRORS = "edgebed-plainer"
_SPECIAL = re.compile(r"[^\n\t -~]")


def prepare_streams() -> None:
    """Make standard output and standard error fit to be written to, whatever the caller has done to them."""
    codecs.register_error(ENCODING_ERRORS, _plainer)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 # open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ENCODING_ERRORS)


def put(text: str) -> None:
    """A line on standard output."""
    with standard_output():
        sys.stdout.write(f"{quoted(text)}\n")


def put_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import msgspec

    put(msgspec.json.format(msgspec.json.encode(value)).decode())


def put_rich(show: Callable[["Console"], None]) -> None:
    """What `show` prints on a console: colours on a terminal, plain text elsewhere or with NO_COLOR.

    It is gathered before it is written, since rich would answer a reader that has left with an exit code of its own.
    """
    gathered = io.StringIO()
    show(make_console(gathered, terminal=sys.stdout.isatty() or None))
    text = gathered.getvalue().rstrip("\n")  # its texts are quoted already; its own colours must not be
    with standard_output():
        sys.stdout.write(f"{text}\n")


def make_console(stream: TextIO, *, width: int | None = None, terminal: bool | None = None) -> "Console":
    """A console on `stream` that quotes what it shows; with NO_COLOR it has no style at all, neither colour nor bold.

    `terminal` says whether it is for a terminal (default: whether `stream` is one).
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class QuotingConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else quoted(text), style, control)

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return QuotingConsole(file=stream, width=width, highlight=False, color_system=colours, force_terminal=terminal)


def say(text: str) -> None:
    """A line on standard error; where nobody can read it, nothing."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{quoted(text)}\n")


def put_lines(lines: Iterable[str], *, as_is: bool = False) -> None:
    """Lines on standard output as they come; `as_is` leaves them what they are where no terminal shows them."""
    raw = as_is and not sys.stdout.isatty()
    with standard_output():
        for line in lines:
            sys.stdout.write(f"{line if raw else quoted(line)}\n")


def quoted(text: str) -> str:
    """The text without what a terminal would act on or not show, but for ends of lines and tabs: as JSON quotes that.

    E.g. escape sequences, what erases a line, what turns the direction of writing.
    """
    return _SPECIAL.sub(_quoted, text)


def _quoted(match: re.Match[str]) -> str:
    character = match.group()
    is_harmless = character.isprintable() or unicodedata.category(character) == "Zs"
    return character if is_harmless else json.dumps(character)[1:-1]


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Write to standard output in here; if its reader leaves, the rest goes nowhere.

    Raises InfrastructureError where it cannot be written for another reason, e.g. a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        raise InfrastructureError(f"standard output cannot be written: {error.strerror}") from error


def discard_output() -> None:
    """Let standard output lead nowhere from now on, also what is still in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """What a codec writes instead of characters it does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(PLAINER)
    return "".join(character if character.isascii() else "?" for character in text), error.end
