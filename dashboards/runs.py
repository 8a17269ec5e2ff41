"""Runs: what ran, when, what came of it; each leads to the other dashboards with the time that it took."""

from typing import Any

from dashboards.building.frame import whole
from dashboards.building.panels import linked, rows, sorted_by, worded
from dashboards.building.queries import HEADLINE
from dashboards.run_overview import RESULT_COLORS, VERDICTS

NAME = "runs"
START, INFO = "edgebed_run_start_timestamp_seconds", "edgebed_run_info"
BY = "run, trial"
TESTED = f'{HEADLINE}{{split="test"}}'
SCRAPE_S, AROUND_S = 5, 15
"""Prometheus asks as often; and what is shown after the last answer."""


def last(metric: str, how: str = "max") -> str:
    """The last value of each trial's that Prometheus has seen in the time that is shown."""
    return f"{how} by ({BY}) (last_over_time({metric}[$__range]))"


def all_runs() -> Any:
    """A row for each trial of each run."""
    runtime = f"max by ({BY}, algorithm, runtime, seed) (last_over_time({INFO}[$__range]))"
    headline = f"max by ({BY}, measure) (last_over_time({TESTED}[$__range]))"
    measure = f"count by ({BY}, measure) ({headline})"
    told = f"{runtime} * 0 * on ({BY}) group_left (measure) {measure}"
    length = f"{SCRAPE_S} * sum by ({BY}) (count_over_time({INFO}[$__range]))"
    table = rows(
        24,
        20,
        "All runs",
        "What Prometheus saw in the time shown; a run leads to its dashboards, from its beginning to its end or now.",
        {
            "run": "Run", "trial": "Trial", "algorithm": "Method", "runtime": "Runtime", "seed": "Seed",
            "measure": "Headline",
        },
        (f"{told} + on ({BY}) group_left () floor(1000 * {last(START)})", "Begin", "dateTimeAsIso"),
        (f"floor(1000 * ({last(START)} + {length} + {AROUND_S}))", "End", "dateTimeAsIso"),
        (length, "Length", "s"),
        (last("edgebed_model_version"), "Updates", "short"),
        (headline, "Value", "none"),
        (last("edgebed_run_update_bytes_total"), "Total up", "decbytes"),
        (last("edgebed_run_pull_bytes_total"), "Total down", "decbytes"),
        (last("edgebed_trial_result"), "Result", "none"),
        (last("edgebed_trial_verdict"), "Verdict", "none"),
    )  # fmt: skip
    there = "${datasource:queryparam}&var-run=${__data.fields.Run}&from=${__data.fields.Begin.numeric}"
    end = "to=${__data.fields.End.numeric}"
    linked(
        table,
        "Run",
        ("How it went: from its beginning to its end", f"/d/edgebed-run-overview?{there}&{end}"),
        ("How it goes: from its beginning until now", f"/d/edgebed-run-overview?{there}&to=now"),
        ("Its workers", f"/d/edgebed-workers?{there}&{end}"),
        ("Compare it with another", f"/d/edgebed-comparison?{there}&{end}&var-trial_a=${{__data.fields.Trial}}"),
    )
    worded(worded(table, "Result", RESULT_COLORS), "Verdict", VERDICTS)
    return sorted_by(table, "Begin", descending=True)


def build() -> str:
    """The dashboard as JSON."""
    about = "What ran, when, and what came of it?"
    return whole(NAME, "Runs", about, [], [], {"": [all_runs()]}, runs=(), since="now-7d")
