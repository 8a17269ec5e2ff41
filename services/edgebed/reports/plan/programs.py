"""What the plan of programs will do, before it does it: classes, hosts, faults, what ends it, what is measured."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.program import Ends, OutputMeasure, ProgramPlan, Ready
from edgebed.core.quantities import UNMEASURED, bytes_text
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.core.units import format_duration, format_memory
from edgebed.emulation.means import mechanisms_of
from edgebed.planning.program_plans import PlannedPrograms, program_warnings
from edgebed.planning.warnings import HostCapacity, capacities
from edgebed.reports.plan.faults import FaultRow, fault_grid, fault_rows
from edgebed.reports.plan.hosts import HostRow, host_grid, host_row
from edgebed.reports.plan.links import link_text
from edgebed.reports.writing.page import Grid, Notes, Paragraph, Section, Span


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """The nodes of a class."""

    device_class: str
    nodes: tuple[str, ...]
    """In the order of their ranks."""
    command: tuple[str, ...]
    """With its placeholders, word by word."""
    image: str
    """Image of their containers; empty: the one that is built, or edgebed's own; in processes none."""
    cpus: float | None
    """CPU cap of each, in cores; likewise of memory."""
    memory_bytes: int | None
    link: str
    """In one line; of the first node, where each has its place in a trace."""
    after: tuple[str, ...]
    """Classes that are ready before."""
    ready: str
    """What shows that they are ready."""


@dataclass(frozen=True, kw_only=True)
class ProgramsDescription:
    """The plan of one trial of programs."""

    trial: str
    classes: tuple[ClassRow, ...]
    num_nodes: int
    files: str
    """Folder that each node has a copy of; empty: none."""
    cpus: float
    """Sum of the CPU caps, in cores."""
    memory_bytes: int
    """Sum of the memory caps."""
    machines: tuple[HostCapacity, ...]
    """This machine, or in containers its hosts."""
    hosts: tuple[HostRow, ...]
    """The hosts that nodes are placed on; none: this machine alone."""
    links_held_by: str
    """The mechanism that holds the links; empty where every link is as fast as the machine."""
    faults: tuple[FaultRow, ...]
    on_failure: str
    """What is done when a program has died."""
    ends: str
    measures: tuple[str, ...]
    """What output tells, and where it is looked for."""
    expectations: tuple[str, ...]
    warnings: tuple[str, ...]


def describe_programs(
    planned: PlannedPrograms, *, runtime: Runtime = "process", emulation: Emulation = "auto"
) -> ProgramsDescription:
    """The facts of a planned trial of programs in a runtime, on this machine or its hosts."""
    plan, here = planned.plan, HostCapacity.here()
    classes: dict[str, list[ProgramPlan]] = {}
    for node in plan.nodes:
        classes.setdefault(node.device_class, []).append(node)
    is_shaped = any(node.link.shaped for node in plan.nodes)
    return ProgramsDescription(
        trial=plan.trial,
        classes=tuple(_class_row(name, nodes) for name, nodes in classes.items()),
        num_nodes=len(plan.nodes),
        files=plan.program.files,
        cpus=sum(node.cpus or 0.0 for node in plan.nodes),
        memory_bytes=sum(node.memory_bytes or 0 for node in plan.nodes),
        machines=tuple(machine for machine, _ in capacities(plan, runtime, here)),
        hosts=tuple(host_row(each, plan) for each in plan.hosts),
        links_held_by=str(mechanisms_of(runtime, emulation)) if is_shaped else "",
        faults=tuple(fault_rows(plan)),
        on_failure=_on_failure(plan),
        ends=_ends_text(plan),
        measures=tuple(map(_measure_text, plan.program.measures)),
        expectations=(
            *(f"{measure} {comparison} {bound:g}" for measure, comparison, bound in plan.expectations),
            *(["verdict trusted"] if plan.expects_trusted else []),
        ),
        warnings=(*planned.warnings, *program_warnings(plan, runtime, here, emulation)),
    )


