"""The tables of a comparison, how to read them, and its trials for spreadsheets."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping

from edgebed.core.measures.clients import STATISTICS
from edgebed.core.measures.measure import SHARE, Unit, unit_of
from edgebed.core.measures.measure import Measure as OfTrials
from edgebed.core.measures.task import TEST, VALIDATION, TaskMeasure
from edgebed.core.quantities import UNMEASURED, all_text, count_text, number_text, percent_text, updates_text
from edgebed.reports.writing.page import Grid, Span, Text
from edgebed.studies.comparison.clients import CHOSEN
from edgebed.studies.comparison.comparison import REACHED, ArmResult, Comparison, Measure, Outcome
from edgebed.studies.measures import Level
from edgebed.studies.statistics import ConfidenceInterval, detectable, detectable_ratio

Write = Callable[[float | None], str]
Columns = dict[str, OfTrials]
"""Measures by their names in a comparison."""
OUTCOME = ("arm", "scenario", "trial", "runtime", "run", "seed", "measure", "to", "diverged")
"""What the CSV has of each trial before its measures."""
DETECTABLE = {"updates_to": "updates", "time_s_to": "time", "traffic_bytes_to": "bytes"}
"""Measures, in words, for which the legend states the power of their tests, beside the headline's best value."""
DISPENSABLE = ("highest", "lowest", "seeds", "a push", "updates", "time", "up", "down", "diverged", "final")
"""Columns that a narrow terminal leaves out, first to last."""
LEAD = ("highest", "lowest", "final")
"""Kinds of columns whose headings begin with them."""


def grids(comparison: Comparison) -> dict[str, Grid]:
    """The tables by title: whole trials, and what it took to reach the level, plain and against the baseline."""
    whole, reached = _columns(comparison)
    found = {}
    to = comparison.level.text if comparison.level else UNMEASURED
    for title, columns in (("Whole trials", whole), (f"To {to}", reached)):
        if columns:
            found[title] = _grid(comparison, columns)
        if columns and len(comparison.arms) > 1:
            found[f"{title} against {comparison.baseline}"] = _grid_against(comparison, columns)
    return found


def clients_grid(comparison: Comparison) -> Grid:
    """What each arm does to the clients, a row each."""
    headline = comparison.headline
    rows = [
        (
            name,
            *(mean_text(each.spreads[statistic], headline.text) for statistic in STATISTICS),
            UNMEASURED if each.worse is None else percent_text(each.worse),
            UNMEASURED if each.better is None else percent_text(each.better),
            _most_lost(each.gains, headline),
        )
        for name, each in comparison.clients.items()
    ]
    head = ("arm", *(statistic.replace("_", " ") for statistic in STATISTICS), "worse", "better", "loses most")
    return Grid(head, rows).without_empty_columns()


def clients_legend(comparison: Comparison) -> str:
    """What the table of clients shows."""
    if not comparison.clients:
        return ""
    absent = [name for name in comparison.arms if name not in comparison.clients]
    lacking = f" Not measured so in each seed: {', '.join(absent)}." if absent else ""
    chosen = ""
    if any(CHOSEN.format(name) in comparison.clients for name in comparison.arms):
        chosen = (
            " Where validation was best: by that one of the versions measured so, against the baseline's if it has one."
        )
    return (
        f"{comparison.headline.title} of the last models by client, means over seeds; a decile is a tenth of the "
        "clients, of one at least. Worse, better: share of the clients whose value is so against "
        f"{comparison.baseline}, in the mean over seeds, client by client.{chosen}{lacking}"
    )


def _most_lost(gains: Mapping[str, float], headline: TaskMeasure) -> str:
    """The client that loses most against the baseline."""
    lost = {name: gain for name, gain in gains.items() if gain < 0}
    if not lost:
        return UNMEASURED
    name = min(lost, key=lost.__getitem__)
    return f"{name}, {headline.points_text(-lost[name])}"


