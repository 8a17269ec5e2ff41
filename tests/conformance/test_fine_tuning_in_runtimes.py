"""Adapters of docs/fine-tuning.md in every runtime: one device leaves the same bits, frozen weights do not travel."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from quick_runs import run

from edgebed.core.imports import forgetting
from edgebed.learning.beginning import Beginning
from edgebed.learning.models.token_models import transformer
from edgebed.running.results import Trial

TEXT = (Path(__file__).parents[2] / "docs/fine-tuning.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
SHORT = ("fleet.phone.count=1", "stop.updates=4", "evaluation.every=2 updates", "task.data.speakers=[ROMEO]")
BASE_BYTES = 4 * 104_832
ADAPTER_BYTES = 4 * 3_072
RUNTIMES = [
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.fixture
def folder(tmp_path: Path):
    """The page's files, and weights of which nobody has learnt anything."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    torch.manual_seed(1)
    torch.save(transformer((32,), 65, width=64, layers=2, heads=2).state_dict(), tmp_path / "base.pt")
    with forgetting(tmp_path):
        yield tmp_path


def adapted(folder: Path, runtime: str) -> Trial:
    """The trial with adapters, on one device and short."""
    given = {"runtime": runtime, "runs_dir": folder / "runs", "set": SHORT, "variants": ["adapters"]}
    done = run(folder / "fine-tuning.yaml", **given)
    assert done.exit_code == 0
    return done.trials["adapters"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_adapters_are_all_that_travels(folder: Path, runtime: str) -> None:
    """Pushes, models, the server's checkpoint: less in all than the frozen weights, which come beside the training."""
    expected, found = adapted(folder, "simulation"), adapted(folder, runtime)

    np.testing.assert_array_equal(found.checkpoint(), expected.checkpoint())
    assert ((found.series.updates.bytes >= ADAPTER_BYTES) & (found.series.updates.bytes < ADAPTER_BYTES + 100)).all()
    (*_, (_, traffic)) = found.series.traffic
    assert 0 < traffic.ingress_payload + traffic.egress_payload < BASE_BYTES
    assert found.folder.final_checkpoint.stat().st_size < ADAPTER_BYTES + 2_000


@pytest.mark.simulation
def test_the_server_is_given_no_frozen_weights_and_the_others_are(folder: Path) -> None:
    """From the controller, with their data; the model that comes of it has them as the file has."""
    found = adapted(folder, "simulation")
    beginning = Beginning(found.plan)

    sizes = {node.role: beginning.constants(node).nbytes for node in found.plan.nodes}
    assert sizes == {"server": 0, "evaluator": BASE_BYTES, "worker": BASE_BYTES}
    base, model = torch.load(folder / "base.pt"), found.model()
    assert torch.equal(model.get_parameter("1.attention.1.inputs.frozen.weight"), base["1.attention.1.inputs.weight"])
    assert not torch.equal(model.get_parameter("1.attention.1.inputs.up.weight"), torch.zeros(192, 4))
