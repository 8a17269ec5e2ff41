"""Hardy, Le Merrer, Sericola 2017, Distributed deep learning on edge-devices: feasibility via adaptive compression.

The claims of the paper's sections III and V, and how runs of `scenarios/hardy2017/` measure them. The measures are in
measures.py.
"""

from dataclasses import replace

from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import difference
from edgebed.studies.papers.paper import (
    AtMost,
    Curve,
    Near,
    Paper,
    Reading,
    Row,
    Sign,
    Table,
)

from . import containers
from .cells import (
    CELLS,
    METHODS,
    NARROW_PAUSE,
    OF_PERCEPTRON,
    OTHER_PAUSES,
    PAUSES,
    SELECTIONS,
    SHORTER_STEPS,
    SINGLE_CORE,
    STANDARDIZED,
)
from .ingress import FIGURE_3_RIGHT
from .measures import PICKLED, WINDOW, accuracy, early_accuracy, ingress_to_best

HALF_A_POINT = 0.5
LITTLE = 2.0
"""How many times the paper's an effect may be that it calls very little."""
MARGIN = 0.2
"""Points by which accuracies may differ and count as equal: 20 of the 10,000 test images, less than twice the standard
deviation of how many of so many a model with 98.5 % gets wrong."""

PUBLISHED = {
    "asgd": 97.85,
    "comp-asgd-0.1": 96.07,
    "comp-asgd-0.01": 95.11,
    "adacomp-0.1": 98.7,
    "adacomp-0.01": 98.59,
}
ORDER = ("adacomp-0.1", "adacomp-0.01", "asgd", "comp-asgd-0.1", "comp-asgd-0.01")
"""Methods from the best to the worst, as in the paper."""


def accuracy_row(cell: str, what: str, published: float | None = None, note: str = "") -> Row:
    """A row for the paper's metric, claimed within half a point where the paper has a value."""
    claim = None if published is None else Near(value=published, tolerance=HALF_A_POINT)
    return Row(what=what, cells=(cell,), measure=accuracy(cell), unit="%", claim=claim, note=note)


def gain_row(better: str, worse: str, what: str, published: float | None = None, note: str = "") -> Row:
    """A row for how many points one cell is better than another, whose sign is the claim."""
    claim = Sign(sign=1, value=None if published is None else round(published, 2), margin=MARGIN)
    measure = difference(accuracy(better), accuracy(worse))
    return Row(what=what, cells=(better, worse), measure=measure, unit="points", claim=claim, note=note)


def little_row(better: str, worse: str, what: str, published: float) -> Row:
    """A row for what one cell loses against another, which the paper calls very little."""
    claim = AtMost(value=round(LITTLE * published, 2), published=published)
    measure = difference(accuracy(better), accuracy(worse))
    return Row(what=what, cells=(better, worse), measure=measure, unit="points", claim=claim)


BETTER = (
    ("adacomp-0.01", "asgd"),
    ("adacomp-0.1", "asgd"),
    ("adacomp-0.01", "comp-asgd-0.01"),
    ("adacomp-0.1", "comp-asgd-0.1"),
    ("asgd", "comp-asgd-0.1"),
)
"""Which method the text has above which; by how much follows from the accuracies, which have rows."""


def order_rows() -> dict[str, Row]:
    """Rows for the order that the text has of the methods."""
    return {
        f"order-{better}-over-{worse}": gain_row(
            better,
            worse,
            f"{METHODS[better]} over {METHODS[worse]}",
        )
        for better, worse in BETTER
    }


LOW_RATIOS = ("0.001", "0.0001")

FIGURE_3_LEFT = Table(
    title="Figure 3, left: accuracy",
    seeds=5,

    rows={
        **{
            f"accuracy-{name}": accuracy_row(
                name, METHODS[name], PUBLISHED[name],

            )
            for name in METHODS
        },
        "accuracy-adacomp-0.01-float16": accuracy_row(
            "adacomp-0.01-float16", "AdaComp, c = 0.01, values sent as float16", note="Not in the paper."
        ),
        **order_rows(),
    },
    readings=(
        NARROW_PAUSE,
        *OTHER_PAUSES,
        SHORTER_STEPS,
    ),
    curves=(
        Curve(title="Accuracy against updates", cells=tuple(METHODS), over="updates"),
        *(
            Curve(
                title=f"{pause.capitalize()} pauses", cells=tuple(f"{name}-{pause}" for name in METHODS), over="updates"
            )
            for pause in PAUSES
        ),
    ),
)  # fmt: skip