def how_to_read(comparison: Comparison) -> tuple[str, ...]:
    """How to read the tables."""
    if comparison.told is not None:
        last = "Last, lowest and highest are of what any node told. " if comparison.told else ""
        sent = (
            "Traffic is what all nodes sent over their links, headers included; time is since all programs were ready."
        )
        return (f"{last}{sent}", *_intervals(comparison))
    headline, level = comparison.headline, comparison.level
    words = headline.words
    highest, high = _highest(headline), "high" if headline.better == "more" else "low"
    what = (
        "exchanged is the payload of all messages"
        if comparison.family == "shards"
        else "up is the payload of the pushes, down that of the models sent to workers"
    )
    evaluation = (
        "single evaluation" if comparison.window == 1 else f"moving average over {comparison.window} evaluations"
    )
    best = f"Best {words} is the {highest} {evaluation}, chosen by the test set and so a little too {high}"
    if comparison.selects_by == VALIDATION:
        best = f"Best {words} is the test part's where the validation part had its {highest} {evaluation}"
    elif comparison.selects_by != TEST:
        best += ", but for trials with a validation part, which chooses instead"
    sentences = [f"{best}; {what}.", *filter(None, [updates_text(comparison.examples_per_update)])]
    sentences += _intervals(comparison)
    if level is None:
        sentences.append(f"There is no {words} that every arm reached in every seed; name one with --to.")
    elif not level.is_named:
        of, without = level.measure, [name for name, arm in comparison.arms.items() if not arm.num_evaluated]
        not_evaluated = f", and {all_text(without)} without a model of all" if without else ""
        sentences.append(
            f"{of.level_text(level.value)} is the {_highest(of)} round {of.words} that every arm reached in every "
            f"seed, but for trials that learnt less than half of what the best one did{not_evaluated}."
        )
    return tuple(sentences)


def _intervals(comparison: Comparison) -> list[str]:
    """What the intervals are, and what differences they would find."""
    sentences = []
    if any(len(arm.outcomes) > 1 for arm in comparison.arms.values()):
        counts = sorted({len(arm.outcomes) for arm in comparison.arms.values()})
        seeds = (f"{counts[0]} to " if len(counts) > 1 else "") + count_text(counts[-1], "seed")
        sentences.append(f"± and (low to high): {100 * comparison.confidence:g} % Student-t interval over {seeds}.")
    if len(comparison.arms) > 1:
        sentences.append(
            f"Against the baseline, seed by seed: {_by_difference(comparison)}by the ratio. An interval that holds a "
            "difference of 0, or a ratio of 1, does not distinguish two arms."
        )
        sentences += [*_detectable(comparison), *_chance(comparison)]
    return sentences


def _highest(measure: TaskMeasure) -> str:
    return "highest" if measure.better == "more" else "lowest"


def _detectable(comparison: Comparison) -> Iterator[str]:
    """Sentences on the differences that each arm's tests would find in eight of ten studies."""
    level, headline = comparison.level, comparison.headline
    to = f" to {level.measure.level_told(level.value)}" if level else ""
    labels = {f"best_{headline.name}": f"best {headline.words}"}
    labels |= {label: f"{words}{to}" for label, words in DETECTABLE.items()}
    if comparison.told is not None:
        labels = {f"final_{headline.name}": f"last {headline.words}", "time_s": "time", "traffic_bytes": "bytes"}
    for name, arm in comparison.arms.items():
        found = [
            f"{text} in {words}"
            for label, words in labels.items()
            if label in arm.measures
            if (text := _detectable_text(arm.measures[label], headline))
        ]
        if found:
            yield (
                f"Eight of ten studies with as many seeds would distinguish {name} from {comparison.baseline} if they "
                f"differed by {', '.join(found)}."
            )


