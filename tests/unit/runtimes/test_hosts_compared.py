"""What is found wrong with hosts before anything is started on them, and images by their names."""

import types
from contextlib import contextmanager

import pytest
from docker.errors import ImageNotFound

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.reports.studies.hosts_table import hosts_parts
from edgebed.reports.writing.page import Grid, plain
from edgebed.runtimes.containers.hosts import check, images
from edgebed.runtimes.containers.hosts.check import HostCheck, check_hosts
from edgebed.runtimes.containers.hosts.images import bring_images

SERVER, WORKER = "server:1", "worker:1"


class Engine:
    """Stands in for a host's engine; nothing can be started on it."""

    def __init__(self, name: str, *, swarm: str = "worker", machine: str = "x86_64", **ids: str) -> None:
        self.name = name
        self.images = {"server": "s1", "worker": "w1"} | ids
        self.swarm = {"LocalNodeState": "active", "NodeID": name, "ControlAvailable": swarm == "manager"}
        if swarm == "none":
            self.swarm |= {"LocalNodeState": "inactive", "NodeID": ""}
        self.machine = machine
        self.gateway = "127.0.0.1"
        self.members = ["a", "b"]
        self.api = types.SimpleNamespace(
            inspect_image=self._inspect_image,
            nodes=lambda: [{"ID": member} for member in self.members],
            containers=lambda **_: [],
            networks=lambda **_: [],
            inspect_network=lambda _: {"IPAM": {"Config": [{"Gateway": self.gateway}]}},
            timeout=60,
        )

    def info(self):
        """As the engine answers."""
        return {
            "ID": self.name, "Name": self.name, "ServerVersion": "28.0", "Architecture": self.machine,
            "CgroupVersion": "2", "NCPU": 4, "MemTotal": 2**30, "Swarm": self.swarm,
        }  # fmt: skip

    def version(self):
        """As the engine answers."""
        return {"ApiVersion": "1.48"}

    def _inspect_image(self, name):
        found = self.images[name.partition(":")[0]]
        if not found:
            raise ImageNotFound(name)
        return {"Id": found, "Size": 10**6}


