"""`edgebed profile`: what it writes, the same scenario can use."""

import sys

import pytest

from edgebed.cli import main as cli
from edgebed.core.quantities import number_text
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.scenario.profiles import read_profile
from edgebed.studies.host.profiling import profile_trials

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

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["edgebed", *map(str, words)])
        try:
            cli.main()
        except SystemExit as left:
            return left.code or 0, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return call


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
    assert 0 < profile.own < 0.1
    assert f"A live shard needs {number_text(1000 * profile.own)} ms of each step" in out
    assert all(row.forward > 0 and row.backward > 0 for row in profile.layers)
    assert [row.teach > 0 for row in profile.beside[0].layers] == [True, True, True, False]
    (planned,) = plan_trials(load_scenario(path))
    assert planned.partition is not None


def test_what_has_no_layers_is_refused(edgebed, tmp_path):
    """A parameter server's method has the whole model everywhere."""
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO.replace("synthetic-gradients", "asgd").replace("shards:", "# shards:"))
    code, _, err = edgebed("profile", path)

    assert code == 2
    assert "no trial has a layer-wise method" in err


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
