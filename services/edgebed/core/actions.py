"""What can be done to a node from outside: each action, with what the rest of edgebed has to know of it.

Planning, controller, runtimes and verdict ask for a trait, or for one of the sets below; where they name an action, it
is one that they do, or model, themselves.
"""

from signal import SIGCONT, SIGKILL, SIGSTOP, Signals
from typing import Literal, NamedTuple

Action = Literal["kill", "launch", "freeze", "thaw", "cut", "heal", "link", "cpus", "memory"]
"""Actions on a node. `launch` starts a dead one again; `memory` has it fill its memory."""


class Traits(NamedTuple):
    """What is known of an action."""

    by: Literal["launcher", "link", "cap", "node"]
    """Who does it: what starts and ends nodes; what holds the node's link, or its CPU cap; or the node itself. All but
    the first are told to the node, too."""
    takes_away: Literal["", "process", "answers", "connection"] = ""
    """What the node loses by it; with any of it the server may lose pushes, and the journal what the node measured."""
    undoes: tuple[Action, ...] = ()
    """Actions whose effect it ends."""
    outlasts: bool = False
    """Whether it can be done to a node that is not there, and is done to the node's next incarnation, too."""
    takes_time: bool = False
    """Whether it is under way for as long as the node takes; it begins in time all the same."""
    sets: str = ""
    """What it gives a value, or sets back to the plan's, in words; empty: nothing."""
    signal: Signals | None = None
    """The signal by which it is done to a process."""


ACTIONS: dict[Action, Traits] = {
    "kill": Traits("launcher", "process", signal=SIGKILL),
    "launch": Traits("launcher", undoes=("kill", "memory", "freeze"), takes_time=True),
    "freeze": Traits("launcher", "answers", signal=SIGSTOP),
    "thaw": Traits("launcher", undoes=("freeze",), signal=SIGCONT),
    "cut": Traits("link", "connection", outlasts=True),
    "heal": Traits("link", undoes=("cut",), outlasts=True),
    "link": Traits("link", outlasts=True, sets="its link"),
    "cpus": Traits("cap", outlasts=True, sets="its CPU cap"),
    "memory": Traits("node", "process", takes_time=True),
}

LINK_ACTIONS = frozenset(name for name, traits in ACTIONS.items() if traits.by == "link")
"""Actions on a node's link, which both of its ends are told."""
TAKES_AWAY = frozenset(name for name, traits in ACTIONS.items() if traits.takes_away)
"""Actions that take a node away from the server."""
BRINGS_BACK = frozenset(name for name, traits in ACTIONS.items() if traits.undoes)
"""Actions that bring a node back to the server."""
ENDS_LIFE = frozenset(name for name, traits in ACTIONS.items() if traits.takes_away == "process")
"""Actions by which a node's process ends, at once or in time."""
KILLS = frozenset(name for name in ENDS_LIFE if ACTIONS[name].by == "launcher")
"""Actions that end a process from outside, at once."""
FREEZES = frozenset(name for name, traits in ACTIONS.items() if traits.takes_away == "answers")
"""Actions after which the node's process is there, and does nothing."""
UNDOES: dict[Action, Action] = {
    name: undone for name, traits in ACTIONS.items() for undone in traits.undoes[:1] if undone not in ENDS_LIFE
}
"""Actions that end what nothing but another action brings about, and that action; a node may die by itself."""
ENDS_FREEZE = ENDS_LIFE | {name for name, traits in ACTIONS.items() if FREEZES.intersection(traits.undoes)}
"""Actions after which a node is frozen no longer."""
