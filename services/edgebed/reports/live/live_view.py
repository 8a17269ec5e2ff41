"""What a terminal shows of a trial in progress: a few lines that fit in it.

    asgd training ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 300 of 600 updates
    98.7 updates/s  accuracy 93.21 %  312 kB up  6/6 nodes up  12.3 s  12 s left
    home   4 nodes          73.1 updates/s  74.1 %  CPU 0.48 of 0.5
    phone  1/2 up, 1 died   25.6 updates/s  25.9 %  CPU 0.24 of 0.25
    hosts  lab-1 40 % busy  lab-2 97 % busy
    9.51 s  phone-1 died: killed by SIGKILL

What does not fit is left out, the least important first. The end of each line stays free: a terminal puts its `^C`
there, and a line that wrapped could not be wiped.
"""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edgebed.core.console import quoted
from edgebed.core.quantities import bytes_text, count_text, number_text, seconds_text
from edgebed.journal.trial_state import ClassStatus, TrialStatus, is_up
from edgebed.journal.troubles import Trouble
from edgebed.reports.live.pace import Times, share_of
from edgebed.roles.control.controller import Phase

RESERVED_COLUMNS = 4
RESERVED_ROWS = 1
"""Rows reserved for the cursor."""
HEAD_ROWS = 2
BAR_COLUMNS_MIN = 6
GAP = "  "
MEASURES_MAX = 3  # of programs
SECONDS_MAX = 99.5  # what is longer is told in minutes
LEAST_IMPORTANT = ("rate", "wall", "up", "nodes", "time", "left")
LEAST_IMPORTANT_OF_CLASS = ("share", "CPU", "rate")


def live_view(status: TrialStatus, state: str, times: Times, width: int, height: int) -> RenderableType:
    """Progress, figures, a line a device class, one on hosts, and what happened last, in so many columns and rows."""
    width -= RESERVED_COLUMNS
    rows = height - RESERVED_ROWS - HEAD_ROWS
    shown, latest = _rows_for(rows, len(status.classes) + bool(status.hosts), len(status.latest))
    lines = class_lines(status, width, min(shown, len(status.classes)))
    if shown > len(status.classes):
        lines.append(GAP.join(["hosts", *(f"{host} {100 * busy:.0f} % busy" for host, busy in status.hosts.items())]))
    below = [_fitted(line, "dim", width) for line in lines]
    below += [_fitted(line, "yellow", width) for line in _trouble_lines(status.latest, latest)]
    return Group(*_head(status, state, times, width), *below)


def figures_of(status: TrialStatus, times: Times) -> dict[str, str]:
    """The figures of a status by name, each with what it is; without those that are not known yet.

    While nodes are started there is no training: how many are ready, and for how long they have been started.
    """
    if status.state == Phase.LAUNCHED.value:
        ready = f"{status.nodes_ready:,} of {count_text(status.nodes_expected, 'node')} ready"
        return {"updates": ready, "time": seconds_text(status.elapsed_s)}
    if not status.trains:
        told = [f"{name} {number_text(value)}" for name, value in status.measured.items()]
        return {
            "updates": f"{status.nodes_up:,} of {count_text(status.nodes_expected, 'program')} up",
            **({"measured": ", ".join(told[:MEASURES_MAX])} if told else {}),
            "time": seconds_text(status.elapsed_s),
        }
    target = "" if status.stop_updates is None else f" of {status.stop_updates:,}"
    limit = "" if status.stop_time_s is None else f" of {seconds_text(status.stop_time_s)}"
    figures = {
        "updates": f"{status.updates:,}{target} updates",
        "rate": "" if status.updates_per_s is None else f"{number_text(status.updates_per_s)} {_unit(status)}",
        "measured": status.headline.told(status.measured.get(status.headline.name), status.selects_by)
        if status.headline
        else "",
        "up": "" if status.ingress_bytes is None else f"{bytes_text(status.ingress_bytes)} up",
        "nodes": f"{status.nodes_up}/{status.nodes_expected} nodes up",
        "time": f"{seconds_text(status.elapsed_s)}{limit}{' of virtual time' if status.is_virtual else ''}",
        "wall": f"{seconds_text(times.wall_s)} by the clock" if status.is_virtual else "",
        "left": "" if times.left_s is None else _left_text(times.left_s),
    }
    return {name: figure for name, figure in figures.items() if figure}


def _left_text(left_s: float) -> str:
    """A forecast, without the digits that it has not."""
    return f"{f'{max(1, round(left_s))} s' if left_s < SECONDS_MAX else seconds_text(left_s)} left"


