"""Programs: what a user's own programs tell, and what each sends and uses."""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from dashboards.building.frame import (
    asked,
    class_variable,
    events,
    run_variable,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import counted, curves, mirrored
from dashboards.building.queries import BY_NODE, CHOSEN, HERE, latest_total, rate, ten, value

NAME = "programs"
MEASURE = "edgebed_program_measure"
SENT = "edgebed_program_link_bytes_total"
UP, DOWN = CHOSEN + ',direction="egress"', CHOSEN + ',direction="ingress"'
NO_PROGRAM = "no program of the user's runs"


def link(direction: str, chosen: str) -> tuple[str, str]:
    """Bits a second of the ten nodes with most in a direction."""
    return ten(f"8 * {rate(SENT, 'trial, node', chosen)}"), f"{BY_NODE} {direction}"


def told() -> list[Any]:
    """What they tell, and how often they began anew."""
    least, most = (f'{how} by (trial) ({MEASURE}{{{CHOSEN},measure="$measure"}})' for how in ("min", "max"))
    return [
        curves(
            16,
            "What programs told last, lowest and highest of all nodes",
            "The measure that is chosen above (program.measures), in its own unit.",
            "none",
            (least, "{{trial}}, lowest"),
            (most, "{{trial}}, highest"),
        ).no_value("no program has told a measure"),
        counted(
            curves(
                8,
                "Total of programs started anew",
                "How often programs of a class were started anew, by faults or by on_failure.",
                "none",
                (
                    latest_total("edgebed_program_restarts_total", "trial, device_class", CHOSEN),
                    "{{trial}} {{device_class}}",
                ),
            )
        ).no_value(NO_PROGRAM),
    ]


def used() -> list[Any]:
    """What they send and use."""
    cpu = rate("edgebed_program_cpu_seconds_total", "trial, node", CHOSEN)
    memory = value("edgebed_program_memory_peak_bytes", "trial, node", CHOSEN)
    return [
        mirrored(
            curves(
                8,
                "The ten with most traffic, up and down",
                "Bits a second at a node's link, headers included: up above, down below zero.",
                "bps",
                link("up", UP),
                link("down", DOWN),
            ),
            "down",
        ).no_value(NO_PROGRAM),
        curves(
            8,
            "The ten with most CPU time",
            "Cores that all processes of a program use.",
            "none",
            (ten(cpu), BY_NODE),
        )
        .min(0)
        .no_value(NO_PROGRAM),
        curves(
            8,
            "The ten with most memory",
            "The most that the processes of a program used together, in its present life.",
            "bytes",
            (ten(memory), BY_NODE),
        )
        .min(0)
        .no_value(NO_PROGRAM),
    ]


def measure_variable() -> dashboard.QueryVariable:
    """One of the measures of these trials: they have a unit each."""
    return asked("measure", "Measure", f"label_values({MEASURE}{{{HERE}}}, measure)", 1).sort(
        model.VariableSort.NATURAL_ASC
    )


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {"What they tell": told(), "What they send and use": used()}
    chosen = [run_variable(), trial_variable(), class_variable(), measure_variable()]
    about = "What do the user's own programs tell, send and use?"
    return whole(NAME, "Programs", about, chosen, [trials_begin(), *events()], panels)
