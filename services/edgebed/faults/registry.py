"""The kinds of faults that a scenario can have, by the key that names them; and how its list is read and resolved.

To add a kind: write its file, import it here, add it to `AnyFault`. See docs/creating-a-fault.md.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import get_args

from pydantic import ValidationError

from edgebed import chance
from edgebed.faults.churn import Churn
from edgebed.faults.cpus import Cpus
from edgebed.faults.cut import Cut
from edgebed.faults.entry import FaultSection
from edgebed.faults.flap import Flap
from edgebed.faults.freeze import Freeze
from edgebed.faults.heal import Heal
from edgebed.faults.kill import Kill
from edgebed.faults.link import Link
from edgebed.faults.memory import Memory
from edgebed.faults.partition import Partition
from edgebed.faults.restart import Restart
from edgebed.faults.targets import ROSTER, Roster
from edgebed.faults.thaw import Thaw
from edgebed.scenario.plan import Fault
from edgebed.scenario.problems import Problem, Problems, choose, problems_of, show

AnyFault = Kill | Freeze | Thaw | Restart | Cut | Heal | Flap | Link | Cpus | Memory | Partition | Churn

KINDS: dict[str, type[FaultSection]] = {each.kind: each for each in get_args(AnyFault)}


def read_faults(given: object, roster: Roster | None) -> list[FaultSection]:
    """The entries of a scenario's list; `Problems` with every mistake in it. Without a roster no node is looked for."""
    if not isinstance(given, list):
        raise Problems([Problem((), f"not a list: {show(given)}; e.g. [{{kill: edge-0, at: 30s}}]")])
    entries: dict[int, FaultSection] = {}
    problems: list[Problem] = []
    for k, each in enumerate(given):
        try:
            entries[k] = _read(each, roster)
        except (ValidationError, Problems) as error:
            problems += [problem.under(str(k)) for problem in problems_of(error)]
    for k, entry in entries.items():
        problems += [problem.under(str(k)) for problem in (entry.problems(roster) if roster is not None else ())]
    problems += _same_names(entries)
    if problems:
        raise Problems(problems)
    return list(entries.values())


def plan_faults(entries: Sequence[FaultSection], roster: Roster, seed: int) -> Iterator[Fault]:
    """What a scenario's list comes to, node by node, in its order."""
    for k, entry in enumerate(entries):
        yield from entry.resolve(name_of(entry, k), roster, functools.partial(chance.uniform, seed, f"faults/{k}"))


def name_of(entry: FaultSection, k: int) -> str:
    """Its own name, or that of its kind and place, from 1."""
    return entry.name or f"{entry.kind}-{k + 1}"


def _read(given: object, roster: Roster | None) -> FaultSection:
    if isinstance(given, FaultSection):
        return given
    if not isinstance(given, dict):
        raise Problems([Problem((), f"not a fault: {show(given)}; a mapping, e.g. {{kill: edge-0, at: 30s}}")])
    kinds = [key for key in given if key in KINDS]
    if not kinds:
        settings = {key for kind in KINDS.values() for key in kind.known_keys()}
        strange = next((key for key in given if key not in settings), None)
        path = () if strange is None else (strange,)
        raise Problems([Problem(path, f"no kind of fault; {choose(strange or '', KINDS)}", at_key=bool(path))])
    if len(kinds) > 1:
        raise Problems(
            [Problem((kinds[1],), f"{' and '.join(kinds)} are two faults; write an entry each", at_key=True)]
        )
    return KINDS[kinds[0]].model_validate(given, context={ROSTER: roster})


def _same_names(entries: dict[int, FaultSection]) -> Iterator[Problem]:
    taken: dict[str, int] = {}
    for k, entry in entries.items():
        name = name_of(entry, k)
        if name in taken:
            yield Problem((str(k), "name"), f"faults.{taken[name]} is called {name!r}, too")
        taken.setdefault(name, k)
