"""A cache of results in a file beside a paper's page: a line for each run that counted, so that runs may be deleted.

One line of JSON for each cell, size and seed: what the scenario asked for as it was written, which run it was, its
summary without per-node detail, and its evaluations. A line counts where the scenario still says the same, and modules
of one's own are what they were, as with a run. So a page can be published with all
that it was made from, and a sweep can be resumed elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.measures.trial import MEASURES, OF_TASK, ServerMeasures, ShardMeasures
from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import Runtime, is_virtual
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import TrialSummary
from edgebed.learning.objectives.classification import Classification
from edgebed.running.run import own_code
from edgebed.studies.cells.cells import CellRun, CellSpecs
from edgebed.studies.json_lines import read_lines, write_lines
from edgebed.studies.trial_result import Columns, FinishedTrial, columns_of, evaluations_of, short

FILE = "runs.jsonl"


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished run: its name and what it depended on."""

    seed: int
    run: str
    wall_s: float | None
    """Seconds for which the run was worked on; None: not known."""
    resumed: bool
    """Whether the run was resumed; the time before the interruption may be missing."""
    started: str
    code: str
    """Fingerprint of edgebed's sources."""
    versions: dict[str, str]
    cpu: str
    instructions: str = ""
    """Widest vector instructions of the processor, which decide how sums are rounded; empty: not known."""
    cores: int
    memory_bytes: int
    torch_device: str = ""
    """What computed in virtual time, where it was not the CPU."""
    verdict: str = ""
    """Verdict on the run's conditions; empty for a simulation that had all that was asked for."""
    diverged: str = ""
    """When the run diverged, and what was not finite first; empty: it did not."""
    data: dict[str, str] = {}
    """What must be said of the data, by data set, e.g. that they are not the published files."""

    @property
    def core_s(self) -> float | None:
        """Seconds of one core; None where that is not known, or something else than the CPU computed."""
        return None if self.torch_device else self.wall_s


EVEN_COLUMNS = ("t", "version", "bits")
"""Columns of which a line leaves out what goes on evenly."""
T_DECIMALS = 6
"""Decimals of a time in seconds; a journal has microseconds."""
Key = tuple[str, str, Runtime, bytes]
"""Scenario file, trial, runtime, settings."""
NOTHING: tuple[Any, ...] = (None, "", [], {})
PARTS: dict[str, type[msgspec.Struct]] = {"server": ServerMeasures, "shards": ShardMeasures}
"""The parts of a summary that have the numbers of its family."""
STRUCTS: tuple[type[msgspec.Struct], ...] = (TrialSummary, *PARTS.values())


class CachedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the file: a run's settings and results."""

    scenario: str
    """Name of the scenario's file."""
    trial: str
    runtime: Runtime = "simulation"
    settings: dict[str, Any]
    """Settings of the trial as the scenario and the overrides have it, seed included, without defaults."""
    own_code: dict[str, str] = {}
    """Digests of the user's own modules, by file name."""
    run: RunResult
    summary: TrialSummary
    evaluations: Columns
    batches: float | None = None
    """Whole mini-batches, as a finished trial has them."""


