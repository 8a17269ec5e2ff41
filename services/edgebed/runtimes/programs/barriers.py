"""Who has come to which barrier, and who may go on; pure."""


class Barriers:
    """The barriers of a trial, by the names that programs give them."""

    def __init__(self) -> None:
        self._there: dict[str, dict[str, None]] = {}
        """Nodes that wait at each, in the order in which they came."""

    def came(self, node: str, barrier: str, nodes: int) -> list[str]:
        """Note that a node has come; return those that may go on, once so many `nodes` are there."""
        there = self._there.setdefault(barrier, {})
        there[node] = None
        return list(self._there.pop(barrier)) if len(there) >= nodes else []

    def left(self, node: str) -> None:
        """Note that a node's program has ended: it waits no more."""
        for there in self._there.values():
            there.pop(node, None)
