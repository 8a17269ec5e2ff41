"""Edgify.ai 2019, Distributed training on edge devices: communication compression, a blog post.

The post's claims, computed from encoded gradients (encodings.py) and rounded weights (weights.py), or measured in runs
of `scenarios/edgify2019/`. Its tables are lost; where a row has a
value from one of them, it follows from the post's words.
"""

from collections.abc import Callable
from dataclasses import replace

from edgebed.studies.papers.measuring import difference, final_accuracy, of_summary, ratio
from edgebed.studies.papers.paper import (
    AtLeast,
    Cause,
    Cell,
    Claim,
    Curve,
    Headline,
    Near,
    Paper,
    Row,
    Sign,
    Table,
    Unit,
)  # fmt: skip

from . import containers, weights
from .encodings import (
    KEPT,
    NETS,
    SMALL,
    TRAINED,
    WARM_UP,
    Encoded,
    Parts,
    Selection,
    epoch,
    first_gradient,
    parts_of,
    total_bytes,
)

LARGE_BATCH_EPOCHS = 100
ROUNDS = 150
EPOCHS = 12
"""Epochs that are trained here, with either method."""
HALF_A_POINT = 0.5
A_FIFTH = 0.2
FIVE_PER_CENT = 0.05
ZIPPED = 8.0
"""How many times smaller F2I and zip make a gradient, as the post has it: four times, and again about half."""


def annealed(variant: str, epochs: int) -> Callable[[float], tuple[str, ...]]:
    """Overrides that end the cosine when a shorter training ends."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"variants.{variant}.method.aggregation.epochs={epochs * scale:g}",)

    return sets


def large_batch(ending: str = "", *, cosine: bool = True) -> Cell:
    """A cell of rounds of gradients."""
    variant, scale = f"large-batch{ending}", EPOCHS / LARGE_BATCH_EPOCHS
    if not cosine:
        return Cell(scenario="accuracy.yaml", variant=variant, scale=scale)
    sets = annealed(variant, LARGE_BATCH_EPOCHS)
    return Cell(scenario="accuracy.yaml", variant=variant, scale=scale, sets=sets, has_own_schedule=True)


def federated(ending: str = "") -> Cell:
    """A cell of rounds of models."""
    return Cell(scenario="accuracy.yaml", variant=f"federated{ending}", scale=EPOCHS / ROUNDS)


WHAT = {
    "large-batch": "Large batch",
    "large-batch-int8": "Large batch, F2I of gradients",
    "large-batch-dgc": "Large batch, DGC, 99.9 % of convolutions left out",
    "large-batch-plateau": "Large batch, learning rate by plateau",
    "large-batch-dgc-plateau": "Large batch, DGC, learning rate by plateau",
    "large-batch-both-ways": "Large batch, F2I of gradients and of what comes down",
    "federated": "Federated learning",
    "federated-int8": "Federated learning, F2I of changes",
    "large-batch-hundred-epochs": "Large batch, a hundred epochs of 6,000 images",
    "large-batch-dgc-hundred-epochs": "Large batch, DGC, a hundred epochs of 6,000 images",
    "large-batch-32": "Large batch, 32 workers",
    "large-batch-dgc-32": "Large batch, DGC, 32 workers",
    "federated-32": "Federated learning, 32 workers",
    "federated-int8-32": "Federated learning, F2I of changes, 32 workers",
    "federated-resnet18": "Federated learning, ResNet-18, 32 workers",
}
RESNET18_ROUNDS = 3
"""Rounds of ResNet-18, a quarter of an hour of a core. All 150 take half a day."""
CELLS: dict[str, Cell] = {
    "large-batch": large_batch(),
    "large-batch-int8": large_batch("-int8"),
    "large-batch-dgc": large_batch("-dgc"),
    "federated": federated(),
    "federated-int8": federated("-int8"),
    "large-batch-plateau": large_batch("-plateau", cosine=False),
    "large-batch-dgc-plateau": large_batch("-dgc-plateau", cosine=False),
    "large-batch-both-ways": large_batch("-both-ways"),
    **{
        f"large-batch{method}-hundred-epochs": Cell(
            scenario="accuracy.yaml", variant=f"large-batch{method}-hundred-epochs", seeds=4
        )
        for method in ("", "-dgc")
    },
    "large-batch-32": large_batch("-32"),
    "large-batch-dgc-32": large_batch("-dgc-32"),
    "federated-32": federated("-32"),
    "federated-int8-32": federated("-int8-32"),
    "federated-resnet18": Cell(scenario="accuracy.yaml", variant="federated-resnet18", scale=RESNET18_ROUNDS / ROUNDS),
    **containers.CELLS,
}

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
    cause: Cause | None = None,
    data: str = "cifar10",
) -> Row:
    """A row that needs no run; its gradients are of images of `data`."""
    return Row(
        what=what, measure=lambda _: value(), unit=unit, claim=claim, note=note, arithmetic=arithmetic, cause=cause,
        data=data,
    )  # fmt: skip


def size_rows(name: str) -> dict[str, Row]:
    """Rows for a net's parameters by the kind of layer, and their bytes."""
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


