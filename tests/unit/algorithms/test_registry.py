"""Every part is declared as a part must be, and wrong settings are refused."""

import ast
import dataclasses
import inspect
import re

import numpy as np
import pytest

from edgebed.algorithms import registry
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.registry import FAMILIES, KINDS, LIKE, PRESETS
from edgebed.core.plan import Method, Part
from edgebed.learning.shards.building import input_optimizer_of, module_optimizer_of, optimizer_of
from edgebed.scenario.methods import family_of

PARTS = [(kind, name) for kind, table in KINDS.items() for name in table]
CLASSES = {
    "aggregation": "Aggregation",
    "compression": "Compression",
    **dict.fromkeys(("downlink", "beside_compression", "beside_downlink"), "Compression"),
    "local_work": "LocalWork",
}

parts = pytest.mark.parametrize(("kind", "name"), PARTS, ids="{}".format)


@parts
def test_a_part_has_a_config_with_its_name_and_can_be_made_of_defaults(kind, name):
    """Frozen, keyword only, every field with a default."""
    module = KINDS[kind][name]
    config = registry.configure(kind, Part(name=name))

    assert config == module.Config()
    assert config.name == name
    assert config.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(config))
    if kind in CLASSES:
        assert inspect.isclass(getattr(module, CLASSES[kind]))
    elif kind == "learning":
        assert isinstance(module.rule(config), Rule)
    elif kind == "exchange":
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        assert module.exchange(array, config).restored().shape == array.shape
    else:
        settings = {key: value for key, value in dataclasses.asdict(config).items() if key != "name"}
        parts = {"optimizer": Part(name="adam")} | {kind: Part(name=name, settings=settings)}
        of = {
            "optimizer": optimizer_of, "module_optimizer": module_optimizer_of, "input_optimizer": input_optimizer_of
        }[kind]  # fmt: skip
        made = of(Method(name="x", parts=parts))
        assert made.descent.config == config
        assert made.rate(0) == config.learning_rate


@parts
def test_every_setting_says_what_it_does(kind, name):
    """A docstring below each field but `name`; docs/scenario.md is made of them."""
    tree = ast.parse(inspect.getsource(KINDS[kind][name]))
    (config,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Config"]
    for field, following in zip(config.body, [*config.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and field.target.id != "name":
            assert isinstance(following, ast.Expr), f"{name}.{field.target.id} has no docstring"


@parts
def test_a_part_that_comes_from_a_paper_names_it(kind, name):
    """Author, year and where it appeared; what everybody knows comes from no paper."""
    text = inspect.getdoc(KINDS[kind][name])

    assert name in ("none", "dense", "sgd", "momentum", "nothing", "alone") or re.search(
        r"[A-Z]\w+ (et al\. )?(19|20)\d\d", text
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_names_all_parts_of_its_family_which_can_be_configured(preset):
    """Each with settings that its Config accepts."""
    assert [kind for kind in PRESETS[preset] if kind not in LIKE] == [*FAMILIES[family_of({"preset": preset})]]
    for kind, given in PRESETS[preset].items():
        settings = {key: value for key, value in given.items() if key != "name"}
        config = registry.configure(kind, Part(name=given["name"], settings=settings))
        assert dataclasses.asdict(config) | given == dataclasses.asdict(config)


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [
        ("compression", "top-k", {"fraction": 0.0}), ("compression", "top-k", {"fraction": 1.5}),
        ("compression", "top-k", {"fraction": float("nan")}), ("compression", "top-k", {"fraction": "0.1"}),
        ("compression", "top-k", {"scope": "layer"}), ("compression", "top-k", {"values": "float64"}),
        ("compression", "none", {"values": "int8"}), ("aggregation", "asynchronous", {"learning_rate": 0.0}),
        ("aggregation", "asynchronous", {"learning_rate": float("nan")}),
        ("aggregation", "asynchronous", {"staleness": "squared"}),
        ("aggregation", "asynchronous", {"indicator": "any"}),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_setting_is_a_value_error(kind, name, settings):
    """Wrong type, outside of its range, not one of the choices."""
    with pytest.raises(ValueError):
        registry.configure(kind, Part(name=name, settings=settings))
