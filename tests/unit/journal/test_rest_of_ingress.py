"""What came to a server besides applied pushes, told from a journal that has sums and pushes alone."""

from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.journal.journal import Entry
from edgebed.metrics.replay import rest_of

SIZES = st.integers(1, 1000)
STEPS = st.lists(st.tuples(st.sampled_from(["push", "other", "apply", "tell"]), SIZES), max_size=60)
"""What happens at a server: a push comes and is held, something else comes, all that is held is applied, a line."""


def update(size: int) -> records.Update:
    """A push of so many bytes was applied."""
    return records.Update(
        worker="edge-0", incarnation=0, step=0, version=1, base=0, staleness=0, entries=0, bits=0, bytes=size, loss=0.0
    )  # fmt: skip


def lived(steps: list[tuple[str, int]]) -> tuple[list[Entry], list[tuple[int, int, int]]]:
    """The journal of a server's life; (bytes that came, that were applied, that were no push) at each `Traffic`."""
    entries: list[Entry] = [(0.0, "controller", records.Node(name="server", state="joined"))]
    sums = []
    came = applied = other = 0
    held: list[int] = []
    for kind, size in [*steps, ("tell", 0)]:
        if kind == "push":
            held.append(size)
            came += size
        elif kind == "other":
            other += size
            came += size
        elif kind == "apply":
            entries += [(0.0, "server", update(each)) for each in held]
            applied += sum(held)
            held = []
        else:
            entries.append((0.0, "server", records.Traffic(ingress_payload=came, egress_payload=0)))
            sums.append((came, applied, other))
    entries.append((0.0, "controller", records.Node(name="server", state="died")))
    return entries, sums


@given(st.lists(STEPS, min_size=1, max_size=3))
def test_it_never_shrinks_in_a_life_and_in_its_end_nothing_is_left_over(lives: list[list[tuple[str, int]]]) -> None:
    """With the applied pushes it is never more than what came, never less than what was no push, and in the end all."""
    told = [lived(steps) for steps in lives]
    rest = list(rest_of(entry for entries, _ in told for entry in entries))
    for _, sums in told:
        of_life, rest = rest[: len(sums)], rest[len(sums) :]
        assert of_life == sorted(of_life)
        for found, (came, applied, other) in zip(of_life, sums, strict=True):
            assert other <= found <= came - applied
        assert of_life[-1] == sums[-1][0] - sums[-1][1]
    assert rest == []