def rate_rows(name: str) -> dict[str, Row]:
    """Rows for how many times smaller each encoding makes the first gradient of a net."""

    def rate(
        what: str,
        smaller: Callable[[Encoded], float],
        claim: Claim | None = None,
        note: str = "",
        *,
        arithmetic: bool = False,
        cause: Cause | None = None,
    ) -> Row:
        def value() -> float:
            found = first_gradient(name)
            return found.float32 / smaller(found)

        return computed(f"{NETS[name].words}: {what}", value, "x", claim, note, arithmetic=arithmetic, cause=cause)

    follows = FOLLOWS[name]
    return {
        f"f2i-{name}": rate(
            "F2I", lambda found: found.int8, Near(value=4.0, tolerance=4.0 * FIVE_PER_CENT),
            "Four bytes over one; it follows by arithmetic.", arithmetic=True,
        ),
        f"f2i-zip-{name}": rate("F2I and zip", lambda found: found.int8_deflated, ZIP, ABOUT_HALF, cause=ENTROPY),
        f"f2i-entropy-{name}": rate(
            "F2I and a perfect code of single integers", lambda found: found.int8_entropy,
            note="By the entropy of each tensor's integers. Not in the post.",
        ),
        f"dgc-{name}": rate(
            "DGC, 8 bytes an entry", lambda found: found.dgc.eight_bytes,
            Near(value=follows, tolerance=follows * FIVE_PER_CENT, published=False),
            "The post's value is lost; what it is compared with was worked out here from its words, 0.1 % of the "
            "convolutions and all else whole, so that what is checked is the selection.",
        ),
        f"dgc-zip-{name}": rate("DGC, 8 bytes an entry, and zip", lambda found: found.dgc.eight_deflated_bytes),
        f"dgc-ours-{name}": rate("DGC, as it is sent here", lambda found: found.dgc.ours_bytes),
        f"dgc-ours-zip-{name}": rate("DGC, as it is sent here, and zip", lambda found: found.dgc.ours_deflated_bytes),
    }  # fmt: skip


ZIP = Near(value=ZIPPED, tolerance=1.0)
ABOUT_HALF = "Four times, and zip by about half."
ENTROPY = Cause(
    "The integers have 5.1 to 6.3 bits of entropy each (rows `f2i-entropy`), and zip comes within 3 % of what that "
    "allows. To halve eight bits, most integers would have to be near zero, which they are not where the largest entry "
    "of a tensor becomes 127. The post does not say how it scales."
)


LATER = {"change": "the change in an epoch of a worker's own", "later": "the gradient after that epoch"}


def later_rows(name: str) -> dict[str, Row]:
    """Rows for zip once training has begun, and for the change in an epoch."""

    def rate(which: int, size: Callable[[Encoded], float]) -> Callable[[], float]:
        return lambda: epoch(name)[which].float32 / size(epoch(name)[which])

    rows: dict[str, Row] = {}
    for which, (key, words) in enumerate(LATER.items()):
        what = f"{NETS[name].words}: F2I and {{}} of {words}"
        rows |= {
            f"f2i-zip-{key}-{name}": computed(
                what.format("zip"), rate(which, lambda found: found.int8_deflated), "x", ZIP, ABOUT_HALF, cause=ENTROPY
            ),
            f"f2i-entropy-{key}-{name}": computed(
                what.format("a perfect code of single integers"), rate(which, lambda found: found.int8_entropy), "x"
            ),
        }
    return rows


SIZES = Table(
    title="The networks",
    text="With the 7x7 stem of the publication and of common libraries. The post's table is lost. It splits networks "
    "by convolutions and the rest, since its DGC compresses convolutions alone.",
    rows={key: row for name in NETS for key, row in size_rows(name).items()},
)