def programs_section(d: ProgramsDescription) -> Section:
    """The part of a plan's page that shows a trial."""
    return Section(f"Trial {d.trial}", [
        Section("Nodes", [_class_grid(d)]),
        Section("Hosts", [host_grid(d.hosts)]),
        Section("Faults", [fault_grid(d.faults)]),
        Section("In all", [
            Notes(list(_totals(d))),
            *(Paragraph(Span(f"Warning: {each}", "unknown")) for each in d.warnings),
        ]),
    ])  # fmt: skip


def _class_row(name: str, nodes: list[ProgramPlan]) -> ClassRow:
    first = nodes[0]
    return ClassRow(
        device_class=name,
        nodes=tuple(node.node for node in nodes),
        command=first.run,
        image=first.image,
        cpus=first.cpus,
        memory_bytes=first.memory_bytes,
        link=link_text(first.link),
        after=first.after,
        ready=_ready_text(first.ready),
    )


def _class_grid(d: ProgramsDescription) -> Grid:
    image = ("image",) if any(row.image for row in d.classes) else ()
    after = ("starts after",) if any(row.after for row in d.classes) else ()
    head = ("class", "nodes", "command", *image, "cpus", "memory", "link", *after, "ready")
    rows = [
        (
            row.device_class,
            f"{len(row.nodes)}",
            " ".join(shlex.quote(word) if re.search(r"\s", word) else word for word in row.command),
            *([row.image or UNMEASURED] if image else []),
            UNMEASURED if row.cpus is None else f"{row.cpus:g}",
            UNMEASURED if row.memory_bytes is None else format_memory(row.memory_bytes),
            row.link,
            *([", ".join(row.after) or UNMEASURED] if after else []),
            row.ready,
        )
        for row in d.classes
    ]
    return Grid(head, rows, flexible="command")


def _totals(d: ProgramsDescription) -> Iterator[str]:
    cpus, memory_bytes = sum(each.cpus for each in d.machines), sum(each.memory_bytes for each in d.machines)
    yield f"Nodes: {d.num_nodes}, ranks in the order of their classes"
    yield f"Caps: {d.cpus:g} of {cpus} cores, {bytes_text(d.memory_bytes)} of {bytes_text(memory_bytes)}"
    if d.links_held_by:
        yield f"Links are held by {d.links_held_by}"
    if d.files:
        yield f"Files: {d.files}, read-only, the working folder of each node"
    yield f"Ends: {d.ends}"
    yield f"When a program has died: {d.on_failure}"
    yield f"Measured: {'; '.join(d.measures) or 'nothing of the output, which is kept as logs'}"
    if d.expectations:
        yield f"Expected: {', '.join(d.expectations)}"


def _on_failure(plan: ProgramsPlan) -> str:
    delay = format_duration(plan.restart_delay_s)
    return {
        "ignore": "nothing is done but what faults do",
        "restart": f"it is restarted after {delay}",
        "restart-all": f"all are ended, and restarted after {delay}",
        "stop": "the trial ends",
    }[plan.on_failure]


def _ends_text(plan: ProgramsPlan) -> str:
    ends: Ends = plan.program.ends
    whose = f"of {ends.of} " if ends.of else ""
    text = {
        "all": "when all programs have ended",
        "first": "when the first program has ended",
        "class": f"when those {whose}have ended",
        "log": f"when a line {whose}matches {ends.log}",
    }[ends.kind]
    at = f"at {format_duration(plan.stop_time_s)} at the latest" if plan.stop_time_s is not None else "not by time"
    return f"{text}; {at}"


def _measure_text(measure: OutputMeasure) -> str:
    where = (measure.metric and f"metric {measure.metric}") or measure.pattern or "JSON lines"
    return f"{measure.name} by {where}" + (f" of {measure.of}" if measure.of else "")


def _ready_text(ready: Ready) -> str:
    ways = (
        f"port {ready.port}" if ready.port is not None else "",
        f"a line {ready.log}" if ready.log is not None else "",
        f"file {ready.file}" if ready.file is not None else "",
        f"after {format_duration(ready.after_s)}" if ready.after_s is not None else "",
    )
    return " or ".join(filter(None, ways)) or "once it runs"
