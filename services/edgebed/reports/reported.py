"""`edgebed.run` and `edgebed.resume`, which write reports and show progress, and `edgebed.figures`.

What draws a report is imported when there is something to draw: a run begins without it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgebed.core.runtimes import Emulation, Runtime
from edgebed.reports.live.notebook import showing
from edgebed.running import resume as resuming
from edgebed.running import run as running
from edgebed.running.results import Run, load
from edgebed.running.run import ProgressLike
from edgebed.scenario.overrides import Settings


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    runtime: Runtime = "process",
    emulation: Emulation = "auto",
    hosts: str | Path | None = None,
    set: Settings = (),  # noqa: A002 # the name of the command line's option
    variants: Sequence[str] = (),
    trace: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    force: bool = False,
    progress: ProgressLike | bool | None = None,
    note: str = "",
) -> Run:
    """Run the trials of a scenario, write a report, and return the results.

    `Run.exit_code` says whether the expectations were met.

    Arguments:
        scenario: a file, the name of a scenario that comes with edgebed, or what a file would say, as a mapping. In a
            mapping, and in `set`, `task.data` may be a function, and `task.model` a function or a subclass of
            `torch.nn.Module`, from a module, a notebook or a script. A model of a notebook or script needs the
            simulation: nodes of the other runtimes are programs that cannot import it.
        runtime: `process`, `simulation` (virtual time), or `docker`.
        emulation: what holds links and caps in the process runtime: `kernel`, which takes root, `model`, the
            transport's model and pacing, or `auto`, the kernel for root and else the model.
        hosts: a file with the machines that containers run on (default: hosts.yaml beside the scenario, if any).
        set: overrides, values by dotted key, `{"fleet.edge.count": 8}`, or options as on the command line,
            `["fleet.edge.count=8"]`. A value that is a mapping is merged into what is there. A list or a mapping is
            given as such, `{"faults": [{"kill": "edge-1", "at": "2s"}]}`, since text remains text; as an option it is
            text that is read as YAML, `["faults=[{kill: edge-1, at: 2s}]"]`.
        variants: names of the trials to run (default: all).
        trace: whether the journal has every message sent and received.
        processes: how many processes the simulation computes with (default: all cores); it changes no result.
        runs_dir: the folder of runs (default: $EDGEBED_RUNS_DIR, else ./runs).
        port: where the controller serves metrics, targets and status, on loopback, or in a container on its management
            network (0: any free one).
        force: run although a container's memory cap is below what its node needs.
        progress: True shows progress, False does not (default: it is shown in IPython and in notebooks); or an
            observer with `trial_started(plan)`, `update(status)` and `trial_ended(summary)`.
        note: what lists of runs are to say of this one, a line of 200 characters at most.

    Raises ScenarioError for a scenario that cannot be run, found before anything starts, and InfrastructureError where
    this machine fails.

    Example:
        run = edgebed.run("quickstart", runtime="simulation", set={"fleet.edge.count": 8, "seed": 2})
        run.trials["adacomp"].series.evaluations.values  # (E,) accuracies, 0 to 1
    """
    with showing(progress) as display:
        return running.run(
            _write_report, scenario, runtime=runtime, emulation=emulation, hosts=hosts, set=set,
            variants=variants, trace=trace, processes=processes, runs_dir=runs_dir, port=port, force=force,
            progress=display, note=note,
        )  # fmt: skip


def resume(
    run: str | Path,
    *,
    from_checkpoint: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    progress: ProgressLike | bool | None = None,
) -> Run:
    """Resume a run that was interrupted, has failed, or whose controller was killed; return its results.

    Arguments:
        run: the run, named as for `edgebed.load`.
        from_checkpoint: give up the log of the server, which lacks what the journal has of it: what came after the
            last checkpoint is lost.
        processes, runs_dir, port, progress: as for `edgebed.run`.

    Raises ScenarioError where there is nothing to resume, or where it would not be the same run, e.g. because a model
    of the notebook has changed since.

    Example:
        edgebed.resume("quickstart/3")
    """
    with showing(progress) as display:
        return resuming.resume(
            _write_report, run, from_checkpoint=from_checkpoint, processes=processes, runs_dir=runs_dir, port=port,
            progress=display,
        )  # fmt: skip


def figures(run: Run | str | Path, folder: str | Path, *, runs_dir: str | Path | None = None) -> list[Path]:
    """Write every chart of a run's report into a folder, each as SVG and as PNG for papers; return the files.

    Arguments:
        run: the run, or its name as for `edgebed.load`.
        folder: where the files go; it is made, its parent has to be there. Files of the same names are replaced.
        runs_dir: the folder of runs (default: $EDGEBED_RUNS_DIR, else ./runs).

    Raises ScenarioError where there is no such run, InfrastructureError where the folder cannot be written.

    Example:
        edgebed.figures("quickstart", "figures")
    """
    from edgebed.reports.run.report import report_page
    from edgebed.reports.writing.figures import write_figures

    opened = run if isinstance(run, Run) else load(run, runs_dir=runs_dir)
    return write_figures(Path(folder), report_page(opened).charts)


def _write_report(run: Run) -> None:
    """Write a run's report, and the page of all runs anew."""
    from edgebed.reports.run.runs_index import write_report_and_index

    write_report_and_index(run)