RATES = Table(
    title="Compression rates",
    text="""\
Bytes of a gradient's parameters as floats over those that are sent, of real gradients that are really encoded: of the
first weights, with 16 images. Images of CIFAR-10 are enlarged four times, so that the last stage of a network with this
stem has more than one pixel to see; with 1,000 classes the labels are drawn by chance. The running means of batch
normalisation, which a push here carries besides, do not count. Each is of one gradient of one seed; how little seeds
matter for zip shows in the last row, the mean of a training.

- *F2I*: an 8-bit integer an entry and a scale a tensor. *Zip* is DEFLATE over the integers.
- *8 bytes an entry*: 0.1 % of each convolution's entries with a 32-bit position each, and all other tensors whole.
- *As it is sent here*: the same entries, with positions as packed gaps.""",
    rows={
        **{key: row for name in NETS for key, row in rate_rows(name).items()},
        **{key: row for name in TRAINED for key, row in later_rows(name).items()},
        **{
            f"f2i-entropy-{key}": computed(f"{SMALL['resnet8'].words}: F2I and a perfect code of single integers {of}",
                                           lambda found=found: found().float32 / found().int8_entropy, "x")  # type: ignore[misc]
            for key, of, found in (
                ("resnet8", "of the first gradient", lambda: first_gradient("resnet8")),
                ("change-resnet8", f"of {LATER['change']}", lambda: epoch("resnet8")[0]),
                ("later-resnet8", f"of {LATER['later']}", lambda: epoch("resnet8")[1]),
            )
        },
        "f2i-zip-training": Row(
            what="ResNet of 8 layers: F2I and zip, in the mean of a training",
            cells=("large-batch", "large-batch-int8"),
            measure=ratio(
                of_summary("large-batch", "push_bytes_mean"), of_summary("large-batch-int8", "push_bytes_mean")
            ),
            unit="x",
            claim=ZIP,
            note="Whole pushes, with running means as floats.",
            cause=ENTROPY,
        ),
    },
)  # fmt: skip


def large_batch_bytes(name: str, size: Callable[[Selection], int], *, warm_up: bool = False) -> float:
    """Bytes uploaded in 100 epochs, of which the first may send more."""
    selections = first_gradient(name).selections
    first = tuple(size(selections[share]) for share in WARM_UP) if warm_up else ()
    return total_bytes(size(selections[KEPT]), LARGE_BATCH_EPOCHS, first)


def federated_bytes(name: str, *, as_published: bool = False) -> float:
    """Bytes uploaded in 150 rounds: the change in an epoch by F2I and zip, as measured, or an eighth of its floats."""
    found = epoch(name)[0]
    return ROUNDS * (found.float32 / ZIPPED if as_published else found.int8_deflated)


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


SENT = {
    "eight": ("8 bytes an entry", eight),
    "eight-zip": ("8 bytes an entry and zip", eight_zip),
    "ours": ("as it is sent here", ours),
    "ours-zip": ("as it is sent here, and zip", ours_zip),
}
TOLERANCE = "A fifth is the tolerance."
LESS_ZIPPED = Cause(
    "Zip makes the changes 5.2 times smaller and not 8 (rows `f2i-zip-change`), so federated learning sends 1.5 times "
    "as much as the post counts; with its 8 the factors are 4.4 and 3.2 (rows `factor-published`), for the mini-batch "
    "that was chosen for this and without the warm-up. What large batch sends is smaller still with packed positions "
    "or zip."
)
BY_CHOICE = "The mini-batch of 128 was chosen so that this follows: it shows consistency, and is no confirmation."
WITH_WARM_UP = (
    "The post's factors follow without the warm-up; with 10 classes its four epochs send more than all the others."
)


