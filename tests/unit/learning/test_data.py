"""Data sets: the built-in ones, the user's own, and everything that can be wrong with them."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
from tasks import one_array

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.registry import data_directory, load_data
from edgebed.learning.objectives.classification import Classification

USERS = """
import numpy as np

from edgebed import DataSet

X, Y = np.zeros((6, 4), np.float32), np.array([0, 1, 2, 0, 1, 2])

def good():
    return X, Y, X[:3], Y[:3]

def seeded(seed):
    return X + seed, Y, X[:3], Y[:3]

def as_data_set():
    return DataSet(train=(X, Y), test=(X, Y), outputs=5)

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
    return DataSet(train=(X, Y), test=(X, Y), outputs=2)

def words():
    return [["a"]] * 6, Y, X, Y

def ragged():
    return [[1], [1, 2]] * 3, Y, X, Y

def fractions():
    return X, Y + 0.5, X, Y + 0.5

def one_hot():
    return X, np.eye(3, dtype=int)[Y], X, np.eye(3, dtype=int)[Y]

def not_a_number():
    return X + np.nan, Y, X, Y

def other_shape():
    return X, Y, X[:, :2], Y

def other_type():
    return X, Y, X.astype(np.uint8), Y

def empty():
    return X, Y, X[:0], Y[:0]

def no_value():
    return X, Y[:, None][:, :0], X, Y[:, None][:, :0]

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


def outputs_of(data: DataSet) -> int:
    """The classes of a data set."""
    return Classification().outputs([part.targets for part in data.parts.values()], data.outputs)


def fingerprint(data: DataSet) -> str:
    """A hash of all arrays."""
    arrays = (data.train.inputs[""], data.train.targets[""], data.test.inputs[""], data.test.targets[""])
    return hashlib.blake2b(b"".join(array.tobytes() for array in arrays)).hexdigest()


def test_digits_are_divided_by_class_and_always_alike() -> None:
    """1,797 images in [0, 1], a fifth of each class for testing, whatever the seed."""
    data = load_data("digits", seed=1)
    assert data.train.inputs[""].shape == (1438, 1, 8, 8)
    assert data.test.inputs[""].shape == (359, 1, 8, 8)
    assert data.train.inputs[""].dtype == np.float32
    assert (data.train.inputs[""].min(), data.train.inputs[""].max()) == (0.0, 1.0)
    assert data.outputs == 10
    assert data.train.input_forms == one_array((1, 8, 8))
    share = np.bincount(data.test.targets[""]) / (
        np.bincount(data.train.targets[""]) + np.bincount(data.test.targets[""])
    )
    np.testing.assert_allclose(share, 0.2, atol=0.003)
    assert fingerprint(data) == fingerprint(load_data("digits", seed=2))


def test_digits_for_testing_are_not_among_those_for_training() -> None:
    """The two parts share no image."""
    data = load_data("digits", seed=1)
    train, test = ({image.tobytes() for image in x} for x in (data.train.inputs[""], data.test.inputs[""]))
    assert not train & test


def test_the_synthetic_task_is_drawn_from_the_seed() -> None:
    """Balanced classes, values in [0, 1], equal for a seed and different for another."""
    data = load_data("synthetic", seed=1)
    assert data.train.inputs[""].shape == (4000, 1, 8, 8)
    assert data.test.inputs[""].shape == (1000, 1, 8, 8)
    assert data.train.inputs[""].dtype == np.float32
    assert (data.train.inputs[""].min(), data.train.inputs[""].max()) == (0.0, 1.0)
    assert np.all(np.bincount(np.concatenate([data.train.targets[""], data.test.targets[""]])) == 500)
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
    with pytest.raises(ScenarioError, match=r"allowed: digits, mnist, .*, parkinsons or package\.module:function"):
        load_data("cifar", seed=0)


def test_a_users_tuple_becomes_a_data_set(python_path: list[str]) -> None:
    """The number of classes is that of the largest label."""
    data = load_data("userdata:good", seed=3, python_path=python_path)
    assert data.name == "userdata:good"
    assert outputs_of(data) == 3
    assert data.train.input_forms == one_array((4,))
    assert np.array_equal(data.test.targets[""], [0, 1, 2])


def test_a_users_function_may_take_the_seed(python_path: list[str]) -> None:
    """It is passed by keyword if the function has a parameter of that name."""
    assert np.all(load_data("userdata:seeded", seed=3, python_path=python_path).train.inputs[""] == 3)


def test_a_users_data_set_keeps_its_number_of_classes(python_path: list[str]) -> None:
    """Labels need not all occur."""
    assert load_data("userdata:as_data_set", seed=3, python_path=python_path).outputs == 5


