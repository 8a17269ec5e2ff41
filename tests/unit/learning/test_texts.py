"""Texts as windows of tokens: the plays that come with edgebed, and a file of the user's own."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.parts import Shares
from edgebed.learning.data_sets.registry import data_directory, load_data
from edgebed.learning.data_sets.texts import plays
from edgebed.learning.data_sets.texts.windows import in_windows, windows
from edgebed.learning.objectives.next_token import NextToken

FILE_BYTES_MAX = 500_000
LINES = ("the quick brown fox jumps over the lazy dog. " * 40).encode()


def words(tokens: np.ndarray) -> str:
    """The text that tokens of the plays are."""
    return "".join(np.array(list(plays.vocabulary()))[tokens.reshape(-1)])


@given(st.integers(0, 300), st.integers(1, 40))
def test_windows_lie_one_after_the_other(size, length):
    """Targets are the tokens that follow; no token is an input twice, and less than a window is left out."""
    inputs, targets = windows(np.arange(size), length)

    assert inputs.shape == targets.shape == (max(0, size - 1) // length, length)
    assert inputs.reshape(-1).tolist() == list(range(inputs.size))
    assert targets.reshape(-1).tolist() == list(range(1, targets.size + 1))
    assert size - 1 - inputs.size < length


@given(st.lists(st.integers(100, 300), min_size=1, max_size=4), st.integers(1, 8))
def test_no_window_reaches_into_another_part(sizes, length):
    """Where all tokens are different, no two parts have one in common, of all clients, targets included."""
    ends = np.cumsum(sizes)
    texts = [(f"c{k}", np.arange(end - size, end)) for k, (size, end) in enumerate(zip(sizes, ends, strict=True))]
    data = in_windows(texts, length, Shares(), int(ends[-1]))
    seen = {
        which: set(part.inputs[""].reshape(-1).tolist()) | set(part.targets[""].reshape(-1).tolist())
        for which, part in data.parts.items()
    }

    assert not seen["train"] & seen["validation"]
    assert not seen["train"] & seen["test"]
    assert not seen["validation"] & seen["test"]
    for part in data.parts.values():
        of = np.searchsorted(ends, part.inputs[""][:, 0], side="right")
        assert [f"c{k}" for k in of] == [data.client_names[client] for client in part.clients]
    for which, later in (("train", "validation"), ("validation", "test")):
        first, second = data.parts[which], data.parts[later]
        for client in set(first.clients.tolist()) & set(second.clients.tolist()):
            assert first.targets[""][first.clients == client].max() < second.inputs[""][second.clients == client].min()


def test_the_plays_are_whole_and_small():
    """1,115,394 characters, 65 different ones, in less than half a megabyte."""
    assert len(plays.text()) == 1_115_394
    assert hashlib.sha256(plays.text().encode()).hexdigest().startswith("86c4e6aa9db7c042ec79f339dcb96d42")
    assert len(plays.vocabulary()) == 65
    assert plays.FILE.stat().st_size < FILE_BYTES_MAX


def test_the_plays_are_those_of_the_data_directory():
    """Where it has them."""
    file = data_directory() / "shakespeare/input.txt"
    if not file.is_file():
        pytest.skip(f"no {file}")

    assert file.read_text() == plays.text()


def test_speakers_are_clients():
    """99 of them, each on all parts, the vocabulary stated, and the words are their own."""
    data = load_data("plays", seed=1)
    romeo = data.client_names.index("ROMEO")
    said = plays.speeches()["ROMEO"]

    assert (len(data.client_names), data.outputs) == (99, 65)
    assert {which: len(part) for which, part in data.parts.items()} == {
        "train": 10_042, "validation": 1389, "test": 2837,
    }  # fmt: skip
    for part in data.parts.values():
        assert set(part.clients.tolist()) == set(range(99))
        assert words(part.inputs[""][part.clients == romeo][0]) in said
    assert said.startswith(words(data.train.inputs[""][data.train.clients == romeo][:3]))
    assert words(data.test.targets[""][data.test.clients == romeo][-1][-1:]) in said[-64:]
    assert NextToken().outputs([part.targets for part in data.parts.values()], data.outputs) == 65


def test_settings_of_the_plays():
    """Longer windows, fewer speakers, no validation."""
    data = load_data("plays", seed=1, settings={"length": 128, "min_characters": 20_000, "validation": 0.0})

    assert data.train.inputs[""].shape[1:] == (128,)
    assert len(data.client_names) == sum(len(said) >= 20_000 for said in plays.speeches().values()) == 10
    assert data.validation is None


def test_some_speakers_alone_have_the_windows_that_they_have_among_all():
    """In each part, and the vocabulary stays that of the whole text."""
    every, some = (load_data("plays", seed=1, settings=chosen) for chosen in ({}, {"speakers": ["ROMEO", "JULIET"]}))

    assert sorted(some.client_names) == ["JULIET", "ROMEO"]
    assert some.outputs == every.outputs
    for part, whole in ((some.train, every.train), (some.test, every.test)):
        theirs = np.isin(whole.clients, [every.client_names.index(name) for name in some.client_names])
        np.testing.assert_array_equal(part.inputs[""], whole.inputs[""][theirs])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"length": 5000}, "length: 5000 is too long: a window has one token more, and the longest validation part"),
        ({"min_characters": 50_000}, "min_characters: no speaker has 50,000; the most is 37,"),
        ({"length": 0}, "length: 0 is below 1"),
    ],
)
def test_impossible_settings_are_refused(settings, told):
    """With what is possible."""
    with pytest.raises(ScenarioError, match=told):
        load_data("plays", seed=1, settings=settings)


@pytest.mark.parametrize("place", ["beside", "data"])
def test_a_text_of_ones_own_is_read_by_byte(tmp_path: Path, place: str):
    """From the scenario's folder, else from the data directory, without clients, and it is known by its checksum."""
    folders = {"beside": tmp_path / "beside", "data": tmp_path / "data"}
    folders[place].mkdir()
    (folders[place] / "mine.txt").write_bytes(LINES)

    data = load_data(
        "text", seed=1, settings={"file": "mine.txt", "length": 16}, beside=folders["beside"], data_dir=folders["data"]
    )

    assert data.train.inputs[""].astype(np.uint8).tobytes() == LINES[: data.train.inputs[""].size]
    assert data.train.targets[""].astype(np.uint8).tobytes() == LINES[1 : data.train.inputs[""].size + 1]
    assert (data.outputs, data.client_names, data.train.clients) == (256, (), None)
    assert data.note == f"mine.txt, 1,800 bytes, SHA-256 {hashlib.sha256(LINES).hexdigest()[:16]}"


def test_a_text_of_ones_own_is_read_by_character(tmp_path: Path):
    """Its own characters are the vocabulary, whatever their bytes."""
    (tmp_path / "mine.txt").write_text("äöü€ " * 200, encoding="utf-8")

    data = load_data("text", seed=1, settings={"file": "mine.txt", "tokens": "character"}, beside=tmp_path)

    assert data.outputs == 5
    assert data.train.inputs[""].reshape(-1)[:5].tolist() == [1, 2, 3, 4, 0]


@pytest.mark.parametrize(
    ("content", "settings", "told"),
    [
        (None, {}, r"file: mine\.txt is not there; looked in .*Put it beside the scenario"),
        (b"", {}, "length: 64 is too long: .* the longest train part has 0"),
        (b"\xff" * 2000, {"tokens": "character"}, "is not UTF-8: .*Take tokens: byte"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused(tmp_path: Path, content, settings, told):
    """It is not there, too short, or no text."""
    if content is not None:
        (tmp_path / "mine.txt").write_bytes(content)

    with pytest.raises(ScenarioError, match=told):
        load_data("text", seed=1, settings={"file": "mine.txt"} | settings, beside=tmp_path, data_dir=tmp_path / "no")
