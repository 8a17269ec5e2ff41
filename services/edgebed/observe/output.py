"""Standard output and standard error of the command line.

A reader that has left (`| head`) ends the output in silence, not the command, which keeps its exit code.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def put(text: str) -> None:
    """A line on standard output."""
    with quiet_pipe():
        sys.stdout.write(f"{text}\n")


def put_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import msgspec

    put(msgspec.json.format(msgspec.json.encode(value)).decode())


def put_rich(show: Callable[["Console"], None]) -> None:
    """What `show` prints on a console: colours on a terminal, plain text elsewhere or with NO_COLOR.

    It is gathered before it is written, since rich would answer a reader that has left with an exit code of its own.
    """
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        show(console)
    put(captured.get().rstrip("\n"))


def say(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{text}\n")


@contextlib.contextmanager
def quiet_pipe() -> Iterator[None]:
    """Write to standard output in here; if its reader leaves, the rest goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
