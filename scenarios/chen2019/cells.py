"""The cells of Chen et al. 2019, and the readings of its table 1: what has to be run."""

from edgebed.studies.papers.paper import Cell, Reading

from . import caps

UPDATES = 500_000
EARLY = 300
"""Steps within which accuracies of 90 % are reached."""
EARLY_EVERY = 10
"""Steps between two evaluations in the first `EARLY` steps: a few per cent of what 90 % takes, since a factor of two
must show."""
SGD_STEPS = 1500
"""Steps of plain gradient descent with a learning rate as much higher as there are fewer steps than the paper's."""
MODELS = {"four-layers": "Four layers", "eight-layers": "Eight layers", "vgg16": "VGG16"}
METHODS = ("bp", "sg")
DEPLOYED = "sg-deployed"


def trained(variant: str, updates: int) -> Cell:
    """A cell of table 1 with so many updates; the learning rate falls after the paper's shares of them."""

    def sets(scale: float) -> tuple[str, ...]:
        first, second = (round(share * UPDATES * scale) for share in (0.6, 0.8))
        return (f"variants.{variant}.method.optimizer.decay_at=[{first}, {second}]",)

    return Cell(
        scenario="table-1.yaml", variant=variant, scale=updates / UPDATES, sets=sets, has_own_schedule=True
    )  # fmt: skip


def early(variant: str) -> Cell:
    """The beginning of a cell of figure 3, before its learning rate falls, evaluated every 10 steps."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"evaluation.every={max(1, round(EARLY_EVERY / EARLY * UPDATES * scale))} updates",)

    return Cell(scenario="table-1.yaml", variant=variant, scale=EARLY / UPDATES, sets=sets)


def deployed(variant: str) -> Cell:
    """A cell of section 4.3."""
    return Cell(scenario="section-4-3.yaml", variant=variant, runtime="docker")


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
    "eight-layers-sg-slow-sgd": "modules at 3e-5",
    "eight-layers-sg-of-mean-sgd": "modules of the mean loss",
    "eight-layers-sg-of-mean-slow-sgd": "modules of the mean loss, at 3e-5",
}
"""Cells of plain gradient descent with other modules than those of an example's gradient that learn at 0.001."""
OF_MEAN_BY_DESCENT = {
    "four-layers": "four-layers-sg-of-mean-after-pool-slow-sgd",
    "eight-layers": "eight-layers-sg-of-mean-slow-sgd",
    "vgg16": "vgg16-sg-of-mean-slow-sgd",
}
FASTER_STEPS = {"four-layers": 3000, "eight-layers": 4000, "vgg16": 3000}
"""Steps of trainings with Adam, 0.001 and mini-batches of 128."""


def of_published(method: str, ending: str) -> dict[str, str]:
    """Cells of each model that a reading has in the place of the published ones of a method."""
    return {f"{model}-{method}-as-published": f"{model}-{method}{ending}" for model in MODELS}


READINGS = (
    Reading(
        name="as published",
        text="Adam with 3e-5, as the work does that the paper follows, and mini-batches of 256, in 2,000 of 500,000 "
        "steps; the rate falls after 60 and 80 % of them. Modules predict the gradient of an example's loss.",
        cells={},
    ),
    Reading(
        name="faster",
        text="Adam with 0.001 and mini-batches of 128, in 3,000 or 4,000 steps, by which models have learnt.",
        cells=of_published("bp", "") | of_published("sg", ""),
    ),
    Reading(
        name="mean loss",
        text="as published, with modules that predict the gradient of a mini-batch's mean loss.",
        cells=of_published("sg", "-of-mean"),
    ),
    Reading(
        name="mean loss after the pool",
        text="likewise, with four layers after the pool alone, where the paper's words have its modules.",
        cells=of_published("sg", "-of-mean") | {"four-layers-sg-as-published": "four-layers-sg-of-mean-after-pool"},
    ),
    Reading(
        name="plain gradient descent",
        text="333 times the published rate in a 333rd of the steps; modules by Adam with 0.001.",
        cells=of_published("bp", "-sgd") | of_published("sg", "-sgd"),
    ),
    Reading(
        name="plain gradient descent and mean loss",
        text="likewise, with modules of the mean loss after pools alone that learn at the published 3e-5.",
        cells=of_published("bp", "-sgd")
        | {f"{model}-sg-as-published": cell for model, cell in OF_MEAN_BY_DESCENT.items()},
    ),
)
CELLS: dict[str, Cell] = {
    **{
        f"{model}-{method}-as-published": trained(f"{model}-{method}-as-published", 2000)
        for model in MODELS
        for method in METHODS
    },
    **{
        f"{model}-{method}": trained(f"{model}-{method}", steps)
        for model, steps in FASTER_STEPS.items()
        for method in METHODS
    },
    **{f"{model}-greedy": trained(f"{model}-greedy", FASTER_STEPS[model]) for model in ("eight-layers", "vgg16")},
    "eight-layers-sg-everywhere": trained("eight-layers-sg-everywhere", 3000),
    **{
        f"{model}-sg-of-mean{ending}": trained(f"{model}-sg-of-mean{ending}", 2000)
        for model, ending in (("four-layers", ""), ("four-layers", "-after-pool"), ("eight-layers", ""), ("vgg16", ""))
    },
    **{f"{model}-{method}-sgd": trained(f"{model}-{method}-sgd", SGD_STEPS) for model in MODELS for method in METHODS},
    **{name: trained(name, SGD_STEPS) for name in (*OTHER_MODULES, *OF_MEAN_BY_DESCENT.values())},
    **{f"{model}-sg-early": early(f"{model}-sg-as-published") for model in ("four-layers", "eight-layers")},
    **{variant: deployed(variant) for variant in RATES},
    DEPLOYED: deployed("sg-accuracy"),
    **caps.CELLS,
}
