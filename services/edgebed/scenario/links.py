"""Links as a scenario describes them, and the `LinkPlan` of a node's plan.

Steps happen once, at times since training began. A trace is played again and again, and begins for every node at a
place of its own that the seed decides.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Self

import msgspec
from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from edgebed.core import chance, units
from edgebed.core.planned import link
from edgebed.core.planned.link import PROPERTIES, LinkChange, LinkPlan
from edgebed.scenario.mistakes.problems import Problem, Problems, problems_of
from edgebed.scenario.section import (
    Duration,
    DurationFromZero,
    Form,
    LazyJsonSchema,
    Section,
    file_name,
    folder_of,
    of_pattern,
)
from edgebed.scenario.traces.library import find_trace
from edgebed.scenario.traces.mahimahi import STEP_S, read_mahimahi
from edgebed.scenario.traces.trace import Trace, check_step

Rate = Annotated[
    int, Form(link.read_rate, units.format_rate, of_pattern("rate", units.RATE_PATTERN, "10mbit", "500kbit"))
]
Latency = Annotated[
    float, Form(link.read_latency, units.format_duration, of_pattern("duration", units.DURATION_PATTERN, "40ms", "0s"))
]
Loss = Annotated[
    float,
    Form(link.read_share, units.format_percentage, of_pattern("percentage", units.PERCENTAGE_PATTERN, "1%", "0.5%")),
]


class MahimahiFiles(Section):
    """A trace in mahimahi's format: a file for each direction."""

    up: str | None = Field(default=None, min_length=1)
    """File with the packets that the node may send; as the class's `uplink` if left out."""
    down: str | None = Field(default=None, min_length=1)
    """File with the packets that the node may receive; as the class's `downlink` if left out."""
    step: Annotated[Duration, AfterValidator(check_step)] = STEP_S
    """Time from one change of the link's rate to the next."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where there is no file."""
        yield from super().contradictions(given)
        if given.get("up") is None and given.get("down") is None:
            yield Problem((), "which files? give up, down or both: {up: lte.up, down: lte.down}")


def _read_trace(given: object, info: ValidationInfo) -> Trace:
    if isinstance(given, Trace):
        return given
    folder = folder_of(info)
    if isinstance(given, dict):
        files = MahimahiFiles.model_validate(given)
        up, down = (folder / name if name else None for name in (files.up, files.down))
        return read_mahimahi(up, down, files.step)
    forms = "a CSV file, found from the scenario file's folder; a name that edgebed traces shows; {up: , down: }"
    return find_trace(file_name(given, f"{forms} of mahimahi's files"), folder)


LinkTrace = Annotated[
    Trace,
    Form(
        _read_trace,
        lambda trace: trace.given or str(trace.path),
        LazyJsonSchema(
            lambda: {
                "anyOf": [
                    {"type": "string", "title": "CSV file, name of a trace", "pattern": "."},
                    MahimahiFiles.model_json_schema(),
                ]
            }
        ),
    ),
]


def _after_the_start(at_s: float) -> float:
    if at_s == 0.0:
        raise ValueError("a step comes later than 0s; what holds from the start stands beside link_steps")
    return at_s


