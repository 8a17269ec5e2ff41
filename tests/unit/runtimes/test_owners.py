"""Whether the controller that owns a container still runs, asked of one engine or of several, here or elsewhere."""

import types

import psutil
import pytest
from docker.errors import NotFound

from edgebed.core.process_names import own_process_name
from edgebed.runtimes.containers import owner
from edgebed.runtimes.containers.owner import Witnesses, own_container, own_name

HERE, THERE = "HERE@a", "THERE@b"


class Engine:
    """Stands in for an engine that has these containers, and whether each runs."""

    def __init__(self, name: str = HERE, **running: bool) -> None:
        self.name, self.running, self.answers = name, running, True
        self.api = types.SimpleNamespace(inspect_container=self._inspect)

    def info(self) -> dict[str, str]:
        """As the engine answers."""
        return dict(zip(("ID", "Name"), self.name.split("@"), strict=True))

    def _inspect(self, name: str) -> dict[str, dict[str, bool]]:
        if not self.answers:
            raise ConnectionResetError
        if name not in self.running:
            raise NotFound(f"no such container: {name}")
        return {"State": {"Running": self.running[name]}}


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """This machine's name."""
    place = tmp_path / "machine-id"
    place.write_text("ab12\n")
    monkeypatch.setattr(owner, "MACHINE", place)
    return place


def life(name: str, *engines: Engine, is_remote: bool = False) -> str:
    """What these engines know of an owner."""
    known = engines or (Engine(),)
    return Witnesses({engine.name: engine for engine in known}).life_of(name, is_remote=is_remote)


def test_an_owner_on_this_host_lives_as_long_as_its_process() -> None:
    """Another process under the same number, or another boot of this machine, is somebody else."""
    me = own_name(Engine(), None)
    kind, machine, boot, namespace, pid, start = me.split("/")
    unused = max(psutil.pids()) + 10_000

    assert life(me) == life(me, is_remote=True) == "lives"
    assert life(f"{kind}/{machine}/{boot}/{namespace}/{pid}/{int(start) - 100}") == "gone"
    assert life(f"{kind}/{machine}/another-boot/{namespace}/{pid}/{start}") == "gone"
    assert life(f"{kind}/{machine}/{boot}/{namespace}/{unused}/{start}") == "gone"


def test_of_a_process_on_another_host_nothing_is_known() -> None:
    """Its boot says nothing: it may well be running, and what it has here is its own."""
    boot, namespace, pid, start = own_process_name().split("/")

    assert life(f"machine/cd34/another-boot/{namespace}/{pid}/{start}") == "unknown"
    assert life(f"machine/cd34/{boot}/{namespace}/{max(psutil.pids()) + 10_000}/1") == "unknown"


def test_a_process_without_the_name_of_its_host_is_judged_on_its_own_engine_alone(machine) -> None:
    """Another boot is an earlier one, or another machine's."""
    machine.unlink()
    me = own_name(Engine(), None)
    boot, _, rest = me.removeprefix("process/").partition("/")

    assert me == f"process/{boot}/{rest}"
    assert life(me) == life(me, is_remote=True) == "lives"
    assert life(f"process/another-boot/{rest}") == "gone"
    assert life(f"process/another-boot/{rest}", is_remote=True) == "unknown"


@pytest.mark.parametrize("name", ["process/7/8", "machine/ab12/7", "somebody/7", ""])
def test_an_owner_of_whom_nothing_can_be_told_is_unknown(name) -> None:
    """It was named by another version."""
    assert life(name) == "unknown"


def test_a_process_in_another_namespace_counts_as_living() -> None:
    """Its number says nothing here."""
    boot, pid = own_process_name().split("/")[0], max(psutil.pids()) + 10_000

    assert life(f"process/{boot}/1/{pid}/1") == "lives"


def test_an_owner_in_a_container_lives_as_long_as_that_runs_on_its_own_engine() -> None:
    """Wherever what it owns is; the engine that does not know it, or does not answer, is no witness."""
    here, there = Engine(HERE), Engine(THERE, up=True, down=False)
    assert life(f"container/{THERE}/up", here, there) == "lives"
    assert life(f"container/{THERE}/down", here, there) == "gone"
    assert life(f"container/{THERE}/removed", here, there) == "gone"
    assert life(f"container/{THERE}/up", here) == "unknown"

    there.answers = False
    assert life(f"container/{THERE}/up", here, there) == "unknown"


def test_a_process_finds_the_container_it_is_in(tmp_path, monkeypatch) -> None:
    """By the files that the engine mounts; a container of another engine is none of this one's. It names itself so."""
    own = "ab" * 32
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 2 8:1 /var/lib/docker/containers/{own}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n")
    engine = Engine(**{own: True})

    assert own_container(engine, mounts) == own
    assert own_container(Engine(), mounts) is None
    assert own_name(engine, own) == f"container/{HERE}/{own}"
    mounts.write_text(f"1 2 0:99 / /var/lib/docker/containers/{own}/mounts/shm rw - tmpfs shm rw\n")
    assert own_container(engine, mounts) is None, "the host of a container is not in it"
    mounts.write_text("1 2 8:1 / / rw - ext4 /dev/sda1 rw\n")
    assert own_container(engine, mounts) is None


def test_what_bears_ones_own_name_is_left_from_an_earlier_life(monkeypatch) -> None:
    """The asker is a container that has only just begun."""
    monkeypatch.setattr(owner, "own_container", lambda engine: "up" if "up" in engine.running else None)
    here, there = Engine(HERE, up=True), Engine(THERE)

    assert life(f"container/{HERE}/up", here, there) == "gone"
