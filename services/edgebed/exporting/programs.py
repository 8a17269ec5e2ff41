"""The tables that runs of a user's programs have beside those of nodes, faults, links and hosts."""

from collections.abc import Sequence

from edgebed.core.measures.trial import program_measures
from edgebed.exporting.table import Column, ExportTable, Filled, by_rows, joined
from edgebed.running.results import ProgramTrial, Run

TIME = Column("time_s", "number", "Seconds since all programs were ready.")


def _trial(run: Run, trial: ProgramTrial) -> Filled:
    summary = trial.summary
    verdict = summary.fidelity.verdict if summary.fidelity else None
    facts = (
        run.summary.runtime, trial.plan.seed, verdict, summary.met, joined(summary.warnings), summary.outcome,
        summary.reason,
    )  # fmt: skip
    return [(value,) for value in (*facts, *map(summary.value, program_measures(told_by(run))))]


def _measures(_: Run, trial: ProgramTrial) -> Filled:
    rows = (
        (t, node, name, value)
        for name, nodes in trial.series.programs.measured.items()
        for node, told in nodes.items()
        for t, value in zip(told.t.tolist(), told.value.tolist(), strict=True)
    )
    return by_rows(rows, len(MEASURES.columns))


def _exits(_: Run, trial: ProgramTrial) -> Filled:
    rows = (
        (t, each.name, each.incarnation, each.code, each.signal, each.text) for t, each in trial.series.programs.exits
    )
    return by_rows(rows, len(EXITS.columns))


def _connections(_: Run, trial: ProgramTrial) -> Filled:
    rows = (
        (node, peer, seen.acked_bytes, seen.count, seen.round_trip_s)
        for (node, peer), seen in sorted(trial.series.programs.connections.items())
    )
    return by_rows(rows, len(CONNECTIONS.columns))


def told_by(run: Run) -> Sequence[str]:
    """The names of what the run's programs tell."""
    return list(dict.fromkeys(name for trial in run.programs.values() for name in trial.summary.measures))


def trials_table(run: Run) -> ExportTable:
    """The table of trials of this run's programs."""
    return ExportTable(
        "trials",
        "A row a trial.",
        (
            Column("runtime", "text", "docker or process."),
            Column("seed", "integer", "What all chance of the trial comes from."),
            Column("verdict", "text", "Whether what was asked held: trusted, degraded or unknown."),
            Column("met", "yes or no", "It completed, and all its expectations are met."),
            Column("warnings", "text", "What a reader must know before trusting the numbers."),
            Column("outcome", "text", ""),
            Column("reason", "text", ""),
            *(
                Column(name, "integer" if each.is_whole else "number", "")
                for name, each in program_measures(told_by(run)).items()
            ),
        ),
        _trial,
    )


MEASURES = ExportTable(
    "measures",
    "A user's programs: a row a number that one told (`program.measures`).",
    (
        TIME,
        Column("node", "text", "Who told it."),
        Column("measure", "text", "Its name."),
        Column("value", "number", "In whatever unit the program tells it."),
    ),
    _measures,
)
EXITS = ExportTable(
    "exits",
    "A user's programs: a row an end of one.",
    (
        TIME,
        Column("node", "text", "Whose program it was."),
        Column("incarnation", "integer", "Its life, from 1."),
        Column("code", "integer", "Exit code; empty: a signal ended it."),
        Column("signal", "text", "The signal that ended it."),
        Column("reason", "text", "How it ended, in words."),
    ),
    _exits,
)
CONNECTIONS = ExportTable(
    "connections",
    "A user's programs: a row a node and another one that it sent to over TCP.",
    (
        Column("source", "text", "The sender."),
        Column("target", "text", "Whom it sent to."),
        Column("acked_bytes", "integer", "Bytes that were acknowledged, by the sender's own account."),
        Column("connections", "integer", "Connections."),
        Column("round_trip_s", "number", "The smallest round trip."),
    ),
    _connections,
)
TABLES = (MEASURES, EXITS, CONNECTIONS)
