"""`edgebed validate`: valid is what can be planned; what could not be looked at here is said."""

import functools
import json
import sys

import pytest
from command_line import command_line

from edgebed.core.errors import ScenarioError
from edgebed.core.imports import forgetting
from edgebed.planning.checking import check
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

SCENARIO = """\
name: tiny
task: { data: digits, model: small, batch_size: 16 }
method: asgd
fleet: { edge: { count: 2 } }
stop: { updates: 100 }
"""
LAYERS = SCENARIO.replace("asgd", "back-propagation").replace("small", "four-layer") + "shards: { cuts: even }\n"
NET = """\
import torch


def tiny(input_shape, outputs):
    print('built')
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, outputs))
"""


@pytest.fixture
def written(tmp_path):
    """Writes a text as a scenario file, perhaps in a sub-folder and with a module `mynets` beside it."""

    def write(text, net="", folder="."):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "s.yaml").write_text(text)
        (tmp_path / folder / "mynets.py").write_text(net)
        return tmp_path / folder / "s.yaml"

    return write


@pytest.fixture
def validate(monkeypatch, capsys):
    """The command in this process; gives (exit code, standard output, standard error)."""
    return functools.partial(command_line(monkeypatch, capsys), "validate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("small", "mynots:tiny", "2:30: task.model: mynots:tiny: there is no module 'mynots' in"),
        ("small", "mynets:wide", "2:30: task.model: mynets:wide: module 'mynets' has no 'wide'. It has: tiny"),
        ("digits", "mynets:wide", "2:15: task.data: mynets:wide: module 'mynets' has no 'wide'"),
        ("batch_size: 16", "split: { by-label: 50 }", "task.split: "),
        ("count: 2", "count: 5000", "2:7: task: 5000 workers cannot share 1438 examples"),
    ],
)
def test_what_cannot_be_planned_is_not_valid(written, old, new, problem):
    """Own code, counts and splits: the same words at the same place as `plan` would say."""
    path = written(SCENARIO.replace(old, new), NET)

    checked = check(path)

    assert (checked.valid, len(checked.problems)) == (False, 1)
    assert problem in checked.problems[0]
    with pytest.raises(ScenarioError) as caught, forgetting(path.parent):
        plan_trials(load_scenario(path))
    assert caught.value.problems == checked.problems


@pytest.mark.parametrize(
    ("cuts", "problem"),
    [
        ("[99]", "shards.cuts"),
        ("[9, 3]", "6:17: shards.cuts: [9, 3]: cuts rise, e.g. [1, 3]: 3 comes after 9"),
        ("[0, 2]", "shards.cuts: [0, 2]: cuts rise, e.g. [1, 3]: layer 0 begins a shard anyway"),
    ],
)
def test_cuts_that_do_not_fit_are_not_valid(written, cuts, problem):
    """They are laid on the workers."""
    checked = check(written(LAYERS.replace("even", cuts)))

    assert checked.valid is False
    assert problem in checked.problems[0]


def test_files_with_modules_of_the_same_name_have_their_own(written, validate):
    """One beside each; none is left in this process, and what it prints is no result."""
    good = written(SCENARIO.replace("small", "mynets:tiny"), NET, "good")
    bad = written(SCENARIO.replace("small", "mynets:tiny"), NET.replace("tiny", "other"), "bad")
    path = list(sys.path)

    code, out, err = validate(good, bad)

    assert (code, out) == (2, f"{good}: valid\n")
    assert "built\n" in err
    assert f"error: {bad}:2:30: task.model: mynets:tiny: module 'mynets' has no 'tiny'. It has: other" in err
    assert (sys.path, "mynets" in sys.modules) == (path, False)


def test_data_that_is_not_here_is_not_fetched_and_what_was_not_checked_is_said(
    written, validate, tmp_path, monkeypatch
):
    """Without the word valid: nobody can tell. Other trials are planned all the same."""
    monkeypatch.setenv("EDGEBED_DATA_DIR", str(tmp_path / "data"))
    path = written(SCENARIO.replace("digits", "mnist"))
    both = written(
        SCENARIO + "variants: { a: { task: { data: cifar10 } }, b: { task: { split: { by-label: 50 } } } }\n", "", "b"
    )

    code, out, err = validate(path)
    assert (code, err) == (0, "")
    assert out == (
        f"{path}: no mistake found, but the data of mnist is not in {tmp_path / 'data'}: models, counts, splits and "
        "cuts were not checked. edgebed plan downloads mnist\n"
    )
    other = written(SCENARIO.replace("digits", "heart"), "", "c")
    assert validate(other)[1].endswith("edgebed plan says where to put heart\n")
    sets = ("mnist", "cifar10", "heart", "har", "parkinsons")
    variants = ", ".join(f"v{k}: {{ task: {{ data: {name} }} }}" for k, name in enumerate(sets))
    many = written(SCENARIO + f"variants: {{ {variants} }}\n", "", "d")
    said = validate(many)[1]
    assert f"the data of {', '.join(sets[:-1])} and parkinsons is not in {tmp_path / 'data'}: " in said
    assert said.endswith(
        "edgebed plan downloads mnist and cifar10; edgebed plan says where to put heart, har and parkinsons\n"
    )
    (row,) = json.loads(validate(path, "--json")[1])
    assert (row["valid"], row["absent"], row["problems"]) == (None, ["mnist"], [])
    assert "50 labels per worker" in check(both).problems[0]
    assert not (tmp_path / "data").exists()


def test_what_an_option_made_impossible_is_warned_of_once(written, validate):
    """The file is valid; a warning that does not hold for all variants names those for which it does."""
    variants = "variants: { a: {}, b: {}, c: { faults: [] } }\n"
    path = written(SCENARIO + "faults: [{ kill: edge-0, at_update: 50 }]\n" + variants)

    code, out, err = validate(path, "--set", "stop.updates=20")
    (row,) = json.loads(validate(path, "--json", "--set", "stop.updates=20")[1])

    assert (code, out) == (0, f"{path}: valid\n")
    assert err == (
        "warning: --set stop.updates=20: kill-1 comes at update 50, but the trial ends with update 20; let it come "
        "sooner, or the trial end later (in variant a, b)\n"
    )
    assert (row["valid"], [f"warning: {each}\n" for each in row["warnings"]]) == (True, [err])
