"""What a program asks of the file system, written down; and every disk that a power cut, or a kill, may leave of it.

    create, write, write, sync, rename, sync-folder, …   after any of these:

A disk that loses its power has of each file what was synced, and of the rest everything, nothing or a part; of a
folder's names those that were synced, and of the later ones the first few. A killed process leaves all that was asked
for before, and a part of what it was writing.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

HEARD = ("open", "close", "write", "writev", "replace", "mkdir", "unlink", "fsync", "fdatasync", "ftruncate")
Operation = tuple[Any, ...]
"""What was asked, and of which file or path."""
Disk = dict[str, bytes | None]
"""What is there: each file's content by its path, None for a folder."""


class Recorder:
    """Writes down what is asked of a folder while it is entered; files are written, nothing is synced."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.done: list[Operation] = []
        self.files: dict[str, int] = {}
        """Number of the file that each path leads to."""
        self.open: dict[int, int | str] = {}
        """The file's number, or the folder's path, by descriptor."""
        self.sizes: dict[int, int] = {}
        """Bytes of each file that are written down."""

    def __enter__(self) -> Self:
        """Listen."""
        self.stack = ExitStack()
        for name in HEARD:
            listen = self._listening(getattr(os, name), getattr(self, f"_{name}"))
            self.stack.enter_context(patch.object(os, name, listen))
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self.stack.close()

    def note(self, *what: Any) -> None:
        """Write down what somebody was told meanwhile."""
        self.done.append(("told", *what))

    def _listening(self, do: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def listen(*args: Any, **options: Any) -> Any:
            done = None if note in (self._fsync, self._fdatasync) else do(*args, **options)
            note(done, *args)
            return done

        return listen

    def _within(self, path: Any) -> str | None:
        """The path below the root; None: it is elsewhere."""
        found = Path(path).parent.resolve() / Path(path).name
        return str(found.relative_to(self.root)) if found.is_relative_to(self.root) else None

    def _open(self, file: int, path: Any, flags: int, *_: Any) -> None:
        within = self._within(path)
        if within is None:
            return
        if Path(path).is_dir():
            self.open[file] = within
            return
        if within not in self.files:
            self.files[within] = len(self.sizes)
            self.sizes[self.files[within]] = 0
            self.done.append(("create", self.files[within], within))
        self.open[file] = self.files[within]

    def _close(self, _: None, file: int) -> None:
        self.open.pop(file, None)

    def _write(self, _: int, file: int, *__: Any) -> None:
        number = self.open.get(file)
        size = os.fstat(file).st_size if isinstance(number, int) else 0
        if isinstance(number, int) and size > self.sizes[number]:
            path = next(path for path, each in self.files.items() if each == number)
            with (self.root / path).open("rb") as found:  # which is not listened to
                found.seek(self.sizes[number])
                self.done.append(("write", number, found.read()))
            self.sizes[number] = size

    _writev = _write

    def _ftruncate(self, _: None, file: int, size: int) -> None:
        number = self.open.get(file)
        if isinstance(number, int):
            self.sizes[number] = size
            self.done.append(("cut", number, size))

    def _fsync(self, _: None, file: int) -> None:
        self._write(0, file)
        number = self.open.get(file)
        if number is not None:
            path = number if isinstance(number, str) else next(p for p, n in self.files.items() if n == number)
            self.done.append(("sync-folder", path) if isinstance(number, str) else ("sync", number, path))

    _fdatasync = _fsync

    def _replace(self, _: None, path: Any, to: Any) -> None:
        name, other = self._within(path), self._within(to)
        if name in self.files and other is not None:
            for file, number in list(self.open.items()):
                if number == self.files[name]:
                    self._write(0, file)
            self.files[other] = self.files.pop(name)
            self.done.append(("rename", name, other))

    def _mkdir(self, _: None, path: Any, *__: Any) -> None:
        within = self._within(path)
        if within is not None:
            self.done.append(("mkdir", within))

    def _unlink(self, _: None, path: Any, *__: Any) -> None:
        within = self._within(path)
        if within in self.files:
            del self.files[within]
            self.done.append(("unlink", within))


class _Disk:
    """What a disk has for certain, and what it may have."""

    def __init__(self) -> None:
        self.synced: dict[int, bytes] = {}
        self.written: dict[int, bytes] = {}
        self.names: dict[str, int | None] = {}
        """Names that are synced; None: a folder's."""
        self.pending: list[Operation] = []
        """What was done to names since, in order."""

    def do(self, operation: Operation) -> None:
        """Do what was asked."""
        what, *rest = operation
        if what == "write":
            self.written[rest[0]] += rest[1]
        elif what == "cut":
            self.written[rest[0]] = self.written[rest[0]][: rest[1]]
        elif what == "sync":
            self.synced[rest[0]] = self.written[rest[0]]
        elif what == "sync-folder":
            mine = [each for each in self.pending if str(Path(each[-1]).parent) == rest[0]]
            self.names = _named(self.names, mine)
            self.pending = [each for each in self.pending if each not in mine]
        elif what in ("create", "mkdir", "rename", "unlink"):
            if what == "create":
                self.written[rest[0]] = self.synced[rest[0]] = b""
            self.pending.append(operation)

    def seen(self, count: int, contents: Mapping[int, bytes]) -> Disk:
        """What is there if the first few names reached the disk, and these contents."""
        names = _named(self.names, self.pending[:count])
        there = {path for path in names if all(str(above) in names for above in list(Path(path).parents)[:-1])}
        return {path: None if (number := names[path]) is None else contents[number] for path in there}

    def after_power_cut(self) -> Iterator[Disk]:
        """Every disk that a power cut may leave now."""
        open_files = [file for file in self.written if self.written[file] != self.synced[file]]
        for count in range(len(self.pending) + 1):
            for kept in product((self.synced, self.written), repeat=min(len(open_files), 3)):
                chosen = {file: which[file] for file, which in zip(open_files, kept, strict=False)}
                yield self.seen(count, self.written | chosen)
            for share in (0.5, 0.99):
                yield self.seen(count, {file: self._torn(file, share) for file in self.written})

    def _torn(self, file: int, share: float) -> bytes:
        """What was synced of a file, and a share of what follows."""
        synced, written = self.synced[file], self.written[file]
        more = written[len(synced) :] if written.startswith(synced) else b""
        return synced + more[: int(share * len(more))]

    def after_kill(self, last: Operation) -> Iterator[Disk]:
        """Every disk that a kill may leave, during or after the last operation."""
        yield self.seen(len(self.pending), self.written)
        if last[0] == "write":
            for left in (len(last[2]) // 2, 1, len(last[2])):
                yield self.seen(len(self.pending), self.written | {last[1]: self.written[last[1]][:-left]})


def _named(names: dict[str, int | None], operations: Iterable[Operation]) -> dict[str, int | None]:
    """The names after some operations."""
    found = dict(names)
    for what, *rest in operations:
        if what == "create":
            found[rest[1]] = rest[0]
        elif what == "mkdir":
            found[rest[0]] = None
        elif what == "unlink":
            found.pop(rest[0], None)
        elif rest[0] in found:
            found[rest[1]] = found.pop(rest[0])
    return found


def disks(done: Sequence[Operation], how: str) -> Iterator[tuple[list[Operation], Disk]]:
    """After each operation, what everybody was told by then, and each disk there may be; `how`: power-cut or kill."""
    disk, told = _Disk(), list[Operation]()
    for operation in done:
        if operation[0] == "told":
            told.append(operation[1:])
        disk.do(operation)
        seen: list[Disk] = []
        for each in disk.after_power_cut() if how == "power-cut" else disk.after_kill(operation):
            if each not in seen:
                seen.append(each)
                yield told, each


def lay(disk: Disk, folder: Path) -> None:
    """Make what is there, in an empty folder."""
    for path in sorted(disk):
        content = disk[path]
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
