"""A method as a scenario writes it -> its parts with all their settings.

The rule: `preset` gives the parts. What is written under a part, as `compression`, overrides the preset's settings one
by one; where a part is given another `name`, the preset's settings of that part are dropped. Without a preset all parts
of one family need a name, `local_work` being `gradient-step` and `optimizer` `adam` unless said otherwise. What
optimizes the modules is given only where it is not what optimizes the layers, and then as what differs from it.

The parts and their settings come from `algorithms/registry.py` alone: a new part is known here as soon as it is in the
table, with its settings checked by type and by its own `Config`. A name may also be the import path of a part of one's
own, which is imported here; so whatever is done with the method later finds it.
"""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, create_model

from edgebed.algorithms.local_work.local_steps import plain_objection
from edgebed.algorithms.registry import BESIDE, FAMILIES, KINDS, LIKE, PRESETS, code_of, configure
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.imports import FORM, PATTERN, is_import_path, reason
from edgebed.core.plan import Method, Part
from edgebed.scenario.custom_parts import check_part
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.mistakes.problems import Problem, Problems, choose, problems_of, show, unknown_keys
from edgebed.scenario.section import LazyJsonSchema

CUSTOM = "custom"
PYTHON_PATH = "python_path"
"""Folders that modules of one's own are looked for in, in the context of a scenario's check."""
STEPS_OF_OWN = "; docs/creating-local-work.md writes other steps"
"""Where local work has not what is asked of its steps."""
DEFAULT_NAMES = {"local_work": "gradient-step", "optimizer": "adam", "exchange": "dense"}


def python_path_of(info: ValidationInfo) -> Sequence[str]:
    """Where modules of one's own are looked for, as the context of a scenario's check says."""
    found: Sequence[str] = (info.context or {}).get(PYTHON_PATH, ())
    return found


def read_method(given: object, info: ValidationInfo) -> Method:
    """The method that a scenario names."""
    return resolve_method(given, python_path_of(info))


def resolve_method(given: object, python_path: Sequence[str] = ()) -> Method:
    """The method that a preset's name or a mapping means; `Problems` with every mistake in it."""
    if isinstance(given, str):
        if given not in PRESETS:
            raise Problems([_unknown_preset((), given)])
        given = {"preset": given}
    if not isinstance(given, Mapping):
        raise Problems([Problem((), f"not a method: {show(given)}; {choose('', PRESETS)}, or a mapping of its parts")])
    preset = given.get("preset")
    if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
        raise Problems([*unknown_keys(given, ("preset", *KINDS)), _unknown_preset(("preset",), preset)])
    parts: dict[str, Part] = {}
    family = family_of(given)
    problems = [
        Problem((kind,), f"no part of a {family} method; {choose(kind, FAMILIES[family])}")
        for kind in KINDS
        if kind in given and LIKE.get(kind, kind) not in FAMILIES[family]
    ]
    said = {kind for kind in LIKE if given.get(kind) is not None or kind in PRESETS.get(str(preset), {})}
    besides = [kind for kind, like in LIKE.items() if like in FAMILIES[family] and kind in said]
    for kind in (*FAMILIES[family], *besides):
        try:
            parts[kind] = _resolve_part(kind, given.get(kind), _inherited(kind, preset, parts), python_path)
        except Problems as error:
            found = [problem.under(kind) if kind in given else problem for problem in error.problems]
            alone = isinstance(given.get(kind), str)  # a name is where its part is
            problems += [problem._replace(path=(kind,)) if alone else problem for problem in found]
    homes = {key: kind for kind, part in parts.items() for key in part.settings}
    reasons = {key: f"a setting of {homes[key]}; write {homes[key]}: {{ {key}: ... }}" for key in given if key in homes}
    problems += unknown_keys(given, ("preset", *KINDS), reasons=reasons)
    problems = problems or list(_of_both_ends(parts, python_path))
    if problems:
        raise Problems(problems)
    return Method(name=preset or CUSTOM, parts=parts)


