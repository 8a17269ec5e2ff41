"""What a scenario says about its method -> its parts with all their settings.

The rule: `preset` gives the parts. What is written under a part, as `compression`, overrides the preset's settings one
by one; where a part is given another `name`, the preset's settings of that part are dropped. Without a preset all parts
of one family need a name, `local_work` being `gradient-step` and `optimizer` `adam` unless said otherwise. What
optimizes the modules is given only where it is not what optimizes the layers, and then as what differs from it.

The parts and their settings come from `algorithms/registry.py` alone: a new part is known here as soon as it is in the
table, with its settings checked by type and by its own `Config`.
"""

import ast
import dataclasses
import functools
import inspect
import textwrap
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from edgebed.algorithms.registry import FAMILIES, KINDS, LIKE, PRESETS
from edgebed.scenario.plan import Method, Part
from edgebed.scenario.problems import Problem, Problems, choose, problems_of, show, unknown_keys

CUSTOM = "custom"
DEFAULT_NAMES = {"local_work": "gradient-step", "optimizer": "adam", "exchange": "dense"}


def resolve_method(given: object) -> Method:
    """The method that a preset's name or a mapping means; `Problems` with every mistake in it."""
    if isinstance(given, str):
        if given not in PRESETS:
            raise Problems([Problem((), _unknown_preset(given))])
        given = {"preset": given}
    if not isinstance(given, Mapping):
        raise Problems([Problem((), f"not a method: {show(given)}; {choose('', PRESETS)}, or a mapping of its parts")])
    problems = unknown_keys(given, ("preset", *KINDS))
    preset = given.get("preset")
    if preset is not None and preset not in PRESETS:
        raise Problems([*problems, Problem(("preset",), _unknown_preset(preset))])
    parts: dict[str, Part] = {}
    family = family_of(given)
    problems += [
        Problem((kind,), f"no part of a {family} method; {choose(kind, FAMILIES[family])}")
        for kind in KINDS
        if kind in given and LIKE.get(kind, kind) not in FAMILIES[family]
    ]
    besides = [kind for kind, like in LIKE.items() if like in FAMILIES[family] and given.get(kind) is not None]
    for kind in (*FAMILIES[family], *besides):
        try:
            parts[kind] = _resolve_part(kind, given.get(kind), _inherited(kind, preset, parts))
        except Problems as error:
            problems += [problem.under(kind) if kind in given else problem for problem in error.problems]
    if problems:
        raise Problems(problems)
    return Method(name=preset or CUSTOM, parts=parts)


def _unknown_preset(given: object) -> str:
    """Names of methods begin alike, so that only one that is very like is what was meant."""
    chosen = choose(given, PRESETS, likeness=0.7)
    how = "" if "did you mean" in chosen else "; docs/creating-a-method.md says how to add one"
    return f"unknown preset: {show(given)}; {chosen}{how}"


def family_of(method: Mapping[str, Any]) -> str:
    """The family of the preset, else that of which `method` has parts."""
    kinds = PRESETS.get(str(method.get("preset")), method)
    return max(FAMILIES, key=lambda family: sum(kind in kinds for kind in FAMILIES[family]))


def part_name(kind: str, method: Mapping[str, Any]) -> str | None:
    """The name of a part as `method` (a mapping with preset and parts) gives it, if it does."""
    part = method.get(kind)
    if isinstance(part, Mapping) and part.get("name") is not None:
        return str(part["name"])
    if kind in LIKE:
        return part_name(LIKE[kind], method)
    preset = PRESETS.get(str(method.get("preset")))
    return str(preset[kind]["name"]) if preset and kind in preset else DEFAULT_NAMES.get(kind)


def write_method(method: Method) -> dict[str, Any]:
    """The method spelled out as a scenario would: `resolve_method` of it gives the same method."""
    head = {} if method.name == CUSTOM else {"preset": method.name}
    return head | {kind: {"name": part.name, **part.settings} for kind, part in method.parts.items()}


