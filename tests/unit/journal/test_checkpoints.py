"""Checkpoints on disk: the latest is what a server goes on from, the final one is the result."""

import numpy as np
import pytest

from edgebed.core.errors import EdgebedError
from edgebed.journal.checkpoints import CheckpointStore, read_checkpoint
from edgebed.journal.run_folder import TrialFolder

INITIAL = np.zeros(3, np.float32)


@pytest.fixture
def folder(tmp_path):
    """Of a trial."""
    folder = TrialFolder(tmp_path / "asgd")
    folder.checkpoints.mkdir(parents=True)
    return folder


def test_a_trial_without_any_begins_with_the_initial_model(folder):
    """Version 0, and nothing on disk."""
    checkpoints = CheckpointStore(folder, INITIAL)

    assert checkpoints.latest.version == 0
    assert checkpoints.latest.theta is INITIAL
    assert list(folder.checkpoints.iterdir()) == []


def test_the_latest_survives_whoever_wrote_it(folder):
    """Another process finds it, bit for bit, whatever became of the memory that it was in."""
    checkpoints = CheckpointStore(folder, INITIAL)
    theta = np.array([1.5, -2.25, 3e-9], np.float32)
    expected = theta.copy()
    checkpoints.keep(20, theta * 2, final=False)
    checkpoints.keep(40, theta, final=False)
    theta[:] = np.nan

    for found in (
        checkpoints.latest,
        CheckpointStore(folder, INITIAL).latest,
        read_checkpoint(folder.latest_checkpoint),
    ):
        assert found.version == 40
        assert found.theta.tobytes() == expected.tobytes()
    assert not folder.final_checkpoint.exists()


def test_the_final_one_is_the_latest_as_well(folder):
    """A run that is interrupted hands its model over, and goes on from there."""
    CheckpointStore(folder, INITIAL).keep(7, INITIAL + 1, final=True)

    assert read_checkpoint(folder.final_checkpoint).version == 7
    assert CheckpointStore(folder, INITIAL).latest.version == 7
    assert sorted(path.name for path in folder.checkpoints.iterdir()) == ["final.npz", "latest.npz"]


@pytest.mark.parametrize("final", [False, True])
def test_what_the_aggregation_remembers_is_kept_with_the_model(folder, final):
    """To the last of its bits, and replaced with the model; a method that remembers nothing has none."""
    checkpoints = CheckpointStore(folder, INITIAL)
    state = np.array([1, 0, 255], np.uint8)
    checkpoints.keep(20, INITIAL, final, state)
    state[:] = 0

    for found in (
        checkpoints.latest,
        CheckpointStore(folder, INITIAL).latest,
        read_checkpoint(folder.latest_checkpoint),
    ):
        assert found.state.tolist() == [1, 0, 255]
    checkpoints.keep(40, INITIAL, final)
    assert checkpoints.latest.state is None
    assert CheckpointStore(folder, INITIAL).latest.state is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello"])
def test_a_broken_file_is_named(folder, content):
    """With what is wrong with it, and what to do: nobody is told to unpickle what he was given."""
    folder.latest_checkpoint.write_bytes(content)

    with pytest.raises(
        EdgebedError, match=r"latest\.npz: no checkpoint can be read here: .*; restore it, or rem"
    ) as no:
        CheckpointStore(folder, INITIAL)
    assert "pickle" not in str(no.value)


def test_nobody_goes_on_from_a_backup_that_is_not_finite(folder):
    """Of training that had diverged: neither at once, nor when a user asks for that step."""
    checkpoints = CheckpointStore(folder, INITIAL)
    checkpoints.keep_backup(10, (("edge-0", 3),), INITIAL)
    checkpoints.keep_backup(20, (("edge-0", 3),), INITIAL + np.nan)

    assert checkpoints.backup_at(15).step == 10
    with pytest.raises(EdgebedError, match=r"backup-20\.npz: it has numbers that are not finite"):
        checkpoints.backup_at(20)
