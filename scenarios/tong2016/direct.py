"""Figures 9 to 13 of Tong et al. 2016: the gradient loss minimised with respect to the layers."""

from dataclasses import replace

from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import difference, final_accuracy, mean_accuracy, of_summary, ratio, times
from edgebed.studies.papers.paper import AtLeast, Cell, Curve, Near, Reading, Row, Sign, Table

FILE = "figures-9-13.yaml"
EPOCHS = 10
"""Epochs that are run, of the report's 200."""
STRONG_EPOCHS = 4
"""Epochs of the gradient loss of each image's own loss, with which nothing is learnt."""
BATCH = 128
FIVE_POINTS = 5.0
A_TENTH = 0.1
"""Tolerance of a loss: what the report's two methods differ by."""

WHAT = {"bp": "Back-propagation", "direct": "Gradient loss minimised as well"}
ACCURACIES = {"bp": 64.0, "direct": 66.5}
"""Accuracies in per cent, and below losses, after 200 epochs: on test images, and on training images."""
TRAINING_ACCURACIES = {"bp": 70.0, "direct": 79.0}
LOSSES = {"bp": 1.05, "direct": 1.15}
TRAINING_LOSSES = {"bp": 0.87, "direct": 0.91}
GRADIENT_LOSS = 2.55
"""The gradient loss on training images after 200 epochs."""
TRAINING = "-training"
"""The ending of rows, cells and variants that are evaluated on training images."""

CELLS = {
    **{
        f"cifar-{name}{dropout}{images}": Cell(
            scenario=FILE, variant=f"{name}{dropout}{images}", scale=EPOCHS / 200
        )
        for name in WHAT
        for dropout in ("-keep", "")
        for images in ("", TRAINING)
    },
    "cifar-direct-strong": Cell(scenario=FILE, variant="direct-strong", scale=STRONG_EPOCHS / 200),
}  # fmt: skip
BP, DIRECT = "cifar-bp-keep", "cifar-direct-keep"
"""The cells with dropout as printed."""

READINGS = (
    Reading(
        name="dropout as printed",
        text="section 5.1 gives keep probabilities of 0.25, 0.5 and 0.25: so many of the values are kept, by stage.",
        cells={},
    ),
    Reading(
        name="usual dropout",
        text="0.25, 0.25 and 0.5 of the values are dropped, as in the example of Keras that has the same layers.",
        cells={
            f"cifar-{name}-keep{images}": f"cifar-{name}{images}" for name in WHAT for images in ("", TRAINING)
        },
    ),
)  # fmt: skip


def of(name: str, images: str = "") -> str:
    """The cell of a method with dropout as printed."""
    return f"cifar-{name}-keep{images}"


def accuracy_row(name: str, images: str = "") -> Row:
    """A row for the accuracy of the last model, on test images or on training images."""
    published, cell = (TRAINING_ACCURACIES if images else ACCURACIES)[name], of(name, images)
    return Row(
        what=f"{WHAT[name]}: accuracy on {'training' if images else 'test'} images", cells=(cell,),
        measure=final_accuracy(cell), unit="%", claim=Near(value=published, tolerance=FIVE_POINTS),
    )  # fmt: skip


def loss_of(cell: str) -> Measure:
    """A measure: the loss in the end, on the images that the cell is evaluated on."""
    return of_summary(cell, "final_loss")


def loss_row(name: str, images: str = "") -> Row:
    """A row for the loss in the end; on test images it rises again once training images are known by heart."""
    published, cell = (TRAINING_LOSSES if images else LOSSES)[name], of(name, images)
    return Row(
        what=f"{WHAT[name]}: loss on {'training' if images else 'test'} images", cells=(cell,), measure=loss_of(cell),
        unit="", with_updates="changes" if images else "turns", claim=Near(value=published, tolerance=A_TENTH),
    )  # fmt: skip


def gain_row(what: str, value: float, images: str = "") -> Row:
    """A row for how many points the gradient loss adds to the accuracy of the last model."""
    better, worse = of("direct", images), of("bp", images)
    return Row(
        what=what, cells=(better, worse), measure=difference(final_accuracy(better), final_accuracy(worse)),
        unit="points", claim=Sign(sign=1, value=value),
    )  # fmt: skip


TABLE = Table(
    title="Figures 9 to 13: the gradient loss minimised with respect to the layers",
    seeds=3,

    rows={
        **{f"cifar-{name}": accuracy_row(name) for name in WHAT},
        **{f"cifar-{name}{TRAINING}": accuracy_row(name, TRAINING) for name in WHAT},
        **{f"cifar-{name}-loss": loss_row(name) for name in WHAT},
        **{f"cifar-{name}{TRAINING}-loss": loss_row(name, TRAINING) for name in WHAT},
        "cifar-gain": gain_row("What the gradient loss adds to the accuracy on test images", 2.5),
        "cifar-gain-training": replace(
            gain_row("What the gradient loss adds to the accuracy on training images", 9.0, TRAINING),
            beside="cifar-gain",
        ),
        "cifar-faster": Row(
            what="What the gradient loss adds to the mean accuracy of all evaluations", cells=(DIRECT, BP),
            measure=difference(mean_accuracy(DIRECT), mean_accuracy(BP)), unit="points", claim=Sign(sign=1),
            note="Who converges faster is more accurate in the mean of a training.",
        ),
        "cifar-loss": Row(
            what="What the gradient loss adds to the loss on test images", cells=(DIRECT, BP),
            measure=difference(loss_of(DIRECT), loss_of(BP)), unit="", claim=Sign(sign=1, value=0.1),
            with_updates="turns", beside="cifar-direct-loss",
        ),
        "cifar-gradient-loss": Row(
            what="The gradient loss in the last tenth of the steps over that in the first", cells=(DIRECT,),
            measure=ratio(of_summary(DIRECT, "gradient_loss_late"), of_summary(DIRECT, "gradient_loss_early")),
            unit="x", claim=AtLeast(value=1.0), with_updates="changes",
        ),
        "cifar-gradient-loss-200": Row(
            what="The gradient loss in the last tenth of the steps", cells=(DIRECT,),
            measure=times(of_summary(DIRECT, "gradient_loss_late"), 1 / BATCH), unit="",
            claim=Near(value=GRADIENT_LOSS, tolerance=GRADIENT_LOSS / 2), with_updates="changes",
            beside="cifar-gradient-loss",
            note="Of gradients of the mini-batch's mean loss, on training images. Half of it is the tolerance, since "
            "it depends on the size of mini-batches, which the report does not give.",
        ),
        "cifar-direct-strong": Row(
            what=f"The gradient loss of each image's own loss, usual dropout, {STRONG_EPOCHS} epochs: accuracy on test "
            "images",
            cells=("cifar-direct-strong",), measure=final_accuracy("cifar-direct-strong"), unit="%",
            claim=Near(value=ACCURACIES["direct"], tolerance=FIVE_POINTS), beside="cifar-direct",
            note="The report does not say whether its gradients are those of the mini-batch's mean loss, as above, or "
            f"of each image's, {BATCH} times as large.",
        ),
    },
    readings=READINGS,
    curves=(Curve(title="Figure 13", cells=(BP, DIRECT, "cifar-bp", "cifar-direct"), over="updates"),),
)  # fmt: skip
