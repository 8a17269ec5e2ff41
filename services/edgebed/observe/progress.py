"""Live progress of a run on standard error: a bar that moves on a terminal, a line every few seconds elsewhere.

The run calls; nothing here has a thread or a timer of its own. Colours follow NO_COLOR.
"""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edgebed.observe.output import make_console
from edgebed.observe.quantities import (
    bytes_text,
    count_text,
    measure_text,
    number_text,
    percent_text,
    seconds_text,
)
from edgebed.observe.summary import TrialSummary
from edgebed.scenario.plan import Plan

REFRESH_S = 0.1  # As fast as an eye follows figures; drawing costs about 1 ms.
LINE_EVERY_S = 5.0  # A log of a ten-minute run then has some hundred lines.
RESERVED_COLUMNS = 4
BAR_COLUMNS_MIN = 6
LEAST_IMPORTANT = ("rate", "ingress", "nodes", "time")


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
    ingress_bytes: int | None = 0
    """None: nothing is pushed."""
    nodes_up: int = 0
    nodes_expected: int = 0
    elapsed_s: float = 0.0
    stop_updates: int | None = None
    interrupted: bool = False
    health: dict[str, str] = {}
    """Of each node: coming, good, late (it missed a check), failed (two, or it is gone) or over."""
    troubles: tuple[str, ...] = ()
    """What went wrong with nodes so far, e.g. "edge-0 died: killed by SIGKILL"."""


class Progress:
    """Shows one trial after the other; used as a context manager, so that the terminal is left clean.

    A standard error that cannot be written ends the display, never the run.
    """

    def __init__(
        self, stream: TextIO | None = None, *, width: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = make_console(stream or sys.stderr, width=width)
        self._clock = clock
        self._live: Live | None = None
        self._shown = float("-inf")
        self._state = ""
        self._troubles = 0

    def __enter__(self) -> Self:
        """The progress itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._stop()

    def trial_started(self, plan: Plan) -> None:
        """Announce a trial and begin its display."""
        self._stop()
        self._print(f"{plan.trial}: {count_text(len(plan.workers()), 'worker')}, seed {plan.seed}", style="bold")
        self._shown, self._state, self._troubles = float("-inf"), "", 0
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            with contextlib.suppress(OSError):
                self._live.start()

    def update(self, status: Status) -> None:
        """Show `status`, unless the last one was shown a moment ago; new troubles and states are shown at once."""
        for trouble in status.troubles[self._troubles :]:
            self._print(f"! {status.trial}: {trouble}", style="yellow")
        self._troubles = len(status.troubles)
        now = self._clock()
        state = "interrupted, stopping" if status.interrupted else status.state
        if state == self._state and now - self._shown < (REFRESH_S if self._live else LINE_EVERY_S):
            return
        self._shown, self._state = now, state
        if self._live:
            with contextlib.suppress(OSError):
                self._live.update(_display(status, state, self._console.width), refresh=True)
        else:
            self._print(f"{status.trial}: {state}, {', '.join(_figures(status).values())}")

    def trial_ended(self, summary: TrialSummary) -> None:
        """End the display of a trial and leave one line about it."""
        self._stop()
        mark, style = ("✓", "green") if summary.met else ("✗", "red" if summary.outcome == "completed" else "yellow")
        text = f" ({summary.reason})" if summary.reason else ""
        if summary.outcome == "completed":
            missed = [
                f"{each.measure} {each.comparison} {measure_text(each.measure, each.bound)}"
                for each in summary.expectations
                if not each.met
            ]
            text = f" (expected {', '.join(missed)})" if missed else ""
        accuracy = f"accuracy {percent_text(summary.final_accuracy)}"
        if summary.final_accuracy is None and summary.last_accuracy is not None:
            version = summary.last_accuracy_version or 0
            accuracy = f"accuracy {percent_text(summary.last_accuracy)} at update {version:,}"
        updates = count_text(summary.updates, "update")
        is_layerwise = summary.is_layerwise
        figures = (
            accuracy,
            updates if summary.time_s is None else f"{updates} in {seconds_text(summary.time_s)}",
            f"{bytes_text(summary.exchanged_bytes)} exchanged" if is_layerwise else _ingress(summary.ingress_bytes),
        )
        self._print(f"{mark} {summary.trial} {summary.outcome}{text}: {', '.join(figures)}", style=style)

    def _print(self, text: str, *, style: str = "") -> None:
        with contextlib.suppress(OSError):
            self._console.print(Text(text, style=style), soft_wrap=True)

    def _stop(self) -> None:
        """Wipe the display, before anything else is printed."""
        live, self._live = self._live, None
        if live:
            with contextlib.suppress(OSError):
                live.stop()


def _ingress(size: int) -> str:
    return f"ingress {bytes_text(size)}"


def _figures(status: Status) -> dict[str, str]:
    """The figures of a status by name, each with what it is."""
    target = "" if status.stop_updates is None else f" of {status.stop_updates:,}"
    ingress = {} if status.ingress_bytes is None else {"ingress": _ingress(status.ingress_bytes)}
    return {
        "updates": f"{status.updates:,}{target} updates",
        "rate": f"{number_text(status.updates_per_s)} updates/s",
        "accuracy": f"accuracy {percent_text(status.accuracy)}",
        **ingress,
        "nodes": f"{status.nodes_up}/{status.nodes_expected} nodes up",
        "time": seconds_text(status.elapsed_s),
    }


def _display(status: Status, state: str, width: int) -> RenderableType:
    """Two lines: how far, and the figures; without a number of updates to reach, the bar only says that it moves.

    What does not fit is left out, the least important first. The end of the last line stays free: a terminal puts its
    `^C` there, and a line that wrapped could not be wiped.
    """
    width -= RESERVED_COLUMNS
    figures = _figures(status)
    updates = figures.pop("updates")
    heading = f"{status.trial} {state}"
    first = Table.grid(padding=(0, 1))
    first.add_column(no_wrap=True, overflow="ellipsis")
    cells: list[RenderableType] = [Text(heading, style="yellow" if status.interrupted else "cyan")]
    room = width - len(heading) - len(updates) - 2
    if room >= BAR_COLUMNS_MIN:
        first.add_column()
        bar = ProgressBar(
            total=status.stop_updates or None,
            completed=status.updates,
            width=room,
            pulse=not status.stop_updates,
            animation_time=status.elapsed_s,
        )
        cells.append(bar)
    if room >= 0:
        first.add_column(no_wrap=True)
        cells.append(Text(updates))
    else:
        figures = {"updates": updates, **figures}
    first.add_row(*cells)
    for name in LEAST_IMPORTANT:
        if len("  ".join(figures.values())) <= width:
            break
        figures.pop(name, None)
    return Group(first, Text("  ".join(figures.values()), style="dim", no_wrap=True, overflow="ellipsis"))
