"""Whether virtual time ranks as live runs do, in words and tables."""

import re
from collections.abc import Iterator, Mapping, Sequence

from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, number_text, seconds_text
from edgebed.reports.writing.page import Grid
from validation.ranking.rank_statistics import Equivalence, Error, Tau
from validation.ranking.ranking import DISTANCE, RATIOS, Compared, Measure, OfTrait, Pair, Place, Ranking

WORST = 10
"""Number of places with the largest errors that are named."""


def verdict_text(ranking: Ranking) -> str:
    """The verdict in a sentence: with tau by measure, then what is equivalent and what is not."""
    time, *others = (f"{tau_text(tau)} in {measure}" for measure, tau in ranking.taus.items())
    tests = {measure: test.verdict == "equivalent" for measure, test in ranking.tests.items()}
    same, other = ([measure for measure, held in tests.items() if held is wanted] for wanted in (True, False))
    equal = f"equivalent within the margins: {', '.join(same) or 'nothing'}"
    rest = f"; not shown to be: {', '.join(other)}" if other else ""
    return f"{ranking.verdict}: tau {time}; {', '.join(others)}. RunOptions are {equal}{rest}."


def tau_text(tau: Tau) -> str:
    """Tau with its interval, e.g. `0.97 (0.93 to 1.00)`."""
    if tau.tau is None:
        return "unknown"
    return f"{tau.tau:.2f} ({tau.low:.2f} to {tau.high:.2f})"


def ranks_grid(ranking: Ranking) -> Grid:
    """A table of tau by measure."""
    rows = [
        (measure, tau_text(tau), str(tau.pairs), str(tau.turned), str(tau.tied))
        for measure, tau in ranking.taus.items()
    ]
    return Grid(("order by", "tau", "pairs told apart live", "turned", "tied"), rows)


def errors_grid(ranking: Ranking) -> Grid:
    """A table of the sizes of errors by measure."""
    rows = [(name, *_error_texts(name, error)) for name, error in ranking.errors.items()]
    return Grid(("error of", "median", "95 % are within", "largest", "places"), rows, dispensable=("places",))


def null_grid(ranking: Ranking) -> Grid:
    """A table of the time by virtual time and by the one-line estimate, over the same pairs and places."""
    rows = [_null_row("virtual time", ranking.taus["time"], ranking.errors["time"])]
    if ranking.null:
        rows.append(_null_row("estimate in one line", ranking.null.tau, ranking.null.error))
    return Grid(("time by", "tau", "right", "turned", "tied", "median error", "95 % are within", "places"), rows)


def _null_row(name: str, tau: Tau, error: Error) -> tuple[str, ...]:
    right = tau.pairs - tau.turned - tau.tied
    median, p95, _, places = _error_texts("time", error)
    return name, tau_text(tau), str(right), str(tau.turned), str(tau.tied), median, p95, places


def power_grid(ranking: Ranking) -> Grid:
    """A table of the tau of the time that errors of some sizes would lead to."""
    rows = [
        (_percent(each.deviation), f"{each.tau:.2f}", f"{each.low:.2f} to {each.high:.2f}") for each in ranking.power
    ]
    return Grid(("standard deviation of errors", "tau of the time", "in 95 % of draws"), rows)