def total_rows(name: str, published: float) -> dict[str, Row]:
    """Rows for the totals of both trainings, and their ratio: federated learning's is larger with 10 classes."""
    words, classes = NETS[name].words, NETS[name].classes
    federated_is_larger = classes == 10
    over = (
        "federated learning's over large batch's" if federated_is_larger else "large batch's over federated learning's"
    )
    claim = Near(value=published, tolerance=published * A_FIFTH)

    def factor(size: Callable[[Selection], int], *, as_published: bool = False, warm_up: bool = False) -> float:
        apart = large_batch_bytes(name, size, warm_up=warm_up)
        together = federated_bytes(name, as_published=as_published)
        return together / apart if federated_is_larger else apart / together

    return {
        f"total-federated-{name}": computed(
            f"{words}: federated learning, 150 rounds, F2I and zip", lambda: federated_bytes(name), "bytes"
        ),
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
        f"factor-published-{name}": computed(
            f"{words}: {over}, 8 bytes an entry, and zip by half as published",
            lambda: factor(eight, as_published=True), "x", claim, BY_CHOICE, arithmetic=True,
        ),
        **{
            f"factor-{key}-{name}": computed(
                f"{words}: {over}, {how}", lambda size=size: factor(size), "x", claim, TOLERANCE,  # type: ignore[misc]
                cause=LESS_ZIPPED,
            )
            for key, (how, size) in SENT.items()
        },
        f"factor-warm-up-published-{name}": computed(
            f"{words}: {over}, 8 bytes an entry, zip by half as published, with the warm-up",
            lambda: factor(eight, as_published=True, warm_up=True), "x", None, WITH_WARM_UP,
        ),
        f"factor-warm-up-ours-{name}": computed(
            f"{words}: {over}, as it is sent here, with the warm-up",
            lambda: factor(ours, warm_up=True), "x", None, WITH_WARM_UP,
        ),
    }  # fmt: skip


TOTALS = Table(
    title="Data uploaded by a device",
    text="Of 32 devices with 128 images a mini-batch: an epoch is 13 pushes by large batch, and one by federated "
    "learning. The post finds federated learning to send a third with 1,000 classes, and five times as much with 10, "
    "there with zip of the sparse gradient. Bytes of a push are those measured above; of large batch the first "
    "gradient's, of federated learning those of the change in 13 steps.",
    rows={**total_rows("resnet18-10", 5.0), **total_rows("resnet18-1000", 3.0)},
)


def accuracy_row(cell: str, claim: Claim | None = None, note: str = "") -> Row:
    """A row for the accuracy of the last model."""
    cause = SMALLER_NET if claim else None
    measure = final_accuracy(cell)
    return Row(what=WHAT[cell], cells=(cell,), measure=measure, unit="%", claim=claim, note=note, cause=cause)


def over_row(cell: str, baseline: str, what: str, claim: Claim | None, note: str = "") -> Row:
    """A row for how many points one cell is better than another, seed by seed."""
    measure = difference(final_accuracy(cell), final_accuracy(baseline))
    return Row(what=what, cells=(cell, baseline), measure=measure, unit="points", claim=claim, note=note)


def pushes_row(cell: str, baseline: str) -> Row:
    """A row for how many times smaller a push is."""
    measure = ratio(of_summary(baseline, "push_bytes_mean"), of_summary(cell, "push_bytes_mean"))
    return Row(what=f"{WHAT[cell]}: how many times smaller a push is", cells=(cell, baseline), measure=measure,
               unit="x")  # fmt: skip


SAME = Near(value=0.0, tolerance=HALF_A_POINT)
NINETY = Near(value=90.0, tolerance=1.0)
SMALLER = "The post's is of ResNet-18 after 150 rounds."
SMALLER_NET = Cause(
    "The network has 75,290 parameters where ResNet-18 has eleven million, and four workers train it for 12 of 150 "
    "rounds without flipped or shifted images. It is not meant to reach the post's accuracy, but to say what "
    "compression costs; which of these it is was not tried.",
    is_shown=False,
)
LOST = "The post's table is lost; its words are that the baseline's accuracy is kept."

ACCURACY = Table(
    title="Accuracy",
    text=f"CIFAR-10, the ResNet of 8 layers, 4 workers, {EPOCHS} epochs or rounds; the last model on the test images. "
    "Differences are taken seed by seed: the same first weights, the same mini-batches. Half a point is what *the same "
    "accuracy* is taken to mean.",
    rows={
        "accuracy-large-batch": accuracy_row("large-batch"),
        "accuracy-large-batch-int8": accuracy_row("large-batch-int8"),
        "accuracy-large-batch-dgc": accuracy_row("large-batch-dgc"),
        "int8-keeps": over_row("large-batch-int8", "large-batch", "Large batch: F2I less none", SAME, LOST),
        "dgc-keeps": over_row("large-batch-dgc", "large-batch", "Large batch: DGC less none", SAME, LOST),
        "accuracy-federated": accuracy_row("federated", NINETY, SMALLER),
        "accuracy-federated-int8": accuracy_row("federated-int8", NINETY, SMALLER),
        "federated-int8-keeps": over_row(
            "federated-int8", "federated", "Federated learning: F2I of changes less none", SAME
        ),
        **{
            f"push-{cell}": pushes_row(cell, "federated" if cell.startswith("federated") else "large-batch")
            for cell in ("large-batch-int8", "large-batch-dgc", "federated-int8")
        },
    },
    curves=(
        Curve(title="Large batch", over="updates",
              cells=("large-batch", "large-batch-int8", "large-batch-dgc")),
        Curve(title="By what is sent", over="ingress",
              cells=("large-batch", "large-batch-int8", "large-batch-dgc", "federated", "federated-int8")),
    ),
)  # fmt: skip

