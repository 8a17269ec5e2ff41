"""The report of a run: one HTML file that needs nothing else, for a screen (light or dark) and for paper.

A view of the journals alone, so it can be made again at any time, also for a run that crashed, was interrupted or is
in progress. The order is that of a reader's questions: what was asked, what came of it, how it looks, where the time
went, whether the accounting closes, what was set, how to repeat it. Every text from outside is escaped.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgebed.core.plan import NodePlan
from edgebed.core.quantities import (
    UNMEASURED,
    bytes_text,
    compared_texts,
    count_text,
    number_text,
    percent_text,
    seconds_text,
    updates_text,
    utc_text,
)
from edgebed.core.reading import read_file
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.logs import last_lines
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.outcome import HELD, outcome_text, tone_of
from edgebed.journal.run_folder import write_atomically
from edgebed.journal.series_faults import unasked_losses
from edgebed.journal.summary import Expectation, RunSummary, TrialSummary
from edgebed.reports.run import trial_charts
from edgebed.reports.run.charts import charts_of
from edgebed.reports.run.conditions_text import (
    CLASS_HEAD,
    HOST_HEAD,
    NODE_HEAD,
    class_rows,
    host_row,
    node_row,
    remarks_of,
)
from edgebed.reports.run.faults_text import (
    FAULT_HEAD,
    FAULT_LEGEND,
    STEPS,
    UPDATES,
    accounting_legend,
    accounting_rows,
    fault_rows,
)
from edgebed.reports.run.shards_text import PAIR_HEAD, PHASE_HEAD, exchange_rows, pair_rows, phase_rows, shard_rows
from edgebed.reports.run.traffic_text import byte_rows, bytes_by_kind, ingress_interface_text, measured_rows
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.html import Raw, bars, definitions, details, escape, figures, items, page, section, table
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
Row = tuple[str, Callable[[TrialSummary], str]]
"""Name of a row, and a function from a summary to its text."""
TRIAL_ROWS: tuple[Row, ...] = (
    ("outcome", outcome_text),
    ("method", lambda trial: trial.method),
    ("final accuracy", lambda trial: percent_text(trial.final_accuracy)),
    ("best accuracy", lambda trial: percent_text(trial.best_accuracy)),
    ("final loss", lambda trial: number_text(trial.final_loss)),
    ("updates", lambda trial: number_text(trial.updates)),
    ("time to the last update", lambda trial: seconds_text(trial.time_s)),
    ("updates a second", lambda trial: number_text(trial.updates_per_s)),
)
"""The first lines of the table of trials."""
PUSH_ROWS: tuple[Row, ...] = (
    ("up: payload of the pushes", lambda trial: bytes_text(trial.ingress_bytes)),
    ("down: payload of the models sent", lambda trial: bytes_text(trial.egress_bytes)),
    ("up and down", lambda trial: bytes_text(trial.traffic_bytes)),
    ("up: at the server's interface", ingress_interface_text),
    ("a push, mean", lambda trial: bytes_text(trial.push_bytes_mean)),
    ("entries in a push, mean", lambda trial: number_text(trial.entries_mean)),
    ("staleness: mean, median", lambda t: f"{number_text(t.staleness_mean)}, {number_text(t.staleness_median)}"),
    ("staleness: 90 %, maximum", lambda t: f"{number_text(t.staleness_p90)}, {number_text(t.staleness_max)}"),
    ("updates of a worker: least, most", lambda t: f"{t.worker_updates_min:,}, {t.worker_updates_max:,}"),
)
"""Rows for workers that push updates, after the updates a second."""
SHARD_ROWS: tuple[Row, ...] = (
    ("steps a second of the slowest shard", lambda trial: number_text(trial.steps_per_s)),
    ("exchanged: payload of all messages", lambda trial: bytes_text(trial.exchanged_bytes)),
    ("messages a step", lambda trial: number_text(trial.messages_per_step)),
)
"""Rows for shards, after the updates a second."""
NODE_ROWS: tuple[Row, ...] = (
    ("nodes joined of expected", lambda trial: f"{trial.nodes_joined} of {trial.nodes_expected}"),
    ("all nodes started, joined: after launch", lambda trial: _start_up(trial, "started_s", "joined_s")),
    ("training, update of every worker: after launch", lambda trial: _start_up(trial, "training_s", "contributed_s")),
    ("nodes died, missing", lambda trial: f"{trial.nodes_died}, {trial.nodes_missing}"),
)
"""The last rows of the table of trials."""


def _start_up(trial: TrialSummary, *phases: str) -> str:
    start_up = trial.start_up
    return ", ".join(seconds_text(getattr(start_up, phase)) for phase in phases) if start_up else UNMEASURED


def write_report(run: Run) -> None:
    """Write `report.html` into the run's folder; InfrastructureError if that is impossible."""
    write_atomically(run.folder.report, render(run).encode())


