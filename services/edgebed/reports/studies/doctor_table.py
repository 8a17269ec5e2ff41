"""What works on this machine, for a terminal."""

from collections.abc import Iterable, Iterator

from edgebed.reports.writing.page import Notes, Paragraph, Part, Span
from edgebed.studies.host.doctor import Finding

SUBJECT = 14
"""Columns of the name of a thing."""


def doctor_parts(findings: Iterable[Finding]) -> Iterator[Part]:
    """A line for each thing, as soon as it is found, and below them one for each that is lost."""
    found = []
    for each in findings:
        found.append(each)
        mark = Span("✓", "good") if each.works else Span("✗", "bad")
        yield Paragraph((mark, Span(f" {each.subject:<{SUBJECT}} {each.found.partition(chr(10))[0]}")))
    yield Notes([f"without {each.subject}: {each.lost}" for each in found if not each.works])
    yield Notes([_runtimes({each.subject: each.works for each in found})])


def _runtimes(works: dict[str, bool]) -> str:
    """Say which runtimes can be used, and how well conditions are held in each."""
    by = [what for what, subject in (("links", "links"), ("caps", "cgroups")) if works[subject]]
    process = f"process ({' and '.join(by)} held by the kernel)" if by else "process (links and caps by a model)"
    return f"runtimes: simulation, {process}{', docker' if works['containers'] else ''}"
