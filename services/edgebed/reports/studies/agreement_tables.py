"""Whether runtimes agree, in words and tables."""

from collections.abc import Callable, Iterator, Sequence

from edgebed.core.measures.measure import Unit, unit_of
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import bytes_text, count_text, number_text
from edgebed.reports.writing.page import Grid
from edgebed.studies.agreement.agreement import (  # fmt: skip
    NEGLIGIBLE_BYTES,
    NEGLIGIBLE_STALENESS,
    SEEDS_TO_TELL,
    Agreement,
    Figures,
    Judgement,
    Version,
)
from edgebed.studies.agreement.run_agreement import Agreements
from edgebed.studies.statistics import ConfidenceInterval

ROWS_MAX = 13
"""Versions in a table; the JSON has all."""
FIGURES: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("diverged", lambda figures: f"{figures.diverged} of {figures.final.seeds}"),
    ("updates a second", lambda figures: number_text(figures.updates_per_s.mean)),
    ("entries per push", lambda figures: number_text(figures.entries.mean)),
    ("bytes per push", lambda figures: bytes_text(figures.bytes.mean)),
    ("staleness: mean", lambda figures: number_text(figures.staleness_mean)),
    ("staleness: median", lambda figures: number_text(figures.staleness_median)),
    ("staleness: 90 %", lambda figures: number_text(figures.staleness_p90)),
    ("staleness: 99 %", lambda figures: number_text(figures.staleness_p99)),
)
DETECTABLE = 1.6
"""Number of standard deviations over seeds by which values must differ to be found in eight of ten studies, with
two to ten seeds; drawn at random, see docs/agreement.md."""
JUDGED_HEAD = ("judged", "runtime", "differs by", "allowed", "verdict")


def grids(trial: Agreement) -> dict[str, Grid]:
    """The tables of a trial by title: figures of each runtime, the headline by version, what was judged."""
    headline = trial.headline
    finals = (f"final {headline.words}", *(headline.text(each.final.mean) for each in trial.figures.values()))
    rows = [finals, *((name, *map(text, trial.figures.values())) for name, text in FIGURES)]
    head = ("updates", trial.reference, "over seeds", *trial.versions[0].others)
    unit = f" ({headline.symbol})" if headline.symbol else ""
    points = " in points" if headline.is_share else ""
    versions = (
        f"{headline.title}{unit}: mean ± standard deviation over seeds; differences{points}, run by run of one seed"
    )
    return {
        "Each runtime, mean over seeds": Grid(("", *trial.figures), rows),
        versions: Grid(head, list(_version_rows(_shown(trial.versions), headline))),
        "What was judged": Grid(JUDGED_HEAD, [_judged_row(each, headline) for each in trial.judgements]),
    }


def how_to_read(trial: Agreement) -> tuple[str, ...]:
    """Sentences on what the tables rest on."""
    least = f"{100 * NEGLIGIBLE_BYTES:g} % of the bytes and {NEGLIGIBLE_STALENESS:g} of staleness (Kolmogorov-Smirnov)"
    seeds = f"two seeds of {trial.reference} or of the other runtime differ by (root mean square)"
    left_out = count_text(trial.versions_left_out, "version")
    return (
        "in brackets: 95 % interval of Student's t over pairs of runs",
        f"allowed: what {seeds}, and at least {least}",
        f"found in eight of ten studies: values that differ by {DETECTABLE:g} standard deviations over seeds",
        *((f"left out: {left_out} that not every run evaluated",) if trial.versions_left_out else ()),
    )


def title_of(agreements: Agreements, trial: Agreement) -> str:
    """Title of a trial's tables, e.g. `hardy2017-agree-20, adacomp: seeds 1, 2, 3`."""
    return f"{agreements.scenario}, {trial.trial}: seeds {', '.join(map(str, trial.seeds))}"


def verdict_text(agreements: Agreements) -> str:
    """The verdict in a sentence."""
    reference, *others = agreements.runs
    differing = [
        f"{trial.trial}, {judgement.runtime}: {_what_text(judgement, trial.headline)}"
        for trial in agreements.trials
        for judgement in trial.judgements
        if judgement.verdict == "differs"
    ]
    if differing:
        return f"Further from {reference} than two seeds are from each other: {'; '.join(differing)}."
    if agreements.verdict == "too few seeds to tell":
        return (
            f"Too few seeds to tell whether {' and '.join(others)} {'agree' if len(others) > 1 else 'agrees'} with "
            f"{reference}: run {SEEDS_TO_TELL} at least, better 5."
        )
    verb = "agree" if len(others) > 1 else "agrees"
    return f"{' and '.join(others)} {verb} with {reference} within what seeds differ by."


def _version_rows(versions: Sequence[Version], headline: TaskMeasure) -> Iterator[tuple[str, ...]]:
    """Values without their unit, which the title has."""

    def text(value: float) -> str:
        return headline.text(value).removesuffix(headline.symbol).rstrip()

    for version in versions:
        differences = (_difference_text(other.difference, unit_of(headline)) for other in version.others.values())
        yield f"{version.version:,}", text(version.mean), f"± {text(version.spread)}", *differences


def _shown(versions: Sequence[Version]) -> list[Version]:
    """At most ROWS_MAX of the versions, at equal distances, with the last."""
    every = -(-len(versions) // ROWS_MAX)
    return list(versions[::-1][::every][::-1])


def _difference_text(difference: ConfidenceInterval, unit: Unit) -> str:
    mean, low, high = (unit.change_text(value) for value in (difference.mean, *difference.ends))
    return mean if difference.low is None else f"{mean} [{low}, {high}]"


def _judged_row(judgement: Judgement, headline: TaskMeasure) -> tuple[str, ...]:
    differs, allowed = (
        _amount_text(judgement, headline, amount) for amount in (judgement.difference, judgement.allowed)
    )
    return _what_text(judgement, headline), judgement.runtime, differs, allowed, judgement.verdict


def _what_text(judgement: Judgement, headline: TaskMeasure) -> str:
    """What was judged, e.g. `entries per push`."""
    if judgement.versions is None:
        return "staleness" if judgement.measure == "staleness" else f"{judgement.measure} per push"
    first, last = judgement.versions
    return f"{headline.words}, updates {first:,} to {last:,}" if last > first else f"{headline.words} at {last:,}"


def _amount_text(judgement: Judgement, headline: TaskMeasure, amount: float) -> str:
    """A difference in its unit: points of the headline, per cent of the mean, distance of distributions."""
    if judgement.versions is not None:
        return headline.points_text(amount)
    return f"{amount:.4f}" if judgement.measure == "staleness" else f"{100 * amount:.2f} %"
