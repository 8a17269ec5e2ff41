"""Tong, Dong, Wang, Adams 2016, Layer-wise asynchronous training of neural network with synthetic gradient.

The claims of the report's section 7, and how runs of `scenarios/tong2016/` measure them. Values are read off its
figures, to a hundredth; those of gradient losses to a twentieth.
"""

from edgebed.studies.papers.measuring import accuracy, accuracy_at, difference, of_summary, ratio, times
from edgebed.studies.papers.paper import (
    AtLeast,
    Cause,
    Cell,
    Claim,
    Curve,
    Headline,
    Measure,
    Near,
    Paper,
    Row,
    Sign,
    Table,
)

from . import containers
from .causes import EITHER, GRADIENT_DIFFERENTIATED, LONGER_STEPS, OF_CELLS, why_at
from .measures import last_over_first

EPOCHS = 10
"""Epochs that are run, of the report's 200 on CIFAR-10."""
STRONG_EPOCHS = 4
"""Epochs of the gradient loss in full strength, with which nothing is learnt."""
CIFAR_BATCH = 128
FIVE_POINTS = 5.0
A_TENTH = 0.1
"""Tolerance of a loss: what the report's two methods differ by."""

NET = {
    "bp": "Back-propagation",
    "bp-ten-times": "Back-propagation, learning rate 0.1",
    "bp-cross-entropy": "Back-propagation, cross-entropy",
    "sg-cross-entropy": "Synthetic gradients, cross-entropy",
    "bp-tuned": "Back-propagation, tuned",
    "sg": "Synthetic gradients",
    "sg-apart": "Synthetic gradients, modules apart",
    "sg-tuned": "Synthetic gradients, tuned",
    "si": "Synthetic inputs and gradients",
    "si-blocked": "The same, layer 1 blocked",
    "si-slow": "Synthetic inputs and gradients, a slow last layer",
    "si-slow-by-batch": "The same, matched by batch",
    "sg-ten-times": "Synthetic gradients, learning rate 0.1",
    "si-ten-times": "Synthetic inputs and gradients, learning rate 0.1",
    "si-blocked-ten-times": "Synthetic inputs and gradients, layer 1 blocked, learning rate 0.1",
}
TEN_TIMES = ("sg", "si", "si-blocked")
AS_PROGRAMMED = {
    "si-as-programmed": "Synthetic inputs and gradients, learning rate 0.1, inputs' at 1e-5",
    "si-hundred-times": "Synthetic inputs and gradients, learning rate 1",
    "si-blocked-hundred-times": "Synthetic inputs and gradients, layer 1 blocked, learning rate 1",
    "si-blocked-as-programmed": "Synthetic inputs and gradients, layer 1 blocked, learning rate 0.1, inputs' at 1e-5",
}
CIFAR = {
    "bp": "Back-propagation",
    "direct": "Gradient loss minimised as well",
    "direct-strong": "Gradient loss minimised as well, 128 times as strong",
    "bp-keep": "Back-propagation, dropout as printed",
}
AS_PRINTED = {
    "direct-keep": f"{CIFAR['direct']}, dropout as printed",
    "bp-keep-training": f"{CIFAR['bp-keep']}: on training images",
}
"""Cells of the report's dropout whose values are compared with those of other rows."""
CIFAR_LOSS = {"bp": 1.05, "direct": 1.15}
CIFAR_TRAINING = {"bp": (70, 0.87), "direct": (79, 0.91)}
"""Accuracies in per cent and losses on training images after 200 epochs."""


def timed(scenario: str, variant: str, steps: int, of_steps: int) -> Cell:
    """A cell of processes of this machine, evaluated in the end alone, so that evaluations take none of the time."""
    every = f"evaluation.every={steps} updates"
    return Cell(scenario=scenario, variant=variant, scale=steps / of_steps, runtime="process", sets=lambda _: (every,))


