"""Random and mutated frames: each is a message, or a RemoteWireError, and nothing else."""

import random
import tracemalloc
from collections.abc import Iterator

import pytest
import soaking
from broken_messages import mutate

from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import FRAME_BYTES, decode_dense, decode_update, split_frames


def read_all(frames: list[bytes], network: str) -> bool:
    """Read a message and every tensor in it as a node would; False where it is refused."""
    try:
        message, payload = codec.decode(frames, network)
        parts = split_frames(getattr(message, "tensors", ()), payload)
    except RemoteWireError:
        return False
    for tensor, tensor_frames in parts.values():
        for decode in (decode_update, decode_dense):
            try:
                decode(tensor, tensor_frames)
            except RemoteWireError:
                continue
    return True


def home_networks(examples) -> list[str]:
    """Where each of the examples travels."""
    return ["data" if type(message) in messages.DATA else "management" for message, _ in examples]


def broken_messages(examples, seed: int, tries: int) -> Iterator[tuple[list[bytes], str]]:
    """So many mutated messages, each with the network it is said to come from."""
    rng = random.Random(seed)
    valid = [[bytes(frame) for frame in codec.encode(message, frames)] for message, frames in examples]
    assert any(len(frame) == FRAME_BYTES for frames in valid for frame in frames)
    small = [frames for frames in valid if sum(map(len, frames)) < FRAME_BYTES]
    networks = {id(frames): network for frames, network in zip(valid, home_networks(examples), strict=True)}
    for number in range(tries):
        frames = rng.choice(valid if number % 500 == 0 else small)
        yield mutate(rng, frames, small), networks[id(frames)] if rng.random() < 0.95 else "management"


@pytest.mark.random
@pytest.mark.parametrize("seed", soaking.seeds(1, 20))
def test_broken_messages_are_read_or_refused(examples, seed):
    """Whatever the bytes are, nothing but RemoteWireError is raised."""
    tries = 20_000
    read = sum(read_all(*broken) for broken in broken_messages(examples, seed, tries))

    assert 0.02 * tries < read < 0.9 * tries  # some mutations are harmless, most are not: both ways were taken


@pytest.mark.random
@pytest.mark.parametrize("seed", soaking.seeds(1, 10))
def test_reading_a_broken_message_takes_memory_in_proportion_to_its_bytes(examples, seed):
    """A few bytes cannot make a node allocate much: no announced size is believed before the bytes are there."""
    tracemalloc.start()
    try:
        for frames, network in broken_messages(examples, seed, 5_000):
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            read_all(frames, network)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - held <= 100_000 + 16 * sum(map(len, frames)), frames
    finally:
        tracemalloc.stop()
