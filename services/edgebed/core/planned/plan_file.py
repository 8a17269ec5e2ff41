"""A plan as it is recorded: what all nodes have in common, and what those of a class have, is written once.

    {..., "common": {"task", "method", ...}, "classes": [{"role", ...}, ...], "nodes": [["edge-7", 2, {...}], ...]}

A class is the plan of its first node without its name and without what is common. A node's entry has its name, the
number of its class, and what differs from that, inside of structs too. So a node takes some hundred bytes, whatever it
trains, and plans of nodes that are read share what they have in common.
"""

import functools
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from edgebed.core.measures.clients import of_clients
from edgebed.core.measures.measure import VERDICT
from edgebed.core.measures.trial import all_measures, program_measures
from edgebed.core.plan import Method, NodePlan, Plan, ProgramsPlan, Task, TrainingNode, TrainingPlan
from edgebed.core.planned.program import ProgramPlan

S = TypeVar("S", bound=msgspec.Struct)


class _Common(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that all nodes have like the first, but for those of a class that says otherwise."""

    seed: int
    check_s: float


class _OfTraining(_Common, frozen=True, kw_only=True):
    """Fields that all nodes of training have so, beside those."""

    task: Task
    method: Method
    trace: bool


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """A node."""

    name: str
    of_class: int
    own: dict[str, Any] = {}


class _Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a plan."""

    common: dict[str, Any]
    classes: list[dict[str, Any]]
    nodes: list[_Entry]


def dump_plan(plan: Plan) -> bytes:
    """The plan, which has a node at least, as JSON with a line for each node."""
    kind = _Common if isinstance(plan, ProgramsPlan) else _OfTraining
    common = {name: getattr(plan.nodes[0], name) for name in kind.__struct_fields__}
    classes: dict[tuple[str, str], tuple[int, NodePlan]] = {}
    entries = []
    for node in plan.nodes:
        number, usual = classes.setdefault((node.role, node.device_class), (len(classes), node))
        own = {name: value for name, value in _differences(node, usual).items() if name != "node"}
        entries.append(msgspec.json.encode(_Entry(node.node, number, own)))
    head = msgspec.structs.asdict(plan) | {
        "common": common, "classes": [_class(node, common) for _, node in classes.values()]
    }  # fmt: skip
    del head["nodes"]
    text = msgspec.json.format(msgspec.json.encode(head))
    return text.removesuffix(b"\n}") + b',\n  "nodes": [\n    ' + b",\n    ".join(entries) + b"\n  ]\n}\n"


def load_plan(written: Mapping[str, Any]) -> TrainingPlan | ProgramsPlan:
    """The plan that was written so; ValidationError where it is none, or none of a trial."""
    form = msgspec.convert(written, _Nodes)
    if "program" in written:
        programs = msgspec.convert({**written, "nodes": ()}, ProgramsPlan)
        nodes = _nodes(form, ProgramPlan, msgspec.convert(form.common, _Common))
        _check_ranks(nodes)
        known = program_measures(each.name for each in programs.program.measures)
        _check_expected(programs, known.keys())
        return msgspec.structs.replace(programs, nodes=nodes)
    plan = msgspec.convert({**written, "nodes": ()}, TrainingPlan)
    trainers: tuple[TrainingNode, ...] = _nodes(form, TrainingNode, msgspec.convert(form.common, _OfTraining))
    _check_roles(trainers)
    _check_levels(plan)
    _check_expected(plan, all_measures(plan.measures).keys() | of_clients(plan.measures).keys())
    return msgspec.structs.replace(plan, nodes=trainers)


def _nodes(form: _Nodes, kind: Any, common: _Common) -> tuple[Any, ...]:
    """The nodes, which are of this kind; ValidationError unless each has a name of its own."""
    classes: list[NodePlan] = []
    for each in form.classes:
        made = msgspec.convert({"node": "", **form.common, **each}, kind)
        shared = {name: value for name, value in msgspec.structs.asdict(common).items() if name not in each}
        classes.append(msgspec.structs.replace(made, **shared))
    nodes = tuple(_node(classes, entry) for entry in form.nodes)
    names = Counter(node.node for node in nodes)
    for name in [name for name, count in names.items() if count > 1]:
        raise msgspec.ValidationError(f"{names[name]} nodes are called {name}")
    return nodes


def _check_roles(nodes: Sequence[TrainingNode]) -> None:
    """ValidationError unless there is one server, and one evaluator."""
    roles = Counter(node.role for node in nodes)
    for role in ("server", "evaluator"):
        if roles[role] != 1:
            raise msgspec.ValidationError(f"it has {roles[role]} nodes that are {role}, not one")


def _check_ranks(nodes: Sequence[ProgramPlan]) -> None:
    """ValidationError unless there is a node, and each node's rank is its place."""
    if not nodes:
        raise msgspec.ValidationError("it has no nodes")
    for place, node in enumerate(nodes):
        if node.rank != place:
            raise msgspec.ValidationError(f"{node.node} has rank {node.rank}, and is at place {place}")


def _check_levels(plan: TrainingPlan) -> None:
    """ValidationError unless what is to be reached is of a measure that the task has."""
    names = {each.name for each in plan.measures}
    for name in (each.measure for each in (plan.stop_level, plan.sweep_level) if each and each.measure not in names):
        raise msgspec.ValidationError(f"a level of {name!r} is to be reached, which is no measure of its task")


def _check_expected(plan: Plan, known: Container[str]) -> None:
    """ValidationError unless what is expected is of a measure that the trial has."""
    for name, _, _ in plan.expectations:
        if name not in known and name != VERDICT.name:
            raise msgspec.ValidationError(f"it expects something of {name!r}, which is no measure")


def _class(node: NodePlan, common: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a class's first node without its name and what is common."""
    written = {name: value for name, value in msgspec.structs.asdict(node).items() if name != "node"}
    own = {name: value for name, value in written.items() if name not in common or value != common[name]}
    return {"role": node.role, **own}


def _node(classes: list[NodePlan], entry: _Entry) -> NodePlan:
    if not 0 <= entry.of_class < len(classes):
        raise msgspec.ValidationError(f"{entry.name} is of class {entry.of_class}, of {len(classes)}")
    return _changed(classes[entry.of_class], {"node": entry.name, **entry.own})


def _differences(value: msgspec.Struct, usual: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that another one of its type has otherwise; of structs in it theirs."""
    found: dict[str, Any] = {}
    for name in value.__struct_fields__:
        own, other = getattr(value, name), getattr(usual, name)
        if own is not other and own != other:
            is_inside = isinstance(own, msgspec.Struct) and type(own) is type(other)
            found[name] = _differences(own, other) if is_inside else own
    return found


def _changed(usual: S, own: Mapping[str, Any]) -> S:
    """A struct with the fields that differ, whose form `_differences` has; ValidationError where one does not fit."""
    types, changes = _types(type(usual)), {}
    for name, value in own.items():
        if name not in types:
            raise msgspec.ValidationError(f"unknown field `{name}`")
        other = getattr(usual, name)
        is_inside = isinstance(other, msgspec.Struct) and isinstance(value, dict)
        changes[name] = _changed(other, value) if is_inside else msgspec.convert(value, types[name])
    return msgspec.structs.replace(usual, **changes)


@functools.cache
def _types(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)}
