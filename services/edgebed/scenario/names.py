"""Names that a scenario gives: of itself, its variants, device classes, hosts and faults."""

import re
from typing import Annotated

from pydantic import PlainValidator

from edgebed.scenario.mistakes.problems import show
from edgebed.scenario.section import of_pattern

NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,59}$"
CLASS_PATTERN = "^[a-z][a-z0-9-]{0,59}$"
WORKERS = "workers"
"""All workers, where a node or a class is named."""
RESERVED_NAMES = ("latest",)
RESERVED_CLASSES = ("server", "evaluator", "store", "modules", "controller", WORKERS)
RESERVED_FAULTS = ("on_failure",)  # by which a run's journal names what that policy does


def check_name(given: object) -> str:
    """A name that is also the name of a folder, and a part of `--set` paths."""
    return _checked_name(given, NAME_PATTERN, "lower-case letters, digits, - and _, at most 60", RESERVED_NAMES)


def _check_fault(given: object) -> str:
    return _checked_name(given, NAME_PATTERN, "lower-case letters, digits, - and _, at most 60", RESERVED_FAULTS)


def _check_class(given: object) -> str:
    return _checked_name(given, CLASS_PATTERN, "lower-case letters, digits and -, a letter first", RESERVED_CLASSES)


def has_a_class(fleet: object) -> object:
    """A fleet that has a class of nodes; ValueError where it has none."""
    if not isinstance(fleet, dict) or not fleet:
        raise ValueError("needs at least one class of nodes, e.g. edge: { count: 4 }")
    return fleet


def _checked_name(given: object, pattern: str, form: str, reserved: tuple[str, ...]) -> str:
    if not isinstance(given, str) or not re.fullmatch(pattern, given):
        raise ValueError(f"not a name: {show(given)} ({form})")
    if given in reserved:
        raise ValueError(f"'{given}' is edgebed's own name; choose another")
    return given


Name = Annotated[str, PlainValidator(check_name), of_pattern("name", NAME_PATTERN)]
ClassName = Annotated[str, PlainValidator(_check_class), of_pattern("class name", CLASS_PATTERN)]
HostName = Annotated[str, PlainValidator(_check_class), of_pattern("host name", CLASS_PATTERN)]
FaultName = Annotated[str, PlainValidator(_check_fault), of_pattern("name", NAME_PATTERN)]
