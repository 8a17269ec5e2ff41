"""The section `sweep`: every mistake is said where it stands, with what is allowed; other commands pass it over."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tiny_sweep import SWEEP, write_sweep

from edgebed.core.measures.task import Level
from edgebed.core.units import LARGEST
from edgebed.scenario import source
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.sweep_section import value_text


def test_the_section_is_read(tmp_path):
    """All variants are compared, with one seed, and by the mean of three evaluations, unless it says otherwise."""
    section = load_scenario(write_sweep(tmp_path)).sweep

    assert (section.level, section.methods, section.seeds) == (Level("accuracy", 0.8, 3), [], 1)
    assert section.over == {"fleet.edge.uplink": ["16mbit", "250kbit"], "fleet.edge.count": [2, 3]}


def test_a_scenario_is_run_as_if_it_had_none(tmp_path):
    """Its trials are the same, and what is kept with a run has no section."""
    with_it = load_scenario(write_sweep(tmp_path))
    without = load_scenario(write_sweep(tmp_path, SWEEP.partition("sweep:")[0]))

    assert without.sweep is None
    assert with_it.trials == without.trials
    assert resolved_yaml(with_it) == resolved_yaml(without)


def test_options_change_the_section(tmp_path):
    """The dots behind `sweep.over` are those of an axis, and null takes the section away."""
    path = write_sweep(tmp_path)
    found = load_scenario(path, ["sweep.accuracy=0.7", "sweep.over.fleet.edge.uplink=[1mbit]", "sweep.seeds=3"]).sweep

    assert (found.required_level.value, found.seeds) == (0.7, 3)
    assert found.over == {"fleet.edge.uplink": ["1mbit"], "fleet.edge.count": [2, 3]}
    assert load_scenario(path, ["sweep=null"]).sweep is None
    given_whole = load_scenario(path, ["sweep=null", "sweep={accuracy: 0.5, over: {task.batch_size: [5]}}"]).sweep
    assert given_whole.over == {"task.batch_size": [5]}


SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-LARGEST, LARGEST)
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
