"""The command `edgebed` in a shell, forked from a process that has imported all already (`warm_command`).

    python -SE warm_shell.py SOCKET WORDS...

It hands its own input and output on, and its signals; it ends as the command does.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path


def main() -> int:
    """Return the exit code; a command that a signal has killed is followed by the same signal."""
    _, address, *words = sys.argv
    end, told = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forker:
        forker.connect(address)
        request = {"words": ["edgebed", *words], "cwd": str(Path.cwd()), "env": dict(os.environ)}
        socket.send_fds(forker, [json.dumps(request).encode()], [0, 1, 2, told])
        pid = int(forker.recv(64))
    os.close(told)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = int(os.read(end, 64))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
