"""The cells of Chen et al. 2019, and the readings of its table 1 and figure 3: what has to be run."""

from edgebed.studies.papers.paper import Cell, Reading

from . import caps

UPDATES = 500_000
PRINTED_RATE = 3e-5
EARLY = 300
"""Steps within which accuracies of 90 % are reached."""
EARLY_EVERY = 10
"""Steps between two evaluations in the first `EARLY` steps: a few per cent of what 90 % takes, since a factor of two
must show."""
PRINTED_STEPS = 2000
"""Steps of trainings at the published rate."""
FASTER_STEPS = {"four-layers": 3000, "eight-layers": 4000, "vgg16": 3000}
"""Steps of trainings with Adam, 0.001 and mini-batches of 128."""
SGD_STEPS = 1500
"""Steps of plain gradient descent with a learning rate as much higher as there are fewer steps than the paper's."""
LONG_STEPS = 10 * SGD_STEPS
MODELS = {"four-layers": "Four layers", "eight-layers": "Eight layers", "vgg16": "VGG16"}
OF_FIGURE_3 = ("four-layers", "eight-layers")
METHODS = ("bp", "sg")
BP, SG = "bp-as-published", "sg-as-published"
AFTER_POOL = "four-layers-sg-after-pool"
PRINTED = {model: f"{model}-{SG}" for model in MODELS} | {"four-layers": AFTER_POOL}
"""Cells with synthetic gradients as the paper is read first, by model."""
EARLY_OF = {"four-layers": f"{AFTER_POOL}-early", "eight-layers": "eight-layers-sg-early"}
"""Their beginnings, evaluated more often, for figure 3."""
DEPLOYED = "sg-deployed"
RATES = {
    "sg": "Synthetic gradients on four devices",
    "bp": "Back-propagation on the same devices",
    "whole": "Back-propagation on one device without a cap",
    "whole-capped": "Back-propagation on one device with the cap of one of the four",
}
OTHER_RATES = {
    "bp-4-parts": "Back-propagation, four micro-batches",
    "sg-store": "Synthetic gradients through the store",
    "bp-store": "Back-propagation through the store",
    "sg-20mbit": "Synthetic gradients, links of 20 mbit",
    "bp-20mbit": "Back-propagation, links of 20 mbit",
    "sg-store-20mbit": "Synthetic gradients through the store, links of 20 mbit",
    "bp-store-20mbit": "Back-propagation through the store, links of 20 mbit",
    "sg-20mbit-int8": "Synthetic gradients, links of 20 mbit, int8",
    "bp-20mbit-int8": "Back-propagation, links of 20 mbit, int8",
}
MODULES_BY_DESCENT = {
    "eight-layers-sg-slow-sgd": "modules at 3e-5",
    "eight-layers-sg-of-mean-sgd": "modules of the mean loss, at 0.001",
}
"""Cells of eight layers by plain gradient descent with one thing of their modules switched."""
OF_MEAN_EVERYWHERE = "four-layers-sg-of-mean"
OF_MEAN = {model: f"{model}-sg-of-mean" for model in MODELS} | {"four-layers": "four-layers-sg-of-mean-after-pool"}
OF_MEAN_BY_DESCENT = {
    "four-layers": "four-layers-sg-of-mean-after-pool-slow-sgd",
    "eight-layers": "eight-layers-sg-of-mean-slow-sgd",
    "vgg16": "vgg16-sg-of-mean-slow-sgd",
}


def trained(variant: str, updates: int) -> Cell:
    """A cell of table 1 with so many updates; the learning rate falls after the paper's shares of them."""

    def sets(scale: float) -> tuple[str, ...]:
        first, second = (round(share * UPDATES * scale) for share in (0.6, 0.8))
        return (f"variants.{variant}.method.optimizer.decay_at=[{first}, {second}]",)

    return Cell(scenario="table-1.yaml", variant=variant, scale=updates / UPDATES, sets=sets, has_own_schedule=True)


