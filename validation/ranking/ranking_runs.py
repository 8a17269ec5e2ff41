"""Makes and finds the runs of a ranking study: each scenario with each seed, in the simulation and live.

    simulated: one trial for each scenario, seed and method, by this very code; several runs at a time if asked for
    live:      one after the other; a trial whose conditions did not hold is run again, at most `tries_max` times

All are ordinary runs. A trial counts if it was begun after the study was stated and has the plan that its file asks
for; a simulated one only if this code made it, since the simulation is what is being tested, and it costs seconds. What
is left of each is kept beside the study's page, so that the runs may be deleted.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

from edgebed.core.errors import InfrastructureError
from edgebed.core.package import fingerprint
from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import Runtime, is_virtual
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.running.run import Options, ProgressLike, ReportWriter, plan_checked, require_runtime
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.load import load_scenario
from edgebed.scenario.source import parse
from edgebed.studies.cells.jobs import Job, JobRunner, Tell
from edgebed.studies.cells.parallel import show_ended, spread
from edgebed.studies.cells.run_index import FoundTrial, RunIndex
from validation.ranking.drawn_again import drawn_again_of
from validation.ranking.estimate import estimated_times
from validation.ranking.kept_trials import KeptTrial, KeptTrials
from validation.ranking.preregistration import Stated
from validation.ranking.ranking import Ranking, Values, rank

VIRTUAL: Runtime = "simulation"
NAMED_MAX = 10
"""Number of trials not run yet that are named one by one."""
NOT_RUN = "not run yet, or simulated by other code of edgebed; --resume runs it"


class RunKey(NamedTuple):
    """A scenario with a seed in a runtime."""

    scenario: str
    seed: int
    runtime: Runtime

    @property
    def text(self) -> str:
        """The run in words."""
        return f"{self.scenario}, seed {self.seed}, {self.runtime}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attempts:
    """The finished trials of one method with a seed in a runtime."""

    counted: KeptTrial | None = None
    """The trial that counts: the first whose conditions held."""
    refused: tuple[KeptTrial, ...] = ()
    """Trials that do not count, the newest first."""

    @property
    def others(self) -> tuple[str, ...]:
        """Why trials do not count, with their runs' names."""
        return tuple(f"{each.run}, {each.method}: {each.why_not}" for each in self.refused)

    @property
    def times_s(self) -> list[tuple[float | None, float | None]]:
        """The time of each trial that does not count, and of the one that does; None where there is none."""
        counted_s = self.counted.measures.get("time") if self.counted else None
        return [(each.measures.get("time"), counted_s) for each in self.refused]