def _chance(comparison: Comparison) -> Iterator[str]:
    """A sentence on how many of the tables' differences there would be with nothing to find."""
    shown = _of_family(comparison, comparison.measures)
    measures = [arm.measures[key] for arm in comparison.arms.values() for key in shown]
    if tested := sum(each.against is not None and _ends(each.against) is not None for each in measures):
        expected = number_text((1 - comparison.confidence) * tested)
        yield (
            f"{count_text(tested, 'comparison')} with an interval: if nothing differed, chance alone would still find "
            f"some {expected} differences. Nothing is corrected for that."
        )


def _by_difference(comparison: Comparison) -> str:
    """What is compared by its difference, where anything is."""
    if comparison.told is not None:
        return "what programs tell, exit codes and restarts by their difference, all else "
    unit = unit_of(comparison.headline)
    if unit.by != "difference":
        return ""
    what = "shares by their difference in points" if unit.is_share else f"{comparison.headline.words} by its difference"
    return f"{what}, all else "


def _detectable_text(measure: Measure, headline: TaskMeasure) -> str:
    """The detectable difference; empty where nothing was tested, or where all seeds are the same."""
    if measure.against is None or _ends(measure.against) is None:
        return ""
    if measure.by == "difference":
        return headline.points_text(detectable(measure.against) or 0.0)
    return f"{number_text(detectable_ratio(measure.against) or 1.0)} ×"


def mean_text(mean: ConfidenceInterval, write: Write) -> str:
    """A mean, e.g. `98.59 % ± 0.11`, without the interval where there is one seed, or where all seeds are the same."""
    ends, text = _ends(mean), write(mean.mean)
    if ends is None:
        return text
    _, space, unit = text.partition(" ")
    return f"{text} ± {write((ends[1] - ends[0]) / 2).removesuffix(space + unit)}"


def difference_text(difference: ConfidenceInterval, unit: Unit = SHARE) -> str:
    """A difference, of shares in points, e.g. `+0.28 (-0.10 to +0.66)`."""
    return _with_ends(difference, unit.change_text)


def ratio_text(ratio: ConfidenceInterval) -> str:
    """A ratio, e.g. `0.116 (0.115 to 0.117)`."""
    return _with_ends(ratio, number_text)


