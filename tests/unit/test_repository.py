"""What the repository promises as a whole: its files, their size, their words, its locked packages."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
from repository_files import ROOT, tracked_files

REQUIRED_FILES = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/decisions.md", "CHANGELOG.md", "LICENSE",
    "pyproject.toml", ".ci/run", "scripts/demo",
    "scripts/test", "scripts/setup", "scripts/bench", "scenarios/quickstart.yaml", "docs/scenario.md",
    "docs/metrics.md", "docs/protocol.md", "docs/creating-a-method.md", "docker-compose.yml", ".env",
    "scripts/build-images", ".ci/engine", "CITATION.cff", "action.yml", ".github/workflows/tests.yml",
    ".github/workflows/wheels.yml", ".github/workflows/images.yml", ".github/workflows/site.yml",
)  # fmt: skip
PACKAGE = ROOT / "services/edgebed"
ROOMS = tuple(str(path.relative_to(ROOT)) for path in sorted(PACKAGE.glob("*/README.md")))
MAPS = ("ARCHITECTURE.md", "docs/decisions.md", "CONTRIBUTING.md", *ROOMS)
"""They say where things are: in the whole, and in a package that has more to say than a row."""
ROW_WORDS_MAX = 40
ARCHITECTURE_LINES_MAX = 150  # two pages; what does not fit is a decision
MODULE_LINES_MAX = 600  # beyond this, ask whether it is one thing
FILE_BYTES_MAX = 2 << 20
NOUNLESS = re.compile(r"(Of|Those|That|Both|The same|Likewise|These|Whom)\b")
"""Beginnings of a docstring that refer to what a reader of this one sentence does not see."""


def texts() -> list[tuple[str, str]]:
    """Name and content of every tracked text file."""
    found = []
    for path in tracked_files():
        try:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def occurrences(pattern: str, suffix: str = "") -> list[str]:
    """`file:line` of every match in the tracked text files."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        for name, text in texts()
        if name.endswith(suffix)
        for match in re.finditer(pattern, text)
    ]


def suite_functions() -> list[tuple[str, ast.FunctionDef]]:
    """Every test of the suite as `file::name` with its syntax tree."""
    return [
        (f"{name}::{node.name}", node)
        for name, text in texts()
        if re.search(r"(^|/)test_\w+\.py$", name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def docstrings(text: str) -> list[tuple[int, str]]:
    """(line, docstring) of a module's text, of its classes and functions, and below its assignments."""
    found = []
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, each in zip([None, *body], body, strict=False):
            has_place = is_documented if before is None else isinstance(before, ast.Assign | ast.AnnAssign)
            if has_place and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                found.append((each.lineno, str(each.value.value).strip()))
    return sorted(found)


@pytest.mark.parametrize("name", REQUIRED_FILES)
def test_the_files_that_others_rely_on_are_there(name):
    """And not empty."""
    assert (ROOT / name).stat().st_size > 0


def test_scripts_can_be_run_and_read_by_bash():
    """Each has the executable bit and, if it is a shell script, no syntax error."""
    for path in [
        *(path for path in (ROOT / "scripts").iterdir() if path.is_file()),
        ROOT / ".ci/run",
        ROOT / ".ci/engine",
    ]:
        assert os.access(path, os.X_OK), path.name
        if path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash"):
            subprocess.run(["bash", "-n", str(path)], check=True)


def named_paths(text: str) -> list[tuple[str, str]]:
    """Each path in backticks or of a link, with the package that its line is the row of, if of any."""
    found = []
    for line in text.splitlines():
        row = re.match(r"\| `(\w+/)` \|", line)
        paths = re.findall(r"`([\w.-]*(?:/[\w.*-]*)+|[\w-]+\.(?:py|md|toml|ya?ml))(?:::\w+)?`", line)
        paths += re.findall(r"\]\(([^):#]+)(?:#[\w-]+)?\)", line)
        found += [(path, row[1] if row else "") for path in paths]
    return found


@pytest.mark.parametrize("name", MAPS)
def test_every_path_that_a_map_names_is_there(name):
    """From the repository's root, or from the package; in a row of the map of packages, from that of the row."""
    document, package = ROOT / name, PACKAGE
    paths = named_paths(document.read_text(encoding="utf-8"))

    assert len(paths) > 10
    assert [
        path for path, row in paths
        if not any(any(base.glob(path)) for base in (document.parent, ROOT, package, package / row))
    ] == []  # fmt: skip


def test_the_architecture_can_be_read_in_one_go():
    """It is two pages, and a package with more to say than forty words has a README of its own."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \| (.*) \|$", text, re.MULTILINE)

    assert len(text.splitlines()) <= ARCHITECTURE_LINES_MAX
    assert [(name, len(row.split())) for name, row in rows if len(row.split()) > ROW_WORDS_MAX] == []
    assert len(rows) > len(ROOMS) > 0


def test_no_path_of_the_machine_it_was_written_on():
    """It would help nobody else."""
    folders = "|".join(("ro" + "ot", "wo" + "rk", "op" + "t/wheels", "op" + "t/pypi"))

    assert occurrences(rf"(?<![\w.}}/])/(?:{folders})/") == []


def test_no_package_registry_is_named():
    """Where packages come from is the user's own setting."""
    hosts = ("py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.org", "conda" + r"\.anaconda\.org")

    assert occurrences("|".join(hosts)) == []


def test_data_beside_the_repository_is_known_to_the_ci_alone():
    """Everybody else says where data is by EDGEBED_DATA_DIR."""
    assert {place.partition(":")[0] for place in occurrences(r"\.\./sha" + "red")} <= {".ci/run"}


def test_nothing_is_left_unfinished():
    """No reminders to oneself and no functions that only refuse."""
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "NotImpl" + "ementedError"))

    assert occurrences(rf"\b(?:{words})\b", suffix=".py") == []


