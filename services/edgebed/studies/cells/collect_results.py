"""Collects finished runs of cells: each is read once, and what measures need is stored, so that the run may go."""

from collections.abc import Callable, Collection
from typing import Any

from edgebed.core.errors import EdgebedError
from edgebed.running.results import Trial
from edgebed.studies.cells.cells import CellRun, CellSpecs
from edgebed.studies.cells.result_cache import ResultCache, RunResult
from edgebed.studies.cells.run_index import FoundTrial, RunIndex
from edgebed.studies.trial_result import FinishedTrial


def locate(cells: CellSpecs, index: RunIndex, wanted: Collection[CellRun]) -> dict[CellRun, FoundTrial]:
    """The newest finished trial of each run that has one; plans are made only where there may be one."""
    declared = cells.declared
    possible = [
        run
        for run in wanted
        if index.knows(cells.scenario(run.cell).name, declared[run.cell].variant, run.seed, declared[run.cell].runtime)
    ]
    found = {run: index.completed(plan, declared[run.cell].runtime) for run, plan in cells.plans(possible).items()}
    return {run: each for run, each in found.items() if each}


def cache_finished(
    cells: CellSpecs, index: RunIndex, cache: ResultCache, wanted: Collection[CellRun], tell: Callable[[str], None]
) -> None:
    """Read every finished run that is not in the cache yet."""
    for run, found in locate(cells, index, wanted).items():
        result, before = _run_result(run.seed, found), cache.find(run)
        if before is None or (before.run.run, before.run.started) != (result.run, result.started):
            try:
                cache.keep(run, result, FinishedTrial.of(Trial(found.trial)))
            except EdgebedError as error:
                tell(f"{run.cell}, seed {run.seed}: {error}")


def _run_result(seed: int, found: FoundTrial) -> RunResult:
    manifest: dict[str, Any] = found.run.read_manifest()
    host = manifest.get("host", {})
    return RunResult(
        seed=seed,
        run=found.run.name,
        wall_s=manifest.get("wall_s"),
        resumed=bool(manifest.get("resumed")),
        started=manifest.get("started", ""),
        code=manifest.get("code", ""),
        versions=manifest.get("versions", {}),
        cpu=host.get("cpu", ""),
        instructions=host.get("instructions", ""),
        cores=host.get("cores", 0),
        memory_bytes=host.get("memory_bytes", 0),
        torch_device=manifest.get("engine", {}).get("torch_device", ""),
        data=manifest.get("data", {}),
    )
