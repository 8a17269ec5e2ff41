"""Shows a finished or simulated run in Prometheus and Grafana as if it were in progress.

Its metrics are made again from its journals (`metrics/replay.py`), with the run's own times, and written as
OpenMetrics. `make_blocks.sh` makes blocks of them, and of the recording rules' results, with the programs
that come with Prometheus: here, or in the container of docker-compose.yml. Prometheus finds these within a minute.
"""

import math
import secrets
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from edgebed.core.errors import InfrastructureError
from edgebed.core.quantities import all_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.outcome import outcome_of
from edgebed.metrics.openmetrics import SampleStore
from edgebed.metrics.replay import TrialFacts, replay
from edgebed.running.results import AnyTrial, Run

GAP_S = 10.0
"""Seconds between two trials whose times are not known."""
DATA = "/prometheus"  # the one place in the container that can be written to
ELSEWHERE = "Another Prometheus: --data gives the folder of its data; --output writes a file for promtool."
MAKE_BLOCKS = Path(__file__).with_name("make_blocks.sh")
RULES = Path(__file__).with_name("recording.yml")
"""The recording rules: a copy of dashboards/prometheus/rules/recording.yml, which is not installed; `python -m
dashboards` writes it."""
SAMPLES = "run.om"
PROGRAMS = ("promtool", "prometheus")


class Replayed(NamedTuple):
    """The metrics of a run, made from its journals."""

    store: SampleStore
    begin_s: float
    end_s: float
    """Beginning of the first trial and end of the last, in Unix time."""


def read_again(run: Run, trials: Sequence[str], step_s: float, *, now_s: float | None = None) -> Replayed:
    """The metrics of these trials, read every `step_s` seconds; with `now_s` as if the last had ended then.

    Raises ScenarioError where the run has no such trial, or none that has begun.
    """
    wanted = run.chosen_trials(trials, "replay")
    begins = _begins(run)
    later_s = 0.0 if now_s is None else now_s - begins[wanted[-1].name] - _length_s(wanted[-1])
    store = SampleStore()
    for trial in wanted:
        fidelity = trial.summary.fidelity
        told = TrialFacts(
            run=run.folder.name,
            runtime=str(run.manifest.get("runtime", "unknown")),
            start_s=begins[trial.name] + later_s,
            verdict=fidelity.verdict if fidelity else None,
            result=outcome_of([trial.summary]).result,
            steps_per_s=trial.summary.value("steps_per_s"),
        )
        replay(trial.plan, trial.events, told, store, step_s)
    return Replayed(store, store.first_s, store.last_s)


def _begins(run: Run) -> dict[str, float]:
    """When each trial was launched, in Unix time; virtual time ends when the simulation began, so none is to come."""
    began = run.manifest.get("began", {})
    simulated = is_virtual(run.manifest.get("runtime"))
    if not simulated and all(name in began for name in run.begun):
        return {name: float(began[name]) for name in run.begun}
    lengths = [_length_s(trial) + GAP_S for trial in run.begun.values()]
    first_s = run.started_s - sum(lengths) + GAP_S if simulated else run.started_s
    return {name: first_s + sum(lengths[:index]) for index, name in enumerate(run.begun)}


def _length_s(trial: AnyTrial) -> float:
    """Seconds from a trial's launch to the last line of its journal."""
    return trial.series.length_s


def into_folder(store: SampleStore, data: Path) -> None:
    """Make blocks in the folder of a Prometheus on this machine; InfrastructureError where that fails."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        are = all_text(missing) + (" is" if len(missing) == 1 else " are")
        raise InfrastructureError(f"{are} not on the PATH; both come with Prometheus (Debian: package prometheus)")
    with tempfile.TemporaryDirectory(prefix="edgebed-replay-") as folder:
        samples = _write(store, Path(folder))
        command = _command(store, MAKE_BLOCKS, samples, RULES, data.resolve())
        # Interrupted, the script tidies up by itself: the terminal signals it as well, and nobody kills it.
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:  # noqa: S603
            _, said = process.communicate()
    _judge(process.returncode, said, "the run could not be loaded")


def into_service(store: SampleStore) -> None:
    """Make blocks in the Prometheus of docker-compose.yml; InfrastructureError where it does not run.

    Its project is that of this process's own container, or has the name that Compose would give it.
    """
    from edgebed.runtimes.containers.engine import connect, explained, is_there
    from edgebed.runtimes.containers.labels import COMPOSE
    from edgebed.runtimes.containers.owner import own_container
    from edgebed.runtimes.containers.project import project_name

    if not is_there():
        raise InfrastructureError(f"there is no container engine. {ELSEWHERE}")
    client = connect()
    try:
        with explained("Prometheus could not be given the run"):
            own_id = own_container(client)
            own = client.api.inspect_container(own_id)["Config"]["Labels"] if own_id else {}
            project = own.get(f"{COMPOSE}.project") or project_name()
            labels = [f"{COMPOSE}.project={project}", f"{COMPOSE}.service=prometheus"]
            found = client.containers.list(filters={"label": labels, "status": "running"})
            if not found:
                start = "start it: docker compose up -d prometheus grafana"
                raise InfrastructureError(
                    f"the Prometheus of the Compose project '{project}' does not run; {start}. {ELSEWHERE}"
                )
            code, said = _inside(found[0], store)
    finally:
        client.close()
    _judge(code, said, "the container of Prometheus could not load the run")


def _inside(container: Any, store: SampleStore) -> tuple[int, bytes]:
    """Make blocks in the container; return exit code and standard error."""
    place = Path(DATA) / f"edgebed-replay-{secrets.token_hex(4)}"
    command = _command(store, place / MAKE_BLOCKS.name, place / SAMPLES, place / RULES.name, Path(DATA))
    with tempfile.TemporaryFile() as archive:
        _pack(store, place.name, archive)
        container.put_archive(DATA, archive)
    try:
        code, (_, said) = container.exec_run(command, demux=True)
    finally:
        container.exec_run(["rm", "-rf", str(place)])
    return code, said or b""


def _command(store: SampleStore, script: Path, samples: Path, rules: Path, data: Path) -> list[str]:
    first_s, last_s = math.floor(store.first_s), math.ceil(store.last_s)
    return ["sh", str(script), str(samples), str(rules), str(first_s), str(last_s), str(data)]


def _judge(code: int, said: bytes, problem: str) -> None:
    if code:
        lines = said.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
        raise InfrastructureError(f"{problem}: {lines[-1]}\nThe samples alone: --output FILE")


def _pack(store: SampleStore, name: str, archive: IO[bytes]) -> None:
    """Write an archive with the folder `name`, which holds all that making blocks needs; rewind it."""

    def usable(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.mode = 0o777  # whoever Prometheus is: it makes its blocks here, and takes it away
        return info

    with tempfile.TemporaryDirectory(prefix="edgebed-replay-") as folder:
        _write(store, Path(folder))
        for file in (MAKE_BLOCKS, RULES):
            shutil.copy(file, folder)
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(folder, name, filter=usable)
    archive.seek(0)


def _write(store: SampleStore, folder: Path) -> Path:
    """Write the samples into a file; return its path."""
    file = folder / SAMPLES
    with file.open("w", encoding="utf-8") as text:
        store.write(text)
    return file
