"""The scenario's two references, from its declaration: a JSON schema for editors, and docs/scenario.md.

The schema says what may be written at a place, not what must: a key may come from the scenario or from a variant. What
is missing is for `edgebed validate` to say, and so is what several keys together make impossible.
"""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from docs.generate.rendering import grid, line, render
from edgebed.algorithms.registry import FAMILIES, KINDS, LIKE, PRESETS
from edgebed.core import framing, units
from edgebed.core.planned import link
from edgebed.scenario.faults.registry import KINDS as FAULT_KINDS
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.load import SWEEP
from edgebed.scenario.methods import family_of, settings_schema
from edgebed.scenario.names import NAME_PATTERN
from edgebed.scenario.programs.trial import KIND, ProgramTrial
from edgebed.scenario.schema import Header, TrialSection
from edgebed.scenario.section import Section
from edgebed.scenario.sweep_section import SweepSection
from edgebed.scenario.traces import trace
from edgebed.scenario.traces.csv_file import HEADER_FORM

JsonSchema = dict[str, Any]

REQUIRED = ("task", "method", "fleet", "stop")
"""Keys that a scenario without variants has to have; with variants, each of them may stand in the variants."""
REQUIRED_OF_PROGRAMS = (KIND, "fleet")
"""Keys that a scenario has to have whose nodes run programs of the user's."""

LIMITS = {"exclusiveMinimum": "above", "minimum": "from", "exclusiveMaximum": "below", "maximum": "up to"}
TYPES = {"integer": "whole number", "string": "text", "boolean": "true or false"}


def json_schema() -> str:
    """Return the JSON schema of a scenario file, as text."""
    header = _schema_of(Header)
    trial, program = _schema_of(TrialSection), _schema_of(ProgramTrial)
    properties = _either(trial["properties"], program["properties"])
    variant = {
        "type": "object",
        "description": "Changes to the scenario, merged into it key by key.",
        "properties": properties,
        "additionalProperties": False,
    }
    variants = {
        "type": "object",
        "description": "Trials to compare in one run: a name, and what differs from the rest of the file.",
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Variant"}, {"type": "null"}]},
    }
    section = _schema_of(SweepSection)
    sweep = {"description": "What `edgebed sweep` varies.", "$ref": "#/$defs/SweepSection"}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "edgebed scenario",
        "type": "object",
        "properties": _lenient(header["properties"] | properties) | {"variants": variants, SWEEP: sweep},
        "additionalProperties": False,
        "required": ["name"],
        "if": {"not": {"required": ["variants"]}},
        "then": {"anyOf": [{"required": list(keys)} for keys in (REQUIRED, REQUIRED_OF_PROGRAMS)]},
        "$defs": _lenient(trial["$defs"] | program["$defs"] | {"Variant": variant, "SweepSection": section}),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _either(trial: JsonSchema, program: JsonSchema) -> JsonSchema:
    """Return the properties of both kinds of trials; a key that both have may have either's form."""
    found = trial | {key: schema for key, schema in program.items() if key not in trial}
    for key in trial.keys() & program.keys():
        texts = {"description": trial[key]["description"]}
        if trial[key] != program[key] | texts:
            found[key] = {"anyOf": [trial[key], program[key]]} | texts
    return found


def markdown() -> str:
    """Return docs/scenario.md, as text."""
    trial, program = _schema_of(TrialSection), _schema_of(ProgramTrial)
    definitions = trial["$defs"]
    every = definitions["Kill"]["properties"]
    common = {key: every[key] for key in (*Triggered.model_fields, "name")}

    def sections(*keys: str) -> str:
        return "\n".join(_section(key, _at(key, trial), definitions) for key in keys)

    def program_sections(*keys: str) -> str:
        found = "\n".join(_section(key, _at(key, program), program["$defs"]) for key in keys)
        return found.replace("## ", "### ")

    return render(
        "scenario.md", units=units, link=link, framing=framing, trace=trace, csv_header=HEADER_FORM,
        file=_table(_schema_of(Header)["properties"] | trial["properties"], {"name", *REQUIRED}),
        sections=sections, section_table=_section_table, steps=_section_table(definitions["LinkStep"]),
        common=_table(common, ()), some=_section_table(definitions["Some"]), faults=_faults(definitions, common),
        program=_table(program["properties"], set(REQUIRED_OF_PROGRAMS)), program_sections=program_sections,
        sweep=_schema_of(SweepSection), presets=_presets, parts=_parts(),
    )  # fmt: skip


def _at(key: str, trial: JsonSchema) -> JsonSchema:
    """Return what is declared of a key, e.g. `evaluation.by_client`."""
    *outer, last = key.split(".")
    section = trial
    for name in outer:
        section = _section_of(section["properties"][name], trial["$defs"])
    found: JsonSchema = section["properties"][last]
    return found


