"""Small tables in HTML, as notebooks show results; every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from edgebed.core.quantities import UNMEASURED, bytes_text, number_text, seconds_text
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import TrialSummary


def trials_html(title: str, trials: Iterable[TrialSummary]) -> str:
    """A row for each trial; payload is that of both directions, of shards that of all messages."""
    trials = list(trials)
    words = " or ".join(dict.fromkeys(each.headline.words for each in trials))
    rows = [
        (
            each.trial,
            outcome_text(each),
            each.headline.text(each.final.get(each.headline.name)),
            each.headline.text(each.best.get(each.headline.name)),
            number_text(each.updates),
            seconds_text(each.time_s),
            bytes_text(each.own.payload_bytes if each.own else None),
        )
        for each in trials
    ]
    return table_html(title, ("trial", "outcome", words, "best", "updates", "time", "payload"), rows)


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table under a title; the first column names the rows. A column without any value is left out."""
    told = [list(row) for row in rows]
    kept = [place for place in range(len(head)) if not told or any(row[place] != UNMEASURED for row in told)]
    heads = "".join(f"<th>{escape(head[place])}</th>" for place in kept)
    lines = "".join(f"<tr>{''.join(_cell(row[place], place) for place in kept)}</tr>" for row in told)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(text: str, place: int) -> str:
    return f"<td>{escape(text)}</td>" if place else f"<th>{escape(text)}</th>"
