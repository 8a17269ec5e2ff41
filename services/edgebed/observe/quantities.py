"""Quantities as people read them: three significant digits, decimal units, a dash for what was not measured."""

import math

UNMEASURED = "–"


def bytes_text(value: float | None) -> str:
    """Bytes with a decimal unit, e.g. 12.7 kB, 254 MB."""
    if value is None or not math.isfinite(value):
        return UNMEASURED
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor * 0.9995:
            return f"{number_text(value / factor)} {unit}"
    return f"{number_text(value)} B"


def number_text(value: float | None) -> str:
    """A number to three significant digits, whole numbers from 100 up with thousands set apart by a comma."""
    if value is None or not math.isfinite(value):
        return UNMEASURED
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.3g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}".rstrip("0").rstrip(".")


def percent_text(value: float | None) -> str:
    """A fraction as per cent with two decimals, e.g. 97.25 %."""
    return UNMEASURED if value is None or not math.isfinite(value) else f"{100 * value:.2f} %"


def seconds_text(value: float | None) -> str:
    """A duration: 0.42 s, 12.3 s, 3 min 05 s, 2 h 07 min."""
    if value is None or not math.isfinite(value):
        return UNMEASURED
    if value < 99.95:
        return f"{value:.1f} s" if value >= 9.995 else f"{value:.2f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
