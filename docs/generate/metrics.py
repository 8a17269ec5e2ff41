"""docs/metrics.md, from the declarations."""

from docs.generate.rendering import grid, render
from edgebed.metrics import table

HEAD = ("name", "type", "unit", "labels", "at", "meaning")
SECTIONS = {
    "Parameter server": table.SERVER_METRICS,
    "Workers and evaluator": table.WORKER_METRICS,
    "Controller": table.CONTROLLER_METRICS,
    "A user's programs": table.PROGRAM_METRICS,
    "Messages": table.COMMON_METRICS,
    "Links and other conditions": table.CONDITION_METRICS,
    "Resources": table.RESOURCE_METRICS,
}


def markdown() -> str:
    """The whole document."""
    return render("metrics.md", sections={title: grid(HEAD, map(_row, each)) for title, each in SECTIONS.items()})


def _row(metric: table.Metric) -> tuple[str, ...]:
    roles = "all" if metric.roles == table.ROLES else ", ".join(metric.roles)
    labels = "<br>".join(_label(label) for label in metric.labels)
    buckets = f" Buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}." if metric.buckets else ""
    return f"`{metric.name}`", metric.type, metric.unit, labels, roles, metric.help + buckets


def _label(label: table.Label) -> str:
    """A label in Markdown, with all its values, or some of them."""
    return f"`{label.name}`: {', '.join(label.examples)}{'' if label.closed else ', …'}"
