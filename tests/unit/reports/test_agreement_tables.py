"""What a reader is told of runtimes that agree, or do not."""

import io
import itertools

import msgspec
import pytest
from rich.console import Console

from edgebed.learning.objectives.classification import ACCURACY
from edgebed.reports.studies.agreement_page import agreement_brief
from edgebed.reports.studies.agreement_tables import ROWS_MAX, grids, verdict_text
from edgebed.reports.writing.terminal import show
from edgebed.studies.agreement.agreement import Agreement, Difference, Figures, Judgement, Version, overall
from edgebed.studies.agreement.run_agreement import Agreements
from edgebed.studies.statistics import ConfidenceInterval


def judgement(runtime: str, *, differs: bool = False, **settings) -> Judgement:
    """Of the accuracy's end, unless it is said otherwise."""
    given = {"measure": "accuracy", "versions": (1500, 2000), "difference": 0.0213, "allowed": 0.0111} | settings
    return Judgement(runtime=runtime, between_seeds=0.0111, verdict="differs" if differs else "agrees", **given)


def agreements(*judgements: Judgement, versions: int = 3) -> Agreements:
    """Of one trial, with two seeds."""
    some = ConfidenceInterval(mean=0.5, low=0.4, high=0.6, seeds=2)
    figures = Figures(
        final=some, updates_per_s=some, entries=some, bytes=some,
        staleness_mean=18.8, staleness_median=13, staleness_p90=43, staleness_p99=88,
    )  # fmt: skip
    runtimes = dict.fromkeys(["simulation", *(judgement.runtime for judgement in judgements)])
    others = {
        runtime: Difference(
            mean=0.6, spread=0.01, difference=ConfidenceInterval(mean=-0.0123, low=-0.03, high=0.0054, seeds=2)
        )
        for runtime in runtimes
        if runtime != "simulation"
    }
    rows = tuple(Version(version=100 * k, mean=0.6123, spread=0.02, others=others) for k in range(1, versions + 1))
    trial = Agreement(
        headline=ACCURACY, trial="adacomp", reference="simulation", seeds=(1, 2), verdict=overall(judgements),
        judgements=judgements, figures=dict.fromkeys(runtimes, figures), versions=rows,
    )  # fmt: skip
    runs = {runtime: {1: "agree/0001", 2: "agree/0002"} for runtime in runtimes}
    return Agreements(scenario="agree", verdict=trial.verdict, runs=runs, trials=(trial,), notes=("a busy host",))


def test_how_many_seeds_diverged_is_a_figure_of_each_runtime() -> None:
    """Of all seeds that were run."""
    (trial,) = agreements(judgement("process")).trials
    figures = {**trial.figures, "process": msgspec.structs.replace(trial.figures["process"], diverged=1)}
    table = grids(msgspec.structs.replace(trial, figures=figures))["Each runtime, mean over seeds"]

    assert ("diverged", "0 of 2", "1 of 2") in table.rows


def test_the_verdict_names_what_differs() -> None:
    """Runtime and quantity; where nothing does, all runtimes that agree."""
    staleness = judgement("docker", differs=True, measure="staleness", versions=None)
    entries = judgement("process", differs=True, measure="entries", versions=None)

    assert (
        verdict_text(agreements(judgement("process"))) == "process agrees with simulation within what seeds differ by."
    )
    assert verdict_text(agreements(judgement("process"), judgement("docker"))).startswith(
        "process and docker agree with"
    )
    assert verdict_text(agreements(entries, staleness, judgement("docker", differs=True))) == (
        "Further from simulation than two seeds are from each other: adacomp, process: entries per push; "
        "adacomp, docker: staleness; adacomp, docker: accuracy, updates 1,500 to 2,000."
    )


def test_each_quantity_is_told_in_its_own_unit() -> None:
    """Points of accuracy, per cent of the mean of a push, a bare distance of staleness."""
    found = agreements(
        judgement("process", differs=True),
        judgement("process", measure="bytes", versions=None),
        judgement("process", measure="staleness", versions=None),
    )
    _, versions, judged = grids(found.trials[0]).values()

    assert judged.rows == [
        ("accuracy, updates 1,500 to 2,000", "process", "2.13 points", "1.11 points", "differs"),
        ("bytes per push", "process", "2.13 %", "1.11 %", "agrees"),
        ("staleness", "process", "0.0213", "0.0111", "agrees"),
    ]
    assert versions.rows[0] == ("100", "61.23", "± 2.00", "-1.23 [-3.00, +0.54]")


@pytest.mark.parametrize("count", [1, ROWS_MAX, ROWS_MAX + 1, 100])
def test_a_long_training_is_shown_in_few_rows_that_end_with_the_last(count: int) -> None:
    """Evenly spaced."""
    _, versions, _ = grids(agreements(judgement("process"), versions=count).trials[0]).values()
    shown = [int(row[0].replace(",", "")) for row in versions.rows]

    assert shown[-1] == 100 * count
    assert min(count, ROWS_MAX // 2) <= len(shown) <= ROWS_MAX
    assert len({after - before for before, after in itertools.pairwise(shown)}) <= 1


def test_the_terminal_shows_tables_notes_and_the_verdict_last() -> None:
    """On a narrow one as well."""
    stream = io.StringIO()
    show(agreement_brief(agreements(judgement("process"))), Console(file=stream, width=60))
    lines = stream.getvalue().splitlines()

    assert lines[0] == "agree, adacomp: seeds 1, 2"
    assert lines[-2:] == ["note: a busy host", "process agrees with simulation within what seeds differ by."]
