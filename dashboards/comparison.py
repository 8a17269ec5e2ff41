"""Comparison: which of two trials did better, and by how much? Of one run, or of runs at different times.

A is drawn where it was; B is moved by the difference of their beginnings (the hidden variable `shift`, in milliseconds,
and 1 where it would be 0), so that both curves begin together. What needs no time at all is drawn against bytes and
updates.
"""

import re
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

from dashboards.building.frame import OF_TRIAL, STARTS, asked, run_variable, whole
from dashboards.building.panels import PER_SECOND, against, colored, curves, figure, words
from dashboards.building.queries import HEADLINE, Query
from dashboards.run_overview import RESULT_COLORS, VERDICTS

NAME = "comparison"
A, B = 'run="$run",trial="$trial_a"', 'run="$run_b",trial="$trial_b"'
BOTH = (("A", A), ("B", B))
SHARES = (1.0, 0.95, 0.9, 0.8, 0.5)
"""Of the best that both reached, or by which it is divided: values among which one is chosen."""
COLORS = {"A": "#5794f2", "B": "#ff9830"}
START = "edgebed_run_start_timestamp_seconds"
BEGAN = f"max(last_over_time({START}{{HERE}}[$__range]))"
APPLIED = "sum(edgebed_run_update_bytes_total{HERE})"
UPDATES = "max(edgebed_model_version{HERE})"
TEST = ',split="test"'
"""Results are of the test part, also where choices look at a validation part."""
TESTED = f"{HEADLINE}{{HERE{TEST}}}"
MEASURED = f"max({TESTED} > -Inf)"  # not before the first evaluation, which is no number
MORE, LESS = (TESTED.replace("}", f',better="{way}"}}') for way in ("more", "less"))
IS_GOOD = f"on () (max({MORE}) >= $target or min({LESS}) <= $target)"
BEST = f"max(max_over_time({MORE}[$__range])) or min(min_over_time({LESS}[$__range]))"
NOT_THEN = "neither was seen in the time shown, B moved to the beginning of A"
THEN = "B is moved in time so that both begin together."


def of(template: str, where: str, shifted: str = "") -> str:
    """The query of one of both: `{HERE}` becomes the labels that choose it, with those that stand in it besides."""
    return re.sub(r"\{HERE(.*?)\}", lambda found: f"{{{where}{found[1]}}}{shifted}", template)


def both(template: str) -> tuple[Query, Query]:
    """The same of A and of B."""
    return (of(template, A), "A"), (of(template, B), "B")


def together(template: str) -> tuple[Query, Query]:
    """The same of A and of B, as if B had begun when A did."""
    return (of(template, A), "A"), (of(template, B, " offset ${shift}ms"), "B")


def last(metric: str, how: str = "max", more: str = "") -> str:
    """The last value that Prometheus has seen of each series, in the time that is shown."""
    return f"{how}(last_over_time({metric}{{HERE{more}}}[$__range]))"


def compared() -> list[Any]:
    """What A and B are."""
    info = "max by (run, trial, algorithm, runtime, seed) (last_over_time(edgebed_run_info{HERE}[$__range]))"
    measure = f"count by (run, trial, measure) (last_over_time({TESTED}[$__range]))"
    info += f" * on (run, trial) group_left (measure) {measure}"
    text = "{{run}} {{trial}}: {{algorithm}}, {{runtime}}, seed {{seed}}, {{measure}}"
    return [
        figure(
            12,
            name,
            f"What {name} is: run, trial, method, runtime, seed, and what results are told by: the headline.",
            "none",
            (of(info, where), f"{name}: {text}"),
            instant=True,
        ).text_mode(options.BigValueTextMode.NAME)
        for name, where in BOTH
    ]


def outcomes() -> list[Any]:
    """What is left in the end."""
    seen = "max(max_over_time(timestamp(edgebed_run_info{HERE})[$__range:5s]))"
    up, down = last("edgebed_run_update_bytes_total"), last("edgebed_run_pull_bytes_total")
    headline, loss = (last(metric, more=TEST) for metric in (HEADLINE, "edgebed_model_loss"))
    into = last("edgebed_run_server_bytes_total").replace("{HERE}", '{HERE,direction="ingress"}')
    first_good = f"min_over_time((vector(time()) and {IS_GOOD})[$__range:5s])"

    def shown(title: str, description: str, unit: str, template: str, width: int = 6) -> Any:
        panel = figure(width, title, description, unit, *both(template), instant=True)
        return colored(panel.text_mode(options.BigValueTextMode.VALUE_AND_NAME), COLORS)  # also where one has none

    return [
        shown("Headline", "What the task measures first, of the version evaluated last.", "none", headline, 5),
        shown("Best", "The best headline of all versions that were evaluated, on the test set.", "none", BEST, 5),
        shown("Loss", "Of the version evaluated last, on the test set.", "none", loss, 4),
        shown(
            "Verdict", "Whether the conditions that the trial asked for held.", "none", last("edgebed_trial_verdict"), 5
        ).mappings(words(VERDICTS)).no_value("not yet"),
        shown(
            "Result", "Whether what the scenario expects was met.", "none", last("edgebed_trial_result"), 5
        ).mappings(words(RESULT_COLORS)).no_value("not yet"),
        shown(
            "Total up",
            "Up: payload of the pushes that were applied.",
            "decbytes",
            up,
            4,
        ),
        shown(
            "Total down",
            "Down: payload of the models sent to workers; of a killed server the last seconds may be missing.",
            "decbytes",
            down,
            4,
        ),
        shown("Total up and down", "Pushes that were applied, and models sent.", "decbytes", f"{up} + {down}", 4),
        shown(
            "Total server ingress",
            "All payload that reached the server, in all its lives; of a killed one the last seconds may be missing.",
            "decbytes",
            into,
            4,
        ),
        shown("Total updates", "Versions of the model that were made.", "short", last("edgebed_model_version"), 4),
        shown(
            "Total CPU time",
            "Of all nodes together, in all their lives; of a killed one the last seconds may be missing.",
            "s",
            last("edgebed_process_cpu_seconds_total", "sum"),
            4,
        ).no_value("not told"),
        shown(
            "Time",
            "From the beginning until Prometheus saw the trial last; starting and stopping nodes included.",
            "s",
            f"{seen} - {BEGAN}",
        ),
        shown(
            "Time until the value",
            "From the beginning until Prometheus first saw the headline as good as chosen above; empty: never.",
            "s",
            f"{first_good} - on () {BEGAN}",
        ).no_value("never"),
        shown(
            "Total up until the value",
            "Payload of applied pushes when Prometheus first saw the headline as good as chosen above.",
            "decbytes",
            f"min_over_time(({APPLIED} and {IS_GOOD})[$__range:5s])",
        ).no_value("never"),
        shown(
            "Total updates until the value",
            "Updates when Prometheus first saw the headline as good as chosen above.",
            "short",
            f"min_over_time(({UPDATES} and {IS_GOOD})[$__range:5s])",
        ).no_value("never"),
    ]  # fmt: skip


