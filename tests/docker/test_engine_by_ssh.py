"""An engine behind ssh: a real sshd on loopback leads to this machine's engine."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.engine import attached, connect, conversing, engine_id
from edgebed.runtimes.containers.project import ImageNames

DEADLINE_S = 20.0
ECHO = "import sys\nfor line in sys.stdin: print(2 * line.strip(), flush=True)"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory) -> Iterator[Path]:
    """A folder with what is needed to be let in as `far`: an `ssh` first on the PATH reads its configuration there."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("no sshd: Debian's packages openssh-server and openssh-client have what this needs")
    folder = tmp_path_factory.mktemp("ssh")
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    folder.joinpath("known").write_text(f"far {folder.joinpath('host.pub').read_text()}")
    folder.joinpath("sshd_config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
        "PermitRootLogin yes\n"
    )
    # sshd is a program that ssh starts and talks to by a pipe: no port, and it is gone with its connection
    folder.joinpath("ssh_config").write_text(
        f"Host far\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
        f"  HostKeyAlias far\n  ProxyCommand {program} -i -f {folder}/sshd_config -E {folder}/log\n"
    )
    own = folder / "bin/ssh"
    own.parent.mkdir()
    own.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    own.chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd gives its rights up in there
    return folder


@pytest.fixture
def far(sshd: Path, monkeypatch) -> EngineAddress:
    """This machine's engine as another host's."""
    monkeypatch.setenv("PATH", f"{sshd}/bin:{os.environ['PATH']}")
    return EngineAddress("b", "ssh://far")


@pytest.fixture
def container(engine) -> Iterator[str]:
    """One that says twice what it hears; not started yet."""
    made = engine.client.api.create_container(
        ImageNames.named().server, entrypoint=["python", "-c", ECHO], stdin_open=True
    )["Id"]
    yield made
    engine.client.api.remove_container(made, force=True)


def test_an_engine_behind_ssh_is_like_one_here(engine, far, container) -> None:
    """Calls and attached containers, both ways at once; nothing of the tunnel is left."""
    with closing(connect(far)) as client:
        assert client.is_remote
        assert engine_id(client) == engine_id(engine.client)
        with attached(client, container) as output, conversing(client, container) as talk:
            client.api.start(container)
            for word in (b"ab", b"cd"):
                talk.say(word)
                assert talk.hear(DEADLINE_S) == 2 * word
            said = b""
            while len(said) < len(b"abab\n"):
                said += next(output)
            assert b"abab\ncdcd\n".startswith(said)
        folder, process = client.tunnel.socket.parent, client.tunnel._process
    assert not folder.exists()
    assert process.poll() is not None


def test_a_connection_that_breaks_ends_what_waits_for_it(far, container) -> None:
    """As when the host is gone: nobody waits for ever."""
    with closing(connect(far)) as client, conversing(client, container) as talk:
        client.api.start(container)
        talk.say(b"ab")
        assert talk.hear(DEADLINE_S) == b"abab"
        for child in psutil.Process(client.tunnel._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended with the one before it
                child.kill()
        assert talk.hear(DEADLINE_S) == b""


def test_the_tunnel_ends_with_its_process_however_that_ends(far, sshd) -> None:
    """Killed, it cannot tidy up: folder and ssh go all the same."""
    code = (
        "import sys; from edgebed.core.planned.hosts import EngineAddress\n"
        "from edgebed.runtimes.containers.engine import connect\n"
        "print(connect(EngineAddress('b', 'ssh://far')).tunnel.socket, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        place = Path(process.stdout.readline().decode().strip())
        assert place.exists()
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + DEADLINE_S
    while place.parent.exists() and time.monotonic() < until:
        time.sleep(0.05)

    assert not place.parent.exists()
    assert [
        each for each in psutil.process_iter(["cmdline"]) if str(place) in " ".join(each.info["cmdline"] or ())
    ] == []


def test_a_socket_that_is_not_there_is_told_in_the_words_of_ssh(far) -> None:
    """The address says where else it is."""
    with pytest.raises(InfrastructureError) as caught:
        connect(EngineAddress("b", "ssh://far/nowhere/docker.sock"))

    assert str(caught.value).startswith("host b: no container engine answers at ssh://far/nowhere/docker.sock: channel")
    assert "open failed" in str(caught.value)
