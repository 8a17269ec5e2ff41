"""The command `replay`: show a finished or simulated run in Prometheus and Grafana."""

import time
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgebed.cli.options import RunName, RunsDir, require_place
from edgebed.core.console import put, say
from edgebed.core.errors import ScenarioError

if TYPE_CHECKING:
    from edgebed.running.replay import Replayed

GRAFANA = "http://127.0.0.1:3000"
"""Address of Grafana in docker-compose.yml."""
MARGIN_S = 10.0
"""Seconds shown before and after a run."""

Trials = Annotated[
    list[str] | None, typer.Option("--trial", metavar="NAME", help="This trial alone. Repeatable.", show_default=False)
]
Step = Annotated[str, typer.Option(metavar="DURATION", help="Time between two samples; dashboards need at most 15s.")]
Now = Annotated[
    bool,
    typer.Option("--now", help="Pretend that it has just ended, for a Prometheus that drops data older than a week."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the samples as OpenMetrics to this file, and load nothing.", show_default=False
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data of a Prometheus on this machine; needs prometheus and promtool.", show_default=False
    ),
]


def replay(
    name: RunName,
    *,
    trials: Trials = None,
    step: Step = "5s",
    now: Now = False,
    output: Output = None,
    data: Data = None,
    runs_dir: RunsDir = None,
) -> None:
    """Load a finished or simulated run into Prometheus with its own times, so that Grafana shows it."""
    from edgebed.core.units import parse_duration
    from edgebed.journal.run_folder import writing
    from edgebed.running.replay import into_folder, into_service, read_again
    from edgebed.running.results import load

    try:
        step_s = parse_duration(step)
    except ValueError as error:
        raise ScenarioError(f"--step: {error}") from error
    if not step_s > 0.0:
        raise ScenarioError(f"--step: {step} is not above 0; 5s is how often a live run is looked at")
    if output is not None and data is not None:
        raise ScenarioError("--output and --data: give one of them")
    if output is not None:
        require_place("--output", output, "run.om")
    if data is not None and not data.is_dir():
        raise ScenarioError(f"--data: there is no folder {data}; it is Prometheus' --storage.tsdb.path")
    run = load(name, runs_dir=runs_dir)
    found = read_again(run, trials or (), step_s, now_s=time.time() if now else None)
    if output is not None:
        with writing(output, "--output") as stream, TextIOWrapper(stream, encoding="utf-8") as file:
            found.store.write(file)
        put(f"{output}: {found.store.samples:,} samples")
        return
    if data is not None:
        into_folder(found.store, data)
    else:
        into_service(found.store)
    say(f"{found.store.samples:,} samples loaded; Prometheus shows them within a minute")
    put(_link(run.folder.name, found))


def _link(run: str, found: "Replayed") -> str:
    """The address at which Grafana shows the run."""
    begin_ms, end_ms = round(1000 * (found.begin_s - MARGIN_S)), round(1000 * (found.end_s + MARGIN_S))
    return f"{GRAFANA}/d/edgebed-run-overview?var-run={run}&from={begin_ms}&to={end_ms}"
