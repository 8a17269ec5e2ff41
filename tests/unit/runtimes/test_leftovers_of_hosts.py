"""What controllers have left on several hosts is removed from all of them, and what may be somebody's is kept."""

import types
from contextlib import contextmanager

import pytest
import requests
from command_line import command_line
from docker.errors import APIError, NotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.emulation import cgroups
from edgebed.runtimes.containers import leftovers, register
from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN
from edgebed.runtimes.containers.leftovers import remove_leftovers
from edgebed.runtimes.containers.owner import own_name

GONE = "container/a@a/gone"


class Engine:
    """Stands in for a host's engine: its containers and networks by name, each with its owner."""

    def __init__(self, host: str, containers=None, networks=None, *, is_manager: bool = True) -> None:
        self.host, self.is_remote, self.is_manager = host, True, is_manager
        self.containers, self.networks = dict(containers or {}), dict(networks or {})
        self.fails = ""
        self.busy = 0
        """How often the swarm says that a network is in use."""
        self.api = types.SimpleNamespace(
            containers=lambda **_: self._listed(self.containers),
            networks=lambda **_: self._listed(self.networks, Scope="swarm"),
            volumes=lambda **_: {"Volumes": None},
            inspect_container=self._inspect,
            remove_container=self._remove_container,
            inspect_network=lambda _: {"Containers": None},
            remove_network=self._remove_network,
        )

    def info(self):
        """As the engine answers."""
        return {"ID": self.host, "Name": self.host, "Swarm": {"ControlAvailable": self.is_manager}}

    def _listed(self, things, **more):
        if self.fails == "list":
            raise APIError("out of order")
        labels = {name: {LABEL_OWNER: owner, LABEL_RUN: "far/0001"} for name, owner in things.items()}
        return [{"Id": name, "Name": name, "Names": [f"/{name}"], "Labels": labels[name]} | more for name in things]

    def _inspect(self, name):
        if name not in self.containers:
            raise NotFound(name)
        return {"State": {"Running": True}}

    def _remove_container(self, name, **_):
        if self.fails == "remove":
            raise ConnectionResetError("Connection reset by peer")
        del self.containers[name]

    def _remove_network(self, name):
        assert self.is_manager, "no other may"
        if self.busy:
            self.busy -= 1
            refused = requests.Response()
            refused.status_code = 400
            raise APIError("refused", response=refused, explanation=f"network {name} is in use by task 1")
        del self.networks[name]


@pytest.fixture
def hosts():
    """Two hosts with containers of a controller on the first that is gone; the network is listed by both."""
    a = Engine("a", {"server": GONE, "edge-0": GONE}, {"data": GONE})
    return {"a": a, "b": Engine("b", {"edge-1": GONE}, {"data": GONE}, is_manager=False)}


def test_what_a_controller_that_is_gone_has_left_goes_on_all_hosts(hosts) -> None:
    """One line says it; the network is removed by the swarm's manager, once."""
    said: list[str] = []

    assert remove_leftovers(said.append, engines=hosts) == 4

    assert said == ["removed 3 containers and 1 network of far/0001 on a, b, whose controller is gone"]
    assert not hosts["a"].containers
    assert not hosts["a"].networks
    assert not hosts["b"].containers


def test_a_network_is_removed_when_the_swarm_has_let_go_of_it(hosts, monkeypatch) -> None:
    """The manager hears a moment later that a container of another host has left it."""
    monkeypatch.setattr(leftovers, "LOOK_S", 0.0)
    hosts["a"].busy = 3

    remove_leftovers(lambda _: None, engines=hosts)

    assert not hosts["a"].networks


def test_a_network_that_the_swarm_keeps_is_told_of(hosts, monkeypatch) -> None:
    """A host with a container in it may be gone for good."""
    monkeypatch.setattr(leftovers, "LET_GO_S", 0.0)
    hosts["a"].busy = 1000
    said: list[str] = []

    assert remove_leftovers(said.append, engines=hosts) == 3

    assert "the swarm keeps the network data: a container of a host that does not answer is in it" in said[0]
    assert said[1] == "removed 3 containers of far/0001 on a, b, whose controller is gone"


@pytest.mark.parametrize("owner", ["container/a@a/up", "container/z@z/who", "machine/other/b/n/1/1", "process/b/n/1/1"])
def test_what_may_be_a_living_controllers_is_kept(owner) -> None:
    """Nodes here of a controller there: one that is known to run, and those whose host nobody here can ask."""
    engines = {"a": Engine("a", {"up": "container/a@a/up"}), "b": Engine("b", {"edge-1": owner})}
    said, kept = [], []

    assert remove_leftovers(said.append, kept.append, engines=engines) == 0

    assert engines["b"].containers
    assert said == []
    reason = "seems to be running" if owner.endswith("/up") else "cannot be told from here"
    assert any("of far/0001 on" in line and reason in line for line in kept)


