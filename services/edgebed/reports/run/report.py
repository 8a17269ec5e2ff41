"""The report of a run: one HTML file that needs nothing else, for a screen (light or dark) and for paper.

A view of the journals alone, so it can be made again at any time, also for a run that crashed, was interrupted or is
in progress. The order is that of a reader's questions: what was asked, what came of it, how it looks, where the time
went, whether the accounting closes, what was set, how to repeat it. Every text from outside is escaped.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

from edgebed.core.measures.trial import compared_texts, measure_of
from edgebed.core.plan import TrainingNode
from edgebed.core.quantities import (
    UNMEASURED,
    bytes_text,
    count_text,
    updates_text,
    utc_text,
)
from edgebed.core.records import Phases
from edgebed.core.runtimes import is_virtual
from edgebed.journal.logs import last_lines
from edgebed.journal.outcome import tone_of
from edgebed.journal.run_folder import write_atomically
from edgebed.journal.series_faults import unasked_losses
from edgebed.journal.summary import Expectation, TrialSummary
from edgebed.planning.virtual_time import speed_text
from edgebed.reports.programs.report import programs_page
from edgebed.reports.run import sections, trial_charts
from edgebed.reports.run.answer import answer_lines
from edgebed.reports.run.charts import charts_of
from edgebed.reports.run.clients_text import client_parts
from edgebed.reports.run.faults_text import (
    STEPS,
    UPDATES,
    accounting_legend,
    accounting_line,
    accounting_rows,
    faults_line,
)
from edgebed.reports.run.shards_text import PAIR_HEAD, PHASE_HEAD, exchange_rows, pair_rows, phase_rows, shard_rows
from edgebed.reports.run.step_breakdown_chart import BUSY_LEGEND, busy_chart
from edgebed.reports.run.traffic_text import byte_rows, bytes_by_kind, lacks_messages
from edgebed.reports.run.trial_measures import measures_grid, most_frequent_of
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import (
    Bars,
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Section,
    Span,
    legend,
    shaded,
)
from edgebed.running.results import Run, Trial

LOG_LINES = 20
"""Lines that are shown of the log of a node that died."""
LOGS_MAX = 8
LEAD = ("over-traffic", "over-time")
"""The charts that show the answer where workers push updates."""
SIGNS = {">=": "≥", "<=": "≤", "==": "=", "!=": "≠"}
MARKS = "Dotted lines, or ticks above a chart, mark faults and actions by hand."
EXPECTATION_HEAD = ("trial", "measure", "expected", "measured", "met?")
STEP_HEAD = ("trial", "worker", "steps", "gradient", "encoding", "waiting", "pause")


def write_report(run: Run) -> None:
    """Write `report.html` into the run's folder; InfrastructureError if that is impossible."""
    write_atomically(run.folder.report, to_html(report_page(run)).encode())


def report_page(run: Run) -> Page:
    """The report."""
    if run.programs:
        return programs_page(run)
    summary, trials = run.summary, list(run.trials.values())
    warnings = [f"{trial.trial}: {warning}" for trial in summary.trials for warning in trial.warnings]
    not_begun = f"{', '.join(summary.not_begun)} did not begin." if summary.not_begun else ""
    none = "" if summary.trials or not_begun else "No trial has begun."
    series = {trial.name: trial.series for trial in trials}
    charts = charts_of(series, _examples_per_update(trials), most_frequent_of(summary.trials))
    lead = () if any(trial.shards for trial in summary.trials) else LEAD
    answer, *others = answer_lines(trials) or ("",)
    parts: Mapping[str, Iterator[Part]] = {
        "What holds a step up": _busy(trials),
        "Expectations": _expectations(summary.trials),
        "Ends of the logs of nodes that died": _deaths(run),
        "Charts": iter([Figures([chart for name, chart in charts.items() if name not in lead])]),
        "Trials": iter((measures_grid(summary), Paragraph(not_begun or none))),
        "Client by client": client_parts(trials),
        "Nodes over time": iter([Figures([chart for trial in trials for chart in _of_nodes(trial)])]),
        "What was done to the nodes": sections.faults(trials),
        "Did the conditions hold?": sections.conditions(summary.trials),
        "Where a shard's time went": _shard_phases(summary.trials),
        "Where a step's time went": _phases(trials),
        "Bytes by kind": _bytes(summary.trials),
        "What a step's messages are": _exchanged(summary.trials),
        "Does the accounting close?": _accounting(trials),
        "Events": sections.incidents(trials),
        "The fleet": _fleet(trials),
        "Settings": sections.settings(run),
        "How to repeat it": sections.repeat(run),
    }
    return Page(
        name=f"{summary.scenario} {run.path.name}",
        heading=summary.question or summary.scenario,
        status=Span(summary.badge, tone_of(summary.exit_code, summary.result, summary.conditions)),
        lead=[
            Paragraph(Span(answer, "strong")),
            *map(Paragraph, others),
            Paragraph(summary.text if summary.exit_code else ""),
            Notes(shaded(warnings, "unknown")),
            legend(" · ".join(filter(None, _facts(run)))),
            *map(legend, _disturbances(trials)),
            Figures([charts[name] for name in lead]),
            legend(MARKS if any(trial.series.faults for trial in trials) else ""),
        ],
        parts=[Section(title, list(found)) for title, found in parts.items()],
    )


