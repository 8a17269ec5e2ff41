"""What a terminal shows of the plan of a trial."""

import io

from rich.console import Console

from edgebed.reports.plan.description import Description
from edgebed.reports.plan.page import page_of
from edgebed.reports.writing.terminal import show


def plan_text(description: Description) -> str:
    """The lines, however long."""
    stream = io.StringIO()
    show(page_of("plan", "", [description]).brief, Console(file=stream, width=400))
    return stream.getvalue()