def charts_of_run(run: Run) -> tuple[Chart, ...]:
    """All charts of a run's report."""
    trials = list(run.trials.values())
    return (*_comparing(trials), *(chart for trial in trials for chart in _of_nodes(trial)))


def render(run: Run) -> str:
    """The report as one HTML document."""
    summary, trials = run.summary, list(run.trials.values())
    title = f"{summary.scenario} {run.path.name}"
    tone = tone_of(summary.exit_code, summary.result, summary.conditions)
    facts = (f"{summary.runtime} runtime", f"seed {summary.seed}", utc_text(str(run.manifest.get("started", ""))))
    header = (
        f"<header><p class=name>{escape(title)}</p>"
        f"<h1>{escape(summary.question or summary.scenario)}</h1>"
        f"<p class='badge {tone}'>{escape(summary.badge)}</p><p>{escape(summary.text)}</p>"
        f"<p class=quiet>{escape(' · '.join(filter(None, facts)))}</p>{_warnings(summary.trials)}</header>"
    )
    parts = [
        _expectations(summary.trials),
        _trials(summary),
        _conditions(summary.trials),
        _deaths(run),
        _charts(trials),
        _nodes(trials),
        _faults(trials),
        _phases(trials),
        _bytes(summary.trials),
        _exchanged(summary.trials),
        _accounting(trials),
        _incidents(trials),
        _fleet(trials),
        _settings(run),
        _repeat(run),
    ]
    return page(title, header + "".join(parts))


def _expectations(trials: Sequence[TrialSummary]) -> str:
    rows = []
    for trial in trials:
        for each in trial.expectations:
            measured, bound = compared_texts(each.measure, each.measured, each.bound)
            met = Raw(_met_cell(each, ran_to_end=trial.ran_to_end))
            rows.append((trial.trial, each.measure, f"{each.comparison} {bound}", measured, met))
    return section("Expectations", table(("trial", "measure", "expected", "measured", "met?"), rows)) if rows else ""


def _met_cell(expectation: Expectation, *, ran_to_end: bool) -> str:
    """Whether the expectation is met, where that is judged."""
    if ran_to_end and expectation.met is not None:
        return "<span class=good>met</span>" if expectation.met else "<span class=bad>not met</span>"
    text = "not measured" if expectation.measured is None else "not judged"
    return f"<span class=quiet>{'not judged in a simulation' if expectation.met is None else text}</span>"


def _warnings(trials: Sequence[TrialSummary]) -> str:
    lines = [f"{trial.trial}: {warning}" for trial in trials for warning in trial.warnings]
    return items(lines, "unknown")


def _trials(summary: RunSummary) -> str:
    """A column for each trial that began, and the names of the others."""
    pushes = any(not trial.is_layerwise for trial in summary.trials)
    shards = any(trial.is_layerwise for trial in summary.trials)
    own = (*(PUSH_ROWS if pushes else ()), *(SHARD_ROWS if shards else ()))
    first, between, last = (
        [(label, *(value(trial) for trial in summary.trials)) for label, value in lines]
        for lines in (TRIAL_ROWS, own, NODE_ROWS)
    )
    rows = [*first, *measured_rows(between), *last]
    body = table(("", *(trial.trial for trial in summary.trials)), rows) if summary.trials else ""
    if summary.not_begun:
        body += f"<p>{escape(', '.join(summary.not_begun))} did not begin.</p>"
    return section("Trials", body or "<p>No trial has begun.</p>")


def _conditions(trials: Sequence[TrialSummary]) -> str:
    """The verdict on each trial, with what it rests on."""
    parts = []
    for trial in trials:
        if fidelity := trial.fidelity:
            status = {**dict.fromkeys(HELD, "good"), "degraded": "bad"}.get(fidelity.verdict, "unknown")
            lines = (f"<li class={status}>{escape(line)}</li>" for line in fidelity.lines)
            remarks = (f"<li class=quiet>{escape(remark)}</li>" for remark in remarks_of(trial))
            parts.append(f"<h3>{escape(trial.trial)}</h3><ul>{''.join((*lines, *remarks))}</ul>")
            parts.append(table(CLASS_HEAD, list(class_rows(fidelity.nodes))))
            if fidelity.host:
                parts.append(table(HOST_HEAD, [host_row(fidelity.host)]))
            rows = [node_row(node) for node in fidelity.nodes]
            parts.append(details("Each node", table(NODE_HEAD, rows)))
    return section("Did the conditions hold?", "".join(parts)) if parts else ""


