"""Comparison: which of two trials did better, and by how much? Of one run, or of runs at different times.

A is drawn where it was; B is moved by the difference of their beginnings (the hidden variable `shift`, in seconds), so
that both curves begin together. What needs no time at all is drawn against bytes and updates.
"""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

from dashboards.building.frame import OF_TRIAL, STARTS, asked, run_variable, whole
from dashboards.building.panels import PER_SECOND, against, colored, curves, figure, words
from dashboards.building.queries import Query
from dashboards.run_overview import VERDICTS

NAME = "comparison"
A, B = 'run="$run",trial="$trial_a"', 'run="$run_b",trial="$trial_b"'
COLORS = {"A": "#5794f2", "B": "#ff9830"}
START, ACCURACY = "edgebed_run_start_timestamp_seconds", "edgebed_model_accuracy_ratio"
BEGAN = f"max(last_over_time({START}{{HERE}}[$__range]))"
APPLIED = "sum(edgebed_run_update_bytes_total{HERE})"
UPDATES = "max(edgebed_model_version{HERE})"
MEASURED = f"max({ACCURACY}{{HERE}})"
IS_GOOD = f"on () (max({ACCURACY}{{HERE}}) >= $target)"
THEN = "B is moved in time so that both begin together."


def of(template: str, where: str, shifted: str = "") -> str:
    """The query of one of both: `{HERE}` becomes the labels that choose it."""
    return template.replace("{HERE}", f"{{{where}}}{shifted}")


def both(template: str) -> tuple[Query, Query]:
    """The same of A and of B."""
    return (of(template, A), "A"), (of(template, B), "B")


def together(template: str) -> tuple[Query, Query]:
    """The same of A and of B, as if B had begun when A did."""
    return (of(template, A), "A"), (of(template, B, " offset ${shift}s"), "B")


def last(metric: str, how: str = "max") -> str:
    """The last value that Prometheus has seen of each series, in the time that is shown."""
    return f"{how}(last_over_time({metric}{{HERE}}[$__range]))"


def compared() -> list[Any]:
    """What A and B are."""
    info = "max by (run, trial, algorithm, runtime, seed) (last_over_time(edgebed_run_info{HERE}[$__range]))"
    text = "{{run}} {{trial}}: {{algorithm}}, {{runtime}}, seed {{seed}}"
    return [
        figure(
            12,
            name,
            f"What {name} is: run, trial, method, runtime and seed.",
            "none",
            (of(info, where), f"{name}: {text}"),
            instant=True,
        ).text_mode(options.BigValueTextMode.NAME)
        for name, where in (("A", A), ("B", B))
    ]


def outcomes() -> list[Any]:
    """What is left in the end."""
    seen = "max(max_over_time(timestamp(edgebed_run_info{HERE})[$__range:5s]))"
    up, down = last("edgebed_run_update_bytes_total", "sum"), last("edgebed_ps_pull_bytes_total", "sum")
    first_good = f"min_over_time((vector(time()) and {IS_GOOD})[$__range:5s])"

    def shown(title: str, description: str, unit: str, template: str, width: int = 6) -> Any:
        return colored(figure(width, title, description, unit, *both(template), instant=True), COLORS)

    return [
        shown("Accuracy", "Of the version evaluated last, on the test set.", "percentunit", last(ACCURACY)).decimals(2),
        shown(
            "Best accuracy",
            "Of all versions that were evaluated, on the test set.",
            "percentunit",
            f"max(max_over_time({ACCURACY}{{HERE}}[$__range]))",
        ).decimals(2),
        shown("Loss", "Of the version evaluated last, on the test set.", "none", last("edgebed_model_loss")),
        shown(
            "Verdict", "Whether the conditions that the trial asked for held.", "none", last("edgebed_trial_verdict")
        ).mappings(words(VERDICTS)).no_value("not yet"),
        shown(
            "Total of applied pushes",
            "Up: payload of the pushes that were applied.",
            "decbytes",
            up,
            4,
        ),
        shown(
            "Total of models sent",
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
            last("edgebed_ps_ingress_bytes_total", "sum"),
            4,
        ),
        shown("Total updates", "Versions of the model that were made.", "short", last("edgebed_model_version"), 4),
        shown(
            "Total CPU time",
            "Of all nodes together, in all their lives; of a killed one the last seconds may be missing.",
            "s",
            last("edgebed_process_cpu_seconds_total", "sum"),
            4,
        ),
        shown(
            "Time",
            "From the beginning until Prometheus saw the trial last; starting and stopping nodes included.",
            "s",
            f"{seen} - {BEGAN}",
        ),
        shown(
            "Time until the accuracy",
            "From the beginning until Prometheus first saw the accuracy that is chosen above; empty: never.",
            "s",
            f"{first_good} - on () {BEGAN}",
        ).no_value("never"),
        shown(
            "Total of applied pushes until the accuracy",
            "Payload of applied pushes when Prometheus first saw the accuracy that is chosen above.",
            "decbytes",
            f"min_over_time(({APPLIED} and {IS_GOOD})[$__range:5s])",
        ).no_value("never"),
        shown(
            "Total updates until the accuracy",
            "Updates when Prometheus first saw the accuracy that is chosen above.",
            "short",
            f"min_over_time(({UPDATES} and {IS_GOOD})[$__range:5s])",
        ).no_value("never"),
    ]  # fmt: skip


