"""Parts of a task with settings of their own: the data, and the objective.

Each is a name, or a mapping of `name` and settings; the name of a built-in one, or the import path of one's own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from pydantic import ValidationInfo

from edgebed.core.errors import ScenarioError
from edgebed.core.imports import FORM, PATTERN, is_import_path
from edgebed.core.plan import Part
from edgebed.learning.data_sets.registry import DATA_SETS
from edgebed.learning.objectives.registry import OBJECTIVES, by_loss, class_of, objective_of
from edgebed.scenario.methods import checked_settings, python_path_of, settings_schema_of
from edgebed.scenario.mistakes.problems import Problem, Problems, choose, show
from edgebed.scenario.section import LazyJsonSchema


def read_data(given: object) -> Part:
    """The data set that a scenario names, with all settings of a built-in one; one's own are looked at when loaded."""
    name, settings = _named(given, "a data set", DATA_SETS, "package.module:function")
    if name in DATA_SETS:
        built_in = DATA_SETS[name].Config
        return Part(name=name, settings=checked_settings(f"data set '{name}'", name, built_in, settings))
    for key, value in settings.items():
        if not all(
            isinstance(each, bool | int | float | str) for each in (value if isinstance(value, list) else [value])
        ):
            raise Problems([Problem((key,), f"not a number, text, true or false, or a list of such: {show(value)}")])
    return Part(name=name, settings=settings)


def read_objective(given: object, info: ValidationInfo) -> Part:
    """The objective that a scenario names, with all its settings."""
    name, settings = _named(given, "an objective", OBJECTIVES, FORM, by_loss)
    try:
        found = class_of(name, python_path_of(info))
        part = Part(name=name, settings=checked_settings(f"objective '{name}'", name, found.Config, settings))
        objective_of(part)
    except ScenarioError as error:
        raise Problems(
            [Problem(("name",) if isinstance(given, Mapping) else (), text) for text in error.problems]
        ) from None
    return part


def write_part(part: Part) -> Any:
    """What reads as the part: its name, or a mapping where it has settings."""
    return {"name": part.name, **part.settings} if part.settings else part.name


def _named(
    given: object, what: str, table: Iterable[str], form: str, alike: Callable[[object], str] = lambda _: ""
) -> tuple[str, dict[str, Any]]:
    """The name and the settings that are given; `alike` says what is meant by a name that is not in the table."""
    settings = {"name": given} if isinstance(given, str) else given
    if not isinstance(settings, Mapping):
        kind = type(given).__name__
        shown = show(given) if isinstance(given, list | int | float | None) else f"an instance of {kind}"
        hint = "its name, or a mapping of name and settings; in Python also the function or class itself"
        raise Problems([Problem((), f"not {what}: {shown}; {hint}")])
    name = settings.get("name")
    if not isinstance(name, str) or not (name in table or is_import_path(name)):
        choice = choose(name, (*table, form))
        if meant := alike(name):
            choice = choice._replace(meant=(meant,))
        of = ("name",) if isinstance(given, Mapping) and name is not None else ()
        told = "no name is given" if name is None else f"unknown: {show(name)}"
        raise Problems([Problem(of, f"{told}; {choice}", choice=choice)])
    return name, {str(key): value for key, value in settings.items() if key != "name"}


def _schema(named: Iterable[str], with_settings: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    own = {"type": "string", "title": FORM, "pattern": PATTERN}
    free = {"type": "object", "properties": {"name": own}, "required": ["name"], "title": "with settings"}
    return {"anyOf": [{"type": "string", "enum": list(named)}, own, *with_settings, free]}


def _named_schema(name: str, config: Any) -> dict[str, Any]:
    schema = settings_schema_of(name, config)
    schema["properties"] = {"name": {"const": name, "type": "string"}, **schema["properties"]}
    return schema | {"required": ["name"]}


DATA_SCHEMA = LazyJsonSchema(
    lambda: _schema(
        DATA_SETS, (_named_schema(name, each.Config) for name, each in DATA_SETS.items() if fields(each.Config))
    )
)
OBJECTIVE_SCHEMA = LazyJsonSchema(
    lambda: _schema(OBJECTIVES, (_named_schema(name, code.Config) for name, code in OBJECTIVES.items()))
)