def _deaths(run: Run) -> str:
    """The end of the log of each node that died unasked, which says why more often than not."""
    dead = {
        (trial.name, node.name): trial.folder.log(node.name)
        for trial in run.trials.values()
        for node in unasked_losses(trial.series.nodes, trial.series.faults)
        if node.state == "died"
    }
    parts = []
    for (trial, node), log in list(dead.items())[:LOGS_MAX]:
        lines = last_lines(log, LOG_LINES)
        command = shlex.join(("edgebed", "logs", f"{run.scenario}/{run.path.name}", node, "--trial", trial))
        text = f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else "<p>Its log is empty.</p>"
        where = f"<p class=quiet>See <code>{escape(command)}</code>.</p>"
        parts.append(f"<h3>{escape(f'{trial}: {node}')}</h3>{text}{where}")
    if len(dead) > LOGS_MAX:
        parts.append(f"<p>{count_text(len(dead) - LOGS_MAX, 'more node')} died.</p>")
    return section("Ends of the logs of nodes that died", "".join(parts)) if parts else ""


def _comparing(trials: Sequence[Trial]) -> tuple[Chart, ...]:
    """Charts in which all trials are drawn."""
    return charts_of({trial.name: trial.series for trial in trials}, _examples_per_update(trials))


def _examples_per_update(trials: Sequence[Trial]) -> dict[str, float | None]:
    return {trial.name: trial.summary.examples_per_update for trial in trials}


def _of_nodes(trial: Trial) -> tuple[Chart, ...]:
    """Charts of when each node was there, and of measured rates against those asked."""
    fidelity = trial.summary.fidelity
    nodes = fidelity.nodes if fidelity else ()
    return trial_charts.timeline(trial.name, trial.plan, trial.series), trial_charts.links(trial.name, nodes)


def _charts(trials: Sequence[Trial]) -> str:
    shown = figures(_comparing(trials))
    is_marked = any(trial.series.faults for trial in trials)
    sentences = (
        updates_text(_examples_per_update(trials)),
        "Dotted lines, or ticks above a chart, mark faults and actions by hand." if is_marked else "",
    )
    legend = "".join(f"<p class=quiet>{escape(sentence)}</p>" for sentence in sentences if sentence)
    return section("Charts", legend + shown) if shown else ""


def _nodes(trials: Sequence[Trial]) -> str:
    shown = figures(chart for trial in trials for chart in _of_nodes(trial))
    return section("Nodes over time", shown) if shown else ""


def _phases(trials: Sequence[Trial]) -> str:
    rows, parts = [], []
    for trial in trials:
        for worker, phases in sorted(trial.series.phases.items()):
            if phases.steps:
                spent = (phases.compute_s, phases.encode_s, phases.wait_s, phases.pause_s)
                rows.append((trial.name, worker, f"{phases.steps:,}", *_milliseconds(spent, phases.steps)))
        lives = trial.series.phases.values()
        steps = sum(phases.steps for phases in lives)
        if steps:
            totals = {
                "gradient": sum(phases.compute_s for phases in lives),
                "encoding": sum(phases.encode_s for phases in lives),
                "waiting for the server": sum(phases.wait_s for phases in lives),
                "emulated pause": sum(phases.pause_s for phases in lives),
            }
            each = {f"{name} {1000 * spent / steps:.2f} ms": spent for name, spent in totals.items()}
            parts.append(f"<h3>{escape(trial.name)}</h3>{bars(each)}")
    whole = ""
    if shards := phase_rows([trial.summary for trial in trials]):
        text = "<p class=quiet>Shares of each shard's time, from its first step to its last.</p>"
        whole = section("Where the time went", text + table(PHASE_HEAD, shards))
    if not parts:
        return whole
    head = ("trial", "worker", "steps", "gradient", "encoding", "waiting", "pause")
    text = "<p class=quiet>Mean of all workers' steps, as the workers last reported.</p>"
    return whole + section(
        "Where a step's time went", text + "".join(parts) + details("Each worker", table(head, rows))
    )


def _milliseconds(spent: Sequence[float], steps: int) -> tuple[str, ...]:
    return tuple(f"{1000 * value / steps:.2f} ms" for value in spent)


