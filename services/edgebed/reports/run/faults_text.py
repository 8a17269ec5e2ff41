"""What became of updates, or of shards' steps, and what was done to nodes: for the report and the terminal."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from edgebed.core.actions import BRINGS_BACK
from edgebed.core.quantities import UNMEASURED, count_text, seconds_text
from edgebed.journal.accounts.ledger import Accounting, Ledger
from edgebed.journal.missed_faults import Missed
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.summary import TrialSummary
from edgebed.roles.control.fault_text import AS_PLANNED, change_text, trigger_text

FAULT_HEAD = ("fault", "what", "nodes", "asked", "done after", "back after", "away for", "because")
FAULT_LEGEND = (
    "asked: since training began; done after: how much later, at most; back after: from then until the server heard of "
    "the node (the server itself: until it heard of any), at most; away for: the same since the node was taken away, "
    "or until training ended"
)
PROGRAM_FAULT_LEGEND = (
    "asked: since all programs were ready; done after: how much later, at most; back after: from a launch until the "
    "program was ready; after a heal or a thaw it is there at once, and when others heard of it is not known"
)
NAMED_MAX = 3
NOT_BACK = " until the end: not back"
AT_ONCE_S = 0.005
"""Seconds that two digits after the point would show as none."""


class Words(NamedTuple):
    """Words for the accounting of a kind of training."""

    unit: str
    began: str
    kept: str
    """The word for updates or steps that are in the final model."""
    rows: tuple[tuple[str, str], ...]
    """Fields of a ledger, with the words for what they count."""
    legend: str
    """A sentence on what is assumed."""


UPDATES = Words(
    "update",
    "updates that workers began",
    "applied",
    (
        ("lost_in_flight", "lost in flight"),
        ("lost_with_worker", "lost with a worker"),
        ("lost_with_server", "lost with the server"),
        ("unfinished", "unfinished at the end"),
        ("unexplained", "unexplained"),
    ),
    "lost with a worker: the update that it was at when it died. One that is killed in a live run, or whose controller "
    "had died, cannot say which; if all that it is known to have begun had been answered, it is taken to have been at "
    "the next",
)
STEPS = Words(
    "step",
    "steps that shards began",
    "made",
    (
        ("lost_with_worker", "lost with a shard"),
        ("lost_with_server", "lost with the server"),
        ("rolled_back", "rolled back"),
        ("unfinished", "unfinished, or too late for the final model"),
        ("unexplained", "unexplained"),
    ),
    "lost with a shard: the step that it was at when it died. One that is killed in a live run cannot say which; if it "
    "had made all that it is known to have begun, it is taken to have been at the next",
)


def accounting_rows(accountings: Sequence[Accounting | None], words: Words) -> Iterator[tuple[str, ...]]:
    """Rows on what became of updates or steps, a column for each trial."""
    totals = [accounting.total if accounting else None for accounting in accountings]

    def row(label: str, count: Callable[[Ledger], int]) -> tuple[str, ...]:
        return (label, *(UNMEASURED if total is None else f"{count(total):,}" for total in totals))

    yield row(words.began, lambda total: total.begun)
    yield row(f"= {words.kept}: they are in the final model", lambda total: total.applied)
    for code in sorted({code for total in totals if total for code in total.refused}):
        yield row(f"+ refused: {code}", lambda total, code=code: total.refused.get(code, 0))  # type: ignore[misc]
    for name, label in words.rows:
        yield row(f"+ {label}", attrgetter(name))
    yield (f"is every {words.unit} accounted for?", *(closing_text(accounting) for accounting in accountings))


def accounting_legend(accountings: Sequence[Accounting | None], words: Words) -> str:
    """A sentence on what a figure that may be assumed stands for; empty where there is none."""
    return words.legend if any(each and each.total.lost_with_worker for each in accountings) else ""


def closing_text(accounting: Accounting | None) -> str:
    """Whether the accounting closes, or why not."""
    if accounting is None:
        return UNMEASURED
    return "yes" if accounting.closes else f"no: {'; '.join(accounting.problems)}"


def accounting_line(trial: TrialSummary) -> str | None:
    """The accounting in a line, e.g. `9 updates begun: 6 applied, 1 refused (late), …`; None where all is well."""
    if trial.accounting is None:
        return None
    total, words = trial.accounting.total, STEPS if trial.shards else UPDATES
    if trial.accounting.closes and total.begun == total.applied + total.unfinished:
        return None
    refused = ", ".join(f"{count:,} refused ({code})" for code, count in total.refused.items())
    others = ", ".join(f"{count:,} {label}" for name, label in words.rows if (count := getattr(total, name)))
    parts = ", ".join(filter(None, (f"{total.applied:,} {words.kept}", refused, others)))
    closing = "all accounted for" if trial.accounting.closes else "not all accounted for"
    return f"{count_text(total.begun, words.unit)} begun: {parts}; {closing}"


def faults_line(trial: TrialSummary, faults: Sequence[TimedFault]) -> str | None:
    """All faults in a line, e.g. `faults: 1 × kill, 1 × launch; back within 0.41 s; longest away: edge-0 5.41 s`.

    Of a node that was not back when training ended: `edge-0 27.0 s until the end: not back`.
    """
    counts = Counter(done.record.action for done in faults if done.was_done)
    if not faults and not trial.faults_missed:
        return None
    parts = [", ".join(f"{count:,} × {action}" for action, count in counts.items()) or "none done"]
    if trial.fault_delay_s:
        parts.append(f"done within {delay_text(trial.fault_delay_s)}")
    back_s = [done.back_s for done in faults if done.back_s is not None]
    if back_s:
        parts.append("back at once" if max(back_s) < AT_ONCE_S else f"back within {seconds_text(max(back_s))}")
    if away := _longest_away(trial, faults):
        parts.append(f"longest away: {', '.join(f'{node} {text}' for node, text in away)}")
    no_op = sum(bool(done.record.no_op) for done in faults)
    parts += [f"{no_op:,} had nothing to do"] if no_op else []
    parts += [f"{trial.faults_failed:,} could not be done"] if trial.faults_failed else []
    parts += [f"{trial.faults_missed:,} did not happen"] if trial.faults_missed else []
    return f"faults: {'; '.join(parts)}"


def _longest_away(trial: TrialSummary, faults: Sequence[TimedFault]) -> list[tuple[str, str]]:
    """The nodes that were away for longest, with how long that was."""
    longest = {node: (away_s, NOT_BACK) for node, away_s in trial.gone.items()}
    for done in faults:
        if done.away_s is not None and done.back_s is not None:
            longest[done.record.target] = max((done.away_s, ""), longest.get(done.record.target, (0.0, "")))
    most = sorted(longest.items(), key=lambda each: -each[1][0])[:NAMED_MAX]
    return [(node, f"{seconds_text(away_s)}{until}") for node, (away_s, until) in most]


def fault_rows(faults: Sequence[TimedFault], missed: Sequence[Missed] = ()) -> Iterator[tuple[str, ...]]:
    """Rows under FAULT_HEAD: what was asked of several nodes at the same moment is one row.

    What did not happen of an entry is one row, at however many moments.
    """
    for _, group in groupby(sorted(faults, key=_asked), key=_asked):
        together = list(group)
        record = together[0].record
        yield (
            record.name,
            f"{record.action} {record.change}".rstrip(),
            _names_text(done.record.target for done in together),
            seconds_text(together[0].asked_t),
            _done_text(together),
            _back_text(together),
            _away_text(together),
            record.trigger,
        )
    entries: dict[tuple[str, str, str], list[Missed]] = {}
    for each in missed:
        entries.setdefault((each.fault.name, each.begins_with.action, each.no_op), []).append(each)
    yield from map(_missed_row, entries.values())


def _missed_row(entry: Sequence[Missed]) -> tuple[str, ...]:
    first = entry[0]
    trigger, times = first.fault.trigger, f" ({len(entry):,} times)" if len(entry) > 1 else ""
    return (
        first.fault.name,
        f"{first.begins_with.action} {change_text(first.begins_with)}".rstrip(),
        _names_text(dict.fromkeys(each.fault.node for each in entry)),
        UNMEASURED if trigger.at_s is None else seconds_text(trigger.at_s),
        f"did not happen{times}" + (f": {first.no_op}" if first.no_op else ""),
        "",
        "",
        trigger_text(trigger, trigger.step),
    )


def links_changed(faults: Iterable[TimedFault]) -> Iterator[str]:
    """Yield what faults, or a user, have made of each link, and nobody has undone."""
    changes: dict[tuple[str, str], list[str]] = {}
    for done in faults:
        record = done.record
        if record.action == "link" and not record.problem:
            in_force = changes.setdefault((record.target, record.peer), [])
            if record.change.startswith(AS_PLANNED):
                in_force.clear()
            else:
                in_force.append(f"{record.change} since {seconds_text(done.t)} of training ({record.name})")
    yield from (f"{node} changed: {'; '.join(in_force)}" for (node, _), in_force in changes.items() if in_force)


def delay_text(delay_s: float) -> str:
    """A delay, in milliseconds while they are few."""
    return f"{1000 * delay_s:.0f} ms" if delay_s < 1.0 else seconds_text(delay_s)


def _asked(done: TimedFault) -> tuple[float, str, str, str, str, str]:
    """A key that is the same for faults shown together."""
    record = done.record
    return (done.asked_t, record.name, record.action, record.change, record.problem, record.no_op)


def _names_text(nodes: Iterable[str]) -> str:
    names = list(nodes)
    more = len(names) - NAMED_MAX
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:NAMED_MAX])} and {more:,} more"


def _done_text(alike: Sequence[TimedFault]) -> str:
    record = alike[0].record
    if record.problem:
        return f"could not be done: {record.problem}"
    if record.no_op:
        return f"nothing to do: {record.no_op}"
    return delay_text(max(done.delay_s for done in alike))


def _back_text(alike: Sequence[TimedFault]) -> str:
    if alike[0].record.action not in BRINGS_BACK or not alike[0].was_done:
        return ""
    known = [done.back_s for done in alike if done.back_s is not None]
    never = len(alike) - len(known)
    text = seconds_text(max(known)) if known else "not back"
    return f"{text}, {never} not back" if known and never else text


def _away_text(alike: Sequence[TimedFault]) -> str:
    """How long nodes were away, at most: those that were back, and those that were not."""
    back_s = [done.away_s for done in alike if done.away_s is not None and not done.is_to_end]
    to_end_s = [done.away_s for done in alike if done.away_s is not None and done.is_to_end]
    texts = [seconds_text(max(back_s))] if back_s else []
    texts += [f"{seconds_text(max(to_end_s))}{NOT_BACK}"] if to_end_s else []
    return ", ".join(texts)
