"""Rows for accuracies: what compression costs, in the settings that two cores can train, and by the post's schedule."""

from edgebed.studies.papers.measuring import difference, final_accuracy, of_summary, ratio
from edgebed.studies.papers.paper import AtMost, Claim, Curve, Near, Row, Sign, Table

from . import weights
from .cells import WHAT
from .measures import largest_distance, mean_distance
from .rates import ZIP, ZIP_ROW, computed

HALF_A_POINT = 0.5
ONE_POINT = 1.0
SAME = Near(value=0.0, tolerance=HALF_A_POINT)
NO_LESS = AtMost(value=HALF_A_POINT, published=0.0)
"""Nothing is lost: a baseline that is reached may be passed."""
SIMILAR = Near(value=0.0, tolerance=ONE_POINT)
NINETY = Near(value=90.0, tolerance=1.0)
NINETY_ROW = "accuracy-federated-resnet18"
SMALLER = "The post's is of ResNet-18 after 150 rounds."
LOST = "The post's table is lost; its words are that the baseline's accuracy is still achieved."
CURVES = (
    "The post: extremely similar behaviour overall, without a measure. A point, by which a line in a chart of all "
    "accuracies is about as wide, is the tolerance, stated before the distance was measured."
)
NOT_IN_THE_POST = "Not in the post."


def accuracy_row(cell: str, *, has_claim: bool = False) -> Row:
    """A row for the accuracy of the last model; those with the claim measure the post's of ResNet-18 in another way."""
    row = Row(what=WHAT[cell], cells=(cell,), measure=final_accuracy(cell), unit="%")
    if not has_claim:
        return row
    return Row(
        what=row.what, cells=row.cells, measure=row.measure, unit="%", claim=NINETY, note=SMALLER, beside=NINETY_ROW,

    )  # fmt: skip


def over_row(cell: str, baseline: str, what: str, claim: Claim | None, note: str = "", beside: str = "") -> Row:
    """A row for how many points one cell is better than another, seed by seed."""
    measure = difference(final_accuracy(cell), final_accuracy(baseline))
    return Row(
        what=what, cells=(cell, baseline), measure=measure, unit="points", claim=claim, note=note, beside=beside
    )  # fmt: skip


def loss_row(cell: str, what: str, baseline: str = "large-batch", note: str = "", beside: str = "") -> Row:
    """A row for how many points compression loses, seed by seed."""
    return over_row(baseline, cell, what, NO_LESS, note, beside)


def keeps_row(cell: str, baseline: str, what: str, beside: str = "") -> Row:
    """A row for what compression changes in federated learning, seed by seed."""
    return over_row(cell, baseline, what, SAME, beside=beside)


def similar_rows(key: str, cell: str, what: str, beside: str = "") -> dict[str, Row]:
    """Rows for how far the curve of a cell is from that of federated learning without compression."""
    cells = (cell, "federated")
    return {
        f"{key}-similar": Row(
            what=f"{what}: mean distance of its curve from that without", cells=cells, measure=mean_distance(*cells),
            unit="points", claim=SIMILAR, note=CURVES, beside=beside,
        ),
        f"{key}-farthest": Row(
            what=f"{what}: largest distance of its curve from that without", cells=cells,
            measure=largest_distance(*cells), unit="points",
        ),
    }  # fmt: skip


def pushes_row(cell: str, baseline: str, *, zip_claim: bool = False) -> Row:
    """A row for how many times smaller a push is; with zip of integers it is the post's claim on these."""
    measure = ratio(of_summary(baseline, "push_bytes_mean"), of_summary(cell, "push_bytes_mean"))
    return Row(
        what=f"{WHAT[cell]}: how many times smaller a push is", cells=(cell, baseline), measure=measure, unit="x",
        claim=ZIP if zip_claim else None, beside=ZIP_ROW if zip_claim else "",
        note="Whole pushes, with running means as floats, in the mean of a training." if zip_claim else "",

    )  # fmt: skip


F2I_OF_GRADIENTS = "Large batch: lost by F2I"
F2I_OF_CHANGES = "Federated learning: F2I of changes less none"
FEDERATED_F2I = "Federated learning, F2I of changes"

ACCURACY = Table(
    title="Accuracy",
    seeds=11,
    other_setting=True,

    rows={
        "accuracy-large-batch": accuracy_row("large-batch"),
        "accuracy-large-batch-int8": accuracy_row("large-batch-int8"),
        "accuracy-large-batch-dgc": accuracy_row("large-batch-dgc"),
        "loss-int8": loss_row("large-batch-int8", F2I_OF_GRADIENTS, note=LOST),
        "loss-dgc": loss_row("large-batch-dgc", "Large batch: lost by DGC", note=LOST),
        "accuracy-federated": accuracy_row("federated", has_claim=True),
        "accuracy-federated-int8": accuracy_row("federated-int8", has_claim=True),
        "federated-int8-keeps": keeps_row("federated-int8", "federated", F2I_OF_CHANGES),
        **similar_rows("federated-int8", "federated-int8", FEDERATED_F2I),
        "push-large-batch-int8": pushes_row(
            "large-batch-int8", "large-batch", zip_claim=True
        ),
        "push-large-batch-dgc": pushes_row("large-batch-dgc", "large-batch"),
        "push-federated-int8": pushes_row(
            "federated-int8", "federated", zip_claim=True
        ),
    },
    curves=(
        Curve(title="Large batch", over="updates",
              cells=("large-batch", "large-batch-int8", "large-batch-dgc")),
        Curve(title="Federated learning", over="updates", cells=("federated", "federated-int8")),
        Curve(title="By what is sent", over="ingress",
              cells=("large-batch", "large-batch-int8", "large-batch-dgc", "federated", "federated-int8")),
    ),
)  # fmt: skip