def _bytes(trials: Sequence[TrialSummary]) -> str:
    """A section on what the bytes were, with those at the interface and by the method's own count."""
    parts = []
    for trial in trials:
        if kinds := bytes_by_kind(trial):
            total = sum(kinds.values())
            shares = {f"{kind} {bytes_text(size)} ({100 * size / total:.1f} %)": size for kind, size in kinds.items()}
            parts.append(f"<h3>{escape(trial.trial)}: {bytes_text(total)}</h3>{bars(shares)}")
    if not parts:
        return ""
    text = "<p class=quiet>Payload of all messages over the data network, each counted once.</p>"
    rows = table(("at the server", *(trial.trial for trial in trials)), byte_rows(trials))
    return section("Bytes by kind", text + "".join(parts) + rows)


def _exchanged(trials: Sequence[TrialSummary]) -> str:
    """A section on what shards sent each other; nothing where each worker had the whole model."""
    rows = exchange_rows(trials)
    if not rows:
        return ""
    shown = table(("", *(trial.trial for trial in trials)), rows)
    return section("What a step's messages are", shown + details("Each pair", table(PAIR_HEAD, pair_rows(trials))))


def _accounting(trials: Sequence[Trial]) -> str:
    if not trials:
        return ""
    rows: list[tuple[str, ...]] = []
    columns = [(trial.summary, trial.series) for trial in trials]
    updates, steps = ([_of_kind(trial, is_layerwise) for trial in trials] for is_layerwise in (False, True))
    pushes = not all(summary.is_layerwise for summary, _ in columns)
    if pushes:
        rows += (
            accounting_rows(updates, UPDATES) if any(updates) else _numbered_rows([summary for summary, _ in columns])
        )
    if any(steps):
        rows += accounting_rows(steps, STEPS)
    rows += shard_rows([summary for summary, _ in columns])
    for code in sorted({code for summary, _ in columns for code in summary.refused_by_code}):
        counts = (f"{summary.refused_by_code.get(code, 0):,}" for summary, _ in columns)
        rows.append((f"messages refused: {code}", *counts))
    rows.append(("messages that could not be read", *(f"{summary.dropped:,}" for summary, _ in columns)))
    shown = table(("", *(trial.name for trial in trials)), rows)
    legends = filter(None, (accounting_legend(updates, UPDATES), accounting_legend(steps, STEPS)))
    return section(
        "Does the accounting close?", "".join(f"<p class=quiet>{escape(each)}</p>" for each in legends) + shown
    )


def _of_kind(trial: Trial, is_layerwise: bool) -> Accounting | None:
    """A trial's accounting, if it is of that kind of training."""
    return trial.series.accounting if trial.summary.is_layerwise == is_layerwise else None


