"""The folder of the user's that each node has a copy of, and by which a run knows that it has changed."""

from pathlib import Path

from program_trials import nodes, plan

from edgebed.core.planned.program import Program
from edgebed.running.run import program_files
from edgebed.runtimes.programs.files import copy_files


def test_what_is_copied_is_what_counts(tmp_path: Path):
    """Also what a link leads to; neither caches nor the folder of runs that the copy is in, whatever is in them."""
    app, other, runs = tmp_path / "app", tmp_path / "other", tmp_path / "app" / "runs"
    for path in (app / "train.py", app / "part" / "net.py", other / "data.txt", app / "__pycache__" / "a.pyc"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    (app / "linked").symlink_to(other)
    (app / "gone").symlink_to(tmp_path / "nowhere")
    trial = runs / "s" / "0001" / "program"
    trial.mkdir(parents=True)
    (runs / "s" / "0001" / "manifest.json").write_text("{}")
    programs = [plan(nodes(("app",)), program=Program(files=str(app)))]

    copy = copy_files(str(app), trial / "files")
    assert {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()} == {
        "train.py",
        "part/net.py",
    } | {"linked/data.txt"}
    before = program_files(programs, runs)
    for path in (app / "__pycache__" / "a.pyc", runs / "s" / "0001" / "more"):
        path.write_text("2")
    assert program_files(programs, runs) == before
    (other / "data.txt").write_text("2")
    assert program_files(programs, runs) != before
