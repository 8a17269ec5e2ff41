"""Run folders: numbers, links, names, and what a broken disk does."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError, unwritten
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder, TrialFolder, list_runs, runs_root, write_atomically, writing


def test_numbers_count_up_and_latest_follows(tmp_path):
    """Each run gets the next number, and `latest` is the newest."""
    names = [RunFolder.create(tmp_path, "quickstart").path.name for _ in range(3)]

    assert names == ["0001", "0002", "0003"]
    assert (tmp_path / "quickstart" / "latest").readlink() == Path("0003")


def test_concurrent_runs_never_share_a_folder(tmp_path):
    """The folder is made exclusively, so whoever comes second takes the next number."""
    barrier = threading.Barrier(8)
    made = []

    def create():
        barrier.wait(timeout=30)
        made.append(RunFolder.create(tmp_path, "quickstart").path.name)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(made) == [f"{number:04}" for number in range(1, 9)]


def test_a_run_is_found_by_every_name_it_has(tmp_path, monkeypatch):
    """Scenario, scenario and number, latest, the folder, and a file in it."""
    first, second = (RunFolder.create(tmp_path, "quickstart") for _ in range(2))
    second.write_manifest(seed=1, runtime="process", command=["edgebed"], trials=["asgd"])
    monkeypatch.chdir(first.path)
    names = {
        "quickstart": second,
        "latest": second,
        "quickstart/latest": second,
        "quickstart/1": first,
        "quickstart/0002": second,
        str(first.path): first,
        str(second.path / "report.html"): second,
        ".": first,
    }

    assert {name: run.path for name, run in names.items()} == {
        name: RunFolder.find(tmp_path, name).path for name in names
    }


@pytest.mark.parametrize("scenario", ["2024", "0001", "1"])
@pytest.mark.parametrize("place", [".", "runs"], ids=["beside", "within"])
def test_a_scenario_called_by_a_number_is_found_as_any_other(tmp_path, monkeypatch, scenario, place):
    """By its name and by its folder it is its newest run, also of runs that left no manifest."""
    root = tmp_path / "runs"
    first, second = (RunFolder.create(root, scenario) for _ in range(2))
    monkeypatch.chdir(tmp_path / place)
    folder = (root / scenario).relative_to(tmp_path / place)
    names = {
        scenario: second,
        f"{scenario}/": second,
        f"{scenario}/1": first,
        f"{scenario}/0002": second,
        f"{scenario}/latest": second,
        "latest": second,
        str(folder): second,
        str(folder / "0001"): first,
    }
    second.write_manifest(seed=1, runtime="process", command=["edgebed"], trials=[])

    assert {name: run.path for name, run in names.items()} == {name: RunFolder.find(root, name).path for name in names}


@pytest.mark.parametrize("manifest", [True, False])
def test_a_run_whose_trials_are_called_by_numbers_is_a_run(tmp_path, make_sample_run, manifest):
    """A variant may be called so; its folder is not a run, what is around it is."""
    run = make_sample_run(tmp_path, {"2024": [], "2025": []})
    if not manifest:
        run.folder.manifest.unlink()

    assert RunFolder.find(tmp_path, "sample").path == run.path
    assert RunFolder.find(tmp_path, run.path).path == run.path
    assert RunFolder.find(tmp_path, run.path / "2024").path == run.path


def test_an_unknown_run_lists_those_there_are(tmp_path):
    """The error names what exists and what may be said."""
    RunFolder.create(tmp_path, "quickstart")

    with pytest.raises(ScenarioError, match=r"no run 'quickstart/9'; there are quickstart/0001"):
        RunFolder.find(tmp_path, "quickstart/9")
    with pytest.raises(ScenarioError, match=r"no run 'x{300}'; there are quickstart/0001"):
        RunFolder.find(tmp_path, 300 * "x")
    with pytest.raises(ScenarioError, match="there are no runs in"):
        RunFolder.find(tmp_path / "elsewhere", "latest")


def test_the_root_is_given_or_in_the_environment_or_runs(monkeypatch):
    """An option wins over the environment, which wins over ./runs."""
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    assert runs_root() == Path("runs")
    monkeypatch.setenv("EDGEBED_RUNS_DIR", "/elsewhere")
    assert runs_root() == Path("/elsewhere")
    assert runs_root("here") == Path("here")


def test_the_manifest_holds_what_a_run_depends_on(tmp_path):
    """Seed, runtime, command, trials, versions and host facts are there, with a time in UTC."""
    run = RunFolder.create(tmp_path, "quickstart")
    run.write_manifest(seed=7, runtime="simulation", command=["edgebed", "run", "a b.yaml"], trials=["asgd", "adacomp"])
    manifest = json.loads(run.manifest.read_text())

    assert tuple(manifest[name] for name in ("seed", "runtime", "command")) == (
        7,
        "simulation",
        ["edgebed", "run", "a b.yaml"],
    )
    assert {"edgebed", "python", "torch", "numpy", "pyzmq"} <= manifest["versions"].keys()
    assert {"kernel", "cpu", "cores", "memory_bytes"} <= manifest["host"].keys()
    assert manifest["started"].endswith("+00:00")
    assert run.read_manifest() == manifest


def test_runs_are_listed_by_scenario_and_number(tmp_path):
    """Ten comes after nine, and what is no run is passed over."""
    for number in ("0009", "0010", "notes"):
        (tmp_path / "b" / number).mkdir(parents=True)
    RunFolder.create(tmp_path, "a")
    (tmp_path / "readme.txt").write_text("")

    assert [f"{run.scenario_name}/{run.path.name}" for run in list_runs(tmp_path)] == ["a/0001", "b/0009", "b/0010"]


def test_trials_come_in_the_order_of_the_manifest(sample_run):
    """Not in that of the alphabet."""
    assert [trial.name for trial in sample_run.folder.trials()] == ["asgd", "adacomp"]


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    """The new content is there and no temporary file."""
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "summary.json", content)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"summary.json": b"new"}


def test_a_file_that_breaks_off_leaves_the_old_one(tmp_path):
    """Whatever went wrong while it was written."""
    (tmp_path / "run.om").write_bytes(b"old")
    with pytest.raises(TypeError), writing(tmp_path / "run.om") as stream:
        stream.writelines([b"new", None])

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"run.om": b"old"}


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    """A file in the way is named, with what to do about it."""
    (tmp_path / "runs").write_text("")

    with pytest.raises(InfrastructureError, match=r"runs/quickstart: cannot be written: .*--runs-dir"):
        RunFolder.create(tmp_path / "runs", "quickstart")
    with pytest.raises(InfrastructureError, match=r"gone/summary\.json: cannot be written"):
        write_atomically(tmp_path / "gone" / "summary.json", b"")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room, or choose another folder with --runs-dir"),
        (errno.EDQUOT, "make room, or choose another folder with --runs-dir"),
        (errno.EMFILE, "let more files be open (ulimit -n), or run fewer nodes"),
        (errno.EACCES, "give yourself the right to, or choose another folder with --runs-dir"),
        (errno.EROFS, "its file system cannot be written to; choose another folder with --runs-dir"),
        (errno.ENOENT, "its folder is gone; make it again, or choose another with --runs-dir"),
        (errno.EIO, "choose another folder with --runs-dir"),
    ],
)
def test_what_keeps_a_file_from_being_written_has_a_remedy_of_its_own(number, remedy):
    """Room helps where the disk is full, and nowhere else."""
    error = OSError(number, os.strerror(number))

    assert unwritten(error, "--runs-dir") == f"cannot be written: {os.strerror(number)}; {remedy}"


def test_a_removed_folder_is_not_called_a_full_disk(tmp_path):
    """By those that write into a run's folder."""
    for write in (lambda: write_atomically(tmp_path / "gone/a", b""), lambda: JournalWriter(tmp_path / "gone/b")):
        with pytest.raises(InfrastructureError, match="No such file or directory; its folder is gone"):
            write()


