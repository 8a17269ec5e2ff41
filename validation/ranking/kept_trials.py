"""What is left of a ranking study's trials, in a file beside its page: a line for each, so that runs may be deleted.

A line says which trial it was, what held its links, whether its conditions held, and what is measured of it: also where
they did not, so that anybody can see what is left out by that. It is of the study while the scenario's file is the one
that the trial was made from; a simulated one while the code is, too. So a study is resumed on another machine, and
whoever has its page can evaluate it again.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np

from edgebed.core.errors import EdgebedError
from edgebed.core.package import fingerprint
from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import Runtime, is_virtual
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary
from edgebed.running.results import Trial
from edgebed.studies.cells.run_index import FoundTrial
from edgebed.studies.json_lines import read_lines, write_lines
from validation.ranking.ranking import Measure, Values, values_of

FILE = "trials.jsonl"
NONE_ASKED = "none asked"
Asked = tuple[str, str, int, Runtime]
"""Scenario, method, seed and runtime."""


class KeptTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A finished trial of a study."""

    scenario: str
    file: str
    """Digest of the scenario's file."""
    method: str
    seed: int
    runtime: Runtime
    run: str
    """Name of the run."""
    started: str
    code: str
    """Fingerprint of edgebed's sources."""
    why_not: str = ""
    """Why it does not count; empty: it does."""
    links: str = ""
    """What held its links: tc (the kernel's), model (the transport's own), or `none asked`; empty where that was not
    recorded, and in the simulation."""
    measures: dict[Measure, float] = {}
    """What is measured of it; empty where it did not make its updates, or that was not recorded."""
    staleness: tuple[int, ...] = ()
    """Number of updates with a staleness of 0, 1, 2, ..."""

    @property
    def values(self) -> Values:
        """What is measured of a trial that made its updates."""
        return Values(self.measures, np.repeat(np.arange(len(self.staleness)), self.staleness))


class KeptTrials:
    """The lines of one file."""

    def __init__(self, path: Path, files: Mapping[str, Path], *, since: str) -> None:
        """Read the file, if there is one, without what began before `since`, UTC as in a run's manifest.

        EdgebedError where a line is broken or a scenario's file cannot be read.
        """
        self.path = path
        self.digests = {name: _digest(file) for name, file in files.items()}
        self._trials: dict[Asked, dict[tuple[str, str], KeptTrial]] = {}
        for kept in read_lines(path, msgspec.json.Decoder(KeptTrial).decode, "not a trial of a ranking study"):
            is_asked = kept.file == self.digests.get(kept.scenario) and kept.started >= since
            if is_asked and (not is_virtual(kept.runtime) or kept.code == fingerprint()):
                self._add(kept)

    def of(self, asked: Asked) -> list[KeptTrial]:
        """The trials that there are, the newest first."""
        return sorted(self._of(asked).values(), key=lambda each: (each.started, each.run), reverse=True)

    def keep(self, asked: Asked, found: FoundTrial) -> None:
        """Add a finished trial, unless it is there."""
        manifest = found.run.read_manifest()
        started = str(manifest.get("started", ""))
        if (found.run.name, started) not in self._of(asked):
            self._add(_kept(asked, self.digests[asked[0]], found, started, str(manifest.get("code", ""))))

    def write(self) -> None:
        """Write all lines, in an order that depends on them alone; InfrastructureError where that is impossible."""
        write_lines(self.path, self._lines())

    def _of(self, asked: Asked) -> dict[tuple[str, str], KeptTrial]:
        return self._trials.get(asked, {})

    def _add(self, kept: KeptTrial) -> None:
        asked = kept.scenario, kept.method, kept.seed, kept.runtime
        self._trials.setdefault(asked, {})[kept.run, kept.started] = kept

    def _lines(self) -> Iterator[KeptTrial]:
        for asked in sorted(self._trials):
            there = self._trials[asked]
            yield from (there[each] for each in sorted(there))


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise EdgebedError(f"{file}: cannot be read: {error.strerror}") from error


def _kept(asked: Asked, file: str, found: FoundTrial, started: str, code: str) -> KeptTrial:
    scenario, method, seed, runtime = asked
    kept = KeptTrial(
        scenario=scenario, file=file, method=method, seed=seed, runtime=runtime, run=found.run.name, started=started,
        code=code,
    )  # fmt: skip
    trial, is_live = Trial(found.trial), not is_virtual(runtime)
    wanted = trial.plan.stop_updates or 0
    try:
        kept = msgspec.structs.replace(kept, links=held_by(trial.plan, trial.series) if is_live else "")
        kept = msgspec.structs.replace(kept, why_not=_why_not(trial.summary, wanted, is_live=is_live))
        if len(trial.series.updates.t) < max(1, wanted) or not len(trial.series.evaluations.version):
            return kept
        values = values_of(trial.series, wanted)
    except EdgebedError as error:
        return msgspec.structs.replace(kept, why_not=kept.why_not or str(error))
    return msgspec.structs.replace(
        kept,
        measures=dict(values.measures),
        staleness=tuple(np.bincount(values.staleness).tolist()),
    )


def held_by(plan: TrainingPlan, series: Series) -> str:
    """What held the links of a live trial, as the nodes told of which anything is asked; empty where none did."""
    asked = [node.node for node in plan.nodes if node.link.shaped or node.changeable]
    if not asked:
        return NONE_ASKED
    return ", ".join(sorted({link.mechanism for node in asked for link in series.links.get(node, ())}))


def _why_not(summary: TrialSummary, wanted: int, *, is_live: bool) -> str:
    """Why a finished trial does not count; "" if it does."""
    fidelity = summary.fidelity
    if fidelity is None or fidelity.verdict != ("trusted" if is_live else "modelled"):
        return "; ".join(fidelity.lines) if fidelity else "it never trained"
    return "" if summary.updates >= wanted else f"it made {summary.updates} of {wanted} updates: {summary.reason}"
