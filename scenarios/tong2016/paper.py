"""Tong, Dong, Wang, Adams 2016, Layer-wise asynchronous training of neural network with synthetic gradient.

The claims of the report's sections 7 and 8, and how runs of `scenarios/tong2016/` measure them. Values are read off its
figures, to a hundredth; those of gradient losses to a twentieth.
"""

from dataclasses import replace

from edgebed.studies.papers.measuring import accuracy, accuracy_at, difference, of_summary, ratio
from edgebed.studies.papers.paper import (
    AtLeast,
    AtMost,
    Claim,
    Curve,
    Near,
    Paper,
    Row,
    Sign,
    Table,
)

from . import containers, direct, monitoring
from .cells import CELLS, EARLY_READINGS, INPUT_READINGS, NET, READINGS, SEEDS_BESIDE
from .containers import FIVE_POINTS, TWO_POINTS
from .measures import falls_over_rises, last_over_first
from .rows import over_row

CURVES = {
    "bp": ("14", {100: 14, 1000: 50, 2000: 66, 4200: 76, 10_000: 83}),
    "sg": ("14", {100: 48, 1000: 80, 2000: 83, 10_000: 88}),
    "bp-ten-times": ("15", {50: 33, 100: 51, 150: 61, 200: 66}),
    "si": ("17", {700: 10, 1000: 62, 1900: 81, 2500: 84, 5000: 84}),
    "si-blocked": ("17", {100: 27, 1000: 77, 2000: 83, 5000: 86}),
}
"""The report's figure, and its accuracy in per cent after so many steps, by cell."""
EARLY = {50: 43, 100: 50, 150: 56, 200: 64}
"""Accuracies by steps in figure 16, which has other values of the first steps with synthetic gradients than figure 14.
"""
LATER = {6000: 86, 10_000: 88}
"""Accuracies by steps in figure 17 with layer 1 blocked, after the end of the other curve."""


def at_row(cell: str, updates: int, published: float, beside: str = "") -> Row:
    """A row for the accuracy after so many steps, which is what it is however long a run goes on."""
    return Row(
        what=f"{NET[cell]}: after {updates:,} steps",
        cells=(cell,),
        measure=accuracy_at(cell, updates),
        unit="%",
        with_updates="steady",
        claim=Near(value=published, tolerance=FIVE_POINTS),
        beside=beside,
    )


def curve_rows(cell: str) -> dict[str, Row]:
    """Rows for a curve of the report at some of its points; the last of them counts."""
    _, points = CURVES[cell]
    last = max(points)
    return {
        f"{cell}-{updates}": at_row(cell, updates, published, "" if updates == last else f"{cell}-{last}")
        for updates, published in points.items()
    }


def early_rows() -> dict[str, Row]:
    """Rows for figure 16; the last of them counts."""
    last = max(EARLY)
    return {
        f"sg-early-{updates}": Row(
            what=f"{NET['sg']}: after {updates:,} steps, by figure 16",
            cells=("sg",),
            measure=accuracy_at("sg", updates),
            unit="%",
            with_updates="steady",
            claim=Near(value=published, tolerance=FIVE_POINTS),
            beside="" if updates == last else f"sg-early-{last}",
        )
        for updates, published in EARLY.items()
    }


UPDATE_DECOUPLED = Table(
    title="Figures 14 to 16: synthetic gradients",
    seeds=10,

    rows={
        "faster-at-first": over_row(
            "sg", "bp", 1000, Sign(sign=1, value=30), "Section 7.2: converges faster. Figure 14 has 80 % and 50 %.",

        ),
        "better-in-the-end": over_row(
            "bp", "sg", 10_000, Sign(sign=1),
            "Section 7.2 says so of the final accuracy, which it does not show. Here it is that after as many steps as "
            "figure 14 has, in which synthetic gradients are ahead until then.",
        ),
        "accuracy-kept": over_row(
            "bp", "sg", 10_000, AtMost(value=TWO_POINTS, published=-5.0),
            "The abstract: without sacrificing accuracy. Figure 14 has 83 % and 88 %.",
            what="Lost by synthetic gradients", beside="better-in-the-end",
        ),
        **curve_rows("bp"),
        **curve_rows("sg"),
        **curve_rows("bp-ten-times"),
        **early_rows(),
    },
    readings=READINGS,
    curves=(
        Curve(title="Figure 14", cells=("bp", "sg", "bp-ten-times", "sg-ten-times"), over="updates"),
        Curve(title="Cross-entropy", cells=("bp", "sg", "bp-cross-entropy", "sg-cross-entropy"), over="updates"),
    ),
)  # fmt: skip

