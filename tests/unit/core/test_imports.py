"""Finding a user's function by its import path, and saying what is wrong with it."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgebed.core import imports
from edgebed.core.errors import ScenarioError

MODULE = '''"""A user's module."""
CONSTANT = 3

def plain():
    return "plain"

def asks(seed):
    return seed

def asks_by_keyword(*, classes, other=1):
    return classes, other

def takes_all(**kwargs):
    return sorted(kwargs)

def fails():
    raise KeyError("no such thing")

def wants(n_in, n_out=3):
    return n_in

def fails_elsewhere():
    import json
    return json.loads("{")
'''


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder on nobody's path, with `mine_<test>.py`; what was imported from it is forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "mine.py").write_text(MODULE)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_function_is_found_in_a_folder_of_the_python_path(folder: Path) -> None:
    """The folder need not be on the path beforehand."""
    assert imports.resolve("mine:plain", [str(folder)])() == "plain"


def test_a_module_may_import_its_neighbours_when_it_is_called(folder: Path) -> None:
    """The folder stays on the path after the import."""
    (folder / "neighbour.py").write_text("VALUE = 7\n")
    (folder / "late.py").write_text("def value():\n    import neighbour\n    return neighbour.VALUE\n")
    assert imports.resolve("late:value", [str(folder)])() == 7


def test_a_package_is_found_by_its_dotted_name(folder: Path) -> None:
    """`package.module:function`, as in an import statement."""
    (folder / "package").mkdir()
    (folder / "package/nets.py").write_text("def tiny():\n    return 1\n")
    assert imports.resolve("package.nets:tiny", [str(folder)])() == 1


@pytest.mark.parametrize("name", ["nets", "nets:", ":tiny", "a.b:c.d", "a..b:c", "a/b:c", "a:b:c", "a:1"])
def test_a_malformed_path_is_refused_with_an_example(name: str) -> None:
    """Nothing is imported for a name that is not an import path."""
    assert not imports.is_import_path(name)
    with pytest.raises(ScenarioError, match=r"mypackage\.nets:tiny"):
        imports.resolve(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere_at_all:f", "no module 'nowhere_at_all'"),
        ("nowhere_at_all.nets:f", "no module 'nowhere_at_all'"),
        ("mine:plian", "Did you mean 'plain'"),
        ("mine:zzz", "It has: asks, asks_by_keyword, fails, fails_elsewhere, plain, takes_all, wants"),
        ("mine:CONSTANT", "'CONSTANT' is a int, not a function"),
    ],
)
def test_what_is_missing_is_named(folder: Path, name: str, says: str) -> None:
    """A module that is not there, a function that is not in it, a name that is no function."""
    with pytest.raises(ScenarioError, match=says):
        imports.resolve(name, [str(folder)])


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import a_package_nobody_has\n", "needs 'a_package_nobody_has', which is not installed"),
        ("1 / 0\n", r"ZeroDivisionError: division by zero \(.*broken\.py:1\)"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_module_that_fails_on_import_is_reported_with_the_reason(folder: Path, code: str, says: str) -> None:
    """The user's own mistake is told in one line, with the place in the file."""
    (folder / "broken.py").write_text(code)
    with pytest.raises(ScenarioError, match=says):
        imports.resolve("broken:f", [str(folder)])


def test_a_message_of_many_lines_is_told_in_one_that_has_an_end(folder: Path) -> None:
    """Torch names each of a model's weights that does not fit; the place stands behind it."""
    (folder / "broken.py").write_text("raise RuntimeError('no such weight\\n' * 1000)\n")
    with pytest.raises(
        ScenarioError, match=r"RuntimeError: no such weight no such .*\.\.\. \(.*broken\.py:1\)"
    ) as caught:
        imports.resolve("broken:f", [str(folder)])

    assert len(str(caught.value)) < imports.MESSAGE_MAX + 200


@pytest.mark.parametrize(
    ("function", "expected"),
    [("plain", "plain"), ("asks", 5), ("asks_by_keyword", (10, 1)), ("takes_all", ["classes", "seed"])],
)
def test_a_function_is_given_what_its_parameters_name(folder: Path, function: str, expected: object) -> None:
    """Offers that it has no parameter for are left out."""
    name = f"mine:{function}"
    assert expected == imports.call(name, imports.resolve(name, [str(folder)]), seed=5, classes=10)


def test_a_function_that_raises_is_reported_with_the_place(folder: Path) -> None:
    """Type, message, file and line."""
    with pytest.raises(ScenarioError, match=r"mine:fails: .*KeyError: 'no such thing' \(.*mine\.py:17\)"):
        imports.call("mine:fails", imports.resolve("mine:fails", [str(folder)]))


def test_a_function_that_wants_what_nobody_offers_is_told_what_is_there(folder: Path) -> None:
    """By name, as it is called."""
    says = (
        r"mine:wants: it is called with seed, classes, as far as it names them; n_in is none of these .*mine\.py:19\)"
    )
    with pytest.raises(ScenarioError, match=says):
        imports.call("mine:wants", imports.resolve("mine:wants", [str(folder)]), seed=5, classes=10)


def test_the_place_is_the_users_last_line_though_a_library_raised(folder: Path) -> None:
    """Not the library's own line, which the user did not write."""
    with pytest.raises(ScenarioError, match=r"JSONDecodeError: .*\(.*mine\.py:24\)"):
        imports.call("mine:fails_elsewhere", imports.resolve("mine:fails_elsewhere", [str(folder)]))


def test_sources_are_the_modules_that_were_imported_from_the_users_folders(tmp_path, monkeypatch) -> None:
    """With the paths that an import of the same names needs; a neighbour that nobody imported is none of them."""
    package = tmp_path / "own_nets_pkg"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "tiny.py").write_text("from own_nets_helper import scale\nfrom own_nets_pkg.parts import one\n")
    (package / "parts" / "__init__.py").write_text("one = 1\n")
    (package / "unused.py").write_text("")
    (tmp_path / "own_nets_helper.py").write_text("scale = 'Größe'\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own_nets_pkg.tiny")

    found = dict(imports.sources((str(tmp_path),)))

    assert set(found) == {
        "own_nets_helper.py",
        "own_nets_pkg/__init__.py",
        "own_nets_pkg/parts/__init__.py",
        "own_nets_pkg/tiny.py",
    }
    assert found["own_nets_helper.py"] == "scale = 'Größe'\n"
    assert imports.sources(()) == ()


@pytest.mark.parametrize("start", ["", "#!/usr/bin/env python3\n", "\n"])
def test_a_module_in_another_encoding_is_sent_as_one_in_utf_8(folder: Path, tmp_path: Path, start: str) -> None:
    """It says so itself, so that Python imports it where it was written; nothing else of it is touched."""
    code = f"{start}# -*- coding: latin-1 -*-\n# coding: of words\nwide = 'Größe'\n"
    (folder / "own_latin.py").write_text(code, encoding="latin-1")
    sys.path.insert(0, str(folder))
    importlib.import_module("own_latin")
    text = dict(imports.sources([str(folder)]))["own_latin.py"]
    sent = tmp_path / "sent"
    sent.mkdir()
    (sent / "own_latin.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", "import own_latin; print(ascii(own_latin.wide))"]

    assert text == code.replace("latin-1", "utf-8")
    assert subprocess.check_output(command, cwd=sent, text=True).strip() == ascii("Größe")


def test_each_folder_has_its_own_module_of_a_name(tmp_path, monkeypatch) -> None:
    """A module of another scenario's folder is never taken for it, also when that folder is come back to."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = "mytask_of_two_folders"
    paths = [(str(tmp_path / each), str(tmp_path)) for each in ("first", "second")]
    for folder, *_ in paths:
        Path(folder).mkdir()
        (Path(folder) / f"{name}.py").write_text(f"def where():\n    return {folder!r}\n")
    (tmp_path / "of_both.py").write_text("def one():\n    return None\n")
    common = imports.resolve("of_both:one", paths[0])
    for path in (*paths, paths[0], paths[0]):
        assert imports.resolve(f"{name}:where", path)() == path[0]
        assert [text for _, text in imports.sources(path[:1])] == [Path(path[0], f"{name}.py").read_text()]
    assert imports.resolve("of_both:one", paths[1]) is common
    assert imports.resolve(f"{name}:where", paths[0]) is imports.resolve(f"{name}:where", paths[0])
