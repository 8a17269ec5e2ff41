"""Faults in words, the same in journal, plan and report."""

from collections.abc import Mapping

from edgebed.core import units
from edgebed.core.actions import Action
from edgebed.core.plan import Injection, LinkChange, Trigger

AS_PLANNED = "as planned"
"""A change that undoes those before it."""
UNSTOPPED = "did not answer 'stop'"
"""Beginning of the reason why a node died that the controller ended when all was over."""


def trigger_text(trigger: Trigger, step: int | None = None) -> str:
    """Describe what makes a fault happen: `at 30s`, `after-push 12`."""
    if trigger.at_s is not None:
        return f"at {units.format_duration(trigger.at_s)}"
    if trigger.at_update is not None:
        return f"at update {trigger.at_update:,}"
    return f"{trigger.point}" + ("" if step is None else f" {step}")


def change_text(injection: Injection) -> str:
    """Describe what of a link or a cap changes: `uplink 1mbit`; empty for other actions."""
    if injection.action == "cpus":
        return AS_PLANNED if injection.cpus is None else f"{injection.cpus:.12g}"
    if injection.action != "link":
        return ""
    if injection.change is None:
        return AS_PLANNED
    change = injection.change
    texts: Mapping[str, str | None] = {
        "uplink": None if change.uplink_bit_s is None else units.format_rate(change.uplink_bit_s),
        "downlink": None if change.downlink_bit_s is None else units.format_rate(change.downlink_bit_s),
        "latency": None if change.latency_s is None else units.format_duration(change.latency_s),
        "jitter": None if change.jitter_s is None else units.format_duration(change.jitter_s),
        "loss": None if change.loss is None else units.format_percentage(change.loss),
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items() if text is not None)


def injection_of(node: str, action: Action, text: str) -> Injection:
    """Return what was done to a link or a cap whose `change_text` is this. Raises ValueError where it is none."""
    if action == "cpus":
        return Injection(node=node, action=action, cpus=None if text == AS_PLANNED else float(text))
    if action != "link" or text == AS_PLANNED:
        return Injection(node=node, action=action)
    told = dict(part.split(" ", 1) for part in text.split(", "))
    change = LinkChange(
        uplink_bit_s=units.parse_rate(told["uplink"]) if "uplink" in told else None,
        downlink_bit_s=units.parse_rate(told["downlink"]) if "downlink" in told else None,
        latency_s=units.parse_duration(told["latency"]) if "latency" in told else None,
        jitter_s=units.parse_duration(told["jitter"]) if "jitter" in told else None,
        loss=units.parse_percentage(told["loss"]) if "loss" in told else None,
    )
    return Injection(node=node, action=action, change=change)