def _facts(run: Run) -> Iterator[str]:
    """How and when the run was made, and what an update of each trial stands for where they differ."""
    summary = run.summary
    yield "" if summary.exit_code else summary.text.rstrip(".")
    yield "simulation, in virtual time" if is_virtual(summary.runtime) else f"{summary.runtime} runtime"
    yield f"seed {summary.seed}"
    yield utc_text(str(run.manifest.get("started", "")))
    yield updates_text(_examples_per_update(list(run.trials.values()))).rstrip(".")


def _disturbances(trials: Sequence[Trial]) -> Iterator[str]:
    """What was done to the nodes of each trial, and what became of the updates."""
    for trial in trials:
        if told := faults_line(trial.summary, trial.series.faults):
            yield ". ".join(filter(None, (f"{trial.name}: {told}", accounting_line(trial.summary))))


def _expectations(trials: Sequence[TrialSummary]) -> Iterator[Part]:
    rows = []
    for trial in trials:
        for each in trial.expectations:
            measured, bound = compared_texts(each.measure, each.measured, each.bound, trial.measures)
            met = met_cell(each, ran_to_end=trial.ran_to_end)
            sign = SIGNS.get(each.comparison, each.comparison)
            rows.append((trial.trial, measure_of(each.measure, trial.measures).title, f"{sign} {bound}", measured, met))
    yield Grid(EXPECTATION_HEAD, rows)


def met_cell(expectation: Expectation, *, ran_to_end: bool) -> Span:
    """Whether the expectation is met, where that is judged."""
    if expectation.met is None:
        return Span("not judged in a simulation", "quiet")
    if not ran_to_end:
        return Span("not measured" if expectation.measured is None else "not judged", "quiet")
    return Span("met", "good") if expectation.met else Span("not met", "bad")


def _deaths(run: Run) -> Iterator[Part]:
    """The end of the log of each node that died unasked, which says why more often than not."""
    dead = {
        (trial.name, node.name): trial.folder.log(node.name)
        for trial in run.trials.values()
        for node in unasked_losses(trial.series.nodes, trial.series.faults)
        if node.state == "died"
    }
    for (trial, node), log in list(dead.items())[:LOGS_MAX]:
        lines = last_lines(log, LOG_LINES)
        command = shlex.join(("edgebed", "logs", f"{run.scenario}/{run.path.name}", node, "--trial", trial))
        where = Paragraph(("See ", Span(command, "code"), "."))
        yield Section(f"{trial}: {node}", [Listing(lines) if lines else Paragraph("Its log is empty."), where])
    if len(dead) > LOGS_MAX:
        yield Paragraph(f"{count_text(len(dead) - LOGS_MAX, 'more node')} died.")


def _examples_per_update(trials: Sequence[Trial]) -> dict[str, float | None]:
    return {trial.name: trial.summary.examples_per_update for trial in trials}


def _of_nodes(trial: Trial) -> tuple[Chart, ...]:
    """Charts of when each node was there, and of measured rates against those asked."""
    fidelity = trial.summary.fidelity
    nodes = fidelity.nodes if fidelity else ()
    return trial_charts.timeline(trial.name, trial.plan, trial.series), trial_charts.links(trial.name, nodes)


def _busy(trials: Sequence[Trial]) -> Iterator[Part]:
    """What a step of shards is made of."""
    yield legend(BUSY_LEGEND)
    yield Figures([busy_chart(trial) for trial in trials])


def _shard_phases(trials: Sequence[TrialSummary]) -> Iterator[Part]:
    yield legend("Shares of each shard's time, from its first step to its last.")
    yield Grid(PHASE_HEAD, phase_rows(trials)).without_empty_columns()


def _phases(trials: Sequence[Trial]) -> Iterator[Part]:
    rows = [
        (trial.name, worker, f"{phases.steps:,}", *_milliseconds(_spent([phases]).values(), phases.steps))
        for trial in trials
        for worker, phases in sorted(trial.series.server.phases.items())
        if phases.steps
    ]
    yield legend("Mean of all workers' steps, as the workers last reported.")
    for trial in trials:
        lives = list(trial.series.server.phases.values())
        if steps := sum(phases.steps for phases in lives):
            spent = _spent(lives)
            names = map(" ".join, zip(spent, _milliseconds(spent.values(), steps), strict=True))
            yield Section(trial.name, [Bars(dict(zip(names, spent.values(), strict=True)))])
    yield Section("Each worker", [Grid(STEP_HEAD, rows)], is_folded=True)