LOWER = Table(
    title="Section V.C: lower compression ratios",
    seeds=3,

    rows={
        **{
            f"accuracy-adacomp-{c}": accuracy_row(f"adacomp-{c}-exponential", f"AdaComp, c = {c}")
            for c in LOW_RATIOS
        },
        **{
            f"degraded-adacomp-{c}": gain_row(
                "adacomp-0.01-exponential", f"adacomp-{c}-exponential", f"AdaComp, c = 0.01 over c = {c}",
                note="At a fifth of the updates: c this low is slower, too.",
            )
            for c in LOW_RATIOS
        },
    },
    curves=(
        Curve(
            title="Lower compression ratios",
            cells=tuple(f"adacomp-{c}-exponential" for c in ("0.01", *LOW_RATIOS)),
            over="updates",
        ),
    ),
)  # fmt: skip

SELECTION = Table(
    title="Section IV.b: which entries are sent",
    seeds=3,
    rows={
        f"selection-over-{which}": Row(
            what=f"AdaComp, c = 0.01: the largest of each tensor over {words}",
            cells=("adacomp-0.01-short", f"adacomp-0.01-{which}"),
            measure=difference(accuracy("adacomp-0.01-short"), accuracy(f"adacomp-0.01-{which}")),
            unit="points",
        )
        for which, words in SELECTIONS.items()
    },
)

PERCEPTRON = Table(
    title="Section V.C: the second model",
    seeds=3,
    other_setting=True,

    rows={
        **{
            f"accuracy-{name}-mlp": accuracy_row(f"{name}-mlp", f"{METHODS[name]}, perceptron")
            for name in OF_PERCEPTRON
        },
        **{
            f"order-adacomp-0.01-over-{name}-mlp": Row(
                what=f"{METHODS['adacomp-0.01']} over {METHODS[name]}, perceptron",
                cells=("adacomp-0.01-mlp", f"{name}-mlp"),
                measure=difference(accuracy("adacomp-0.01-mlp"), accuracy(f"{name}-mlp")),
                unit="points",
                claim=Sign(sign=1, margin=MARGIN),
            )
            for name in ("asgd", "comp-asgd-0.01")
        },
    },
)  # fmt: skip

OF_SHOKRI = "A result of Shokri and Shmatikov 2015, as this paper reports it."

SECTION_3 = Table(
    title="Section III: the selection on a single core",
    seeds=5,
    other_setting=True,

    rows={
        "single-core": replace(
            accuracy_row("single-core", "One core, whole gradients", SINGLE_CORE["single-core"], OF_SHOKRI),
            beside="loss-single-core",
        ),
        "single-core-1-in-100": replace(
            accuracy_row(
                "single-core-1-in-100", "One core, one entry in a hundred", SINGLE_CORE["single-core-1-in-100"],
                OF_SHOKRI,
            ),
            beside="loss-single-core",
        ),
        "loss-single-core": gain_row(
            "single-core", "single-core-1-in-100", "One core: lost by the selection",
            SINGLE_CORE["single-core"] - SINGLE_CORE["single-core-1-in-100"],
        ),
    },
    readings=(
        Reading(name="pixels from 0 to 1", text="the paper says nothing of the images.", cells={}),
        Reading(
            name="standardised images",
            text="each image with mean 0 and deviation 1, as this paper's released code has them.",
            cells={cell: f"{cell}{STANDARDIZED}" for cell in SINGLE_CORE},
        ),
    ),
    curves=(
        Curve(title="One core", cells=tuple(name for name in CELLS if name.startswith("single-core")), over="updates"),
    ),
)  # fmt: skip

FIGURE_1 = Table(
    title="Figure 1: accuracy against ingress, ASGD",
    seeds=5,

    rows={
        "ingress-accurate": Row(
            what="ASGD: ingress until a tenth of a point below its best, pickled", cells=("asgd",),
            measure=ingress_to_best("asgd", PICKLED, below_points=0.1), unit="bytes",
        ),
    },
    curves=(Curve(title="ASGD, our encoding", cells=("asgd",), over="ingress"),),
)  # fmt: skip

