"""The cells of Hardy et al. 2017, and the readings of its figure 3: what has to be run."""

from collections.abc import Callable

from edgebed.studies.papers.paper import Cell, Reading

from . import containers

UPDATES = 250_000
CRASH_PROBABILITY = 0.0004  # n / (2 I) with n = 200 devices and I = 250,000 updates
SHORT = 0.2
HALF = 0.5

METHODS = {
    "asgd": "ASGD",
    "comp-asgd-0.1": "Comp-ASGD, c = 0.1",
    "comp-asgd-0.01": "Comp-ASGD, c = 0.01",
    "adacomp-0.1": "AdaComp, c = 0.1",
    "adacomp-0.01": "AdaComp, c = 0.01",
}
VARIANTS = {
    "asgd": "asgd",
    "comp-asgd-0.1": "comp-asgd-1-in-10",
    "comp-asgd-0.01": "comp-asgd-1-in-100",
    "adacomp-0.1": "adacomp-1-in-10",
    "adacomp-0.01": "adacomp-1-in-100",
}
COMP_ASGD = ("comp-asgd-0.1", "comp-asgd-0.01")

PAUSES = ("exponential", "uniform")
NARROW_PAUSE = Reading(
    name="narrow pauses",
    text="each device pauses 0.5 to 1.5 s, so that no update is applied soon after its pull. This came to be the first "
    "reading after exponential pauses had shown another order than the paper's with the first seed. For it speaks that "
    "the paper's runs took half a second a push, so that a device's turn came after 100 seconds.",
    cells={},
)
PAUSE_TEXTS = {
    "exponential": "of a second on the mean. One update in 200 meets the model that it was computed on, and is applied "
    "with the full learning rate. At a fifth of the updates.",
    "uniform": "from nothing to two seconds, between the two. At a fifth of the updates.",
}
OTHER_PAUSES = tuple(
    Reading(name=f"{pause} pauses", text=text, cells={name: f"{name}-{pause}" for name in METHODS}, seeds=3)
    for pause, text in PAUSE_TEXTS.items()
)
SHORTER_STEPS = Reading(
    name="shorter steps",
    text="narrow pauses, and a learning rate of 0.026 for Comp-ASGD alone, of which the paper states none. It was "
    "chosen so that c = 0.1 comes near the paper's accuracy, which therefore shows nothing; c = 0.01 and the 97 % "
    "that are never reached then follow or not.",
    cells={name: f"{name}-shorter-steps" for name in COMP_ASGD},
    seeds=3,
)

PERCEPTRONS = (
    "60000-images",
    "60000-images-crashes",
    "60000-images-all-crash",
    "12000-images",
    "12000-images-crashes",
    "12000-images-all-crash",
    "6000-images-100-devices",
)
"""The variants of table II."""


def crashes(variant: str) -> Callable[[float], tuple[str, ...]]:
    """Overrides that make a crash likelier with fewer updates, so that half of the devices are gone in the end."""

    def sets(scale: float) -> tuple[str, ...]:
        return (f"variants.{variant}.faults.0.probability={min(1.0, CRASH_PROBABILITY / scale):.6g}",)

    return sets


def short(scenario: str, variant: str) -> Cell:
    """A cell of a fifth of the updates."""
    return Cell(scenario=scenario, variant=variant, scale=SHORT)


def perceptron(variant: str) -> Cell:
    """A cell of table II."""
    if variant.endswith("-crashes"):
        return Cell(scenario="table-2.yaml", variant=variant, sets=crashes(variant))
    return Cell(scenario="table-2.yaml", variant=variant)


SELECTIONS = {"random": "entries at random", "across": "the largest of the whole model"}
"""What else is sent in the place of the largest entries of each tensor, by the ending of a variant."""
OF_PERCEPTRON = ("asgd", "comp-asgd-0.01", "adacomp-0.01")
"""Methods that train the perceptron, too."""
STANDARDIZED = "-standardized"
SINGLE_CORE = {"single-core": 98.10, "single-core-1-in-100": 97.07}
"""Accuracies of a perceptron on one core: with whole gradients, and with one entry in a hundred."""

CELLS: dict[str, Cell] = {
    **{
        f"{variant}{ending}": Cell(scenario="section-3.yaml", variant=f"{variant}{ending}")
        for variant in SINGLE_CORE
        for ending in ("", STANDARDIZED)
    },
    **{name: Cell(scenario="figure-3-narrow.yaml", variant=VARIANTS[name]) for name in METHODS},
    **{
        f"{name}-shorter-steps": Cell(scenario="figure-3-narrow.yaml", variant=f"{VARIANTS[name]}-shorter-steps")
        for name in COMP_ASGD
    },
    **{
        f"adacomp-0.01-{which}": short(
            "figure-3-narrow.yaml", f"adacomp-1-in-100{'' if which == 'short' else f'-{which}'}"
        )
        for which in ("short", *SELECTIONS)
    },
    **{f"{name}-mlp": Cell(scenario="figure-3-narrow.yaml", variant=f"{VARIANTS[name]}-mlp") for name in OF_PERCEPTRON},
    "adacomp-0.01-float16": Cell(scenario="figure-3-narrow.yaml", variant="adacomp-1-in-100-float16"),
    **{f"{name}-exponential": short("figure-3.yaml", VARIANTS[name]) for name in METHODS},
    "adacomp-0.001-exponential": short("figure-3.yaml", "adacomp-1-in-1000"),
    "adacomp-0.0001-exponential": short("figure-3.yaml", "adacomp-1-in-10000"),
    **{f"{name}-uniform": short("figure-3-uniform.yaml", VARIANTS[name]) for name in METHODS},
    **{variant: perceptron(variant) for variant in PERCEPTRONS},
    **{
        f"{classes}-{images}": Cell(scenario="figure-4.yaml", variant=f"{classes}-{images}", scale=HALF)
        for images in (60_000, 12_000)
        for classes in ("one-class", "three-classes")
    },
    **{
        f"{classes}-{images}-0.001": short("figure-4.yaml", f"{classes}-{images}-1-in-1000")
        for images in (60_000, 12_000)
        for classes in ("one-class", "three-classes")
    },
    **containers.CELLS,
}