def early(variant: str) -> Cell:
    """The beginning of a cell of figure 3, before its learning rate falls, evaluated every 10 steps."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"evaluation.every={max(1, round(EARLY_EVERY / EARLY * UPDATES * scale))} updates",)

    return Cell(scenario="table-1.yaml", variant=variant, scale=EARLY / UPDATES, sets=sets)


def deployed(variant: str) -> Cell:
    """A cell of section 4.3."""
    return Cell(scenario="section-4-3.yaml", variant=variant, runtime="docker")


def by_bp(ending: str) -> dict[str, str]:
    """Cells of a reading in the place of the published ones by back-propagation."""
    return {f"{model}-{BP}": f"{model}-bp{ending}" for model in MODELS}


def by_sg(cells: dict[str, str]) -> dict[str, str]:
    """Cells of a reading, by model, in the place of the published ones with synthetic gradients."""
    published = {PRINTED[model]: cell for model, cell in cells.items()}
    return published | {EARLY_OF[model]: cell for model, cell in cells.items() if model in OF_FIGURE_3}


READINGS = (
    Reading(
        name="as published",
        text="3e-5 and mini-batches of 256, as printed; Adam, a tenth of the rate from 60 % of the steps and a "
        "hundredth from 80 %, as in Jaderberg et al. 2017, which the paper follows. 2,000 steps in the place of "
        "500,000. Modules are taught the gradient of an example's loss, and lie after each pool: four layers have one. "
        "That came to be the first reading after modules between all layers had been run, since the paper's words are "
        "of pools.",
        cells={},
    ),
    Reading(
        name="between all layers",
        text="four layers have a module between all layers, as on the devices of section 4.3, if the paper's words on "
        "pools are of VGG16 alone.",
        cells={AFTER_POOL: f"four-layers-{SG}", EARLY_OF["four-layers"]: "four-layers-sg-early"},
    ),
    Reading(
        name="rate of 0.001",
        text="by Adam, too, with mini-batches of 128, in 3,000 steps, with eight layers in 4,000: so short a training "
        "comes further with it.",
        cells=by_bp("") | by_sg({model: f"{model}-sg" for model in MODELS}),
    ),
    Reading(
        name="mean loss",
        text="modules are taught the gradient of a mini-batch's mean loss, 256 times smaller, as in one implementation "
        "with the published schedule (github.com/nitarshan/decoupled-neural-interfaces). The paper does not say which.",
        cells=by_sg(OF_MEAN),
    ),
    Reading(
        name="mean loss between all layers",
        text="likewise, and four layers have a module between all layers.",
        cells=by_sg(OF_MEAN | {"four-layers": OF_MEAN_EVERYWHERE}),
    ),
    Reading(
        name="plain gradient descent",
        text="the paper names no optimizer. 1,500 steps with 0.01 instead of 500,000 with 3e-5, a 333rd of the steps "
        "at 333 times the rate: it is no training of the paper's length, and only as far as steps add up does it come "
        "as far. Modules learn by Adam, with 0.001.",
        cells=by_bp("-sgd") | by_sg({model: f"{model}-sg-sgd" for model in MODELS}),
    ),
    Reading(
        name="plain gradient descent and mean loss",
        text="likewise, and modules, after pools alone, are taught the gradient of the mean loss, by Adam with "
        "3e-5: at the printed rate, in so few steps.",
        cells=by_bp("-sgd") | by_sg(OF_MEAN_BY_DESCENT),
    ),
)

CELLS: dict[str, Cell] = {
    **{
        f"{model}-{method}": trained(f"{model}-{method}", PRINTED_STEPS) for model in MODELS for method in (BP, SG)
    },
    **{f"{model}-sg-early": early(f"{model}-{SG}") for model in OF_FIGURE_3},
    AFTER_POOL: trained(AFTER_POOL, PRINTED_STEPS),
    f"{AFTER_POOL}-early": early(AFTER_POOL),
    **{
        f"{model}-{method}": trained(f"{model}-{method}", steps)
        for model, steps in FASTER_STEPS.items()
        for method in METHODS
    },
    **{name: trained(name, PRINTED_STEPS) for name in (*OF_MEAN.values(), OF_MEAN_EVERYWHERE)},
    **{f"{model}-{method}-sgd": trained(f"{model}-{method}-sgd", SGD_STEPS) for model in MODELS for method in METHODS},
    **{name: trained(name, SGD_STEPS) for name in (*OF_MEAN_BY_DESCENT.values(), *MODULES_BY_DESCENT)},
    "four-layers-bp-sgd-long": trained("four-layers-bp-sgd-long", LONG_STEPS),
    "eight-layers-sg-everywhere": trained("eight-layers-sg-everywhere", 3000),
    **{f"{model}-greedy": trained(f"{model}-greedy", FASTER_STEPS[model]) for model in ("eight-layers", "vgg16")},
    **{variant: deployed(variant) for variant in (*RATES, *OTHER_RATES)},
    DEPLOYED: deployed("sg-accuracy"),
    **caps.CELLS,
    **caps.OF_CORES,
}  # fmt: skip
