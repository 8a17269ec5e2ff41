"""The folder of a run: `runs/<scenario>/<number>/`, where to find what in it, and how to find the folder by name.

    scenario.yaml      the scenario as resolved
    manifest.json      seed, runtime, versions, host facts, the command, the trials in order
    summary.json       the numbers and verdicts of all trials (a view of the journals)
    report.html        the same for people, self-contained
    control.sock       while a live trial runs: commands by hand are written there (runtimes/live/control.py)
    <trial>/plan.json  every node with its caps, its data and its parts (core/planned/plan_file.py)
    <trial>/events.jsonl, logs/<node>.log, checkpoints/{latest,final,backup-<step>}.npz
    <trial>/server-log/  until the trial is complete: what its server goes on from (runtimes/server_log.py)

`runs/<scenario>/latest` points to the newest, `runs/index.html` leads to all. Files are replaced in one step, so a
reader meets the old or the new one, also after a power cut (core/disk.py).
"""

import contextlib
import datetime as dt
import difflib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypedDict

import msgspec

from edgebed.core.disk import make_folder, replacing, sync_folder
from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError, unwritten
from edgebed.core.host import facts
from edgebed.core.plan import Plan, ProgramsPlan, TrainingPlan
from edgebed.core.planned.plan_file import dump_plan, load_plan
from edgebed.core.reading import read_json

ENVIRONMENT_VARIABLE = "EDGEBED_RUNS_DIR"
RUNS_DIR_OPTION = "--runs-dir"
LATEST = "latest"
NUMBER_DIGITS = 4
LISTED_MAX = 12
NOTE_LENGTH_MAX = 200  # a line of a list, or two
LOCK_S_MAX = 1.0  # a process that only checks the lock holds it very briefly


def runs_root(given: str | Path | None = None) -> Path:
    """The folder of all runs: `given`, else $EDGEBED_RUNS_DIR, else ./runs."""
    return Path(given or os.environ.get(ENVIRONMENT_VARIABLE) or "runs")


class MachineFacts(TypedDict, total=False):
    """The facts about the machine in a manifest, as far as anything is computed with them."""

    memory_bytes: int


class Manifest(TypedDict, total=False):
    """The keys of a manifest that are read: a file is checked by this type, and holds more."""

    seed: int
    runtime: str
    trials: list[str]
    scenario_file: str | None
    sets: list[str]
    note: str
    variants: list[str]
    options: dict[str, Any]
    code: str
    own_code: dict[str, str]
    started: dt.datetime
    folder: str
    commit: str | None
    versions: dict[str, str]
    host: MachineFacts
    data: dict[str, str]
    recordings: list[dict[str, str]]
    began: dict[str, float]
    resumed: list[dict[str, Any]]
    wall_s: float


class ToldTrial(msgspec.Struct):
    """What a summary tells of a trial, as far as it is needed here."""

    outcome: str


class Told(msgspec.Struct):
    """What a summary tells of a run, likewise."""

    trials: list[ToldTrial]
    programs: list[ToldTrial] = []
    not_begun: list[str] = []


class TrialFolder:
    """The files of one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.plan = path / "plan.json"
        self.journal = path / "events.jsonl"
        self.logs = path / "logs"
        self.checkpoints = path / "checkpoints"
        self.server_log = path / "server-log"
        self.latest_checkpoint = self.checkpoints / "latest.npz"
        self.final_checkpoint = self.checkpoints / "final.npz"

    def make(self, plan: Plan) -> None:
        """Make the folders and write the plan; InfrastructureError when that is impossible."""
        with _naming(self.path):
            make_folder(self.logs)
            make_folder(self.checkpoints)
        write_atomically(self.plan, dump_plan(plan))

    def read_plan(self) -> TrainingPlan:
        """The plan of a trial that trains; EdgebedError as of `read_any_plan`, and where its nodes run programs."""
        plan = self.read_any_plan()
        if isinstance(plan, ProgramsPlan):
            raise EdgebedError(f"{self.plan}: its nodes run programs of your own, and this is for trials that train")
        return plan

    def read_any_plan(self) -> TrainingPlan | ProgramsPlan:
        """The trial's plan; EdgebedError where the file is missing or broken, or its plan of another form."""
        written = read_json(self.plan, dict[str, Any], "a plan")
        try:
            return load_plan(written)
        except (msgspec.ValidationError, RecursionError) as error:
            raise EdgebedError(
                f"{self.plan}: not readable as a plan: {error}; it is damaged, or another edgebed's: run its scenario "
                "anew"
            ) from error

    def backup(self, step: int) -> Path:
        """Path of the backup of all shards after so many steps."""
        return self.checkpoints / f"backup-{step}.npz"

    def backups(self) -> list[int]:
        """Steps of the backups that exist."""
        found = (path.stem.removeprefix("backup-") for path in self.checkpoints.glob("backup-*.npz"))
        return [int(step) for step in found if step.isdecimal()]

    def log(self, node: str) -> Path:
        """Path of `node`'s log."""
        return self.logs / f"{node}.log"


