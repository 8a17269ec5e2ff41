"""`program`: what the user's own program is, when it is ready, what ends the trial, and what its output tells."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from edgebed.core.measures.trial import OF_PROGRAMS
from edgebed.core.planned import command
from edgebed.core.planned.program import Ends, Limits, OutputMeasure, Page, Ready
from edgebed.scenario.mistakes.problems import Problem, Problems, not_a, show
from edgebed.scenario.section import Duration, Form, Memory, Section, file_name, folder_of, of_pattern

MEASURE_PATTERN = "^[a-z][a-z0-9_]{0,39}$"
VARIABLE_PATTERN = "^[A-Za-z_][A-Za-z0-9_]*$"
METRIC_PATTERN = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL_PATTERN = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
OWN_VARIABLES = "EDGEBED_"
WORDS: Final = ("all", "first")
"""What `ends` may be beside classes, nodes and lines."""
JSON = "json"
"""In place of an expression: the value of that name in lines that are JSON objects."""
ENDS_FORM = "all, first, a class or node, or a line of output: { log: 'Run finished', of: hub }"


def _expression(given: str) -> str:
    try:
        re.compile(given)
    except re.error as error:
        raise ValueError(f"not an expression: {show(given)}: {error}; its form is that of Python's re") from None
    return given


def _one_group(given: str) -> str:
    groups = re.compile(_expression(given)).groups
    if groups != 1:
        many = f"{groups} groups" if groups else "no group"
        raise ValueError(
            f"{show(given)} has {many}; the number stands in the one group, e.g. 'loss=([-+.e0-9]+)'"
            + ("; write (?:...) for the others" if groups else "")
        )
    return given


def _metric(given: str) -> str:
    if not re.fullmatch(rf"{METRIC_PATTERN}(\{{{LABEL_PATTERN}(,{LABEL_PATTERN})*\}})?", given):
        raise ValueError(
            f"not a metric: {show(given)}; its name, and labels that tell it from others, as on the page: "
            'train_loss{split="val"}'
        )
    return given


def _path(given: str) -> str:
    if not re.fullmatch("/[!-~]*", given):
        raise ValueError(f"not the path of a page: {show(given)}; it begins with /, as /metrics does")
    return given


def _command(given: str) -> str:
    command.words(given)
    return given


def _folder(given: object, info: ValidationInfo) -> str:
    path = (folder_of(info) / file_name(given, "a folder, found from the scenario file's")).absolute()
    if not path.is_dir():
        raise ValueError(f"{path}: {'not a folder' if path.exists() else 'there is no such folder'}")
    return str(path)


def _variables(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise ValueError(f"{not_a('mapping', given)}; e.g. {{ OMP_NUM_THREADS: 1 }}")  # noqa: TRY004 - as pydantic wants
    problems = []
    for name, value in given.items():
        if not re.fullmatch(VARIABLE_PATTERN, str(name)):
            problems.append(Problem((str(name),), "not a name of a variable: letters, digits and _", at_key=True))
        elif name.startswith(OWN_VARIABLES):
            problems.append(Problem((name,), "edgebed's own, which it sets; choose another name", at_key=True))
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            problems.append(Problem((name,), f"not a text or a number: {show(value)}; put it into quotes"))
    if problems:
        raise Problems(problems)
    return {name: str(value) for name, value in given.items()}


def _measure_name(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(MEASURE_PATTERN, given):
        raise ValueError(f"not a name: {show(given)} (lower-case letters, digits and _, a letter first, at most 40)")
    if given in OF_PROGRAMS or given in ("of", "verdict"):
        raise ValueError(f"'{given}' is edgebed's own; choose another name")
    return given


class ShownLine(Section):
    """A measure in the lines of some nodes' output, or on their pages."""

    log: Annotated[str, AfterValidator(_one_group)] | None = None
    """An expression whose one group is the number; the value of the measure's name in lines that are JSON objects if
    left out."""
    prometheus: Annotated[str, AfterValidator(_metric)] | None = None
    """Instead of that, a metric of the page `prometheus` of the program or class, with the labels that tell it from
    others: `train_loss{split="val"}`."""
    of: str = ""
    """The class or node whose output or page it is looked for in; all if left out."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where it is looked for in two places."""
        yield from super().contradictions(given)
        if given.get("log") is not None and given.get("prometheus") is not None:
            yield Problem(("prometheus",), "log and prometheus exclude each other", at_key=True)


def _read_measure(given: object) -> ShownLine:
    if isinstance(given, ShownLine):
        return given
    if isinstance(given, str):
        return ShownLine() if given == JSON else ShownLine(log=_one_group(given))
    if isinstance(given, dict):
        return ShownLine.model_validate(given)
    raise ValueError(
        f"not an expression: {show(given)}; 'loss=([-+.e0-9]+)', {{ log: ..., of: ... }}, "
        f"{{ prometheus: ... }} or {JSON}"
    )


def _read_ends(given: object) -> Ends:
    if given in WORDS:
        return Ends(kind=given)
    if isinstance(given, str) and given:
        return Ends(kind="class", of=given)
    if isinstance(given, dict):
        line = EndingLine.model_validate(given)
        return Ends(kind="log", log=line.log, of=line.of)
    raise ValueError(f"not an end: {show(given)}; {ENDS_FORM}")


