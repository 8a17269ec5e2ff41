"""`edgebed export`: where it writes, what it replaces and what it refuses."""

import shutil
import sys

import pytest

import edgebed
from edgebed.journal.run_folder import RunFolder

pytestmark = pytest.mark.slow


def test_files_go_into_the_run_s_folder_by_themselves(root, export):
    """Once and again; the run is none the worse for it."""
    for _ in range(2):
        code, out, error = export("plain")
        assert (code, out, error) == (0, f"{root}/plain/0001/exports/csv\n", "")
    assert (root / "plain/0001/exports/csv/updates.csv").stat().st_size > 0
    assert list(edgebed.load("plain", runs_dir=root).trials) == ["asgd", "adacomp"]


def test_trials_can_be_chosen(root, export, tables, tmp_path):
    """Those alone are in every table."""
    export("plain", "--trial", "adacomp", "--output", tmp_path / "out")

    for name, rows in tables(tmp_path / "out").items():
        assert {row["trial"] for row in rows} <= {"adacomp"}, name
        assert rows or name in ("faults", "phases", "hosts", "clients")


def test_what_an_earlier_export_left_is_replaced(root, export, tmp_path):
    """Tables that the run does not have go, too."""
    out = tmp_path / "out"
    export("layers", "--output", out)
    assert (out / "steps.csv").exists()

    assert export("plain", "--output", out)[0] == 0

    assert not (out / "steps.csv").exists()
    assert "layers/0001" not in (out / "trials.csv").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["notes.txt", "more/updates.csv", "trials.parquet"])
def test_a_folder_with_anything_else_is_refused(root, export, tmp_path, name):
    """Nothing in it is touched."""
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")

    code, out, error = export("plain", "--output", tmp_path / "out")

    assert (code, out) == (2, "")
    assert error == (
        f"error: --output: {tmp_path}/out holds what no export of this format has written: {name}. Give a new folder, "
        "an empty one, or that of an earlier export.\n"
    )
    assert [each for each in (tmp_path / "out").rglob("*") if each.is_file()] == [path]
    assert path.read_text() == "mine"


def test_many_files_of_others_are_not_all_named(root, export, tmp_path):
    """The first three."""
    for name in "abcde":
        (tmp_path / name).write_text("")

    assert "written: a, b, c and more. Give" in export("plain", "--output", tmp_path)[2]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--format", "excel"], "'excel' is not one of"),
        (
            ["--trial", "none", "--trial", "asgd"],
            "error: --trial: plain/0001 has no trial 'none'; there are asgd, adacomp\n",
        ),
        (["--output", "no/such"], "error: --output: there is no folder no; make it first, or choose another\n"),
        (["--output", "file"], "error: --output: file is a file; give a folder\n"),
        (
            ["--format", "mlflow", "--output", "x"],
            "error: --output: MLflow is written to a tracking store; name it with",
        ),
        (
            ["--tracking-uri", "sqlite:///x"],
            "error: --tracking-uri: csv is written to a folder; name it with --output\n",
        ),
        (
            ["--format", "mlflow"],
            "error: --format mlflow: give --tracking-uri, e.g. sqlite:///mlflow.db, or set MLFLOW",
        ),
    ],
    ids=["format", "trial", "no folder", "file", "output of mlflow", "address of csv", "no address"],
)
def test_mistakes_are_told(root, export, tmp_path, monkeypatch, words, reason):
    """What is wrong, and what there is; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    if words == ["--format", "mlflow"]:
        pytest.importorskip("mlflow", reason="no mlflow: pip install 'edgebed[mlflow]'")

    code, out, error = export("plain", *words)

    assert (code, out) == (2, "")
    assert reason in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("form", "module"), [("parquet", "pyarrow"), ("tensorboard", "tensorboardX"), ("mlflow", "mlflow")]
)
def test_a_missing_extra_is_named_with_its_command(root, export, monkeypatch, form, module):
    """In one line."""
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed

    code, out, error = export("plain", "--format", form)

    assert (code, out) == (2, "")
    assert error.startswith(f"error: --format {form}: {module} ")
    assert error.endswith(f" not installed; pip install 'edgebed[{form}]' installs it\n")
    assert error.count("\n") == 1


def test_a_run_that_has_not_begun_has_nothing_to_export(tmp_path, export):
    """It died before its first trial."""
    folder = RunFolder.create(tmp_path, "early")

    code, _, error = export(folder.path)

    assert (code, error) == (2, "error: early/0001: nothing to export: no trial has begun\n")


def test_a_file_in_the_place_of_the_exports_is_one_line(root, export, tmp_path):
    """The run's folder, which is not to be touched, and what else can be done."""
    shutil.copytree(root / "plain" / "0001", tmp_path / "plain" / "0001")
    place = tmp_path / "plain" / "0001" / "exports"
    shutil.rmtree(place, ignore_errors=True)
    place.write_text("mine")

    code, out, error = export(tmp_path / "plain" / "0001")

    assert (code, out) == (3, "")
    assert error == f"error: {place}: cannot be made: File exists; choose another folder with --output\n"
    assert place.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_one_line(root, export, tmp_path):
    """And nothing is left behind beside it."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trials.csv").mkdir()  # where a file has to go

    code, _, error = export("plain", "--output", tmp_path / "out")

    assert (code, error.count("\n")) == (3, 1)
    assert error.startswith(f"error: {tmp_path}/out: cannot be written: ")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