def test_nothing_is_written_through_a_link_in_a_runs_folder(tmp_path):
    """The folder may be a stranger's: a file takes the link's place, and a journal is not appended to elsewhere."""
    precious = tmp_path / "precious"
    precious.write_text("precious\n")
    for name in ("summary.json", "events.jsonl"):
        (tmp_path / name).symlink_to(precious)
    write_atomically(tmp_path / "summary.json", b"{}")
    with pytest.raises(InfrastructureError, match="it is a link, and nothing is written through one"):
        JournalWriter(tmp_path / "events.jsonl")

    assert precious.read_text() == "precious\n"
    assert (tmp_path / "summary.json").read_bytes() == b"{}"
    assert not (tmp_path / "summary.json").is_symlink()


def test_a_run_goes_on_while_somebody_holds_it(tmp_path):
    """Seen from another process as well, and no longer once it is let go, or has a summary."""
    run = RunFolder.create(tmp_path, "quickstart")
    ask = f"from edgebed.journal.run_folder import *; print(RunFolder(Path({str(run.path)!r})).is_running())"

    assert not run.is_running()
    with run.locked():
        assert run.is_running()
        told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
        assert told.stdout == "True\n"
        run.summary.write_text("{}")
        assert not run.is_running()
        run.summary.unlink()
    assert not run.is_running()


