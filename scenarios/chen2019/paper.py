"""Chen, Zhao, Li, Zhao 2019, Exploring the use of synthetic gradients for distributed deep learning, HotEdge.

The claims of the paper's section 4, and how runs of `scenarios/chen2019/` measure them.
"""

from dataclasses import replace

from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import (
    accuracy,
    accuracy_at,
    difference,
    mean_accuracy,
    ratio,
    updates_per_s,
    updates_to,
)
from edgebed.studies.papers.paper import (
    AtLeast,
    Cause,
    Claim,
    Curve,
    Headline,
    Near,
    Paper,
    Reading,
    Row,
    Sign,
    Table,
)

from . import caps
from .causes import CAP, of_mean
from .cells import CELLS, DEPLOYED, MODELS, OTHER_MODULES, RATES, READINGS, SGD_STEPS, UPDATES, of_published

TABLE_1 = {"four-layers": (98.4, 97.7), "eight-layers": (99.2, 92.4), "vgg16": (99.4, 84.5)}
"""Accuracies by back-propagation and with synthetic gradients, in per cent."""
WIDER = Near(value=5.0, tolerance=1.1)
"""Points by which the gap is wider with eight layers than with four, in the words of the text. What separates them
from the 6.1 of its own table is the tolerance."""
LESS_THAN_A_POINT = AtLeast(value=-1.0)
"""What synthetic gradients are over back-propagation with four layers, in points, in the words of the text."""
BP, SG = "bp-as-published", "sg-as-published"


def accuracy_row(cell: str, what: str, claim: Claim | None = None, note: str = "", cause: Cause | None = None) -> Row:
    """A row for the highest accuracy of a cell."""
    return Row(what=what, cells=(cell,), measure=accuracy(cell), unit="%", claim=claim, note=note, cause=cause)


def gap_row(
    better: str, worse: str, what: str, claim: Claim | None = None, note: str = "", cause: Cause | None = None
) -> Row:
    """A row for how many points one cell is better than another."""
    measure = difference(accuracy(better), accuracy(worse))
    return Row(what=what, cells=(better, worse), measure=measure, unit="points", claim=claim, note=note, cause=cause)


def lost(model: str) -> Measure:
    """A measure: points that synthetic gradients cost a model."""
    return difference(accuracy(f"{model}-{BP}"), accuracy(f"{model}-{SG}"))


def published_rows(model: str) -> dict[str, Row]:
    """Rows for the two accuracies of a model in table 1, and their difference."""
    by_bp, by_sg = TABLE_1[model]
    words = MODELS[model]
    return {
        f"{model}-bp": accuracy_row(f"{model}-{BP}", f"{words}, back-propagation", Near(value=by_bp, tolerance=1.0)),
        f"{model}-sg": accuracy_row(
            f"{model}-{SG}", f"{words}, synthetic gradients", Near(value=by_sg, tolerance=1.0),
            cause=of_mean(f"{model}-sg"),
        ),
        f"{model}-gap": gap_row(
            f"{model}-{BP}", f"{model}-{SG}", f"{words}: lost by synthetic gradients",
            Near(value=round(by_bp - by_sg, 1), tolerance=0.5), cause=of_mean(f"{model}-gap"),
        ),
    }  # fmt: skip


TABLE = Table(
    title="Table 1: accuracy on MNIST",
    seeds=3,
    text="The highest accuracy on the test images, in less than one in a hundred of the published steps. Modules lie "
    "after each pool; in four layers, after the pool and after two dense layers, unless a reading says otherwise.",
    rows={
        **{name: row for model in MODELS for name, row in published_rows(model).items()},
        "less-than-a-point": gap_row(
            f"four-layers-{SG}", f"four-layers-{BP}", "Four layers: synthetic gradients over back-propagation",
            LESS_THAN_A_POINT, "The text: less than 1 % of accuracy is lost.",
        ),
        "wider": Row(
            what="Eight layers over four: how much more is lost by synthetic gradients",
            cells=tuple(f"{model}-{method}" for model in ("four-layers", "eight-layers") for method in (BP, SG)),
            measure=difference(lost("eight-layers"), lost("four-layers")), unit="points", claim=WIDER,
            note="The text: a gap 5 % wider. The values of table 1 make it 6.1, and the introduction has a gap of "
            "about 2 % with eight layers, where the table has 6.8.",
            cause=of_mean("wider", "mean loss after the pool"),
        ),
    },
    readings=READINGS,
    curves=tuple(
        Curve(
            title=f"{words} as published", over="updates",
            cells=tuple(
                cell
                for ending in (BP, SG, "sg-of-mean", "sg-of-mean-after-pool")
                if (cell := f"{model}-{ending}") in CELLS
            ),
        )
        for model, words in MODELS.items()
    ),
)  # fmt: skip

