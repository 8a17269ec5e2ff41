"""What happens to the nodes of a trial, in the words of its user: deaths, silences, faults, resuming.

The same often happens to several nodes at once, and a death that was asked for is not reported, which the journal may
only say after it: so what came within a moment is gathered, and reported together.
"""

from collections import deque
from collections.abc import Collection, Sequence

import msgspec

from edgebed.core import records
from edgebed.core.actions import ENDS_FREEZE, ENDS_LIFE, FREEZES
from edgebed.journal.folds import Fold, Timeline, on

GATHER_S = 0.25
TROUBLES_MAX = 40
LATEST_MAX = 3
NAMED_MAX = 6
"""Number of nodes that are named where the same happened to several at once."""


class Trouble(msgspec.Struct, frozen=True):
    """Something that a user should know at once."""

    elapsed_s: float
    """Seconds since training began."""
    text: str
    """What happened, e.g. "edge-0 died: killed by SIGKILL"."""


class Troubles(Fold):
    """Follows the records of a trial; those that matter here all come from the controller and the server."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.timeline = timeline
        self.told: list[Trouble] = []
        """The first troubles, and at last a remark that no more are stored."""
        self.latest: deque[Trouble] = deque(maxlen=LATEST_MAX)
        self._unresponsive: set[str] = set()
        self._doing: dict[tuple[str, str], tuple[float, list[str]]] = {}
        """When each (action, outcome) first happened, and to which nodes; not reported yet."""
        self._deaths: dict[str, Trouble] = {}
        """Deaths that are not reported yet, by node."""
        self._killed: set[str] = set()
        self._frozen: set[str] = set()

    @on(records.Resumed, records.Restored, records.Node, records.Fault)
    def _pass(self, t: float, _: str, __: records.Record) -> None:
        """Let time pass before what happens now is taken in."""
        self.tell_gathered(self.timeline.elapsed_s(t))

    @on(records.Resumed)
    def _resumed(self, t: float, _: str, record: records.Resumed) -> None:
        if record.reason:
            self._tell(t, f"all shards resume from step {record.step:,}: {record.reason}")

    @on(records.Restored)
    def _restored(self, t: float, _: str, record: records.Restored) -> None:
        goes_on = f"the server resumes from update {record.version:,}"
        self._tell(t, goes_on if record.version else "the server begins anew: there is no checkpoint yet")

    def tell_gathered(self, now: float = float("inf")) -> None:
        """Report what has been gathered, if by now it is more than a moment old."""
        times = [t for t, _ in self._doing.values()] + [death.elapsed_s for death in self._deaths.values()]
        if not times or now - min(times) < GATHER_S:
            return
        told = [*self._deaths.values()]
        told += [
            Trouble(t, f"{_nodes_text(nodes)}: {what}{outcome}") for (what, outcome), (t, nodes) in self._doing.items()
        ]
        self._deaths.clear()
        self._doing.clear()
        for trouble in told:
            self._keep(trouble)

    @on(records.Fault)
    def _fault(self, t: float, _: str, record: records.Fault) -> None:
        """Take in what was done to a node on purpose, or could not be; what had no effect is no news."""
        if record.no_op:
            return
        if not record.problem:
            _note(record.action, record.target, ENDS_LIFE, ("launch",), self._killed)
            _note(record.action, record.target, FREEZES, ENDS_FREEZE, self._frozen)
            if record.target in self._killed:
                self._deaths.pop(record.target, None)
        what = f"{record.action} {record.change}".rstrip()
        outcome = f": could not be done: {record.problem}" if record.problem else ""
        done = f"{what} ({record.name})", outcome
        self._doing.setdefault(done, (self.timeline.elapsed_s(t), []))[1].append(record.target)

    @on(records.Node)
    def _node(self, t: float, _: str, record: records.Node) -> None:
        """Take in what became of a node: it is gone, or there again."""
        name = record.name
        was_unresponsive = name in self._unresponsive
        self._unresponsive.discard(name)
        text = f"{name} {record.state}: {record.reason}".removesuffix(": ")
        if record.state == "unresponsive" and name not in self._frozen:
            self._unresponsive.add(name)
            self._tell(t, text)
        elif record.state == "died" and name not in self._killed:
            self._deaths[name] = Trouble(self.timeline.elapsed_s(t), text)
        elif record.state == "missing":
            self._tell(t, text)
        elif record.state == "running" and was_unresponsive:
            self._tell(t, f"{name} is back")

    def _tell(self, t: float, text: str) -> None:
        """Report this at once, after what has been gathered."""
        self.tell_gathered()
        self._keep(Trouble(self.timeline.elapsed_s(t), text))

    def _keep(self, trouble: Trouble) -> None:
        self.latest.append(trouble)
        if len(self.told) < TROUBLES_MAX:
            self.told.append(trouble)
        elif len(self.told) == TROUBLES_MAX:
            self.told.append(Trouble(trouble.elapsed_s, "what else happens to nodes is in the report"))


def _note(action: str, node: str, begin: Collection[str], end: Collection[str], nodes: set[str]) -> None:
    """Update the nodes that are in a state that some actions begin and others end."""
    if action in begin:
        nodes.add(node)
    elif action in end:
        nodes.discard(node)


def _nodes_text(nodes: Sequence[str]) -> str:
    more = len(nodes) - NAMED_MAX
    return ", ".join(nodes) if more <= 1 else f"{', '.join(nodes[:NAMED_MAX])} and {more:,} more"
