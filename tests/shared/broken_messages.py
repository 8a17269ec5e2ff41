"""Messages broken on purpose: bytes of their frames, fields of their headers, tensors, the number of frames."""

import random

import msgspec

SPECIAL = bytes.fromhex("00 01 7F 80 90 9F C0 C1 C4 C7 CB CF D3 D9 DB DC DD DF FF")
"""First bytes of MessagePack's types, those with 32-bit lengths among them."""


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