SEEDS = {"bp": 20, "bp-ten-times": 10, "sg": 10, "sg-ten-times": 10, "si-blocked": 10}
"""Number of seeds where accuracies differ by several points from one seed to another; else three."""
CELLS: dict[str, Cell] = {
    **{name: Cell(scenario="figures-14-17.yaml", variant=name, seeds=SEEDS.get(name, 3)) for name in NET},
    **{
        f"cifar-{name}": Cell(scenario="figures-9-13.yaml", variant=name, scale=EPOCHS / 200, seeds=seeds)
        for name, seeds in (
            {"bp": 3, "direct": 4, "bp-keep": 3, "bp-training": 3, "direct-training": 3} | dict.fromkeys(AS_PRINTED, 1)
        ).items()
    },
    "cifar-direct-strong": Cell(scenario="figures-9-13.yaml", variant="direct-strong", scale=STRONG_EPOCHS / 200),
    "cifar-direct-half": Cell(scenario="figures-9-13.yaml", variant="direct", scale=EPOCHS / 400),
    **{f"cifar-{name}-timed": timed("figures-9-13.yaml", name, 100, 78_200) for name in CIFAR_TRAINING},
    "si-timed": timed("figures-14-17.yaml", "si", 2000, 10_000),
    **{
        name: Cell(
            scenario="figures-14-17.yaml", variant=name, scale=0.5, sets=lambda _: ("evaluation.every=100 updates",)
        )
        for name in AS_PROGRAMMED
    },
    **containers.CELLS,
}  # fmt: skip

CURVES = {
    "bp": ("14", {100: 14, 1000: 50, 2000: 66, 4200: 76, 10_000: 83}),
    "sg": ("14", {100: 48, 1000: 80, 2000: 83, 10_000: 88}),
    "bp-ten-times": ("15", {50: 33, 100: 51, 150: 61, 200: 66}),
    "si": ("17", {700: 10, 1000: 62, 1900: 81, 2500: 84, 5000: 84}),
    "si-blocked": ("17", {100: 27, 1000: 77, 2000: 83, 6000: 86, 10_000: 88}),
}
"""The report's figure, and its accuracy in per cent after so many steps, by cell."""
EARLY = {50: 43, 100: 50, 150: 56, 200: 64}
"""Accuracies by steps in figure 16, which has other values of the first steps with synthetic gradients than figure 14.
"""

OTHER_RATE = "The report has this curve with 0.01."
LIKE_THE_CODE = "The authors' programs train the module that predicts inputs with 1e-5."
OF_SUMS = "The authors' programs take 0.01, and the gradient of the sum over a mini-batch of 100."
OTHER_LOSS = "Not in the report, whose curves may be of different losses."


def at_row(cell: str, updates: int, published: float | None, note: str = "") -> Row:
    """A row for the accuracy after so many steps."""
    claim = None if published is None else Near(value=published, tolerance=FIVE_POINTS)
    what = f"{(NET | AS_PROGRAMMED)[cell]}: after {updates:,} steps"
    return Row(
        what=what, cells=(cell,), measure=accuracy_at(cell, updates), unit="%", claim=claim, note=note,
        cause=why_at(cell, updates),
    )  # fmt: skip


def curve_rows(cell: str) -> dict[str, Row]:
    """Rows for a curve of the report, at some of its points."""
    _, points = CURVES[cell]
    return {f"{cell}-{updates}": at_row(cell, updates, published) for updates, published in points.items()}


def over_row(
    better: str, worse: str, updates: int, published: float | None, note: str = "", cause: Cause | None = None
) -> Row:
    """A row for how many points one cell is better than another after so many steps, whose sign is the claim."""
    words = NET | AS_PROGRAMMED
    return Row(
        what=f"{words[better]} over {words[worse].lower()}, after {updates:,} steps",
        cells=(better, worse),
        measure=difference(accuracy_at(better, updates), accuracy_at(worse, updates)),
        unit="points",
        claim=None if published is None else Sign(sign=1, value=published),
        note=note,
        cause=cause,
    )


def best_row(cell: str, what: str, claim: Claim | None = None, note: str = "") -> Row:
    """A row for the highest accuracy of a cell."""
    return Row(
        what=what, cells=(cell,), measure=accuracy(cell), unit="%", claim=claim, note=note, cause=OF_CELLS.get(cell)
    )


UPDATE_DECOUPLED = Table(
    title="Figures 14 to 16: synthetic gradients",
    text="A net of 784-200-10 units with a sigmoid, a layer a device, at the report's full length. Whether synthetic "
    "gradients are faster at first is the claim; the values depend on initial weights that the report does not give.",
    rows={
        **curve_rows("bp"),
        **curve_rows("sg"),
        "faster-at-first": over_row("sg", "bp", 1000, 30, "Figure 14 has 80 % and 50 %.", LONGER_STEPS),
        "better-in-the-end": over_row("bp", "sg", 10_000, None, "The report says so of longer training, not shown."),
        **curve_rows("bp-ten-times"),
        **{f"sg-early-{updates}": at_row("sg", updates, value, "Of figure 16.") for updates, value in EARLY.items()
           if updates not in CURVES["sg"][1]},
        **{f"{cell}-{updates}": at_row(cell, updates, None, OTHER_LOSS)
           for cell in ("bp-cross-entropy", "sg-cross-entropy") for updates in (100, 1000, 10_000)},
        **{f"{cell}-ten-times-{updates}": at_row(f"{cell}-ten-times", updates, None, OTHER_RATE)
           for cell in TEN_TIMES for updates in (100, 200, 1000, 2000, 10_000)},
        "bp-tuned": best_row("bp-tuned", "Back-propagation, tuned: highest", note="Not in the report."),
        "sg-tuned": best_row("sg-tuned", "Synthetic gradients, tuned: highest", note="Not in the report."),
    },
    curves=(
        Curve(title="Figure 14", cells=("bp", "sg", "bp-ten-times", "sg-ten-times"), over="updates"),
        Curve(title="Cross-entropy", cells=("bp", "sg", "bp-cross-entropy", "sg-cross-entropy"), over="updates"),
        Curve(title="Tuned", cells=("bp", "bp-tuned", "sg", "sg-tuned"), over="updates"),
    ),
)  # fmt: skip