STEADY = Table(
    title="Section 7.3: how steadily accuracy rises at first",
    seeds=10,

    rows={
        "less-steady": Row(
            what="Falls over rises of the accuracy in 200 steps: synthetic gradients less back-propagation",
            cells=("sg-first-steps", "bp-first-steps"),
            measure=difference(falls_over_rises("sg-first-steps"), falls_over_rises("bp-first-steps")), unit="",
            claim=Sign(sign=1), note="With 0.01 and with 0.1, as the report has the two curves.",
        ),
    },
    readings=EARLY_READINGS,
)  # fmt: skip

FULLY_DECOUPLED = Table(
    title="Figure 17: synthetic inputs",
    seeds=10,

    rows={
        "inputs-weaken": over_row(
            "sg", "si", 5000, Sign(sign=1), "The abstract: synthetic inputs weaken accuracy."
        ),
        "blocked-is-better": over_row(
            "si-blocked", "si", 5000, Sign(sign=1, value=2), "Section 8.3.2. Figure 17 has 86 % and 84 %.",

        ),
        **curve_rows("si"),
        **curve_rows("si-blocked"),
    },
    readings=INPUT_READINGS,
    curves=(
        Curve(title="Figure 17", cells=("bp", "si", "si-blocked"), over="updates"),
        Curve(title="Longer steps", cells=("si-ten-times", "si-blocked-ten-times"), over="updates"),
        Curve(title="Slow input modules", cells=("si-as-programmed", "si-blocked-as-programmed"), over="updates"),
        Curve(title="A summed loss", cells=("si-hundred-times", "si-blocked-hundred-times"), over="updates"),
    ),
)  # fmt: skip

BLOCKED_LATER = Table(
    title="Figure 17: layer 1 blocked, after 5,000 steps",
    seeds=10,
    rows={
        f"{cell}-{updates}": replace(
            at_row(cell, updates, published, "si-blocked-5000"),
            seeds=seeds,
        )
        for cell, seeds in (("si-blocked", None), ("si-blocked-ten-times", SEEDS_BESIDE))
        for updates, published in LATER.items()
    },
)

RANDOM = Table(
    title="Section 8.3.2: a random, fixed model",
    seeds=10,
    rows={
        f"{name}-is-better{ending}": replace(
            over_row(
                f"{better}{ending}", f"si{ending}", 5000, Sign(sign=1), what=f"{what}{rate}", beside="blocked-is-better"
            ),
            seeds=seeds,
        )
        for ending, rate, seeds in (("", "", None), ("-ten-times", ", learning rate 0.1", SEEDS_BESIDE))
        for name, better, what in (
            ("fixed-module", "si-fixed-inputs", "Inputs predicted by a fixed module over by one that is taught"),
            ("random-encoder", "random-encoder", "A fixed first layer, nothing predicted, over synthetic inputs"),
        )
    },
)

TRICK = Table(
    title="Section 8.3.1: the batch trick",
    seeds=10,

    rows={
        "trick-costs": over_row(
            "si-slow", "si-slow-by-batch", 10_000, AtMost(value=TWO_POINTS, published=0.0),
            what="A slow last layer: lost by the batch trick",
        ),
        "trick-staleness": Row(
            what="Matched by batch: epochs between the two of a pair, in the mean",
            cells=("si-slow-by-batch",),
            measure=of_summary("si-slow-by-batch", "match_staleness_mean"),
            unit="",
            exact=True,
        ),
    },
    curves=(Curve(title="The batch trick", cells=("si", "si-slow", "si-slow-by-batch"), over="updates"),),
)  # fmt: skip


