"""Live progress of a run on standard error: a bar that moves on a terminal, a line every few seconds elsewhere.

The run calls; nothing here has a thread or a timer of its own. Colours follow NO_COLOR.
"""

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edgebed.observe.quantities import bytes_text, number_text, percent_text, seconds_text
from edgebed.observe.summary import TrialSummary
from edgebed.scenario.plan import Plan

REFRESH_S = 0.1  # As fast as an eye follows figures; drawing costs about 1 ms.
LINE_EVERY_S = 5.0  # A log of a ten-minute run then has some hundred lines.


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a trial stands."""

    trial: str
    state: str
    """What goes on, e.g. starting, running, stopping."""
    updates: int = 0
    updates_per_s: float = 0.0
    accuracy: float | None = None
    """The last one measured, as a fraction; None before the first."""
    loss: float | None = None
    ingress_bytes: int = 0
    nodes_up: int = 0
    nodes_expected: int = 0
    elapsed_s: float = 0.0
    stop_updates: int | None = None
    interrupted: bool = False


class Progress:
    """Shows one trial after the other; used as a context manager, so that the terminal is left clean."""

    def __init__(
        self, stream: TextIO | None = None, *, width: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = Console(file=stream or sys.stderr, width=width, highlight=False, soft_wrap=False)
        self._clock = clock
        self._live: Live | None = None
        self._shown = float("-inf")
        self._state = ""

    def __enter__(self) -> Self:
        """The progress itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._stop()

    def trial_started(self, plan: Plan) -> None:
        """Announce a trial and begin its display."""
        self._stop()
        workers = len(plan.workers())
        self._print(f"{plan.trial}: {workers} worker{'s' if workers != 1 else ''}, seed {plan.seed}", style="bold")
        self._shown, self._state = float("-inf"), ""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()

    def update(self, status: Status) -> None:
        """Show `status`, unless the last one was shown a moment ago; a change of state is shown at once."""
        now = self._clock()
        state = "interrupted, stopping" if status.interrupted else status.state
        if state == self._state and now - self._shown < (REFRESH_S if self._live else LINE_EVERY_S):
            return
        self._shown, self._state = now, state
        if self._live:
            self._live.update(_display(status, state), refresh=True)
        else:
            self._print(f"{status.trial}: {state}, {', '.join(_figures(status))}")

    def trial_ended(self, summary: TrialSummary) -> None:
        """End the display of a trial and leave one line about it."""
        self._stop()
        style = "green" if summary.met else "red"
        mark, text = ("✓", "") if summary.met else ("✗", f" ({summary.reason})" if summary.reason else "")
        if summary.outcome == "completed" and not summary.met:
            missed = (
                f"{each.measure} {each.comparison} {each.bound:g}" for each in summary.expectations if not each.met
            )
            text = f" (expected {', '.join(missed)})"
        figures = (
            f"accuracy {percent_text(summary.final_accuracy)}",
            f"{summary.updates:,} updates in {seconds_text(summary.time_s)}",
            f"ingress {bytes_text(summary.ingress_bytes)}",
        )
        self._print(f"{mark} {summary.trial} {summary.outcome}{text}: {', '.join(figures)}", style=style)

    def _print(self, text: str, *, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


def _figures(status: Status) -> list[str]:
    """The figures of a status, each with its name."""
    target = "" if status.stop_updates is None else f" of {status.stop_updates:,}"
    return [
        f"{status.updates:,}{target} updates",
        f"{number_text(status.updates_per_s)} updates/s",
        f"accuracy {percent_text(status.accuracy)}",
        f"ingress {bytes_text(status.ingress_bytes)}",
        f"{status.nodes_up}/{status.nodes_expected} nodes up",
        seconds_text(status.elapsed_s),
    ]


def _display(status: Status, state: str) -> RenderableType:
    """Two lines: how far, and the figures; without a number of updates to reach, the bar only says that it moves."""
    bar = ProgressBar(
        total=status.stop_updates or None,
        completed=status.updates,
        pulse=not status.stop_updates,
        animation_time=status.elapsed_s,
    )
    first = Table.grid(padding=(0, 1), expand=True)
    first.add_column(no_wrap=True)
    first.add_column(ratio=1)
    first.add_column(no_wrap=True, justify="right")
    updates, *others = _figures(status)
    colour = "yellow" if status.interrupted else "cyan"
    first.add_row(Text(f"{status.trial} {state}", style=colour), bar, Text(updates))
    return Group(first, Text("  ".join(others), style="dim", no_wrap=True, overflow="ellipsis"))
