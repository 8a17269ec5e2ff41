"""MLflow: a scenario is an experiment, a trial is an MLflow run, found again by a tag and then replaced.

    experiment = scenario    run = trial: params, metrics with steps, report.html

A run that is exported again, say because it was resumed, is written anew before the older one is deleted, which MLflow
stores among the deleted ones. Nothing is ever there twice.
"""

import contextlib
import logging
import math
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.measures.trial import all_measures, program_measures
from edgebed.exporting.curves import curves_of
from edgebed.journal.outcome import AnySummary
from edgebed.journal.summary import TrialSummary
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.running.results import AnyTrial, Run, Trial
from edgebed.studies.arms import settings_of

IDENTITY = "edgebed.trial"
"""The tag by which a trial is found again."""
BATCH = 1000
"""Number of metrics that MLflow takes at once."""
SQLITE = "sqlite:///"
STATUS = {"completed": "FINISHED", "diverged": "FINISHED", "interrupted": "KILLED"}
"""Outcomes as MLflow's statuses; any other is FAILED."""
SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""Settings of MLflow, where the user has none: no telemetry, and no minutes of waiting for a server."""


class Tracked(NamedTuple):
    """The result of an export."""

    experiment: str
    written: int
    replaced: int


def export_runs(run: Run, trials: Sequence[AnyTrial], uri: str) -> Tracked:
    """Write `trials` to the tracking store at `uri`; InfrastructureError where that is impossible."""
    if (file := _database(uri)) is not None and not file.parent.is_dir():
        raise ScenarioError(f"--tracking-uri: there is no folder {file.parent}; make it first, or choose another")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    with _quietly(), tempfile.TemporaryDirectory() as made:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
        from sqlalchemy.exc import SQLAlchemyError

        report = _report(run, Path(made))
        settings = _params(run)
        try:
            client = MlflowClient(tracking_uri=uri)
            experiment = _experiment(client, run.scenario, uri)
            replaced = sum(_export(client, experiment, run, trial, settings[trial.name], report) for trial in trials)
        except (MlflowException, SQLAlchemyError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InfrastructureError(f"--tracking-uri: {uri}: {reason}") from error
    return Tracked(run.scenario, len(trials), replaced)


def _export(client: Any, experiment: str, run: Run, trial: AnyTrial, params: Mapping[str, str], report: Path) -> int:
    """Write one trial, then delete earlier exports of it; return how many there were."""
    start_s = run.started_s
    identity = f"{run.folder.name} {trial.name} {run.manifest.get('started', '')}".strip()
    before = client.search_runs([experiment], f"tags.`{IDENTITY}` = '{identity}'")
    summary = trial.summary
    tags = {
        IDENTITY: identity,
        "edgebed.run": run.folder.name,
        "edgebed.outcome": summary.outcome,
        "edgebed.verdict": summary.fidelity.verdict if summary.fidelity else "unknown",
    }
    name = f"{run.folder.name} {trial.name}"
    made = client.create_run(experiment, _milliseconds(start_s), tags, name).info.run_id
    try:
        from mlflow.entities import Param

        client.log_batch(made, params=[Param(key, value) for key, value in params.items()])
        metrics = list(_metrics(trial, summary, start_s))
        for first in range(0, len(metrics), BATCH):
            client.log_batch(made, metrics=metrics[first : first + BATCH])
        client.log_artifact(made, str(report))
        if summary.outcome != "running":
            ended = STATUS.get(summary.outcome, "FAILED")
            client.set_terminated(made, ended, _milliseconds(start_s + trial.series.last_t))
    except BaseException:  # half of it would be worse than nothing
        client.delete_run(made)
        raise
    for old in before:
        client.delete_run(old.info.run_id)
    return len(before)


def _params(run: Run) -> dict[str, dict[str, str]]:
    """Parameters of each trial: method, seed, runtime, and all settings that differ or that `--set` has set."""
    settings = {name: dict(_leaves(each)) for name, each in settings_of(run).items()}
    paths = dict.fromkeys(path for each in settings.values() for path in each)
    set_now = tuple(text.partition("=")[0] for text in run.manifest.get("sets", ()))
    told = [
        path for path in paths if path.startswith(set_now) or len({each.get(path) for each in settings.values()}) > 1
    ]
    return {
        name: {path: settings[name][path] for path in told if path in settings[name]}
        | {
            **({"method": trial.plan.nodes[0].method.name} if isinstance(trial, Trial) else {}),
            "seed": str(trial.plan.seed),
            "runtime": run.summary.runtime,
        }
        for name, trial in run.begun.items()
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each value on its own, with the keys that lead to it: `method.compression.fraction`, `0.1`."""
    below: Iterable[tuple[Any, Any]] = ()
    match value:
        case Mapping():
            below = value.items()
        case list():
            below = enumerate(value)
        case bool():
            yield path, str(value).lower()
        case _:
            yield path, str(value)
    for key, each in below:
        yield from _leaves(each, f"{path}.{key}" if path else str(key))


def _metrics(trial: AnyTrial, summary: AnySummary, start_s: float) -> Iterator[Any]:
    """The numbers of the summary, at the end, and the curves."""
    from mlflow.entities import Metric

    end_ms = _milliseconds(start_s + trial.series.last_t)
    if isinstance(summary, TrialSummary):
        names, updates = list(all_measures(summary.measures)), summary.updates
    else:
        names, updates = list(program_measures(summary.measures)), 0
    for name in names:
        if (value := summary.value(name)) is not None:
            yield Metric(name, float(value), end_ms, updates)
    for curve in curves_of(trial.series):
        points = zip(curve.value.tolist(), curve.version.tolist(), curve.t.tolist(), strict=True)
        for value, version, t in points:
            yield Metric(curve.name, value, _milliseconds(start_s + t), version)


def _experiment(client: Any, name: str, uri: str) -> str:
    """The experiment's number; a new one in an SQLite file has its reports beside that."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    file = _database(uri)
    beside = None if file is None else (file.parent / "mlruns" / name).as_uri()
    return str(client.create_experiment(name, artifact_location=beside))


def _database(uri: str) -> Path | None:
    """The file of `sqlite:///FILE`; None for any other store."""
    return Path(uri.removeprefix(SQLITE)).absolute() if uri.startswith(SQLITE) else None


def _report(run: Run, folder: Path) -> Path:
    """The run's report; made now where the run has none yet."""
    if run.folder.report.exists():
        return run.folder.report
    made = folder / run.folder.report.name
    made.write_text(to_html(report_page(run)), encoding="utf-8")
    return made


def _milliseconds(seconds: float) -> int:
    return math.floor(1000 * seconds)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the log messages of MLflow and its libraries."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