class ResultCache:
    """The lines of one file, by what was asked for."""

    def __init__(self, cells: CellSpecs, path: Path) -> None:
        """Read the file, if there is one; EdgebedError where one of its lines is broken."""
        self.cells = cells
        self.path = path
        self._runs = {_key(cached): cached for cached in read_runs(path)}

    def find(self, run: CellRun) -> CachedRun | None:
        """The stored run for this cell, size and seed, if it still counts."""
        cached = self._runs.get(self._key(run))
        if cached is None:
            return None
        plan = self.cells.plans([run])[run]
        if cached.own_code and cached.own_code != _own_code(plan):
            return None
        return cached

    def trial(self, run: CellRun) -> FinishedTrial:
        """The stored run as measures read it; KeyError where there is none."""
        cached = self._runs[self._key(run)]
        plan = self.cells.plans([run])[run]
        return FinishedTrial(
            plan=plan,
            summary=cached.summary,
            evaluations=evaluations_of(cached.evaluations, plan.measures),
            batches=cached.batches,
        )

    def keep(self, run: CellRun, result: RunResult, trial: FinishedTrial) -> None:
        """Store a run in place of what there was for this cell, size and seed."""
        spec, fidelity = self.cells.spec(run), trial.summary.fidelity
        diverged = outcome_text(trial.summary) if trial.summary.outcome == "diverged" else ""
        verdict = fidelity.verdict if fidelity else ""
        held = verdict if not is_virtual(spec.runtime) or verdict == "degraded" else ""
        cached = CachedRun(
            scenario=spec.scenario.name,
            trial=spec.variant,
            runtime=spec.runtime,
            settings=spec.settings,
            own_code=_own_code(trial.plan),
            run=msgspec.structs.replace(result, verdict=held, diverged=diverged),
            summary=_without_nodes(trial.summary),
            evaluations=columns_of(trial.evaluations),
            batches=trial.batches,
        )
        self._runs[self._key(run)] = msgspec.json.decode(msgspec.json.encode(cached), type=CachedRun)  # as if read

    def keep_only(self, runs: Iterable[CellRun]) -> None:
        """Drop all runs but these."""
        wanted = {self._key(run) for run in runs}
        self._runs = {key: cached for key, cached in self._runs.items() if key in wanted}

    def write(self) -> None:
        """Write all lines, in an order that depends on them alone; InfrastructureError where that is impossible."""
        write_lines(self.path, (_line(self._runs[key]) for key in sorted(self._runs)))

    def _key(self, run: CellRun) -> Key:
        spec = self.cells.spec(run)
        return _key_of(spec.scenario.name, spec.variant, spec.runtime, spec.settings)


def read_runs(path: Path) -> list[CachedRun]:
    """The lines of a file, if there is one; EdgebedError where one of them is broken."""
    return read_lines(path, _run, "not a stored run")


def _key(cached: CachedRun) -> Key:
    return _key_of(cached.scenario, cached.trial, cached.runtime, cached.settings)


def _key_of(scenario: str, trial: str, runtime: Runtime, settings: dict[str, Any]) -> Key:
    """The key of a line; a live run's does not depend on virtual time."""
    if not is_virtual(runtime):
        task = {key: value for key, value in settings.get("task", {}).items() if key != "gradient_time"}
        settings = settings | {"task": task}
    return scenario, trial, runtime, _canonical(settings)


def _without_nodes(summary: TrialSummary) -> TrialSummary:
    """The summary without per-node detail, which is most of it, and without what pages leave out: remarks, evidence."""
    fidelity = summary.fidelity and msgspec.structs.replace(summary.fidelity, nodes=(), remarks=(), evidence=())
    accounting = summary.accounting and msgspec.structs.replace(summary.accounting, lives=())
    return msgspec.structs.replace(summary, fidelity=fidelity, accounting=accounting)


def _canonical(settings: dict[str, Any]) -> bytes:
    return msgspec.json.encode(settings, order="deterministic")


def _own_code(plan: TrainingPlan) -> dict[str, str]:
    return {Path(path).name: digest for path, digest in own_code([plan]).items()}


