"""Chen, Zhao, Li, Zhao 2019, Exploring the use of synthetic gradients for distributed deep learning, HotEdge.

The claims of the paper's section 4, and how runs of `scenarios/chen2019/` measure them.
"""

from collections.abc import Mapping
from dataclasses import replace

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

from . import caps
from .causes import BY_DESCENT_OF_MEAN, CAP_AND_MODULE, TOO_MUCH, TRAINING, WHY, WIDER_OF_MEAN

UPDATES = 500_000
EARLY = 300
"""Steps within which accuracies of 90 % are reached."""
EARLY_EVERY = 10
"""Steps between two evaluations in the first `EARLY` steps: a few per cent of what 90 % takes, since a factor of two
must show."""
AFTER_POOL = "-after-pool"
OF_FIGURE_3 = ("-as-published", "-of-mean", AFTER_POOL)
"""Endings of cells in the charts of figure 3."""
OF_OTHER_CHARTS = (*OF_FIGURE_3, "-early", "-sgd")
"""Endings of cells that are not of table 1."""
SGD_STEPS = 1500
"""Steps of plain gradient descent with a learning rate as much higher as there are fewer steps than the paper's."""
MODELS = {"four-layers": "Four layers", "eight-layers": "Eight layers", "vgg16": "VGG16"}
TABLE_1 = {"four-layers": (98.4, 97.7), "eight-layers": (99.2, 92.4), "vgg16": (99.4, 84.5)}
"""Accuracies by back-propagation and with synthetic gradients, in per cent."""
WIDER = Near(value=5.0, tolerance=1.1)
"""Points by which the gap is wider with eight layers than with four, in the words of the text. What separates them
from the 6.1 of its own table is the tolerance."""
LESS_THAN_A_POINT = AtLeast(value=-1.0)
"""What synthetic gradients are over back-propagation with four layers, in points, in the words of the text."""


def trained(variant: str, updates: int, seeds: int = 3) -> Cell:
    """A cell of table 1 with so many updates; the learning rate falls after the paper's shares of them."""

    def sets(scale: float) -> tuple[str, ...]:
        first, second = (round(share * UPDATES * scale) for share in (0.6, 0.8))
        return (f"variants.{variant}.method.optimizer.decay_at=[{first}, {second}]",)

    scale = updates / UPDATES
    return Cell(scenario="table-1.yaml", variant=variant, scale=scale, seeds=seeds, sets=sets, has_own_schedule=True)


