"""Live progress of a run on standard error: lines that move on a terminal, one now and then elsewhere.

The code that runs or watches a trial calls it; nothing here has a thread or a timer of its own. Colours follow
NO_COLOR.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Self, TextIO

from rich.live import Live
from rich.text import Text

from edgebed.core.console import make_console
from edgebed.core.measures.trial import measure_text
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.core.quantities import count_text, seconds_text
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import TrialSummary
from edgebed.journal.trial_state import TrialStatus
from edgebed.journal.troubles import Trouble
from edgebed.reports.live.live_view import figures_of, live_view
from edgebed.reports.live.pace import Pace
from edgebed.roles.control.controller import Phase

REFRESH_S = 0.1  # As fast as an eye follows figures; drawing costs about a millisecond.
LINE_EVERY_S = {0.0: 5.0, 60.0: 10.0, 600.0: 60.0, 3600.0: 300.0}
"""Age of a trial in seconds, and time between the lines of a log from then on: ten minutes have some seventy lines, a
night two hundred and fifty."""


class ProgressDisplay:
    """Shows one trial after the other; used as a context manager, so that the terminal is left clean.

    A standard error that cannot be written ends the display, never the run.
    """

    def __init__(
        self, stream: TextIO | None = None, *, width: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = make_console(stream or sys.stderr, width=width)
        self._clock = clock
        self._live: Live | None = None
        self._began = self._shown = float("-inf")
        """When the trial was announced, and when it was last shown, by the clock."""
        self._pace = Pace(self._began)
        self._trial = ""
        self._is_virtual = False
        self._state = ""
        self._troubles: Sequence[Trouble] = ()
        """Troubles of the trial so far."""
        self._told = 0

    def __enter__(self) -> Self:
        """The progress itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the display, and leave the terminal clean."""
        self._stop()

    def trial_started(self, plan: Plan) -> None:
        """Announce a trial and begin its display."""
        self._stop()
        self._print(announcement(plan), style="bold")
        self._began = self._clock()
        self._pace, self._is_virtual = Pace(self._began), False
        self._shown, self._state, self._troubles, self._told = float("-inf"), "", (), 0
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            with contextlib.suppress(OSError):
                self._live.start()

    def update(self, status: TrialStatus) -> None:
        """Show `status`, unless the last one was shown a moment ago; a new state is shown at once.

        New troubles are shown at once in a log. A terminal shows the latest, and has a line of each when the trial is
        over.
        """
        self._trial, self._troubles, self._is_virtual = status.trial, status.troubles, status.is_virtual
        if not self._live:
            self._tell_troubles()
        if status.state == Phase.OVER.value:  # what comes next is the line about its end
            return
        now = self._clock()
        times = self._pace.look(status, now)
        state = status.standing
        if state == self._state and now - self._shown < (REFRESH_S if self._live else line_every_s(now - self._began)):
            return
        self._shown, self._state = now, state
        if self._live:
            with contextlib.suppress(OSError):
                self._live.update(live_view(status, state, times, *self._console.size), refresh=True)
        else:
            self._print(f"{status.trial}: {state}, {', '.join(figures_of(status, times).values())}")

    def trial_ended(self, summary: TrialSummary) -> None:
        """End the display of a trial and leave one line about it."""
        self._stop()
        text, style = ended_line(summary, self._clock() - self._began if self._is_virtual else None)
        self._print(text, style=style)

    def _print(self, text: str, *, style: str = "") -> None:
        with contextlib.suppress(OSError):
            self._console.print(Text(text, style=style), soft_wrap=True)

    def _stop(self) -> None:
        """Wipe the display, before anything else is printed."""
        live, self._live = self._live, None
        if live:
            with contextlib.suppress(OSError):
                live.stop()
            self._tell_troubles()

    def _tell_troubles(self) -> None:
        """Print a line for each trouble that has none yet."""
        for trouble in self._troubles[self._told :]:
            when = seconds_text(trouble.elapsed_s)
            self._print(f"! {self._trial} at {when}: {trouble.text}", style="yellow")
        self._told = len(self._troubles)


def announcement(plan: Plan) -> str:
    """A line about a trial that begins."""
    if isinstance(plan, TrainingPlan):
        return f"{plan.trial}: {count_text(len(plan.workers()), 'worker')}, seed {plan.seed}"
    return f"{plan.trial}: {count_text(len(plan.nodes), 'program')}, seed {plan.seed}"


def ended_line(summary: TrialSummary, wall_s: float | None) -> tuple[str, str]:
    """A line about a trial that is over, and its style.

    `wall_s`: how long it took by the clock since it was announced, where its time is virtual; else None.
    """
    took = seconds_text(summary.time_s)
    if wall_s is not None:
        took += f" of virtual time ({seconds_text(wall_s)} by the clock)"
    mark, style = ("✓", "green") if summary.met else ("✗", "red" if summary.ran_to_end else "yellow")
    text = summary.outcome + (f" ({summary.reason})" if summary.reason else "")
    if summary.outcome == "completed" and summary.is_sound:
        missed = [
            f"{each.measure} {each.comparison} {measure_text(each.measure, each.bound, summary.measures)}"
            for each in summary.expectations
            if each.met is False
        ]
        text = summary.outcome + (f" (expected {', '.join(missed)})" if missed else "")
    elif summary.ran_to_end:
        text = outcome_text(summary)
    headline = summary.headline
    measured = headline.told((summary.final or summary.last).get(headline.name))
    if summary.last and not summary.final:
        measured += f" at update {summary.last_version or 0:,}"
    if summary.last:
        measured += f" (best {headline.text(summary.best.get(headline.name))})"
    updates = count_text(summary.updates, "update")
    last = f", the last at {seconds_text(summary.last_update_s)}" if summary.updates and summary.has_idle_end else ""
    figures = (
        measured,
        updates if summary.time_s is None else f"{updates} in {took}{last}",
        summary.own.payload_text if summary.own else "",
    )
    return f"{mark} {summary.trial} {text}: {', '.join(filter(None, figures))}", style


def line_every_s(age_s: float) -> float:
    """The time between two lines in the log of a trial of that age."""
    return next(every_s for since_s, every_s in reversed(LINE_EVERY_S.items()) if age_s >= since_s)