@pytest.fixture
def look(monkeypatch, tmp_path):
    """Function that checks these engines, by host; nothing is started on them, since that would fail."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("EDGEBED_SERVER_IMAGE", SERVER)
    monkeypatch.setenv("EDGEBED_WORKER_IMAGE", WORKER)
    monkeypatch.setattr(check._Visit, "hear", lambda *_: {"netem": True})
    monkeypatch.setattr(check, "_measure", lambda *_: None)

    def checked(engines, problems=None):
        @contextmanager
        def connected(addresses, connections):
            yield engines, problems or {}

        monkeypatch.setattr(check, "connected", connected)
        monkeypatch.setattr(images, "connected", connected)
        addresses = [EngineAddress(host) for host in engines] + list(problems or ())
        return check_hosts(addresses, lambda _: None)

    return checked


def test_hosts_that_go_together_have_no_problem(look) -> None:
    """What their engines say is in the table, a row each."""
    checks = look({"a": Engine("a", swarm="manager"), "b": Engine("b")})

    assert [each.problems for each in checks] == [[], []]
    first = next(part for part in hosts_parts(checks) if isinstance(part, Grid)).rows[0]
    assert [plain(cell) for cell in first] == [
        "a", "28.0", "1.48", "x86_64", "v2", "4", "1.07 GB", "yes", "there", "manager", "–", "–", "–"
    ]  # fmt: skip


def test_a_controller_that_would_not_be_on_the_first_host_is_a_problem_of_it(look) -> None:
    """Its nodes would not reach it: said before a run tries."""
    first, other = Engine("a", swarm="manager"), Engine("b")
    first.gateway = other.gateway = "192.0.2.1"
    checks = look({"a": first, "b": other})

    assert [len(each.problems) for each in checks] == [1, 0]
    assert "another network namespace (here is no 192.0.2.1)" in checks[0].problems[0]
    assert "scripts/swarm run" in checks[0].problems[0]


@pytest.mark.parametrize(
    ("engines", "problem"),
    [
        ({"a": Engine("a", swarm="none"), "b": Engine("b")}, "a: the first host has to manage the swarm of all"),
        ({"a": Engine("a"), "b": Engine("b")}, "a: the first host has to manage the swarm of all"),
        ({"a": Engine("a", swarm="manager"), "b": Engine("b", swarm="none")},
         "b: it is not in the swarm of a. On it: what `docker swarm join-token worker` says on a"),
        ({"a": Engine("a", swarm="manager"), "c": Engine("c")},
         "c: it is not in the swarm of a. On it: docker swarm leave, and then what"),
        ({"a": Engine("a", swarm="manager", worker=""), "b": Engine("b")},
         "a: there is no image worker:1: scripts/build-images builds it"),
        ({"a": Engine("a", swarm="manager"), "b": Engine("b", worker="")},
         "b: there is no image worker:1: edgebed hosts images brings it over"),
        ({"a": Engine("a", swarm="manager"), "b": Engine("b", worker="w2")},
         "b: its image worker:1 is another than a's: edgebed hosts images brings it over"),
        ({"a": Engine("a", swarm="manager"), "b": Engine("b", worker="", machine="aarch64")},
         "b: there is no image worker:1, and a's is for x86_64: on this host scripts/build-images builds it"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_told_with_what_to_do(look, engines, problem) -> None:
    """Of the host that it is to be done on, and of no other."""
    found = [f"{each.host}: {problem}" for each in look(engines) for problem in each.problems]

    assert len(found) == 1
    assert found[0].startswith(problem)


def test_a_host_of_another_machine_may_have_other_images(look) -> None:
    """Built there from the same code, which nodes show when they join."""
    checks = look({"a": Engine("a", swarm="manager"), "b": Engine("b", server="s2", worker="w2", machine="aarch64")})

    assert [each.problems for each in checks] == [[], []]


def test_a_host_alone_needs_no_swarm(look) -> None:
    """Its nodes reach each other without one."""
    assert [each.problems for each in look({"a": Engine("a", swarm="none")})] == [[]]


def test_a_host_that_does_not_answer_is_in_the_table(look) -> None:
    """With its reason; the others are checked."""
    gone = {EngineAddress("b"): InfrastructureError("host b: no container engine answers: Connection refused")}

    a, b = look({"a": Engine("a", swarm="manager")}, gone)

    assert a.problems == []
    assert b == HostCheck("b", "local", problems=["no container engine answers: Connection refused"])


@pytest.mark.parametrize(
    ("name", "parts", "is_pulled"),
    [
        ("edgebed-worker:main", ("edgebed-worker", "main"), False),
        ("lab/edgebed-worker", ("lab/edgebed-worker", "latest"), False),
        ("registry.example/edgebed-worker:2", ("registry.example/edgebed-worker", "2"), True),
        ("localhost:5000/worker", ("localhost:5000/worker", "latest"), True),
        ("localhost/worker:1", ("localhost/worker", "1"), True),
        ("10.0.0.3:5000/a/worker@sha256:ab", ("10.0.0.3:5000/a/worker", "sha256:ab"), True),
    ],
)
def test_an_image_with_a_registry_in_its_name_is_pulled(name, parts, is_pulled) -> None:
    """A registry is known by a dot or a port, or is this machine, as docker knows it."""
    assert images._name_and_tag(name) == parts
    assert bool(images.HAS_REGISTRY.match(name)) is is_pulled


def test_images_that_the_first_host_has_not_cannot_be_brought(look) -> None:
    """All are named, with what makes them; hosts that have all are told of."""
    look({"a": Engine("a"), "b": Engine("b")})
    said: list[str] = []
    assert bring_images([EngineAddress("a"), EngineAddress("b")], said.append) == []
    assert said == ["host b: has all images"]

    look({"a": Engine("a", server="", worker=""), "b": Engine("b")})
    assert bring_images([EngineAddress("a"), EngineAddress("b")], said.append) == [
        "host a has no images server:1, worker:1: scripts/build-images"
    ]