def early(variant: str) -> Cell:
    """The beginning of a cell of figure 3, before its learning rate falls, evaluated every 10 steps."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"evaluation.every={max(1, round(EARLY_EVERY / EARLY * UPDATES * scale))} updates",)

    return Cell(scenario="table-1.yaml", variant=variant, scale=EARLY / UPDATES, sets=sets)


def deployed(variant: str) -> Cell:
    """A cell of section 4.3, with more seeds, since what is measured is time."""
    return Cell(scenario="section-4-3.yaml", variant=variant, runtime="docker", seeds=5)


RATES = {
    "sg": "Synthetic gradients on four devices",
    "bp": "Back-propagation on the same devices",
    "bp-4-parts": "Back-propagation on the same devices, four micro-batches",
    "whole": "Back-propagation on one device without a cap",
    "whole-capped": "Back-propagation on one device with the cap of one of the four",
    "sg-store": "Synthetic gradients through the store",
    "bp-store": "Back-propagation through the store",
    "sg-20mbit": "Synthetic gradients, links of 20 mbit",
    "bp-20mbit": "Back-propagation, links of 20 mbit",
    "sg-store-20mbit": "Synthetic gradients through the store, links of 20 mbit",
    "bp-store-20mbit": "Back-propagation through the store, links of 20 mbit",
    "sg-20mbit-int8": "Synthetic gradients, links of 20 mbit, int8",
    "bp-20mbit-int8": "Back-propagation, links of 20 mbit, int8",
}

OTHER_MODULES = {
    "four-layers-sg-of-mean-after-pool-slow-sgd": ("modules of the mean loss after the pool alone, at 3e-5", 1),
    "eight-layers-sg-slow-sgd": ("modules at 3e-5", 2),
    "eight-layers-sg-of-mean-sgd": ("modules of the mean loss", 1),
    "eight-layers-sg-of-mean-slow-sgd": ("modules of the mean loss, at 3e-5", 3),
    "vgg16-sg-of-mean-slow-sgd": ("modules of the mean loss, at 3e-5", 1),
}
"""Cells of plain gradient descent with other modules than those of an example's gradient that learn at 0.001, and how
many seeds each has."""
CELLS: dict[str, Cell] = {
    "four-layers-bp": trained("four-layers-bp", 3000),
    "four-layers-sg": trained("four-layers-sg", 3000),
    "eight-layers-bp": trained("eight-layers-bp", 4000),
    "eight-layers-sg": trained("eight-layers-sg", 4000),
    "eight-layers-sg-everywhere": trained("eight-layers-sg-everywhere", 3000),
    "eight-layers-greedy": trained("eight-layers-greedy", 4000),
    "vgg16-bp": trained("vgg16-bp", 3000),
    "vgg16-sg": trained("vgg16-sg", 3000),
    "vgg16-greedy": trained("vgg16-greedy", 3000),
    **{
        f"{model}-{method}-as-published": trained(f"{model}-{method}-as-published", 2000)
        for model in ("four-layers", "eight-layers")
        for method in ("bp", "sg")
    },
    "vgg16-bp-as-published": trained("vgg16-bp-as-published", 2000),
    "vgg16-sg-as-published": trained("vgg16-sg-as-published", 2000, seeds=1),
    **{
        f"{cell}-sg-of-mean{ending}": trained(f"{cell}-sg-of-mean{ending}", 2000)
        for cell, ending in (("four-layers", ""), ("four-layers", AFTER_POOL), ("eight-layers", ""), ("vgg16", ""))
    },
    **{
        f"{model}-{method}-sgd": trained(f"{model}-{method}-sgd", SGD_STEPS, seeds)
        for model, seeds in (("four-layers", 5), ("eight-layers", 3))  # the paper's gap is below a point with four
        for method in ("bp", "sg")
    },
    **{name: trained(name, SGD_STEPS, seeds) for name, (_, seeds) in OTHER_MODULES.items()},
    **{f"{model}-sg-early": early(f"{model}-sg-as-published") for model in ("four-layers", "eight-layers")},
    **{variant: deployed(variant) for variant in RATES},
    "sg-deployed": deployed("sg-accuracy"),
    **caps.CELLS,
}


def accuracy_row(cell: str, what: str, claim: Claim | None = None, note: str = "", cause: Cause | None = None) -> Row:
    """A row for the highest accuracy of a cell."""
    return Row(what=what, cells=(cell,), measure=accuracy(cell), unit="%", claim=claim, note=note, cause=cause)


def gap_row(
    better: str, worse: str, what: str, claim: Claim | None = None, note: str = "", cause: Cause | None = None
) -> Row:
    """A row for how many points one cell is better than another."""
    measure = difference(accuracy(better), accuracy(worse))
    return Row(what=what, cells=(better, worse), measure=measure, unit="points", claim=claim, note=note, cause=cause)


def text_rows(ending: str = "", words: str = "") -> dict[str, Row]:
    """Rows for what the text says of the gaps, of cells with this ending."""
    gaps = {
        model: difference(accuracy(f"{model}-bp{ending}"), accuracy(f"{model}-sg{ending}"))
        for model in ("four-layers", "eight-layers")
    }
    return {
        f"less-than-a-point{ending}": gap_row(
            f"four-layers-sg{ending}", f"four-layers-bp{ending}",
            f"Four layers{words}: synthetic gradients over back-propagation",
            LESS_THAN_A_POINT, "The text: less than 1 % of accuracy is lost.",
        ),
        f"wider{ending}": Row(
            what=f"Eight layers over four{words}: how much more is lost by synthetic gradients",
            cells=tuple(f"{model}-{method}{ending}" for model in gaps for method in ("bp", "sg")),
            measure=difference(gaps["eight-layers"], gaps["four-layers"]), unit="points", claim=WIDER,
            note="The text: a gap 5 % wider. The values of table 1 make it 6.1, and the introduction has a gap of "
            "about 2 % with eight layers, where the table has 6.8.",
            cause=WIDER_OF_MEAN,
        ),
    }  # fmt: skip


def published_rows(model: str) -> dict[str, Row]:
    """Rows for the two accuracies of a model in table 1, and their difference."""
    by_bp, by_sg = TABLE_1[model]
    words, cause = MODELS[model], WHY.get(model)
    return {
        f"{model}-bp": accuracy_row(f"{model}-bp", f"{words}, back-propagation", Near(value=by_bp, tolerance=1.0)),
        f"{model}-sg": accuracy_row(
            f"{model}-sg", f"{words}, synthetic gradients", Near(value=by_sg, tolerance=1.0), cause=cause or TRAINING,
        ),
        f"{model}-gap": gap_row(
            f"{model}-bp", f"{model}-sg", f"{words}: lost by synthetic gradients",
            Near(value=round(by_bp - by_sg, 1), tolerance=0.5), cause=cause,
        ),
    }  # fmt: skip


TABLE = Table(
    title="Table 1: accuracy on MNIST",
    text="The highest accuracy on the test images. Modules lie after each pool; in four layers, after the pool and "
    "after two dense layers. Trained with mini-batches of 128 and a learning rate of 0.001, a tenth of it from 60 % of "
    "the steps and a hundredth from 80 %: with the published 3e-5 so short a training would end before the models have "
    "learnt. Greedy learning, where each shard has a loss of its own and nothing comes down, is the method to beat.",
    rows={
        **published_rows("four-layers"),
        **published_rows("eight-layers"),
        "eight-layers-sg-everywhere": accuracy_row(
            "eight-layers-sg-everywhere", "Eight layers, synthetic gradients between all layers",
            note="Not in the paper: seven modules instead of three; filters of 3x3, in layers as in modules, and one "
            "mini-batch on its way, so that modules are less behind their layers.",
        ),
        "eight-layers-greedy": accuracy_row(
            "eight-layers-greedy", "Eight layers, greedy learning", note="Not in the paper."
        ),
        "eight-layers-greedy-over-sg": gap_row(
            "eight-layers-greedy", "eight-layers-sg", "Eight layers: greedy learning over synthetic gradients"
        ),
        **text_rows(),
        **published_rows("vgg16"),
        "vgg16-greedy": accuracy_row("vgg16-greedy", "VGG16, greedy learning", note="Not in the paper."),
        "vgg16-greedy-over-sg": gap_row(
            "vgg16-greedy", "vgg16-sg", "VGG16: greedy learning over synthetic gradients"
        ),
    },
    curves=tuple(
        Curve(
            title=words, over="updates",
            cells=tuple(name for name in CELLS if name.startswith(model) and not name.endswith(OF_OTHER_CHARTS)),
        )
        for model, words in MODELS.items()
    ),
)  # fmt: skip


def slower_row(model: str) -> Row:
    """A row for how much higher the mean accuracy by back-propagation is, while both learn."""
    by_bp, by_sg = f"{model}-bp-as-published", f"{model}-sg-as-published"
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


def reaches_row(cell: str, what: str, note: str) -> Row:
    """A row for the steps until 90 %."""
    return Row(
        what=f"{what}: steps until 90 %", cells=(cell,), measure=updates_to(cell, 0.9), unit="updates", note=note
    )


def of_mean_rows(model: str, ending: str = "", where: str = "") -> dict[str, Row]:
    """Rows for modules that predict the gradient of a mini-batch's mean loss."""
    cell = f"{model}-sg-of-mean{ending}"
    words = f"{MODELS[model]}, modules of the mean loss{where}"
    return {
        cell: accuracy_row(cell, f"{words}: synthetic gradients"),
        f"{model}-gap-of-mean{ending}": gap_row(
            f"{model}-bp-as-published", cell, f"{words}: lost by synthetic gradients"
        ),
    }


