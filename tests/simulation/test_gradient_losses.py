"""What gradient modules could not predict, in the summary of a trial."""

from pathlib import Path

import numpy as np
import pytest

import edgebed
from edgebed.results import Trial

SCENARIO = {
    "name": "module-losses",
    "question": "Do modules learn to predict?",
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32, "gradient_time": "1ms"},
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "100 updates"},
    "checkpoints": {"every": "100 updates"},
    "stop": {"updates": 100},
}


def trial(folder: Path, method: str) -> Trial:
    """The only one."""
    (only,) = edgebed.run(
        SCENARIO | {"method": method}, runtime="simulation", processes=1, runs_dir=folder
    ).trials.values()
    return only


@pytest.mark.parametrize("method", ["synthetic-gradients", "direct-minimisation"])
def test_early_and_late_losses_are_those_of_the_journal(tmp_path: Path, method: str) -> None:
    """The sum over all modules, over the first and the last tenth of the steps that all were taught."""
    found = trial(tmp_path, method)
    losses = [each.loss for each in found.series.module_losses.values()]
    total = np.sum([loss[: min(map(len, losses))] for loss in losses], axis=0)
    tenth = len(total) // 10

    assert found.series.module_losses.keys() == {"edge-0", "edge-1"}
    assert found.summary.gradient_loss_early == pytest.approx(total[:tenth].mean())
    assert found.summary.gradient_loss_late == pytest.approx(total[-tenth:].mean())
    assert found.summary.gradient_loss_early != found.summary.gradient_loss_late


def test_without_modules_there_is_no_such_loss(tmp_path: Path) -> None:
    """Neither a zero."""
    summary = trial(tmp_path, "back-propagation").summary
    assert (summary.gradient_loss_early, summary.gradient_loss_late) == (None, None)
