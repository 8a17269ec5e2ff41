"""What the controller takes from which node, and from no other, such as a worker whose own code turns against the run.

Whatever a result or a verdict is made of is owed by one role; what a node measures of itself, any node may say. A role
owes it where its family of methods has it: shards push no updates, and whoever has the whole model makes no steps. Nor
is a record taken that cannot be: of nodes that there are not, of another incarnation of its node, or with numbers with
which the journal could not be read, or only with time and memory without end.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, get_args

import msgspec

from edgebed.algorithms.registry import rule_of
from edgebed.core import records
from edgebed.core.plan import Shard, TrainingNode, TrainingPlan
from edgebed.core.recorded.measured import CUMULATIVE
from edgebed.core.recorded.reach import Reach
from edgebed.core.units import LARGEST
from edgebed.wire.messages import DATA, Checkpoint, Keep, Message, Reached, Refuse

CLOCK_S = 60.0
"""By how many seconds a node's clock may be ahead of the controller's, or behind the launch."""
TEXT_MAX, SHOWN_MAX = 4096, 40
"""Characters of a text in a record, and of a name that a complaint quotes."""
NOBODY = frozenset[str]()
"""The controller journals these itself."""
SERVER, WORKER, EVALUATOR = (frozenset({duty}) for duty in ("server", "worker", "evaluator"))
SHARD, SHARD_SERVER, STORE, MODULES = (frozenset({duty}) for duty in ("shard", "server of shards", "store", "modules"))
SERVERS = SERVER | SHARD_SERVER
OF_SHARDS = SHARD | SHARD_SERVER | STORE | MODULES
NODES = SERVER | WORKER | OF_SHARDS | EVALUATOR
OWED: dict[type[records.Record | Message], frozenset[str]] = {
    records.Trial: NOBODY,
    records.Node: NOBODY,
    records.Fault: NOBODY,
    records.Restored: NOBODY,
    records.Continued: NOBODY,
    records.Ended: NOBODY,
    records.HostLoad: NOBODY,
    records.Seen: NOBODY,
    records.Measured: NOBODY,
    records.Exited: NOBODY,
    records.Output: NOBODY,
    records.Connections: NOBODY,
    records.Bypass: NOBODY,
    records.Update: SERVER,
    records.AtWork: SERVER,
    records.Appended: SERVER,
    records.Joined: SERVERS,
    records.Left: SERVERS,
    records.Finished: SERVERS,
    Checkpoint: SERVERS,
    records.Resumed: SHARD_SERVER,
    records.BackedUp: SHARD_SERVER,
    Keep: SHARD_SERVER,
    records.Refused: SERVERS | STORE,
    records.Pushes: WORKER,
    records.Unanswered: WORKER,
    records.Phases: WORKER,
    Reached: WORKER,
    records.Step: SHARD,
    records.Progress: SHARD,
    records.Taught: SHARD | MODULES,
    records.ShardPhases: SHARD | MODULES,
    records.Messages: OF_SHARDS,
    records.Traffic: SERVER | OF_SHARDS,
    records.Evaluated: EVALUATOR,
    records.Clients: EVALUATOR | WORKER,
    records.Diverged: WORKER | SHARD | EVALUATOR,
    records.Clock: NODES,
    records.Dropped: NODES,
    records.Link: NODES,
    records.Note: NODES,
    records.Received: NODES,
    records.Sent: NODES,
    records.Transfers: NODES,
    records.Unauthenticated: NODES,
    records.Usage: NODES,
}
"""Who owes a kind of record, or a message that the controller acts on."""
OF_OWN_LIFE = (records.Pushes, records.Unanswered, records.Progress)
"""Records that say which incarnation of their node they are of."""
OF_WORKERS = (records.Update, records.Joined, records.Left, records.AtWork, records.Refused)
"""Records about a worker."""
OF_NEIGHBOURS: dict[type[records.Record], tuple[str, ...]] = {
    records.Messages: ("source",),
    records.Transfers: ("name", "to"),
}
"""Fields that name the node itself, or one at the other end of its messages."""
KINDS = frozenset(kind.__name__.lower() for kind in DATA)
SOCKETS = frozenset(("data", "management"))
WORDS: dict[type[records.Record], tuple[str, frozenset[str]]] = {
    records.Dropped: ("socket", SOCKETS),
    records.Unauthenticated: ("socket", SOCKETS),
    records.Refused: ("code", frozenset((*get_args(Refuse.__annotations__["code"]), "replayed"))),
    records.Transfers: ("direction", frozenset(("up", "down"))),
    records.Messages: ("message", KINDS),
    records.Sent: ("message", KINDS),
    records.Received: ("message", KINDS),
}
"""Fields that hold one of a few words, by which things are counted."""
SUMMED: dict[type[records.Record], tuple[str, ...]] = {
    records.Update: ("entries", "bits", "bytes", "staleness", "sent"),
    records.Refused: ("count",),
    records.Dropped: ("count",),
    records.Unauthenticated: ("count",),
}
"""Fields that readers add up over all lines: their sum must be countable, too."""


class RecordPermissions:
    """What each node of a trial owes; knows what has been told, as far as what follows depends on it."""

    def __init__(self, plan: TrainingPlan, reached: int = 0) -> None:
        """`reached`: steps or updates that were told before the trial was resumed."""
        method = plan.nodes[0].method
        self.plans = {node.node: node for node in plan.nodes}
        self.duties = {node.node: _duty(node, plan) for node in plan.nodes}
        self.neighbours = plan.neighbours()
        self.measures = frozenset(each.name for each in plan.measures)
        self.strides: dict[str, int] = {}
        """Mini-batches from one step of each shard to its next."""
        if not plan.pushes:
            rule = rule_of(method)
            self.strides = {each.node: rule.stride(is_first=not _shard(each).below) for each in plan.workers()}
        self.reach = Reach(reached)
        self.sums: Counter[tuple[type[records.Record], str]] = Counter()
        self.grown: dict[tuple[Any, ...], float] = {}
        """What each cumulative report has come to, by node, incarnation, kind and the fields that tell it apart."""

    def objection(self, node: str, incarnation: int, said: records.Record | Message) -> str:
        """Say why something is not taken from a node in that incarnation; empty: it is, and is noted."""
        what, duty = type(said).__name__, self.duties[node]
        if duty not in OWED.get(type(said), NODES):
            return f"{what}, which no {duty} owes"
        if not isinstance(said, records.Record):
            return ""
        for check in CHECKS[type(said)]:
            if why := check(self, node, incarnation, said):
                return f"{what} that cannot be: {why}"
        self._note(node, incarnation, said)
        return ""

    def _note(self, node: str, incarnation: int, said: records.Record) -> None:
        kind = type(said)
        for field in SUMMED.get(kind, ()):
            self.sums[kind, field] += getattr(said, field) or 0
        if kind in CUMULATIVE:
            self.grown[_key(node, incarnation, said)] = getattr(said, CUMULATIVE[kind][0])
        if made := MADE.get(kind):
            self.reach.note(made(said))


def is_timely(t: float, now: float) -> bool:
    """Whether a node may report something of `t`, in seconds since the launch, when the controller has `now`."""
    return math.isfinite(t) and -CLOCK_S <= t <= now + CLOCK_S


# --- records of several kinds ---------------------------------------------------------------------------------------


def _long(permissions: RecordPermissions, _: str, __: int, said: Any) -> str:
    long = (field for field in TEXTS[type(said)] if sum(map(len, _texts(getattr(said, field)))) > TEXT_MAX)
    return next((f"{field} of more than {TEXT_MAX:,} characters" for field in long), "")


def _of_another_life(permissions: RecordPermissions, _: str, incarnation: int, said: Any) -> str:
    is_own = said.incarnation == incarnation
    return "" if is_own else f"of incarnation {said.incarnation:,}, in incarnation {incarnation:,}"


def _of_no_worker(permissions: RecordPermissions, _: str, __: int, said: Any) -> str:
    is_about_none = type(said) is records.Refused and not said.worker
    is_known = is_about_none or permissions.duties.get(said.worker, "evaluator") != "evaluator"
    return "" if is_known else f"of {_shown(said.worker)}, which is no worker"


def _of_no_neighbour(permissions: RecordPermissions, node: str, _: int, said: Any) -> str:
    names = (getattr(said, field) for field in OF_NEIGHBOURS[type(said)])
    strange = (name for name in names if name and name != node and name not in permissions.neighbours[node])
    return next((f"of {_shown(name)}, which it exchanges nothing with" for name in strange), "")


def _of_no_such_word(permissions: RecordPermissions, _: str, __: int, said: Any) -> str:
    field, words = WORDS[type(said)]
    word = getattr(said, field)
    return "" if word in words else f"{field} {_shown(word)}"


def _uncountable(permissions: RecordPermissions, _: str, __: int, said: Any) -> str:
    kind = type(said)
    totals = ((field, permissions.sums[kind, field] + (getattr(said, field) or 0)) for field in SUMMED[kind])
    return next((f"more {field} than can be counted" for field, total in totals if total > LARGEST), "")


def _shrunk(permissions: RecordPermissions, node: str, incarnation: int, said: Any) -> str:
    grows, _ = CUMULATIVE[type(said)]
    before = permissions.grown.get(_key(node, incarnation, said), 0)
    return f"{grows} is less than it was" if getattr(said, grows) < before else ""


def _key(node: str, incarnation: int, said: records.Record) -> tuple[Any, ...]:
    kind = type(said)
    return node, incarnation, kind, *[getattr(said, field) for field in CUMULATIVE[kind][1]]


def _untraced(permissions: RecordPermissions, node: str, _: int, __: Any) -> str:
    return "" if permissions.plans[node].trace else "nothing is traced"


# --- numbers of one kind --------------------------------------------------------------------------------------------


def _update(permissions: RecordPermissions, _: str, __: int, said: records.Update) -> str:
    if said.base >= said.version or said.staleness >= said.version:
        return f"update {said.version:,} of base {said.base:,} with staleness {said.staleness:,}"
    return permissions.reach.objection(said.version, "update")


def _beyond(permissions: RecordPermissions, _: str, __: int, said: records.Resumed | records.BackedUp) -> str:
    return permissions.reach.objection(said.step)


def _step(permissions: RecordPermissions, node: str, _: int, said: records.Step) -> str:
    stride, shard = permissions.strides[node], _shard(permissions.plans[node])
    if said.every != stride or said.step % stride:
        return f"step {said.step:,} of every {said.every:,}, of a shard that makes every {stride:,}"
    if said.made and (shard.above or said.made > said.step + stride):
        return f"{said.made:,} updates complete with step {said.step:,}"
    return permissions.reach.objection(said.step)


def _progress(permissions: RecordPermissions, node: str, _: int, said: records.Progress) -> str:
    stride, shard = permissions.strides[node], _shard(permissions.plans[node])
    if said.every != stride or said.below != shard.below or said.made > said.begun:
        return f"{said.made:,} of {said.begun:,} steps, every {said.every:,}, with inputs of {_shown(said.below)}"
    return permissions.reach.objection(said.since + said.begun * stride)


def _taught(permissions: RecordPermissions, node: str, _: int, said: records.Taught) -> str:
    owners = dict(_shard(permissions.plans[node]).owners) or {node: 0}
    return permissions.reach.objection(said.step) if said.shard in owners else f"of a module of {_shown(said.shard)}"


def _diverged(permissions: RecordPermissions, node: str, incarnation: int, said: records.Diverged) -> str:
    """An evaluator leaves its incarnation out."""
    return "" if permissions.duties[node] == "evaluator" else _of_another_life(permissions, node, incarnation, said)


def _clients(permissions: RecordPermissions, node: str, _: int, said: records.Clients) -> str:
    plan = getattr(permissions.plans[node], "by_client", None)
    if plan is None:
        return "nothing is to be measured client by client"
    if strange := set(said.clients) - {*plan.clients}:
        return f"of client {min(strange):,}, whom it has no examples of"
    lengths = {len(values) for part in (said.measured, said.tuned) for values in part.values()}
    return "" if lengths <= {len(said.clients)} else f"values of {max(lengths):,} of {len(said.clients):,} clients"


def _of_no_such_measure(permissions: RecordPermissions, _: str, __: int, said: Any) -> str:
    parts = (getattr(said, part, {}) for part in ("measured", "validation", "tuned"))
    strange = next((name for part in parts for name in part if name not in permissions.measures), "")
    return f"of {_shown(strange)}, which the task does not measure" if strange else ""


def _wrong_by_itself(permissions: RecordPermissions, node: str, incarnation: int, said: Any) -> str:
    return OWN[type(said)](permissions, node, incarnation, said)


def _duty(node: TrainingNode, plan: TrainingPlan) -> str:
    """The name by which `OWED` has what a node owes: its role, in its family of methods."""
    return node.role if plan.pushes else {"server": "server of shards", "worker": "shard"}.get(node.role, node.role)


def _shard(plan: TrainingNode) -> Shard:
    """The node's shard; an empty one where it has none."""
    return plan.shard or Shard()


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _shown(name: str) -> str:
    """A name that a node has made up, in a message."""
    return repr(name[:SHOWN_MAX])


