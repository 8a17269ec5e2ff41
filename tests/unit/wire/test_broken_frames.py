"""Random and mutated frames: each is a message, or a RemoteWireError, and nothing else."""

import random
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest

from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import FRAME_BYTES, decode_dense, decode_update, split_frames

SPECIAL = bytes.fromhex("00 01 7F 80 90 9F C0 C1 C4 C7 CB CF D3 D9 DB DC DD DF FF")
"""First bytes of MessagePack's types, those with 32-bit lengths among them."""


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


def change_bytes(rng: random.Random, frame: bytes) -> bytes:
    """Some bytes replaced, or the frame cut, lengthened, or a piece of it moved."""
    if not frame:
        return rng.randbytes(rng.randrange(1, 9))
    changed = bytearray(frame)
    choice = rng.random()
    place = rng.randrange(len(changed))
    if choice < 0.4:
        changed[place] = rng.randrange(256)
    elif choice < 0.6:
        changed[place] ^= 1 << rng.randrange(8)
    elif choice < 0.75:
        changed[place] = rng.choice(SPECIAL)
        changed[place + 1 : place + 5] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x01\x00\x00"))
    elif choice < 0.85:
        del changed[place:]
    elif choice < 0.95:
        changed[place:place] = rng.randbytes(rng.randrange(1, 9))
    else:
        return rng.randbytes(len(changed))
    return bytes(changed)


def mutate(rng: random.Random, frames: list[bytes], others: list[list[bytes]]) -> list[bytes]:
    """One or more things wrong: in the header, in a tensor's bytes, in the number or the order of frames."""
    changed = list(frames)
    choice = rng.random()
    if choice < 0.4:
        changed[0] = change_bytes(rng, changed[0])
    elif choice < 0.6:
        changed[0] = change_values(rng, changed[0])
    elif choice < 0.85 and len(changed) > 1:
        place = rng.randrange(1, len(changed))
        if len(changed[place]) <= 8192 or rng.random() < 0.02:  # a copy of a large frame is slow
            changed[place] = change_same_length(rng, changed[place])
    elif choice < 0.88:
        changed.insert(rng.randrange(len(changed) + 1), rng.randbytes(rng.randrange(40)))
    elif choice < 0.91:
        del changed[rng.randrange(len(changed))]
    elif choice < 0.94:
        changed[1:] = rng.choice(others)[1:]
    elif choice < 0.97:
        changed = [change_bytes(rng, frame[:4096]) for frame in changed]
    else:
        changed = [rng.randbytes(rng.randrange(60)) for _ in range(rng.randrange(4))]
    return changed


def change_values(rng: random.Random, header: bytes) -> bytes:
    """A well-formed header that says something else: a field of it, or of one of its tensors, has another value."""
    fields = msgspec.msgpack.decode(header)
    target = fields
    if isinstance(fields[-1], list) and fields[-1] and rng.random() < 0.8:  # the tensors come last
        target = rng.choice(fields[-1])
    target[rng.randrange(len(target))] = rng.choice(
        (0, 1, 2, 7, -1, 650, 2**31, 2**32, 2**63, -(2**63), [], [650], [0, 2**62], [2**31], [5, 130], [-1, -650],
         "dense", "sparse", "float16", "float32", "int64", "uint8", "update", None, 0.5, float("nan"), {}, [[]], True)
    )  # fmt: skip
    return msgspec.msgpack.encode(fields)


def change_same_length(rng: random.Random, frame: bytes) -> bytes:
    """Tensor bytes that pass the check of sizes: only what they say is wrong."""
    changed = bytearray(frame)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(min(len(changed), 64) if rng.random() < 0.7 else len(changed))] = rng.randrange(256)
    return bytes(changed)


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


@pytest.mark.parametrize("tries", [50_000, pytest.param(1_000_000, marks=pytest.mark.campaign)])
def test_broken_messages_are_read_or_refused(examples, tries):
    """Whatever the bytes are, nothing but RemoteWireError is raised."""
    read = sum(read_all(*broken) for broken in broken_messages(examples, 1, tries))

    assert 0.02 * tries < read < 0.9 * tries  # some mutations are harmless, most are not: both ways were taken


@pytest.mark.parametrize("tries", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_reading_a_broken_message_takes_memory_in_proportion_to_its_bytes(examples, tries):
    """A few bytes cannot make a node allocate much: no announced size is believed before the bytes are there."""
    tracemalloc.start()
    try:
        for frames, network in broken_messages(examples, 2, tries):
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            read_all(frames, network)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - held <= 100_000 + 16 * sum(map(len, frames)), frames
    finally:
        tracemalloc.stop()
