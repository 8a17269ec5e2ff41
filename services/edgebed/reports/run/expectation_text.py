"""What a scenario expects, in a line of the terminal."""

from edgebed.core.quantities import UNMEASURED
from edgebed.journal.outcome import AnySummary
from edgebed.journal.summary import Expectation
from edgebed.reports.writing.page import Shade, Span


def expectation_line(trial: AnySummary, expectation: Expectation, measured: str, bound: str) -> Span:
    """An expectation, with its value and bound as texts, and whether it was met, where the trial ran to its end."""
    shade: Shade = ("good" if expectation.met else "bad") if trial.ran_to_end else "quiet"
    mark = {"good": "✓", "bad": "✗"}.get(shade, UNMEASURED)
    text = "not measured" if expectation.measured is None else measured
    return Span(f"{mark} {trial.trial}: {expectation.measure} {text}, expected {expectation.comparison} {bound}", shade)
