"""`edgebed down` keeps logs that runs can be resumed from, and removes with `--logs` those of its folder of runs."""

import types
from pathlib import Path

import pytest

from edgebed.runtimes.containers.labels import LABEL_OWNER, LABEL_RUN, LABEL_TRIAL
from edgebed.runtimes.containers.leftovers import remove_leftovers
from edgebed.runtimes.containers.server_volume import LogKeeping, prepare_volume

GONE = "machine/m/another-boot/1/2/3"


class Engine:
    """Stands in for a host's engine that has volumes alone: labels by name."""

    is_remote = False

    def __init__(self, host: str) -> None:
        self.host = host
        self.volumes: dict[str, dict[str, str]] = {}
        self.api = types.SimpleNamespace(
            containers=lambda **_: [],
            networks=lambda **_: [],
            volumes=lambda **_: {
                "Volumes": [{"Name": name, "Labels": labels} for name, labels in self.volumes.items()]
            },
            create_volume=self._create,
            remove_volume=self.volumes.pop,
        )

    def info(self):
        """As the engine answers."""
        return {"ID": self.host, "Name": self.host}

    def _create(self, name, labels):
        return {"Labels": self.volumes.setdefault(name, labels)}


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """This machine is the one that GONE was on."""
    (tmp_path / "machine-id").write_text("m\n")
    monkeypatch.setattr("edgebed.runtimes.containers.owner.MACHINE", tmp_path / "machine-id")


@pytest.fixture
def engine():
    """The user's own."""
    return Engine("")


def a_log(engine: Engine, root: Path, owner: str = GONE) -> str:
    """The volume of a run in a folder of runs, whose controller was killed."""
    labels = {LABEL_OWNER: owner, LABEL_RUN: "far/0001", LABEL_TRIAL: "asgd"}
    return prepare_volume(engine, root / "far/0001/asgd/server-log", labels)


def down(root: Path, *, removes: bool = False, hosts=None, **engines: Engine) -> tuple[list[str], list[str]]:
    """What is said of what was removed, and of what was kept."""
    said, kept = [], []
    by_host = {engine.host: engine for engine in engines.values()}
    remove_leftovers(said.append, kept.append, logs=LogKeeping(root, removes=removes, hosts=hosts), engines=by_host)
    return said, kept


def test_a_log_that_a_run_can_be_resumed_from_is_kept_and_named(engine, tmp_path, monkeypatch) -> None:
    """Whichever way the folder of runs is written."""
    a_log(engine, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)

    said, kept = down(Path("runs"), engine=engine)

    assert said == []
    (line,) = kept
    assert line.startswith("kept the log of the server of far/0001, trial asgd: `edgebed resume far/0001` goes on from")
    assert line.endswith("`edgebed down --logs` removes it")
    assert engine.volumes


def test_it_goes_where_that_is_asked_for(engine, tmp_path) -> None:
    """What a resume does then is said."""
    a_log(engine, tmp_path)

    said, kept = down(tmp_path, removes=True, engine=engine)

    (line,) = said
    assert line.startswith("removed the log of the server of far/0001, trial asgd: ")
    assert line.endswith("`edgebed resume --from-checkpoint` goes on from its last checkpoint")
    assert kept == []
    assert not engine.volumes


@pytest.mark.parametrize("removes", [True, False])
def test_logs_of_other_folders_of_runs_are_listed_and_kept(engine, tmp_path, removes) -> None:
    """Another checkout's run may have the same name."""
    name = a_log(engine, tmp_path / "theirs")

    said, kept = down(tmp_path / "mine", removes=removes, engine=engine)

    assert said == []
    assert [line.partition("its run, ")[2] for line in kept] == [
        f"in {tmp_path}/theirs/far/0001, is none of {tmp_path}/mine (docker volume rm {name} removes it)",
    ]
    assert len(engine.volumes) == 1


@pytest.mark.parametrize("removes", [True, False])
def test_a_log_whose_run_is_gone_goes_but_not_a_containers(engine, tmp_path, removes) -> None:
    """A controller in a container had files of its own by the same names: nobody here sees whether its run is gone."""
    mine = a_log(engine, tmp_path)
    theirs = "edgebed-log-theirs"
    engine.volumes[theirs] = engine.volumes[mine] | {LABEL_OWNER: "container/@/gone"}
    (tmp_path / "far/0001").rename(tmp_path / "elsewhere")
    engine.api.inspect_container = lambda _: {"State": {"Running": False}}

    said, kept = down(tmp_path, removes=removes, engine=engine)

    assert said == ["removed the log of the server of far/0001, trial asgd: its run's folder is gone"]
    assert len(kept) == 1
    assert list(engine.volumes) == [theirs]


def test_a_log_that_the_run_does_not_name_is_not_its_own(engine, tmp_path) -> None:
    """Of a run in another container, say, where the folder of runs has the same path."""
    name = a_log(engine, tmp_path)
    (tmp_path / "far/0001/asgd/server-log/volume").write_text("another\n")

    said, _ = down(tmp_path, removes=True, engine=engine)

    assert said == []
    assert list(engine.volumes) == [name]


def test_with_hosts_logs_are_looked_for_on_these_alone(engine, tmp_path) -> None:
    """The user's own engine has others', whom nobody named."""
    far = Engine("b")
    a_log(engine, tmp_path / "here")
    a_log(far, tmp_path / "there")
    root = tmp_path

    said, kept = down(root, removes=True, hosts=frozenset({"b"}), engine=engine, far=far)

    assert len(said) == 1
    assert kept == []
    assert engine.volumes
    assert not far.volumes
