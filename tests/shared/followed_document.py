"""A document that says how to add something to edgebed, followed to the letter.

Its first part is about files of one's own (File `place`: and a block of code), in a folder outside the package. Its
second part, from the heading BUILT_IN on, makes built-in ones of them: files that move, and changes to files (In
`place`: and blocks of diff). That is done in a copy of the package, and in processes of their own, so that it is the
same whether or not a reader has already done here what it says.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from warm_command import WarmCommand

import edgebed

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "docs"
PACKAGE = Path(edgebed.__file__).parent
BUILT_IN = "\n## Built in\n"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci")
"""Arguments that run a document's tests, whose properties have no deadline then, however busy the machine is."""
STEPS = re.compile(
    r"^File `(?P<file>[^`]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$"
    r"|^- Move `(?P<source>[^`]+)` to `(?P<target>[^`]+)`\.$"
    r"|^In `(?P<changed>[^`]+)`:\n\n```diff\n(?P<change>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Change(NamedTuple):
    """Lines that are to stand in the place of others."""

    place: str
    before: str
    after: str


class Document:
    """One of docs/."""

    def __init__(self, name: str) -> None:
        self.text = (DOCUMENTS / name).read_text(encoding="utf-8")
        self.own, _, self.built_in = self.text.partition(BUILT_IN)
        self.files = {step["file"]: step["text"] for step in STEPS.finditer(self.own)}
        """Name and text of each file of one's own."""
        found = [step for step in STEPS.finditer(self.built_in) if not step["file"]]
        self.moves = {step["source"]: step["target"] for step in found if step["source"]}
        self.changes = [Change(step["changed"], *sides(step["change"])) for step in found if step["changed"]]

    def write(self, folder: Path) -> Path:
        """`folder` with the files of one's own in it, as the first part has them."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def build_in(self, root: Path) -> None:
        """Do what the second part says in `root`, laid out like edgebed's own folder; what is done already stays."""
        for source, target in self.moves.items():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            (root / target).write_text(self.files[source], encoding="utf-8")
        for change in self.changes:
            file = root / change.place
            text = file.read_text(encoding="utf-8")
            if change.after not in text:
                assert text.count(change.before) == 1, f"{change.place} has no lines like these:\n{change.before}"
                file.write_text(text.replace(change.before, change.after), encoding="utf-8")


def copied(root: Path) -> Path:
    """`root` with a copy of the package in it, as far as it is compiled, and of what writes its documents."""
    being_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(PACKAGE, root / "services/edgebed", ignore=being_written)
    shutil.copytree(ROOT / "docs/generate", root / "docs/generate", ignore=being_written)
    return root


def sides(change: str) -> tuple[str, str]:
    """The text before and after a change."""
    lines = [line if line.strip() else " \n" for line in change.splitlines(keepends=True)]
    before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in ("- ", "+ "))
    return before, after


def run_in(
    folder: Path, *arguments: str, package: Path = PACKAGE.parent, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """`python …` in a folder, with edgebed from `package`; its command is warm where that is the one that is tested."""
    shared = str(folder / "tests/shared")
    here = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # pytest's workers have a width
    environment = here | {"PYTHONPATH": os.pathsep.join([str(package), shared]), "OMP_NUM_THREADS": "1"}
    if package == PACKAGE.parent and arguments[:2] == ("-m", "edgebed"):
        command = WarmCommand(*arguments[2:], cwd=folder, env=environment)
        said = command.communicate(timeout_s)
        return subprocess.CompletedProcess(arguments, command.wait(), *said)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
