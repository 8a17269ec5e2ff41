"""A controller in virtual time and nodes that do what is done to them: for tests of faults and failures."""

import heapq

from edgebed.core import records
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller
from edgebed.roles.events import (
    ApplyInjection,
    CommandResult,
    EndNode,
    Injected,
    Journal,
    MessageReceived,
    NodeExited,
    NodeStarted,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.wire import messages


class World:
    """A controller in virtual time, and nodes that do what is done to them; `deaf` nodes never say goodbye."""

    def __init__(self, plan, past=None, now=0.0, version=0, brought=()):
        """`brought`: (t, record) that the server's log brings before the server is ready."""
        self.heap, self.count, self.now = [], 0, now
        self.brought = tuple(brought)
        self.versions = {"server": version}
        admission = Admission(plan, lambda node: NodeInputs(version=self.versions.get(node.node, 0)))
        self.controller = Controller(plan, admission, "test", past=past)
        self.lives, self.journal, self.sent, self.answers, self.injected = {}, [], [], [], []
        self.failing, self.deaf, self.over = set(), set(), False
        self.do_all(self.controller.launch(now))
        for name in self.controller.members:
            self.live(name)

    def live(self, name):
        """A life begins: the node starts, says hello and is ready as soon as it is configured."""
        self.lives[name] = f"{name}~{self.lives.get(name, '~0').rpartition('~')[2]}1"
        self.do(NodeStarted(name))
        self.say(name, messages.Hello(sender=name, pid=1))
        if name == "server" and self.brought:
            self.say(name, messages.Report(sender=name, first=0, records=self.brought))
        self.say(name, messages.Ready(sender=name, data_address=f"data {self.lives[name]}", management_address="m"))

    def say(self, name, message):
        """A node's message to the controller."""
        self.do(MessageReceived(self.lives.get(name, ""), message, (), 0))

    def report(self, name, record):
        """A node's record."""
        self.say(name, messages.Report(sender=name, first=0, records=((self.now, record),)))

    def update(self, version, worker="edge-0"):
        """The server has applied so many updates."""
        self.report("server", records.Update(worker=worker, incarnation=1, step=0, version=version, base=0, staleness=0,
                                             entries=1, bits=1, bytes=1, loss=1.0))  # fmt: skip

    def do(self, event):
        """Hand the event over and carry out what follows."""
        if not self.over:
            self.do_all(self.controller.handle(event, self.now))

    def do_all(self, effects):
        """Carry these out."""
        for effect in effects:
            if isinstance(effect, Journal):
                self.journal.append((self.now, effect.record))
            elif isinstance(effect, Send):
                self.sent.append((self.now, effect.to, effect.message))
                name = effect.to.partition("~")[0]
                if isinstance(effect.message, messages.Stop) and name not in self.deaf:
                    self.at(self.now, MessageReceived(effect.to, messages.Bye(sender=name, reason="done"), (), 0))
            elif isinstance(effect, Wake):
                self.at(effect.at_s, Woken(effect.token))
            elif isinstance(effect, ApplyInjection):
                self.inject(effect)
            elif isinstance(effect, CommandResult):
                self.answers.append(effect)
            elif isinstance(effect, EndNode):
                self.over = True

    def inject(self, effect):
        """Done after a tenth of a second, as is a life's end or beginning."""
        name, action = effect.injection.node, effect.injection.action
        self.injected.append((self.now, name, action))
        problem = "no" if action in self.failing else ""
        self.at(self.now + 0.1, Injected(effect.number, problem))
        if problem:
            return
        if action in ("kill", "memory"):
            self.at(self.now + 0.1, NodeExited(name, "killed by SIGKILL"))
        elif action == "launch":
            self.at(self.now + 0.1, name)
        elif action == "freeze":
            self.deaf.add(name)
        elif action == "thaw":
            self.deaf.discard(name)

    def at(self, at_s, event):
        """The event is due then."""
        self.count += 1
        heapq.heappush(self.heap, (at_s, self.count, event))

    def until(self, at_s):
        """Let time pass."""
        while self.heap and self.heap[0][0] <= at_s and not self.over:
            self.now, _, event = heapq.heappop(self.heap)
            if isinstance(event, str):
                self.live(event)
            else:
                self.do(event)
        self.now = max(self.now, at_s)
        return self

    def faults(self):
        """(action, target, problem or no_op) of the faults journaled."""
        found = [record for _, record in self.journal if isinstance(record, records.Fault)]
        return [(record.action, record.target, record.problem or record.no_op) for record in found]

    def state(self, name):
        """A node's."""
        return self.controller.members[name].state

    def told(self, kind, name=""):
        """The messages of a kind that were sent (to a node)."""
        return [m for _, to, m in self.sent if isinstance(m, kind) and (not name or to.startswith(f"{name}~"))]

    def ended(self):
        """(outcome, reason)."""
        (record,) = [record for _, record in self.journal if isinstance(record, records.Ended)]
        return record.outcome, record.reason


def inject(node, action, after_s=0.0, **fields):
    """A step."""
    return FaultStep(after_s=after_s, injection=Injection(node=node, action=action, **fields))


def fault(node, *steps, name="fault-1", **trigger):
    """A fault of one node."""
    return FaultPlan(name=name, node=node, trigger=Trigger(**trigger), steps=steps)
