"""docs/own-models-and-data.md works: its model is built, its data is loaded, its scenario runs."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from quick_runs import run as run_quickly
from tasks import one_array
from torch import nn

from edgebed.core.plan import Task
from edgebed.learning.data_sets.registry import load_data
from edgebed.learning.models import registry as models

DOCUMENT = Path(__file__).parents[3] / "docs/own-models-and-data.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`.*?:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
(UNNAMED,) = [block for block in BLOCKS if block not in FILES.values()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the document; what they bring into this process is gone after the test."""
    for name, text in (FILES | {"mydatasets.py": UNNAMED}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("mynets", "mysets", "mydatasets", "mybackbones", "myfiles"):
        sys.modules.pop(name, None)


def test_the_model_of_the_document_is_built_for_inputs_of_any_shape(folder):
    """Called with what its parameters name; its layout is that of its two layers."""
    path = (str(folder),)

    model = models.build("mynets:wide", (2, 3), 5, path)
    layout = models.layout("mynets:wide", one_array((2, 3)), 5, path)

    assert sum(parameter.numel() for parameter in model.parameters()) == 6 * 200 + 200 + 200 * 5 + 5
    assert [tensor.shape for tensor in layout] == [(200, 6), (200,), (5, 200), (5,)]


def test_the_backbone_of_the_document_begins_with_the_weights_of_its_file(folder):
    """Which is read for the training to begin, and for nothing else; only the head is in the layout."""
    path = (str(folder),)
    layout = models.layout("mybackbones:backbone", one_array((2,)), 3, path)
    task = Task(
        model="mybackbones:backbone", inputs=one_array((2,)), outputs=3, layout=layout, batch_size=2,
        gradient_time_s=0.01, python_path=path,
    )  # fmt: skip
    expected = nn.Linear(2, 16).state_dict()
    torch.save(expected, folder / "backbone.pt")

    assert [tensor.shape for tensor in layout] == [(3, 16), (3,)]
    assert torch.equal(models.initial_model(task, 1).get_parameter("0.weight"), expected["weight"])


def test_the_data_of_the_document_is_loaded(folder):
    """Four arrays; the seed decides which."""
    data, other = (load_data("mysets:blobs", seed=seed, python_path=(str(folder),)) for seed in (1, 2))

    assert (data.train.inputs[""].shape, data.train.inputs[""].dtype, data.train.targets[""].shape) == (
        (1_000, 2),
        np.float32,
        (1_000,),
    )
    assert (len(data.test.inputs[""]), len(data.test.targets[""]), data.outputs) == (200, 200, None)
    assert not np.array_equal(data.train.inputs[""], other.train.inputs[""])


def test_a_data_set_states_its_number_of_classes(folder):
    """Where the labels that occur do not."""
    assert load_data("mydatasets:four_classes", seed=1, python_path=(str(folder),)).outputs == 4


def test_the_data_of_a_file_are_loaded_from_any_folder(folder, monkeypatch):
    """The file lies beside the module, not in the folder that the reader is in; 64-bit floats become 32-bit ones."""
    x, y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])
    np.savez(folder / "measured.npz", train_x=x, train_y=y, test_x=x[:2], test_y=y[:2])
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")

    data = load_data("myfiles:measured", seed=1, python_path=(str(folder),))

    np.testing.assert_array_equal(x.astype("f4"), data.train.inputs[""])
    assert (data.train.inputs[""].dtype, data.test.inputs[""].dtype, data.outputs) == (np.float32, np.float32, None)


@pytest.mark.slow
def test_the_scenario_of_the_document_runs_and_meets_its_expectations(folder):
    """In simulation, with the modules beside it."""
    run = run_quickly(folder / "own.yaml", runtime="simulation", runs_dir=folder / "runs")

    assert list(FILES) == [
        "mynets.py", "mybackbones.py", "mysets.py", "myfiles.py", "own.yaml", "more.Dockerfile",
    ]  # fmt: skip
    assert run.exit_code == 0