def _text_fields(kind: type[records.Record]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.type in (str, tuple[str, ...]))


TEXTS = {kind: fields for kind in records.RECORDS if (fields := _text_fields(kind))}
"""Fields that hold text."""
Check = Callable[[RecordPermissions, str, int, Any], str]
"""A function that says what is wrong with a record of a node in an incarnation; empty: nothing."""
MADE: dict[type[records.Record], Callable[[Any], int]] = {
    records.Update: lambda said: said.version,
    records.Step: lambda said: max(said.step, said.made),
    records.BackedUp: lambda said: said.step,
}
"""How far a trial has come by a record."""
OWN: dict[type[records.Record], Check] = {
    records.Update: _update,
    records.Resumed: _beyond,
    records.BackedUp: _beyond,
    records.Step: _step,
    records.Progress: _progress,
    records.Taught: _taught,
    records.Diverged: _diverged,
    records.Clients: _clients,
}
SHARED: tuple[tuple[Collection[type[records.Record]], Check], ...] = (
    (TEXTS, _long),
    (OF_OWN_LIFE, _of_another_life),
    (OF_WORKERS, _of_no_worker),
    (OF_NEIGHBOURS, _of_no_neighbour),
    (WORDS, _of_no_such_word),
    (SUMMED, _uncountable),
    (CUMULATIVE, _shrunk),
    ((records.Sent, records.Received), _untraced),
    ((records.Evaluated, records.Clients), _of_no_such_measure),
    (OWN, _wrong_by_itself),
)
CHECKS: dict[type[records.Record], tuple[Check, ...]] = {
    kind: tuple(check for kinds, check in SHARED if kind in kinds) for kind in records.RECORDS
}