class LinkSettings(Section):
    """Changes of a link; what is left out stays as it is."""

    uplink: Rate | None = None
    """Rate at which the node may send from then on."""
    downlink: Rate | None = None
    """Rate at which the node may receive from then on."""
    latency: Latency | None = None
    """Latency one way, in each direction."""
    jitter: Latency | None = None
    """Jitter, at most the latency that then holds."""
    loss: Loss | None = None
    """Share of the packets that are lost."""

    def change(self, at_s: float = 0.0) -> LinkChange:
        """Return the change for a plan."""
        return LinkChange(at_s=at_s, **_values(self))

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where nothing changes."""
        yield from super().contradictions(given)
        if all(given.get(key) is None for key in PROPERTIES):
            yield Problem((), f"nothing changes; give one or more of {', '.join(PROPERTIES)}")


class _Moment(Section):
    at: Annotated[DurationFromZero, AfterValidator(_after_the_start)]
    """Time of the change since training began; later than the step before."""


class LinkStep(LinkSettings, _Moment):
    """A moment at which a link changes; what is left out stays as it is, and what changes holds until the next."""


class LinkSection(Section):
    """A node's link to the data network."""

    uplink: Rate | None = None
    """Rate at which the node may send, headers and acknowledgements included; as fast as the machine if left out."""
    downlink: Rate | None = None
    """Rate at which the node may receive, headers and acknowledgements included; as fast as the machine if left out."""
    latency: Latency = 0.0
    """Latency one way, in each direction."""
    jitter: Latency = 0.0
    """Latency is drawn evenly from latency - jitter to latency + jitter; at most the latency."""
    loss: Loss = 0.0
    """Share of the packets that are lost, in each direction; only where the kernel's netem holds the link."""
    link_steps: list[LinkStep] = Field(default=[])
    """Changes in the course of training, e.g. `[{at: 30s, uplink: 1mbit}]`; each holds until the next."""
    link_trace: LinkTrace | None = None
    """Recorded bandwidth that is played again and again: a CSV file of time, up and down, relative to the scenario
    file; a name that `edgebed traces` shows; or mahimahi's files, `{up: lte.up, down: lte.down}`. Instead of
    `link_steps`, and of `uplink` and `downlink` where it has them."""

    @field_validator("link_steps", mode="wrap")
    @classmethod
    def _in_order(cls, given: Any, handler: ValidatorFunctionWrapHandler) -> list[LinkStep]:
        problems = list(_disorder(given))
        try:
            steps: list[LinkStep] = handler(given)
        except ValidationError as error:
            raise Problems([*problems_of(error), *problems]) from None
        if problems:
            raise Problems(problems)
        return steps

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [*self._rivals_of_trace(), *self._jitter()]
        if problems:
            raise Problems(problems)
        return self

    def _rivals_of_trace(self) -> list[Problem]:
        if (trace := self.link_trace) is None:
            return []
        away = "take one away (null, in a variant)"
        recorded = {"uplink": trace.has_up, "downlink": trace.has_down}
        rates = [name for name, is_there in recorded.items() if is_there and getattr(self, name) is not None]
        problems = [Problem((name,), f"the rates come from link_trace; {away}") for name in rates]
        if self.link_steps:
            message = f"link_trace and link_steps exclude each other, also for latency; {away}"
            problems.append(Problem(("link_steps",), message))
        return problems

    def _jitter(self) -> list[Problem]:
        problems = []
        latency, jitter = self.latency, self.jitter
        sections: list[LinkSection | LinkStep] = [self, *self.link_steps]
        for k, section in enumerate(sections):
            latency = latency if section.latency is None else section.latency
            jitter = jitter if section.jitter is None else section.jitter
            if jitter > latency and (section.latency, section.jitter) != (None, None):
                path = ("link_steps", str(k - 1)) if k else ()
                key = "latency" if section.jitter is None else "jitter"
                above = f"a jitter of {units.format_duration(jitter)} is above the latency of"
                problems.append(Problem((*path, key), f"{above} {units.format_duration(latency)}"))
        return problems


def _disorder(steps: object) -> Iterator[Problem]:
    """Yield steps that are not after the one before, where both have a time; whatever else is wrong with them."""
    times_s = [_time_of(step) for step in steps] if isinstance(steps, list) else []
    for k, (before_s, at_s) in enumerate(pairwise(times_s), start=1):
        if before_s is not None and at_s is not None and at_s <= before_s:
            at, before = units.format_duration(at_s), units.format_duration(before_s)
            yield Problem((str(k), "at"), f"{at} is not after the {before} of the step before")


def _time_of(step: object) -> float | None:
    if isinstance(step, LinkStep):
        return step.at
    try:
        return units.parse_duration(step.get("at") if isinstance(step, dict) else None)
    except ValueError:
        return None


def link_of(section: LinkSection, seed: int, node: str) -> LinkPlan:
    """Return the link of `node`, whose class or role has `section`."""
    planned = LinkPlan(**_values(section), changes=tuple(step.change(step.at) for step in section.link_steps))
    if (trace := section.link_trace) is None:
        return planned
    rates = {"uplink_bit_s": trace.has_up, "downlink_bit_s": trace.has_down}
    return msgspec.structs.replace(
        planned,
        **{field: getattr(trace.changes[0], field) for field, is_there in rates.items() if is_there},
        changes=trace.changes,
        period_s=trace.period_s,
        offset_s=chance.uniform(seed, "trace", node) * trace.period_s,
    )


def _values(section: LinkSection | LinkSettings) -> dict[str, Any]:
    """Return what a section says of each property of a link, by its field."""
    return {each.field: getattr(section, key) for key, each in PROPERTIES.items()}
