"""Traces that there are, for a terminal and for programs, and where more can be had."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgebed.core.quantities import UNMEASURED, rate_text
from edgebed.core.units import format_duration
from edgebed.reports.writing.page import Grid, Listing, Part, Section, legend
from edgebed.scenario.traces.published import COLLECTIONS
from edgebed.scenario.traces.trace import Rates, Trace

HEAD = ("trace", "family", "length", "up", "down", "licence", "source", "sha256")
DIGITS = 12
LEGEND = "Rates: mean (least to greatest). A scenario names a trace by its name here, or by its file: link_trace: NAME."


def trace_parts(traces: Mapping[str, Trace], folder: Path) -> Iterator[Part]:
    """A row for each trace; and where the public collections are, whose files are converted into `folder`."""
    rows = [
        (
            name,
            trace.about.get("family", UNMEASURED),
            format_duration(trace.period_s),
            _rates_text(trace.up()),
            _rates_text(trace.down()),
            trace.about.get("licence", UNMEASURED),
            trace.about.get("source", UNMEASURED),
            trace.sha256[:DIGITS],
        )
        for name, trace in traces.items()
    ]
    yield Grid(HEAD, rows, ("sha256", "length", "licence"), flexible="source")
    yield legend(LEGEND)
    found = [
        f"{name}: {', '.join(dict.fromkeys(each.families.values()))} ({each.licence}); {each.source}: {each.folders}"
        for name, each in COLLECTIONS.items()
    ]
    command = f"edgebed traces --convert COLLECTION FILES…    into {folder}, or --output FOLDER"
    yield Section("Public collections", [Listing([*found, command])])


def trace_dicts(traces: Mapping[str, Trace]) -> list[dict[str, Any]]:
    """What is known of each trace, for programs."""
    return [
        {
            "name": name,
            **trace.facts(),
            "period_s": trace.period_s,
            "rows": len(trace.changes),
            "up_bit_s": _rates_dict(trace.up()),
            "down_bit_s": _rates_dict(trace.down()),
        }
        for name, trace in traces.items()
    ]


def _rates_text(rates: Rates | None) -> str:
    if rates is None:
        return UNMEASURED
    return f"{rate_text(rates.mean)} ({rate_text(rates.least)} to {rate_text(rates.most)})"


def _rates_dict(rates: Rates | None) -> dict[str, float] | None:
    return None if rates is None else {"mean": round(rates.mean, 1), "least": rates.least, "most": rates.most}
