"""The report of a run: one HTML file that needs nothing else, for a screen (light or dark) and for paper.

A view of the journals alone, so it can be made again at any time, also for a run that crashed, was interrupted or is
in progress. The order is that of a reader's questions: what was asked, what came of it, how it looks, where the time
went, whether the accounting closes, what was set, how to repeat it. Every text from outside is escaped.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgebed.core.measures.trial import compared_texts, measure_of
from edgebed.core.plan import TrainingNode
from edgebed.core.quantities import (
    UNMEASURED,
    bytes_text,
    count_text,
    seconds_text,
    updates_text,
    utc_text,
)
from edgebed.core.reading import read_file
from edgebed.core.records import Phases
from edgebed.core.runtimes import is_virtual
from edgebed.journal.logs import last_lines
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.outcome import tone_of
from edgebed.journal.run_folder import write_atomically
from edgebed.journal.series_faults import unasked_losses
from edgebed.journal.summary import Expectation, TrialSummary
from edgebed.planning.virtual_time import speed_text
from edgebed.reports.run import trial_charts
from edgebed.reports.run.answer import answer_lines
from edgebed.reports.run.charts import charts_of
from edgebed.reports.run.clients_text import client_parts
from edgebed.reports.run.conditions_text import condition_parts, remarks_of
from edgebed.reports.run.faults_text import (
    FAULT_HEAD,
    FAULT_LEGEND,
    STEPS,
    UPDATES,
    accounting_legend,
    accounting_line,
    accounting_rows,
    fault_rows,
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
    Facts,
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Section,
    Shade,
    Span,
    legend,
    shaded,
)
from edgebed.running.results import Run, Trial

TROUBLE_STATES = frozenset({"died", "missing", "unresponsive"})
FAULT_ROWS_MAX = 12
"""Rows of the table of faults that are shown at once; more are folded."""
FAULT_ROWS_LISTED = 1_000
"""Rows of the table of faults in all; a day of churn has a hundred times as many, and the journal has them all."""
LISTED_MAX = 50
"""Rows of a table of incidents; the journal has the rest."""
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
    summary, trials = run.summary, list(run.trials.values())
    warnings = [f"{trial.trial}: {warning}" for trial in summary.trials for warning in trial.warnings]
    not_begun = f"{', '.join(summary.not_begun)} did not begin." if summary.not_begun else ""
    none = "" if summary.trials or not_begun else "No trial has begun."
    series = {trial.name: trial.series for trial in trials}
    charts = charts_of(series, _examples_per_update(trials), most_frequent_of(summary.trials))
    lead = () if any(trial.shards for trial in summary.trials) else LEAD
    answer, *others = answer_lines(trials) or ("",)
    sections: Mapping[str, Iterator[Part]] = {
        "What holds a step up": _busy(trials),
        "Expectations": _expectations(summary.trials),
        "Ends of the logs of nodes that died": _deaths(run),
        "Charts": iter([Figures([chart for name, chart in charts.items() if name not in lead])]),
        "Trials": iter((measures_grid(summary), Paragraph(not_begun or none))),
        "Client by client": client_parts(trials),
        "Nodes over time": iter([Figures([chart for trial in trials for chart in _of_nodes(trial)])]),
        "What was done to the nodes": _faults(trials),
        "Did the conditions hold?": _conditions(summary.trials),
        "Where a shard's time went": _shard_phases(summary.trials),
        "Where a step's time went": _phases(trials),
        "Bytes by kind": _bytes(summary.trials),
        "What a step's messages are": _exchanged(summary.trials),
        "Does the accounting close?": _accounting(trials),
        "Events": _incidents(trials),
        "The fleet": _fleet(trials),
        "Settings": _settings(run),
        "How to repeat it": _repeat(run),
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
        parts=[Section(title, list(parts)) for title, parts in sections.items()],
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


def _conditions(trials: Sequence[TrialSummary]) -> Iterator[Part]:
    """The verdict on each trial, with what it rests on; once for trials of which all of it is the same."""
    shades: Mapping[str, Shade | None] = {"trusted": "good", "modelled": None, "degraded": "bad"}
    alike: list[tuple[list[str], list[Part]]] = []
    for trial in trials:
        if fidelity := trial.fidelity:
            shade = shades.get(fidelity.verdict, "unknown")
            lines = shaded(fidelity.lines, shade) if shade else fidelity.lines
            parts = [Notes((*lines, *shaded(remarks_of(trial), "quiet"))), *condition_parts(fidelity)]
            names = next((names for names, same in alike if same == parts), None)
            if names is None:
                alike.append(([trial.trial], parts))
            else:
                names.append(trial.trial)
    for names, parts in alike:
        yield Section(", ".join(names), parts)


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


def _faults(trials: Sequence[Trial]) -> Iterator[Part]:
    """What was done to nodes, and how long until they were back."""
    yield legend(FAULT_LEGEND)
    for trial in trials:
        missed = missed_faults(trial.plan, trial.series)
        rows = list(fault_rows(trial.series.faults, missed))
        more = len(rows) - FAULT_ROWS_LISTED
        parts: list[Part] = [Grid(FAULT_HEAD, rows[:FAULT_ROWS_LISTED])]
        parts += [Paragraph(f"{more:,} more in the journal: edgebed events --kind fault.")] if more > 0 else []
        if len(rows) > FAULT_ROWS_MAX:
            count = len(trial.series.faults) + len(missed)
            parts = [Section(count_text(count, "action"), parts, is_folded=True)]
        yield Section(trial.name, parts)


def _incidents(trials: Sequence[Trial]) -> Iterator[Part]:
    found = [(place, each) for place, trial in enumerate(trials) for each in _incidents_of(trial)]
    told = sorted(found[:LISTED_MAX], key=lambda each: (each[0], each[1][0]))
    rows = [(trials[place].name, seconds_text(t), name, text) for place, (t, name, text) in told]
    if rows:
        yield legend(_times_text([trials[place] for place in sorted({place for place, _ in told})]))
        yield Grid(("trial", "time", "node", "event"), rows)
    if len(found) > LISTED_MAX:
        yield Paragraph(f"{len(found) - LISTED_MAX} more in the journal.")


def _incidents_of(trial: Trial) -> Iterator[tuple[float, str, str]]:
    """Time, node and text of each, what went wrong before what was noted."""
    for t, node in trial.series.nodes:
        if node.state in TROUBLE_STATES:
            yield t, node.name, f"{node.state}: {node.reason}".rstrip(": ")
    if trial.series.cut:
        yield trial.series.last_t, "", "the journal's last line is cut: its writer was killed"
    yield from trial.series.notes


def _times_text(trials: Sequence[Trial]) -> str:
    """A sentence on what the times of these trials, of which there is one at least, count from."""
    others = ", ".join(trial.name for trial in trials if trial.series.training_s is None)
    since_launch = f"Training of {others} has not begun; there, times count from the launch." if others else ""
    if all(trial.series.training_s is None for trial in trials):
        return since_launch
    return f"Times count from the start of training; what came before it is negative. {since_launch}".rstrip()


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


def _settings(run: Run) -> Iterator[Part]:
    try:
        text = read_file(run.folder.scenario).decode(errors="replace")
    except OSError:
        return
    yield Section("The scenario as resolved", [Listing(text.splitlines())], is_folded=True)


def _repeat(run: Run) -> Iterator[Part]:
    manifest = run.manifest
    file = manifest.get("scenario_file")
    if file is None:
        yield Paragraph("Run from Python; the resolved scenario is scenario.yaml in the run's folder.")
    else:
        yield Listing(
            [shlex.join(("edgebed", "run", str(file), "--runtime", run.summary.runtime, *_options(manifest)))]
        )
    versions = {str(name): str(value) for name, value in manifest.get("versions", {}).items()}
    host = dict(manifest.get("host", {}))
    if "memory_bytes" in host:
        host["memory"] = bytes_text(host.pop("memory_bytes"))
    data = "; ".join(f"{name}: {note}" for name, note in manifest.get("data", {}).items())
    recordings = "; ".join(map(_recording_text, manifest.get("recordings", ())))
    told = {"data": data, "recordings": recordings, "commit": manifest.get("commit"), "folder": manifest.get("folder")}
    facts = {**told, **versions, **host}
    yield Facts({name: str(value) for name, value in facts.items() if value})


def _recording_text(recording: Mapping[str, str]) -> str:
    """What a manifest has of a recorded file, in one line."""
    about = [recording[word] for word in ("family", "licence", "source") if word in recording]
    told = ", ".join([*about, f"sha256 {recording.get('sha256', '')[:12]}"])
    return f"{Path(recording.get('path', '')).name} ({told})"


def _options(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Options of `edgebed run` that the run was begun with, as far as its results depend on them."""
    options = manifest.get("options", {})
    if (emulation := options.get("emulation", "auto")) != "auto":
        yield from ("--emulation", str(emulation))
    for option, key in (("--set", "sets"), ("--variant", "variants")):
        for each in manifest.get(key, ()):
            yield from (option, str(each))
    yield from (f"--{flag}" for flag in ("force", "trace") if options.get(flag))