def power_text(ranking: Ranking) -> str:
    """What tau tells of errors, and what it does not."""
    found, least = ranking.taus["time"].tau, ranking.stated.tau_min
    if found is None or not ranking.power:
        return "No pair of methods is told apart live by its time, so tau tells nothing of errors."
    reach = [each.deviation for each in ranking.power if each.tau >= least]
    most = f"errors of up to {_percent(max(reach))} leave" if reach else "none of these errors leaves"
    like = [_percent(each.deviation) for each in ranking.power if each.low <= found <= each.high]
    told = "in the range of none of them" if not like else f"in the range of errors of {_listed(like)}"
    return (
        "Tau over the same pairs if each method's simulated time were the live one with an independent error: "
        f"{most} a tau of {least:g} on the mean. The tau that was found, {found:.2f}, is {told}: how large errors are, "
        "the table of errors says, and not tau."
    )


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _listed(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def links_text(ranking: Ranking) -> str:
    """What held the links of the live trials that count, and of how many that was not recorded."""
    parts = [f"{name} in {count}" for name, count in sorted(ranking.links.items()) if name]
    if unknown := ranking.links.get("", 0):
        parts.append(f"not recorded of {unknown}")
    return ", ".join(parts)


def again_text(ranking: Ranking) -> str:
    """How the times of trials that were drawn again stand to those of the trials that count."""
    again = ranking.again
    parts = []
    if again.ratio is not None and again.size_p95 is not None:
        parts.append(
            f"live time over that of the trial that counts of the same method and seed, of {again.compared}: median "
            f"{again.ratio:.3f} ×, 95 % of the differences within {amount('time', again.size_p95)}"
        )
    if again.without_time:
        parts.append(f"no time is recorded of {again.without_time}")
    if again.without_other:
        parts.append(f"no trial of the same method and seed counts of {again.without_other}")
    return "; ".join(parts)


def tests_grid(ranking: Ranking) -> Grid:
    """A table of the equivalence tests of the mean error over scenarios, and how many places pass one over seeds."""
    rows = []
    for measure, test in ranking.tests.items():
        verdicts = [place.measures[measure].test.verdict for place in ranking.places]
        share = f"{verdicts.count('equivalent')} of {len(verdicts)}"
        rows.append(
            (measure, test_text(measure, test), f"± {amount(measure, test.margin)}", _p(test), test.verdict, share)
        )
    return Grid(("mean error of", "mean and 90 % interval", "margin", "p", "verdict", "places by themselves"), rows)


def worst_grid(ranking: Ranking) -> Grid:
    """A table of the places with the largest errors of the time, each with what is special about its scenario."""
    worst = sorted(ranking.places, key=lambda place: -abs(place.measures["time"].error))[:WORST]
    rows = [
        (
            f"{place.scenario}, {place.method}",
            seconds_text(place.measures["time"].simulated),
            seconds_text(place.measures["time"].live),
            signed("time", place.measures["time"].error),
            ", ".join(ranking.stated.drawn[place.scenario]),
        )
        for place in worst
    ]
    return Grid(("where", "simulated", "live", "error", "what is there"), rows, flexible="what is there")


def wrong_grid(ranking: Ranking) -> Grid:
    """A table of the pairs that the simulation does not put in the live order."""
    rows = [
        (pair.scenario, pair.measure, f"{pair.first}, {pair.second}", _contrast(pair, pair.live),
         _contrast(pair, pair.simulated))
        for pair in ranking.wrong
    ]  # fmt: skip
    return Grid(("scenario", "by", "less, more", "live", "simulated"), rows)


def groups_grid(head: str, groups: Mapping[str, OfTrait]) -> Grid:
    """A table of the errors of the time by trait or by method, the worst first."""
    rows = [
        (
            name,
            str(each.scenarios),
            signed("time", each.mean),
            amount("time", each.median),
            amount("time", each.largest),
            f"{each.turned} of {each.pairs}" if each.pairs else UNMEASURED,
        )
        for name, each in sorted(groups.items(), key=lambda item: -abs(item[1].mean))
    ]
    return Grid((head, "scenarios", "mean error", "median size", "largest", "pairs turned or tied"), rows)


def places_grid(ranking: Ranking) -> Grid:
    """A table of every place: simulated and live, and the errors of all measures."""
    return Grid(
        ("where", "time: simulated", "live", "error", "verdict", "bytes up", "bytes down", "staleness", "accuracy"),
        [_place_row(place) for place in ranking.places],
        dispensable=("verdict", "bytes up", "bytes down", "staleness", "accuracy"),
    )


def how_to_read(ranking: Ranking) -> tuple[str, ...]:
    """Sentences on what the tables rest on."""
    stated = ranking.stated
    margins = ", ".join(f"{measure} {amount(measure, stated.margins[measure])}" for measure in ranking.tests)
    again = count_text(len(ranking.drawn_again), "live trial")
    told_apart = f"where the 95 % t interval of their difference over {stated.seeds} live seeds excludes nothing"
    ends = "the wider of a bootstrap over scenarios and the exact one of the share of pairs turned or tied"
    return (
        f"all measures are of the same number of updates, accuracy is the mean over these; live: {stated.runtime}",
        "estimate in one line: updates over the rate that scenarios are drawn by, which is that of links and pauses",
        "an error is the simulation against live: above 0 it is too slow, or too much",
        f"pairs told apart: {told_apart} between the two, seed by seed",
        f"tau: Kendall's tau-b over these pairs of all scenarios; its interval is {ends}",
        "errors: one for each method in each scenario, means over seeds; intervals by bootstrap over scenarios",
        f"equivalent: two one-sided t tests at 5 % over scenarios; margins stated before the first run: {margins}",
        "places by themselves: methods in scenarios that pass that test over their few seeds",
        f"what held the links of the live trials that count: {links_text(ranking)}",
        f"drawn again since their conditions did not hold: {again}, beside {ranking.live_trials} that count",
        *((f"of those drawn again: {again_text(ranking)}",) if ranking.again.trials else ()),
    )


def signed(measure: str, error: float) -> str:
    """An error with its sign, in its unit."""
    text = amount(measure, abs(error))
    is_nothing = not re.search("[1-9]", text)
    return f"{'-' if error < 0 and not is_nothing else '+'}{text}"


def amount(measure: str, size: float) -> str:
    """The size of an error: a share for time and bytes, updates, points of accuracy, a distance from 0 to 1."""
    if measure in RATIOS:
        return f"{100 * size:.2f} %"
    if measure == "accuracy":
        return f"{100 * size:.2f} points"
    return f"{size:.3f}" if measure == DISTANCE else f"{number_text(round(size, 3))} updates"


def test_text(measure: str, test: Equivalence) -> str:
    """A mean error with the interval of its test."""
    if test.low is None or test.high is None:
        return signed(measure, test.mean)
    return f"{signed(measure, test.mean)} ({signed(measure, test.low)} to {signed(measure, test.high)})"


def _p(test: Equivalence) -> str:
    return UNMEASURED if test.p is None else "< 0.001" if test.p < 0.001 else f"{test.p:.3f}"


def _error_texts(name: str, error: Error) -> Iterator[str]:
    for middle, low, high in (
        (error.median, error.median_low, error.median_high),
        (error.p95, error.p95_low, error.p95_high),
    ):
        yield f"{amount(name, middle)} ({amount(name, low)} to {amount(name, high)})"
    yield amount(name, error.largest)
    yield str(error.places)


def _contrast(pair: Pair, value: float) -> str:
    """How the second of a pair stands to the first: a factor, or points of accuracy."""
    return f"{value:.3f} ×" if pair.measure in RATIOS else signed(pair.measure, value)


def _place_row(place: Place) -> Sequence[str]:
    time = place.measures["time"]
    others: tuple[Measure, ...] = ("bytes up", "bytes down", "staleness", "accuracy")
    return (
        f"{place.scenario}, {place.method}",
        seconds_text(time.simulated),
        seconds_text(time.live),
        signed("time", time.error),
        time.test.verdict,
        *(_both(measure, place.measures[measure]) for measure in others),
    )


def _both(measure: Measure, compared: Compared) -> str:
    """The live value and the error."""
    live = {"staleness": number_text(round(compared.live, 2)), "accuracy": f"{100 * compared.live:.2f} %"}
    return f"{live.get(measure) or bytes_text(compared.live)}: {signed(measure, compared.error)}"