def _write_ends(ends: Ends) -> Any:
    return {"log": ends.log, "of": ends.of} if ends.kind == "log" else ends.of or ends.kind


class EndingLine(Section):
    """A line of output that ends the trial."""

    log: Annotated[str, Field(min_length=1), AfterValidator(_expression)]
    """An expression that the line matches."""
    of: str = ""
    """The class or node whose output it is looked for in; all if left out."""


class ReadySection(Section):
    """What shows that a program is ready; the first of these that is met."""

    port: int | None = Field(default=None, ge=1, le=65535)
    """A TCP port that it listens on."""
    log: Annotated[str, Field(min_length=1), AfterValidator(_expression)] | None = None
    """An expression that a line of its output matches."""
    file: str | None = Field(default=None, min_length=1)
    """A file in its working folder."""
    time: Duration | None = None
    """Time since it was started."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where nothing shows it."""
        yield from super().contradictions(given)
        if all(given.get(key) is None for key in cls.model_fields):
            yield Problem((), f"when? give one or more of {', '.join(cls.model_fields)}")

    def planned(self) -> Ready:
        """Return it as a plan has it."""
        return Ready(port=self.port, log=self.log, file=self.file, after_s=self.time)


class PageSection(Section):
    """A page that a program has for Prometheus; it is read once a second on the node itself, past the link."""

    port: int = Field(ge=1, le=65535)
    """Its TCP port, where the program listens on all addresses or on 127.0.0.1."""
    path: Annotated[str, AfterValidator(_path)] = Page(port=1).path
    """Its path."""


class LimitsSection(Section):
    """What a program's container may use beside its caps."""

    processes: int = Field(default=Limits().processes, ge=1)
    """Processes and threads at a time."""
    scratch: Memory = Limits().scratch_bytes
    """Size of its folder for temporary files, which is in memory."""


Command = Annotated[str, Field(min_length=1), AfterValidator(_command)]
Image = Annotated[str, Field(min_length=1)]
Variables = Annotated[
    dict[str, str], BeforeValidator(_variables), WithJsonSchema({"type": "object", "title": "variables by name"})
]
Folder = Annotated[
    str, PlainValidator(_folder), WithJsonSchema({"type": "string", "title": "path of a folder", "pattern": "."})
]
MeasureName = Annotated[str, PlainValidator(_measure_name), of_pattern("name", MEASURE_PATTERN)]
ShownMeasure = Annotated[
    ShownLine,
    Form(
        _read_measure,
        lambda shown: shown.model_dump(mode="json", exclude_none=True),
        WithJsonSchema({"anyOf": [{"type": "string", "title": "expression", "pattern": "."}, {"type": "object"}]}),
    ),
]
EndsForm = Annotated[
    Ends,
    Form(
        _read_ends,
        _write_ends,
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "title": "`all`, `first`, a class or node", "pattern": "."},
                    {"type": "object", "title": "{log: line, of: class}"},
                ]
            }
        ),
    ),
]


class ProgramSection(Section):
    """The user's own program, which runs on each node under the scenario's links, caps and faults."""

    image: Image | None = None
    """Image of its container, in the docker runtime; without one edgebed's own, which has Python, numpy and torch. In
    processes it is a program of this machine."""
    build: Folder | None = None
    """Folder with a Dockerfile that the image is built from, instead of `image`."""
    files: Folder | None = None
    """Folder that each node has a copy of, read-only, as its working folder; relative to the scenario file."""
    run: Command | None = None
    """The command, e.g. `python train.py --peers {addresses}`; no shell reads it. Placeholders: `{rank}`,
    `{world_size}`, `{index}`, `{node}`, `{address}`, `{addresses}`, and `{address.hub-0}` of another node; a brace that
    is meant is written twice. A class may have one of its own."""
    env: Variables = Field(default={})
    """Variables beside those that edgebed sets, with the same placeholders."""
    ready: ReadySection | None = None
    """What shows that it is ready; it is once it runs if left out."""
    ends: EndsForm = Ends()
    """What the trial ends with: `all` programs have ended; the `first` has; all of a class have, or a node's has; or a
    line of output, `{ log: 'Run finished', of: hub }`. `stop.time` ends it in any case."""
    measures: dict[MeasureName, ShownMeasure] = Field(default={})
    """Numbers that output tells, the headline first: for each name an expression with one group, `'loss=([-+.e0-9]+)'`;
    `json`, the value of that name in lines that are JSON objects, or told at `EDGEBED_URL`; or a metric of its page,
    `{ prometheus: train_loss }`. Of some nodes alone it is `{ log: ..., of: hub }`."""
    prometheus: PageSection | None = None
    """Its page for Prometheus. A class may have one of its own."""
    limits: LimitsSection = LimitsSection()
    """What its container may use beside its caps."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where there are two images."""
        yield from super().contradictions(given)
        if given.get("image") is not None and given.get("build") is not None:
            yield Problem(("build",), "image and build exclude each other", at_key=True)

    def planned_measures(self) -> tuple[OutputMeasure, ...]:
        """Return the measures as a plan has them."""
        return tuple(
            OutputMeasure(name=name, pattern=shown.log or "", metric=shown.prometheus or "", of=shown.of)
            for name, shown in self.measures.items()
        )
