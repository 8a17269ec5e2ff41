"""Sections of a report that trials have whatever their nodes run: conditions, faults, events, settings, repetition."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgebed.core.quantities import bytes_text, count_text, seconds_text
from edgebed.core.reading import read_file
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.outcome import AnySummary
from edgebed.reports.run.conditions_text import condition_parts, remarks_of
from edgebed.reports.run.faults_text import FAULT_HEAD, FAULT_LEGEND, PROGRAM_FAULT_LEGEND, fault_rows
from edgebed.reports.writing.page import Facts, Grid, Listing, Notes, Paragraph, Part, Section, Shade, legend, shaded
from edgebed.running.results import ProgramTrial, Run, Trial

AnyTrial = Trial | ProgramTrial
TROUBLE_STATES = frozenset({"died", "missing", "unresponsive"})
FAULT_ROWS_MAX = 12
"""Rows of the table of faults that are shown at once; more are folded."""
FAULT_ROWS_LISTED = 1_000
"""Rows of the table of faults in all; a day of churn has a hundred times as many, and the journal has them all."""
LISTED_MAX = 50
"""Rows of a table of incidents; the journal has the rest."""


def conditions(trials: Sequence[AnySummary]) -> Iterator[Part]:
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


def faults(trials: Sequence[AnyTrial]) -> Iterator[Part]:
    """What was done to nodes, and how long until they were back."""
    are_programs = any(isinstance(trial, ProgramTrial) for trial in trials)
    yield legend(PROGRAM_FAULT_LEGEND if are_programs else FAULT_LEGEND)
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


def incidents(trials: Sequence[AnyTrial]) -> Iterator[Part]:
    """What went wrong, and what was noted."""
    found = [(place, each) for place, trial in enumerate(trials) for each in _incidents_of(trial)]
    told = sorted(found[:LISTED_MAX], key=lambda each: (each[0], each[1][0]))
    rows = [(trials[place].name, seconds_text(t), name, text) for place, (t, name, text) in told]
    if rows:
        yield legend(_times_text([trials[place] for place in sorted({place for place, _ in told})]))
        yield Grid(("trial", "time", "node", "event"), rows)
    if len(found) > LISTED_MAX:
        yield Paragraph(f"{len(found) - LISTED_MAX} more in the journal.")


def _incidents_of(trial: AnyTrial) -> Iterator[tuple[float, str, str]]:
    """Time, node and text of each, what went wrong before what was noted."""
    for t, node in trial.series.nodes:
        if node.state in TROUBLE_STATES:
            yield t, node.name, f"{node.state}: {node.reason}".rstrip(": ")
    if trial.series.cut:
        yield trial.series.last_t, "", "the journal's last line is cut: its writer was killed"
    yield from trial.series.notes


def _times_text(trials: Sequence[AnyTrial]) -> str:
    """A sentence on what the times of these trials, of which there is one at least, count from."""
    others = ", ".join(trial.name for trial in trials if trial.series.training_s is None)
    since_launch = f"Training of {others} has not begun; there, times count from the launch." if others else ""
    if all(trial.series.training_s is None for trial in trials):
        return since_launch
    return f"Times count from the start of training; what came before it is negative. {since_launch}".rstrip()


def settings(run: Run) -> Iterator[Part]:
    """The scenario as it was resolved."""
    try:
        text = read_file(run.folder.scenario).decode(errors="replace")
    except OSError:
        return
    yield Section("The scenario as resolved", [Listing(text.splitlines())], is_folded=True)


def repeat(run: Run) -> Iterator[Part]:
    """The command that repeats the run, and what it was made with."""
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
