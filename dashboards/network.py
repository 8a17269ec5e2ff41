"""Network: what links carry against what they may, and whether messages take as long as they should."""

from collections.abc import Sequence
from typing import Any

from dashboards.building.frame import (
    class_variable,
    events,
    run_variable,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import bounded, counted, curves, dashed, heat, mirrored, to_node
from dashboards.building.queries import A_MINUTE, BY_CLASS, BY_NODE, CHOSEN, CLASS, rate, ratio, ten
from dashboards.run_overview import SLOWER

NAME = "network"
UP, DOWN = CHOSEN + ',direction="egress"', CHOSEN + ',direction="ingress"'
BYTES = "node_direction:edgebed_link_bytes:rate1m"
USE = "node_direction:edgebed_link_bytes_per_held_bytes:ratio_rate1m"
ASKED, HELD = "edgebed_link_asked_bytes_per_second", "edgebed_link_held_bytes_per_second"
MESSAGES = "node:edgebed_transfer_seconds_per_asked_seconds:ratio_rate1m"
NO_LIMIT = "no link has a limit here that the kernel holds"
TOLD = "Nodes say every ten seconds what crossed their links; shown is the mean of a minute."


def added(metric: str, where: str) -> str:
    """Of all nodes of a class."""
    return f"sum by ({CLASS}) ({metric}{{{where}}})"


def traffic() -> list[Any]:
    """How much there is."""
    sent = rate("edgebed_client_egress_bytes_total", CLASS, CHOSEN)
    received = rate("edgebed_client_ingress_bytes_total", CLASS, CHOSEN)
    return [
        mirrored(
            curves(
                12,
                "Payload of all workers of a class, up and down",
                "Bits a second that all nodes of a class send, above, and receive, below zero; without headers.",
                "bps",
                (f"8 * {sent}", f"{BY_CLASS} up"),
                (f"8 * {received}", f"{BY_CLASS} down"),
            ),
            "down",
        ).no_value("a replayed run does not tell"),
        mirrored(
            curves(
                12,
                "On the wire, up and down: means of a minute",
                "Bits a second through a class's own interfaces, up above, down below zero; with headers and repeats.",
                "bps",
                (f"8 * {added(BYTES, UP)}", f"{BY_CLASS} up"),
                (f"8 * {added(BYTES, DOWN)}", f"{BY_CLASS} down"),
            ),
            "down",
        ).no_value("no node has an interface of its own"),
    ]


def limits() -> list[Any]:
    """How near they are to what they may carry."""
    return [
        mirrored(
            curves(
                8,
                "Use of the links against their limits",
                f"Of the mean node of a class, up above and down below zero. {TOLD}",
                "percentunit",
                (f"avg by ({CLASS}) ({USE}{{{UP}}})", f"{BY_CLASS} up"),
                (f"avg by ({CLASS}) ({USE}{{{DOWN}}})", f"{BY_CLASS} down"),
            ),
            "down",
        )
        .min(-1)
        .max(1)
        .no_value(NO_LIMIT),
        to_node(
            bounded(
                curves(
                    8,
                    "The ten fullest links",
                    "Share of the limit in force that single nodes use, in the fuller of both directions.",
                    "percentunit",
                    (ten(f"max by (trial, node) ({USE}{{{CHOSEN}}})", how="avg"), BY_NODE),
                ),
                1.0,
            )
        )
        .min(0)
        .max(1)
        .no_value(NO_LIMIT),
        heat(
            8,
            "Nodes by the use of their links",
            "How many nodes use how much of their limit, in the fuller of both directions.",
            "percentunit",
            f"max by (trial, node) ({USE}{{{CHOSEN}}})",
            of_histogram=False,
        ).no_value(NO_LIMIT),
        against_asked("up", UP),
        against_asked("down", DOWN),
    ]


def against_asked(direction: str, chosen: str) -> Any:
    """What a class asks of its links in a direction, what holds them, and what passes."""
    asked = f"avg by ({CLASS}) ({ASKED}{{{chosen}}})"
    panel = curves(
        12,
        f"Asked, held and used: {direction}",
        "Mean node of a class with a limit: what the scenario asks for, what is in force as read back, what passes.",
        "bps",
        (f"8 * {asked}", f"{BY_CLASS} asked"),
        (f"8 * avg by ({CLASS}) ({HELD}{{{chosen}}})", f"{BY_CLASS} held"),
        (f"8 * avg by ({CLASS}) ({BYTES}{{{chosen}}}) and {asked}", f"{BY_CLASS} used"),
    )
    return dashed(panel, "asked").min(0).no_value(NO_LIMIT)


def conditions() -> list[Any]:
    """Whether they do as they should."""
    asked = rate("edgebed_transfer_asked_seconds_total", CLASS, CHOSEN, A_MINUTE)
    took = rate("edgebed_transfer_seconds_total", CLASS, CHOSEN, A_MINUTE)
    dropped = "edgebed_link_dropped_packets_total"
    return [
        bounded(
            curves(
                8,
                "Message time over what was asked",
                "How long a class's messages took, over what links as asked would: 1 is as asked, 1.1 the bound.",
                "none",
                (ratio(took, asked), BY_CLASS),
            ),
            SLOWER,
        )
        .min(0)
        .no_value("no link is limited or delayed, or no message passed"),
        to_node(
            bounded(
                curves(
                    8,
                    "The ten with the slowest messages",
                    "The same of the nodes that the messages reached.",
                    "none",
                    (ten(f"max by (trial, node) ({MESSAGES}{{{CHOSEN}}})", how="avg"), BY_NODE),
                ),
                SLOWER,
            )
        )
        .min(0)
        .no_value("no link is limited or delayed, or no message passed"),
        counted(
            bounded(
                curves(
                    8,
                    "Links with other limits than asked",
                    "Nodes of a class whose limits in force, as read back, are not those that the scenario asks for.",
                    "none",
                    (added("edgebed_link_differs", CHOSEN), BY_CLASS),
                ),
                1.0,
            )
        ).no_value("no link is held by the kernel"),
        mirrored(
            curves(
                12,
                "Dropped packets, up and down",
                "Packets that the queues of a class's links drop each second, up above and down below zero.",
                "pps",
                (rate(dropped, CLASS, UP, A_MINUTE), f"{BY_CLASS} up"),
                (rate(dropped, CLASS, DOWN, A_MINUTE), f"{BY_CLASS} down"),
            ),
            "down",
        ).no_value("no link is held by the kernel"),
        to_node(
            curves(
                12,
                "The ten that drop most",
                "Packets that the queues of single nodes' links drop each second, both directions together.",
                "pps",
                (ten(rate(dropped, "trial, node", CHOSEN, A_MINUTE)), BY_NODE),
            )
        )
        .min(0)
        .axis_soft_max(10)
        .no_value("no link is held by the kernel"),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "Traffic": traffic(),
        "Against the limits: means of a minute": limits(),
        "Whether the links do as asked: means of a minute": conditions(),
    }
    chosen = [run_variable(), trial_variable(), class_variable()]
    about = "What do the links carry against what they may, and does a message take as long as it should?"
    return whole(NAME, "Network", about, chosen, [trials_begin(), *events()], panels)
