"""Quantities as people read them: three significant digits, decimal units, a dash for what was not measured."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence

UNMEASURED = "–"
NOT_FINITE = "not finite"
"""Text for a value of a computation that diverged."""
VERDICTS = ("degraded", "trusted", "modelled", "unknown")
"""Verdicts on a trial's conditions; a measure or metric of one is its index here."""
RESULTS = ("no result", "accounting does not close", "interrupted", "diverged", "not met", "completed", "met")
"""Results of a trial that is over, the gravest first; a metric of one is its index here."""
HUGE = 1e15
"""Numbers from which on nobody counts digits."""


def bytes_text(value: float | None) -> str:
    """Bytes with a decimal unit, e.g. 12.7 kB, 254 MB."""
    if value is None or not math.isfinite(value):
        return _absent(value)
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor * 0.9995:
            return f"{number_text(value / factor)} {unit}"
    return f"{number_text(value)} B"


def operations_text(value: float) -> str:
    """Floating-point operations with a decimal unit, e.g. 130 MFLOP; of a speed `/s` follows."""
    for factor, unit in ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")):
        if value >= factor * 0.9995:
            return f"{number_text(value / factor)} {unit}"
    return f"{number_text(value / 1e3)} kFLOP"


def number_text(value: float | None) -> str:
    """A number to three significant digits, whole numbers from 100 to 1e15 with thousands set apart by a comma."""
    if value is None or not math.isfinite(value):
        return _absent(value)
    if abs(value) >= HUGE or 0.0 < abs(value) < 0.001:
        return f"{value:.3g}"
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ms_text(seconds: float) -> str:
    """Seconds in milliseconds, e.g. `57 ms`."""
    return f"{number_text(1000 * seconds)} ms"


def percent_text(value: float | None) -> str:
    """A fraction as per cent with two decimals, e.g. 97.25 %."""
    return _absent(value) if value is None or not math.isfinite(value) else f"{100 * value:.2f} %"


def seconds_text(value: float | None) -> str:
    """A duration: 0.42 s, 12.3 s, 3 min 05 s, 2 h 07 min."""
    if value is None or not math.isfinite(value):
        return _absent(value)
    if value < 0:
        return f"-{seconds_text(-value)}"
    if value < 99.95:
        return f"{value:.1f} s" if value >= 9.995 else f"{value:.2f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def mean_of_text(window: int) -> str:
    """Words behind a value that the mean of several evaluations must reach; empty for one."""
    return f" in the mean of {window} evaluations" if window > 1 else ""


def factor_text(factor: float) -> str:
    """A factor as text: 1.08, 12.3."""
    return f"{factor:.2f}" if factor < 10 else number_text(factor)


def updates_text(examples_per_update: Mapping[str, float | None]) -> str:
    """Return what an update of each trial, by name, stands for, where that is not the same in all; else "".

    E.g. `An update stands for 10 training examples in asgd, for 600 in fedavg.`
    """
    names: dict[str, list[str]] = {}
    for name, examples in examples_per_update.items():
        names.setdefault(number_text(examples), []).append(name)
    if len(names) < 2:
        return ""
    parts = [f"{text} in {all_text(each)}" for text, each in names.items()]
    return f"An update stands for {', for '.join(parts).replace(' in ', ' training examples in ', 1)}."


def count_text(count: int, noun: str) -> str:
    """A count with its noun, e.g. 1 worker, 2 workers."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def all_text(names: Iterable[str]) -> str:
    """All names, e.g. `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def first_text(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first names, `most` of them, and how many more there are, e.g. `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"


def utc_text(moment: str) -> str:
    """A moment of ISO 8601 as a date and a time of the day in UTC, e.g. 20 November 2026, 13:56 UTC; "" for none."""
    return f"{dt.datetime.fromisoformat(moment).astimezone(dt.UTC):%-d %B %Y, %H:%M} UTC" if moment else ""


def local_text(moment: str) -> str:
    """A moment of ISO 8601 in a list, in this machine's time, e.g. 2026-11-20 13:56; "" for none."""
    return f"{dt.datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}" if moment else ""


def rate_text(bit_s: float | None) -> str:
    """Bits a second in tc's units, e.g. 9.94 mbit."""
    if bit_s is None or not math.isfinite(bit_s):
        return _absent(bit_s)
    for factor, unit in ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")):
        if abs(bit_s) >= factor * 0.9995:
            return f"{number_text(bit_s / factor)} {unit}"
    return f"{number_text(bit_s)} bit"


def verdict_text(place: float | None) -> str:
    """The verdict on a trial's conditions as a word, by its place in VERDICTS."""
    return _absent(place) if place is None else VERDICTS[int(place)]


def _absent(value: float | None) -> str:
    return UNMEASURED if value is None else NOT_FINITE


def not_finite_text(what: str, tensor: str) -> str:
    """What was not finite, in words, e.g. `buffer mask`, `gradient of out.weight`, `loss`."""
    between = " " if what in ("parameter", "buffer") else " of "
    return f"{what}{between}{tensor}" if tensor else what


def largest_share(counts: Sequence[int]) -> tuple[int, float] | None:
    """Return the place of the largest of some counts, and its share of all; None where nothing was counted."""
    total = sum(counts)
    return (counts.index(max(counts)), max(counts) / total) if total else None
