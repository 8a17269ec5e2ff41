"""What is kept by batch: the newest of each, never more than there are batches, and whose turn it is."""

from hypothesis import given
from hypothesis import strategies as st

from edgebed.roles.events import Send
from edgebed.roles.layerwise.by_batch import ByBatch, Outbox
from edgebed.wire.messages import Activation, Gradient

STEPS = st.lists(st.integers(0, 40), max_size=60)


@given(batches=st.integers(1, 9), steps=STEPS)
def test_the_newest_of_each_batch_is_kept(batches: int, steps: list[int]) -> None:
    """Whatever order they come in; and no more than there are batches."""
    kept: ByBatch[str] = ByBatch(batches)
    for step in steps:
        kept.put(step, f"of {step}")

    newest = {step % batches: max(each for each in steps if each % batches == step % batches) for step in steps}
    assert {batch: step for batch, (step, _) in kept.kept.items()} == newest
    assert all(item == f"of {step}" for step, item in kept.kept.values())
    assert len(kept) <= batches


@given(batches=st.integers(1, 9), steps=STEPS, wanted=st.sets(st.integers(0, 8)))
def test_who_came_first_has_the_first_turn(batches: int, steps: list[int], wanted: set[int]) -> None:
    """A newer one keeps the turn of its batch, so that none waits forever; what does not fit stays."""
    kept: ByBatch[None] = ByBatch(batches)
    for step in steps:
        kept.put(step, None)
    order = [batch for batch in dict.fromkeys(step % batches for step in steps) if batch in wanted]
    popped = []
    while found := kept.pop_first(wanted.__contains__):
        popped.append(found[0] % batches)

    assert popped == order
    assert not wanted & kept.kept.keys()


def message(step: int, *, up: bool) -> Send:
    """An activation or a gradient of that step."""
    kind = Activation if up else Gradient
    return Send("edge-1", kind(sender="edge-0", history=0, step=step, tensors=()))


ACTS = st.lists(st.one_of(st.tuples(st.integers(0, 40), st.booleans()), st.none(), st.just("open")), max_size=60)


@given(batches=st.integers(1, 9), room=st.integers(1, 4), is_open=st.booleans(), acts=ACTS)
def test_an_outbox_never_has_more_on_the_way_than_there_is_room(
    batches: int, room: int, is_open: bool, acts: list
) -> None:
    """Nothing leaves while it is closed, nothing stays without need, and the newest of a batch is what leaves."""
    box, on_the_way = Outbox(batches, room, is_open=is_open), 0
    latest: dict[tuple[bool, int], int] = {}
    for act in acts:
        if act is None:
            left = box.taken() if on_the_way else []
            on_the_way -= 1 if on_the_way else 0
        elif act == "open":
            is_open, left = True, box.open()
        else:
            step, up = act
            latest[up, step % batches] = step
            left = box.put(message(step, up=up))
        on_the_way += len(left)
        for send in left:
            up = isinstance(send.message, Activation)
            assert send.message.step == latest[up, send.message.step % batches]

        assert on_the_way == box.on_their_way <= room
        assert is_open or not on_the_way
        assert len(box.waiting) <= 2 * batches
        assert not (is_open and box.waiting and on_the_way < room)
