"""Rows that need no run: what a device uploads in a whole training, by both methods, and how many times as much."""

from collections.abc import Callable, Mapping

from edgebed.studies.papers.paper import Near, Row, Table

from .cells import LARGE_BATCH_EPOCHS, ROUNDS
from .encodings import KEPT, NETS, WARM_UP, Selection, epoch, first_gradient, total_bytes
from .rates import ZIPPED, computed

A_FIFTH = 0.2
BY_CHOICE = "The mini-batch of 128 was chosen so that this follows: it shows consistency, and is no confirmation."


def eight(found: Selection) -> int:
    """Bytes with 8 bytes an entry."""
    return found.eight_bytes


def eight_zip(found: Selection) -> int:
    """Bytes with 8 bytes an entry, and zip."""
    return found.eight_deflated_bytes


def ours(found: Selection) -> int:
    """Bytes in the encoding used here."""
    return found.ours_bytes


def ours_zip(found: Selection) -> int:
    """Bytes in the encoding used here, and zip."""
    return found.ours_deflated_bytes


Size = Callable[[Selection], int]
SENT: Mapping[str, tuple[str, Size]] = {
    "eight": ("8 bytes an entry", eight),
    "eight-zip": ("8 bytes an entry and zip", eight_zip),
    "ours": ("as it is sent here", ours),
    "ours-zip": ("as it is sent here, and zip", ours_zip),
}
"""How large batch sends what DGC selects, in words and bytes."""


def large_batch_bytes(name: str, size: Size, *, warm_up: bool = False) -> float:
    """Bytes uploaded in 100 epochs, of which the first may send more."""
    selections = first_gradient(name).selections
    first = tuple(size(selections[share]) for share in WARM_UP) if warm_up else ()
    return total_bytes(size(selections[KEPT]), LARGE_BATCH_EPOCHS, first)


ONE_SCALE, OF_WEIGHTS, PUBLISHED = "-model-scale", "-weights-model-scale", "-published"
FEDERATED: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "": ("", lambda name: epoch(name).change.deflated["tensor"]),
    ONE_SCALE: (", one scale for the model", lambda name: epoch(name).change.deflated["model"]),
    OF_WEIGHTS: (", at the rate of weights with one scale", lambda name: epoch(name).weights.deflated["model"]),
    PUBLISHED: (", zip by half as published", lambda name: epoch(name).change.float32 / ZIPPED),
}
"""What federated learning sends in a round, by what the names of rows have: words and bytes."""


def federated_bytes(name: str, how: str = "") -> float:
    """Bytes uploaded in 150 rounds."""
    return ROUNDS * FEDERATED[how][1](name)


FACTORS = {"resnet18-10": 5.0, "resnet18-1000": 3.0}
"""How many times as much one method sends as the other, as the post has it."""
ENCODINGS = {"resnet18-10": "eight-zip", "resnet18-1000": "eight"}
"""How large batch sends its gradients then: with zip where the post says that it takes that."""
FACTOR_ROWS = {name: f"factor-warm-up-{encoding}-{name}" for name, encoding in ENCODINGS.items()}
"""The rows that count for these, with the warm-up that the post describes."""


def totals_of(name: str) -> dict[str, Row]:
    """Rows for the totals of both trainings."""
    words = NETS[name].words
    return {
        **{
            f"total-federated{how}-{name}": computed(
                f"{words}: federated learning, 150 rounds, F2I and zip{FEDERATED[how][0]}",
                lambda how=how: federated_bytes(name, how), "bytes",  # type: ignore[misc]
            )
            for how in ("", ONE_SCALE, OF_WEIGHTS)
        },
        **{
            f"total-large-batch-{key}-{name}": computed(
                f"{words}: large batch, 100 epochs, DGC, {how}",
                lambda size=size: large_batch_bytes(name, size), "bytes",  # type: ignore[misc]
            )
            for key, (how, size) in SENT.items()
        },
        f"total-large-batch-warm-up-{name}": computed(
            f"{words}: the same with the warm-up, 8 bytes an entry",
            lambda: large_batch_bytes(name, eight, warm_up=True), "bytes",
        ),
        f"total-large-batch-warm-up-zip-{name}": computed(
            f"{words}: the same with the warm-up, 8 bytes an entry and zip",
            lambda: large_batch_bytes(name, eight_zip, warm_up=True), "bytes",
        ),
    }  # fmt: skip


def factors_of(name: str) -> dict[str, Row]:
    """Rows for the ratio of the totals, which is above 1 as the post has it."""
    federated_is_larger = NETS[name].classes == 10
    over = (
        "federated learning's over large batch's" if federated_is_larger else "large batch's over federated learning's"
    )
    claim = Near(value=FACTORS[name], tolerance=FACTORS[name] * A_FIFTH)
    own, primary = ENCODINGS[name], FACTOR_ROWS[name]

    def row(encoding: str, how: str = "", *, warm_up: bool = False) -> Row:
        what, size = SENT[encoding]

        def factor() -> float:
            apart, together = large_batch_bytes(name, size, warm_up=warm_up), federated_bytes(name, how)
            return together / apart if federated_is_larger else apart / together

        is_chosen = how == PUBLISHED and not warm_up
        return computed(
            f"{NETS[name].words}: {over}, {what}{FEDERATED[how][0]}{', with the warm-up' if warm_up else ''}",
            factor, "x", claim, BY_CHOICE if is_chosen else "", arithmetic=is_chosen,
            beside=primary if how or not warm_up else "",
        )  # fmt: skip

    return {
        primary: row(own, warm_up=True),
        f"factor-warm-up-{own}{ONE_SCALE}-{name}": row(own, ONE_SCALE, warm_up=True),
        f"factor-warm-up-{own}{OF_WEIGHTS}-{name}": row(own, OF_WEIGHTS, warm_up=True),
        **{f"factor-{encoding}-{name}": row(encoding) for encoding in ("eight", "eight-zip")},
        f"factor-{own}{OF_WEIGHTS}-{name}": row(own, OF_WEIGHTS),
        f"factor-published-{name}": row("eight", PUBLISHED),
        f"factor-warm-up-published-{name}": row("eight", PUBLISHED, warm_up=True),
    }


TOTALS = Table(
    title="Data uploaded by a device",
    other_setting=True,

    rows={
        key: row for name in FACTORS for key, row in (*factors_of(name).items(), *totals_of(name).items())
    },
)  # fmt: skip