def _spent(lives: Collection[Phases]) -> dict[str, float]:
    """Seconds of all steps of some workers, by what they were spent on."""
    return {
        "gradient": sum(phases.compute_s for phases in lives),
        "encoding": sum(phases.encode_s for phases in lives),
        "waiting for the server": sum(phases.wait_s for phases in lives),
        "emulated pause": sum(phases.pause_s for phases in lives),
    }


def _milliseconds(spent: Collection[float], steps: int) -> tuple[str, ...]:
    return tuple(f"{1000 * value / steps:.2f} ms" for value in spent)


def _bytes(trials: Sequence[TrialSummary]) -> Iterator[Part]:
    """What the bytes were, with those at the interface and by the method's own count."""
    found = {trial.trial: kinds for trial in trials if (kinds := bytes_by_kind(trial))}
    if not found:
        return
    yield legend("Payload of all messages over the data network, each counted once.")
    if lacking := [trial.trial for trial in trials if lacks_messages(trial)]:
        yield legend(
            f"Of {', '.join(lacking)} some are missing: those that a server which was killed had not reported."
        )
    for trial, kinds in found.items():
        total = sum(kinds.values())
        shares = {f"{kind} {bytes_text(size)} ({100 * size / total:.1f} %)": size for kind, size in kinds.items()}
        yield Section(f"{trial}: {bytes_text(total)}", [Bars(shares)])
    yield Grid(("at the server", *(trial.trial for trial in trials)), byte_rows(trials))


def _exchanged(trials: Sequence[TrialSummary]) -> Iterator[Part]:
    """What shards sent each other; nothing where each worker had the whole model."""
    if rows := exchange_rows(trials):
        yield Grid(("", *(trial.trial for trial in trials)), rows)
        yield Section("Each pair", [Grid(PAIR_HEAD, pair_rows(trials))], is_folded=True)


def _accounting(trials: Sequence[Trial]) -> Iterator[Part]:
    if not trials:
        return
    rows: list[tuple[str, ...]] = []
    summaries = [trial.summary for trial in trials]
    updates = [trial.series.accounting if trial.summary.server else None for trial in trials]
    steps = [trial.series.accounting if trial.summary.shards else None for trial in trials]
    if any(summary.server for summary in summaries):
        rows += accounting_rows(updates, UPDATES) if any(updates) else _numbered_rows(summaries)
    if any(steps):
        rows += accounting_rows(steps, STEPS)
    rows += shard_rows(summaries)
    for code in sorted({code for summary in summaries for code in summary.refused_by_code}):
        rows.append((f"messages refused: {code}", *(f"{each.refused_by_code.get(code, 0):,}" for each in summaries)))
    rows.append(("messages that could not be read", *(f"{summary.dropped:,}" for summary in summaries)))
    yield legend(accounting_legend(updates, UPDATES))
    yield legend(accounting_legend(steps, STEPS))
    yield Grid(("", *(trial.name for trial in trials)), rows)


def _numbered_rows(summaries: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows on the updates where no worker reported its own count."""
    pushes = [summary.server.pushes if summary.server else 0 for summary in summaries]
    others = [count - summary.updates for count, summary in zip(pushes, summaries, strict=True)]
    return [
        ("pushes the workers numbered, up to the last applied", *(f"{count:,}" for count in pushes)),
        ("= applied", *(f"{summary.updates:,}" for summary in summaries)),
        ("+ refused or lost", *(f"{count:,}" for count in others)),
    ]


def _fleet(trials: Sequence[Trial]) -> Iterator[Part]:
    """The nodes, and each worker's contribution: a table for the trials whose nodes are alike."""
    alike: dict[tuple[tuple[str, ...], ...], list[Trial]] = {}
    for trial in trials:
        alike.setdefault(tuple(map(_node_cells, trial.plan.nodes)), []).append(trial)
    for nodes, group in alike.items():
        counts = [_update_cells(trial) for trial in group]
        rows = [(*cells, *(of_trial[cells[0]] for of_trial in counts)) for cells in nodes]
        head = ("node", "CPU cap", "memory cap", "speed", "examples", *(f"updates: {trial.name}" for trial in group))
        table = Section(count_text(len(rows), "node"), [Grid(head, rows)], is_folded=True)
        yield Section(", ".join(trial.name for trial in group), [table]) if len(alike) > 1 else table


def _node_cells(node: TrainingNode) -> tuple[str, ...]:
    """A node's conditions and data, in the order of the table; its name first."""
    memory = UNMEASURED if node.memory_bytes is None else f"{node.memory_bytes / 2**20:,.0f} MiB"
    cpus = UNMEASURED if node.cpus is None else f"{node.cpus:g}"
    return node.node, cpus, memory, speed_text(node), f"{node.num_examples:,}"


def _update_cells(trial: Trial) -> dict[str, str]:
    """Number of applied updates by node; an update of shards is no one node's."""
    applied = trial.series.updates_by_worker
    return {node.node: f"{applied.get(node.node, 0):,}" if node.pushes else UNMEASURED for node in trial.plan.nodes}
