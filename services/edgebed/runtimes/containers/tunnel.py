"""The socket of an engine on another host, brought here by OpenSSH: `ssh://[user@]host[:port][/path/of/the/socket]`.

    client --> engine.sock, in a folder of this user alone --> ssh --> sshd --> /var/run/docker.sock

What connects to the local socket talks to the engine, with everything that a socket can do. ssh finds keys, jump hosts
and aliases in the user's own configuration; it asks nothing (a password would be asked for at each command). The tunnel
ends when it is closed, or with this process, however that ends: a shell waits beside ssh for the end of its input. It
has a session of its own, so that Ctrl-C does not take it away from whoever is tidying up.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from edgebed.core.errors import InfrastructureError

REMOTE_SOCKET = "/var/run/docker.sock"
OPTIONS = (
    "BatchMode=yes", "ConnectTimeout=10", "ControlPath=none", "ExitOnForwardFailure=yes", "ServerAliveInterval=5",
    "ServerAliveCountMax=3", "StreamLocalBindUnlink=yes",
)  # fmt: skip
"""Whoever is cut off is known after 15 s; no connection of the user's own is shared, which would outlive this one."""
WATCHING = """
exec 3<&0
folder=$1; shift
"$@" 3<&- </dev/null & ssh=$!
{ read -r _ <&3; kill $ssh; } 2>/dev/null & watcher=$!
exec 3<&-
wait $ssh; code=$?
kill $watcher 2>/dev/null
rm -rf "$folder"
exit $code
"""
"""The shell's program; its arguments are the folder to remove, and ssh's command line."""
UP_S_MAX = 30.0
LOOK_S = 0.02
WORDS_MAX = 300
GONE_S_MAX = 5.0


class Tunnel:
    """A local socket that leads to the engine's on another host."""

    def __init__(self, url: str) -> None:
        """Open it. Raises InfrastructureError, with what ssh says, where that cannot be done."""
        self.url = url
        self.command = command_of(url)
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        folder = Path(tempfile.mkdtemp(prefix="edgebed-engine-"))
        self.socket = folder / "engine.sock"
        forwarding = ("-L", f"{self.socket}:{unquote(urlsplit(url).path) or REMOTE_SOCKET}")
        command = ("sh", "-c", WATCHING, "sh", str(folder), *self.command[:-2], *forwarding, *self.command[-2:])
        self._process = subprocess.Popen(  # noqa: S603 - a URL gives it a host and a path, never an option
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._words, start_new_session=True
        )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def words(self) -> str:
        """The last line that ssh has said, if any: it tells why a connection through the tunnel has failed."""
        self._words.seek(0)
        lines = [" ".join(line.split()) for line in self._words.read().decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")[:WORDS_MAX].rstrip(".")

    def close(self) -> None:
        """End the tunnel; once is enough, and more does no harm."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(GONE_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()
        shutil.rmtree(self.socket.parent, ignore_errors=True)

    def _wait(self) -> None:
        """Wait until the socket accepts: then ssh has been let in."""
        until = time.monotonic() + UP_S_MAX
        while self._process.poll() is None and time.monotonic() < until:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as trial:
                trial.connect(str(self.socket))
                return
            time.sleep(LOOK_S)
        said = self.words() or ("it has ended" if self._process.poll() is not None else f"nothing for {UP_S_MAX:g} s")
        raise InfrastructureError(
            f"ssh does not get to {self.url}: {said}. This has to work without a question: {_trial(self.command)}"
        )


def command_of(url: str) -> tuple[str, ...]:
    """The command line of ssh, to the host of a URL; its last two words end the options and name the host."""
    parts = urlsplit(url)
    if shutil.which("ssh") is None:
        raise InfrastructureError(f"{url} needs the program ssh, which is not on the PATH (Debian: openssh-client)")
    host = f"{parts.username}@{parts.hostname}" if parts.username else str(parts.hostname)
    port = ("-p", str(parts.port)) if parts.port else ()
    return "ssh", "-nNT", *(word for option in OPTIONS for word in ("-o", option)), *port, "--", host


def _trial(command: tuple[str, ...]) -> str:
    """What the user can try by hand."""
    port = command[command.index("-p") : -2] if "-p" in command else ()
    return " ".join(("ssh", "-o", "BatchMode=yes", *port, command[-1], "true"))