FIGURE = Table(
    title="Figure 3: convergence",
    text="The first 2,000 steps with the published mini-batches of 256 and Adam with 3e-5, a tenth of it from 60 % of "
    "the steps and a hundredth from 80 %. How soon synthetic gradients reach 90 % is measured every 10 steps of the "
    "first 300 of a training whose learning rate has yet to fall. Modules of the mean loss predict the gradient of a "
    "mini-batch's mean loss, and all else is as published; after the pool alone there is one module with four layers, "
    "where there are three else.",
    rows={
        "slower-four-layers": slower_row("four-layers"),
        "slower-eight-layers": slower_row("eight-layers"),
        **{
            f"reaches-{model}-{method}": reaches_row(
                f"{model}-{cell}", f"{MODELS[model]}, {words}",
                "The paper's chart has it after some 50,000 steps." if (model, method) == ("four-layers", "sg") else "",
            )
            for model in ("four-layers", "eight-layers")
            for method, cell, words in (
                ("bp", "bp-as-published", "back-propagation"), ("sg", "sg-early", "synthetic gradients"),
            )
        },
        **of_mean_rows("four-layers"),
        **of_mean_rows("four-layers", AFTER_POOL, ", after the pool alone"),
        **of_mean_rows("eight-layers"),
        **of_mean_rows("vgg16"),
        "vgg16-gap-as-published": gap_row(
            "vgg16-bp-as-published", "vgg16-sg-as-published", "VGG16: lost by synthetic gradients, trained as published"
        ),
        "wider-of-mean": Row(
            what="Eight layers over four, modules of the mean loss after pools alone: how much more is lost",
            cells=(
                "four-layers-bp-as-published", f"four-layers-sg-of-mean{AFTER_POOL}",
                "eight-layers-bp-as-published", "eight-layers-sg-of-mean",
            ),
            measure=difference(
                difference(accuracy("eight-layers-bp-as-published"), accuracy("eight-layers-sg-of-mean")),
                difference(accuracy("four-layers-bp-as-published"), accuracy(f"four-layers-sg-of-mean{AFTER_POOL}")),
            ),
            unit="points",
        ),
        "depth-slows": Row(
            what="Synthetic gradients, steps until 90 %: eight layers over four",
            cells=("eight-layers-sg-early", "four-layers-sg-early"),
            measure=ratio(updates_to("eight-layers-sg-early", 0.9), updates_to("four-layers-sg-early", 0.9)),
            unit="x", claim=Near(value=2, tolerance=0.5), note="The paper says about twice, without a level.",
        ),
    },
    curves=tuple(
        Curve(title=f"{MODELS[model]} as published", over="updates",
              cells=tuple(name for name in CELLS if name.startswith(model) and name.endswith(OF_FIGURE_3)))
        for model in MODELS
    ),
)  # fmt: skip


