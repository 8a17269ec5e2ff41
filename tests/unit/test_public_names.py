"""`import edgebed`: its names are found by completion, by type checkers and by readers of docstrings."""

import ast
import inspect
from pathlib import Path

import pytest

import edgebed

FUNCTIONS = [name for name in edgebed.HOMES if name.islower()]


def test_completion_finds_names_that_are_not_imported_yet():
    """`dir` is what IPython and editors ask."""
    assert set(edgebed.HOMES) <= set(dir(edgebed))
    assert {"run", "runs", "load", "compare", "sweep", "reproduce", "agree", "to_pandas", "figures"} <= set(FUNCTIONS)


def test_a_type_checker_sees_each_name_where_it_is():
    """The imports under TYPE_CHECKING are those of the table."""
    tree = ast.parse(Path(edgebed.__file__).read_text(encoding="utf-8"))
    (block,) = [each for each in tree.body if isinstance(each, ast.If)]
    seen = {each.names[0].asname: each.module for each in block.body if isinstance(each, ast.ImportFrom)}

    assert seen == edgebed.HOMES


@pytest.mark.parametrize("name", edgebed.HOMES)
def test_each_name_is_there_and_says_what_it_is(name):
    """A function also says what it raises, has an example, and names each of its arguments."""
    found = getattr(edgebed, name)
    text = inspect.getdoc(found) or ""

    assert text
    if name in FUNCTIONS:
        assert "Example:\n" in text
        assert "Raises " in text or name == "runs"
        assert [each for each in inspect.signature(found).parameters if each not in text] == []


def test_another_name_is_no_attribute():
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = edgebed.runn
