"""Files that are replaced in one step: whoever reads one finds the whole old one or new one, also after a power cut.

    a new file is written --> synced --> renamed to the old one's name --> its folder is synced

A sync costs a millisecond or two, so everything is synced that is written now and then.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

UNSYNCABLE = frozenset({errno.EINVAL, errno.EBADF})
"""Error numbers of file systems that sync no folders, as they need not."""


@contextlib.contextmanager
def replacing(path: Path, *, synced: bool = True) -> Iterator[int]:
    """Yield the descriptor of a new file, which takes the place of `path` in the end; the caller closes it then.

    It has the modes of the umask. After an error the old file is there, and the new one is gone and closed. Without
    `synced` all of that holds where a process is killed, and not where the machine loses its power.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        yield file
        if synced:
            os.fsync(file)
        new.replace(path)
        if synced:
            sync_folder(path.parent)
    except BaseException:
        os.close(file)
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def make_folder(path: Path) -> None:
    """Make a folder, with those above it; return when the disk has their names. One that is there is left as it is."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        sync_folder(each.parent)


def sync_folder(path: Path) -> None:
    """Return when the disk has the names of a folder's files."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in UNSYNCABLE:
            raise
    finally:
        os.close(folder)
