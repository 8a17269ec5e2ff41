"""What optimizes the modules: as what optimizes the layers, but for what is said of it."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.optimizer import OPTIMIZERS
from edgebed.learning.shards.building import input_optimizer_of, module_optimizer_of, optimizer_of
from edgebed.scenario.load import load_scenario
from edgebed.scenario.methods import resolve_method, write_method

SCENARIO: dict[str, Any] = {
    "name": "modules",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": {"preset": "synthetic-gradients"},
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 10},
}


def test_without_a_word_it_is_that_of_the_layers() -> None:
    """And the method is what it was before there was such a part."""
    method = resolve_method({"preset": "synthetic-gradients", "optimizer": {"name": "sgd", "decay_at": [5]}})

    assert list(method.parts) == ["learning", "optimizer", "exchange"]
    assert module_optimizer_of(method).descent.config == optimizer_of(method).descent.config


def test_what_is_said_of_it_is_all_that_differs() -> None:
    """Also in kind; one of another kind has that kind's defaults."""
    optimizer = {"name": "momentum", "learning_rate": 0.5, "momentum": 0.8, "decay_at": [7]}
    same, other = (
        resolve_method({"preset": "synthetic-gradients", "optimizer": optimizer, "module_optimizer": given})
        for given in ({"learning_rate": 0.25}, {"name": "adam", "learning_rate": 0.25})
    )

    assert optimizer_of(same).descent.config == optimizer_of(other).descent.config
    of_same, of_other = (module_optimizer_of(each).descent.config for each in (same, other))
    assert (of_same.momentum, of_same.learning_rate, of_same.decay_at) == (0.8, 0.25, [7])
    assert (of_other.name, of_other.decay_at) == ("adam", [])


def test_modules_of_inputs_learn_as_those_of_gradients_unless_they_have_an_optimizer_of_their_own() -> None:
    """What it does not say is as of the layers' optimizer."""
    given = {"preset": "synthetic-inputs", "module_optimizer": {"name": "sgd", "learning_rate": 0.5}}
    same, other = (resolve_method(given | own) for own in ({}, {"input_optimizer": {"learning_rate": 1e-5}}))

    assert input_optimizer_of(same).descent.config == module_optimizer_of(same).descent.config
    assert module_optimizer_of(other).descent.config == module_optimizer_of(same).descent.config
    assert input_optimizer_of(other).descent.config == dataclasses.replace(
        optimizer_of(other).descent.config, learning_rate=1e-5
    )


@given(
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from([None, *sorted(OPTIMIZERS)]),
    st.floats(1e-6, 1.0),
    st.booleans(),
)
def test_a_method_spelled_out_is_the_same_method(name: str, module: str | None, rate: float, has_rate: bool) -> None:
    """Whatever was left out."""
    said = ({"name": module} if module else {}) | ({"learning_rate": rate} if has_rate else {})
    method = resolve_method({"preset": "synthetic-inputs", "optimizer": {"name": name}, "module_optimizer": said})

    assert resolve_method(write_method(method)) == method


def test_only_modules_that_predict_inputs_may_stay_as_they_were_drawn() -> None:
    """A learning rate of 0 says so."""
    method = {"preset": "synthetic-inputs", "input_optimizer": {"learning_rate": 0}}
    (trial,) = load_scenario(SCENARIO | {"method": method}).trials.values()
    assert input_optimizer_of(trial.method).rate(0) == 0


def test_an_option_that_names_another_kind_drops_the_settings_of_the_one_before() -> None:
    """As with every part."""
    given = {"preset": "synthetic-gradients", "module_optimizer": {"name": "momentum", "momentum": 0.5}}
    scenario = load_scenario(SCENARIO | {"method": given}, ["method.module_optimizer.name=sgd"])
    (trial,) = scenario.trials.values()

    settings = {field.name for field in dataclasses.fields(OPTIMIZERS["sgd"].Config)}
    assert trial.method.parts["module_optimizer"].settings.keys() == settings - {"name"}