def _of_both_ends(parts: Mapping[str, Part], python_path: Sequence[str]) -> Iterable[Problem]:
    """Yield what of the server's part does not fit that of the workers."""
    if "aggregation" not in parts:
        return
    names = parts["aggregation"].name, parts["local_work"].name
    server = code_of("aggregation", names[0], python_path).Aggregation
    worker = code_of("local_work", names[1], python_path).LocalWork
    if server.goes_with not in ("", names[1]):
        yield Problem(("local_work",), f"the aggregation {names[0]} goes with local_work: {server.goes_with}")
    elif worker.goes_with not in ("", names[0]):
        yield Problem(("aggregation",), f"the local work {names[1]} goes with aggregation: {worker.goes_with}")
    elif server.vectors != worker.vectors:
        of_both = (f"{name} has {', '.join(made.vectors)}" for name, made in zip(names, (server, worker), strict=True))
        yield Problem(("local_work",), f"server and workers must have the same vectors: {' and '.join(of_both)}")
    elif server.wants_plain_steps:
        objection = plain_objection(configure("local_work", parts["local_work"], python_path))
        if objection:
            setting = objection.partition(":")[0]
            why = f"{objection} makes steps that {names[0]} cannot count; leave it out"
            yield Problem(("local_work", setting), why)
    for kind in BESIDE.values() if len(server.vectors) == 1 else ():
        if kind in parts:
            yield Problem((kind,), f"the aggregation {names[0]} sends no vector beside the model; leave it out")


def _unknown_preset(path: tuple[str, ...], given: object) -> Problem:
    """Say which method was meant, only if one is very like: names of methods begin alike."""
    choice = choose(given, PRESETS, likeness=0.7)
    how = "" if choice.meant else "; docs/creating-a-method.md says how to add one"
    return Problem(path, f"unknown preset: {show(given)}; {choice}{how}", choice=choice)


def family_of(method: Mapping[str, Any]) -> str:
    """Return the family of the preset, else the one whose parts `method` has."""
    kinds = PRESETS.get(str(method.get("preset")), method)
    return max(FAMILIES, key=lambda family: sum(kind in kinds for kind in FAMILIES[family]))


def part_name(kind: str, method: Mapping[str, Any]) -> str | None:
    """Return the name of a part as `method` (a mapping with preset and parts) gives it, if it does."""
    part = method.get(kind)
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("name") is not None:
        return str(part["name"])
    if kind in LIKE:
        return part_name(LIKE[kind], method)
    preset = PRESETS.get(str(method.get("preset")))
    return str(preset[kind]["name"]) if preset and kind in preset else DEFAULT_NAMES.get(kind)


def write_method(method: Method) -> dict[str, Any]:
    """Write the method out as a scenario would: `resolve_method` of it gives the same method."""
    head = {} if method.name == CUSTOM else {"preset": method.name}
    return head | {kind: {"name": part.name, **part.settings} for kind, part in method.parts.items()}


def method_schema() -> dict[str, Any]:
    """Return the JSON schema of what `resolve_method` takes."""
    parts = {
        kind: {
            "description": f"As `{LIKE[kind]}`, but for what is said here."
            if kind in LIKE
            else f"Overrides the preset's {kind.replace('_', ' ')}, or names another one.",
            "anyOf": [*(settings_schema(kind, name) for name in names), *_names_schema(names)],
        }
        for kind, names in KINDS.items()
    }
    preset = {"type": "string", "enum": list(PRESETS)}
    spelled = {"preset": preset | {"description": "A named method, which gives all its parts."}, **parts}
    return {
        "title": "Method",
        "anyOf": [preset, {"type": "object", "properties": spelled, "additionalProperties": False}],
    }


METHOD_SCHEMA = LazyJsonSchema(method_schema)
"""Annotation that gives a method its JSON schema."""


def _names_schema(names: Iterable[str]) -> list[dict[str, Any]]:
    """A name alone, and a part of one's own with whatever settings it has."""
    own = {"type": "string", "title": FORM, "pattern": PATTERN}
    with_settings = {"type": "object", "title": FORM, "properties": {"name": own}, "required": ["name"]}
    return [{"type": "string", "enum": list(names)}, own, with_settings]


def settings_schema(kind: str, name: str) -> dict[str, Any]:
    """Return the JSON schema of one part: its name and its settings."""
    return settings_schema_of(name, code_of(kind, name).Config)


def settings_schema_of(name: str, config: Any) -> dict[str, Any]:
    """Return the JSON schema of what a `Config` declares."""
    schema = _settings_model(name, config).model_json_schema()
    schema["title"] = name
    schema["description"] = inspect.getdoc(config) or ""
    docs = attribute_docstrings(config)
    for key, setting in schema["properties"].items():
        setting.pop("title", None)
        if key in docs:
            setting["description"] = docs[key]
    return schema


@functools.lru_cache(maxsize=256)
def _settings_model(title: str, config: Any) -> type[BaseModel]:
    """The settings that a `Config` declares, as a model that checks their types."""
    types = typing.get_type_hints(config)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        default = ... if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        fields[field.name] = (types[field.name], Field(default=default))
    checks = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(title, __config__=checks, **fields)