TABLE_2 = Table(
    title="Table II: crashes",
    seeds=7,
    other_setting=True,

    rows={
        "60000-images": accuracy_row("60000-images", "60,000 images, no crash", 97.44),
        "60000-images-crashes": accuracy_row("60000-images-crashes", "60,000 images, crashes", 97.17),
        "12000-images": accuracy_row("12000-images", "12,000 images, no crash", 95.47),
        "12000-images-crashes": accuracy_row("12000-images-crashes", "12,000 images, crashes", 95.24),
        "6000-images-100-devices": accuracy_row(
            "6000-images-100-devices", "6,000 images, 100 devices, no crash", 94.35
        ),
        "loss-60000": little_row("60000-images", "60000-images-crashes", "60,000 images: lost by crashes", 0.27),
        "loss-12000": little_row("12000-images", "12000-images-crashes", "12,000 images: lost by crashes", 0.23),
        "crashed-had-taught": gain_row(
            "12000-images-crashes", "6000-images-100-devices",
            "12,000 images, half crash: over 100 devices with 6,000 images and no crash", 0.89,
        ),
    },
    readings=(
        Reading(
            name="half crash",
            text="with the probability n / 2I = 0.0004 half of the 200 devices are left after 250,000 updates, as the "
            "paper says.",
            cells={},
        ),
        Reading(
            name="p of 0.004",
            text="the probability that the paper prints. Nobody would be left after 50,000 updates; the run ends "
            "shortly before.",
            cells={f"{images}-images-crashes": f"{images}-images-all-crash" for images in (60_000, 12_000)},
        ),
    ),
    curves=(
        Curve(
            title="With and without crashes",
            cells=("60000-images", "60000-images-crashes", "12000-images", "12000-images-crashes"),
            over="updates",
        ),
    ),
)  # fmt: skip

PUBLISHED_CLASSES = {60_000: (98.59, 98.36), 12_000: (97.66, 97.00)}


def class_rows(images: int) -> dict[str, Row]:
    """Rows for one class of devices and three of them, with so many images."""
    one, three = f"one-class-{images}-0.001", f"three-classes-{images}-0.001"
    published_one, published_three = PUBLISHED_CLASSES[images]
    what = f"{images:,} images"
    return {
        f"one-class-{images}": accuracy_row(one, f"{what}: one class", published_one),
        f"three-classes-{images}": accuracy_row(three, f"{what}: three classes", published_three),
        f"loss-classes-{images}": gain_row(
            one, three, f"{what}: lost by different speeds", published_one - published_three
        ),
    }


def lost(images: int) -> Measure:
    """A measure: points that different speeds cost with so many images."""
    return difference(accuracy(f"one-class-{images}-0.001"), accuracy(f"three-classes-{images}-0.001"))


CLASSES = tuple(f"{classes}-{images}" for images in (60_000, 12_000) for classes in ("one-class", "three-classes"))

FIGURE_4 = Table(
    title="Figure 4: devices of three speeds",
    seeds=5,

    rows={
        **class_rows(60_000),
        **class_rows(12_000),
        "gap-grows": Row(
            what="How much more three speeds cost with 12,000 images than with 60,000",
            cells=tuple(f"{cell}-0.001" for cell in CLASSES),
            measure=difference(lost(12_000), lost(60_000)), unit="points", claim=Sign(sign=1, value=0.43),
            note="The paper says that the gap is larger; its values are 0.66 and 0.23 points.",
        ),
        "faster-at-first": Row(
            what="60,000 images: three classes over one in the first tenth of the updates",
            cells=("three-classes-60000-0.001", "one-class-60000-0.001"),
            measure=difference(early_accuracy("three-classes-60000-0.001"), early_accuracy("one-class-60000-0.001")),
            unit="points",
            claim=Sign(sign=1),
            note="The paper says it of its chart, without a number. The mean of the accuracies measured until then.",
        ),
    },
    readings=(
        Reading(name="c of 0.001", text="as printed, over a fifth of the updates.", cells={}),
        Reading(
            name="c of 0.01",
            text="98.59 %, which the paper has for one class and all images, is what it has in figure 3 for c = 0.01. "
            "Over half of the updates.",
            cells={f"{cell}-0.001": cell for cell in CLASSES},
        ),
    ),
    curves=(Curve(title="One class and three, c = 0.01", cells=CLASSES, over="updates"),),
)  # fmt: skip


PAPER = Paper(
    name="hardy2017",
    window=WINDOW,
    runs=3,
    cells=CELLS,
    tables=(
        FIGURE_3_LEFT,
        LOWER,
        SELECTION,
        PERCEPTRON,
        FIGURE_3_RIGHT,
        TABLE_2,
        FIGURE_4,
        FIGURE_1,
        SECTION_3,
        containers.TABLE,
        containers.TABLE_OF_A_HUNDRED,
    ),
)
