"""What of a trial is measured client by client: the section `evaluation.by_client`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from edgebed.core import units
from edgebed.scenario.choices import Interval, read_interval, write_interval
from edgebed.scenario.section import Form, Section

FINAL = "final"
INTERVAL_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "title": "updates", "pattern": "^[0-9]+ updates?$", "examples": ["200 updates"]},
        {"type": "string", "title": "duration", "pattern": units.DURATION_PATTERN},
    ]
}


def read_every(given: object) -> Interval:
    """An interval; ValueError with what is allowed."""
    if given == FINAL:
        raise ValueError("'final' is what it means when it is left out: leave out `every`")
    return read_interval(given)


Every = Annotated[Interval, Form(read_every, write_interval, WithJsonSchema(INTERVAL_SCHEMA))]


class FineTuneSection(Section):
    """Local fine-tuning before a client is measured, by plain gradient descent on its own training examples.

    The values before it stand beside those after it.
    """

    steps: int = Field(ge=0)
    """Mini-batches of the task's size, or of all examples of a client that has fewer."""
    learning_rate: float = Field(gt=0.0)
    """Learning rate of these steps."""


class ByClientSection(Section):
    """The global model, or with `local-only` each worker's own, measured on each client's own held-out examples."""

    every: Every | None = None
    """Interval in updates or time, a multiple of `evaluation.every`; the last model alone if left out, which is
    measured in any case."""
    part: Literal["test", "validation"] | None = None
    """Part of the data that these are of: the test part if left out, or the validation part where that does not say
    whose its examples are. By `validation` you choose settings client by client, as those of `local-only`."""
    fine_tune: FineTuneSection | None = None
    """Local fine-tuning before the measure, on the clients' own training examples, which the evaluator is given."""


def whole_form(given: object) -> object:
    """Return the mapping that `final`, or an interval alone, stands for; a mapping as it is; ValueError otherwise."""
    if given == FINAL:
        return {}
    if given is None or isinstance(given, Mapping | ByClientSection):
        return given
    try:
        return {"every": write_interval(read_interval(given))}
    except ValueError as error:
        raise ValueError(f"{error}; or final, the last model alone") from None


def interval_problem(by_client: ByClientSection | None, every: Interval) -> str:
    """Say why the interval does not fit that of evaluations; empty: it does."""
    if by_client is None or by_client.every is None:
        return ""
    own = by_client.every
    if own.updates and every.updates and own.updates % every.updates == 0:
        return ""
    if own.time_s and every.time_s and abs(own.time_s / every.time_s - round(own.time_s / every.time_s)) < 1e-6:
        return ""
    return (
        f"every {write_interval(own)} is no multiple of evaluation.every, {write_interval(every)}, when the model is "
        "there"
    )