BEYOND = Table(
    title="Beyond the paper: greedy learning, and a module after each layer",
    seeds=3,
    text="Greedy learning, where each shard has a loss of its own and nothing comes down, is the method to beat. Adam "
    "with 0.001 and mini-batches of 128, as in the reading *faster*.",
    rows={
        "eight-layers-greedy": accuracy_row("eight-layers-greedy", "Eight layers, greedy learning"),
        "eight-layers-greedy-over-sg": gap_row(
            "eight-layers-greedy", "eight-layers-sg", "Eight layers: greedy learning over synthetic gradients"
        ),
        "vgg16-greedy": accuracy_row("vgg16-greedy", "VGG16, greedy learning"),
        "vgg16-greedy-over-sg": gap_row(
            "vgg16-greedy", "vgg16-sg", "VGG16: greedy learning over synthetic gradients"
        ),
        "eight-layers-sg-everywhere": accuracy_row(
            "eight-layers-sg-everywhere", "Eight layers, synthetic gradients between all layers",
            note="Seven modules instead of three; filters of 3x3, in layers as in modules, and one mini-batch on its "
            "way, so that modules are less behind their layers.",
        ),
    },
    curves=tuple(
        Curve(title=words, over="updates", cells=tuple(
            cell for ending in ("bp", "sg", "greedy", "sg-everywhere") if (cell := f"{model}-{ending}") in CELLS
        ))
        for model, words in MODELS.items()
    ),
)  # fmt: skip


def slower_row(model: str) -> Row:
    """A row for how much higher the mean accuracy by back-propagation is, while both learn."""
    by_bp, by_sg = f"{model}-{BP}", f"{model}-{SG}"
    return Row(
        what=f"{MODELS[model]}: back-propagation over synthetic gradients, mean of 20 evaluations",
        cells=(by_bp, by_sg),
        measure=difference(mean_accuracy(by_bp), mean_accuracy(by_sg)),
        unit="points",
        claim=Sign(sign=1),
        with_updates="steady",
        note="The paper says of its charts that synthetic gradients learn more slowly. It is measured while both "
        "learn; what comes later would only dilute it.",
    )


def reaches_row(cell: str, what: str, claim: Claim | None = None, note: str = "") -> Row:
    """A row for the steps until 90 %."""
    return Row(
        what=f"{what}: steps until 90 %", cells=(cell,), measure=updates_to(cell, 0.9), unit="updates", claim=claim,
        note=note,
    )  # fmt: skip


EARLY_BY_DESCENT = {"four-layers-sg-early": "four-layers-sg-sgd", "eight-layers-sg-early": "eight-layers-sg-sgd"}

FIGURE = Table(
    title="Figure 3: convergence",
    seeds=3,
    text="The first 2,000 steps with the published mini-batches of 256 and Adam with 3e-5, a tenth of it from 60 % of "
    "the steps and a hundredth from 80 %. How soon synthetic gradients reach 90 % is measured every 10 steps of the "
    "first 300 of a training whose learning rate has yet to fall.",
    rows={
        "slower-four-layers": slower_row("four-layers"),
        "slower-eight-layers": slower_row("eight-layers"),
        "reaches-four-layers-sg": reaches_row(
            "four-layers-sg-early", "Four layers, synthetic gradients", Near(value=50_000, tolerance=25_000),
            "The paper's chart has it after some 50,000 steps; half of that is the tolerance.",
        ),
        "reaches-eight-layers-sg": reaches_row("eight-layers-sg-early", "Eight layers, synthetic gradients"),
        "depth-slows": Row(
            what="Synthetic gradients, steps until 90 %: eight layers over four",
            cells=("eight-layers-sg-early", "four-layers-sg-early"),
            measure=ratio(updates_to("eight-layers-sg-early", 0.9), updates_to("four-layers-sg-early", 0.9)),
            unit="x", claim=Near(value=2, tolerance=0.5), note="The paper says about twice, without a level.",
        ),
    },
    readings=(
        Reading(name="as published", text="Adam with 3e-5, as the work does that the paper follows.", cells={}),
        Reading(
            name="plain gradient descent",
            text="333 times the published rate in a 333rd of the steps; modules by Adam with 0.001. Its steps count as "
            "they are, not as the paper's. Evaluated every 50 steps.",
            cells=EARLY_BY_DESCENT | of_published("bp", "-sgd") | of_published("sg", "-sgd"),
        ),
    ),
)  # fmt: skip


def at_step(cell: str, steps: int) -> Measure:
    """Return the accuracy after what are so many of the paper's steps, by plain gradient descent."""
    return accuracy_at(cell, round(steps * SGD_STEPS / UPDATES))


