"""A program of the user's, started where its node is: `python -m edgebed.emulation.enter ENTRY`, which it replaces.

    network namespace   the node's: its data interface and the loopback, nothing else
    cgroups             the node's, with its caps
    mounts, hostname    its own: /etc/hosts has all nodes by name, its files are read-only, its hostname is the node's

It is entered from the outside inwards, cgroups first, since memory is charged to where a process is when it takes it.
The program keeps this process's number, ends with its parent, and needs no shell. What it starts ends with its cgroup,
which whoever made that sees to.

ENTRY is an `Entry` as JSON. Exit codes other than the program's own are those of a shell, and of `env`: 127 no such
command, 126 one that cannot be run, 125 the node's place cannot be entered; a sentence on standard error says why.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from edgebed.core.linux import bind_mount, die_with_parent, enter_network_namespace, enter_new_mount_namespace

NOT_ENTERED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
"""Exit codes of a program that did not begin."""
HOSTS = "/etc/hosts"
SCRATCH = "/run/edgebed-scratch"
"""Where a program finds its folder for temporary files: a short path, since sockets take none of 108 bytes or more."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that a program would inherit as ignored, which it does not expect."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program is to run, and what."""

    node: str
    """Its hostname."""
    namespace: str
    """Path of the network namespace."""
    cgroups: tuple[str, ...] = ()
    """Folders of the cgroups."""
    hosts: str
    """Text of /etc/hosts."""
    files: str = ""
    """Folder that is its working directory, read-only; empty: none."""
    scratch: str
    """Folder that is its working directory where there are no files; also mounted at `SCRATCH`."""
    argv: tuple[str, ...]
    environment: dict[str, str]
    """All of its environment; `PATH` is where its command is looked for."""
    niceness: int = 0


def main() -> int:
    """Become the program; return only where that is not possible."""
    if not die_with_parent(os.getppid()):
        return NOT_ENTERED
    entry = msgspec.json.decode(sys.argv[1], type=Entry)
    try:
        _enter(entry)
    except OSError as error:
        why = ": ".join(filter(None, (error.filename, error.strerror)))
        return _refuse(NOT_ENTERED, f"the place of {entry.node} cannot be entered: {why}")
    command = entry.argv[0]
    try:
        os.execvpe(command, entry.argv, entry.environment)  # noqa: S606 # a program without a shell is what is asked for
    except FileNotFoundError:
        looked = f"in {entry.environment.get('PATH', os.defpath)}" if "/" not in command else f"from {Path.cwd()}"
        return _refuse(NOT_FOUND, f"{command}: not found {looked}, or its first line names an interpreter that is not")
    except OSError as error:
        return _refuse(NOT_EXECUTABLE, f"{command}: cannot be run: {error.strerror}")


def _enter(entry: Entry) -> None:
    """Enter everything. Raises OSError."""
    for folder in entry.cgroups:
        (Path(folder) / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    os.setpriority(os.PRIO_PROCESS, 0, entry.niceness)
    namespace = os.open(entry.namespace, os.O_RDONLY | os.O_CLOEXEC)
    enter_network_namespace(namespace)
    enter_new_mount_namespace(entry.node)
    with tempfile.NamedTemporaryFile() as hosts:  # where it is mounted it stays, without its name
        hosts.write(entry.hosts.encode())
        hosts.flush()
        Path(hosts.name).chmod(0o644)
        bind_mount(hosts.name, HOSTS)
    Path(SCRATCH).mkdir(parents=True, exist_ok=True)
    bind_mount(entry.scratch, SCRATCH)
    if entry.files:
        bind_mount(entry.files, entry.files, read_only=True)
    os.chdir(entry.files or entry.scratch)
    for each in IGNORED_BY_PYTHON:
        signal.signal(each, signal.SIG_DFL)


def _refuse(code: int, why: str) -> int:
    print(f"edgebed: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