def without_time() -> list[Any]:
    """What an accuracy costs."""

    def accuracy_against(title: str, description: str, x: tuple[str, str], template: str) -> Any:
        pairs = [(name, of(template, where), of(MEASURED, where)) for name, where in (("A", A), ("B", B))]
        return against(12, title, description, x, ("accuracy", "percentunit"), *pairs)

    return [
        accuracy_against(
            "Accuracy against applied pushes",
            "What an accuracy costs in bytes, whenever the two ran; a point for each step of the time range.",
            ("applied pushes", "decbytes"),
            APPLIED,
        ),
        accuracy_against(
            "Accuracy against updates",
            "What an accuracy costs in updates, whenever the two ran; a point for each step of the time range.",
            ("updates", "short"),
            UPDATES,
        ),
    ]


def over_time() -> list[Any]:
    """How it went."""
    loss, updates = "max(edgebed_model_loss{HERE})", "sum(trial:edgebed_ps_updates:rate20s{HERE})"
    shown = [
        ("Accuracy over time", f"On the test set, at A's time. {THEN}", "percentunit", MEASURED),
        ("Loss over time", f"On the test set, at A's time. {THEN}", "none", loss),
        ("Total of applied pushes over time", f"Payload, at A's time. {THEN}", "decbytes", APPLIED),
        ("Updates a second", f"Applied by the server, at A's time. {THEN}", PER_SECOND, updates),
    ]
    return [
        colored(curves(12, title, description, unit, *together(template)), COLORS).min(0)
        for title, description, unit, template in shown
    ]


def chosen() -> list[Any]:
    """A, the latest run's first trial; B, of whatever ran last another; how far apart they began; an accuracy."""
    of_a = f"last_over_time({START}{{{A}}}[$__range])"
    others = f"{STARTS} unless on (run, trial) {of_a}"
    of_run_b = f'last_over_time({START}{{run="$run_b"}}[$__range]) unless on (run, trial) {of_a}'
    trials_b = f"query_result(sort(max by (trial) ({of_run_b})))"
    shift = f"query_result(round({of(BEGAN, A)} - {of(BEGAN, B)}) or vector(0))"
    return [
        run_variable(label="Run A"),
        asked("trial_a", "Trial A", 'label_values(edgebed_run_info{run="$run"}, trial)', 1).sort(
            model.VariableSort.NATURAL_ASC
        ),
        run_variable("run_b", "Run B", f"query_result(sort_desc(max by (run) ({others})))"),
        asked("trial_b", "Trial B", trials_b, 3).regex(OF_TRIAL).sort(model.VariableSort.DISABLED),
        asked("shift", "Seconds that A began after B", shift, 3)
        .regex("/ (-?[0-9]+) /")
        .sort(model.VariableSort.DISABLED)
        .hide(model.VariableHide.HIDE_VARIABLE),
        dashboard.CustomVariable("target")
        .label("Accuracy")
        .values("0.5,0.8,0.9,0.95,0.97,0.99")
        .current(model.VariableOption(selected=True, text="0.9", value="0.9")),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "": compared(),
        "In the end": outcomes(),
        "What an accuracy costs": without_time(),
        "Since the beginning": over_time(),
    }
    about = "Which of two trials did better? Choose a time range in which both ran."
    return whole(NAME, "Comparison", about, chosen(), [], panels)