def csv_text(comparison: Comparison) -> str:
    """The trials as CSV, a line each; shares from 0 to 1, seconds, bytes; empty: not measured."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow((*OUTCOME, *comparison.measures))
    for name, arm in comparison.arms.items():
        facts: dict[str, object] = {"arm": name, "scenario": arm.scenario, "trial": arm.trial, "runtime": arm.runtime}
        for outcome in arm.outcomes:
            known = facts | {
                "run": outcome.run,
                "seed": outcome.seed,
                "measure": comparison.level.measure.name if comparison.level else None,
                "to": comparison.level.value if comparison.level else None,
            }
            known |= {"diverged": str(outcome.diverged).lower()}
            writer.writerow((*(known[name] for name in OUTCOME), *map(outcome.value, comparison.measures)))
    return stream.getvalue()


def trials_grid(comparison: Comparison) -> Grid:
    """The trials, a row each."""
    whole, reached = _columns(comparison)
    to = _level_head(comparison.level, comparison.headline) if comparison.level else UNMEASURED
    heads = (*(each.compared for each in whole.values()), *(f"{each.compared} to {to}" for each in reached.values()))
    rows = [
        (name, each.run, str(each.seed), *(_trial_text(each, key, of) for key, of in (whole | reached).items()))
        for name, arm in comparison.arms.items()
        for each in arm.outcomes
    ]
    return Grid(("arm", "run", "seed", *heads), rows)


def _level_head(level: Level, headline: TaskMeasure) -> str:
    """A level in the heading of a column, where of a share of the headline the number says enough, e.g. `90 %`."""
    of = level.measure
    return of.level_text(level.value) if of == headline and of.is_share else of.level_told(level.value)


def _of_family(comparison: Comparison, measures: Columns) -> Columns:
    return {key: each for key, each in measures.items() if each.family in ("all", comparison.family)}


def _columns(comparison: Comparison) -> tuple[Columns, Columns]:
    """Measures of whole trials, and those of what it took to reach the level, where there is one."""
    reached = {} if comparison.level is None else REACHED
    return _of_family(comparison, comparison.whole), _of_family(comparison, reached)


def _trial_text(outcome: Outcome, key: str, of: OfTrials) -> str:
    if key in REACHED and outcome.reached is None and outcome.was_evaluated:
        return "never: diverged" if outcome.diverged else "never"
    return of.text(outcome.value(key))


def _grid(comparison: Comparison, columns: Columns) -> Grid:
    trains = comparison.told is None
    head = ("arm", "seeds", *(["diverged"] if trains else []), *(each.compared for each in columns.values()))
    rows = [
        (
            name,
            str(len(arm.outcomes)),
            *([diverged_text(arm)] if trains else []),
            *(_value_text(arm, key, each.text) for key, each in columns.items()),
        )
        for name, arm in comparison.arms.items()
    ]
    return Grid(head, rows, dispensable=_dispensable(head))


def diverged_text(arm: ArmResult) -> str:
    """In how many of its seeds an arm diverged, e.g. `1 of 6`."""
    return f"{arm.num_diverged} of {len(arm.outcomes)}"


def _grid_against(comparison: Comparison, columns: Columns) -> Grid:
    units = {key: _change_unit(columns[key].unit) for key in columns}
    head = ("arm", "seeds", *(f"{each.compared}, {units[key]}" for key, each in columns.items()))
    base = set(comparison.arms[comparison.baseline].seeds)
    rows = [
        (
            name,
            str(len(base.intersection(arm.seeds))),
            *(_against_text(arm, key, of.unit) for key, of in columns.items()),
        )
        for name, arm in comparison.arms.items()
        if name != comparison.baseline
    ]
    return Grid(head, rows, dispensable=_dispensable(head))


def _dispensable(head: tuple[str, ...]) -> list[str]:
    """The columns that a narrow terminal leaves out; updates stay where bytes are counted to a level."""
    kinds = [kind for kind in DISPENSABLE if kind != "updates" or not head[-1].startswith("total")]
    return [
        name
        for kind in kinds
        for name in head
        if name.partition(",")[0] == kind or (kind in LEAD and name.startswith(f"{kind} "))
    ]


def _value_text(arm: ArmResult, key: str, write: Write) -> str:
    measure = arm.measures[key]
    if measure.mean is not None:
        return mean_text(measure.mean, write)
    if key not in REACHED or arm.num_reached == arm.num_evaluated:
        return UNMEASURED
    reached = f"in {arm.num_reached} of {arm.num_evaluated} seeds" if arm.num_reached else "never"
    return f"{reached}: {arm.num_diverged} diverged" if arm.num_diverged else reached


def _change_unit(unit: Unit) -> str:
    """What a column of changes is in."""
    return ("points" if unit.is_share else "difference") if unit.by == "difference" else "×"


def _against_text(arm: ArmResult, key: str, unit: Unit) -> Text:
    """An arm against the baseline, faint where the interval includes no difference."""
    measure = arm.measures[key]
    if measure.against is None:
        return "never" if key in REACHED and arm.num_evaluated and not arm.num_reached else UNMEASURED
    is_difference = measure.by == "difference"
    text = difference_text(measure.against, unit) if is_difference else ratio_text(measure.against)
    return text if measure.against.excludes(0.0 if is_difference else 1.0) else Span(text, "quiet")


def _with_ends(interval: ConfidenceInterval, write: Callable[[float], str]) -> str:
    ends = _ends(interval)
    if ends is None:
        return write(interval.mean) + (" (in each seed)" if interval.seeds > 1 else "")
    return f"{write(interval.mean)} ({write(ends[0])} to {write(ends[1])})"


def _ends(interval: ConfidenceInterval) -> tuple[float, float] | None:
    """The ends of an interval; None where there is one seed, or where all seeds are the same but for rounding."""
    low, high = interval.low, interval.high
    if low is None or high is None or high - low <= 1e-9 * abs(interval.mean):
        return None
    return low, high
