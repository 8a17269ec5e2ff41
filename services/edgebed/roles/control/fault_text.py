"""Faults in words, the same in journal, plan and report."""

from edgebed.core import units
from edgebed.core.actions import Action
from edgebed.core.planned import link
from edgebed.core.planned.fault import Injection, Trigger

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
    if (at := trigger.at_measure) is not None:
        return f"at {at.measure} {at.comparison} {at.value:g}" + (f" of {at.of}" if at.of else "")
    return f"{trigger.point}" + ("" if step is None else f" {step}")


def change_text(injection: Injection) -> str:
    """Describe what of a link or a cap changes, `uplink 1mbit`, and between whom; empty for other actions."""
    between = f"between {injection.node} and {injection.peer}" if injection.peer else ""
    return f"{setting_text(injection)} {between}".strip()


def setting_text(injection: Injection) -> str:
    """Describe what of a link or a cap changes; empty for other actions."""
    if injection.action == "cpus":
        return AS_PLANNED if injection.cpus is None else f"{injection.cpus:.12g}"
    if injection.action != "link":
        return ""
    if injection.change is None:
        return AS_PLANNED
    return link.change_text(injection.change).replace("uplink", "rate" if injection.peer else "uplink")


def injection_of(node: str, action: Action, text: str) -> Injection:
    """Return what was done to a link or a cap whose `change_text` is this. Raises ValueError where it is none."""
    if action == "cpus":
        return Injection(node=node, action=action, cpus=None if text == AS_PLANNED else float(text))
    if action != "link" or text == AS_PLANNED:
        return Injection(node=node, action=action)
    return Injection(node=node, action=action, change=link.change_of(text))
