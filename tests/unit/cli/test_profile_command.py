"""`edgebed profile`: what it writes, the same scenario can use."""

import sys

import pytest

from edgebed import cli
from edgebed.observe.quantities import number_text
from edgebed.scenario.load import load_scenario
from edgebed.scenario.planning import plan_trials
from edgebed.scenario.profiles import read_profile

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