def _numbered_rows(summaries: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows on the updates as far as an old journal has them."""
    return [
        ("pushes the workers numbered, up to the last applied", *(f"{summary.pushes:,}" for summary in summaries)),
        ("= applied", *(f"{summary.updates:,}" for summary in summaries)),
        ("+ refused or lost", *(f"{summary.pushes - summary.updates:,}" for summary in summaries)),
    ]


def _faults(trials: Sequence[Trial]) -> str:
    """A section on what was done to nodes, and how long until they were back."""
    parts = []
    for trial in trials:
        missed = missed_faults(trial.plan, trial.series)
        if rows := list(fault_rows(trial.series.faults, missed)):
            shown = table(FAULT_HEAD, rows[:FAULT_ROWS_LISTED])
            more = len(rows) - FAULT_ROWS_LISTED
            shown += f"<p>{more:,} more in the journal: edgebed events --kind fault.</p>" if more > 0 else ""
            count = len(trial.series.faults) + len(missed)
            parts.append(f"<h3>{escape(trial.name)}</h3>")
            parts.append(shown if len(rows) <= FAULT_ROWS_MAX else details(count_text(count, "action"), shown))
    legend = f"<p class=quiet>{escape(FAULT_LEGEND)}</p>"
    return section("What was done to the nodes", legend + "".join(parts)) if parts else ""


def _incidents(trials: Sequence[Trial]) -> str:
    rows = []
    for trial in trials:
        for t, node in trial.series.nodes:
            if node.state in TROUBLE_STATES:
                rows.append((trial.name, seconds_text(t), node.name, f"{node.state}: {node.reason}".rstrip(": ")))
        rows += [(trial.name, seconds_text(t), node, text) for t, node, text in trial.series.notes]
        if trial.series.cut:
            rows.append(
                (
                    trial.name,
                    seconds_text(trial.series.last_t),
                    "",
                    "the journal's last line is cut: its writer was killed",
                )
            )
    if not rows:
        return ""
    rest = f"<p>{len(rows) - LISTED_MAX} more in the journal.</p>" if len(rows) > LISTED_MAX else ""
    told = {row[0] for row in rows[:LISTED_MAX]}
    legend = f"<p class=quiet>{escape(_times_text([trial for trial in trials if trial.name in told]))}</p>"
    shown = table(("trial", "time", "node", "event"), rows[:LISTED_MAX])
    return section("Events", legend + shown + rest)


def _times_text(trials: Sequence[Trial]) -> str:
    """A sentence on what the times of these trials, of which there is one at least, count from."""
    others = ", ".join(trial.name for trial in trials if trial.series.training_s is None)
    since_launch = f"Training of {others} has not begun; there, times count from the launch." if others else ""
    if all(trial.series.training_s is None for trial in trials):
        return since_launch
    return f"Times count from the start of training; what came before it is negative. {since_launch}".rstrip()


def _fleet(trials: Sequence[Trial]) -> str:
    """The nodes, and each worker's contribution: a table for the trials whose nodes are alike."""
    alike: dict[tuple[tuple[str, ...], ...], list[Trial]] = {}
    for trial in trials:
        alike.setdefault(tuple(map(_node_cells, trial.plan.nodes)), []).append(trial)
    parts = []
    for nodes, group in alike.items():
        counts = [_update_cells(trial) for trial in group]
        rows = [(*cells, *(of_trial[cells[0]] for of_trial in counts)) for cells in nodes]
        head = ("node", "CPU cap", "memory cap", "speed", "examples", *(f"updates: {trial.name}" for trial in group))
        names = f"<h3>{escape(', '.join(trial.name for trial in group))}</h3>" if len(alike) > 1 else ""
        parts.append(names + details(count_text(len(rows), "node"), table(head, rows)))
    return section("The fleet", "".join(parts)) if parts else ""


def _node_cells(node: NodePlan) -> tuple[str, ...]:
    """A node's conditions and data, in the order of the table; its name first."""
    memory = UNMEASURED if node.memory_bytes is None else f"{node.memory_bytes / 2**20:,.0f} MiB"
    cpus = UNMEASURED if node.cpus is None else f"{node.cpus:g}"
    return node.node, cpus, memory, f"{node.compute_speed:g}", f"{node.num_examples:,}"


def _update_cells(trial: Trial) -> dict[str, str]:
    """Number of applied updates by node; an update of shards is no one node's."""
    applied = trial.series.updates_by_worker
    return {
        node.node: f"{applied.get(node.node, 0):,}" if node.role == "worker" and node.shard is None else UNMEASURED
        for node in trial.plan.nodes
    }


def _settings(run: Run) -> str:
    try:
        text = read_file(run.folder.scenario).decode(errors="replace")
    except OSError:
        return ""
    return section("Settings", details("The scenario as resolved", f"<pre>{escape(text)}</pre>"))


def _repeat(run: Run) -> str:
    manifest = run.manifest
    file = manifest.get("scenario_file")
    if file is None:
        how = "<p>Run from Python; the resolved scenario is scenario.yaml in the run's folder.</p>"
    else:
        command = shlex.join(("edgebed", "run", str(file), "--runtime", run.summary.runtime, *_options(manifest)))
        how = f"<pre>{escape(command)}</pre>"
    versions = {str(name): str(value) for name, value in manifest.get("versions", {}).items()}
    host = dict(manifest.get("host", {}))
    if "memory_bytes" in host:
        host["memory"] = bytes_text(host.pop("memory_bytes"))
    data = "; ".join(f"{name}: {note}" for name, note in manifest.get("data", {}).items())
    facts = {"data": data, "commit": manifest.get("commit"), "folder": manifest.get("folder"), **versions, **host}
    shown = {name: str(value) for name, value in facts.items() if value}
    return section("How to repeat it", how + definitions(shown))


def _options(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Options of `edgebed run` that the run was begun with, as far as its results depend on them."""
    options = manifest.get("options", {})
    if (emulation := options.get("emulation", "auto")) != "auto":
        yield from ("--emulation", str(emulation))
    for option, key in (("--set", "sets"), ("--variant", "variants")):
        for each in manifest.get(key, ()):
            yield from (option, str(each))
    yield from (f"--{flag}" for flag in ("force", "trace") if options.get(flag))
