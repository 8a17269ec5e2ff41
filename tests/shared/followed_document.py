"""A document that says how to add something to edgebed, followed to the letter in a copy of the package.

The document gives whole files (File `place`: and a block of code) and changes to one registry (blocks of diff). In a
copy and a process of its own it is the same whether or not a reader has already done here what it says.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import edgebed

DOCUMENTS = Path(__file__).parents[2] / "docs"


class Document:
    """One of docs/."""

    def __init__(self, name: str, registry: str, done: tuple[str, ...]) -> None:
        """`registry` is the file that it changes; `done` tells of each change how the file looks where it is made."""
        self.text = (DOCUMENTS / name).read_text(encoding="utf-8")
        self.files = dict(re.findall(r"^File `([^`]+)`:\n\n```\w+\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL))
        """Place and content of each file to write."""
        self.changes = re.findall(r"^```diff\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        self.registry = registry
        self.done = done

    def follow(self, text: str) -> str:
        """The registry with the document's lines in it; what is there already stays as it is."""
        for change, done in zip(self.changes, self.done, strict=True):
            before, after = sides(change)
            if not re.search(done, text):
                assert text.count(before) == 1, f"the registry has no line to change like this any more:\n{before}"
                text = text.replace(before, after)
        return text

    def followed(self, root: Path) -> Path:
        """`root`, laid out like edgebed's own folder, with everything done that the document says."""
        package = Path(edgebed.__file__).parent
        shutil.copytree(package, root / "services/edgebed", ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        registry = root / self.registry
        registry.write_text(self.follow(registry.read_text(encoding="utf-8")), encoding="utf-8")
        return root


def sides(change: str) -> tuple[str, str]:
    """The text before and after a change."""
    lines = change.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in ("- ", "+ "))
    return before, after


def run_in(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python …` with the copied package in front of the installed one."""
    environment = os.environ | {"PYTHONPATH": str(copy / "services"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
