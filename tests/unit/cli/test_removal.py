"""Runs that are removed: beside runs that begin, and where a removal breaks off."""

import shutil
from pathlib import Path

import pytest

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.journal.run_folder import RunFolder, list_runs, point_latest_anew
from edgebed.running import removal
from edgebed.running.removal import can_be_resumed, remove_run, why_kept


def begun(root: Path, **options: str) -> RunFolder:
    """A run that has no result."""
    folder = RunFolder.create(root, "tiny")
    folder.write_manifest(seed=1, runtime="simulation", command=[], trials=["asgd"], options=options)
    return folder


def test_whoever_looks_meanwhile_finds_the_whole_run_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that broke off has taken it away; the next one removes what it left."""
    first, second = begun(tmp_path), begun(tmp_path)

    def broken(path: Path) -> None:
        (path / "manifest.json").unlink()
        raise PermissionError(13, "Permission denied", str(path / "asgd"))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", broken)
        with pytest.raises(InfrastructureError, match=r"asgd: cannot be removed: Permission denied"):
            remove_run(second)
    assert [run.name for run in list_runs(tmp_path)] == ["tiny/0001"]
    assert RunFolder.find(tmp_path, "tiny").path == first.path
    again = begun(tmp_path)
    assert again.path.name == "0002"
    remove_run(again)
    assert sorted(path.name for path in (tmp_path / "tiny").iterdir()) == ["0001", "latest"]


def test_a_run_that_begins_meanwhile_is_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though `latest` was about to point to one before it."""
    begun(tmp_path)
    last = begun(tmp_path)
    point = removal.point_latest_anew

    def beginning(parent: Path) -> None:
        begun(tmp_path)
        point(parent)

    monkeypatch.setattr(removal, "point_latest_anew", beginning)
    remove_run(last)
    assert (tmp_path / "tiny/latest").readlink() == Path("0002")
    (tmp_path / "tiny/latest").unlink()
    point_latest_anew(tmp_path / "tiny")
    assert (tmp_path / "tiny/latest").readlink() == Path("0002")


def test_a_run_without_options_cannot_be_resumed(tmp_path: Path) -> None:
    """As one that died before it wrote its manifest; one whose summary is damaged may be."""
    dead, old, broken = RunFolder.create(tmp_path, "tiny"), begun(tmp_path), begun(tmp_path, runtime="simulation")
    broken.summary.write_text("{")

    assert [can_be_resumed(each) for each in (dead, old, broken)] == [False, False, True]
    assert [why_kept(each) for each in (dead, old)] == ["", ""]
    assert why_kept(broken, resumable_too=True) == ""
    with pytest.raises(ScenarioError, match="run tiny/0003 can be resumed: edgebed resume tiny/0003"):
        remove_run(broken)


def test_what_else_lies_beside_runs_stays(tmp_path: Path) -> None:
    """A file of the user's in the scenario's folder."""
    folder = begun(tmp_path)
    (tmp_path / "tiny/notes.txt").write_text("")
    remove_run(folder)

    assert [path.name for path in (tmp_path / "tiny").iterdir()] == ["notes.txt"]