@dataclasses.dataclass(kw_only=True)
class RankingRuns:
    """The runs of a study, in the folder of all runs."""

    stated: Stated
    files: Mapping[str, Path]
    """Files of the scenarios by name."""
    root: Path
    kept: KeptTrials
    """What is left of the study's trials; those found in `root` are added, and written."""
    tell: Tell = lambda _: None
    processes: int | None = None
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why a run could not be made, by run."""
    _plans: dict[tuple[str, int], dict[str, TrainingPlan]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the folder of all runs."""
        self.index = RunIndex(self.root)

    def keys(self, runtime: Runtime) -> list[RunKey]:
        """All runs in a runtime, a scenario with all its seeds before the next."""
        return [RunKey(name, seed, runtime) for name in self.files for seed in range(1, self.stated.seeds + 1)]

    def check(self) -> None:
        """Check that every scenario can be run live here; ScenarioError or InfrastructureError where one cannot."""
        options = Options(runtime=self.stated.runtime, emulation=self.stated.emulation, trace=False, force=False)
        planned: list[PlannedTraining] = []
        for file in self.files.values():
            planned = plan_checked(load_scenario(file, ()), options)
        require_runtime(options, [trial.plan for trial in planned])

    def make(self, report: ReportWriter, progress: ProgressLike | None, executor: Executor | None) -> None:
        """Make what is missing; KeyboardInterrupt where the user ends it, and what has completed is kept."""
        with ending_by_signal():
            self._simulate(report, progress, executor)
            live = self.keys(self.stated.runtime)
            for number, key in enumerate(live, start=1):
                for _ in range(self.stated.tries_max):
                    missing = self.missing(key)
                    if not missing or key.text in self.failed:
                        break
                    self.tell(f"[{number}/{len(live)}] {key.text}: {', '.join(missing)}")
                    self._run(key, missing, report, progress)
                self.kept.write()

    def missing(self, key: RunKey) -> list[str]:
        """Methods that have no trial that counts, and may be tried."""
        tries_max = 1 if is_virtual(key.runtime) else self.stated.tries_max
        attempts = {method: self.attempts(key, method) for method in self.plans(key)}
        return [method for method, each in attempts.items() if not each.counted and len(each.others) < tries_max]

    def attempts(self, key: RunKey, method: str) -> Attempts:
        """The finished trials of a method, the first that counts among them."""
        asked = key.scenario, method, key.seed, key.runtime
        for found in self._found(key, method):
            self.kept.keep(asked, found)
        there = self.kept.of(asked)
        counted = [each for each in there if not each.why_not]
        return Attempts(
            counted=counted[-1] if counted else None,
            refused=tuple(each for each in there if each.why_not),
        )

    def plans(self, key: RunKey) -> dict[str, TrainingPlan]:
        """The plan of each method's trial with this seed."""
        place = key.scenario, key.seed
        if place not in self._plans:
            scenario = load_scenario(self.files[key.scenario], [f"seed={key.seed}"])
            self._plans[place] = {planned.plan.trial: planned.plan for planned in plan_trials(scenario)}
        return self._plans[place]

    def evaluate(self) -> Ranking:
        """Compare what is there; InfrastructureError where no method has two seeds in both runtimes."""
        trials: dict[Runtime, dict[str, dict[str, dict[int, Values]]]] = {VIRTUAL: {}, self.stated.runtime: {}}
        live: list[Attempts] = []
        left_out: list[str] = []
        not_run: list[str] = []
        for runtime, by_scenario in trials.items():
            for key in self.keys(runtime):
                for method in self.plans(key):
                    attempts = self.attempts(key, method)
                    if not is_virtual(runtime):
                        live.append(attempts)
                    if attempts.counted:
                        values = attempts.counted.values
                        by_scenario.setdefault(key.scenario, {}).setdefault(method, {})[key.seed] = values
                    elif why := "".join(attempts.others[:1]) or self.failed.get(key.text, ""):
                        left_out.append(f"{key.text}, {method}: {why}")
                    else:
                        not_run.append(f"{key.text}, {method}: {NOT_RUN}")
        self.kept.write()
        left_out += not_run if len(not_run) <= NAMED_MAX else [f"{len(not_run)} trials: {NOT_RUN}"]
        ranking = rank(
            self.stated,
            trials[VIRTUAL],
            trials[self.stated.runtime],
            estimates={name: estimated_times(parse(file.read_text(), str(file))) for name, file in self.files.items()},
            links=Counter(each.counted.links for each in live if each.counted),
            drawn_again=(other for each in live for other in each.others),
            again=drawn_again_of(times for each in live for times in each.times_s),
            left_out=left_out,
        )
        if ranking is None:
            raise InfrastructureError(
                "nothing to compare: no method has two seeds in both runtimes whose conditions held; the first that is "
                f"missing: {left_out[0]}"
            )
        return ranking

    def _found(self, key: RunKey, method: str) -> Iterator[FoundTrial]:
        """The finished trials of this study, the newest first."""
        for found in self.index.find(self.plans(key)[method], key.runtime):
            manifest = found.run.read_manifest()
            is_ours = str(manifest.get("started", "")) >= self.stated.started
            if is_virtual(key.runtime):
                is_ours = is_ours and manifest.get("code") == fingerprint()
            else:
                is_ours = is_ours and manifest.get("options", {}).get("emulation") == self.stated.emulation
            if is_ours and found.state == "completed":
                yield found

    def _simulate(self, report: ReportWriter, progress: ProgressLike | None, executor: Executor | None) -> None:
        jobs = {key: self._job(key, missing) for key in self.keys(VIRTUAL) if (missing := self.missing(key))}
        if not jobs:
            return
        self.tell(f"{len(jobs)} runs in virtual time")
        if executor is None:
            for key, job in jobs.items():
                self._run(key, job.variants, report, progress)
            return
        with contextlib.closing(spread(executor, jobs, report, self.tell)) as results:
            for key, result in results:
                show_ended(result, progress)
                if result.failure:
                    self._note(key, result.failure)

    def _run(
        self, key: RunKey, methods: tuple[str, ...] | list[str], report: ReportWriter, progress: ProgressLike | None
    ) -> None:
        runner = JobRunner(index=self.index, report=report, tell=self.tell, progress=progress)
        result = runner.run(self._job(key, methods))
        if result.failure:
            self._note(key, result.failure)

    def _note(self, key: RunKey, failure: str) -> None:
        self.failed[key.text] = failure
        self.tell(f"failed: {key.text}: {failure}")

    def _job(self, key: RunKey, methods: tuple[str, ...] | list[str]) -> Job:
        return Job(
            name=key.text,
            scenario=str(self.files[key.scenario]),
            runtime=key.runtime,
            emulation="auto" if is_virtual(key.runtime) else self.stated.emulation,
            set=(f"seed={key.seed}",),
            variants=tuple(methods),
            processes=self.processes,
            runs_dir=str(self.root),
        )
