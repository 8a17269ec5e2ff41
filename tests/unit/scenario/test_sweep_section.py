"""The section `sweep`: every mistake is said where it stands, with what is allowed; other commands pass it over."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_sweep import SWEEP, write_sweep

from edgebed.core.errors import ScenarioError
from edgebed.scenario import source
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.sweep_section import value_text


def problems(tmp_path, text, *sets):
    """What is wrong with a scenario."""
    with pytest.raises(ScenarioError) as found:
        load_scenario(write_sweep(tmp_path, text), sets)
    return [problem.replace(f"{tmp_path}/", "") for problem in found.value.problems]


def test_the_section_is_read(tmp_path):
    """All variants are compared, with one seed, and by the mean of three evaluations, unless it says otherwise."""
    section = load_scenario(write_sweep(tmp_path)).sweep

    assert (section.accuracy, section.window, section.methods, section.seeds) == (0.8, 3, [], 1)
    assert section.over == {"fleet.edge.uplink": ["16mbit", "250kbit"], "fleet.edge.count": [2, 3]}


def test_a_scenario_is_run_as_if_it_had_none(tmp_path):
    """Its trials are the same, and what is kept with a run has no section."""
    with_it = load_scenario(write_sweep(tmp_path))
    without = load_scenario(write_sweep(tmp_path, SWEEP.partition("sweep:")[0]))

    assert without.sweep is None
    assert with_it.trials == without.trials
    assert resolved_yaml(with_it) == resolved_yaml(without)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("accuracy: 0.8", "accuracy: 80", "tiny.yaml:12:13: sweep.accuracy: 80 is above 1"),
        ("  accuracy: 0.8\n", "", "tiny.yaml:11:1: sweep: missing key 'accuracy'"),
        (
            "accuracy: 0.8",
            "accuracy: 0.8\n  methods: [dense, topk]",
            "tiny.yaml:13:12: sweep.methods: no variant 'topk'; did you mean 'top-k'? allowed: dense, top-k",
        ),
        (
            "accuracy: 0.8",
            "accuracy: 0.8\n  methods: [dense, dense]",
            "tiny.yaml:13:12: sweep.methods: 'dense' stands there twice",
        ),
        (
            "16mbit, 250kbit",
            "16mbit, 250kbps",
            "tiny.yaml:14:33: sweep.over.fleet.edge.uplink.1: not a rate: '250kbps'",
        ),
        (
            "fleet.edge.uplink",
            "fleet.edge.uplnk",
            "tiny.yaml:14:5: sweep.over.fleet.edge.uplnk: unknown key; did you mean 'uplink'?",
        ),
        (
            "fleet.edge.uplink",
            "fleet.egde.uplink",
            "tiny.yaml:14:5: sweep.over.fleet.egde.uplink: the fleet has no class 'egde'; did you mean 'edge'?",
        ),
        ("fleet.edge.count", "flet", "tiny.yaml:15:5: sweep.over.flet: unknown key; did you mean 'fleet'?"),
        ("count: [2, 3]", "count: [2, 0]", "tiny.yaml:15:27: sweep.over.fleet.edge.count.1: 0 is below 1"),
        ("count: [2, 3]", "count: 2", "tiny.yaml:15:23: sweep.over.fleet.edge.count: not a list of values: 2"),
        ("count: [2, 3]", "count: []", "tiny.yaml:15:23: sweep.over.fleet.edge.count: not a list of values"),
        ("count: [2, 3]", "count: [2, 2]", "tiny.yaml:15:23: sweep.over.fleet.edge.count: 2 stands there twice"),
        ("count: [2, 3]", "count: [2, null]", "tiny.yaml:15:23: sweep.over.fleet.edge.count: a value is missing"),
        ("fleet.edge.count", "seed", "tiny.yaml:15:5: sweep.over.seed: no axis of a sweep: sweep.seeds says"),
        ("fleet.edge.count", "method", "tiny.yaml:15:5: sweep.over.method: no axis of a sweep: methods are variants"),
        ("fleet.edge.count", "fleet..count", "tiny.yaml:15:5: sweep.over.fleet..count: not the dotted key"),
        (
            "fleet.edge.count",
            "fleet.edge",
            "tiny.yaml:15:5: sweep.over.fleet.edge: 'fleet.edge.uplink' is a part of it",
        ),
        (
            "fleet.edge.count: [2, 3]",
            "method.compression.residual: [true]",
            "compression.residual: unknown setting of compression 'none'; allowed: name, values (in variant dense)",
        ),
        ("stop: { updates: 600 }", "stop: { time: 9s }", "tiny.yaml:7:7: stop: no updates; a run of a sweep gives up"),
        ("  over:\n", "  over: []\n  oder:\n", "tiny.yaml:13:9: sweep.over: not a mapping of settings to lists"),
        ("dense: { method: sync-sgd }", "dense: { method: synthetic-gradients }", "has a layer-wise method"),
    ],
)
def test_each_mistake_is_said_where_it_stands(tmp_path, before, after, expected):
    """With what is allowed, and what was probably meant."""
    assert before in SWEEP
    found = problems(tmp_path, SWEEP.replace(before, after))

    assert any(expected in problem for problem in found), found


def test_what_no_trial_has_is_said_once(tmp_path):
    """Not for each value and each variant."""
    assert len(problems(tmp_path, SWEEP.replace("edge.uplink", "edge.uplnk"))) == 1


def test_options_change_the_section(tmp_path):
    """The dots behind `sweep.over` are those of an axis, and null takes the section away."""
    path = write_sweep(tmp_path)
    found = load_scenario(path, ["sweep.accuracy=0.7", "sweep.over.fleet.edge.uplink=[1mbit]", "sweep.seeds=3"]).sweep

    assert (found.accuracy, found.seeds) == (0.7, 3)
    assert found.over == {"fleet.edge.uplink": ["1mbit"], "fleet.edge.count": [2, 3]}
    assert load_scenario(path, ["sweep=null"]).sweep is None
    given_whole = load_scenario(path, ["sweep=null", "sweep={accuracy: 0.5, over: {task.batch_size: [5]}}"]).sweep
    assert given_whole.over == {"task.batch_size": [5]}
    assert problems(tmp_path, SWEEP, "sweep.over.fleet.edge.uplink=[1]")[0].startswith(
        "--set sweep.over.fleet.edge.uplink=[1]: sweep.over.fleet.edge.uplink.0: not a rate"
    )


SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), max_size=12)


@given(st.recursive(SCALARS | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner)))
def test_a_value_is_written_as_it_is_read(value):
    """Whatever it is, an option gives the same."""
    assert source.from_plain(source.parse(value_text(value), "", lines=False), source.Place("")).plain() == value


def test_the_example_of_the_document_is_a_sweep(tmp_path):
    """What a user copies is checked as it stands."""
    text = (Path(__file__).parents[3] / "docs/sweeping.md").read_text(encoding="utf-8")
    section = load_scenario(write_sweep(tmp_path, text.partition("```yaml\n")[2].partition("```")[0])).sweep

    assert list(section.over) == ["fleet.edge.uplink", "fleet.edge.count"]


def test_the_sweep_that_is_shipped_compares_enough():
    """At least six methods at five uplinks."""
    scenario = load_scenario(Path(__file__).parents[3] / "scenarios/sweeps/links.yaml")

    assert len(scenario.trials) >= 6
    assert len(scenario.sweep.over["fleet.edge.uplink"]) >= 5