def _unit(status: TrialStatus) -> str:
    """What a rate counts: in virtual time what is simulated in a second of the clock, which no table has."""
    return "simulated/s" if status.is_virtual else "updates/s" if status.ingress_bytes is not None else "steps/s"


def class_lines(status: TrialStatus, width: int, rows: int) -> list[str]:
    """Lines on the device classes, `rows` at most, without what makes them too wide; the last may count the others."""
    if rows <= 0 or not status.classes:
        return []
    shown = status.classes if len(status.classes) <= rows else status.classes[: rows - 1]
    cells = [_class_cells(each, status) for each in shown]
    names = ["name", "nodes", "rate", "share", "CPU"]
    if not any(row["share"] for row in cells) or len(status.classes) == 1:
        names.remove("share")
    if not status.trains:
        names.remove("rate")
    for name in LEAST_IMPORTANT_OF_CLASS:
        if _width(cells, names) <= width:
            break
        if name in names:
            names.remove(name)
    widths = {name: max((len(row[name]) for row in cells), default=0) for name in names}
    lines = [GAP.join(_aligned(row[name], name, widths[name]) for name in names).rstrip() for row in cells]
    hidden = len(status.classes) - len(shown)
    lines += [f"and {hidden:,} more"] if hidden else []
    return lines


def _head(status: TrialStatus, state: str, times: Times, width: int) -> tuple[RenderableType, RenderableType]:
    """The first two lines; without a limit to reach, the bar only shows that it moves."""
    figures, share = figures_of(status, times), share_of(status)
    updates = figures.pop("updates")
    heading = f"{status.trial} {state}"
    first = Table.grid(padding=(0, 1))
    first.add_column(no_wrap=True, overflow="ellipsis")
    cells: list[RenderableType] = [Text(heading, style="yellow" if status.interrupted else "cyan")]
    room = width - len(heading) - len(updates) - 2
    if room >= BAR_COLUMNS_MIN:
        first.add_column()
        bar = ProgressBar(
            total=None if share is None else 1.0,
            completed=share or 0.0,
            width=room,
            pulse=share is None,
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
        if len(GAP.join(figures.values())) <= width:
            break
        figures.pop(name, None)
    return first, Text(GAP.join(figures.values()), style="dim", no_wrap=True, overflow="ellipsis")


def _rows_for(rows: int, classes: int, latest: int) -> tuple[int, int]:
    """Numbers of rows for device classes and latest troubles: the last trouble first of all, then the classes."""
    rows = max(0, rows)
    first = min(1, latest, rows)
    of_classes = min(classes, rows - first)
    return of_classes, min(latest, rows - of_classes)


def _trouble_lines(latest: Sequence[Trouble], rows: int) -> list[str]:
    return [f"{seconds_text(each.elapsed_s)}{GAP}{each.text}" for each in latest[len(latest) - rows :]]


def _class_cells(each: ClassStatus, status: TrialStatus) -> dict[str, str]:
    unit = "steps/s" if status.ingress_bytes is None else _unit(status)
    cap = "" if each.cpus_held is None else f" of {number_text(each.cpus_held)}"
    return {
        "name": each.name,
        "nodes": nodes_text(each),
        "rate": f"{number_text(each.rate_per_s)} {unit}",
        "share": "" if each.share is None else f"{100 * each.share:.1f} %",
        "CPU": "" if each.cpus_used is None else f"CPU {each.cpus_used:.2f}{cap}",
    }


def nodes_text(each: ClassStatus) -> str:
    """The number of nodes in a class; if not all are up, how many are, and what became of the others."""
    if each.nodes_up == each.nodes:
        return count_text(each.nodes, "node")
    others = [f"{count:,} {state}" for state, count in sorted(each.states.items()) if not is_up(state)]
    return f"{each.nodes_up:,}/{each.nodes:,} up, {', '.join(others)}"


def _width(cells: Sequence[dict[str, str]], names: Sequence[str]) -> int:
    return sum(max((len(row[name]) for row in cells), default=0) for name in names) + len(GAP) * (len(names) - 1)


def _aligned(cell: str, name: str, width: int) -> str:
    return cell.rjust(width) if name in ("rate", "share") else cell.ljust(width)


def _fitted(line: str, style: str, width: int) -> Text:
    """A text on one line, cut with a mark where it is too long; characters may be two columns wide."""
    text = Text(quoted(line).expandtabs(1).replace("\n", " ") if width > 0 else "", style=style, no_wrap=True)
    text.truncate(max(1, width), overflow="ellipsis")
    return text