AS_PUBLISHED = Table(
    title="Accuracy with the post's epochs, workers and network",
    text="What two cores can run of the post's own setting, a part at a time. *A hundred epochs* are of 6,000 of the "
    "images, in as many steps as the twelve epochs above: so the four epochs in which DGC sends more are as small a "
    "part of the training as in the post. *32 workers* share the images that four have above, for as many epochs or "
    "rounds. A run of a hundred epochs takes up to 40 minutes of a core. *ResNet-18* has the post's network too, with "
    f"the 7x7 stem of its publication, mini-batches of 128 and {RESNET18_ROUNDS} of 150 rounds, since a round takes "
    "five minutes of a core, and half an hour with a stem of 3x3. The accuracy of large batch without compression was "
    "in a table that is lost.",
    rows={
        "accuracy-hundred-epochs": accuracy_row("large-batch-hundred-epochs"),
        "accuracy-dgc-hundred-epochs": accuracy_row("large-batch-dgc-hundred-epochs"),
        "dgc-reaches-baseline": over_row(
            "large-batch-dgc-hundred-epochs", "large-batch-hundred-epochs",
            "A hundred epochs: DGC less none", AtLeast(value=-HALF_A_POINT),
            "By the post's last words the baseline's accuracy is achieved; its table, which is lost, was of the end of "
            "100 epochs. Half a point less counts as much.",
        ),
        "accuracy-large-batch-32": accuracy_row("large-batch-32"),
        "accuracy-large-batch-dgc-32": accuracy_row("large-batch-dgc-32"),
        "dgc-keeps-32": over_row(
            "large-batch-dgc-32", "large-batch-32", "Large batch, 32 workers: DGC less none", SAME, LOST
        ),
        "accuracy-federated-32": accuracy_row("federated-32"),
        "accuracy-federated-int8-32": accuracy_row("federated-int8-32"),
        "federated-int8-keeps-32": over_row(
            "federated-int8-32", "federated-32", "Federated learning, 32 workers: F2I of changes less none", SAME
        ),
        "accuracy-federated-resnet18": replace(
            accuracy_row("federated-resnet18", NINETY, "The post's is that after 150 rounds."), cause=None
        ),
    },
    curves=(
        Curve(title="A hundred epochs", over="updates",
              cells=("large-batch-hundred-epochs", "large-batch-dgc-hundred-epochs")),
    ),
)  # fmt: skip

SCHEDULES = Table(
    title="Figure 1: how the learning rate falls",
    text="The post let it fall when the training loss stopped decreasing, and found that with DGC it fell late, which "
    "stalled training; it suggests a cosine.",
    rows={
        "accuracy-plateau": accuracy_row("large-batch-plateau"),
        "accuracy-dgc-plateau": accuracy_row("large-batch-dgc-plateau"),
        "plateau-stalls": over_row(
            "large-batch-plateau", "large-batch-dgc-plateau", "By plateau: none over DGC", Sign(sign=1)
        ),
        "cosine-over-plateau": over_row(
            "large-batch-dgc", "large-batch-dgc-plateau", "With DGC: cosine over plateau", Sign(sign=1)
        ),
        "cosine-over-plateau-none": over_row(
            "large-batch", "large-batch-plateau", "Without compression: cosine over plateau", None, "Not in the post."
        ),
    },
    curves=(
        Curve(title="Schedules", over="updates",
              cells=("large-batch", "large-batch-plateau", "large-batch-dgc", "large-batch-dgc-plateau")),
    ),
)  # fmt: skip

OF_SEEDS = f"{len(weights.SEEDS)} seeds"

