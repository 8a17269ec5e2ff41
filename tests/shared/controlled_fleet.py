"""A controller, and shorthand for what its nodes say."""

from edgebed.core import records
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller, Phase
from edgebed.roles.events import EndNode, Journal
from edgebed.wire import messages


class Fleet:
    """A controller, and shorthand for what its nodes say."""

    def __init__(self, plan, received):
        self.controller = Controller(
            plan, Admission(plan, lambda node: NodeInputs((), [node.node.encode()])), "process"
        )
        self.received = received
        self.effects = self.controller.launch(0.0)
        self.now = 0.0

    def do(self, event, now=None):
        """Hand an event to the controller; its effects are returned and collected."""
        self.now = self.now if now is None else now
        effects = self.controller.handle(event, self.now)
        self.effects += effects
        return effects

    def hello(self, node, peer="", now=None):
        """A node is up."""
        return self.do(self.received(messages.Hello(sender=node, pid=1), (), peer), now)

    def ready(self, node, peer="", now=None):
        """A node is set up."""
        message = messages.Ready(sender=node, data_address="data", management_address="management")
        return self.do(self.received(message, (), peer), now)

    def report(self, node, *said, now=None):
        """A node's records."""
        return self.do(
            self.received(messages.Report(sender=node, first=0, records=tuple((0.0, one) for one in said))), now
        )

    def bye(self, node, peer=""):
        """A node ends as it was told."""
        return self.do(self.received(messages.Bye(sender=node, reason="done"), (), peer))

    def start(self, *nodes, now=None):
        """Bring nodes up, all of them unless said otherwise."""
        for node in nodes or tuple(self.controller.members):
            self.hello(node, now=now)
            self.ready(node, now=now)
        return self

    def states(self):
        """Every node's latest state."""
        return {name: member.state for name, member in self.controller.members.items()}

    def records(self, kind):
        """All records of a kind so far."""
        return [e.record for e in self.effects if isinstance(e, Journal) and isinstance(e.record, kind)]

    def ended(self):
        """(outcome, reason) of the one Ended record; the shell was told to stop right after it."""
        (record,) = self.records(records.Ended)
        assert self.effects[-1] == EndNode(record.reason)
        assert self.controller.phase is Phase.OVER
        return record.outcome, record.reason
