"""`edgebed profile`: what it writes, the same scenario can use."""

import re
import sys

import pytest
from command_line import command_line

from edgebed.core.planned.device_core import Core
from edgebed.core.quantities import number_text
from edgebed.planning.planning import plan_trials
from edgebed.scenario.devices.profile import read_device
from edgebed.scenario.load import load_scenario
from edgebed.scenario.profiles import read_profile
from edgebed.studies.host import gradient_times
from edgebed.studies.host.gradient_times import Fitted, Measured, fit
from edgebed.studies.host.profile import profile_trials

SCENARIO = """\
name: small
task: { data: digits, model: four-layer, width: 2, batch_size: 8 }
method: synthetic-gradients
fleet: { edge: { count: 2 } }
shards: { profile: small-profile.yaml }
stop: { updates: 10 }
"""


@pytest.fixture
def edgebed(monkeypatch, capsys):
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    return command_line(monkeypatch, capsys)


@pytest.mark.slow
def test_a_scenario_names_the_profile_that_is_yet_to_be_made(edgebed, tmp_path):
    """It is written beside it, has a row a layer and modules beside all but the last, and the plan follows from it."""
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    code, out, err = edgebed("profile", path)

    assert code == 0, err
    assert "Beside, with synthetic-gradients:" in out
    profile = read_profile(tmp_path / "small-profile.yaml").content
    assert len(profile.layers) == 4
    rows = [line for line in out.splitlines() if line.strip()[:1].isdigit() and line.count("%") == 2]
    assert len(rows) == 4
    for place in (0, 1):  # of a gradient: as measured, and by its operations
        shares = [float(re.findall(r"([\d.]+) %", row)[place]) for row in rows]
        assert sum(shares) == pytest.approx(100, abs=0.3)
    assert 0 < profile.own < 0.1
    assert f"A live shard needs {number_text(1000 * profile.own)} ms of each step" in out
    assert all(row.forward > 0 and row.backward > 0 for row in profile.layers)
    assert [row.teach > 0 for row in profile.beside[0].layers] == [True, True, True, False]
    (planned,) = plan_trials(load_scenario(path))
    assert planned.partition is not None


TOKENS = """\
name: tokens
task:
  { data: "token_data:walk", objective: next-token, batch_size: 8, model: transformer-untied, width: 8, layers: 2,
    heads: 2 }
method: decoupled-greedy
fleet: { edge: { count: 2 } }
stop: { updates: 10 }
"""


@pytest.mark.slow
def test_layers_of_tokens_are_profiled(edgebed, tmp_path):
    """Each of embedding, blocks and last layer, with heads of tokens beside all but the last."""
    path = tmp_path / "tokens.yaml"
    path.write_text(TOKENS)
    code, _, err = edgebed("profile", path)

    assert code == 0, err
    profile = read_profile(tmp_path / "tokens-profile.yaml").content
    assert [row.outputs for row in profile.layers] == [16 * 8] * 3 + [16 * 12]
    assert all(row.forward > 0 and row.backward > 0 for row in profile.layers)
    assert [row.head > 0 for row in profile.beside[0].layers] == [True, True, True, False]
    path.write_text(TOKENS + "shards: { profile: tokens-profile.yaml }\n")
    (planned,) = plan_trials(load_scenario(path))
    assert planned.plan.is_profiled


@pytest.fixture
def quick(monkeypatch):
    """A machine is measured by few gradients of two models."""
    monkeypatch.setattr(
        gradient_times, "TRIED", (("small", "digits", 1), ("small", "digits", 100), ("cnn", "mnist", 2))
    )
    monkeypatch.setattr(gradient_times, "LONG_S", 0.0)


def whole_models(tmp_path, *replaced):
    """A scenario whose workers have the whole model."""
    path = tmp_path / "small.yaml"
    text = SCENARIO.replace("synthetic-gradients", "asgd").replace("shards:", "# shards:")
    path.write_text(text.replace(*replaced) if replaced else text)
    return path


