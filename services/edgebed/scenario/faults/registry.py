"""The kinds of faults that a scenario can have, by the key that names them; and how its list is read and resolved.

A kind is a module beside this one with a class that has its name; a line of the table adds it, and nothing else names
it. Or it is the user's own, and its key is an import path. See docs/creating-a-fault.md.
"""

import functools
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec
from pydantic import GetJsonSchemaHandler, SerializeAsAny, ValidationError
from pydantic_core import CoreSchema

from edgebed.core import chance, imports
from edgebed.core.planned.fault import FaultPlan
from edgebed.core.units import format_duration
from edgebed.scenario.faults.custom import OwnKind, own_kind
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.targets import ROSTER, Roster
from edgebed.scenario.faults.settings.triggers import TIMES_MAX
from edgebed.scenario.mistakes.problems import Problem, Problems, choose, not_a, problems_of, show
from edgebed.scenario.section import FOLDER


def _table(*modules: str) -> dict[str, type[FaultSection]]:
    """The kinds of fault in modules beside this one, in the order given."""
    found = [kind_in(importlib.import_module(f"edgebed.scenario.faults.{module}")) for module in modules]
    return {kind.kind: kind for kind in found}


def kind_in(module: ModuleType) -> type[FaultSection]:
    """The one kind of fault that a module declares."""
    here = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    (kind,) = [each for each in here if issubclass(each, FaultSection) and "kind" in vars(each)]
    return kind


KINDS = _table(
    "kill",
    "freeze",
    "thaw",
    "restart",
    "cut",
    "heal",
    "flap",
    "link",
    "cpus",
    "memory",
    "partition",
    "churn",
    "availability",
)


class _OrOwn:
    """In editors an entry whose key is an import path may have any other keys."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        has_path = {"not": {"propertyNames": {"not": {"pattern": imports.PATTERN}}}}
        return {"anyOf": [*handler(schema)["anyOf"], {"type": "object", "title": imports.FORM, **has_path}]}


if TYPE_CHECKING:
    AnyFault = FaultSection
else:
    AnyFault = Annotated[
        SerializeAsAny[Union[tuple(KINDS.values())]],  # noqa: UP007 - the table says of what
        _OrOwn(),
    ]


def read_faults(
    given: object, roster: Roster | None, python_path: Sequence[str] = (), folder: Path = Path()
) -> list[FaultSection]:
    """The entries of a scenario's list; `Problems` with every mistake in it. Without a roster no node is looked for.

    Modules of one's own are looked for in `python_path` first; other files in `folder`.
    """
    if not isinstance(given, list):
        raise Problems([Problem((), f"{not_a('list', given)}; e.g. [{{kill: edge-0, at: 30s}}]")])
    entries: dict[int, FaultSection] = {}
    problems: list[Problem] = []
    for k, each in enumerate(given):
        try:
            entries[k] = _read(each, roster, python_path, folder)
        except (ValidationError, Problems) as error:
            problems += [problem.under(str(k)) for problem in problems_of(error)]
    for k, entry in entries.items():
        problems += [problem.under(str(k)) for problem in (_misfits(entry, roster) if roster is not None else ())]
    problems += _same_names(entries)
    if problems:
        raise Problems(problems)
    return list(entries.values())


def plan_faults(
    entries: Sequence[FaultSection], roster: Roster, seed: int, end_s: float | None = None
) -> Iterator[FaultPlan]:
    """Yield what a scenario's list comes to, node by node, in its order, in a trial that ends at `end_s` at the latest.

    What is repeated draws anew each time.
    """
    for place, entry in enumerate(entries):
        for k in range(min(entry.times(end_s), TIMES_MAX)):
            purpose = f"faults/{place}/{k}" if k else f"faults/{place}"
            for fault in entry.resolve(name_of(entry, place), roster, functools.partial(chance.uniform, seed, purpose)):
                yield fault if entry.every is None else _repeated(fault, k, entry.every)


def _repeated(fault: FaultPlan, k: int, every_s: float) -> FaultPlan:
    """Return a fault as it is `k` intervals later."""
    at_s = round((fault.trigger.at_s or 0.0) + k * every_s, 6)
    trigger = msgspec.structs.replace(fault.trigger, at_s=at_s)
    return msgspec.structs.replace(fault, trigger=trigger, recurs=True, every_s=every_s)


def repeat_problems(entries: Sequence[FaultSection], roster: Roster, end_s: float | None) -> Iterator[Problem]:
    """Yield entries whose repetition has no end, or too many times, or begins again before it is over."""
    for place, entry in enumerate(entries):
        if entry.every is None:
            continue
        every = format_duration(entry.every)
        faults = entry.resolve("tried", roster, functools.partial(chance.uniform, 0, "tried"))
        takes_s = max((step.after_s for fault in faults for step in fault.steps), default=0.0)
        if entry.until is None and end_s is None:
            message = "nothing says when the last one is; give until, e.g. until: 1h, or stop.time"
        elif (times := entry.times(end_s)) > TIMES_MAX:
            message = f"every {every} makes {times:,} times; {TIMES_MAX:,} are allowed: less often, or an earlier until"
        elif takes_s >= entry.every:
            message = f"each takes {format_duration(takes_s)}, and comes again after {every}; give a longer every"
        else:
            continue
        yield Problem(("faults", str(place), "every"), message)


def name_of(entry: FaultSection, k: int) -> str:
    """Return an entry's own name, or its kind and place, from 1."""
    return entry.name or f"{entry.kind}-{k + 1}"


def _misfits(entry: FaultSection, roster: Roster) -> Iterator[Problem]:
    """What does not fit the nodes that are meant; an entry of one's own is tried with them besides."""
    if not isinstance(entry, OwnKind):
        yield from entry.problems(roster)
        return
    try:
        found = list(entry.problems(roster))
        if not found:
            list(entry.resolve("tried", roster, functools.partial(chance.uniform, 0, "tried")))
    except Exception as error:  # noqa: BLE001 - whatever it raises is the user's to read
        found = [Problem((entry.path,), f"{entry.path}: it failed: {imports.reason(error)}")]
    yield from found


def _read(given: object, roster: Roster | None, python_path: Sequence[str], folder: Path) -> FaultSection:
    if isinstance(given, FaultSection):
        return given
    if not isinstance(given, dict):
        raise Problems([Problem((), f"not a fault: {show(given)}; a mapping, e.g. {{kill: edge-0, at: 30s}}")])
    kinds = [key for key in given if key in KINDS or imports.is_import_path(str(key))]
    if not kinds:
        settings = {key for kind in KINDS.values() for key in kind.known_keys()}
        strange = next((key for key in given if key not in settings), None)
        path = () if strange is None else (strange,)
        choice = choose(strange or "", (*KINDS, imports.FORM))
        raise Problems([Problem(path, f"no kind of fault; {choice}", at_key=bool(path), choice=choice)])
    if len(kinds) > 1:
        raise Problems(
            [Problem((kinds[1],), f"{' and '.join(kinds)} are two faults; write an entry each", at_key=True)]
        )
    kind = KINDS[kinds[0]] if kinds[0] in KINDS else own_kind(kinds[0], python_path)
    return kind.model_validate(given, context={ROSTER: roster, FOLDER: folder})


def _same_names(entries: dict[int, FaultSection]) -> Iterator[Problem]:
    taken: dict[str, int] = {}
    for k, entry in entries.items():
        name = name_of(entry, k)
        if name in taken:
            yield Problem((str(k), "name"), f"faults.{taken[name]} is called {name!r}, too")
        taken.setdefault(name, k)
