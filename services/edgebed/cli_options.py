"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.runtimes import Emulation, Runtime

ScenarioFile = Annotated[Path, typer.Argument(help="A scenario's YAML file.", show_default=False)]
RunName = Annotated[str, typer.Argument(help="A folder, a scenario (its latest run), scenario/number, or 'latest'.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, e.g. fleet.edge.count=8. Repeatable."),
]
RuntimeOption = Annotated[Runtime, typer.Option(help="What hosts the nodes.")]
EmulationOption = Annotated[
    Emulation,
    typer.Option(
        envvar="EDGEBED_EMULATION",
        help="What holds links and caps in the process runtime: the kernel (as root), the transport's model and "
        "pacing, or whichever can be had.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Warn of a memory cap that is too low for its container; do not refuse it.")
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that compute gradients in the simulation (default: one a core)."),
]
Port = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Where the controller serves /metrics, /targets and /status: on loopback, or in a container on its "
        "management network (0: any free port).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone on standard output.")]
RunsDir = Annotated[
    Path | None,
    typer.Option(help="Folder of all runs (default: $EDGEBED_RUNS_DIR, else ./runs).", show_default=False),
]