def _section(key: str, schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> str:
    section = _section_of(schema, definitions)
    name = "fleet.<class>" if key == "fleet" else key
    return f"## `{name}`\n\n{line(section['description'])}\n\n{_section_table(section)}"


def _presets(family: str) -> str:
    kinds = FAMILIES[family]
    return grid(
        ("preset", *kinds), [_preset_row(each, kinds) for each in PRESETS if family_of({"preset": each}) == family]
    )


def _parts() -> Iterator[tuple[str, str, str]]:
    """Yield a heading, what it is and a table of its settings for each part that a method may have."""
    for kind, names in KINDS.items():
        for name in names if kind not in LIKE else ():
            schema = settings_schema(kind, name)
            settings = {key: value for key, value in schema["properties"].items() if key != "name"}
            table = _table(settings, set(schema.get("required", ()))) if settings else ""
            yield f"{kind}: `{name}`", line(schema["description"]), table


def _faults(definitions: Mapping[str, JsonSchema], common: Container[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each kind, what it does, and a table of its own settings."""
    for kind, section in FAULT_KINDS.items():
        schema = definitions[section.__name__]
        own = {kind: schema["properties"][kind]} | schema["properties"]
        own = {key: value for key, value in own.items() if key not in common}
        required = {key for key, value in own.items() if "default" not in value}
        text = f"{line(schema['description'])}{_triggers_text(section)} E.g. `{section.example}`."
        yield kind, text, _table(own, required)


def _triggers_text(section: type[FaultSection]) -> str:
    if section.triggers == Triggered.triggers:
        return ""
    return f" Trigger: `{'` or `'.join(section.triggers)}`."


def _schema_of(model: type[Section]) -> JsonSchema:
    # in this mode defaults are written as a scenario would write them
    return model.model_json_schema(mode="serialization")


def _lenient(schema: Any) -> Any:
    """Return the schema without pydantic's titles, without empty defaults, and without what a variant may bring."""
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    drop = set()
    if "title" in schema and "pattern" not in schema and isinstance(schema["title"], str):
        drop.add("title")
    if isinstance(schema.get("default", ""), dict | None):
        drop.add("default")
    if "required" in schema and len(schema["properties"]) > 1:  # with one property it is a choice, as {dirichlet: 0.5}
        drop.add("required")
    return {key: _lenient(value) for key, value in schema.items() if key not in drop}


def _section_of(schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return what a key of the trial holds: a section, or sections by name."""
    by_name = next(iter(schema.get("patternProperties", {}).values()), schema)
    by_name = next((form for form in by_name.get("anyOf", ()) if "$ref" in form), by_name)
    return definitions[by_name["$ref"].rpartition("/")[2]]


def _section_table(section: JsonSchema) -> str:
    required = {name for name, schema in section["properties"].items() if "default" not in schema}
    return _table(section["properties"], required)


def _table(properties: Mapping[str, JsonSchema], required: Container[str]) -> str:
    rows = [
        (
            f"`{key}`",
            _type(schema),
            "required" if key in required else _default(schema.get("default")),
            line(schema.get("description", "")),
        )
        for key, schema in properties.items()
    ]
    return grid(("key", "value", "default", "meaning"), rows)


def _preset_row(name: str, kinds: Sequence[str]) -> tuple[str, ...]:
    parts = []
    for kind in kinds:
        settings = dict(PRESETS[name][kind])
        part = settings.pop("name")
        parts.append(", ".join([f"`{part}`", *(f"{key} {_yaml(value)}" for key, value in settings.items())]))
    return (f"`{name}`", *parts)


def _type(schema: JsonSchema) -> str:
    """Write a JSON schema in words."""
    if {"$ref": "#/$defs/Some"} in schema.get("anyOf", ()):
        return "target"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(form) for form in schema["anyOf"] if form.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "pattern" in schema:
        return str(schema["title"])
    if "$ref" in schema or "patternProperties" in schema:
        return "see below"
    kind = schema.get("type")
    if kind == "object" and "properties" not in schema:
        return str(schema["title"])
    if kind == "object":
        key, value = next(iter(schema["properties"].items()))
        return f"{{{key}: {_type(value)}}}" if len(schema["properties"]) == 1 else "mapping"
    if kind == "array" and "maxItems" not in schema:
        return "list of names" if schema["items"] == {"type": "string"} else "list, see below"
    if kind == "array":
        return f"[{', '.join([_type(schema['items'])] * schema['minItems'])}]"
    limits = [f" {words} {_yaml(schema[key])}" for key, words in LIMITS.items() if key in schema]
    return TYPES.get(str(kind), str(kind)) + "".join(limits)


def _default(default: object) -> str:
    return "" if isinstance(default, dict | None) or default == "" else f"`{_yaml(default)}`"


def _yaml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
