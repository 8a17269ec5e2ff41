"""What works on this machine, for a terminal."""

from collections.abc import Iterator, Sequence

from edgebed.reports.writing.page import Grid, Notes, Part, Span
from edgebed.studies.host.examining import Finding


def doctor_parts(findings: Sequence[Finding]) -> Iterator[Part]:
    """A row for each thing, and below it a line for each that is lost."""
    rows = [
        (each.subject, Span("✓", "good") if each.works else Span("✗", "bad"), each.found.partition("\n")[0])
        for each in findings
    ]
    yield Grid(("", "works", "found"), rows, flexible="found")
    yield Notes([f"without {each.subject}: {each.lost}" for each in findings if not each.works])
    yield Notes([_runtimes({each.subject: each.works for each in findings})])


def _runtimes(works: dict[str, bool]) -> str:
    """Say which runtimes can be used, and how well conditions are held in each."""
    by = [what for what, subject in (("links", "links"), ("caps", "cgroups")) if works[subject]]
    process = f"process ({' and '.join(by)} held by the kernel)" if by else "process (links and caps by a model)"
    return f"runtimes: simulation, {process}{', docker' if works['containers'] else ''}"
