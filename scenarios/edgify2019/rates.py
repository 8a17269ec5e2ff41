"""Rows that need no run: the networks' parameters, and what F2I, zip and DGC make of real vectors (encodings.py)."""

from collections.abc import Callable
from typing import get_args

from edgebed.studies.papers.paper import Claim, Near, Row, Table, Unit

from .encodings import NETS, TRAINED, Encoded, Parts, Scope, epoch, first_gradient, parts_of

FIVE_PER_CENT = 0.05
ZIPPED = 8.0
"""How many times smaller F2I and zip make what is sent, as the post has it: four times, and again about half."""
ZIP = Near(value=ZIPPED, tolerance=1.0)
ZIP_ROW = "f2i-zip-weights-resnet18-10"
"""The row that counts for the post's claim on zip: quantised weights, of the network that it trains."""
FOLLOWS = {"resnet18-10": 302.0, "resnet18-1000": 21.0, "resnet50-10": 195.0, "resnet50-1000": 12.0}
"""Compression ratios of DGC with 0.1 % of the convolutions at eight bytes an entry and all else whole, as the post
describes it."""


def computed(
    what: str,
    value: Callable[[], float],
    unit: Unit,
    claim: Claim | None = None,
    note: str = "",
    *,
    arithmetic: bool = False,
    beside: str = "",
    data: str = "cifar10",
) -> Row:
    """A row that needs no run; its vectors come of images of `data`."""
    return Row(
        what=what, measure=lambda _: value(), unit=unit, claim=claim, note=note, arithmetic=arithmetic, beside=beside,
         data=data,
    )  # fmt: skip


def size_rows(name: str) -> dict[str, Row]:
    """Rows for a net's parameters by the kind of layer."""
    kinds: dict[str, tuple[str, Callable[[Parts], float]]] = {
        "convolutions": ("in convolutions", lambda parts: parts.convolutions),
        "normalisation": ("in batch normalisation", lambda parts: parts.normalisation),
        "dense": ("in the dense layer", lambda parts: parts.dense),
        "parameters": ("in all", lambda parts: parts.total),
    }
    return {
        f"{kind}-{name}": computed(
            f"{NETS[name].words}: parameters {words}",
            lambda count=count: count(parts_of(name)),  # type: ignore[misc]
            "",
            data="",
        )
        for kind, (words, count) in kinds.items()
    }  # fmt: skip


SIZES = Table(
    title="The networks",
    rows={key: row for name in NETS for key, row in size_rows(name).items()},
)

Vector = Callable[[str], Encoded]
"""One of a net's vectors, by the net's name."""


WEIGHTS = "-weights"
VECTORS: dict[str, tuple[str, Vector]] = {
    WEIGHTS: (" of the weights after an epoch of a worker's own", lambda name: epoch(name).weights),
    "-change": (" of the change in an epoch of a worker's own", lambda name: epoch(name).change),
    "-later": (" of the gradient after that epoch", lambda name: epoch(name).gradient),
    "": (" of the first gradient", first_gradient),
}
"""Vectors with words, by what the names of their rows have; the quantised weights of the post first."""


def rate(name: str, vector: Vector, size: Callable[[Encoded], float]) -> Callable[[], float]:
    """How many times smaller than floats a net's vector is."""
    return lambda: vector(name).float32 / size(vector(name))


def zip_row(name: str, key: str, scope: Scope = "tensor") -> Row:
    """A row for zip of a vector; one scale for the model makes more of weights, and is what may be the post's."""
    words, vector = VECTORS[key]
    row = zip_key(name, key, scope)
    return computed(
        f"{NETS[name].words}: F2I and zip{words}{', one scale for the model' if scope == 'model' else ''}",
        rate(name, vector, lambda found: found.deflated[scope]), "x", ZIP, beside="" if row == ZIP_ROW else ZIP_ROW,

    )  # fmt: skip


def zip_key(name: str, key: str, scope: Scope) -> str:
    """The name of a row for zip."""
    return f"f2i-zip{key}{'-model-scale' if scope == 'model' else ''}-{name}"


def entropy_row(name: str) -> Row:
    """A row for what the entropy of a net's weights as integers allows."""
    words, vector = VECTORS[WEIGHTS]
    return computed(
        f"{NETS[name].words}: F2I and a perfect code of single integers{words}",
        rate(name, vector, lambda found: found.int8_entropy), "x",
        note="By the entropy of each tensor's integers, with a scale for each. Not in the post.",
    )  # fmt: skip


def integers_row(name: str) -> Row:
    """A row for 8-bit integers without zip."""
    first = next(iter(NETS))
    return computed(
        f"{NETS[name].words}: F2I", rate(name, first_gradient, lambda found: found.int8), "x",
        Near(value=4.0, tolerance=4.0 * FIVE_PER_CENT), "Four bytes over one; it follows by arithmetic.",
        arithmetic=True, beside="" if name == first else f"f2i-{first}",
    )  # fmt: skip


F2I = Table(
    title="F2I and zip",
    other_setting=True,
    rows={
        **{
            zip_key(name, key, scope): zip_row(name, key, scope)
            for name in TRAINED
            for key in VECTORS
            for scope in get_args(Scope)
        },
        **{zip_key(name, "", "tensor"): zip_row(name, "") for name in NETS if name not in TRAINED},
        **{f"f2i-entropy{WEIGHTS}-{name}": entropy_row(name) for name in TRAINED},
        **{f"f2i-{name}": integers_row(name) for name in NETS},
    },
)


def dgc_rows(name: str) -> dict[str, Row]:
    """Rows for DGC of the first gradient of a net, by how what it selects is sent."""
    words, follows = NETS[name].words, FOLLOWS[name]

    def sent(how: str, size: Callable[[Encoded], float], claim: Claim | None = None, note: str = "") -> Row:
        return computed(f"{words}: DGC, {how}", rate(name, first_gradient, size), "x", claim, note)

    return {
        f"dgc-{name}": sent(
            "8 bytes an entry", lambda found: found.dgc.eight_bytes,
            Near(value=follows, tolerance=follows * FIVE_PER_CENT, published=False),
            "The post's value is lost; what it is compared with was worked out here from its words, 0.1 % of the "
            "convolutions and all else whole, so that what is checked is the selection.",
        ),
        f"dgc-zip-{name}": sent("8 bytes an entry, and zip", lambda found: found.dgc.eight_deflated_bytes),
        f"dgc-ours-{name}": sent("as it is sent here", lambda found: found.dgc.ours_bytes),
        f"dgc-ours-zip-{name}": sent("as it is sent here, and zip", lambda found: found.dgc.ours_deflated_bytes),
    }  # fmt: skip


DGC = Table(
    title="DGC",
    other_setting=True,
    rows={key: row for name in NETS for key, row in dgc_rows(name).items()},
)
