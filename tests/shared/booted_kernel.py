"""A Linux kernel of its own for one command: booted as a process on this machine (user-mode Linux), then powered off.

    this machine                              the booted kernel
        | --- linux.uml init=FOLDER/init -->      this machine's files, read only, at the same paths
        | <-- what the command writes -------     a serial line
        | <-- the command's exit code -------     FOLDER/code; then the power is off

It needs no root, no KVM and no image; inside, the command is root. Debian's kernel has netem, bridges, veth and all
else that links take, as modules: they are loaded, but for those that are left out, and it cannot load them itself. What
the command writes is lost, except below one folder that it is given. There is one core, and system calls are slow: how
long computing takes there says nothing about other machines.

`scripts/boot` is its command line.
"""

import argparse
import ctypes
import fcntl
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

KERNEL = "linux.uml"
INSTALL = "apt-get install user-mode-linux"
MODULES = ("bridge", "veth", "sch_tbf", "ifb", "sch_ingress", "cls_u32", "act_mirred", "sch_netem")
"""Modules that links take, in the order in which they are needed."""
MEMORY = "2048M"
SECONDS = 600.0
POWER_OFF_S = 30.0
KEPT = ("PATH", "PYTHONPATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that the command has from here, with all of edgebed's own."""
_FINIT_MODULE = 313  # its number on x86-64, the only machine that user-mode Linux is built for beside x86
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41  # linux/sockios.h, linux/if.h

INIT = """#!/bin/bash
{environment}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t hostfs -o {folder} hostfs {folder}
{writable}
stty -F /dev/ttyS0 -opost
exec >/dev/ttyS0 2>&1 </dev/null
echo >/proc/sys/kernel/modprobe
cd {here}
{python} {program} --load {modules} && {command}
echo $? >{folder}/code
sync
echo o >/proc/sysrq-trigger
sleep {power_off_s}
"""


class NoKernelError(Exception):
    """There is no kernel to boot, or it did not get as far as the command."""


def why_no_kernel() -> str:
    """Say why no kernel can be booted here, and what to do; empty if one can."""
    if not shutil.which(KERNEL):
        return f"no {KERNEL}: {INSTALL}"
    if "amx_tile" in Path("/proc/cpuinfo").read_text(encoding="ascii").split():
        return "not on this processor: its AMX registers are more than user-mode Linux restores, which panics"
    return ""


def run(
    command: Sequence[str],
    *,
    without: Sequence[str] = (),
    writes: Path | None = None,
    seconds: float = SECONDS,
    output: BinaryIO | None = None,
) -> int:
    """Run a command in a kernel booted for it, in this folder; return its exit code, 124 where its time was up.

    `without` names modules that are not loaded; below `writes` the command may write. What it says goes to `output`.
    Raises NoKernelError.
    """
    if reason := why_no_kernel():
        raise NoKernelError(reason)
    with tempfile.TemporaryDirectory(prefix="edgebed-kernel-") as made:
        folder = Path(made)
        init = folder / "init"
        init.write_text(_init(command, without, writes, folder), encoding="utf-8")
        init.chmod(0o755)
        in_time = _boot(folder, seconds, output or sys.stdout.buffer)
        code = folder / "code"
        if code.exists():
            return int(code.read_text(encoding="ascii"))
        if not in_time:
            return 124
        raise NoKernelError(f"the kernel ended before the command: {_last_words(folder / 'console')}")


def _init(command: Sequence[str], without: Sequence[str], writes: Path | None, folder: Path) -> str:
    """Write the first program that the kernel starts."""
    if unknown := set(without) - set(MODULES):
        raise NoKernelError(f"{', '.join(sorted(unknown))}: unknown; modules are {', '.join(MODULES)}")
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("EDGEBED_")}
    kept |= {"HOME": "/dev/shm", "TMPDIR": "/dev/shm", "PYTHONDONTWRITEBYTECODE": "1"}
    kept["EDGEBED_NETEM"] = "0" if "sch_netem" in without else "1"  # for tests/conftest.py
    place = shlex.quote(str(writes.resolve())) if writes else ""
    return INIT.format(
        environment="\n".join(f"export {name}={shlex.quote(value)}" for name, value in kept.items()),
        folder=shlex.quote(str(folder)),
        writable=f"mount -t hostfs -o {place} hostfs {place}" if writes else "",
        here=shlex.quote(str(Path.cwd())),
        python=shlex.quote(sys.executable),
        program=shlex.quote(str(Path(__file__).resolve())),
        modules=" ".join(module for module in MODULES if module not in without),
        command=shlex.join(command),
        power_off_s=f"{POWER_OFF_S:g}",
    )


def _boot(folder: Path, seconds: float, output: BinaryIO) -> bool:
    """Boot the kernel, and pass on what comes over its serial line, until it ends; return whether it did in time."""
    reading, writing = os.pipe()
    arguments = [
        KERNEL, "rootfstype=hostfs", "rootflags=/", "ro", f"init={folder}/init", f"mem={MEMORY}", "quiet", "con=null",
        "con0=null,fd:1", "ssl=null", f"ssl0=null,fd:{writing}", f"uml_dir={folder}/", "umid=kernel",
    ]  # fmt: skip
    with (folder / "console").open("wb") as console, os.fdopen(reading, "rb", buffering=0) as line:
        kernel = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            start_new_session=True,  # a process of this kernel is one of the machine's, and ends with the group
        )
        os.close(writing)
        listening = threading.Thread(target=_pass_on, args=(line, output), daemon=True)
        listening.start()
        try:
            kernel.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            if kernel.poll() is None:
                os.killpg(kernel.pid, signal.SIGKILL)
                kernel.wait()
            listening.join(POWER_OFF_S)
        return True


def _pass_on(line: BinaryIO, output: BinaryIO) -> None:
    while data := line.read(1 << 16):
        output.write(data)
        output.flush()


def _last_words(console: Path) -> str:
    lines = console.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "without a word"


def load(modules: Sequence[str]) -> None:
    """Load modules of the running kernel and all that they need, and have its loopback interface up. OSError."""
    folder = Path(f"/usr/lib/uml/modules/{os.uname().release}")
    paths, needed = {}, {}
    for entry in (folder / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, others = entry.partition(":")
        paths[Path(path).stem] = folder / path
        needed[Path(path).stem] = [Path(other).stem for other in reversed(others.split())]
    for module in dict.fromkeys(each for wanted in modules for each in (*needed[wanted], wanted)):
        with paths[module].open("rb") as file:
            if ctypes.CDLL(None, use_errno=True).syscall(_FINIT_MODULE, file.fileno(), b"", 0):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(paths[module]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def main() -> int:
    """Run the command line's command in a kernel of its own; return its exit code."""
    parser = argparse.ArgumentParser(prog="scripts/boot", description="Run a command in a kernel booted for it.")
    parser.add_argument("--without", action="append", default=[], metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--writes", type=Path, metavar="FOLDER", help="the folder below which the command may write")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="it is ended then, with 124 (%(default)g)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if not asked.command:
        parser.error("which command?")
    try:
        return run(asked.command, without=asked.without, writes=asked.writes, seconds=asked.seconds)
    except NoKernelError as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2:])
    else:
        sys.exit(main())