class RunFolder:
    """One run on disk. Make a new one with `create`, open one with `find`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scenario_name = path.parent.name
        self.scenario = path / "scenario.yaml"
        self.manifest = path / "manifest.json"
        self.summary = path / "summary.json"
        self.report = path / "report.html"

    @property
    def name(self) -> str:
        """The run's name: `<scenario>/<number>`."""
        return f"{self.scenario_name}/{self.path.name}"

    @classmethod
    def create(cls, root: Path, scenario_name: str) -> "RunFolder":
        """A new folder with the next free number, and `latest` pointing to it; safe beside concurrent runs.

        Raises InfrastructureError when the folder cannot be made.
        """
        parent = root / scenario_name
        with _naming(parent):
            make_folder(parent)
            number = max((int(path.name) for path in _numbered(parent)), default=0) + 1
            while True:
                path = parent / f"{number:0{NUMBER_DIGITS}}"
                try:
                    path.mkdir()
                    break
                except FileExistsError:  # Another run took the number between our look and our mkdir.
                    number += 1
            sync_folder(parent)
            _point_latest(parent, path.name)
        return cls(path)

    @classmethod
    def find(cls, root: Path, text: str | Path) -> "RunFolder":
        """The run meant by `text`: a path, `<scenario>` (its latest), `<scenario>/<number>`, or `latest` of all.

        Raises ScenarioError listing the runs there are.
        """
        for path in _candidates(root, str(text)):
            if _is_run(path):
                return cls(path.resolve())
        scenario = str(text).partition("/")[0]
        newest = sorted(list_runs(root), key=_began, reverse=True)
        known = [run.name for run in sorted(newest, key=lambda run: run.scenario_name != scenario)]
        scenarios = {name.partition("/")[0] for name in known}
        close = [] if scenario in scenarios else difflib.get_close_matches(scenario, sorted(scenarios), n=1)
        guess = f"did you mean '{close[0]}'? " if close else ""
        if len(known) > LISTED_MAX:
            own = f", those of '{scenario}' first" if scenario in scenarios else ""
            allowed = f"the newest of {len(known)}{own}: {', '.join(known[:LISTED_MAX])}"
        else:
            allowed = f"there are {', '.join(known)}" if known else f"there are no runs in {root.absolute()}"
        forms = "a scenario, <scenario>/<number>, a folder, or 'latest'"
        raise ScenarioError(f"no run '{text}'; {guess}{allowed}. Give {forms}.")

    def trial(self, name: str) -> TrialFolder:
        """The folder of the trial called `name`, which need not exist yet."""
        return TrialFolder(self.path / name)

    def trials(self) -> list[TrialFolder]:
        """The trials that began, in the manifest's order."""
        order = {name: index for index, name in enumerate(self.read_manifest().get("trials", ()))}
        found = [path.parent for path in self.path.glob("*/plan.json")]
        return [TrialFolder(path) for path in sorted(found, key=lambda path: (order.get(path.name, 1 << 30), path))]

    def write_scenario(self, text: str) -> None:
        """Write the scenario as resolved."""
        write_atomically(self.scenario, text.encode())

    def write_manifest(
        self,
        *,
        seed: int,
        runtime: str,
        command: Sequence[str],
        trials: Sequence[str],
        scenario_file: str | None = None,
        sets: Sequence[str] = (),
        variants: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        code: str = "",
        own_code: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        recordings: Sequence[Mapping[str, str]] = (),
        engine: Mapping[str, Any] | None = None,
        note: str = "",
        runs_programs: bool = False,
    ) -> None:
        """Write what the run depends on: seed, runtime, command line, trials, and the facts of this machine.

        `scenario_file` is where the scenario was read, None if it was given from Python; `sets` are its overrides,
        `variants` those of its trials that were chosen, none if all were to run; `options` are those of the command
        line that the nodes depend on, `code` and `own_code` are the fingerprints of edgebed and of the user's own
        modules; `data` is what there is to say of data sets, by their name; `recordings` are the files of bandwidth and
        availability, with licence, source and hash; `engine` are the facts of the container engine, if there is one;
        `note` is the user's own; `runs_programs`: the nodes run programs of the user's.
        """
        manifest = {
            "scenario": self.scenario_name,
            "seed": seed,
            "runtime": runtime,
            "command": list(command),
            "trials": list(trials),
            "scenario_file": scenario_file,
            "sets": list(sets),
            "variants": list(variants),
            "options": dict(options or {}),
            "code": code,
            "own_code": dict(own_code or {}),
            **facts(),
            **({"data": dict(data)} if data else {}),
            **({"recordings": [dict(each) for each in recordings]} if recordings else {}),
            **({"engine": engine} if engine else {}),
            **({"note": note} if note else {}),
            **({"runs_programs": True} if runs_programs else {}),
        }
        self._write_manifest(manifest)

    def reopen(self, command: Sequence[str]) -> None:
        """Note when and by which command the run is resumed; its summary and report are to be made anew."""
        again = {"at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), "command": list(command)}
        manifest = self.read_manifest()
        self._write_manifest(manifest | {"resumed": [*manifest.get("resumed", ()), again]})
        with _naming(self.path):
            self.summary.unlink(missing_ok=True)
            self.report.unlink(missing_ok=True)

    def trial_begins(self, name: str) -> None:
        """Note when a trial is launched, in Unix time, unless that was noted before."""
        manifest = self.read_manifest()
        if manifest:
            began = {name: round(time.time(), 3)} | manifest.get("began", {})
            self._write_manifest(manifest | {"began": began})

    def add_wall_time(self, wall_s: float) -> None:
        """Note for how long the run was worked on just now, in seconds, on top of what was noted before."""
        manifest = self.read_manifest()
        if manifest:
            self._write_manifest(manifest | {"wall_s": round(manifest.get("wall_s", 0.0) + wall_s, 1)})

    def set_note(self, note: str) -> None:
        """Replace the run's note, an empty one takes it away; ScenarioError while the run is in progress."""
        with self.locked():
            manifest = {key: value for key, value in self.read_manifest().items() if key != "note"}
            self._write_manifest(manifest | ({"note": note} if note else {}))

    def disk_bytes(self) -> int:
        """The room that the folder takes on the disk, links not followed; what goes meanwhile has none."""
        return sum(_room(Path(place, name)) for place, _, names in os.walk(self.path) for name in names)

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        write_atomically(self.manifest, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")

    def read_manifest(self) -> dict[str, Any]:
        """The manifest, or an empty dict where the run died before writing it; EdgebedError where it is damaged."""
        if not self.manifest.exists():
            return {}
        manifest = read_json(self.manifest, dict[str, Any], "a manifest")
        try:
            msgspec.convert(manifest, Manifest)
        except msgspec.ValidationError as error:
            raise EdgebedError(f"{self.manifest}: not readable as a manifest: {error}") from error
        return manifest

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run while it is in progress: a lock shows that to other processes and containers, too.

        The lock ends with the process that holds it, whatever ends that. Raises ScenarioError where another holds it.
        """
        folder = os.open(self.path, os.O_RDONLY)
        try:
            if not _lock(folder):
                raise ScenarioError(f"run {self.name} is in progress")
            yield
        finally:
            os.close(folder)

    def is_running(self) -> bool:
        """Whether the run is in progress: it has no summary yet, and the process that began it holds it."""
        return not self.summary.exists() and self.is_held()

    def is_held(self) -> bool:
        """Whether a process works on the run: it trains, or is about to."""
        try:
            folder = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:  # removed meanwhile
            return False
        try:
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(folder)
        return False


def find_resumable(root: Path, text: str | Path) -> RunFolder:
    """The run meant by `text` as `RunFolder.find` has it; ScenarioError also where there is nothing to resume in it."""
    folder = RunFolder.find(root, text)
    if folder.is_held():
        raise ScenarioError(f"run {folder.name} is in progress")
    if is_complete(folder):
        raise ScenarioError(f"run {folder.name} is complete: there is nothing to resume")
    return folder


def is_complete(folder: RunFolder) -> bool:
    """Whether the run's summary says that all trials came to their end; EdgebedError where it cannot be read."""
    from edgebed.journal.series_divergence import RAN_TO_END  # loads numpy

    if not folder.summary.exists():
        return False
    told = read_json(folder.summary, Told, "a summary")
    trials = [*told.trials, *told.programs]
    return bool(trials) and not told.not_begun and all(trial.outcome in RAN_TO_END for trial in trials)


def checked_note(note: str, where: str) -> str:
    """The note without space around it; ScenarioError unless lists can show it, which names `where` it was given."""
    note = str(note).strip()
    if not note.isprintable():
        raise ScenarioError(f"{where}: a note is one line of printable characters; write a longer one into a file")
    if len(note) > NOTE_LENGTH_MAX:
        raise ScenarioError(f"{where}: {len(note)} characters; a note has {NOTE_LENGTH_MAX} at most")
    return note


def list_runs(root: Path) -> list[RunFolder]:
    """All runs under `root`, by scenario and number."""
    parents = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [run for parent in parents for run in runs_of(root, parent.name)]


def runs_of(root: Path, scenario_name: str) -> list[RunFolder]:
    """The runs of one scenario under `root`, by number."""
    parent = root / scenario_name
    paths = _numbered(parent) if parent.is_dir() else []
    return [RunFolder(path) for path in sorted(paths, key=lambda path: int(path.name))]


def write_atomically(path: Path, content: bytes, option: str = RUNS_DIR_OPTION) -> None:
    """Replace `path` by `content` in one step; see `writing`."""
    with writing(path, option) as stream:
        stream.write(content)


@contextlib.contextmanager
def writing(path: Path, option: str = RUNS_DIR_OPTION) -> Iterator[IO[bytes]]:
    """A new file to write into; in the end it replaces `path` in one step.

    A link that the user gave with an option stays, and the file it leads to is replaced. In a run's folder, which may
    be a stranger's, the link itself is replaced.

    Raises InfrastructureError naming the path, and the option that chooses another, when that is impossible.
    """
    with _naming(path, option):
        place = path if option == RUNS_DIR_OPTION else Path(os.path.realpath(path))
        with replacing(place) as file, os.fdopen(file, "wb", closefd=False) as stream:
            yield stream
        os.close(file)


@contextlib.contextmanager
def _naming(path: Path, option: str = RUNS_DIR_OPTION) -> Iterator[None]:
    """Turn an OSError into an InfrastructureError that names `path` and what to do."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{path}: {unwritten(error, option)}") from error


def _lock(folder: int) -> bool:
    """Lock the folder; False where another process has locked it. On a file system without locks nobody can tell."""
    latest_s = time.monotonic() + LOCK_S_MAX
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > latest_s:
                return False
            time.sleep(0.01)
        except OSError:
            return True
        else:
            return True


def _numbered(parent: Path) -> list[Path]:
    """The run folders of a scenario, which are those named by a number."""
    return [path for path in parent.iterdir() if path.name.isdecimal() and path.is_dir()]


def _room(path: Path) -> int:
    """Bytes that a file takes on the disk, in blocks of 512 as POSIX counts them."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def _is_run(path: Path) -> bool:
    """Whether a folder is a run's. Scenarios, which have runs, and trials, which have plans, may be numbers, too."""
    try:
        if not (path.is_dir() and path.resolve().name.isdecimal()):
            return False
        run = RunFolder(path)
        has_runs = any(not TrialFolder(each).plan.exists() for each in _numbered(path))
        return run.manifest.exists() or not (has_runs or TrialFolder(path).plan.exists())
    except OSError:  # The name is too long, or the folder may not be read.
        return False


def _candidates(root: Path, text: str) -> Iterator[Path]:
    """Paths at which the run called `text` may be, likeliest first. A plain path wins only where it is a run itself."""
    if text == LATEST:
        runs = list_runs(root)
        if runs:
            yield max(runs, key=_began).path
        return
    scenario, _, number = text.rstrip("/").rpartition("/")
    if scenario and number.isdecimal():
        yield root / scenario / f"{int(number):0{NUMBER_DIGITS}}"
    yield root / text
    yield root / text / LATEST
    path = Path(text)
    yield path
    yield path / LATEST
    yield path.parent  # report.html or summary.json inside the run


def _began(run: RunFolder) -> tuple[int, float, str]:
    """When a run began: the second that its manifest tells, and of several in one the last that was written."""
    marker = run.manifest if run.manifest.exists() else run.path
    written_s = marker.stat().st_mtime
    try:
        began_s = dt.datetime.fromisoformat(run.read_manifest()["started"]).timestamp()
    except (EdgebedError, KeyError, ValueError, OverflowError):
        began_s = written_s
    return int(began_s), written_s, str(run.path)


def point_latest_anew(parent: Path) -> None:
    """Let a scenario's `latest` point to the newest run that is left, also while others begin; with none it goes."""
    pointed = ""
    while numbers := sorted((path.name for path in _numbered(parent)), key=int):
        if numbers[-1] == pointed:
            return
        pointed = numbers[-1]
        _point_latest(parent, pointed)
    (parent / LATEST).unlink(missing_ok=True)


def _point_latest(parent: Path, name: str) -> None:
    """Let `latest` point to `name` in one step. Where a file system has no links, the run continues without it."""
    temporary = parent / f".{LATEST}.{os.getpid()}.{name}"
    with contextlib.suppress(OSError):
        temporary.symlink_to(name)
        temporary.replace(parent / LATEST)
