"""Event files for TensorBoard by tensorboardX: a folder a trial, with its curves and the scenario.

A point's step is the number of updates applied; its wall time is the run's start and the seconds of training, virtual
ones in a simulation.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from edgebed.core.reading import read_file
from edgebed.exporting.curves import curves_of
from edgebed.running.results import AnyTrial, Run

FILE = re.compile(r"[^/]+/events\.out\.tfevents\.[^/]+")


def is_ours(path: Path) -> bool:
    """Whether an export may have written this file."""
    return bool(FILE.fullmatch(path.as_posix()))


def write(run: Run, trials: Sequence[AnyTrial], folder: Path) -> None:
    """Write a folder with one event file for each trial."""
    from tensorboardX import SummaryWriter

    start_s = run.started_s
    for trial in trials:
        with SummaryWriter(str(folder / trial.name)) as writer:
            writer.add_text("scenario", _scenario_text(run, trial), 0, start_s)
            for curve in curves_of(trial.series):
                points = zip(curve.value.tolist(), curve.version.tolist(), curve.t.tolist(), strict=True)
                for value, version, t in points:
                    writer.add_scalar(curve.name, value, version, start_s + t)


def _scenario_text(run: Run, trial: AnyTrial) -> str:
    """The trial's name, and the scenario as it was resolved, in Markdown."""
    head = f"{run.folder.name}: {trial.name} ({run.summary.runtime}, seed {trial.plan.seed})"
    written = read_file(run.folder.scenario).decode(errors="replace") if run.folder.scenario.is_file() else ""
    return "\n".join([head, "", *(f"    {line}" for line in written.splitlines())])