@pytest.mark.usefixtures("quick")
def test_a_whole_models_gradient_is_predicted_and_measured(edgebed, tmp_path):
    """Where workers have all layers there is no profile of them, but how far counting is off."""
    path = whole_models(tmp_path)
    code, out, err = edgebed("profile", path)

    assert code == 0, err
    assert "A gradient of four-layer with mini-batches of 8: " in out
    assert re.search(r"counting is \d+ % too (slow|fast); task.gradient_time would be [0-9.]+m?u?s\.", out)
    assert not (tmp_path / "small-profile.yaml").exists()
    code, _, err = edgebed("profile", path, "--output", tmp_path / "out.yaml")
    assert (code, "no trial has a layer-wise method" in err) == (2, True)


@pytest.mark.usefixtures("quick")
def test_a_gradient_of_tokens_is_predicted_and_measured(edgebed, tmp_path):
    """With their own targets."""
    path = tmp_path / "tokens.yaml"
    path.write_text(TOKENS.replace("transformer-untied", "transformer").replace("decoupled-greedy", "asgd"))
    code, out, err = edgebed("profile", path)

    assert code == 0, err
    assert re.search(r"A gradient of transformer with mini-batches of 8: [\d.]+ MFLOP as counted", out)


@pytest.mark.usefixtures("quick")
def test_this_machine_is_exported_as_a_device(edgebed, tmp_path):
    """Its file is one that a scenario beside it names, and says what was measured, on what, with which error."""
    place = tmp_path / "my-board.yaml"
    code, _, err = edgebed("profile", "--export", place)

    assert code == 0, err
    device = read_device("my-board.yaml", tmp_path)
    assert device.core.device == "my-board"
    assert 1e7 < device.core.flop_s < 1e13
    assert 0 <= device.core.overhead_s < 1
    assert "small x 100, cnn x 2 by edgebed profile" in device.content.measured
    assert "torch" in device.content.source
    assert "in the median" in device.content.error
    path = whole_models(tmp_path, "count: 2", "device: my-board.yaml")
    (planned,) = plan_trials(load_scenario(path))
    assert planned.plan.workers()[0].core == device.core


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a scenario, whose model is measured, or --export FILE"),
        (["--export", "board"], "--export: board: a scenario finds a profile by its ending; call it board.yaml"),
        (["--export", "none/board.yaml"], "--export: there is no folder none"),
    ],
)
def test_what_cannot_be_exported_is_said(edgebed, words, message):
    """Before anything is measured."""
    code, _, err = edgebed("profile", *words)

    assert code == 2
    assert message in err


def test_a_fit_finds_the_core_that_gradients_are_of():
    """Speed and overhead to three digits; an overhead is never negative."""
    core = Core(flop_s=2e9, overhead_s=0.003)
    rows = [Measured("x", 1, flop, core.gradient_s(flop)) for flop in (10**4, 10**7, 10**9)]
    curved = [Measured("x", 1, flop, flop**1.2 / 1e11) for flop in (10**4, 10**7, 10**9)]

    assert fit(rows) == core
    assert fit(curved).overhead_s == 0.0
    assert Fitted(core, tuple(rows)).error == "0 % in the median, 0 % at most, of 3 gradients"


OWN = """
import numpy as np
from torch import nn

class Numbers(nn.Embedding):
    def forward(self, x):
        return super().forward(x.long())

def data():
    return np.zeros((20, 4), "f4"), np.arange(20) % 2, np.zeros((4, 4), "f4"), np.arange(4) % 2

def embedded():
    return nn.Sequential(Numbers(8, 6), nn.Sequential(nn.Flatten(), nn.Linear(24, 2).requires_grad_(False)),
                         nn.Linear(2, 2))
"""


def test_an_embedding_and_a_frozen_layer_are_profiled(tmp_path, monkeypatch):
    """By their passes forward and back; what is frozen has no weights to be trained."""
    (tmp_path / "profilednets.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    task = {"data": "profilednets:data", "model": "profilednets:embedded", "batch_size": 4}
    scenario = {"name": "own", "task": task, "method": "back-propagation", "fleet": {"edge": {"count": 2}}}
    (planned,) = plan_trials(load_scenario(scenario | {"stop": {"updates": 10}}))
    layers = profile_trials([planned]).layers

    assert [row.weights for row in layers] == [48, 0, 6]
    assert all(row.forward > 0 and row.backward > 0 for row in layers)
