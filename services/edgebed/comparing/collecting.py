"""Finished runs of cells, read once: what measures need of each is kept, so that the run itself may go."""

from collections.abc import Callable, Collection
from typing import Any

from edgebed.comparing.cells import CellRun, Recipes
from edgebed.comparing.finished import FinishedTrial
from edgebed.comparing.keeping import Kept, RunResult
from edgebed.comparing.matching import Finder, Found
from edgebed.errors import EdgebedError
from edgebed.results import Trial


def locate(cells: Recipes, finder: Finder, wanted: Collection[CellRun]) -> dict[CellRun, Found]:
    """The newest finished trial of each run that has one; plans are made only where there may be one."""
    declared = cells.declared
    possible = [
        run
        for run in wanted
        if finder.knows(cells.scenario(run.cell).name, declared[run.cell].variant, run.seed, declared[run.cell].runtime)
    ]
    found = {run: finder.completed(plan, declared[run.cell].runtime) for run, plan in cells.plans(possible).items()}
    return {run: each for run, each in found.items() if each}


def keep_finished(
    cells: Recipes, finder: Finder, kept: Kept, wanted: Collection[CellRun], tell: Callable[[str], None]
) -> None:
    """Read every finished run that is not kept yet."""
    for run, found in locate(cells, finder, wanted).items():
        result, before = _run_result(run.seed, found), kept.find(run)
        if before is None or (before.run.run, before.run.started) != (result.run, result.started):
            try:
                kept.keep(run, result, FinishedTrial.of(Trial(found.trial)))
            except EdgebedError as error:
                tell(f"{run.cell}, seed {run.seed}: {error}")


def _run_result(seed: int, found: Found) -> RunResult:
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
        cores=host.get("cores", 0),
        memory_bytes=host.get("memory_bytes", 0),
    )
