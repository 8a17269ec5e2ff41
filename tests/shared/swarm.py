"""Several hosts on this machine, made by scripts/swarm, for the tests of fleets over several engines."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from one_at_a_time import one_at_a_time

from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.limits import CGROUP_PARENT

SCRIPT = Path(__file__).parents[2] / "scripts/swarm"
FOLDER = Path("/run/edgebed-swarm")
PROGRAMS = ("dockerd", "docker", "ip", "nsenter", "unshare", "openssl")


class Swarm:
    """Hosts e1, e2, …, each an engine; e1 is the manager."""

    def __init__(self, number: int) -> None:
        self.hosts = tuple(f"e{place}" for place in range(1, number + 1))

    def address(self, host: str) -> EngineAddress:
        """The engine of a host, by its socket."""
        return EngineAddress(host, f"unix://{FOLDER}/{host}.sock")

    def namespace(self, host: str) -> Path:
        """The network namespace of a host, for a process that is to run there."""
        return Path(f"/run/netns/edgebed-swarm-{host}")

    @property
    def addresses(self) -> tuple[EngineAddress, ...]:
        """The engines of all hosts."""
        return tuple(map(self.address, self.hosts))

    def by_tls(self) -> EngineAddress:
        """The engine of e2 by TCP and TLS."""
        return EngineAddress("e2", "tcp://10.98.0.2:2376", str(FOLDER / "tls"))

    def write_hosts(self, path: Path, more: Mapping[str, str] | None = None) -> Path:
        """Write a file of hosts; `more` has settings of hosts as YAML, beside their engine."""
        lines = []
        for address in self.addresses:
            extra = (more or {}).get(address.host, "")
            lines.append(f"{address.host}: {{ engine: '{address.engine}'{', ' if extra else ''}{extra} }}")
        path.write_text("\n".join(lines) + "\n")
        return path

    def kill(self, host: str) -> None:
        """Take a host's power away: all its processes are gone at once."""
        _script("kill", host[1:])

    def start(self, host: str) -> None:
        """Switch a host on again; its engine answers some seconds later."""
        _script("start", host[1:])

    def cut(self, host: str) -> None:
        """Pull a host's cable; its engine still answers on the socket."""
        _script("cut", host[1:])

    def heal(self, host: str) -> None:
        """Plug a host's cable in again."""
        _script("heal", host[1:])


@functools.cache
def why_no_swarm() -> str | None:
    """What is missing for several hosts on this machine; None if nothing is."""
    if os.geteuid() != 0:
        return "no swarm of engines: needs root"
    os.environ["PATH"] = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"no swarm of engines: needs {missing[0]} (.ci/engine installs it)" if missing else None


@contextmanager
def running_swarm(number: int = 3) -> Iterator[Swarm]:
    """So many hosts, with the nodes' images of the machine's own engine; nothing is left afterwards. One at a time."""
    with one_at_a_time("swarm"):
        _script("down")  # of whoever was killed
        _script("up", str(number))
        before = os.environ.get(CGROUP_PARENT)
        os.environ[CGROUP_PARENT] = ""  # what an engine has in its own cgroup, `down` finds
        try:
            yield Swarm(number)
        finally:
            os.environ.pop(CGROUP_PARENT)
            if before is not None:
                os.environ[CGROUP_PARENT] = before
            _script("down")


def _script(*words: str) -> None:
    """Run scripts/swarm; what it says is in the error of one that fails."""
    with Path(os.devnull).open() as nothing:
        done = subprocess.run(
            [SCRIPT, *words], stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False
        )
    assert done.returncode == 0, f"scripts/swarm {' '.join(words)}: {done.stdout.decode(errors='replace')}"