WEIGHTS = Table(
    title="Weights as 8-bit integers",
    text=f"""\
The post calls it a bad strategy, without a number, to quantise the weights while training. Here each step of a training
is rounded, {weights.STEPS} steps of one worker with {weights.BATCH} images, so that changes below half a unit are lost;
measured is the training loss of the last {weights.LAST} steps. It shows that learning is slower at first, and not
where a whole training would end: with the first images in their order the loss was 0.20 higher after 200 steps and 0.15
after 400. Accuracies after so few steps were tried and given up, as they change by six points within ten steps.

What comes down to workers can be rounded without such a loss, if what is sent is how the model has changed since: what
was rounded away is then sent the next time.""",
    rows={
        "loss-weights-float32": computed(
            f"Loss, weights as floats, mean of {OF_SEEDS}", lambda: weights.loss(rounded=False), ""
        ),
        "loss-weights-int8": computed(
            f"Loss, weights rounded after each step, mean of {OF_SEEDS}", lambda: weights.loss(rounded=True), ""
        ),
        "weights-lose": computed(
            f"How much higher the loss is with rounded weights, least of {OF_SEEDS}", weights.least_lost, "",
            Sign(sign=1),
            f"All have to agree; without any effect they do once in {2 ** len(weights.SEEDS)} times.",
        ),
        "accuracy-both-ways": accuracy_row("large-batch-both-ways"),
        "both-ways-keeps": over_row(
            "large-batch-both-ways", "large-batch", "F2I of gradients and of what comes down, less none", None,
            "Not in the post.",
        ),
    },
)  # fmt: skip

HEADLINES = (
    Headline(
        claim="8-bit integers and zip make what is sent eight times smaller",
        rows=("f2i-zip-resnet18-10", "f2i-zip-resnet50-1000", "f2i-zip-training", "f2i-entropy-resnet18-10"),
        chart="By what is sent",
        found="4.9 to 6.1 times: zip comes within 3 % of what the entropy of the integers allows, which is five to "
        "six bits of eight.",
    ),
    Headline(
        claim="The baseline's accuracy is kept, with 8-bit integers as with DGC",
        rows=("int8-keeps", "dgc-keeps", "dgc-reaches-baseline", "federated-int8-keeps"),
        chart="Large batch",
        found="With a small ResNet and 12 epochs no loss is seen; three seeds leave room for half a point. In "
        "a hundred epochs of an eighth of the images DGC loses 0.12 points at most.",
    ),
    Headline(
        claim="With 10 classes federated learning sends five times as much as large batch, with 1,000 a third",
        rows=("factor-eight-resnet18-10", "factor-eight-resnet18-1000"),
        found="The direction holds, the factors are 6.7 and 2.1: zip saves less than the post counts.",
    ),
    Headline(
        claim="Weights that are rounded to 8 bits while training are a bad strategy",
        rows=("weights-lose",),
        found="They are, with each of six seeds.",
    ),
)

PAPER = Paper(
    name="edgify2019",
    citation="Edgify.ai research team: Distributed training on edge devices: communication compression. Blog post, "
    "2019.",
    text="""\
Two ways of training on devices are compared, by what they send: *large batch*, where the gradients of every mini-batch
are averaged, with deep gradient compression (DGC), and *federated learning*, where models that were trained apart are
averaged, with 8-bit integers and zip (F2I). The text of the post is what is left of it; its tables and figures are
lost. What it leaves open is read as follows.

- F2I: a tensor's largest magnitude becomes 127, each entry the nearest integer; nothing is remembered of what rounding
  takes away. Zip is DEFLATE at its usual level.
- DGC compresses convolutions alone, and sends biases, batch normalisation and the dense layer whole; it leaves out 75,
  93.75, 98.4375 and 99.6 % in the first four epochs and 99.9 % after them, finds the largest exactly where the post
  takes a sample, and clips nothing. Of a training as short as here, those four epochs are a third.
- Federated learning sends how far an epoch of a worker's own went; workers use momentum, which each round begins anew.
- Of 32 workers with 1,562 images each a mini-batch has 128 images, so that an epoch is 13 steps. The post does not say
  how many. 128 was chosen because its factors then follow from its rates, 4.4 and 3.2; with 64 they would be 2.3 and
  6.2, with 256 they would be 8.1 and 1.7. So the rows `factor-published` are *consistent*: the post agrees with
  itself under this reading, which confirms nothing else. The same holds of the rates of DGC at 8 bytes an entry, whose
  published values are lost and were worked out again from the post's words.
- Rates and totals are those of its ResNets at full size. Accuracies are those of a smaller ResNet with 75,290
  parameters, 4 workers and 12 epochs or rounds, unless said otherwise: they say what compressions cost, not what
  ResNet-18 reaches.
- Images are standardised one by one, and neither flipped nor shifted; there is no weight decay.
""",
    window=1,
    cells=CELLS,
    tables=(SIZES, RATES, TOTALS, ACCURACY, AS_PUBLISHED, SCHEDULES, WEIGHTS, containers.TABLE),
    headlines=HEADLINES,
)
