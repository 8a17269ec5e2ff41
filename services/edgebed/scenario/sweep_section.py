"""The section `sweep`: which settings `edgebed sweep` varies, and what ends each of its runs.

An axis is the dotted key of a setting, as `--set` takes it, with the values it takes one after another. Whether every
method has such a setting, and can take these values, shows only where they are laid over its trial: each is checked
there, with the place where it stands in the file.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, PlainValidator, WithJsonSchema

from edgebed.core.errors import Place, ScenarioError
from edgebed.core.measures.task import Level
from edgebed.scenario import overrides, source
from edgebed.scenario.expectations import LEVEL_KEYS, LevelSection
from edgebed.scenario.mistakes.problems import Problem, Problems, choose, show
from edgebed.scenario.source import SourceNode

NO_AXES = {
    "name": "it names the folder of the runs",
    "question": "it changes nothing",
    "seed": "sweep.seeds says how many seeds there are",
    "variants": "methods are variants, and sweep.methods chooses among them",
    "sweep": "it is the sweep itself",
    "expect": "it changes nothing of a run",
    "method": "methods are variants, and sweep.methods chooses among them",
    "method.preset": "methods are variants, and sweep.methods chooses among them",
    "stop": "the measure in sweep decides when a run ends, and stop.updates when it gives up",
    **dict.fromkeys(("stop.accuracy", "stop.measure", "stop.at"), "the measure in sweep is where every run ends"),
    "stop.window": "sweep.window says over how many evaluations, for all points alike",
    "stop.updates": "it is where a run gives up, for all points alike",
}
"""Keys that no axis can be, and why."""


def _read_axes(given: object) -> dict[str, list[Any]]:
    if not isinstance(given, Mapping) or not given:
        example = "e.g. {fleet.edge.uplink: [1mbit, 10mbit]}"
        raise ValueError(f"not a mapping of settings to lists of values: {show(given)}; {example}")
    problems = [Problem((str(key),), text) for key, values in given.items() for text in _axis_problems(values)]
    problems += [Problem((key,), text, at_key=True) for key in map(str, given) for text in _key_problems(key, given)]
    if problems:
        raise Problems(problems)
    return {str(key): list(values) for key, values in given.items()}


def _axis_problems(values: object) -> Iterator[str]:
    if not isinstance(values, list) or not values:
        yield f"not a list of values: {show(values)}; e.g. [1mbit, 10mbit]"
        return
    if any(value is None for value in values):
        yield "a value is missing; null takes a setting away, which is no value of it"
    texts = [value_text(value) for value in values]
    for text in dict.fromkeys(text for text in texts if texts.count(text) > 1):
        yield f"{text} stands there twice"


def _key_problems(key: str, others: Iterable[object]) -> Iterator[str]:
    if key in NO_AXES:
        yield f"no axis of a sweep: {NO_AXES[key]}"
    if not all(key.split(".")):
        yield "not the dotted key of a setting, e.g. fleet.edge.uplink"
    for other in map(str, others):
        if other.startswith(f"{key}."):
            yield f"'{other}' is a part of it; give one of the two"


Axes = Annotated[
    dict[str, list[Any]],
    PlainValidator(_read_axes),
    WithJsonSchema(
        {
            "type": "object",
            "title": "lists of values by setting",
            "minProperties": 1,
            "additionalProperties": {"type": "array", "minItems": 1},
        }
    ),
]


class SweepSection(LevelSection):
    """What `edgebed sweep` runs: each method at every combination of the axes' values, until a measure has a value.

    `stop.updates` is where a run gives up. Programs of one's own end as the scenario says: they have `over`, `seeds`
    and `methods`, which are their variants.
    """

    window: int = Field(default=3, ge=1)
    """Evaluations whose mean must reach that value; with 1, a single lucky evaluation counts."""
    methods: list[str] = Field(default=[])
    """Variants that are compared; all if left out."""
    over: Axes
    """Axes: dotted keys of settings, as `--set` takes them, each with a list of values. `fleet.edge.uplink` is one."""
    seeds: int = Field(default=1, ge=1)
    """Number n of seeds: every point is run with the seeds 1 to n."""

    @property
    def required_level(self) -> Level:
        """Return where each run ends."""
        assert self.level is not None
        return self.level

    def kind_problems(self, *, runs_programs: bool) -> Iterator[Problem]:
        """Yield a level of programs, which have none, and that training lacks one."""
        if runs_programs:
            why = "a program has no task's measures, and ends by itself or by stop; leave it out"
            yield from (Problem((key,), why, at_key=True) for key in LEVEL_KEYS if key in self.model_fields_set)
        elif not self.level:
            yield Problem((), "missing: the value of a measure at which each run ends, e.g. accuracy: 0.9")


class Mistake(NamedTuple):
    """A mistake in the section: what is wrong, and where."""

    node: SourceNode
    message: str
    trial: str = ""
    """Variant that the mistake is in; empty: all."""
    at_key: bool = False


Check = Callable[[SourceNode], Iterable[Problem]]
"""A trial's tree -> what is wrong with it."""