def settled(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Rows of trainings with their whole schedule, however few steps it has."""
    return {name: replace(row, with_updates="steady") for name, row in rows.items()}


def at_step(cell: str, steps: int) -> Measure:
    """Return the accuracy after what are so many of the paper's steps, by plain gradient descent."""
    return accuracy_at(cell, round(steps * SGD_STEPS / UPDATES))


def later_gap(by_bp: str, by_sg: str, words: str) -> Row:
    """A row for what is lost after what are 100,000 of the paper's steps, by plain gradient descent."""
    return Row(
        what=f"{words}: lost by synthetic gradients after what are 100,000 of the paper's steps",
        cells=(by_bp, by_sg), measure=difference(at_step(by_bp, 100_000), at_step(by_sg, 100_000)), unit="points",
    )  # fmt: skip


def other_modules_rows(cell: str, modules: str) -> dict[str, Row]:
    """Rows for other modules in a model that is trained by plain gradient descent."""
    model = cell.partition("-sg-")[0]
    words, by_bp = f"{MODELS[model]}, plain gradient descent, {modules}", f"{model}-bp-sgd"
    rows, gap = {cell: accuracy_row(cell, f"{words}: synthetic gradients")}, cell.replace("-sg-", "-gap-")
    if by_bp in CELLS:
        rows[gap] = gap_row(by_bp, cell, f"{words}: lost by synthetic gradients")
    if model == "eight-layers":
        rows[f"{gap}-100000"] = later_gap(by_bp, cell, words)
    return rows


def sgd_rows(model: str) -> dict[str, Row]:
    """Rows for a model trained by plain gradient descent."""
    words = f"{MODELS[model]}, plain gradient descent"
    by_bp, by_sg = f"{model}-bp-sgd", f"{model}-sg-sgd"
    best_by_bp, best_by_sg = TABLE_1[model]
    cause = BY_DESCENT_OF_MEAN if model == "eight-layers" else None

    def early(cell: str, how: str, steps: int, claim: Claim | None) -> Row:
        return Row(
            what=f"{words}, {how}: after what are {steps:,} of the paper's steps", cells=(cell,),
            measure=at_step(cell, steps), unit="%", claim=claim,
        )  # fmt: skip

    rows = {
        f"{model}-bp-sgd": accuracy_row(by_bp, f"{words}: back-propagation", Near(value=best_by_bp, tolerance=1.0)),
        f"{model}-sg-sgd": accuracy_row(
            by_sg, f"{words}: synthetic gradients", Near(value=best_by_sg, tolerance=1.0), cause=cause
        ),
        f"{model}-gap-sgd": gap_row(
            by_bp, by_sg, f"{words}: lost by synthetic gradients",
            Near(value=round(best_by_bp - best_by_sg, 1), tolerance=0.5), cause=cause,
        ),
    }  # fmt: skip
    if model == "four-layers":
        rows[f"{model}-sg-sgd-50000"] = early(by_sg, "synthetic gradients", 50_000, AtLeast(value=90.0))
    else:
        rows[f"{model}-gap-sgd-100000"] = replace(
            later_gap(by_bp, by_sg, words), claim=Near(value=10.0, tolerance=5.0), note="The paper says about 10 %.",
            cause=TOO_MUCH,
        )  # fmt: skip
    return settled(rows)


PLAIN = Table(
    title="Table 1 and figure 3 with plain gradient descent",
    text="The paper does not name its optimizer. With plain gradient descent a step is as long as its learning rate, "
    "so 333 times the published 3e-5 in 1,500 steps go about as far as the paper's 500,000; mini-batches are of 256, "
    "and modules learn by Adam with 0.001: by gradient descent with this rate their losses overflow. Other modules are "
    "run besides, with one to three seeds: those that predict the gradient of a mini-batch's mean loss, and with the "
    "published 3e-5.",
    rows={
        **sgd_rows("four-layers"),
        **sgd_rows("eight-layers"),
        **settled(text_rows("-sgd", ", plain gradient descent")),
        **{
            name: row
            for cell, (modules, _) in OTHER_MODULES.items()
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
    text="Four containers with a layer each; each has 0.4 of a core and 1 GiB, so that they fit a host of two cores "
    "together. The paper compares 185 iterations/s with 166 of back-propagation on the same host *without* limits, "
    "which may use all cores; here such a process uses one. On the same devices back-propagation makes the shards wait "
    "for each other.",
    rows={
        **{f"rate-{cell}": rate_row(cell) for cell in RATES},
        "faster-than-whole": times_row(
            "sg", "whole", "Synthetic gradients on four devices over back-propagation on one without a cap",
            Near(value=1.114, tolerance=0.114),
            "The paper's 185 over 166.", CAP_AND_MODULE,
        ),
        "faster-than-whole-capped": times_row(
            "sg", "whole-capped", "Synthetic gradients on four devices over back-propagation on one of them"
        ),
        **{
            row: times_row(cell, baseline, f"Synthetic gradients over back-propagation {words}")
            for row, (cell, baseline, words) in FASTER.items()
        },
        "deployed-accuracy": accuracy_row(
            "sg-deployed", "Four layers in containers: accuracy after 3,000 steps", Near(value=97.7, tolerance=1.0),
            cause=TRAINING,
        ),
        "deployed-loss": gap_row(
            "sg-deployed", "four-layers-sg", "Its accuracy over that of the same training in simulation",
            note="Not in the paper: what it may cost that real devices are not in step.",
        ),
    },
)  # fmt: skip

HEADLINES = (
    Headline(
        claim="Synthetic gradients cost 0.7 points with four layers, 6.8 with eight and 14.9 with sixteen",
        rows=(
            "four-layers-gap-sgd",
            "eight-layers-gap-sgd",
            "four-layers-gap-of-mean-after-pool",
            "eight-layers-gap-of-mean",
            "vgg16-gap-of-mean",
            "four-layers-sg-of-mean-after-pool-slow-sgd",
            "eight-layers-sg-of-mean-slow-sgd",
            "vgg16-sg-of-mean-slow-sgd",
            "eight-layers-sg",
            "vgg16-sg",
            "eight-layers-greedy",
        ),
        chart="Eight layers as published",
        found="With Adam they cost some half a point at most, and by plain gradient descent 0.4 and 1.3 points with "
        "four and eight layers. Modules that predict the gradient of a mini-batch's mean loss, after pools alone, cost "
        "four layers 0.1 points, eight 3.3 and sixteen 8.9 in the first steps of the published training. By plain "
        "gradient descent, with such modules at the published learning rate, four layers have 97.7 %, eight 93.9 and "
        "sixteen 69.3, where the paper has 97.7, 92.4 and 84.5: the more layers, the wider the gap. Greedy learning, "
        "which came later, costs less than any.",
    ),
    Headline(
        claim="They learn more slowly than back-propagation, the deeper the slower",
        rows=("slower-four-layers", "slower-eight-layers", "depth-slows", "four-layers-sg-sgd-50000"),
        chart="Four layers as published",
        found="They are slower. In the paper 90 % takes some 50,000 steps, here with Adam 100 to 190: the paper's "
        "time scale is that of plain gradient descent.",
    ),
    Headline(
        claim="Four containers make 185 steps a second with synthetic gradients, one device by back-propagation 166",
        rows=(
            "faster-than-whole",
            "faster-than-whole-capped-0.7",
            "faster-of-cores",
            "faster-of-cores-without-modules",
            "faster",
            "rate-sg",
        ),
        found="With 0.4 of a core for each layer it is the other way round. With 0.7 each four devices have 0.7 of the "
        "rate of one of them, with a core each it would be 0.8, and 1.5 if modules cost nothing: the first layer's "
        "module, convolutions, works about as long as the layer, and its device decides the rate.",
    ),
)

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
- The optimizer is Adam, as in the work that the paper follows; pixels are scaled to [0, 1]. With it 90 % are reached
  in 100 to 190 steps, for which the paper's chart needs some 50,000. Two other readings are run besides: plain
  gradient descent, and modules that predict the gradient of a mini-batch's mean loss.
- An accuracy is the highest of the evaluations of a run.
""",
    window=1,
    cells=CELLS,
    tables=(TABLE, FIGURE, PLAIN, DEPLOYMENT, caps.TABLE),
    headlines=HEADLINES,
)
