"""Data sets: the built-in ones, the user's own, and everything that can be wrong with them."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.registry import DataSet, data_directory, load_data

USERS = """
import numpy as np

from edgebed.learning.data_sets.registry import DataSet

X, Y = np.zeros((6, 4), np.float32), np.array([0, 1, 2, 0, 1, 2])

def good():
    return X, Y, X[:3], Y[:3]

def seeded(seed):
    return X + seed, Y, X[:3], Y[:3]

def as_data_set():
    return DataSet(name="mine", train_x=X, train_y=Y, test_x=X, test_y=Y, classes=5)

def wide():
    return X.astype(np.float64).tolist(), Y.astype(np.int32).tolist(), X.astype(np.float64), Y.astype(np.uint16)

def not_four():
    return X, Y

def nothing():
    return None

def lengths():
    return X, Y[:5], X, Y

def negative():
    return X, Y - 1, X, Y

def beyond():
    return DataSet(name="mine", train_x=X, train_y=Y, test_x=X, test_y=Y, classes=2)

def integers():
    return X.astype(np.int32), Y, X, Y

def fractions():
    return X, Y + 0.5, X, Y

def one_hot():
    return X, np.eye(3, dtype=int)[Y], X, Y

def not_a_number():
    return X + np.nan, Y, X, Y

def other_shape():
    return X, Y, X[:, :2], Y

def other_type():
    return X, Y, X.astype(np.uint8), Y

def flat():
    return X[:, 0], Y, X[:, 0], Y

def empty():
    return X, Y, X[:0], Y[:0]

def one_class():
    return X, Y * 0, X, Y * 0
"""


@pytest.fixture
def python_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder with the user's `userdata.py`."""
    (tmp_path / "userdata.py").write_text(USERS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "userdata", raising=False)
    return [str(tmp_path)]


def fingerprint(data: DataSet) -> str:
    """A hash of all arrays."""
    arrays = (data.train_x, data.train_y, data.test_x, data.test_y)
    return hashlib.blake2b(b"".join(array.tobytes() for array in arrays)).hexdigest()


def test_digits_are_divided_by_class_and_always_alike() -> None:
    """1,797 images in [0, 1], a fifth of each class for testing, whatever the seed."""
    data = load_data("digits", seed=1)
    assert data.train_x.shape == (1438, 1, 8, 8)
    assert data.test_x.shape == (359, 1, 8, 8)
    assert data.train_x.dtype == np.float32
    assert (data.train_x.min(), data.train_x.max()) == (0.0, 1.0)
    assert data.classes == 10
    assert data.input_shape == (1, 8, 8)
    share = np.bincount(data.test_y) / (np.bincount(data.train_y) + np.bincount(data.test_y))
    np.testing.assert_allclose(share, 0.2, atol=0.003)
    assert fingerprint(data) == fingerprint(load_data("digits", seed=2))


def test_digits_for_testing_are_not_among_those_for_training() -> None:
    """The two parts share no image."""
    data = load_data("digits", seed=1)
    train, test = ({image.tobytes() for image in x} for x in (data.train_x, data.test_x))
    assert not train & test


def test_the_synthetic_task_is_drawn_from_the_seed() -> None:
    """Balanced classes, values in [0, 1], equal for a seed and different for another."""
    data = load_data("synthetic", seed=1)
    assert data.train_x.shape == (4000, 1, 8, 8)
    assert data.test_x.shape == (1000, 1, 8, 8)
    assert data.train_x.dtype == np.float32
    assert (data.train_x.min(), data.train_x.max()) == (0.0, 1.0)
    assert np.all(np.bincount(np.concatenate([data.train_y, data.test_y])) == 500)
    assert fingerprint(data) == fingerprint(load_data("synthetic", seed=1))
    assert fingerprint(data) != fingerprint(load_data("synthetic", seed=2))


def test_the_data_directory_is_the_environments_or_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """EDGEBED_DATA_DIR wins; empty counts as not set."""
    monkeypatch.setenv("EDGEBED_DATA_DIR", "/somewhere/else")
    assert data_directory() == Path("/somewhere/else")
    monkeypatch.setenv("EDGEBED_DATA_DIR", "")
    assert data_directory() == Path.home() / ".local/share/edgebed/data"


def test_an_unknown_name_is_refused_with_what_is_allowed() -> None:
    """The built-in names, and the form of an import path."""
    with pytest.raises(ScenarioError, match=r"allowed: digits, mnist, cifar10, synthetic or package\.module:function"):
        load_data("cifar", seed=0)


def test_a_users_tuple_becomes_a_data_set(python_path: list[str]) -> None:
    """The number of classes is that of the largest label."""
    data = load_data("userdata:good", seed=3, python_path=python_path)
    assert data.name == "userdata:good"
    assert data.classes == 3
    assert data.input_shape == (4,)
    assert np.array_equal(data.test_y, [0, 1, 2])


def test_a_users_function_may_take_the_seed(python_path: list[str]) -> None:
    """It is passed by keyword if the function has a parameter of that name."""
    assert np.all(load_data("userdata:seeded", seed=3, python_path=python_path).train_x == 3)


def test_a_users_data_set_keeps_its_number_of_classes(python_path: list[str]) -> None:
    """Labels need not all occur."""
    assert load_data("userdata:as_data_set", seed=3, python_path=python_path).classes == 5


def test_lists_and_wider_types_are_converted(python_path: list[str]) -> None:
    """Floats become float32, whole numbers int64."""
    data = load_data("userdata:wide", seed=3, python_path=python_path)
    assert [np.float32, np.int64, np.float32, np.int64] == [
        array.dtype for array in (data.train_x, data.train_y, data.test_x, data.test_y)
    ]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("not_four", r"returned a tuple, not .*\(train_x, train_y, test_x, test_y\)"),
        ("nothing", "returned a NoneType"),
        ("lengths", r"train_x has shape \(6, 4\) but train_y \(5,\): lengths differ"),
        ("negative", "train_y has labels from -1 to 1; 3 classes are numbered 0 to 2"),
        ("beyond", "train_y has labels from 0 to 2; 2 classes are numbered 0 to 1"),
        ("integers", "train_x is int32; allowed: uint8 .* or float32"),
        ("fractions", "train_y is float64; labels are whole numbers"),
        ("one_hot", r"train_y has shape \(6, 3\); it needs one axis"),
        ("not_a_number", "train_x has values that are not finite"),
        ("other_shape", r"shape \(4,\) in train_x but \(2,\) in test_x"),
        ("other_type", "train_x is float32 but test_x is uint8"),
        ("flat", "two axes or more"),
        ("empty", "test_y is empty"),
        ("one_class", "1 class; there have to be at least two"),
        ("missing", "has no 'missing'"),
    ],
)
def test_a_users_data_that_cannot_be_used_is_refused_with_the_reason(
    python_path: list[str], function: str, says: str
) -> None:
    """Shapes, types, lengths and labels are checked before anything starts."""
    with pytest.raises(ScenarioError, match=says):
        load_data(f"userdata:{function}", seed=3, python_path=python_path)


def test_all_that_is_wrong_is_told_at_once(python_path: list[str], tmp_path: Path) -> None:
    """Two problems, two messages."""
    (tmp_path / "userdata.py").write_text("def bad():\n    return [1.0, 2.0], [0.5, 1.5], [[1]], [0]\n")
    with pytest.raises(ScenarioError) as caught:
        load_data("userdata:bad", seed=0, python_path=python_path)
    assert len(caught.value.problems) == 3