def later_gap(by_bp: str, by_sg: str, words: str) -> Row:
    """A row for what is lost after what are 100,000 of the paper's steps, by plain gradient descent."""
    return Row(
        what=f"{words}: lost by synthetic gradients after what are 100,000 of the paper's steps",
        cells=(by_bp, by_sg), measure=difference(at_step(by_bp, 100_000), at_step(by_sg, 100_000)), unit="points",
        with_updates="steady",
    )  # fmt: skip


def other_modules_rows(cell: str, modules: str) -> dict[str, Row]:
    """Rows for other modules in a model that is trained by plain gradient descent."""
    model = cell.partition("-sg-")[0]
    words, by_bp = f"{MODELS[model]}, {modules}", f"{model}-bp-sgd"
    gap = cell.replace("-sg-", "-gap-")
    rows = {
        cell: accuracy_row(cell, f"{words}: synthetic gradients"),
        gap: gap_row(by_bp, cell, f"{words}: lost by synthetic gradients"),
    }
    if model == "eight-layers":
        rows[f"{gap}-100000"] = later_gap(by_bp, cell, words)
    return rows


PLAIN = Table(
    title="Figure 3 with plain gradient descent, and other modules",
    seeds=3,
    is_smaller=True,
    text="The paper does not name its optimizer. With plain gradient descent a step is as long as its learning rate, "
    "so 333 times the published 3e-5 in 1,500 steps go about as far as the paper's 500,000, as far as batch "
    "normalisation lets a step keep its length. That is a reading, and not the length of the paper's training. "
    "Mini-batches are of 256, and modules learn by Adam with 0.001: by gradient descent with this rate their losses "
    "overflow. Other modules are run besides.",
    rows={
        "four-layers-sg-sgd-50000": Row(
            what="Four layers, synthetic gradients: after what are 50,000 of the paper's steps",
            cells=("four-layers-sg-sgd",), measure=at_step("four-layers-sg-sgd", 50_000), unit="%",
            claim=AtLeast(value=90.0), with_updates="steady", beside="reaches-four-layers-sg",
        ),
        "eight-layers-gap-sgd-100000": replace(
            later_gap("eight-layers-bp-sgd", "eight-layers-sg-sgd", "Eight layers"),
            claim=Near(value=10.0, tolerance=5.0), note="The paper says about 10 %.",
            cause=Cause(
                "What modules predict, and how fast they learn.", row="eight-layers-gap-of-mean-slow-sgd-100000"
            ),
        ),
        **{
            name: row
            for cell, modules in OTHER_MODULES.items()
            for name, row in other_modules_rows(cell, modules).items()
        },
    },
    curves=tuple(
        Curve(title=f"{MODELS[model]} by plain gradient descent", over="updates",
              cells=tuple(name for name in CELLS if name.startswith(model) and name.endswith("-sgd")))
        for model in ("four-layers", "eight-layers")
    ),
)  # fmt: skip


def rate_row(cell: str) -> Row:
    """A row for the iterations a second."""
    return Row(what=RATES[cell], cells=(cell,), measure=updates_per_s(cell), unit="updates/s")


def times_row(
    cell: str, baseline: str, what: str, claim: Claim | None = None, note: str = "", cause: Cause | None = None
) -> Row:
    """A row for the iterations a second of one cell in units of another's."""
    measure = ratio(updates_per_s(cell), updates_per_s(baseline))
    return Row(what=what, cells=(cell, baseline), measure=measure, unit="x", claim=claim, note=note, cause=cause)


FASTER = {
    "faster": ("sg", "bp", "on the same devices"),
    "faster-than-parts": ("sg", "bp-4-parts", "with four micro-batches"),
    "faster-store": ("sg-store", "bp-store", "through the store"),
    "faster-20mbit": ("sg-20mbit", "bp-20mbit", "on links of 20 mbit"),
    "faster-store-20mbit": ("sg-store-20mbit", "bp-store-20mbit", "through the store, on links of 20 mbit"),
    "faster-20mbit-int8": ("sg-20mbit-int8", "bp-20mbit-int8", "on links of 20 mbit, int8"),
}
"""Rows on rates: whose rate, in units of whose, and where."""

