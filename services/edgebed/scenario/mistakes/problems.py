"""Every mistake at once, in words: what pydantic finds, turned into (path, message).

A validator that finds several mistakes raises `Problems`; they arrive in the same list as those that pydantic finds
itself, each with its full path.
"""

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgebed.algorithms.shares import percent_hint
from edgebed.core import units
from edgebed.core.errors import Choice

SYNONYMS = {
    "link": ("uplink", "downlink"),
    "bandwidth": ("uplink", "downlink"),
    "rate": ("uplink", "downlink"),
    "upload": ("uplink",),
    "up": ("uplink",),
    "download": ("downlink",),
    "down": ("downlink",),
    "delay": ("latency",),
    "packet_loss": ("loss",),
    "crash": ("kill",),
    "pause": ("freeze",),
    "resume": ("thaw",),
    "disconnect": ("cut",),
    "reconnect": ("heal",),
    "cpu": ("cpus",),
    "oom": ("memory",),
}
"""Keys as other tools call them -> ours."""


KINDS = ("list[", "literal[")
"""How pydantic begins to name a kind of value among several."""


class Problem(NamedTuple):
    """A mistake, with the keys that lead to it."""

    path: tuple[str, ...]
    """Keys on the way from where the check began."""
    message: str
    at_key: bool = False
    """Whether the last key itself is wrong, not its value."""
    choice: Choice | None = None
    """What could have stood there, where that is a choice; the message says it, too."""

    def under(self, *keys: str) -> "Problem":
        """Return the problem as seen from further up."""
        return self._replace(path=(*keys, *self.path))


class Problems(ValueError):  # noqa: N818 - what it holds, and what `except Problems` reads as
    """Several mistakes in one value."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(problem.path)}: {problem.message}" for problem in self.problems))


def unknown_keys(
    value: Mapping[str, object],
    allowed: Iterable[str],
    what: str = "key",
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> list[Problem]:
    """Return one problem for each key that is not allowed, with the reason, or with the closest one that is."""
    names = list(allowed)
    problems = []
    for key in value:
        word, colon, rest = key.partition(":")
        if key in names:
            continue
        if key in reasons:
            problems.append(Problem((key,), reasons[key], at_key=True))
        elif colon and word in names:
            meant = Choice((), (f"{word}: {rest}",))
            message = f"a space is missing after the colon; write {meant.meant[0]}"
            problems.append(Problem((key,), message, at_key=True, choice=meant))
        else:
            choice = choose(key, names)
            problems.append(Problem((key,), f"unknown {what}; {choice}", at_key=True, choice=choice))
    return problems


class NotAllowedError(ValueError):
    """A value that is none of a few."""

    def __init__(self, given: object, allowed: Iterable[str]) -> None:
        self.choice = choose(given, allowed)
        super().__init__(f"unknown: {show(given)}; {self.choice}")


def choose(given: object, allowed: Iterable[str], likeness: float = 0.6) -> Choice:
    """Return what could have stood there, and which of it was probably meant, if one is as like as that."""
    names, word = tuple(allowed), str(given).lower()
    synonyms = {word: meant for word, meant in SYNONYMS.items() if set(meant) <= set(names)}
    close = synonyms.get(word) or difflib.get_close_matches(word, names, n=1, cutoff=likeness)
    close = close or synonyms.get("".join(difflib.get_close_matches(word, synonyms, n=1)), ())
    return Choice(names, tuple(close))


def problems_of(error: ValidationError | Problems) -> Iterator[Problem]:
    """Yield all mistakes in `error`, also those that validators deeper down collected."""
    if isinstance(error, Problems):
        yield from error.problems
        return
    for details in _of_one_kind(error.errors(include_url=False)):
        path = tuple(str(part) for part in details["loc"] if part != "[key]" and not _is_kind(part))
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, ValidationError | Problems):
            yield from (problem.under(*path) for problem in problems_of(cause))
        elif details["type"] == "missing":
            yield Problem(path[:-1], f"missing key '{path[-1]}'", at_key=True)
        else:
            yield Problem(path, _message(details), at_key="[key]" in details["loc"], choice=_choice(details))


def _is_kind(part: object) -> bool:
    """Whether a step of pydantic's to a value tells which of several kinds the value was taken for."""
    return isinstance(part, str) and part.startswith(KINDS)


def _of_one_kind(found: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Yield the mistakes, where a value may be of several kinds those of the kind that came farthest."""
    depths: dict[tuple[int | str, ...], int] = {}
    before = [tuple(itertools.takewhile(lambda part: not _is_kind(part), details["loc"])) for details in found]
    for path, details in zip(before, found, strict=True):
        depths[path] = max(depths.get(path, 0), len(details["loc"]))
    for path, details in zip(before, found, strict=True):
        if len(details["loc"]) == depths[path]:
            if len(details["loc"]) == len(path) + 1:
                depths[path] += 1  # one is enough of those that are of no kind
                if "expected" in details.get("ctx", {}):
                    details["ctx"]["expected"] += " or a list"
            yield details


def show(value: object) -> str:
    """Write a value as the user would, short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


def not_a(kind: Literal["list", "mapping"], value: object) -> str:
    """Say that a value is no list, or no mapping; where it is the text of one, that its quotes are why."""
    quoted = isinstance(value, str) and value.startswith("[" if kind == "list" else "{")
    hint = f", which is text; write the {kind} itself, without quotes around it" if quoted else ""
    return f"not a {kind}: {show(value)}{hint}"


def _message(details: ErrorDetails) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    if (choice := _choice(details)) is not None:
        return f"unknown: {show(value)}; {choice}"
    if kind in _MESSAGES:
        return _MESSAGES[kind](value, context)
    return f"{details['msg'][:1].lower()}{details['msg'][1:]}: {show(value)}"


def _type(expected: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, _: f"not {expected}: {show(value)}"


def _share_hint(value: object) -> str:
    """Say how to write what was given in percent."""
    try:
        return f" ({value} is {units.parse_percentage(value):g})"
    except ValueError:
        return ""


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _choice(details: ErrorDetails) -> Choice | None:
    """Return what could have stood there, where the mistake is a choice that there is not."""
    context = details.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, NotAllowedError):
        return cause.choice
    if isinstance(cause, units.QuantityError) and cause.meant:
        return Choice((), (cause.meant,))
    if details["type"] != "literal_error":
        return None
    names = [name.strip("'") for name in str(context["expected"]).replace(" or ", ", ").split(", ")]
    return choose(details["input"], names)


_MESSAGES: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "int_type": _type("a whole number"),
    "int_parsing": _type("a whole number"),
    "int_from_float": _type("a whole number"),
    "float_type": lambda value, _: f"not a number: {show(value)}{_share_hint(value)}",
    "finite_number": _type("a finite number"),
    "string_type": _type("text"),
    "bool_type": _type("true or false"),
    "dict_type": lambda value, _: not_a("mapping", value),
    "list_type": lambda value, _: not_a("list", value),
    "greater_than": lambda value, context: f"{value} is not above {context['gt']:g}",
    "greater_than_equal": lambda value, context: f"{value} is below {context['ge']:g}",
    "less_than_equal": lambda value, context: (
        f"{value} is above {context['le']:g}{percent_hint(value) if context['le'] == 1 else ''}"
    ),
    "string_too_short": lambda _, context: f"needs at least {context['min_length']} character",
    "too_short": lambda _, context: f"needs at least {_entries(context['min_length'])}",
}
