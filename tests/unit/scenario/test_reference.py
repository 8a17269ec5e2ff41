"""The scenario's references have every key, and every scenario that is shown to users loads."""

import json
import re
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from docs.generate import scenario
from edgebed.algorithms.registry import KINDS, LIKE, PRESETS
from edgebed.core.measures.trial import all_measures
from edgebed.journal.summary import COMPARISONS as JUDGED_COMPARISONS
from edgebed.learning.data_sets.split import SPLITS
from edgebed.learning.models.registry import MODELS as MODEL_TABLE
from edgebed.learning.objectives.registry import all_declared
from edgebed.scenario import choices, schema
from edgebed.scenario.expectations import Expectations
from edgebed.scenario.load import KEYS, TRIAL_KEYS, load_scenario

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "scenarios").rglob("*.yaml"))


@pytest.fixture(scope="module")
def editor_schema():
    """The JSON schema, parsed."""
    return json.loads(scenario.json_schema())


@pytest.mark.parametrize("path", SCENARIOS)
def test_every_scenario_loads(path):
    """Those that come with edgebed, without looking at data."""
    loaded = load_scenario(ROOT / path)

    assert loaded.trials
    assert loaded.question


@pytest.mark.parametrize("path", SCENARIOS)
def test_every_scenario_begins_with_the_schema_it_is_checked_by(path):
    """By a path that leads there from its own folder."""
    first = (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)

    assert found
    assert ((ROOT / path).parent / found[1]).resolve() == (ROOT / "schema/scenario.schema.json")


@pytest.mark.slow
def test_the_example_of_the_document_runs_and_meets_its_expectations(tmp_path):
    """What a user copies works, in simulation."""
    path = tmp_path / "example.yaml"
    path.write_text(scenario.markdown().partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")

    run = run_quickly(path, runtime="simulation", runs_dir=tmp_path / "runs")

    assert list(run.trials) == ["iid", "two-labels", "two-labels-more-bytes"]
    assert run.exit_code == 0


def test_the_editor_schema_knows_exactly_the_keys_that_loading_allows(editor_schema):
    """At the top, in variants and in every section."""
    definitions = editor_schema["$defs"]

    assert set(KEYS) == set(editor_schema["properties"])
    assert set(TRIAL_KEYS) == set(definitions["Variant"]["properties"])
    for section in (
        schema.TaskSection,
        schema.DeviceClass,
        schema.ServerSection,
        schema.EvaluatorSection,
        schema.StopSection,
    ):
        assert set(section.model_fields) == set(definitions[section.__name__]["properties"])
        assert definitions[section.__name__]["additionalProperties"] is False


def test_every_measure_of_a_trial_can_be_expected(editor_schema):
    """By its name, with a bound in its unit."""
    measures = all_measures(all_declared())
    assert set(editor_schema["$defs"]["Expectations"]["properties"]) == {*measures, "verdict"}
    for name, measure in measures.items():
        found = Expectations.model_validate({name: measure.unit.example})
        assert list(found.problems(measures)) == []
        assert measure.unit.example == found.bounds[name].text


def test_every_key_has_an_explanation(editor_schema):
    """It is what an editor shows, and what the document is made of."""
    sections = [editor_schema, *editor_schema["$defs"].values()]
    silent = [
        key for section in sections for key, value in section["properties"].items() if not value.get("description")
    ]

    assert silent == []


def test_every_reference_in_the_editor_schema_leads_somewhere(editor_schema):
    """No definition is missing, none is unused."""
    used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(editor_schema)))

    assert set(editor_schema["$defs"]) == used


def test_all_methods_of_the_registry_are_in_both_documents(editor_schema):
    """Presets, parts and their settings."""
    preset, spelled = editor_schema["properties"]["method"]["anyOf"]
    text = scenario.markdown()

    assert list(PRESETS) == preset["enum"]
    for kind, modules in KINDS.items():
        *forms, names, own, own_with_settings = spelled["properties"][kind]["anyOf"]
        assert list(modules) == names["enum"] == [form["properties"]["name"]["const"] for form in forms]
        assert own_with_settings["properties"]["name"] == own
        assert all(f"### {LIKE.get(kind, kind)}: `{name}`" in text for name in modules)


def test_the_names_a_scenario_may_use_are_those_that_exist():
    """The schema repeats some tables so that checking a scenario need not import torch."""
    assert set(MODEL_TABLE) == set(schema.MODELS)
    assert {"iid", "dirichlet", "by-label"} == set(SPLITS)
    assert set(JUDGED_COMPARISONS) == set(choices.COMPARISONS)
