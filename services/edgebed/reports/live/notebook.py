"""Live progress of a run in a notebook: a bar and a line of figures for each trial, rewritten in place."""

import contextlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from html import escape
from typing import Any

from edgebed.core.plan import Plan
from edgebed.core.quantities import seconds_text
from edgebed.journal.summary import TrialSummary
from edgebed.journal.trial_state import TrialStatus
from edgebed.reports.live.live_view import figures_of
from edgebed.reports.live.pace import Pace, share_of
from edgebed.reports.live.progress import ProgressDisplay, announcement, ended_line
from edgebed.running.run import ProgressLike

REFRESH_S = 0.25
"""Seconds between two updates of the same state: each is a message to a browser."""
Rewrite = Callable[[str], None]


def in_place(html: str) -> Rewrite:
    """Show HTML below the present cell; return a function that replaces it by other HTML."""
    from IPython import display

    handle: Any = display.display(display.HTML(html), display_id=True)
    return lambda new: handle.update(display.HTML(new))


class NotebookProgress:
    """Shows one trial below the other."""

    def __init__(
        self, show: Callable[[str], Rewrite] = in_place, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show, self._clock = show, clock
        self._rewrite: Rewrite | None = None
        self._began = self._shown = 0.0
        self._pace = Pace(0.0)
        self._state = ""
        self._last: TrialStatus | None = None

    def trial_started(self, plan: Plan) -> None:
        """Show a new trial."""
        self._began, self._state, self._last = self._clock(), "", None
        self._pace = Pace(self._began)
        self._rewrite = self._show(f"<div>{escape(announcement(plan))}</div>")

    def update(self, status: TrialStatus) -> None:
        """Show `status`, unless one of the same state was shown a moment ago."""
        self._last, now = status, self._clock()
        times = self._pace.look(status, now)
        state = status.standing
        if self._rewrite is None or (state == self._state and now - self._shown < REFRESH_S):
            return
        self._shown, self._state = now, state
        share = share_of(status)
        bar = "<progress></progress>" if share is None else f'<progress value="{share:.4f}" max="1"></progress>'
        figures = ", ".join(figures_of(status, times).values())
        self._rewrite(f"<div>{escape(f'{status.trial}: {state}')} {bar} {escape(figures)}</div>{self._troubles()}")

    def trial_ended(self, summary: TrialSummary) -> None:
        """Leave one line about a trial, and one for each trouble that it had."""
        is_virtual = self._last is not None and self._last.is_virtual
        line, _ = ended_line(summary, self._clock() - self._began if is_virtual else None)
        html = f"<div>{escape(line)}</div>{self._troubles()}"
        if self._rewrite is None:  # of a run that nobody could watch
            self._show(html)
        else:
            self._rewrite(html)
        self._rewrite = self._last = None

    def _troubles(self) -> str:
        """Lines of the troubles so far."""
        troubles = self._last.troubles if self._last else ()
        return "".join(f"<div>! at {escape(f'{seconds_text(each.elapsed_s)}: {each.text}')}</div>" for each in troubles)


def showing(progress: ProgressLike | bool | None = None) -> AbstractContextManager[ProgressLike | None]:
    """Return a context with what shows progress, while it is open.

    None: a display in IPython and in notebooks alone; True: a display; False: nothing; else an observer.
    """
    shell = _shell()
    wanted = shell is not None if progress is None else progress
    if not isinstance(wanted, bool):
        return contextlib.nullcontext(wanted)
    if not wanted:
        return contextlib.nullcontext()
    return contextlib.nullcontext(NotebookProgress()) if hasattr(shell, "kernel") else ProgressDisplay()


def _shell() -> Any:
    """The IPython that this program is a session of, which has a `kernel` in a notebook; else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