def method_schema() -> dict[str, Any]:
    """JSON schema of what `resolve_method` takes."""
    parts = {
        kind: {
            "description": f"As `{LIKE[kind]}`, but for what is said here."
            if kind in LIKE
            else f"Overrides the preset's {kind.replace('_', ' ')}, or names another one.",
            "anyOf": [settings_schema(kind, name) for name in names],
        }
        for kind, names in KINDS.items()
    }
    preset = {"type": "string", "enum": list(PRESETS)}
    spelled = {"preset": preset | {"description": "A named method, which gives all its parts."}, **parts}
    return {
        "title": "Method",
        "anyOf": [preset, {"type": "object", "properties": spelled, "additionalProperties": False}],
    }


def settings_schema(kind: str, name: str) -> dict[str, Any]:
    """JSON schema of one part: its name and its settings."""
    schema = settings_model(kind, name).model_json_schema()
    schema["title"] = name
    schema["description"] = inspect.getdoc(KINDS[kind][name].Config) or ""
    for setting in schema["properties"].values():
        setting.pop("title", None)
    return schema


@functools.cache
def settings_model(kind: str, name: str) -> type[BaseModel]:
    """The settings that the part's `Config` declares, as a model that checks their types."""
    config = KINDS[kind][name].Config
    types, docs = typing.get_type_hints(config), _attribute_docstrings(config)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        default = ... if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        fields[field.name] = (types[field.name], Field(default=default, description=docs.get(field.name)))
    checks = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(f"{kind}-{name}", __config__=checks, **fields)


def _inherited(kind: str, preset: str | None, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Name and settings of a part, where nothing is said of them."""
    if kind in LIKE:
        like = parts.get(LIKE[kind])  # none where that has a mistake
        return {"name": like.name, **like.settings} if like else {"name": DEFAULT_NAMES.get(LIKE[kind])}
    return PRESETS[preset][kind] if preset else {"name": DEFAULT_NAMES.get(kind)}


def _resolve_part(kind: str, given: object, inherited: Mapping[str, Any]) -> Part:
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise Problems([Problem((), f"not a mapping: {show(given)}; write {kind}: {{name: {show(given)}}}")])
    name = given.get("name", inherited["name"])
    if name is None:
        missing = f"{kind} has no name, and there is no preset to give one; {choose('', KINDS[kind])}"
        raise Problems([Problem((), missing)])
    if name not in KINDS[kind]:
        raise Problems([Problem(("name",), f"unknown {kind}: {show(name)}; {choose(name, KINDS[kind])}")])
    settings = (dict(inherited) if name == inherited["name"] else {}) | dict(given) | {"name": name}
    return Part(name=name, settings=_check_settings(kind, name, settings))


def _check_settings(kind: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of the part, defaults included; `Problems` where one is unknown, of a wrong type or refused."""
    model, config = settings_model(kind, name), KINDS[kind][name].Config
    problems: list[Problem] = unknown_keys(settings, model.model_fields, f"setting of {kind} '{name}'")
    known = {key: value for key, value in settings.items() if key in model.model_fields}
    try:
        checked = model.model_validate(known).model_dump()
    except ValidationError as error:
        raise Problems([*problems, *problems_of(error)]) from None
    try:
        made = config(**checked)
        if kind == "downlink" and hasattr(made, "check_downlink"):
            made.check_downlink()
    except ValueError as error:
        field, colon, message = str(error).partition(": ")
        problems.append(Problem((field,), message) if colon and field in checked else Problem((), str(error)))
    if problems:
        raise Problems(problems)
    return {key: value for key, value in checked.items() if key != "name"}


def _attribute_docstrings(config: type) -> dict[str, str]:
    """The string literals that stand below the fields of a class, and of those that it is made from."""
    docs = {}
    for declared in reversed([each for each in config.__mro__ if dataclasses.is_dataclass(each)]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(declared))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                docs[field.target.id] = inspect.cleandoc(str(ast.literal_eval(text.value)))
    return docs
