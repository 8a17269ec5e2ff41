"""Packages are locked once: what is tested is what is run and published, by hash; one version everywhere."""

import re
import tomllib

import pytest
from repository_files import ROOT
from ruamel.yaml import YAML

import edgebed
from edgebed.core.package import VERSION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEXTS = {
    path.stem: path.read_text(encoding="utf-8").replace("\\\n", " ") for path in (ROOT / "requirements").glob("*.txt")
}
PINS = {name: dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", text, re.MULTILINE)) for name, text in TEXTS.items()}
WHOLE = {"node": "run", "worker": "run", "link": "run", "run": "dev"}
"""A lock, and the one that it is a part of."""
NEEDED = {
    "node": {"msgspec", "numpy", "prometheus-client", "psutil", "pyzmq", "zstandard"},
    "worker": {"sympy", "typing-extensions"}, "link": {"pyroute2"}, "publish": {"build", "setuptools", "twine"},
    "torch": {"torch"},
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_every_package_is_exact_and_hashed(name):
    """No index is named; torch has a lock of its own: builds for four Pythons on three platforms."""
    lines = [line for line in TEXTS[name].splitlines() if line and not line.lstrip().startswith("#")]

    assert PINS[name].keys() >= NEEDED.get(name, set())
    assert len(lines) == len(PINS[name]) > (40 if name in ("run", "dev") else 0)
    assert all(re.match(r"[a-z0-9.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert "://" not in TEXTS[name]
    assert ("torch" in PINS[name]) == (name == "torch")
    assert name != "torch" or re.fullmatch(r"torch==\S+( +--hash=sha256:[0-9a-f]{64}){12} *", lines[0])


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_tested_is_what_is_run(name):
    """In nodes, too; and the release's tools have the versions that tests have."""
    assert PINS[name].items() <= PINS[WHOLE[name]].items()
    assert {each: PINS["publish"][each] for each in PINS["publish"].keys() & PINS["dev"].keys()}.items() <= (
        PINS["dev"].items()
    )


@pytest.mark.parametrize(
    "place", ["scripts/setup", "scripts/build-images", "images/worker/Dockerfile", "images/controller/Dockerfile"]
)
def test_torch_is_installed_by_hash(place):
    """Nothing installs it without."""
    lines = (ROOT / place).read_text(encoding="utf-8").splitlines()
    uses = [line for line in lines if re.search(r"--requirement \S*torch", line)]

    assert uses
    assert all("--require-hashes" in line for line in uses)


def test_the_version_of_torch_is_the_same_everywhere():
    """The one that is tested: scripts/setup and workflows install it, and pyproject.toml's range begins with it."""
    (version,) = re.findall(r"(?m)^torch_version=(\S+)$", (ROOT / "scripts/setup").read_text(encoding="utf-8"))
    workflows = [path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")]
    uv = PROJECT["tool"]["uv"]

    assert f"torch>={version.removesuffix('.0')},<3" in PROJECT["project"]["dependencies"]
    assert uv["constraint-dependencies"] == [f"torch=={version}"]
    assert [entry["version"] for entry in uv["dependency-metadata"]] == [PINS["torch"]["torch"]] == [version]
    assert {each for text in workflows for each in re.findall(r"torch==([\w.]+)", text)} == {version}


def test_the_version_of_edgebed_is_the_same_everywhere():
    """In the package, its images and its citation."""
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    released = re.findall(r"(?m)^EDGEBED_VERSION=(.+)$", (ROOT / ".env").read_text(encoding="utf-8"))

    assert {edgebed.__version__, PROJECT["project"]["version"], citation["version"], *released} == {VERSION}
    assert citation["license"] == "Apache-2.0"
