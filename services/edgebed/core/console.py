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
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TextIO

from edgebed.core.errors import InfrastructureError

if TYPE_CHECKING:
    from rich.console import Console

PLAINER = str.maketrans({
    "–": "-", "·": "-", "…": "~", "✓": "+", "✗": "x", "━": "-", "╸": "-", "╺": "-",
    "─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+",
})  # fmt: skip
"""Replacements for characters that a stream cannot encode; any other becomes a question mark."""
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
    """Write a line to standard output."""
    with standard_output():
        sys.stdout.write(f"{quoted(text)}\n")


def put_json(value: Any) -> None:
    """Write indented JSON to standard output."""
    import msgspec

    put(msgspec.json.format(msgspec.json.encode(value)).decode())


def put_rich(show: Callable[["Console"], None]) -> None:
    """Write what `show` prints on a console: with colours on a terminal, as plain text elsewhere or with NO_COLOR.

    The output is gathered before it is written, since rich would answer a reader that has left with an exit code of its
    own.
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
    """Write a line to standard error, on a terminal broken at words; nothing where nobody can read it."""
    say_as_is(wrapped(text, line_width()) if sys.stderr.isatty() else text)


def say_as_is(text: str) -> None:
    """Write lines to standard error as they are, unless there are none; nothing where nobody can read them."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{quoted(text)}\n" if text else "")


def line_width() -> int:
    """Return the columns of the terminal, or of $COLUMNS."""
    return shutil.get_terminal_size().columns


def wrapped(text: str, width: int) -> str:
    """Return a text whose lines break at words and go on indented; a word that is longer than a line stays whole."""
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        if len(line) > width
        else line
        for line in text.split("\n")
    )


def put_lines(lines: Iterable[str], *, as_is: bool = False) -> None:
    """Write lines to standard output as they come; `as_is` leaves them unquoted where no terminal shows them."""
    raw = as_is and not sys.stdout.isatty()
    with standard_output():
        for line in lines:
            sys.stdout.write(f"{line if raw else quoted(line)}\n")


def quoted(text: str) -> str:
    """Return the text with what a terminal would act on or not show, except tabs and ends of lines, quoted as in JSON.

    E.g. escape sequences, what erases a line, what turns the direction of writing.
    """
    return _SPECIAL.sub(_quoted, text)


def _quoted(match: re.Match[str]) -> str:
    character = match.group()
    is_harmless = character.isprintable() or unicodedata.category(character) == "Zs"
    return character if is_harmless else json.dumps(character)[1:-1]


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Context in which to write to standard output; if its reader leaves, the rest is discarded.

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
    """Discard standard output from now on, including what is still in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Return what a codec writes instead of characters that it does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(PLAINER)
    return "".join(character if character.isascii() else "?" for character in text), error.end
