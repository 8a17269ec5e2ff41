"""A file beside a paper's page with what is left of every run that counted, so that the runs need not be kept.

One line of JSON for each cell, size and seed: what the scenario asked for as it was written, which run it was, its
summary without single nodes, and its evaluations. A line counts where the scenario still says the same and modules of
one's own are what they were, as with a run. So a page can be published with all that it was made from, and a sweep can
go on elsewhere.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from edgebed.comparing.cells import CellRun, Recipes
from edgebed.comparing.finished import Columns, FinishedTrial, columns_of, evaluations_of
from edgebed.comparing.json_lines import read_lines, write_lines
from edgebed.observe.outcome import outcome_text
from edgebed.observe.summary import TrialSummary
from edgebed.running import own_code
from edgebed.runtimes import Runtime
from edgebed.scenario.plan import Plan

FILE = "runs.jsonl"


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run: where it is and what it depended on."""

    seed: int
    run: str
    wall_s: float | None
    """How long it was worked on; None where an older edgebed did not say."""
    resumed: bool
    """It broke off and was gone on with, and the time of what broke off may be missing."""
    started: str
    code: str
    """Fingerprint of edgebed's sources."""
    versions: dict[str, str]
    cpu: str
    cores: int
    memory_bytes: int
    verdict: str = ""
    """Whether its conditions held; empty of a simulation that had all that was asked for."""
    diverged: str = ""
    """When, and what was not finite first; empty: it did not."""


UNKNOWN_COLUMNS = ("egress_bytes",)
"""What some evaluations do not say."""
Key = tuple[str, str, Runtime, bytes]
"""Scenario file, trial, runtime, settings."""
NOTHING: tuple[Any, ...] = (None, "", [], {})


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    scenario: str
    """Name of its file."""
    trial: str
    runtime: Runtime = "simulation"
    settings: dict[str, Any]
    """The trial as the scenario and the overrides have it, seed included, without defaults."""
    own_code: dict[str, str] = {}
    """Digests of the modules of a user's own, by file name."""
    run: RunResult
    summary: TrialSummary
    evaluations: Columns
    batches: int | msgspec.UnsetType = msgspec.UNSET
    """As a finished trial has it; older lines say nothing."""


class Kept:
    """The lines of one file, by what was asked for."""

    def __init__(self, cells: Recipes, path: Path) -> None:
        """EdgebedError where the file is there and has a line that is none of these."""
        self.cells = cells
        self.path = path
        self._runs = {_key(kept): kept for kept in read_lines(path, _run, "no run that was kept")}

    def find(self, run: CellRun) -> KeptRun | None:
        """What is left of a run that counts for this cell, size and seed."""
        kept = self._runs.get(self._key(run))
        if kept and kept.own_code and kept.own_code != _own_code(self.cells.plans([run])[run]):
            return None
        return kept

    def trial(self, run: CellRun) -> FinishedTrial:
        """The same as measures read it; KeyError where there is none."""
        kept = self._runs[self._key(run)]
        plan = self.cells.plans([run])[run]
        batches = None if kept.batches is msgspec.UNSET else kept.batches
        return FinishedTrial(
            plan=plan, summary=kept.summary, evaluations=evaluations_of(kept.evaluations), batches=batches
        )

    def keep(self, run: CellRun, result: RunResult, trial: FinishedTrial) -> None:
        """Instead of what there was for this cell, size and seed."""
        recipe, fidelity = self.cells.recipe(run), trial.summary.fidelity
        diverged = outcome_text(trial.summary) if trial.summary.outcome == "diverged" else ""
        verdict = fidelity.verdict if fidelity else ""
        held = verdict if recipe.runtime != "simulation" or verdict == "degraded" else ""
        kept = KeptRun(
            scenario=recipe.scenario.name,
            trial=recipe.variant,
            runtime=recipe.runtime,
            settings=recipe.settings,
            own_code=_own_code(trial.plan),
            run=msgspec.structs.replace(result, verdict=held, diverged=diverged),
            summary=_without_nodes(trial.summary),
            evaluations=columns_of(trial.evaluations),
            batches=msgspec.UNSET if trial.batches is None else trial.batches,
        )
        self._runs[self._key(run)] = msgspec.json.decode(msgspec.json.encode(kept), type=KeptRun)  # as one that is read

    def keep_only(self, runs: Iterable[CellRun]) -> None:
        """Let go of what is kept of all others."""
        wanted = {self._key(run) for run in runs}
        self._runs = {key: kept for key, kept in self._runs.items() if key in wanted}

    def write(self) -> None:
        """All lines, in an order that depends on them alone; InfrastructureError where that is impossible."""
        write_lines(self.path, (_line(self._runs[key]) for key in sorted(self._runs)))

    def _key(self, run: CellRun) -> Key:
        recipe = self.cells.recipe(run)
        return recipe.scenario.name, recipe.variant, recipe.runtime, _canonical(recipe.settings)


def _key(kept: KeptRun) -> Key:
    return kept.scenario, kept.trial, kept.runtime, _canonical(kept.settings)


def _without_nodes(summary: TrialSummary) -> TrialSummary:
    """Without what it says of each node, which is most of it, and without remarks, which no page of many runs has."""
    fidelity = summary.fidelity and msgspec.structs.replace(summary.fidelity, nodes=(), remarks=())
    accounting = summary.accounting and msgspec.structs.replace(summary.accounting, lives=())
    return msgspec.structs.replace(summary, fidelity=fidelity, accounting=accounting)


def _canonical(settings: dict[str, Any]) -> bytes:
    return msgspec.json.encode(settings, order="deterministic")


def _own_code(plan: Plan) -> dict[str, str]:
    return {Path(path).name: digest for path, digest in own_code([plan]).items()}


def _empty_values() -> Iterator[tuple[str, Any]]:
    """Of each field of a summary its default; where it has none: None, or what is empty, if it may be that."""
    for field in msgspec.structs.fields(TrialSummary):
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
"""What a line leaves out of a summary."""


def _line(kept: KeptRun) -> dict[str, Any]:
    """As it is written: without what is empty or not known, which is half of a summary, and a column at times."""
    line: dict[str, Any] = msgspec.to_builtins(kept)
    line["summary"] = {
        name: value for name, value in line["summary"].items() if name not in EMPTY or value != EMPTY[name]
    }
    line["evaluations"] = {
        name: column for name, column in line["evaluations"].items() if name not in UNKNOWN_COLUMNS or any(column)
    }
    return line


def _run(line: bytes) -> KeptRun:
    found = msgspec.json.decode(line, type=dict[str, Any])
    if isinstance(summary := found.get("summary"), dict):
        found["summary"] = EMPTY | summary
    kept = msgspec.convert(found, KeptRun)
    evaluations_of(kept.evaluations)  # EdgebedError where its columns do not fit each other
    return kept