def test_a_run_whose_process_was_killed_goes_on_no_longer(tmp_path):
    """The lock ends with it."""
    run = RunFolder.create(tmp_path, "quickstart")
    hold = (
        "import sys; from edgebed.journal.run_folder import RunFolder, Path\n"
        f"with RunFolder(Path({str(run.path)!r})).locked(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert run.is_running()
        holder.kill()
    assert not run.is_running()


def test_of_many_runs_the_last_are_listed(tmp_path):
    """And how many there are."""
    for _ in range(14):
        RunFolder.create(tmp_path, "quickstart")

    with pytest.raises(ScenarioError, match=r"the newest of 14: quickstart/0014, .*quickstart/0003\. Give"):
        RunFolder.find(tmp_path, "nosuch")


def test_of_many_runs_those_of_the_scenario_that_was_meant_are_listed_first(tmp_path):
    """The newest of them before others that are newer."""
    for name in ("meant", "meant", *(12 * ["zoo"])):
        RunFolder.create(tmp_path, name)

    with pytest.raises(
        ScenarioError, match="the newest of 14, those of 'meant' first: meant/0002, meant/0001, zoo/0012"
    ):
        RunFolder.find(tmp_path, "meant/99")


def test_the_latest_is_the_one_that_began_last_whatever_was_written_since(tmp_path):
    """A note on an older run, or its summary, makes that no newer; nor does a manifest that nobody can read."""
    runs = [RunFolder.create(tmp_path, name) for name in ("first", "second", "broken")]
    for run, day in zip(runs, (1, 2, 1), strict=True):
        run.write_manifest(seed=1, runtime="process", command=["edgebed"], trials=["asgd"])
        run._write_manifest(run.read_manifest() | {"started": f"2026-11-0{day}T10:00:00+00:00"})
    runs[2].manifest.write_text("{")
    os.utime(runs[2].manifest, (0, 0))
    runs[0].set_note("the old one")

    assert RunFolder.find(tmp_path, "latest").path == runs[1].path


def test_a_plan_of_another_form_is_refused_with_what_to_do(tmp_path):
    """Whatever fields it has in common with one of today."""
    folder = TrialFolder(tmp_path)
    folder.plan.write_text('{"scenario": "x", "trial": "x", "question": "", "seed": 1, "nodes": [{"role": "server"}]}')

    with pytest.raises(EdgebedError, match=r"not readable as a plan: .* another edgebed's: run its scenario anew"):
        folder.read_plan()