FULLY_DECOUPLED = Table(
    title="Figure 17: synthetic inputs",
    text="The second layer does not wait for the first one either. *Blocked*: the first layer keeps its first weights. "
    "*Matched by batch* is the report's batch trick: what came for a batch in an epoch before is used, if "
    "nothing newer has come. The device of the last layer is then a slow one, as the report found it to be. With 0.1 "
    "in the place of 0.01 (rows `si-ten-times`) the report's curve is met 700 steps earlier: 62, 82 and 84 % after "
    "300, 1,200 and 1,800 steps, in the report 62, 81 and 84 % after 1,000, 1,900 and 2,500. With 1 (rows "
    "`si-hundred-times`) it stays below 20 % for 700 steps, where the report's stays at 10, and then rises more "
    "slowly.",
    rows={
        **curve_rows("si"),
        **curve_rows("si-blocked"),
        **{f"{cell}-{updates}": at_row(cell, updates, None, OF_SUMS if cell.endswith("times") else LIKE_THE_CODE)
           for cell in AS_PROGRAMMED for updates in (700, 1000, 1900, 2500, 5000)},
        "blocked-is-better": over_row(
            "si-blocked", "si", 5000, 2, "The report has 86 % and 84 %.", EITHER
        ),
        **{
            f"blocked-is-better-{times}": over_row(f"si-blocked-{times}", f"si-{times}", 5000, None, note)
            for times, note in (("ten-times", OTHER_RATE), ("hundred-times", OF_SUMS))
        },
        "trick-staleness": Row(
            what="Matched by batch: epochs between the two of a pair, in the mean",
            cells=("si-slow-by-batch",),
            measure=of_summary("si-slow-by-batch", "match_staleness_mean"),
            unit="",
        ),
        "last-slower-counted": Row(
            what="Synthetic inputs and gradients, counted: the last device's work in a step over the first's",
            cells=("si",), measure=last_over_first("si"), unit="x", exact=True,
            note="By counted operations, in virtual time: the last device has the small layer, and the module that "
            "predicts its inputs from the images, which is as large as the first layer.",
        ),
        "last-slower": Row(
            what="Synthetic inputs and gradients, in processes: the last device's work in a step over the first's",
            cells=("si-timed",), measure=last_over_first("si-timed"), unit="x", claim=AtLeast(value=1.0),
            note="The report found the last layer to be always slower, without a number.",
        ),
        "trick-costs": over_row(
            "si-slow", "si-slow-by-batch", 10_000, None, "The report says that it does not affect accuracy."
        ),
    },
    curves=(Curve(title="Figure 17", cells=("bp", "si", "si-blocked", "si-slow", "si-slow-by-batch"), over="updates"),),
)  # fmt: skip

MESSAGES = Table(
    title="Sections 5.2, 6.5 and 6.6: where modules lie",
    text="With all modules on a node of their own each shard sends its outputs there and waits for the prediction. The "
    "report counts four more messages a layer and iteration of a protocol of requests and replies.",
    rows={
        "messages-beside": Row(
            what="Modules beside their layers: messages a step", cells=("sg",),
            measure=of_summary("sg", "messages_per_step"), unit="messages",
        ),
        "messages-apart": Row(
            what="Modules apart: messages a step", cells=("sg-apart",),
            measure=of_summary("sg-apart", "messages_per_step"), unit="messages",
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
        ),
        "apart-the-same": over_row("sg", "sg-apart", 10_000, None, "What differs is when modules are taught."),
    },
)  # fmt: skip


def loss_of(cell: str) -> Measure:
    """A measure: the loss in the end, on the images that the cell is evaluated on."""
    return of_summary(cell, "final_loss")