MODEL_SCALE = Table(
    title="Accuracy with one scale for the model",
    seeds=3,
    other_setting=True,

    rows={
        "accuracy-large-batch-int8-model-scale": accuracy_row("large-batch-int8-model-scale"),
        "loss-int8-model-scale": loss_row(
            "large-batch-int8-model-scale", f"{F2I_OF_GRADIENTS}, one scale for the model", beside="loss-int8"
        ),
        "accuracy-federated-int8-model-scale": accuracy_row("federated-int8-model-scale"),
        "federated-int8-model-scale-keeps": keeps_row(
            "federated-int8-model-scale", "federated", f"{F2I_OF_CHANGES}, one scale for the model",
            beside="federated-int8-keeps",
        ),
        **similar_rows(
            "federated-int8-model-scale", "federated-int8-model-scale", f"{FEDERATED_F2I}, one scale for the model",
            beside="federated-int8-similar",
        ),
        "push-large-batch-int8-model-scale": pushes_row(
            "large-batch-int8-model-scale", "large-batch", zip_claim=True
        ),
        "push-federated-int8-model-scale": pushes_row("federated-int8-model-scale", "federated", zip_claim=True),
    },
    curves=(
        Curve(title="One scale for the model", over="updates",
              cells=("large-batch", "large-batch-int8", "large-batch-int8-model-scale")),
    ),
)  # fmt: skip

CLIPPED = Table(
    title="DGC with clipping and a sample",
    seeds=3,
    other_setting=True,
    rows={
        "accuracy-dgc-clipped": accuracy_row("large-batch-dgc-clipped"),
        "loss-dgc-clipped": loss_row(
            "large-batch-dgc-clipped", "Large batch: lost by DGC, clipped and with a sample", beside="loss-dgc"
        ),
    },
)

HUNDRED_EPOCHS = Table(
    title="A hundred epochs of an eighth of the images",
    seeds=4,
    other_setting=True,

    rows={
        "accuracy-hundred-epochs": accuracy_row("large-batch-hundred-epochs"),
        "accuracy-dgc-hundred-epochs": accuracy_row("large-batch-dgc-hundred-epochs"),
        "loss-dgc-hundred-epochs": loss_row(
            "large-batch-dgc-hundred-epochs", "A hundred epochs: lost by DGC", "large-batch-hundred-epochs",
            beside="loss-dgc",
        ),
    },
    curves=(
        Curve(title="A hundred epochs", over="updates",
              cells=("large-batch-hundred-epochs", "large-batch-dgc-hundred-epochs")),
    ),
)  # fmt: skip

WORKERS_32 = Table(
    title="Accuracy with 32 workers",
    seeds=3,
    other_setting=True,

    rows={
        "accuracy-large-batch-32": accuracy_row("large-batch-32"),
        "accuracy-large-batch-dgc-32": accuracy_row("large-batch-dgc-32"),
        "loss-dgc-32": loss_row(
            "large-batch-dgc-32", "Large batch, 32 workers: lost by DGC", "large-batch-32", beside="loss-dgc"
        ),
        "accuracy-federated-32": accuracy_row("federated-32"),
        "accuracy-federated-int8-32": accuracy_row("federated-int8-32"),
        "federated-int8-keeps-32": keeps_row(
            "federated-int8-32", "federated-32", "Federated learning, 32 workers: F2I of changes less none",
            beside="federated-int8-keeps",
        ),
    },
)  # fmt: skip

RESNET18 = Table(
    title="Federated learning with the post's network",
    seeds=3,

    rows={
        NINETY_ROW: Row(
            what=WHAT["federated-resnet18"], cells=("federated-resnet18",),
            measure=final_accuracy("federated-resnet18"), unit="%", claim=NINETY,
            note="The post's is that after 150 rounds.",
        ),
    },
)  # fmt: skip

SCHEDULES = Table(
    title="Figure 1: how the learning rate falls",
    seeds=3,
    other_setting=True,

    rows={
        "accuracy-plateau": accuracy_row("large-batch-plateau"),
        "accuracy-dgc-plateau": accuracy_row("large-batch-dgc-plateau"),
        "plateau-stalls": over_row(
            "large-batch-plateau", "large-batch-dgc-plateau", "By plateau: none over DGC", Sign(sign=1)
        ),
        "cosine-over-plateau": over_row(
            "large-batch-dgc", "large-batch-dgc-plateau", "With DGC: cosine over plateau", None,
            "The post leaves it to further research.",
        ),
        "cosine-over-plateau-none": over_row(
            "large-batch", "large-batch-plateau", "Without compression: cosine over plateau", None, NOT_IN_THE_POST
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
    seeds=3,
    other_setting=True,

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
            NOT_IN_THE_POST,
        ),
    },
)  # fmt: skip
