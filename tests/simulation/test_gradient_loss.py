"""What gradient modules could not predict, and its direct minimisation, in virtual time and in processes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.running.results import Trial

SCENARIO: dict[str, Any] = {
    "name": "direct",
    "seed": 3,
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 16},
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "30 updates"},
    "stop": {"updates": 30},
}


def trained(folder: Path, runtime: str, method: dict[str, Any], **shards: Any) -> Trial:
    """The only trial, to its end."""
    run = run_quickly(SCENARIO | {"method": method, "shards": shards}, runtime=runtime, runs_dir=folder)  # type: ignore[arg-type]
    (trial,) = run.trials.values()

    assert trial.summary.outcome == "completed"
    return trial


@pytest.mark.process
def test_a_run_has_the_same_weights_and_module_losses_in_both_runtimes(tmp_path: Path) -> None:
    """Everybody waits, so nothing is left to chance; and what is made small is not the model's loss alone."""
    method = {"preset": "direct-minimisation", "learning": {"weight": 0.1}}
    virtual, real = (trained(tmp_path, runtime, method) for runtime in ("simulation", "process"))
    plain = trained(tmp_path, "simulation", {"preset": "back-propagation"})
    losses = virtual.series.shards.module_losses

    np.testing.assert_array_equal(virtual.checkpoint(), real.checkpoint())
    assert (virtual.checkpoint() != plain.checkpoint()).any()
    assert [each.step.tolist() for each in losses.values()] == [list(range(30))] * 2
    for shard, each in real.series.shards.module_losses.items():
        np.testing.assert_array_equal(each.loss, losses[shard].loss)


def test_without_weight_it_is_back_propagation(tmp_path: Path) -> None:
    """Bit for bit; the report's modules stand beside it and learn."""
    method = {"preset": "direct-minimisation", "learning": {"weight": 0.0}, "module_optimizer": {"name": "sgd"}}
    direct, plain = (trained(tmp_path, "simulation", each) for each in (method, {"preset": "back-propagation"}))

    np.testing.assert_array_equal(direct.checkpoint(), plain.checkpoint())


def test_modules_on_a_node_of_their_own_tell_their_losses(tmp_path: Path) -> None:
    """With a queue of one the same as beside the layers."""
    method = {"preset": "synthetic-gradients"}
    beside, apart = (
        trained(tmp_path, "simulation", method, cuts="even", queue=1, modules=where).series.shards.module_losses
        for where in ("beside", "apart")
    )

    assert list(beside) == list(apart) == ["edge-0", "edge-1"]
    for shard, losses in beside.items():
        count = min(len(losses.step), len(apart[shard].step))
        assert count >= 29
        np.testing.assert_array_equal(losses.loss[:count], apart[shard].loss[:count])


@pytest.mark.parametrize("method", ["synthetic-gradients", "direct-minimisation"])
def test_early_and_late_losses_are_those_of_the_journal(tmp_path: Path, method: str) -> None:
    """The sum over all modules, over the first and the last tenth of the steps that all were taught."""
    found = trained(tmp_path, "simulation", {"preset": method})
    losses = [each.loss for each in found.series.shards.module_losses.values()]
    total = np.sum([loss[: min(map(len, losses))] for loss in losses], axis=0)
    tenth = len(total) // 10

    assert found.series.shards.module_losses.keys() == {"edge-0", "edge-1"}
    assert found.summary.shards.gradient_loss_early == pytest.approx(total[:tenth].mean())
    assert found.summary.shards.gradient_loss_late == pytest.approx(total[-tenth:].mean())
    assert found.summary.shards.gradient_loss_early != found.summary.shards.gradient_loss_late


def test_without_modules_there_is_no_such_loss(tmp_path: Path) -> None:
    """Neither a zero."""
    summary = trained(tmp_path, "simulation", {"preset": "back-propagation"}).summary
    assert (summary.shards.gradient_loss_early, summary.shards.gradient_loss_late) == (None, None)