def test_lists_and_wider_types_are_converted(python_path: list[str]) -> None:
    """Floats become float32, whole numbers int64."""
    data = load_data("userdata:wide", seed=3, python_path=python_path)
    assert [np.float32, np.int64, np.float32, np.int64] == [
        array.dtype
        for array in (data.train.inputs[""], data.train.targets[""], data.test.inputs[""], data.test.targets[""])
    ]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("not_four", r"returned a tuple of 2, not .*\(train_x, train_y, test_x, test_y\)"),
        ("nothing", "returned a NoneType"),
        ("lengths", "train: inputs, targets and clients have 6, 5 entries"),
        ("words", "train inputs: text; number it"),
        ("ragged", "train inputs: entries of different lengths; pad them"),
        ("not_a_number", "userdata:not_a_number: train inputs have values that are not finite"),
        ("other_shape", r"train inputs are float32 \(4,\), but test inputs float32 \(2,\)"),
        ("other_type", r"train inputs are float32 \(4,\), but test inputs uint8 \(4,\)"),
        ("empty", "test has no example"),
        ("no_value", r"train targets are \(6, 0\); give each example one value at least"),
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
    (tmp_path / "userdata.py").write_text("def bad():\n    return [1.0, 2.0], [0.5], [[1]], ['a']\n")
    with pytest.raises(ScenarioError) as caught:
        load_data("userdata:bad", seed=0, python_path=python_path)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("negative", "labels are from -1 to 2; 3 classes are numbered 0 to 2"),
        ("beyond", "labels are from 0 to 2; 2 classes are numbered 0 to 1"),
        ("fractions", "targets are float32; labels are whole numbers"),
        ("one_hot", r"targets have shape \(6, 3\); a label for each example has one axis"),
        ("one_class", "1 class; there have to be at least two"),
    ],
)
def test_targets_that_are_no_labels_are_refused_by_the_objective(
    python_path: list[str], function: str, says: str
) -> None:
    """The data set itself takes targets of any kind."""
    data = load_data(f"userdata:{function}", seed=3, python_path=python_path)
    with pytest.raises(ScenarioError, match=says):
        outputs_of(data)


def test_arrays_by_name_validation_and_clients_are_kept() -> None:
    """Ids of clients, whatever they are, become numbers into their names; whole numbers stay whole."""
    x = {"tokens": np.arange(6, dtype=np.uint16).reshape(3, 2), "mask": np.ones((3, 2), bool)}
    data = DataSet(train=(x, [0.5, 1, 2], ["b", "a", "b"]), validation=(x, [1.0, 2, 3], ["c"] * 3), test=(x, [1.5] * 3))

    assert data.train.inputs["tokens"].dtype == np.int64
    assert data.train.inputs["mask"].dtype == np.bool_
    assert data.client_names == ("a", "b", "c")
    assert data.train.clients is not None
    assert data.train.clients.tolist() == [1, 0, 1]
    assert data.test.clients is None
    assert list(data.parts) == ["train", "validation", "test"]


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["p10", "p2", "p1", "p02", "ann", "p"], ("ann", "p", "p1", "p02", "p2", "p10")),
        (["2b10", "2b9", "10a", "b", "2"], ("2", "2b9", "2b10", "10a", "b")),
        (["9" * 5000, "1" + "0" * 5000], ("9" * 5000, "1" + "0" * 5000)),
        ([10, 9, -1, -2], ("-2", "-1", "9", "10")),
    ],
)
def test_clients_are_in_the_order_of_the_numbers_in_their_names(ids: list[str | int], names: tuple[str, ...]) -> None:
    """Person 2 is before person 10, as whole numbers are."""
    x = np.ones((len(ids), 2))
    data = DataSet(train=(x, None, ids), test=(x[:1], None, ids[:1]))
    assert data.client_names == names
    assert data.train.clients is not None
    assert [names[number] for number in data.train.clients] == [str(each) for each in ids]


def test_settings_go_to_the_function_and_unknown_ones_are_refused(python_path: list[str]) -> None:
    """With what it has."""
    assert np.all(load_data("userdata:seeded", seed=3, settings={}, python_path=python_path).train.inputs[""] == 3)
    with pytest.raises(ScenarioError, match="unknown setting 'rows'; it has none"):
        load_data("userdata:seeded", seed=3, settings={"rows": 3}, python_path=python_path)
    with pytest.raises(ScenarioError, match="digits: unknown setting 'rows'"):
        load_data("digits", seed=3, settings={"rows": 3})
