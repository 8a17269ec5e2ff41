"""docs/creating-a-method.md works: its files are written, its laws hold, its scenario runs."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import edgebed
from edgebed.algorithms import compression, registry
from edgebed.errors import ScenarioError
from edgebed.scenario import methods
from edgebed.scenario.load import load_scenario

DOCUMENT = Path(__file__).parents[3] / "docs/creating-a-method.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^File `([^`]+)`:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
(TABLE,) = re.findall(r"^## 3.*?```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def random_k(tmp_path, monkeypatch):
    """The part of the document, in a file and in the tables, as if it belonged to edgebed; gone after the test."""
    assert not {"random-k", "random-asgd"} & {*registry.COMPRESSIONS, *registry.PRESETS}, "choose another example"
    path = tmp_path / "random_k.py"
    path.write_text(FILES["services/edgebed/algorithms/compression/random_k.py"], encoding="utf-8")
    name = "edgebed.algorithms.compression.random_k"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(compression, "random_k", module, raising=False)
    spec.loader.exec_module(module)
    exec(TABLE, {"COMPRESSIONS": registry.COMPRESSIONS, "PRESETS": registry.PRESETS, "random_k": module})
    yield module
    del registry.COMPRESSIONS["random-k"], registry.PRESETS["random-asgd"]
    methods.settings_model.cache_clear()


def test_the_laws_of_the_document_hold(random_k):
    """Each of its tests, as pytest would run them."""
    namespace = {}
    exec(FILES["tests/unit/algorithms/test_random_k.py"], namespace)
    laws = [law for name, law in namespace.items() if name.startswith("test_")]

    assert len(laws) == 3
    for law in laws:
        law()


def test_the_scenario_of_the_document_runs_and_meets_its_expectations(random_k, tmp_path):
    """In simulation, with the new part and its preset; its wrong settings are the user's mistake, with their place."""
    path = tmp_path / "random-k.yaml"
    path.write_text(FILES["scenarios/random-k.yaml"], encoding="utf-8")

    run = edgebed.run(path, runtime="simulation", runs_dir=tmp_path / "runs", processes=1)

    assert run.exit_code == 0
    assert list(run.trials) == ["largest", "any"]
    with pytest.raises(ScenarioError, match=r"fraction.*0\.0 is not in \(0, 1\]"):
        load_scenario(path, ["variants.any.method.compression.fraction=0.0"])


def test_the_example_is_as_short_as_it_says():
    """A method of some 60 lines."""
    lines = FILES["services/edgebed/algorithms/compression/random_k.py"].splitlines()

    assert len(lines) <= 65
    assert max(map(len, lines)) <= 120