def _inherited(kind: str, preset: str | None, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return name and settings of a part, where nothing is said of them."""
    if kind in LIKE:
        like = parts.get(LIKE[kind])  # none where that has a mistake
        return {"name": like.name, **like.settings} if like else {"name": DEFAULT_NAMES.get(LIKE[kind])}
    return PRESETS[preset][kind] if preset else {"name": DEFAULT_NAMES.get(kind)}


def _resolve_part(kind: str, given: object, inherited: Mapping[str, Any], python_path: Sequence[str]) -> Part:
    if given is None:
        given = {}
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise Problems([Problem((), f"not a part: {show(given)}; its name, or a mapping of name and settings")])
    name = given.get("name", inherited["name"])
    if name is None:
        choice = choose("", (*KINDS[kind], FORM))
        missing = f"{kind} has no name, and there is no preset to give one; {choice}"
        raise Problems([Problem((), missing, choice=choice)])
    is_name = isinstance(name, str)
    is_own = is_name and is_import_path(name)
    if not is_name or (name not in KINDS[kind] and not is_own):
        choice = choose(name, (*KINDS[kind], FORM))
        how = STEPS_OF_OWN if kind == "local_work" and not choice.meant else ""
        raise Problems([Problem(("name",), f"unknown {kind}: {show(name)}; {choice}{how}", choice=choice)])
    settings = (dict(inherited) if name == inherited["name"] else {}) | dict(given) | {"name": name}
    if is_own:
        return _own_part(kind, name, settings, python_path)
    return Part(name=name, settings=_settings_of(kind, name, settings))


def _own_part(kind: str, name: str, settings: Mapping[str, Any], python_path: Sequence[str]) -> Part:
    """A part of one's own, imported from those folders; `Problems` with what is wrong with it, or with its settings."""
    try:
        code_of(kind, name, python_path)
        part = Part(name=name, settings=_settings_of(kind, name, settings))
        check_part(kind, part, python_path)
    except ScenarioError as error:
        raise Problems([Problem(("name",), text) for text in error.problems]) from None
    except EdgebedError as error:
        raise Problems([Problem(("name",), str(error))]) from None
    return part


def _settings_of(kind: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a method's part."""

    def check(made: Any) -> None:
        if kind.endswith("downlink") and hasattr(made, "check_downlink"):
            made.check_downlink()

    try:
        return checked_settings(f"{kind} '{name}'", name, code_of(kind, name).Config, settings, check)
    except Problems as error:
        if kind != "local_work" or is_import_path(name):
            raise
        raise Problems(map(_with_steps_of_own, error.problems)) from None


def _with_steps_of_own(problem: Problem) -> Problem:
    """The problem, with where steps that there are not are written, if it is about some."""
    choice = problem.choice
    is_of_steps = choice and (problem.path == ("optimizer",) or (problem.at_key and not choice.meant))
    return problem._replace(message=problem.message + STEPS_OF_OWN) if is_of_steps else problem


def checked_settings(
    what: str, name: str, config: Any, settings: Mapping[str, Any], check: Callable[[Any], None] = lambda _: None
) -> dict[str, Any]:
    """All settings that a `Config` declares, defaults included, of those that are given; `check` may refuse some.

    `Problems` where one is unknown, of a wrong type or refused.
    """
    try:
        model = _settings_model(what, config)
    except Exception as error:
        raise ScenarioError(f"{name}: its Config cannot be read: {reason(error)}") from error
    named = {"name": name} if "name" in model.model_fields and not is_import_path(name) else {}
    settable = [key for key in model.model_fields if key != "name"]
    problems: list[Problem] = unknown_keys(settings, ("name", *settable), f"setting of {what}")
    known = {key: value for key, value in settings.items() if key in settable}
    try:
        checked = model.model_validate(known | named).model_dump(exclude=None if named else {"name"})
    except ValidationError as error:
        missing = [
            each._replace(message=f"{each.message} of {what}") if each.message.startswith("missing key") else each
            for each in problems_of(error)
        ]
        raise Problems([*problems, *missing]) from None
    try:
        check(config(**checked))
    except ValueError as error:
        field, colon, message = str(error).partition(": ")
        problems.append(Problem((field,), message) if colon and field in checked else Problem((), str(error)))
    except Exception as error:
        if not is_import_path(name):
            raise
        raise ScenarioError(f"{name}: its Config failed: {reason(error)}") from error
    if problems:
        raise Problems(problems)
    return {key: value for key, value in checked.items() if key != "name"}