def slower_row(what: str, ending: str, claim: Claim | None, note: str) -> Row:
    """A row for how many times longer a step takes in which the gradient loss is minimised as well."""
    with_loss, without = f"cifar-direct{ending}", f"cifar-bp{ending}"
    return Row(
        what=f"A step with the gradient loss over one without, {what}", cells=(with_loss, without),
        measure=ratio(of_summary(without, "steps_per_s"), of_summary(with_loss, "steps_per_s")), unit="x", claim=claim,
        note=note, exact=claim is None,
    )  # fmt: skip


TIMES = Table(
    title="Sections 8.2 and 8.3.1: what takes longer",
    seeds=3,

    rows={
        "cifar-slower": slower_row(
            "in processes", "-timed", Near(value=3.0, tolerance=0.5), "Six processes share one machine."
        ),
        "cifar-slower-counted": slower_row(
            "counted", "", None, "By counted operations, in virtual time, where one device works at a time."
        ),
        "last-slower": Row(
            what="Synthetic inputs and gradients, in processes: the last device's work in a step over the first's",
            cells=("si-timed",), measure=last_over_first("si-timed"), unit="x", claim=AtLeast(value=1.0),
        ),
        "last-slower-counted": Row(
            what="Synthetic inputs and gradients, counted: the last device's work in a step over the first's",
            cells=("si",), measure=last_over_first("si"), unit="x", exact=True,
            note="By counted operations, in virtual time: the last device has the small layer, and the module that "
            "predicts its inputs from the images, which is as large as the first layer.",
        ),
    },
)  # fmt: skip

MESSAGES = Table(
    title="Sections 5.2, 6.5 and 6.6: where modules lie",
    seeds=3,

    rows={
        "messages-beside": Row(
            what="Modules beside their layers: messages a step", cells=("sg",),
            measure=of_summary("sg", "messages_per_step"), unit="messages", exact=True,
        ),
        "messages-apart": Row(
            what="Modules apart: messages a step", cells=("sg-apart",),
            measure=of_summary("sg-apart", "messages_per_step"), unit="messages", exact=True,
        ),
        "messages-more": Row(
            what="Modules apart over modules beside: messages a step", cells=("sg-apart", "sg"),
            measure=difference(of_summary("sg-apart", "messages_per_step"), of_summary("sg", "messages_per_step")),
            unit="messages", claim=Near(value=4, tolerance=2), exact=True, arithmetic=True,
            note="It follows from the protocol, and would be the same of any training.",
        ),
        "bytes-more": Row(
            what="Modules apart over modules beside: bytes exchanged", cells=("sg-apart", "sg"),
            measure=ratio(of_summary("sg-apart", "exchanged_bytes"), of_summary("sg", "exchanged_bytes")), unit="x",
            exact=True,
        ),
        "apart-the-same": over_row("sg", "sg-apart", 10_000, None, "What differs is when modules are taught."),
    },
)  # fmt: skip

BEYOND = Table(
    title="Beyond the report: the same net, trained well",
    seeds=3,

    rows={
        "bp-tuned": Row(what=f"{NET['bp-tuned']}: highest", cells=("bp-tuned",), measure=accuracy("bp-tuned"),
                        unit="%"),
        "sg-tuned": Row(what=f"{NET['sg-tuned']}: highest", cells=("sg-tuned",), measure=accuracy("sg-tuned"),
                        unit="%"),
        "tuned-better-in-the-end": over_row(
            "bp-tuned", "sg-tuned", 10_000, Sign(sign=1), beside="better-in-the-end"
        ),
    },
    curves=(Curve(title="Tuned", cells=("bp", "bp-tuned", "sg", "sg-tuned"), over="updates"),),
)  # fmt: skip


PAPER = Paper(
    name="tong2016",
    window=1,
    cells=CELLS,
    tables=(
        UPDATE_DECOUPLED,
        STEADY,
        FULLY_DECOUPLED,
        BLOCKED_LATER,
        RANDOM,
        TRICK,
        direct.TABLE,
        TIMES,
        MESSAGES,
        monitoring.TABLE,
        BEYOND,
        containers.TABLE,
    ),
)