def cifar_row(name: str) -> Row:
    """A row for the highest accuracy on CIFAR-10, and the report's."""
    claim = Near(value=66.5 if name.startswith("direct") else 64.0, tolerance=FIVE_POINTS)
    return best_row(f"cifar-{name}", CIFAR[name], claim, "The report's value is that of 200 epochs.")


def training_row(name: str) -> Row:
    """A row for the highest accuracy on images that were trained on."""
    claim = Near(value=CIFAR_TRAINING[name][0], tolerance=FIVE_POINTS)
    what = f"{CIFAR[name]}: on training images"
    return best_row(f"cifar-{name}-training", what, claim, "The report's value is that of 200 epochs.")


def loss_row(cell: str, what: str, published: float) -> Row:
    """A row for the loss in the end; on test images it rises again once training images are known by heart."""
    return Row(
        what=what, cells=(cell,), measure=loss_of(cell), unit="",
        with_updates="changes" if cell.endswith("-training") else "turns",
        claim=Near(value=published, tolerance=A_TENTH), note="After 200 epochs in the report.",
        cause=OF_CELLS.get(cell),
    )  # fmt: skip


def gradient_loss_row(cell: str, epochs: int, published: float) -> Row:
    """A row for the gradient loss in the last tenth of a run that stands for so many of the report's epochs."""
    measure = times(of_summary(cell, "gradient_loss_late"), 1 / CIFAR_BATCH)
    return Row(
        what=f"The gradient loss in the last tenth of what are {epochs} of the report's epochs", cells=(cell,),
        measure=measure, unit="", claim=Near(value=published, tolerance=published / 2), with_updates="changes",
        note="Of gradients of the mini-batch's mean loss, on training images. Half of it is the tolerance, since it "
        "depends on the size of mini-batches, which the report does not give.",
    )  # fmt: skip


def slower_row(what: str, ending: str, claim: Claim | None, note: str, cause: Cause | None = None) -> Row:
    """A row for how many times longer a step takes in which the gradient loss is minimised as well."""
    with_modules, without = f"cifar-direct{ending}", f"cifar-bp{ending}"
    measure = ratio(of_summary(without, "steps_per_s"), of_summary(with_modules, "steps_per_s"))
    return Row(
        what=what, cells=(with_modules, without), measure=measure, unit="x", claim=claim, note=note, cause=cause,
        exact=claim is None,
    )  # fmt: skip


def gain_row(better: str, worse: str, what: str, claim: Claim | None, note: str = "") -> Row:
    """A row for how many points the highest accuracy of one cell is above that of another."""
    measure = difference(accuracy(better), accuracy(worse))
    return Row(what=what, cells=(better, worse), measure=measure, unit="points", claim=claim, note=note)


DIRECT = Table(
    title="Figures 9 to 13: the gradient loss minimised with respect to the layers",
    text=f"CIFAR-10, {EPOCHS} of the report's 200 epochs, {STRONG_EPOCHS} with the gradient loss 128 times as strong. "
    f"The report's values are those after 200 epochs; for one after 100 stand {EPOCHS // 2} here. Those on training "
    "images are of ten thousand of them, without dropout. "
    "A run takes 20 minutes to an hour of a core, at 200 epochs 6 to 18 hours.",
    rows={
        **{f"cifar-{name}": cifar_row(name) for name in CIFAR},
        "cifar-gradient-loss": Row(
            what="The gradient loss in the last tenth of the steps over that in the first", cells=("cifar-direct",),
            measure=ratio(
                of_summary("cifar-direct", "gradient_loss_late"), of_summary("cifar-direct", "gradient_loss_early")
            ),
            unit="x", claim=AtLeast(value=1.0), with_updates="changes", note="Figure 12 shows it rise over 200 epochs.",
        ),
        "cifar-gain": gain_row(
            "cifar-direct", "cifar-bp", "What the gradient loss adds to the accuracy", Sign(sign=1, value=2.5)
        ),
        **{f"cifar-{name}-training": training_row(name) for name in CIFAR_TRAINING},
        "cifar-gain-training": gain_row(
            "cifar-direct-training", "cifar-bp-training", "What the gradient loss adds to the accuracy in training",
            Sign(sign=1, value=9.0),
        ),
        **{
            f"cifar-{name}-loss": loss_row(f"cifar-{name}", f"{CIFAR[name]}: loss on test images", loss)
            for name, loss in CIFAR_LOSS.items()
        },
        **{
            f"cifar-{name}-training-loss": loss_row(
                f"cifar-{name}-training", f"{CIFAR[name]}: loss on training images", loss
            )
            for name, (_, loss) in CIFAR_TRAINING.items()
        },
        **{f"cifar-{name}": best_row(f"cifar-{name}", words) for name, words in AS_PRINTED.items()},
        **{
            f"cifar-{name}-loss": Row(
                what=f"{words}: loss" if name.endswith("-training") else f"{words}: loss on test images",
                cells=(f"cifar-{name}",), measure=loss_of(f"cifar-{name}"), unit="",
            )
            for name, words in AS_PRINTED.items()
        },
        "cifar-gradient-loss-100": gradient_loss_row("cifar-direct-half", 100, 1.65),
        "cifar-gradient-loss-200": gradient_loss_row("cifar-direct", 200, 2.55),
        "cifar-slower-counted": slower_row(
            "A step with the gradient loss over one without, counted", "", None,
            "By counted operations, in virtual time, where one device works at a time.",
        ),
        "cifar-slower": slower_row(
            "A step with the gradient loss over one without, measured in processes", "-timed",
            Near(value=3.0, tolerance=0.5),
            "About three times in the report, an epoch, on one machine. Here six processes share one.",
            GRADIENT_DIFFERENTIATED,
        ),
        "cifar-loss": Row(
            what="What it adds to the loss on test images", cells=("cifar-direct", "cifar-bp"),
            measure=difference(loss_of("cifar-direct"), loss_of("cifar-bp")), unit="",
            claim=Sign(sign=1, value=0.1), with_updates="turns", note="1.15 and 1.05 after 200 epochs.",
        ),
    },
    curves=(Curve(title="Figure 13", cells=tuple(f"cifar-{name}" for name in CIFAR), over="updates"),),
)  # fmt: skip

