"""Where torch computes in virtual time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tasks import examples_of

import edgebed
from edgebed.core.errors import ScenarioError
from edgebed.learning import torch_device
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

QUICK = ["stop.updates=20", "evaluation.every=10 updates", "expect=null"]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
"""The devices there are; with a GPU every test of them is made twice."""


def test_it_is_the_cpu_unless_somebody_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, an empty one, or the CPU by its name."""
    monkeypatch.delenv(torch_device.VARIABLE, raising=False)
    assert torch_device.chosen() == "cpu"
    for name in ("", "cpu"):
        monkeypatch.setenv(torch_device.VARIABLE, name)
        assert torch_device.chosen() == "cpu"


@pytest.mark.parametrize("name", ["abacus", "cuda:99", "meta:-3"])
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


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_computes_the_same_but_for_the_last_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same bits each time."""
    monkeypatch.setenv(torch_device.VARIABLE, device)
    (trial,) = plan_trials(load_scenario("quickstart", QUICK).only(["adacomp"]))
    task, x, y = trial.plan.nodes[0].task, trial.data.train.inputs[""][:300], trial.data.train.targets[""][:300]
    theta = models.initial_parameters(task, 1)
    on_cpu, on_device = (Network(task, examples_of(x, y), device=name) for name in ("cpu", torch_device.chosen()))
    expected, loss = on_cpu.gradient(theta, np.arange(64))
    gradient, found = on_device.gradient(theta, np.arange(64))

    np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())
    assert found == pytest.approx(loss, rel=1e-5)
    np.testing.assert_array_equal(on_device.gradient(theta, np.arange(64))[0], gradient)
    assert on_device.evaluate(theta) == pytest.approx(on_cpu.evaluate(theta), abs=1e-2)
