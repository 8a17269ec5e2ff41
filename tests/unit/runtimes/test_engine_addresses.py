"""Where an engine is: variables, contexts of docker and addresses of hosts, as real files."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers import engine
from edgebed.runtimes.containers.contexts import USUAL, endpoint_of
from edgebed.runtimes.containers.engine import connect, connected, is_there
from edgebed.scenario.hosts import HostSection, host_problems


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch) -> Path:
    """The folder of docker's own configuration, empty; no variable is set."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "docker"
    folder.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    return folder


def make_context(settings: Path, name: str, host: str, *, certificates: tuple[str, ...] = (), **more: bool) -> None:
    """Write a context as `docker context create` does."""
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = settings / "contexts/meta" / key
    meta.mkdir(parents=True)
    text = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False} | more}}
    (meta / "meta.json").write_text(json.dumps(text))
    tls = settings / "contexts/tls" / key / "docker"
    if certificates:
        tls.mkdir(parents=True)
    for each in certificates:
        (tls / each).write_text("-")


def test_without_any_setting_it_is_the_usual_socket(settings, monkeypatch, tmp_path) -> None:
    """Also for a host that is called local; whether one is there is whether the socket is."""
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "docker.sock")
    assert endpoint_of(None).url == endpoint_of(EngineAddress("a", "local")).url == USUAL
    assert not endpoint_of(None).is_remote
    assert not is_there()
    (tmp_path / "docker.sock").touch()
    assert is_there()


def test_a_context_by_variable_is_found_without_a_configuration(settings, monkeypatch, tmp_path) -> None:
    """The file config.json need not exist; the certificates beside the context are taken."""
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "docker.sock")
    make_context(settings, "lab", "tcp://10.0.0.3:2376", certificates=("ca.pem", "cert.pem", "key.pem"))
    monkeypatch.setenv("DOCKER_CONTEXT", "lab")

    found = endpoint_of(None)

    assert (found.url, found.told_by, found.is_remote) == ("tcp://10.0.0.3:2376", "the context 'lab'", True)
    assert found.tls.verify is True
    assert Path(found.tls.ca_cert).parent == Path(found.tls.cert[0]).parent
    assert is_there()


def test_the_current_context_counts_where_no_variable_is_set(settings, monkeypatch) -> None:
    """A variable wins, and DOCKER_HOST wins over both, as for the docker command."""
    make_context(settings, "lab", "ssh://lab")
    make_context(settings, "den", "unix:///run/den.sock")
    (settings / "config.json").write_text(json.dumps({"currentContext": "lab"}))

    by_configuration = endpoint_of(None).url
    monkeypatch.setenv("DOCKER_CONTEXT", "den")
    by_context = endpoint_of(None).url
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    by_default = endpoint_of(None).url
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.9:2375")

    assert (by_configuration, by_context, by_default) == ("ssh://lab", "unix:///run/den.sock", USUAL)
    assert endpoint_of(None).url == "tcp://10.0.0.9:2375"


def test_a_context_by_address_needs_no_variable(settings) -> None:
    """Without certificates there is no TLS; a CA alone is a CA alone."""
    make_context(settings, "lab", "unix:///run/lab.sock")
    make_context(settings, "den", "tcp://10.0.0.4:2376", certificates=("ca.pem",), SkipTLSVerify=True)

    lab, den = (endpoint_of(EngineAddress("d", f"context:{name}")) for name in ("lab", "den"))

    assert (lab.url, lab.tls) == ("unix:///run/lab.sock", None)
    assert (den.tls.cert, den.tls.verify) == (None, False)


@pytest.mark.parametrize("asked_by", ["variable", "configuration", "address"])
def test_a_context_that_is_not_there_is_an_error(settings, monkeypatch, asked_by) -> None:
    """It names those that there are; the local engine is never taken instead."""
    make_context(settings, "lab", "ssh://lab")
    address = None
    if asked_by == "variable":
        monkeypatch.setenv("DOCKER_CONTEXT", "lap")
    elif asked_by == "configuration":
        (settings / "config.json").write_text(json.dumps({"currentContext": "lap"}))
    else:
        address = EngineAddress("d", "context:lap")

    with pytest.raises(InfrastructureError, match=r"there is no context 'lap' of docker.*there are: default, lab"):
        connect(address)
    assert is_there(), "one is named, so a command must not go on as if there were none"


