"""Overrides given from Python as a mapping say what the options of a command line say."""

import numpy as np
import pytest
from finished_runs import SCENARIO
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.core.units import LARGEST
from edgebed.scenario.load import load_scenario
from edgebed.scenario.overrides import options_of, parse_set

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | st.floats(-LARGEST, LARGEST) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_any_value_arrives_as_it_was(value):
    """Text stays text, also where YAML would read a number in it."""
    (option,) = options_of({"a.b": value})
    keys, tree = parse_set(option)

    assert keys == ("a", "b")
    assert repr(tree.descend(keys)[0].plain()) == repr(value)


def test_a_mapping_gives_the_trials_that_options_give():
    """Dotted or nested, numpy's numbers too."""
    options = ["fleet.edge.count=8", "fleet.edge.uplink=1mbit", "seed=2", "task.batch_size=5"]
    settings = {
        "fleet.edge": {"count": np.int64(8), "uplink": "1mbit"}, "seed": 2, "task": {"batch_size": 5}
    }  # fmt: skip

    assert load_scenario(SCENARIO, options_of(settings)).trials == load_scenario(SCENARIO, options).trials
    assert options_of({"fleet.edge.uplink": "1mbit", "task.model": "nets:tiny"}) == (
        "fleet.edge.uplink=1mbit", "task.model=nets:tiny",
    )  # fmt: skip


def test_options_as_text_stay_as_they_are():
    """As the command line hands them on."""
    assert options_of(["a=1", "b=x y"]) == ("a=1", "b=x y")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("fleet.edge.count=8", r"one string; give a mapping, e.g. \{'fleet.edge.count': 8\}"),
        ({"a.b": {1, 2}}, "a set; give a number, a text, a list or a mapping"),
        ({"task.model": lambda: None}, "task.model: .* cannot be found by a name"),
    ],
)
def test_what_no_file_could_say_is_refused(settings, message):
    """With what to give instead."""
    with pytest.raises(ScenarioError, match=message):
        options_of(settings)


@pytest.mark.parametrize(
    ("key", "text", "kind"),
    [
        ("faults", "[{kill: edge-1, at: 1s}]", "list"),
        ("fleet.edge", "{count: 3}", "mapping"),
        ("fleet.edge.link_steps", "[{at: 1s, uplink: 1mbit}]", "list"),
    ],
)
def test_the_text_of_a_list_or_mapping_is_text_and_the_error_says_so(key, text, kind):
    """As an option it is one, since options are read as YAML; a mapping's value is what it would be in Python."""
    load_scenario(SCENARIO, options_of([f"{key}={text}"]))
    with pytest.raises(ScenarioError, match=f"not a {kind}: .*, which is text; write the {kind} itself, without q"):
        load_scenario(SCENARIO, options_of({key: text}))


def test_a_function_of_a_module_is_named_by_its_import_path():
    """So that any runtime finds it."""
    assert options_of({"task": {"data": load_scenario}}) == (
        'task={"data": edgebed.scenario.load:load_scenario}',
    )  # fmt: skip
