"""The journal of a run as lines to print, in time order: JSON as the files hold it, or words.

A trial after the other, since each has a clock of its own. Nodes report in batches, so a journal's lines are not quite
in the order of their times: when following, a line waits for one more look before it is printed.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

import msgspec

from edgebed.core import records
from edgebed.core.errors import EdgebedError
from edgebed.core.reading import NOT_JSON
from edgebed.journal.following import GrowingFile, Pause, looks, planned_nodes, require_known, trial_names
from edgebed.journal.journal import decode_line, not_a_line
from edgebed.journal.run_folder import RunFolder, TrialFolder
from edgebed.reports.live.event_text import event_text
from edgebed.roles.control.name import NAME as CONTROLLER

KINDS = tuple(str(record.__struct_config__.tag) for record in records.RECORDS)


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are wanted; an empty field excludes none."""

    trials: Sequence[str] = ()
    nodes: Sequence[str] = ()
    """Nodes that the entry is from or about."""
    kinds: Sequence[str] = ()


class _Line(msgspec.Struct, gc=False):
    """The fields of a line that decide whether it is wanted, and where it belongs."""

    t: float
    node: str
    kind: str
    name: str = ""
    target: str = ""
    worker: str = ""
    shard: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes that the line is from or about; the name of a fault is none of a node."""
        return (self.node, self.target, self.worker, self.shard, "" if self.kind == "fault" else self.name)


_LINE = msgspec.json.Decoder(_Line)


class InOrder:
    """Puts lines that come in batches in the order of their times.

    A line waits for one look: until then an older one may come. So the order is right as long as no line comes more
    than a look later than a newer one.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[float, bytes]] = []
        self._newest = -math.inf
        """Latest time of all lines that had come before this look."""

    def look(self, new: Iterable[tuple[float, bytes]], *, is_last: bool) -> list[tuple[float, bytes]]:
        """Lines that can be printed now that `new`, (t in seconds, line), has come; all if it is the last look."""
        self._waiting.extend(new)
        self._waiting.sort(key=itemgetter(0))
        end = len(self._waiting) if is_last else bisect_right(self._waiting, self._newest, key=itemgetter(0))
        ripe, self._waiting = self._waiting[:end], self._waiting[end:]
        self._newest = max(self._newest, self._waiting[-1][0]) if self._waiting else self._newest
        return ripe


class _Trial:
    """One trial's journal as it grows."""

    def __init__(self, folder: TrialFolder, selection: EventFilter) -> None:
        self.name = folder.name
        self.selection = selection
        self.file = GrowingFile(folder.journal)
        self.order = InOrder()
        self.count = 0

    def lines(self, *, is_last: bool) -> list[tuple[float, bytes]]:
        """Lines to be printed now."""
        return self.order.look(self._new(), is_last=is_last)

    def _new(self) -> Iterator[tuple[float, bytes]]:
        """Lines that have been appended and are wanted; a last line that was cut by a kill is left out."""
        for line in self.file.new_lines(whole_only=True):
            self.count += 1
            try:
                head = _LINE.decode(line)
            except NOT_JSON as error:
                raise not_a_line(self.file.path, self.count, error) from error
            if self._wants(head):
                yield head.t, line

    def _wants(self, head: _Line) -> bool:
        kinds, nodes = self.selection.kinds, self.selection.nodes
        return (not kinds or head.kind in kinds) and (not nodes or any(name in nodes for name in head.nodes))


def event_lines(
    folder: RunFolder,
    selection: EventFilter,
    *,
    json: bool = False,
    follow: bool = False,
    pause: Pause = time.sleep,
    tell: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """The entries of a run's journals as lines, as JSON or in words; `tell` is called with each as JSON.

    With `follow` it also yields what is journaled until the run ends, with trials that begin meanwhile.
    ScenarioError, listing what there is, where the selection names something unknown.
    """
    _require_known(folder, selection)
    write = _as_json if json else _as_words(folder)
    begun: dict[str, _Trial] = {}
    for is_last in looks(folder, follow=follow, pause=pause):
        there = [each for each in folder.trials() if not selection.trials or each.name in selection.trials]
        for each in there:
            trial = begun.setdefault(each.name, _Trial(each, selection))
            for t, line in trial.lines(is_last=is_last or each.name != there[-1].name):
                try:
                    yield write(trial.name, t, line)
                except msgspec.DecodeError as error:
                    raise EdgebedError(f"{each.journal}: at {t:g} s: not a line of a journal: {error}") from error
                if tell:
                    tell(_as_json(trial.name, t, line))


def _as_json(trial: str, _: float, line: bytes) -> str:
    """A line as in the file, with the trial in front, which the line that begins training names by itself."""
    if _LINE.decode(line).kind == "trial":
        return line.decode()
    return f'{{"trial":{msgspec.json.encode(trial).decode()},{line[1:].decode()}'


def _as_words(folder: RunFolder) -> Callable[[str, float, bytes], str]:
    """A function that writes a line in columns: time, trial, node, what; an unknown node may be too wide."""
    trial_width = max(map(len, trial_names(folder)), default=0)
    node_width = max(map(len, [CONTROLLER, *planned_nodes(folder)]))

    def write(trial: str, t: float, line: bytes) -> str:
        _, node, record = decode_line(line)
        return f"{t:10.3f} s  {trial:{trial_width}}  {node:{node_width}}  {event_text(record)}"

    return write


def _require_known(folder: RunFolder, selection: EventFilter) -> None:
    require_known(folder, "trial", selection.trials, trial_names(folder))
    require_known(folder, "kind of event", selection.kinds, KINDS, listed_max=len(KINDS))
    if folder.trials():  # before, the nodes are unknown
        require_known(folder, "node", selection.nodes, [CONTROLLER, *planned_nodes(folder, selection.trials)])
