"""A profile: what each layer of a model took of time and memory where it was measured, as a YAML file.

    batch_size: 128
    own: 1.4ms
    layers:
    - {weights: 832, outputs: 6272, forward: 11.2ms, backward: 23.1ms, step: 0.1ms, ...}
    messages:
    - {exchange: {name: dense, values: float32}, each: 0.1ms, encode: 0s, carry: 0.9ms}
    beside:
    - {learning: {name: synthetic-gradients, ...}, layers: [{predict: 5ms, teach: 12ms, memory: 9MiB}, ...]}

`edgebed profile` writes it (learning/profiling.py measures) and `shards.profile` names it. The same file gives the same
plan everywhere. Times are of a whole mini-batch and of CPU time, on one core of the machine it was measured on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from edgebed.core import units
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Part
from edgebed.scenario import source
from edgebed.scenario.mistakes.problems import Problem, Problems, problems_of
from edgebed.scenario.section import DurationFromZero, Form, Section, of_pattern

Size = Annotated[
    int, Form(units.parse_memory, units.format_memory, of_pattern("memory size", units.MEMORY_PATTERN, "12MiB"))
]


class LayerRow(Section):
    """Measurements of one layer."""

    weights: int = Field(ge=0)
    """Parameters and buffers of the layer."""
    outputs: int = Field(ge=1)
    """Values that the layer gives for one example."""
    forward: DurationFromZero
    backward: DurationFromZero
    again: DurationFromZero
    """Time of another gradient through the same graph, by its inputs alone."""
    step: DurationFromZero
    """Time of the optimizer's step."""
    kept: Size
    """Memory that a mini-batch takes until its gradient is there."""
    memory: Size
    """Most memory that a process grew by which trains this layer alone."""


class Beside(Section):
    """Measurements of what lies beside one layer where a shard ends or begins with it."""

    predict: DurationFromZero = 0.0
    """Time of the gradient module for the layer's outputs."""
    teach: DurationFromZero = 0.0
    head: DurationFromZero = 0.0
    """Time of a head for the layer's outputs, with its step."""
    memory: Size = 0
    """Memory of that module, or of the head."""
    guess: DurationFromZero = 0.0
    """Time of the module that predicts the layer's inputs."""
    teach_guess: DurationFromZero = 0.0
    guess_memory: Size = 0


class BesideRows(Section):
    """Measurements of what a method puts beside layers."""

    learning: dict[str, Any]
    """Part of the method, with all its settings."""
    layers: list[Beside]


class MessageCosts(Section):
    """Costs of messages between shards, sender and receiver together."""

    exchange: dict[str, Any]
    """Part of the method, with all its settings."""
    each: DurationFromZero
    """Time of a small message."""
    encode: DurationFromZero
    """Time beyond that to decide what is sent, for each MiB of the array."""
    carry: DurationFromZero
    """Time beyond that to send, receive and decode a message, for each MiB of the array."""


class Profile(Section):
    """A whole profile."""

    batch_size: int = Field(ge=1)
    own: DurationFromZero = 0.0
    """CPU time of a step that a shard needs whatever layers it has: to follow the protocol, journal, be watched."""
    layers: list[LayerRow] = Field(min_length=1)
    messages: list[MessageCosts]
    beside: list[BesideRows] = Field(default=[])

    def messages_of(self, exchange: Part) -> MessageCosts | None:
        """Return the costs of messages with that part of a method; None if they were not measured."""
        return next((each for each in self.messages if _is_same(each.exchange, exchange)), None)

    def beside_of(self, learning: Part) -> Sequence[Beside] | None:
        """Return what lies beside each layer with that part of a method; None if it was not measured."""
        return next((each.layers for each in self.beside if _is_same(each.learning, learning)), None)


def _is_same(written: Mapping[str, Any], part: Part) -> bool:
    return dict(written) == {"name": part.name, **part.settings}


class ProfileFile(NamedTuple):
    """A profile and where it was read."""

    path: Path
    """Absolute path, so that the file is found from anywhere."""
    content: Profile


def read_profile(path: Path) -> ProfileFile:
    """Read the profile in a file; `Problems` with the mistakes in it, each with file, line and column."""
    try:
        root = source.read_file(path, what="a profile", example="batch_size: 128")
    except ScenarioError as error:
        raise Problems(Problem((), text) for text in error.problems) from None
    try:
        profile = Profile.model_validate(root.plain())
    except ValidationError as error:
        raise Problems(source.located(root, problems_of(error))) from None
    wrong = [rows for rows in profile.beside if len(rows.layers) != len(profile.layers)]
    if wrong:
        count = f"{len(wrong[0].layers)} rows for {len(profile.layers)} layers"
        raise Problems([Problem((), f"{path}: beside: {count}; measure anew, with edgebed profile")])
    return ProfileFile(path.absolute(), profile)


def write_profile(profile: Profile, remarks: Sequence[str]) -> str:
    """Write the file's text; what `read_profile` reads. `remarks` stand at its head."""
    lines = [*(f"# {remark}" for remark in remarks), f"batch_size: {profile.batch_size}"]
    lines += [f"own: {units.format_duration(profile.own)}"] if profile.own else []
    lines += ["layers:"]
    lines += [f"- {_flow(row)}" for row in profile.layers]
    lines += ["messages:", *(f"- {_flow(row)}" for row in profile.messages)]
    if profile.beside:
        lines.append("beside:")
    for rows in profile.beside:
        lines += [f"- learning: {_value(rows.learning)}", "  layers:", *(f"  - {_flow(row)}" for row in rows.layers)]
    return "\n".join(lines) + "\n"


def _flow(section: Section) -> str:
    """Write a section on one line, without what is as it is by default."""
    return _value(section.model_dump(mode="json", exclude_defaults=True))


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)