def without_time() -> list[Any]:
    """What the headline costs."""

    def headline_against(title: str, description: str, x: tuple[str, str], template: str) -> Any:
        pairs = [(name, of(template, where), of(MEASURED, where)) for name, where in BOTH]
        colors = [*COLORS.values()]
        return against(12, title, description, x, ("headline", "none"), *pairs, colors=colors)

    return [
        headline_against(
            "Headline against bytes up",
            "What it costs in bytes, whenever the two ran; a point for each step of the time range.",
            ("applied pushes", "decbytes"),
            APPLIED,
        ),
        headline_against(
            "Headline against updates",
            "What it costs in updates, whenever the two ran; a point for each step of the time range.",
            ("updates", "short"),
            UPDATES,
        ),
    ]


def over_time() -> list[Any]:
    """How it went."""
    loss, updates = f"max(edgebed_model_loss{{HERE{TEST}}})", "sum(trial:edgebed_ps_updates:rate20s{HERE})"
    shown = [
        ("Headline over time", f"On the test set, at A's time. {THEN}", "none", MEASURED),
        ("Loss over time", f"On the test set, at A's time. {THEN}", "none", loss),
        ("Total up over time", f"Payload, at A's time. {THEN}", "decbytes", APPLIED),
        ("Updates a second", f"Applied by the server, at A's time. {THEN}", PER_SECOND, updates),
    ]
    drawn = [
        colored(curves(12, title, description, unit, *together(template)), COLORS).no_value(NOT_THEN)
        for title, description, unit, template in shown
    ]
    return [drawn[0], *(panel.min(0) for panel in drawn[1:])]  # a headline may be below 0


def chosen() -> list[Any]:
    """A, the latest run's first trial; B, of whatever ran last another; how far apart they began; a value to reach."""
    of_a = f"last_over_time({START}{{{A}}}[$__range])"
    others = f"{STARTS} unless on (run, trial) {of_a}"
    of_run_b = f'last_over_time({START}{{run="$run_b"}}[$__range]) unless on (run, trial) {of_a}'
    trials_b = f"query_result(sort(max by (trial) ({of_run_b})))"
    apart = f"round(1000 * ({of(BEGAN, A)} - {of(BEGAN, B)}))"
    shift = (
        f"query_result({apart} + ({apart} == bool 0) or vector(1))"  # an offset of 0 is a mistake to Prometheus 2.42
    )
    return [
        run_variable(label="Run A"),
        asked("trial_a", "Trial A", 'label_values(edgebed_run_info{run="$run"}, trial)', 1).sort(
            model.VariableSort.NATURAL_ASC
        ),
        run_variable("run_b", "Run B", f"query_result(sort_desc(max by (run) ({others})))"),
        asked("trial_b", "Trial B", trials_b, 3).regex(OF_TRIAL).sort(model.VariableSort.DISABLED),
        asked("shift", "Milliseconds that A began after B", shift, 3)
        .regex("/ (-?[0-9]+) /")
        .sort(model.VariableSort.DISABLED)
        .hide(model.VariableHide.HIDE_VARIABLE),
        asked("target", "Value of the headline", f"query_result({_targets()})", 3)
        .regex("/ ([-+.0-9e]+) [0-9]+$/")
        .sort(model.VariableSort.DISABLED),
    ]


def _targets() -> str:
    """What both reached, the best first, and what is worse by some: of 90 % and more 90, 80 and 50."""
    reached = (
        f"min({' or '.join(_marked(MORE, 'max', name, where) for name, where in BOTH)})",
        f"max({' or '.join(_marked(LESS, 'min', name, where) for name, where in BOTH)})",
    )
    return " or ".join(
        f"label_replace(floor({share} * {reached[0]} * 1e4) / 1e4 or ceil({reached[1]} / {share} * 1e4) / 1e4, "
        f'"of", "{share:g}", "", "")'
        for share in SHARES
    )


def _marked(series: str, how: str, name: str, where: str) -> str:
    """The best of one of both, by its name."""
    return f'label_replace({how}({how}_over_time({of(series, where)}[$__range])), "of", "{name}", "", "")'


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "": compared(),
        "In the end": outcomes(),
        "What the headline costs": without_time(),
        "Since the beginning": over_time(),
    }
    about = "Which of two trials did better? Choose a time range in which both ran."
    return whole(NAME, "Comparison", about, chosen(), [], panels, runs=("run", "run_b"))