def _empty_values() -> Iterator[tuple[str, Any]]:
    """The default of each field of a summary; where it has none: None, or an empty value, if it may be that."""
    for field in (field for struct in STRUCTS for field in msgspec.structs.fields(struct)):
        if field.default is not msgspec.NODEFAULT:
            yield field.name, msgspec.to_builtins(field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            yield field.name, msgspec.to_builtins(field.default_factory())
        for empty in NOTHING if field.required else ():
            try:
                msgspec.convert(empty, field.type)
            except msgspec.ValidationError:
                continue
            yield field.name, empty
            break


EMPTY = dict(_empty_values())
"""Values that a line leaves out of a summary."""


def _line(cached: CachedRun) -> dict[str, Any]:
    """A line as written: without what is empty or not known, which is half of a summary, and a column at times.

    Exchanges are columns, too, and the numbers of a summary's family and task stand beside those of all trials.
    """
    line: dict[str, Any] = msgspec.to_builtins(cached)
    if cached.batches is None:
        del line["batches"]
    else:
        line["batches"] = short(cached.batches)
    of_task = {f"{of}_{name}": value for of in OF_TASK for name, value in line["summary"].pop(of).items()}
    if cached.summary.measures == Classification.measures:
        del line["summary"]["measures"]
    parts = (line["summary"], of_task, *(line["summary"].pop(name) or {} for name in PARTS))
    line["summary"] = {
        name: value for part in parts for name, value in part.items() if name not in EMPTY or value != EMPTY[name]
    }
    if exchanges := line["summary"].get("exchanges"):
        line["summary"]["exchanges"] = {key: [exchange[key] for exchange in exchanges] for key in exchanges[0]}
    if fidelity := line["summary"].get("fidelity"):
        line["summary"]["fidelity"] = _without_empty(fidelity)
    if accounting := line["summary"].get("accounting"):
        total = _without_empty(accounting["total"])
        line["summary"]["accounting"] = _without_empty(accounting) | {"total": total}
    usual = _usual_columns(line["evaluations"])
    line["evaluations"] = {
        name: _begun(column) if name in EVEN_COLUMNS else column
        for name, column in line["evaluations"].items()
        if column != usual.get(name)
    }
    return line


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an object without those that are None, zero or empty, which is their default."""
    return {name: field for name, field in fields.items() if field or isinstance(field, bool)}


def _usual_columns(columns: Mapping[str, Sequence[Any]]) -> Columns:
    """What the columns of evaluations that a line may leave out usually have: shards push nothing to a server."""
    count = max(map(len, columns.values()), default=0)
    nothing: Columns = {"bits": [0] * count, "ingress_bytes": [0] * count, "egress_bytes": [None] * count}
    return {"final": [k == count - 1 for k in range(count)], **nothing}


def _begun(column: list[Any]) -> list[Any]:
    """The beginning of a column that goes on evenly from there; the column, where it does not."""
    beginnings = (column[:count] for count in (2, 3))
    return next((begun for begun in beginnings if _gone_on(begun, len(column)) == column), column)


def _gone_on(column: list[Any], count: int) -> list[Any]:
    """A column of `count` entries, whose last are as far apart as the last two of `column`, if those are numbers."""
    match column:
        case [*_, int() | float() as before, int() | float() as last]:
            step = last - before
        case _:
            return column
    return column + [round(last + step * k, T_DECIMALS) for k in range(1, count - len(column) + 1)]


def _rows(columns: Any) -> list[dict[str, Any]]:
    """Columns of exchanges -> the exchanges."""
    by_name = msgspec.convert(columns, dict[str, list[Any]])
    if len(set(map(len, by_name.values()))) > 1:
        raise EdgebedError("exchanges have columns that are not all of one length")
    return [dict(zip(by_name, row, strict=True)) for row in zip(*by_name.values(), strict=True)]


def _run(line: bytes) -> CachedRun:
    found = msgspec.json.decode(line, type=dict[str, Any])
    if isinstance(summary := found.get("summary"), dict):
        if columns := summary.get("exchanges"):
            summary["exchanges"] = _rows(columns)
        for of in OF_TASK:
            told = [name for name in summary if name.startswith(f"{of}_") and name not in MEASURES]
            summary[of] = {name.removeprefix(f"{of}_"): summary.pop(name) for name in told}
        summary["measures"] = summary.get("measures") or msgspec.to_builtins(Classification.measures)
        family = "shards" if "steps_min" in summary else "server"
        names = PARTS[family].__struct_fields__
        found["summary"] = (summary := EMPTY | summary) | {family: {name: summary[name] for name in names}}
    cached = msgspec.convert(found, CachedRun)
    columns = _usual_columns(cached.evaluations) | cached.evaluations
    count = max(map(len, columns.values()))
    columns |= {name: _gone_on(columns[name], count) for name in EVEN_COLUMNS if name in columns}
    cached = msgspec.structs.replace(cached, evaluations=columns)
    evaluations_of(cached.evaluations, cached.summary.measures)  # EdgebedError where its columns do not fit each other
    return cached
