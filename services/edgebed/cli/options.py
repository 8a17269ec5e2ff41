"""Arguments and options that several commands share."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from edgebed.cli import completion
from edgebed.core.console import put, put_json, put_rich, say
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.runtimes import Emulation, Runtime

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from edgebed.core.planned.hosts import EngineAddress
    from edgebed.reports.studies.study import RunOptions
    from edgebed.reports.writing.page import Page, Part

INTERRUPTED = 130

ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario's YAML file, or the name of one that comes with edgebed.",
        show_default=False,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A folder, a scenario (its latest run), scenario/number, or 'latest'.",
        autocompletion=completion.runs,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, e.g. fleet.edge.count=8. Repeatable."),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        help="This variant alone. Repeatable.",
        show_default=False,
        autocompletion=completion.variants,
    ),
]
Hosts = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        envvar="EDGEBED_HOSTS",
        help="The machines that containers run on (default: hosts.yaml beside the scenario, if there is one).",
        show_default=False,
    ),
]
RuntimeOption = Annotated[Runtime, typer.Option(envvar="EDGEBED_RUNTIME", help="Runtime that hosts the nodes.")]
EmulationOption = Annotated[
    Emulation,
    typer.Option(
        envvar="EDGEBED_EMULATION",
        help="What holds links and caps in the process runtime: kernel (takes root), model (the transport's, and "
        "pacing), or auto (the kernel for root, else the model).",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Only warn of a memory cap that is too low for its container.")]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes that compute a simulation's gradients (default: one a core; one in all where several runs are "
        "made at a time).",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Simulated runs at a time, each in a process of its own and on one core unless --processes says more.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Make simulated runs on the workers of this scheduler of dask.distributed, e.g. tcp://10.0.0.1:8786.",
        show_default=False,
    ),
]
Port = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Port at which the controller serves /metrics, /targets and /status, on loopback; of a controller in a "
        "container, on its management network (0: any free port).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone on standard output.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print every remark and note: conditions, traffic, start-up."),
]
Figures = Annotated[
    Path | None,
    typer.Option(
        "--figures",
        metavar="DIR",
        help="Also write every chart into this folder, as SVG and PNG for papers.",
        show_default=False,
    ),
]
RunsDir = Annotated[
    Path | None,
    typer.Option(help="Folder of all runs (default: $EDGEBED_RUNS_DIR, else ./runs).", show_default=False),
]


def run_options_of(*, resume: bool, no_run: bool, processes: int | None, runs_dir: Path | None) -> "RunOptions":
    """Return how a study makes its missing runs, with progress as a terminal shows it."""
    from edgebed.reports.live.progress import ProgressDisplay
    from edgebed.reports.studies.study import RunOptions

    return RunOptions(
        resume=resume, run=not no_run, processes=processes, runs_dir=runs_dir, display=ProgressDisplay(), tell=say
    )


@contextlib.contextmanager
def spreading(jobs: int, dask: str | None, *, runs: bool = True) -> "Iterator[Executor | None]":
    """Yield what makes runs at the same time, None where none are made or one after the other is asked for."""
    from edgebed.runtimes.signals import ending_by_signal
    from edgebed.studies.cells.parallel import executing

    if dask is not None and jobs > 1:
        raise ScenarioError("--jobs, --dask: the workers decide how many runs are made at a time; give one of the two")
    with ending_by_signal():  # also while runs are planned and evaluated
        if dask is not None and runs:
            from edgebed.studies.cells.dask_workers import dask_executor

            with dask_executor(dask, say) as executor:
                yield executor
        else:
            with executing(jobs if runs else 1) as executor:
                yield executor


def engines_in(hosts: Path) -> "tuple[EngineAddress, ...]":
    """The engines of a file of hosts, the first host's first; ScenarioError where it is wrong."""
    from edgebed.core.planned.hosts import EngineAddress
    from edgebed.scenario.load import load_hosts

    return tuple(EngineAddress(name, host.engine, host.tls) for name, host in load_hosts(hosts).items())


def page_place(name: str, runs_dir: Path | None) -> Path:
    """The default path of a page of several runs: in the folder of all runs, if there is one."""
    from edgebed.journal.run_folder import runs_root

    root = runs_root(runs_dir)
    return root / name if root.is_dir() else Path(name)


def require_place(option: str, place: Path, example: str = "report.html") -> None:
    """Check that a file can be written to `place`, which `option` named; ScenarioError where it cannot."""
    if place.is_dir():
        raise ScenarioError(f"{option}: {place} is a folder; give a file, e.g. {place / example}")
    if place.exists() and not place.is_file():
        raise ScenarioError(f"{option}: {place} is not a file that can be replaced; choose another name")
    if not place.parent.is_dir():
        raise ScenarioError(f"{option}: there is no folder {place.parent}; make it first, or choose another")
    if not os.access(place.parent, os.W_OK):
        raise ScenarioError(f"{option}: the folder {place.parent} cannot be written to; choose another")


def require_figures(folder: Path | None) -> None:
    """Check that figures can go into `folder`, if one was named; ScenarioError where they cannot."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ScenarioError(f"--figures: {folder} is a file; give a folder")
    if not folder.exists() and not folder.parent.is_dir():
        raise ScenarioError(f"--figures: there is no folder {folder.parent}; make it first, or choose another")


def put_parts(parts: "Iterable[Part]") -> None:
    """Write parts of a page to standard output."""
    from edgebed.reports.writing.terminal import show

    put_rich(lambda console: show(parts, console))


def put_study(view: "Page", place: Path | None, found: Any) -> None:
    """Print what was found: as JSON, or, where `found` is None, what the page says in brief and where it is."""
    if found is not None:
        put_json(found)
        return
    put_parts(view.brief)
    put(f"page: {place}")


def make_figures(folder: Path | None, page: "Page") -> None:
    """Write the charts of a page into `folder`, if one was named, and report it."""
    from edgebed.core.quantities import count_text
    from edgebed.reports.writing.figures import write_figures

    if folder is not None:
        charts = len(write_figures(folder, page.charts)) // 2
        say(f"figures: {folder}: {count_text(charts, 'chart')}, each as SVG and PNG")


def end_with(problems: Sequence[str]) -> None:
    """End a command with many runs: report what went wrong, a sentence each, and how to try again, if anything did."""
    if problems:
        for problem in problems:
            say(f"error: {problem}")
        say(f"{_going_on()} tries again")
        raise typer.Exit(InfrastructureError.exit_code)


def end_interrupted() -> NoReturn:
    """End a command with many runs that the user interrupted, and report how to resume it."""
    say(f"interrupted; to resume: {_going_on()}")
    raise typer.Exit(INTERRUPTED)


def _going_on() -> str:
    """The command that resumes what this one has begun."""
    from edgebed.studies.cells.running_cells import going_on

    return going_on(["edgebed", *sys.argv[1:]])
