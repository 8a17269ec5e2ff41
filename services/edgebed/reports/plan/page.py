"""The page of a plan: for each trial its nodes, shards, links and faults, then totals and warnings."""

from collections.abc import Iterator, Sequence

from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, first_text, percent_text
from edgebed.core.units import format_memory
from edgebed.planning.memory import UNCAPPED_BYTES_MIN, UNCAPPED_ROOM
from edgebed.reports.plan.clients import clients_text
from edgebed.reports.plan.description import Description, NodeRow
from edgebed.reports.plan.faults import fault_grid
from edgebed.reports.plan.hosts import host_grid
from edgebed.reports.plan.links import link_grid
from edgebed.reports.plan.programs import ProgramsDescription, programs_section
from edgebed.reports.plan.shards import shard_grid, step_text
from edgebed.reports.writing.page import Grid, Notes, Page, Paragraph, Part, Section, Span

CLIENTS_SHOWN = 3
"""Clients of a worker that its row names."""


def page_of(scenario: str, question: str, descriptions: Sequence[Description | ProgramsDescription]) -> Page:
    """The page of all trials of a scenario; a terminal shows all of it, too."""
    parts = [programs_section(d) if isinstance(d, ProgramsDescription) else _trial(d) for d in descriptions]
    return Page(name=scenario, title=f"Plan of {scenario}", heading=question, parts=parts, brief=parts)


def _trial(d: Description) -> Section:
    kinds = ", ".join(f"{kind.replace('_', ' ')} {settings['name']}" for kind, settings in d.parts.items())
    steps = [step_text(d.step_s or 0.0, d.step_under_caps_s or 0.0)] if d.shards else []
    parts: list[Part] = [
        Paragraph(f"Task: {d.model} on {d.data}"),
        Section("Nodes", [_node_grid(d)]),
        Section("Hosts", [host_grid(d.hosts)]),
        Section("Shards", [shard_grid(d.shards), *map(Paragraph, steps)]),
        Section("Links", [link_grid(d.links), Paragraph(f"Links are held by {d.links_held_by}." if d.links else "")]),
        Section("Faults", [
            fault_grid(d.faults),
            Paragraph(f"When a node has failed: {d.on_failure}." if d.faults else ""),
        ]),
        Section("In all", [
            Notes(list(_totals(d))),
            *(Paragraph(Span(f"Warning: {each}", "unknown")) for each in d.warnings),
        ]),
    ]  # fmt: skip
    return Section(f"Trial {d.trial}: {d.method} ({kinds})", parts)


def _totals(d: Description) -> Iterator[str]:
    has_cpus, has_bytes = sum(each.cpus for each in d.machines), sum(each.memory_bytes for each in d.machines)
    left_out = f"; {count_text(len(d.left_out), 'worker')} left out by task.min_examples" if d.left_out else ""
    yield f"Workers: {d.num_workers} with {d.examples:,} of {d.examples_total:,} examples{left_out}"
    if d.clients:
        yield from clients_text(d.clients, sum(node.examples for node in d.nodes if node.role == "evaluator"))
    cores = "core" if d.cpus == 1 else "cores"
    yield f"Caps: {d.cpus:g} {cores} of {has_cpus}, {bytes_text(d.memory_bytes)} of {bytes_text(has_bytes)}"
    sizes = [node.container_bytes for node in d.nodes if node.container_bytes and node.memory_bytes is None]
    if sizes:
        least, most = format_memory(min(sizes)), format_memory(max(sizes))
        yield (
            f"Containers of nodes without a memory cap may use {least if least == most else f'{least} to {most}'}: "
            f"{UNCAPPED_ROOM} times what the node needs, {format_memory(UNCAPPED_BYTES_MIN)} at least"
        )
    yield f"Model: {d.parameters:,} parameters, {bytes_text(d.model_bytes)}{'' if d.shards else ' a pull'}"
    if d.constant_bytes:
        yield f"Not trained: {bytes_text(d.constant_bytes)}, sent once to each node that computes; the server has none"
    if not d.shards:
        yield f"Push: {d.push_entries:,} entries, {bytes_text(d.push_bytes)} before encoding"
    yield f"Validation part: {d.validation}"
    if d.by_client:
        yield f"Client by client: {d.by_client}"
    yield f"A new server goes on {d.durability}"
    if d.most_frequent:
        label, share = d.most_frequent
        yield f"Most frequent class of the test set: {label}, {d.headline} of always saying it: {percent_text(share)}"
    yield f"Objective: {d.objective}, told by {d.headline}"
    yield f"Stop: {', or '.join(d.stop)}"
    if d.expectations:
        yield f"Expected: {', '.join(d.expectations)}"
    if d.virtual_time:
        yield f"Virtual time: {d.virtual_time}"


def _node_grid(d: Description) -> Grid:
    host = ("host",) if d.hosts else ()
    clients = ("clients",) if any(row.clients for row in d.nodes) else ()
    labels = ("labels",) if any(row.label_counts for row in d.nodes) else ()
    head = ("node", "class", *host, "cpus", "memory", "speed", "waiting", "examples", *clients, *labels)
    rows = [_node_cells(row, bool(clients))[: len(head)] for row in d.nodes]
    return Grid(head, rows, flexible="".join(labels), is_sortable=True)


def _node_cells(row: NodeRow, has_clients: bool) -> tuple[str, ...]:
    return (
        row.node,
        row.device_class,
        *([row.host] if row.host else []),
        UNMEASURED if row.cpus is None else f"{row.cpus:g}",
        UNMEASURED if row.memory_bytes is None else format_memory(row.memory_bytes),
        row.device or UNMEASURED,
        row.waiting if row.role == "worker" else UNMEASURED,
        f"{row.examples:,}" if row.examples else UNMEASURED,
        *([first_text(row.clients, CLIENTS_SHOWN) or UNMEASURED] if has_clients else []),
        labels_text(row.label_counts),
    )


def labels_text(counts: Sequence[int]) -> str:
    """The labels that occur, neighbours joined: `0-3 7`."""
    runs: list[list[int]] = []
    for label, count in enumerate(counts):
        if count and runs and runs[-1][1] == label - 1:
            runs[-1][1] = label
        elif count:
            runs.append([label, label])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs) or UNMEASURED
