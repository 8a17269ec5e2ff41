"""Reading what anybody may have written: a run's folder may be damaged, or come from a stranger.

Nothing but a file is read, since a pipe or a device under its name would be waited for, or never end; and whatever a
file holds, what is wrong with it is an error that names it.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import msgspec

from edgebed.core.errors import EdgebedError

T = TypeVar("T")
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors that msgspec raises for bytes that are not as they should be; the last for what is nested too deep."""


def open_file(path: Path) -> BufferedReader:
    """Open the file at `path` for reading; OSError where there is none, or something else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file")


def read_file(path: Path) -> bytes:
    """Read all of a file; OSError as for `open_file`."""
    with open_file(path) as file:
        return file.read()


def read_json(path: Path, kind: type[T], what: str) -> T:
    """Read the `kind` that a file holds as JSON; EdgebedError, which calls it `what`, if it cannot be read as one."""
    try:
        return msgspec.json.decode(read_file(path), type=kind)
    except OSError as error:
        raise EdgebedError(f"{path}: not readable as {what}: {error.strerror}") from error
    except NOT_JSON as error:
        raise EdgebedError(f"{path}: not readable as {what}: {error}") from error
