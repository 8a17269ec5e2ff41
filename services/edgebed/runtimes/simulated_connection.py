"""The connection between two nodes in virtual time: it stands still while the link of either is cut.

What was on its way then comes later, or is lost: emulation/outage.py says which. Whatever else ends it, a node's death
or a host that is elsewhere now, all that has not quite left is lost, too.
"""

from collections import Counter

import msgspec

from edgebed.emulation.outage import RECONNECT_S, Outage
from edgebed.emulation.passage import Passage
from edgebed.roles.events import Received, Send
from edgebed.runtimes import tracing
from edgebed.runtimes.agenda import Agenda
from edgebed.runtimes.simulated_node import Life
from edgebed.wire import messages

THE_TRIAL_ENDED = "the trial ended"


class Departure(msgspec.Struct, frozen=True, gc=False):
    """A message that is sent, until its last byte has left."""

    effect: Send
    target: Life
    connection: "Connection"
    first_s: float
    """When its first byte left, or will."""


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A message whose last byte has left its sender, until its receiver handles it."""

    event: Received
    connection: "Connection"


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A message that is sent as soon as the link is healed."""

    effect: Send
    target: Life
    connection: "Connection"


OnItsWay = Departure | Arrival | Waiting


class Losses:
    """What never got where it was sent. Nobody in the trial knows all of it."""

    def __init__(self) -> None:
        self.pushes: dict[tuple[str, int, int], str] = {}
        """(worker, incarnation, step): why."""
        self.others: Counter[str] = Counter()
        """Kind of message: how many."""
        self.has_ended = False
        """The nodes are told to stop: what is on its way from then on is lost for no other reason."""

    def note(self, message: messages.AnyMessage, why: str) -> None:
        """This one was lost."""
        if isinstance(message, messages.Push):
            known = message.sender, message.incarnation, message.step
            self.pushes[known] = THE_TRIAL_ENDED if self.has_ended else why
        else:
            self.others[tracing.kind_of(message)] += 1


class Renewed(msgspec.Struct, frozen=True, gc=False):
    """The client makes a new connection in place of one that died."""

    connection: "Connection"


class Connection:
    """Between a client and the host that it connects to; the next life of either goes on with the same object."""

    def __init__(self, agenda: Agenda[Life], losses: Losses, passage: Passage | None) -> None:
        """`passage` holds the client's messages, where its link is limited and no other connection uses it."""
        self.agenda = agenda
        self.losses = losses
        self.passage = passage
        self.client: Life | None = None
        self.host: Life | None = None
        self.cut_links: set[str] = set()
        """Nodes whose links are cut, of its two."""
        self.outage = Outage()
        self.is_broken = True
        """There is none at present."""
        self.standing: list[tuple[float, Life, OnItsWay]] = []
        """While it is cut: (seconds that are left, to whom it happens, what) of all that is on its way."""

    def make(self, client: Life, host: Life | None) -> None:
        """The client connects with this host; nothing of a connection before remains."""
        self.lose("the server was elsewhere")
        self.client, self.host = client, host
        self.is_broken = host is None or host.ended

    def renew(self) -> bool:
        """Whether there is a new one in place of that which died: there is nobody to connect with after the host."""
        self.is_broken = self.host is None or self.host.ended
        return not self.is_broken

    def add(self, at_s: float, life: Life, message: OnItsWay) -> None:
        """Something happens to a message on its way, then, or so much later as the connection stands still."""
        if self.outage.is_cut:
            self.standing.append((max(0.0, at_s - self.agenda.now), life, message))
        else:
            self.agenda.add(at_s, life, message)

    def cut(self, node: str) -> None:
        """From now on nothing passes that node's link."""
        self.cut_links.add(node)
        if self.outage.is_cut:
            return
        self.outage.cut(self.agenda.now)
        self.agenda.take(self, lambda _, event: isinstance(event, Renewed))
        self.standing = self.agenda.take(self)

    def heal(self, node: str) -> None:
        """That node's link is as it was before it was cut."""
        self.cut_links.discard(node)
        if self.cut_links or not self.outage.is_cut:
            return
        if resume(self.outage, self.passage, self.agenda.now):
            for left_s, life, message in self.standing:
                self.agenda.add(self.agenda.now + left_s, life, message)
            self.standing = []
        else:
            self.is_broken = True
            self.lose("its connection died")
        if self.is_broken and self.client:
            self.agenda.add(self.agenda.now + RECONNECT_S, self.client, Renewed(self))

    def end(self, ended: Life) -> None:
        """One of its ends is no more."""
        self.is_broken = True
        self.lose("a node ended", ended)

    def lose(self, why: str, ended: Life | None = None) -> None:
        """All that is on its way never arrives; with `ended`, what has quite left that end still does."""

        def is_lost(life: Life, message: OnItsWay) -> bool:
            return ended is None or not isinstance(message, Arrival) or life is ended

        lost = self.agenda.take(self, lambda life, event: isinstance(event, OnItsWay) and is_lost(life, event))
        lost += [entry for entry in self.standing if is_lost(entry[1], entry[2])]
        self.standing = [entry for entry in self.standing if not is_lost(entry[1], entry[2])]
        if client := self.client:
            on_hold = [point for point, (_, message) in client.on_hold.items() if is_lost(client, message)]
            lost += [(0.0, client, client.on_hold.pop(point)[1]) for point in on_hold]
        for _, _, message in lost:
            self.losses.note(message_of(message), why)
        if self.passage:
            self.passage.clear(self.agenda.now)


def message_of(on_its_way: OnItsWay) -> messages.AnyMessage:
    """The message itself."""
    return on_its_way.event.message if isinstance(on_its_way, Arrival) else on_its_way.effect.message


def resume(outage: Outage, passage: Passage | None, now: float) -> bool:
    """The link is healed; whether what was on its way still arrives."""
    since_s, later_s = outage.since_s, outage.heal(now)
    if passage and since_s is not None:
        if later_s is None:
            passage.clear(now)
        else:
            passage.stand_still(since_s, later_s)
    return later_s is not None
