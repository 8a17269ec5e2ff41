"""Files of JSON lines that stand beside a page: read whole, and written in one go."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.journal.run_folder import write_atomically

T = TypeVar("T")


def read_lines(path: Path, read: Callable[[bytes], T], what: str) -> list[T]:
    """Return what `read` makes of each line; nothing where there is no file.

    EdgebedError where the file cannot be read, or where a line is not `what` it should be: `read` fails with a
    DecodeError or an EdgebedError.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EdgebedError(f"{path}: cannot be read: {error.strerror}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(read(line))
        except (msgspec.DecodeError, EdgebedError) as error:
            raise EdgebedError(
                f"{path}:{number}: {what}: {error}; remove the line or the file to do without it"
            ) from error
    return found


def write_lines(path: Path, rows: Iterable[msgspec.Struct | dict[str, Any]]) -> None:
    """Write each row as a line; InfrastructureError where that is impossible."""
    write_atomically(path, b"".join(msgspec.json.encode(row, order="deterministic") + b"\n" for row in rows))