def value_text(value: Any) -> str:
    """Write a value as an option would: YAML that is read as the same value."""
    if isinstance(value, str):
        return value if _reads_as_itself(value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _reads_as_itself(text: str) -> bool:
    """Whether YAML takes the text for a string without quotes."""
    try:
        return bool(source.parse(text, "", lines=False) == text)
    except ScenarioError:  # as of a single quote
        return False


def mistakes(
    node: SourceNode, section: SweepSection, trees: Mapping[str, SourceNode], check: Check
) -> Iterator[Mistake]:
    """Yield what is wrong with the section at `node`, given the trials' trees by name."""
    listed, _ = node.descend(("methods",))
    unknown = [name for name in section.methods if name not in trees]
    for name in unknown:
        yield Mistake(listed, f"no variant '{name}'; {choose(name, trees)}")
    for name in dict.fromkeys(name for name in section.methods if section.methods.count(name) > 1):
        yield Mistake(listed, f"'{name}' stands there twice")
    if unknown:
        return
    chosen = {name: trees[name] for name in section.methods or trees}
    for name, tree in chosen.items():
        if section.level and tree.descend(("stop", "updates"))[1]:
            place, _ = tree.descend(("stop",))
            yield Mistake(place, "no updates; a run of a sweep gives up there, e.g. stop: { updates: 5000 }", name)
    for key, values in node.value["over"].items():
        yield from _axis_mistakes(tuple(key.split(".")), values, chosen, check)


def _axis_mistakes(
    keys: Sequence[str], values: SourceNode, trees: Mapping[str, SourceNode], check: Check
) -> Iterator[Mistake]:
    """Yield the mistakes of one axis: what no trial has once, a value that does not fit where it stands."""
    for name, tree in trees.items():
        if keys[0] == "fleet" and len(keys) > 2 and tree.descend(keys[:2])[1]:
            classes, _ = tree.descend(("fleet",))
            known = [key for key, _ in classes.items()]
            yield Mistake(values, f"the fleet has no class '{keys[1]}'; {choose(keys[1], known)}", name, at_key=True)
            continue
        for value in values.value:
            merged = overrides.merge(tree, overrides.nest(value, keys))
            found = list(check(merged))
            for problem in found:
                yield _mistake(problem, merged, keys, values, value, name)
            if any(problem.at_key for problem in found):
                break


def _mistake(
    problem: Problem, tree: SourceNode, keys: Sequence[str], values: SourceNode, value: SourceNode, trial: str
) -> Mistake:
    node, _ = tree.descend(problem.path)
    if problem.at_key and problem.path == tuple(keys[: len(problem.path)]):
        return Mistake(values, problem.message, trial, at_key=True)
    if node.path[: len(value.path)] == value.path:
        return Mistake(node, problem.message, trial)
    return Mistake(value, f"{'.'.join(problem.path)}: {problem.message}", trial)


def empty(place: Place) -> SourceNode:
    """Return a section that options alone fill."""
    return SourceNode({}, place, ("sweep",), place)