def test_no_file_is_too_large():
    """Neither a module to read nor a file to download."""
    long = [name for name, text in texts() if name.endswith(".py") and text.count("\n") > MODULE_LINES_MAX]
    large = [path.name for path in tracked_files() if path.stat().st_size > FILE_BYTES_MAX]

    assert (long, large) == ([], [])


def test_every_test_says_what_it_shows():
    """Its docstring states the behaviour that its name is short for."""
    assert [name for name, node in suite_functions() if not ast.get_docstring(node)] == []


def test_every_docstring_is_understood_alone():
    """None begins with a genitive or a pronoun whose noun stands elsewhere: `help()` and editors show it alone."""
    ours = re.compile(r"(services/edgebed|validation|docs/generate)/.*\.py|scenarios/[^/]+/[^/]+\.py")
    unclear = [
        f"{name}:{line}: {docstring.splitlines()[0]}"
        for name, text in texts()
        if ours.fullmatch(name)
        for line, docstring in docstrings(text)
        if NOUNLESS.match(docstring)
    ]

    assert unclear == []


def test_docstrings_are_found_wherever_they_stand():
    """In a module, a class and a function, below a constant, a field and an attribute; other strings are none."""
    text = '''"""A."""
LIMIT = 1
"""B."""
class Some:
    """C."""
    field: int
    """D."""
    def make(self):
        """E."""
        self.made = 0
        """F."""
        if self.made:
            "no docstring"
'''

    assert docstrings(text) == [(1, "A."), (3, "B."), (5, "C."), (7, "D."), (9, "E."), (11, "F.")]


def test_every_module_that_tests_share_is_named_with_what_it_is_for():
    """In a README of a page."""
    folder = ROOT / "tests/shared"
    text = (folder / "README.md").read_text(encoding="utf-8")

    assert set(re.findall(r"`(\w+)`", text)) >= {path.stem for path in folder.glob("*.py")}
    assert len(text.splitlines()) <= 60


def test_test_files_have_names_of_their_own():
    """They are imported without packages, and reports name them without folders."""
    names = [Path(name).name for name, _ in texts() if re.search(r"(^|/)test_\w+\.py$", name)]

    assert sorted(set(names)) == sorted(names)
