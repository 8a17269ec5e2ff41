"""Trials that differ in nothing but the seed are one arm; what differs otherwise is named."""

import os

import pytest
from finished_runs import RISING, SCENARIO, finished_run, open_books
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.studies.agreement.run_agreement import _check_completed
from edgebed.studies.arms import gather
from edgebed.studies.changes import SettingChange, changes_between

BOTH = {"asgd": RISING, "adacomp": RISING}
NAMES = st.sampled_from(["name", "at", "count", "edge", "phones"])
SETTINGS = st.recursive(
    st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["iid", "5ms"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
TREES = st.dictionaries(NAMES, SETTINGS, max_size=4)


def test_seeds_of_the_same_settings_are_one_arm(tmp_path):
    """Three runs with two variants each: two arms of three seeds, by seed."""
    runs = [finished_run(tmp_path, BOTH, seed=seed) for seed in (3, 1, 2)]
    gathered = gather(runs)
    assert {arm.name: list(arm.members) for arm in gathered.arms} == {"asgd": [1, 2, 3], "adacomp": [1, 2, 3]}
    assert gathered.arms[0].members[3].run is runs[0]
    assert gathered.left_out == ()


def test_what_chance_decides_does_not_part_them(tmp_path):
    """Another seed cuts the data otherwise and lets other nodes fail; that is no other setting."""
    scenario = SCENARIO | {
        "fleet": {"edge": {"count": 10}},
        "faults": [{"kill": {"class": "edge", "fraction": "20%"}, "at": "1s"}],
        "task": SCENARIO["task"] | {"split": {"dirichlet": 0.5}},
    }
    runs = [finished_run(tmp_path, BOTH, seed=seed, scenario=scenario) for seed in (1, 2)]
    plans = [run.trials["asgd"].plan for run in runs]
    assert [fault.node for fault in plans[0].faults] != [fault.node for fault in plans[1].faults]
    assert [len(arm.members) for arm in gather(runs).arms] == [2, 2]


def test_what_is_expected_does_not_part_them(tmp_path):
    """An expectation changes nothing of a training."""
    runs = [
        finished_run(tmp_path, BOTH, seed=1),
        finished_run(tmp_path, BOTH, seed=2, sets=["expect.best_accuracy='>= 0.9'"]),
    ]
    assert len(gather(runs).arms) == 2


def test_other_settings_are_other_arms_with_names_of_their_own(tmp_path):
    """The settings that differ are in the name, if they are few and short."""
    runs = [
        finished_run(tmp_path, BOTH),
        finished_run(tmp_path, {"adacomp": RISING}, sets=["variants.adacomp.method.compression.fraction=0.01"]),
    ]
    names = [arm.name for arm in gather(runs).arms]
    assert names == ["asgd", "adacomp (fraction 0.1)", "adacomp (fraction 0.01)"]


def test_other_scenarios_are_other_arms(tmp_path):
    """Whatever their settings; the scenario's name tells them apart."""
    runs = [finished_run(tmp_path, BOTH), finished_run(tmp_path, BOTH, scenario=SCENARIO | {"name": "twin"})]
    arms = gather(runs).arms
    assert [arm.name for arm in arms] == ["asgd (pair)", "adacomp (pair)", "asgd (twin)", "adacomp (twin)"]
    assert arms[2].changes(arms[0]) == (SettingChange(path="scenario", before="pair", after="twin"),)


def test_the_runtime_is_a_setting(tmp_path):
    """Named where it differs."""
    runs = [
        finished_run(tmp_path, {"asgd": RISING}),
        finished_run(tmp_path, {"asgd": RISING}, runtime="process", options={"emulation": "kernel"}),
    ]
    simulated, real = gather(runs).arms
    assert (simulated.name, real.name) == ("asgd (simulation)", "asgd (process)")
    assert SettingChange(path="runtime", before="simulation", after="process") in real.changes(simulated)


def test_the_users_own_code_is_a_setting(tmp_path):
    """A changed model is another arm, not another measurement of the same."""
    runs = [finished_run(tmp_path, {"asgd": RISING}, own_code={"/there/model.py": digest}) for digest in ("a1", "b2")]
    arms = gather(runs).arms
    assert arms[1].changes(arms[0]) == (SettingChange(path="own code.model.py", before="a1", after="b2"),)


def test_the_same_run_twice_is_one_run(tmp_path):
    """Named in two ways, e.g. by number and as the latest."""
    run = finished_run(tmp_path, BOTH)
    gathered = gather([run, run])
    assert [len(arm.members) for arm in gathered.arms] == [1, 1]
    assert gathered.left_out == ()


def test_of_two_runs_with_one_seed_the_one_given_last_counts(tmp_path):
    """And the other is named."""
    runs = [finished_run(tmp_path, {"asgd": RISING}) for _ in range(2)]
    gathered = gather(runs)
    assert gathered.arms[0].members[1].run is runs[1]
    assert "pair/0001: asgd has the seed and the settings of pair/0002: asgd" in gathered.left_out[1]


def test_what_has_not_completed_is_left_out_and_named(tmp_path):
    """Interrupted, broken off, never begun: each with what to do, where something can be done."""
    runs = [
        finished_run(tmp_path, BOTH),
        finished_run(tmp_path, {"asgd": RISING[:3]}, seed=2, outcome="interrupted"),
        finished_run(tmp_path, {"asgd": RISING[:2]}, seed=3, outcome=None),
    ]
    gathered = gather(runs)
    assert [list(arm.members) for arm in gathered.arms] == [[1], [1]]
    assert gathered.left_out == (
        "pair/0002: asgd is interrupted after 200 updates; edgebed resume pair/0002 resumes it",
        "pair/0002: adacomp did not begin",
        "pair/0003: asgd is unfinished after 100 updates; edgebed resume pair/0003 resumes it",
        "pair/0003: adacomp did not begin",
    )


def test_what_does_not_account_for_all_is_left_out_and_named(tmp_path):
    """Whoever compares is told, and so is whoever asks whether runtimes agree."""
    runs = [finished_run(tmp_path, {"asgd": RISING}, seed=seed) for seed in (1, 2)]
    open_books(runs[1].folder.trial("asgd").journal)
    assert gather(runs).left_out[-2].startswith("pair/0002: asgd completed, accounting does not close: ")
    with pytest.raises(InfrastructureError, match=r"leaves nothing to compare: .* asgd: completed, accounting does"):
        _check_completed(runs[1])


def test_a_run_still_going_is_left_out(tmp_path):
    """Whoever holds its folder works on it."""
    run = finished_run(tmp_path, {"asgd": RISING}, outcome=None)
    with run.folder.locked():
        gathered = gather([finished_run(tmp_path, BOTH, seed=2), run])
    assert gathered.left_out[0] == "pair/0001: asgd is still running"


def test_nothing_completed_is_nothing_to_compare(tmp_path):
    """It says which trials there were."""
    with pytest.raises(ScenarioError, match=r"no trial has completed.*pair/0001: asgd is failed after 300 updates"):
        gather([finished_run(tmp_path, {"asgd": RISING}, outcome="failed")])


def test_a_run_without_its_scenario_is_refused(tmp_path):
    """Its settings are unknown."""
    run = finished_run(tmp_path, BOTH)
    run.folder.scenario.unlink()
    with pytest.raises(ScenarioError, match=r"scenario.yaml: there is no such file"):
        gather([run])


def test_a_pipe_in_the_place_of_its_scenario_is_not_waited_for(tmp_path):
    """Nobody writes to it."""
    run = finished_run(tmp_path, BOTH)
    run.folder.scenario.unlink()
    os.mkfifo(run.folder.scenario)
    with pytest.raises(ScenarioError, match=r"scenario.yaml: cannot be read: it is no file"):
        gather([run])


def test_changes_are_short_and_readable(tmp_path):
    """A part with another name is another part; values are written as in a scenario."""
    asgd, adacomp = gather([finished_run(tmp_path, BOTH)]).arms
    assert [str(change) for change in adacomp.changes(asgd)] == [
        "method.preset: asgd → adacomp",
        "method.aggregation.staleness: whole-update → per-parameter",
        "method.compression: none {values: float32} → top-k {fraction: 0.1, scope: tensor, residual: false, value…",
    ]
    assert adacomp.changes(asgd)[2].after.endswith("}")  # a page and JSON have it whole


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c: 2 → 3"]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 0.5}}, ["a.c: not set → 0.5"]),
        ({"waiting": {"exponential": "20ms"}}, {"waiting": "5ms"}, ["waiting: {exponential: 20ms} → 5ms"]),
        ({"split": {"dirichlet": 0.5}}, {"split": {"by-label": 2}}, ["split: {dirichlet: 0.5} → {by-label: 2}"]),
        ({"faults": [{"at": "1s"}]}, {"faults": [{"at": "2s"}]}, ["faults.0.at: 1s → 2s"]),
        ({"faults": []}, {"faults": [{"at": "2s", "on": True}]}, ["faults: [] → [{at: 2s, on: true}]"]),
        ({"runtime": "simulation"}, {"fleet": 1}, ["runtime: simulation → not set", "fleet: not set → 1"]),
        ({"a": "x" * 99}, {"a": "y"}, [f"a: {'x' * 59}… → y"]),
    ],
)
def test_forms_of_changes(before, after, expected):
    """As few paths as tell the difference."""
    assert [str(change) for change in changes_between(before, after)] == expected


@given(TREES, TREES)
def test_there_are_changes_exactly_where_settings_differ(one, other):
    """None between the same, and turned round they are the same ones with the values swapped."""
    changes = changes_between(one, other)
    assert (changes == ()) == (one == other)
    swapped = {(change.path, change.after, change.before) for change in changes_between(other, one)}
    assert {(change.path, change.before, change.after) for change in changes} == swapped
