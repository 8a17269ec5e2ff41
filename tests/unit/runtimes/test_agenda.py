"""The agenda finds what a fault concerns by its index: the same as if it looked at everything, without doing so."""

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from edgebed.runtimes.simulation.agenda import Agenda


class Event(NamedTuple):
    """Something that may be on its way over a connection."""

    name: int
    connection: str | None = None


class Naive:
    """What an agenda means: a list that is looked through."""

    def __init__(self) -> None:
        self.now, self.entries = 0.0, []

    def add(self, at_s: float, owner: str, event: Event) -> None:
        """At the end; sorting keeps the order of equals."""
        self.entries.append((max(at_s, self.now), owner, event))

    def next(self) -> Any:
        """The first of the earliest."""
        if not self.entries:
            return None
        entry = min(self.entries, key=lambda each: each[0])
        self.entries.remove(entry)
        self.now = entry[0]
        return entry[1:]

    def take(self, subject: str, concerns: Any) -> Any:
        """All of an owner, or of a connection, that are wanted."""
        taken = [each for each in self.entries if subject in (each[1], each[2].connection) and concerns(*each[1:])]
        self.entries = [each for each in self.entries if each not in taken]
        return [(at_s - self.now, owner, event) for at_s, owner, event in sorted(taken, key=lambda each: each[0])]


OWNERS, CONNECTIONS = st.sampled_from(["edge-0", "edge-1", "server"]), st.sampled_from([None, "line-0", "line-1"])
ACTS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0]), OWNERS, CONNECTIONS),
    st.tuples(st.just("next")),
    st.tuples(st.just("take"), st.one_of(OWNERS, CONNECTIONS.filter(bool)), st.integers(1, 3)),
)


@given(st.lists(ACTS, max_size=60))
def test_an_agenda_does_what_a_list_does_that_is_looked_through(acts):
    """Whatever is added, happens and is taken out, in whichever order; and what is over leaves nothing behind."""
    agenda, naive = Agenda[str](), Naive()
    for name, (act, *given_) in enumerate(acts):
        if act == "add":
            for each in (agenda, naive):
                each.add(given_[0], given_[1], Event(name, given_[2]))
        elif act == "next":
            assert agenda.next() == naive.next()
        else:
            part = given_[1]
            wanted = [each.take(given_[0], lambda _, event: event.name % part == 0) for each in (agenda, naive)]  # noqa: B023
            assert wanted[0] == wanted[1]
        assert agenda.now == naive.now
        assert len(agenda.heap) <= 2 * len(naive.entries) + 1
    while (entry := naive.next()) is not None:
        assert agenda.next() == entry

    assert agenda.next() is None
    assert not agenda.of


def test_taking_out_looks_at_what_is_of_the_connection_alone():
    """However much else is to come."""
    agenda, looked_at = Agenda[str](), []
    for k in range(1_000):
        agenda.add(float(k), f"edge-{k % 10}", Event(k, f"line-{k % 100}"))
    agenda.take("line-7", lambda _, event: looked_at.append(event) or True)

    assert len(looked_at) == 10
    assert {event.connection for event in looked_at} == {"line-7"}
