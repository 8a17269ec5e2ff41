"""The wheel, made of the sdist: what both hold, and that it works in an empty environment and folder."""

import email
import json
import os
import re
import stat
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from repository_files import ROOT, tracked_files

from edgebed.core.package import VERSION, shipped_files

FOR_THE_REPOSITORY_ALONE = (".ci/", ".github/", ".gitignore")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
FEW_UPDATES = ("--set", "stop.updates=20", "--set", "evaluation.every=10 updates", "--set", "expect=null")

pytestmark = pytest.mark.slow


def tracked() -> list[str]:
    """The names of the repository's files."""
    return [str(path.relative_to(ROOT)) for path in tracked_files()]


def build(what: str, source: Path, place: Path) -> Path:
    """The file that the build backend makes of a source tree."""
    place.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, what, str(place)], cwd=source, check=True, capture_output=True)
    (made,) = place.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist of a copy of the repository, without anything that tools have left in this one."""
    folder = tmp_path_factory.mktemp("sdist")
    for name in tracked():
        place = folder / "source" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((ROOT / name).read_bytes())
        place.chmod((ROOT / name).stat().st_mode)
    return build("build_sdist", folder / "source", folder / "dist")


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that is made of the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's Python has none
        archive.extractall(folder, **checked)
    (source,) = folder.iterdir()
    return build("build_wheel", source, folder / "dist")


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment in which the wheel is installed, and which sees the packages of this one; its folder."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin/python"
    (site,) = folder.glob("lib/python3*/site-packages")
    # No .pth file is read in a folder that another one names: an editable edgebed there is not seen.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    return folder


@pytest.fixture
def edgebed(environment, tmp_path):
    """Runs the installed command in an empty folder; gives what it printed."""
    (tmp_path / "empty").mkdir()
    hidden = ("PYTHONPATH", "EDGEBED_RUNS_DIR", "EDGEBED_DATA_DIR")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}

    def call(*words: str) -> str:
        command = [str(environment / "bin/edgebed"), *words]
        done = subprocess.run(
            command, cwd=tmp_path / "empty", env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_the_sdist_is_the_repository(sdist):
    """Tests and documents included; only what serves the repository itself is left out."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert [name for name in tracked() if name not in names and not name.startswith(FOR_THE_REPOSITORY_ALONE)] == []


def test_the_wheel_has_the_package_and_what_comes_with_it(wheel):
    """The files of the repository, to the byte, and whether they can be run; nothing that validates or documents it."""
    code = {name: name.removeprefix("services/") for name in tracked() if name.startswith("services/")}
    shipped = {str(path): f"edgebed/shipped/{path}" for path in shipped_files()}

    with zipfile.ZipFile(wheel) as archive:
        for name, inside in (code | shipped).items():
            assert archive.read(inside) == (ROOT / name).read_bytes(), name
        others = set(archive.namelist()) - {*code.values(), *shipped.values()}
        modes = {name: archive.getinfo(inside).external_attr >> 16 for name, inside in shipped.items()}
    assert {name.partition("/")[0].partition("-")[0] for name in others} == {"edgebed"}
    assert not {name.partition("/")[0] for name in shipped} & {"validation", "benchmarks", "docs", "tests"}
    assert all(".dist-info/" in name for name in others)
    assert {name for name in shipped if modes[name] & stat.S_IXUSR} == {
        name for name in shipped if os.access(ROOT / name, os.X_OK)
    }


def test_an_index_can_show_what_it_is(wheel):
    """Its metadata: description, words to find it by, licence, Pythons, and dependencies as ranges, torch's as well."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    required = [each for each in metadata.get_all("Requires-Dist") if "extra ==" not in each]

    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("edgebed", VERSION, "Apache-2.0")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# edgebed")
    assert metadata["Author"]
    assert "federated learning" in metadata["Keywords"].split(",")
    assert metadata["Requires-Python"] == ">=3.11"
    assert [each for each in required if not re.fullmatch(r"[\w.-]+<[\w.]+,>=[\w.]+", each)] == []


def test_what_compose_and_readers_need_comes_with_it():
    """By name: a pattern that no longer matches would leave them out of the list, too."""
    names = {str(path) for path in shipped_files()}

    assert {
        "docker-compose.yml", ".env", ".dockerignore", "scripts/build-images", "schema/scenario.schema.json",
        "images/worker/Dockerfile", "images/edgebed-node", "requirements/torch.txt", "scenarios/quickstart.yaml",
        "scenarios/hardy2017/paper.py", "dashboards/prometheus/rules/alerts.yml",
        "dashboards/grafana/dashboards/edgebed/run-overview.json",
    } <= names  # fmt: skip
    assert {name for name in tracked() if name.startswith("scenarios/")} <= names
    assert names <= set(tracked()), "a wheel made here would have files that are not the repository's"


def test_quickstart_runs_by_its_name(edgebed, tmp_path):
    """In an empty folder, where its results are afterwards."""
    edgebed("run", "quickstart", "--runtime", "simulation", *FEW_UPDATES)

    run = tmp_path / "empty/runs/quickstart/0001"
    file = Path(json.loads((run / "manifest.json").read_text())["scenario_file"])
    assert (run / "report.html").is_file()
    assert file.parts[-5:] == ("site-packages", "edgebed", "shipped", "scenarios", "quickstart.yaml")
    assert "venv" in file.parts, "not that of another installation"


def test_a_scenario_of_ones_own_runs(edgebed, tmp_path):
    """A shipped one as a beginning, edited."""
    text = (ROOT / "scenarios/quickstart.yaml").read_text().replace("name: quickstart", "name: mine")
    (tmp_path / "empty/mine.yaml").write_text(text)

    assert edgebed("validate", "mine.yaml") == "mine.yaml: valid\n"
    edgebed("run", "mine.yaml", "--runtime", "simulation", "--variant", "asgd", *FEW_UPDATES)
    assert (tmp_path / "empty/runs/mine/0001/asgd/events.jsonl").is_file()


def test_papers_come_with_it(edgebed):
    """Their rows and their scenarios."""
    assert "scenarios/hardy2017/figure-4.yaml" in edgebed("reproduce", "hardy2017", "--list", "--json")


def test_compose_writes_the_folder(edgebed, tmp_path):
    """What comes with the package, by the paths of the repository, and the installed code."""
    said = edgebed("compose", "lab")

    assert "docker compose up" in said
    for path in shipped_files():
        assert (tmp_path / "empty/lab" / path).read_bytes() == (ROOT / path).read_bytes()
    code = tmp_path / "empty/lab/services/edgebed"
    assert (code / "cli/main.py").read_bytes() == (ROOT / "services/edgebed/cli/main.py").read_bytes()
    assert not (code / "shipped").exists()
    assert "all is there" in edgebed("compose", "lab")
