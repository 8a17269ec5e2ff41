"""Where torch computes in virtual time."""

from pathlib import Path

import numpy as np
import pytest
import torch

import edgebed
from edgebed.core.errors import ScenarioError
from edgebed.learning import torch_device
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network
from edgebed.planning.planning import plan_trials
from edgebed.running.results import Run
from edgebed.scenario.load import load_scenario

QUICK = ["stop.updates=20", "evaluation.every=10 updates", "expect=null"]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")


def test_it_is_the_cpu_unless_somebody_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, or the CPU by its name."""
    monkeypatch.delenv(torch_device.VARIABLE, raising=False)
    assert torch_device.chosen() == "cpu"
    monkeypatch.setenv(torch_device.VARIABLE, "cpu")
    assert torch_device.chosen() == "cpu"


@pytest.mark.parametrize("name", ["", "abacus", "cuda:99", "meta:-3"])
def test_what_torch_does_not_have_is_refused_before_anything_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With what was asked for, and what is allowed."""
    monkeypatch.setenv(torch_device.VARIABLE, name)
    with pytest.raises(ScenarioError, match=rf"\$EDGEBED_TORCH_DEVICE: torch .* has no device '{name}' here"):
        edgebed.run("quickstart", runtime="simulation", set=QUICK, runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_draws_the_same_whether_its_device_or_all_devices_are_seeded() -> None:
    """What is drawn on the CPU follows from the key alone."""
    drawn = []
    for name in ("cpu", "any other"):
        torch_device.seed(name, 2**64 + 5)
        drawn.append(torch.rand(3))

    assert torch.equal(*drawn)


@needs_gpu
def test_a_gpu_computes_the_same_but_for_the_last_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same bits each time."""
    monkeypatch.setenv(torch_device.VARIABLE, "cuda")
    (trial,) = plan_trials(load_scenario("quickstart", QUICK).only(["adacomp"]))
    task, x, y = trial.plan.nodes[0].task, trial.data.train_x[:300], trial.data.train_y[:300]
    theta = models.initial_parameters(task, 1)
    on_cpu, on_gpu = (Network(task, x, y, device=name) for name in ("cpu", torch_device.chosen()))
    expected, loss = on_cpu.gradient(theta, np.arange(64))
    gradient, found = on_gpu.gradient(theta, np.arange(64))

    np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())
    assert found == pytest.approx(loss, rel=1e-5)
    np.testing.assert_array_equal(on_gpu.gradient(theta, np.arange(64))[0], gradient)
    assert on_gpu.evaluate(theta) == pytest.approx(on_cpu.evaluate(theta), abs=1e-2)


@needs_gpu
@pytest.mark.parametrize("preset", ["asgd", "synthetic-gradients", "decoupled-greedy"])
def test_a_run_on_a_gpu_names_it_and_repeats(preset: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same weights, and what computed them in the manifest."""
    monkeypatch.setenv(torch_device.VARIABLE, "cuda")
    given = {"method": {"preset": preset}, "task": {"data": "synthetic", "model": "four-layer"}, "seed": 1}
    if preset != "asgd":
        given["shards"] = {"cuts": "even"}
    runs = [edgebed.run(given, runtime="simulation", set=QUICK, runs_dir=tmp_path) for _ in range(2)]

    assert runs[0].folder.read_manifest()["engine"] == {"torch_device": torch.cuda.get_device_name("cuda")}
    np.testing.assert_array_equal(*(weights_of(run) for run in runs))


def weights_of(run: Run) -> np.ndarray:
    """The final model of a run's only trial."""
    with np.load(next(iter(run)).folder.final_checkpoint) as kept:
        return kept["theta"]
