"""A journal as it might have come from hosts whose lines overtook each other, and whose clocks show anything."""

import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from edgebed.core import records
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import Entry

CONTROLLER = "controller"


def shuffled(entries: Sequence[Entry], draw: random.Random) -> list[Entry]:
    """The same lines, those of different nodes in any order to each other, and each node's times shifted by anything.

    A node's own lines keep their order, and the controller's lines about it (it joined, died, something was done to
    it) stay where they are among them: they come over one connection.
    """
    nodes = list(dict.fromkeys(node for _, node, _ in entries if node != CONTROLLER))
    shift_s = {node: draw.uniform(-1e4, 1e4) for node in [*nodes, CONTROLLER]}
    left = {node: deque[tuple[int, Entry]]() for node in nodes}
    orders: deque[tuple[Counter[str], Entry]] = deque()
    before, said = Counter[str](), Counter[str]()
    for t, node, record in entries:
        entry = t + shift_s[node], node, record
        if node == CONTROLLER:
            concerned = _concerned(record, nodes)
            orders.append((Counter({each: said[each] for each in concerned}), entry))
            before.update(concerned)
        else:
            left[node].append((before[node], entry))
            said[node] += 1
    found: list[Entry] = []
    before, said = Counter(), Counter()
    while len(found) < len(entries):
        able = [node for node in nodes if left[node] and left[node][0][0] == before[node]]
        if orders and all(said[each] == count for each, count in orders[0][0].items()):
            able.append(CONTROLLER)
        node = draw.choice(able)
        if node == CONTROLLER:
            concerned, entry = orders.popleft()
            before.update(concerned.keys())
        else:
            _, entry = left[node].popleft()
            said[node] += 1
        found.append(entry)
    return found


def _concerned(record: records.Record, nodes: Iterable[str]) -> list[str]:
    """The nodes that a line of the controller is about."""
    if isinstance(record, records.Node):
        names = {record.name}
    elif isinstance(record, records.Fault):
        names = {record.target}
    elif isinstance(record, records.Restored):
        names = {"server"}
    else:
        names = set(nodes) if isinstance(record, records.Trial | records.Ended) else set()
    return [node for node in nodes if node in names]


def accounting_of(entries: Iterable[Entry]) -> Accounting | None:
    """The accounting of a journal with these lines."""
    return UpdateAccounting(Timeline()).add_all(entries).close()


def check_shuffled(entries: Sequence[Entry], seed: int) -> None:
    """The accounts are the same however the lines of different nodes came, and whatever their clocks showed."""
    assert accounting_of(shuffled(entries, random.Random(f"{seed}: shuffled"))) == accounting_of(entries)