HEADLINES = (
    Headline(
        claim="With synthetic gradients a network learns faster at first, at the same learning rate",
        rows=("faster-at-first", "sg-100", "sg-1000", "sg-10000"),
        chart="Figure 14",
        found="At the same length of a step it learns no faster than by back-propagation: a point less after 1,000 "
        "steps. The report's curve is, from there on, that of steps ten times as long: with 0.1 in the place of 0.01 "
        "it is met within five points (rows `sg-ten-times`).",
    ),
    Headline(
        claim="With synthetic inputs, too, no layer waits for another, and it still learns",
        rows=("si-1000", "si-5000", "si-blocked-1000", "si-blocked-10000"),
        chart="Figure 17",
        found="It does, about as fast as with synthetic gradients alone, and again slower than the report's by the "
        "length of a step. No one length gives the report's whole curve, which stays at 10 % for 700 steps and then "
        "rises within 300.",
    ),
    Headline(
        claim="The gradient loss, minimised with respect to the layers, adds 2.5 points on CIFAR-10",
        rows=("cifar-gain", "cifar-gradient-loss", "cifar-loss"),
        chart="Figure 13",
        found=f"Over {EPOCHS} of the report's 200 epochs it adds nothing yet. The gradient loss rises, as in the "
        "report.",
    ),
    Headline(
        claim="Modules on nodes of their own cost four messages more a layer and step",
        rows=("messages-more", "messages-beside", "messages-apart"),
        found="It follows from the protocol, which sends answers without requests.",
    ),
)

PAPER = Paper(
    name="tong2016",
    citation="X. Tong, N. Dong, H. Wang, G. T. Adams: Layer-wise asynchronous training of neural network with "
    "synthetic gradient. Final report, Carnegie Mellon University, 2016.",
    text="""\
What the report leaves open is read as follows; its equations are followed, not the code that was published with it,
which does not compute them.

- Modules are linear, see the outputs of their layer without the labels, and predict the gradient of these outputs; they
  begin with zeros and are taught by Adam with a learning rate of 0.01. Layers learn by plain gradient descent with
  0.01 by both methods: the report gives it for synthetic gradients, says of its figure 14 that both rates are the same,
  and has 0.1 for back-propagation in figure 15.
- The loss is the squared distance of the softmax from the label, as in the authors' code. Mini-batches are of 100.
- All layers go through the images in one order. In the authors' code each layer draws its own, so that what a layer is
  taught soon belongs to other images than it saw.
- An input module predicts a layer's inputs from the images, with one dense layer.
- An accuracy without a step is the highest of the evaluations of a run.
- Not measured: figures 3 and 4, which are of others, and gradient losses on test images, on which modules are not
  tried here.
""",
    window=1,
    cells=CELLS,
    tables=(DIRECT, UPDATE_DECOUPLED, FULLY_DECOUPLED, MESSAGES, containers.TABLE),
    headlines=HEADLINES,
)