DEPLOYMENT = Table(
    title="Section 4.3: iterations a second in containers",
    seeds=5,
    is_smaller=True,
    text="Four containers with a layer each; each has 0.4 of a core and 1 GiB, so that they fit a host of two cores "
    "together, where the paper's have a core each. The paper compares 185 iterations/s with 166 of back-propagation on "
    "the same host *without* limits, which may use all cores; here such a process uses one. On the same devices "
    "back-propagation makes the shards wait for each other.",
    rows={
        **{f"rate-{cell}": rate_row(cell) for cell in RATES},
        "faster-than-whole": times_row(
            "sg", "whole", "Synthetic gradients on four devices over back-propagation on one without a cap",
            Near(value=1.114, tolerance=0.114),
            "The paper's 185 over 166.", CAP,
        ),
        "faster-than-whole-capped": times_row(
            "sg", "whole-capped", "Synthetic gradients on four devices over back-propagation on one of them"
        ),
        **{
            row: times_row(cell, baseline, f"Synthetic gradients over back-propagation {words}")
            for row, (cell, baseline, words) in FASTER.items()
        },
    },
)  # fmt: skip

IN_CONTAINERS = Table(
    title="Section 4.3: accuracy in containers",
    seeds=3,
    is_smaller=True,
    text="Four containers with a layer each, 3,000 steps with Adam, 0.001 and mini-batches of 128.",
    rows={
        "deployed-accuracy": replace(
            accuracy_row(DEPLOYED, "Four layers in containers: accuracy", Near(value=97.7, tolerance=1.0)),
            beside="four-layers-sg",
        ),
        "deployed-loss": gap_row(
            DEPLOYED,
            "four-layers-sg",
            "Its accuracy over that of the same training in simulation",
            note="Not in the paper: what it may cost that real devices are not in step.",
        ),
    },
)

HEADLINES = (
    Headline(
        claim="Synthetic gradients cost 0.7 points with four layers, 6.8 with eight and 14.9 with sixteen",
        rows=(
            "four-layers-gap", "eight-layers-gap", "vgg16-gap", "wider",
            "four-layers-gap:mean-loss-after-the-pool", "eight-layers-gap:mean-loss", "vgg16-gap:mean-loss",
        ),
        chart="Eight layers as published",
        found="In the first 0.4 % of the published training they cost less than that, and modules that predict the "
        "gradient of a mini-batch's mean loss more, the more the deeper the model. No reading fits the whole table. "
        "Greedy learning, which came later, costs less than any.",
    ),
    Headline(
        claim="They learn more slowly than back-propagation, the deeper the slower",
        rows=("slower-four-layers", "slower-eight-layers", "depth-slows", "depth-slows:plain-gradient-descent"),
        chart="Four layers as published",
        found="They are slower. In the paper 90 % takes some 50,000 steps, here with Adam {reaches-four-layers-sg}: "
        "the paper's time scale is that of plain gradient descent.",
    ),
    Headline(
        claim="Four containers make 185 steps a second with synthetic gradients, one device by back-propagation 166",
        rows=(
            "faster-than-whole", "faster-than-whole-capped-0.7", "faster-of-cores", "faster-of-cores-without-modules",
            "faster",
        ),
        found="With 0.4 of a core for each layer it is the other way round. By the profile it would be "
        "{faster-of-cores} with a core each, and {faster-of-cores-without-modules} if modules cost nothing: the first "
        "layer's module, convolutions, works about as long as the layer, and its device decides the rate.",
    ),
)  # fmt: skip

PAPER = Paper(
    name="chen2019",
    citation="Y. Chen, K. Zhao, B. Li, M. Zhao: Exploring the use of synthetic gradients for distributed deep learning "
    "across cloud and edge resources. 2nd USENIX Workshop on Hot Topics in Edge Computing (HotEdge), 2019.",
    text="""\
Models whose layers lie on different devices are trained on MNIST, by back-propagation or with synthetic gradients. The
paper trains for 500,000 steps; here it is less than one in a hundred of that. What the paper leaves open is read as
follows.

- Convolutions are of 5x5 with batch normalisation, those of VGG16 of 3x3; dense layers have 256 units. The paper gives
  no widths but 64 to 512 of modules: the models here have half of that, 32 filters, and VGG16 a quarter, 16 to 128.
- VGG16 takes images of 28x28 by pools that round up.
- A module has one hidden layer as wide as the layer that it stands after, sees the labels, and ends in a layer that is
  zero at first. It is taught the gradient that the shard above computes from its own prediction, multiplied by the size
  of the mini-batch.
- The optimizer is Adam, as in the work that the paper follows; pixels are scaled to [0, 1]. Other readings, such as
  plain gradient descent and modules that predict the gradient of a mini-batch's mean loss, stand beside it.
- An accuracy is the highest of the evaluations of a run.
""",
    window=1,
    cells=CELLS,
    tables=(TABLE, FIGURE, PLAIN, BEYOND, DEPLOYMENT, IN_CONTAINERS, caps.TABLE),
    headlines=HEADLINES,
)
