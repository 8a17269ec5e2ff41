"""Whoever asks a script what it does hears that, and nothing else happens; an option that there is not is refused.

Each is run in a copy of `scripts/` alone, with hardly a program on its PATH and no environment: one that did more than
answer would fail, or leave something behind.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "scripts").iterdir() if path.is_file())
NEEDED = ("bash", "env", "sed", "dirname", "python3")
"""Programs that a script may use to answer."""
OPTIONS_OF_OTHERS = {
    "boot": "Options are before the command",
    "check-ranges": "options for pytest",
    "demo": "Options are those of `edgebed run`",
    "lock": "Options are uv's",
    "test": "pytest's arguments",
}
"""Scripts that hand options on to a program, which refuses them, and how their help says so."""


@pytest.fixture
def ask(tmp_path):
    """Runs the copy of a script with one argument; an error where it has changed anything."""
    folder, programs = tmp_path / "checkout", tmp_path / "bin"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    programs.mkdir()
    for name in NEEDED:  # the interpreter itself: what a search finds may be a script that needs other programs
        found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
        (programs / name).symlink_to(found or name)
    environment = {"PATH": str(programs), "EDGEBED_VENV": str(tmp_path / "none"), "HOME": str(tmp_path / "home")}

    def run(name: str, argument: str) -> subprocess.CompletedProcess[str]:
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        command = [folder / "scripts" / name, argument]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return done

    return run


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_says_what_a_script_does_and_does_nothing(ask, name, option):
    """Its own first sentence, and how it is called."""
    text = (ROOT / "scripts" / name).read_text(encoding="utf-8").splitlines()[1]

    done = ask(name, option)

    assert done.returncode == 0, done.stderr
    assert text.removeprefix("# ").removeprefix('"""') in done.stdout
    assert f"scripts/{name}" in done.stdout


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in OPTIONS_OF_OTHERS])
def test_an_option_that_there_is_not_is_refused(ask, name):
    """Before anything is done, with a sentence, as a wrong use."""
    done = ask(name, "--no-such-option")

    assert done.returncode in (2, 3), done.stderr
    assert re.search(r"--no-such-option|usage: ", done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("name", OPTIONS_OF_OTHERS)
def test_a_script_that_hands_options_on_says_whose_they_are(ask, name):
    """So that nobody looks for them in the wrong place."""
    assert OPTIONS_OF_OTHERS[name] in ask(name, "--help").stdout


def test_the_demo_refuses_an_option_before_it_sets_anything_up(ask, tmp_path):
    """Where there is an environment that knows what `edgebed run` has."""
    edgebed = tmp_path / "none/bin/edgebed"
    edgebed.parent.mkdir(parents=True)
    edgebed.write_text(f'#!/bin/sh\nexec {sys.executable} -m edgebed "$@"\n')
    edgebed.chmod(0o755)

    done = ask("demo", "--no-such-option")

    assert (done.returncode, done.stdout) == (2, "")
    assert "No such option: --no-such-option" in done.stderr


def test_a_document_that_there_is_not_is_refused(ask):
    """As a wrong use."""
    done = ask("check-docs", "extra")

    assert (done.returncode, done.stdout) == (2, "")
    assert "no such document: extra" in done.stderr


def test_a_second_argument_is_not_taken_for_nothing():
    """Also after an option that there is."""
    for name, first in (("setup", "--dev"), ("build-images", "--offline")):
        command = [ROOT / "scripts" / name, first, "--no-such-option"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)

        assert done.returncode == 2, done.stderr
        assert "--no-such-option" in done.stderr


def test_boot_refuses_an_option_before_the_command():
    """What comes after it is the command's own."""
    environment = os.environ | {"EDGEBED_VENV": sys.prefix}
    command = [ROOT / "scripts/boot", "--no-such-option", "true"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "--no-such-option" in done.stderr
