"""docs/protocol.md says something about everything that is declared."""

import typing

import msgspec
import numpy as np
import pytest

from docs.generate import protocol
from docs.generate.rendering import field_texts
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.core.plan import Part
from edgebed.core.records import RECORDS
from edgebed.wire.messages import DATA, MANAGEMENT, Refuse

KINDS = sorted({*DATA, *MANAGEMENT}, key=lambda kind: kind.__name__)


@pytest.fixture(scope="module")
def document() -> str:
    """As the code says it today."""
    return protocol.markdown()


@pytest.mark.parametrize("struct", [*KINDS, *RECORDS], ids=lambda struct: f"{struct.__module__}.{struct.__name__}")
def test_every_message_and_record_has_its_section_with_all_fields(struct, document):
    """One that both networks know has one section."""
    half = document.split("## Journal")[struct in RECORDS]
    (_, section) = half.split(f"### `{struct.__name__.lower()}`\n")
    table = section.split("\n##")[0]

    for field in msgspec.structs.fields(struct):
        assert f"| `{field.name}` |" in table or field.name in ("protocol", "sender")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_says_between_whom_it_travels_and_every_field_what_it_means(kind):
    """`Worker to server: …` is how its docstring begins."""
    sender, to, receiver = kind.__doc__.split(":")[0].rpartition(" to ")

    assert sender
    assert to
    assert receiver
    assert set(field_texts(kind)) == set(kind.__struct_fields__)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_what_each_compression_sends_is_explained(name, document):
    """In its row, with the names of the tensors that it really sends."""
    config = configure("compression", Part(name=name, settings={}))
    vector = np.linspace(-1, 1, 70, dtype="f4")
    pieces, _ = COMPRESSIONS[name].Compression(config, [(8, 8), (6,)]).compress(vector, None, StepContext(1))
    names = tuple(piece.name for piece in pieces)
    rows = [line.split("|") for line in document.split("| compressions |")[1].splitlines() if line.count("|") == 4]
    (row,) = [row for row in rows if f"`{name}`" in row[1].replace(",", "").split()]

    assert names == tuple(COMPRESSIONS[name].Compression.travels)
    assert row[2].strip() == ", ".join(f"`{each}`" for each in names)


def test_every_refusal_is_explained():
    """And none that does not exist."""
    (codes,) = (typing.get_args(field.type) for field in msgspec.structs.fields(Refuse) if field.name == "code")

    assert set(codes) == set(protocol.REFUSALS)