@pytest.mark.parametrize("failure", ["list", "remove"])
def test_a_host_that_fails_is_told_of_and_stops_nobody_else(hosts, failure) -> None:
    """Whether it fails at once or in the middle."""
    hosts["b"].fails = failure
    said: list[str] = []

    remove_leftovers(said.append, engines=hosts)

    assert not hosts["a"].containers
    assert not hosts["a"].networks
    assert any(line.startswith("what earlier runs have left on b: ") for line in said)


def test_the_only_host_that_fails_is_an_error(hosts) -> None:
    """Nothing was done, and somebody may depend on it."""
    hosts["a"].fails = "list"

    with pytest.raises(InfrastructureError, match="what earlier runs have left on a"):
        remove_leftovers(lambda _: None, engines={"a": hosts["a"]})


B, C = EngineAddress("b", "ssh://b"), EngineAddress("c", "ssh://c")


@pytest.fixture
def dead(tmp_path, monkeypatch):
    """A controller that used hosts b and c, and was killed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(register, "own_process_name", lambda: "another-boot/1/2/3")
    register.note_containers((B, C))
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "edgebed/controllers/another-boot_1_2_3"


def test_a_controller_that_was_killed_is_known_with_its_hosts(dead) -> None:
    """A living one is not; a damaged file has no hosts in it."""
    register.note_containers((EngineAddress("a"),))

    assert register.are_left_behind()
    assert register.engines_left_behind() == (B, C)
    dead.write_bytes(b"")
    assert register.are_left_behind()
    assert register.engines_left_behind() == ()


def test_hosts_of_a_killed_controller_are_looked_at_by_any_command(dead, monkeypatch) -> None:
    """Beside the user's own engine; when all have answered, the controller is forgotten."""
    asked, problems = [], {}

    @contextmanager
    def connected(addresses, _):
        asked.append(tuple(addresses))
        yield {"": Engine("a")}, problems

    monkeypatch.setattr(leftovers, "connected", connected)
    monkeypatch.setattr(leftovers, "is_there", lambda: True)
    said: list[str] = []
    problems[C] = InfrastructureError("host c: no container engine answers: Connection refused.")

    remove_leftovers(said.append)

    assert asked == [(B, C, None)]
    assert said == [f"{problems[C]} What earlier runs have left there stays; edgebed down tries again"]
    assert dead.exists()
    assert not register.are_left_behind(), "each command would wait for the host again"

    monkeypatch.setattr(register, "AGAIN_S", -1.0)
    remove_leftovers(said.append)
    assert register.are_left_behind(), "when the time has come it is looked for again"
    problems.clear()
    remove_leftovers(said.append)
    assert not dead.exists()


@pytest.mark.parametrize(("answers", "code", "last"), [
    ((), 3, "error: no engine answers on b, c: nothing is removed there"),
    ((B,), 0, "nothing to remove where an engine answers"),
    ((B, C), 0, "nothing to remove"),
])  # fmt: skip
def test_down_does_not_call_hosts_empty_that_it_has_not_seen(
    monkeypatch, capsys, tmp_path, answers, code, last
) -> None:
    """Of those that are named at least one has to answer; who does not is told, with what is wrong."""

    @contextmanager
    def connected(addresses, _):
        away = {each: InfrastructureError(f"host {each.host}: no") for each in (B, C) if each not in answers}
        yield {each.host: Engine(each.host) for each in answers} | {"": Engine("a")}, away

    monkeypatch.setattr(leftovers, "connected", connected)
    monkeypatch.setattr(leftovers, "is_there", lambda: True)
    monkeypatch.setattr(leftovers, "engines_left_behind", lambda: ())
    monkeypatch.setattr(cgroups, "remove_leftovers", lambda _: 0)
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("".join(f"{each.host}: {{ engine: '{each.engine}' }}\n" for each in (B, C)))
    found, out, err = command_line(monkeypatch, capsys)("down", "--hosts", hosts, "--runs-dir", tmp_path)

    assert (found, (out + err).splitlines()[-1]) == (code, last)
    assert out.count("What earlier runs have left there stays") == 2 - len(answers)


def test_an_owner_here_that_lives_keeps_what_it_has_there() -> None:
    """The controller is this process, a host's own."""
    engines = {"b": Engine("b")}
    engines["b"].containers = {"edge-0": own_name(engines["b"], None)}
    kept: list[str] = []

    assert remove_leftovers(lambda _: None, kept.append, engines=engines) == 0

    assert kept == ["kept 1 container of far/0001 on b: its controller seems to be running"]