@pytest.mark.parametrize("text", ["{", "[]", '{"Endpoints": []}'])
def test_a_broken_context_is_said_to_be_broken(settings, text) -> None:
    """With its file."""
    make_context(settings, "lab", "ssh://lab")
    (meta,) = settings.glob("contexts/meta/*/meta.json")
    meta.write_text(text)

    with pytest.raises(InfrastructureError, match=r"host d: .*meta\.json: the context 'lab' .* cannot be read"):
        connect(EngineAddress("d", "context:lab"))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_configuration_is_said_to_be_broken(settings, text) -> None:
    """It may name another engine than the local one."""
    (settings / "config.json").write_text(text)

    with pytest.raises(InfrastructureError, match=r"config\.json: the configuration of docker cannot be read"):
        connect()


def test_certificates_of_a_host_must_be_there(tmp_path) -> None:
    """All three, in the folder that is named."""
    (tmp_path / "ca.pem").touch()

    with pytest.raises(InfrastructureError, match=rf"host c: tls: there is no {tmp_path}/cert\.pem"):
        connect(EngineAddress("c", "tcp://127.0.0.1:1", str(tmp_path)))


def problem_of(engine: str, tls: str = "") -> str:
    """What a scenario says of such a host; empty: nothing."""
    try:
        host = HostSection.model_validate({"engine": engine, "tls": tls})
    except ValidationError as error:
        return str(error)
    return "".join(problem.message for problem in host_problems({"a": host}))


@pytest.mark.parametrize(
    "text", ["local", "context:lab-2", "unix:///run/x.sock", "tcp://10.0.0.3:2376", "tcp://[fd00::1]:2376", "ssh://b",
             "ssh://me@b.example:22", "ssh://b/run/user/1000/docker.sock"],
)  # fmt: skip
def test_an_address_has_one_of_these_forms(text) -> None:
    """Nothing is asked of the engine."""
    assert problem_of(text) == ""


@pytest.mark.parametrize(
    "text", ["", "locally", "10.0.0.3", "tcp://10.0.0.3", "http://b:2375", "ssh://", "ssh://-oProxyCommand=x",
             "context:", "ssh://b -v", "ssh://me:secret@b", "ssh://-b@c", "context:../x", "unix://run/x.sock"],
)  # fmt: skip
def test_any_other_address_is_refused_with_the_forms(text) -> None:
    """Among them what ssh would take for an option."""
    assert "ssh://[user@]host[:port]" in problem_of(text)


def test_certificates_without_tcp_are_refused() -> None:
    """They would have no effect."""
    assert "only with tcp://" in problem_of("ssh://b", "/certificates")
    assert problem_of("tcp://10.0.0.3:2376", "/certificates") == ""


def test_who_does_not_answer_is_told_with_the_host() -> None:
    """Of several engines each has its own answer; two names of one that is not there are two problems."""
    addresses = EngineAddress("b", "tcp://127.0.0.1:1"), EngineAddress("c", "context:lab")

    with connected(addresses) as (clients, problems):
        assert clients == {}
    assert str(problems[addresses[0]]).startswith("host b: no container engine answers: Connection refused")
    assert "Its engine is tcp://127.0.0.1:1: is" in str(problems[addresses[0]])
    assert str(problems[addresses[1]]).startswith("host c: there is no context 'lab' of docker")


def test_ssh_says_why_it_does_not_get_there() -> None:
    """A host that refuses; the program that failed is named with what to try."""
    if subprocess.run(["sh", "-c", "command -v ssh"], stdout=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no ssh: Debian's package openssh-client has it")
    with pytest.raises(InfrastructureError) as caught:
        connect(EngineAddress("b", "ssh://nobody@127.0.0.1:1"))

    assert str(caught.value).startswith("host b: ssh does not get to ssh://nobody@127.0.0.1:1: ssh: connect to host")
    assert str(caught.value).endswith("ssh -o BatchMode=yes -p 1 nobody@127.0.0.1 true")


def test_without_ssh_its_package_is_named(monkeypatch) -> None:
    """A host by ssh needs it, and nothing else does."""
    monkeypatch.setenv("PATH", "")

    with pytest.raises(InfrastructureError, match=r"host b: .*the program ssh, which is not on the PATH"):
        connect(EngineAddress("b", "ssh://b"))
