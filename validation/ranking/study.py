"""The study of ranks from end to end: what is stated, drawn, run and evaluated, and its page."""

from concurrent.futures import Executor
from pathlib import Path

import msgspec

from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.journal.run_folder import write_atomically
from edgebed.reports.studies.study import SEEDS, RunOptions, Study, folder_of
from edgebed.reports.writing.markdown import make_folder, write
from edgebed.running.run import without_report
from edgebed.studies.cells.parallel import executing
from validation.ranking.draws import Drawing
from validation.ranking.kept_trials import FILE as TRIALS
from validation.ranking.kept_trials import KeptTrials
from validation.ranking.preregistration import TIME_MARGIN, begin_study, read_stated, scenario_files, state
from validation.ranking.ranking import Ranking
from validation.ranking.ranking_page import ranking_page
from validation.ranking.ranking_runs import RankingRuns

DRAWN = 20
"""Number of scenarios that are drawn where none is asked for."""
RANKING = "ranking.json"


def rank(
    *,
    scenarios: int = DRAWN,
    seed: int = 1,
    seeds: int = SEEDS,
    runtime: Runtime = "process",
    emulation: Emulation = "auto",
    margin: float = TIME_MARGIN,
    drawing: Drawing = "usual",
    output: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    run_options: RunOptions | None = None,
) -> Study[Ranking]:
    """Draw scenarios, run each in the simulation and live, and say whether methods rank alike in both.

    Arguments:
        scenarios: number of scenarios that are drawn.
        seed: what they are drawn from.
        seeds: number of seeds with which each is run.
        runtime, emulation: how live runs are made, as for `edgebed.run`.
        margin: share of the time within which two count as the same. It is stated before the first run; a study that is
            resumed goes by what was.
        drawing: `usual`, or `edges`: classes far apart, pushes near `silence`, models of megabytes, and churn.
        output: the page's folder (default: `rankings` in the folder of runs).
        jobs, executor, run_options: as for `edgebed.reproduce`; live runs are made one by one.

    Raises ScenarioError for what is wrong with these, before anything runs, and InfrastructureError where nothing can
    be compared.
    """
    run_options = run_options or RunOptions()
    wanted = state(
        scenarios=scenarios, seed=seed, seeds=seeds, runtime=runtime, emulation=emulation, margin=margin,
        drawing=drawing,
    )  # fmt: skip
    folder = folder_of(output, run_options.root / "rankings")
    beside = make_folder(folder, wanted.name)  # before hours of running, not after
    if not run_options.run and read_stated(beside) is None:
        raise ScenarioError(f"--no-run: no such study was begun in {beside}; leave the option out to begin it")
    stated = begin_study(wanted, beside, run_options.tell, resume=run_options.resume or not run_options.run)
    files = scenario_files(stated, beside)
    runs = RankingRuns(
        stated=stated,
        files=files,
        root=run_options.root,
        kept=KeptTrials(beside / TRIALS, files, since=stated.started),
        tell=run_options.tell,
        processes=run_options.processes,
    )
    if run_options.run:
        runs.check()
        with run_options.display as progress, executing(jobs, executor) as spreading:
            runs.make(without_report, progress, spreading)
    result = runs.evaluate()
    write_atomically(beside / RANKING, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n", "--output")
    view = ranking_page(result)
    problems = tuple(f"{run}: {why}" for run, why in runs.failed.items())
    return Study(result=result, page=write(view, folder), view=view, problems=problems)
