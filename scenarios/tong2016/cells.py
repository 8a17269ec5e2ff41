"""The cells of Tong et al. 2016, and the readings of its figures 14 to 17: what has to be run."""

from dataclasses import replace

from edgebed.studies.papers.paper import Cell, Reading

from . import containers, direct

FILE = "figures-14-17.yaml"
EARLY_FILE = "figures-15-16.yaml"
SEEDS_BESIDE = 3
"""Number of seeds of what contradicts the report's words, or is one of several ways to read them."""

NET = {
    "bp": "Back-propagation",
    "bp-ten-times": "Back-propagation, learning rate 0.1",
    "bp-hundred-times": "Back-propagation, learning rate 1",
    "bp-thousand-times": "Back-propagation, learning rate 10",
    "bp-cross-entropy": "Back-propagation, cross-entropy",
    "bp-cross-entropy-ten-times": "Back-propagation, cross-entropy, learning rate 0.1",
    "bp-tuned": "Back-propagation, tuned",
    "sg": "Synthetic gradients",
    "sg-ten-times": "Synthetic gradients, learning rate 0.1",
    "sg-hundred-times": "Synthetic gradients, learning rate 1",
    "sg-cross-entropy": "Synthetic gradients, cross-entropy",
    "sg-apart": "Synthetic gradients, modules apart",
    "sg-tuned": "Synthetic gradients, tuned",
    "si": "Synthetic inputs and gradients",
    "si-ten-times": "Synthetic inputs and gradients, learning rate 0.1",
    "si-cross-entropy": "Synthetic inputs and gradients, cross-entropy",
    "si-blocked": "Synthetic inputs and gradients, layer 1 blocked",
    "si-blocked-ten-times": "Synthetic inputs and gradients, layer 1 blocked, learning rate 0.1",
    "si-blocked-cross-entropy": "Synthetic inputs and gradients, layer 1 blocked, cross-entropy",
    "si-slow": "Synthetic inputs and gradients, a slow last layer",
    "si-slow-by-batch": "Synthetic inputs and gradients, a slow last layer, matched by batch",
    "si-fixed-inputs": "Synthetic gradients, inputs by a random, fixed module",
    "si-fixed-inputs-ten-times": "Synthetic gradients, inputs by a random, fixed module, learning rate 0.1",
    "random-encoder": "The last layer alone, behind a random, fixed first one",
    "random-encoder-ten-times": "The last layer alone, behind a random, fixed first one, learning rate 0.1",
    "bp-rolled-back": "Back-propagation, rolled back",
    "sg-rolled-back": "Synthetic gradients, rolled back",
}
"""Cells of the report's length, in words."""
HALF = ("si-as-programmed", "si-hundred-times", "si-blocked-hundred-times", "si-blocked-as-programmed")
"""Cells of half of it: as many steps as figure 17 has of synthetic inputs."""
EARLY = {"bp-first-steps": "bp", "sg-first-steps": "sg", "sg-first-steps-ten-times": "sg-ten-times"}
"""Cells of the first 200 steps, and their variants."""


def timed(scenario: str, variant: str, steps: int, of_steps: int) -> Cell:
    """A cell of processes of this machine, evaluated in the end alone, so that evaluations take none of the time."""
    every = f"evaluation.every={steps} updates"
    return Cell(scenario=scenario, variant=variant, scale=steps / of_steps, runtime="process", sets=lambda _: (every,))


CELLS: dict[str, Cell] = {
    **{name: Cell(scenario=FILE, variant=name) for name in NET},
    **{
        name: Cell(scenario=FILE, variant=name, scale=0.5, sets=lambda _: ("evaluation.every=100 updates",))
        for name in HALF
    },
    **{name: Cell(scenario=EARLY_FILE, variant=variant) for name, variant in EARLY.items()},
    "si-timed": timed(FILE, "si", 2000, 10_000),
    **{f"bp-{watched}-timed": timed(FILE, f"bp-{watched}", 2000, 10_000) for watched in ("polled", "unpolled")},
    **direct.CELLS,
    **{f"cifar-{name}-timed": timed(direct.FILE, name, 100, 78_200) for name in direct.WHAT},
    **containers.CELLS,
}

PRINTED = Reading(
    name="as printed",
    text="0.01 with synthetic gradients and 0.1 by back-propagation in the first 200 steps (figures 15 and 16), as "
    "section 7.3 has them; one rate by both methods in figure 14, as section 7.2 says, here 0.01. The loss is the mean "
    "of a mini-batch.",
    cells={},
)
LONGER = Reading(
    name="longer steps",
    text="0.1 with synthetic gradients, 0.01 by back-propagation in figure 14. It contradicts both sections, and was "
    "tried after the printed rates had missed the report's curves.",
    cells={"sg": "sg-ten-times"},
)
ONE_RATE = Reading(
    name="one rate of 0.1",
    text="that of figure 15, by both methods in all figures.",
    cells={"sg": "sg-ten-times", "bp": "bp-ten-times"},
)
SUMMED = Reading(
    name="summed loss",
    text="the rates as printed, of a loss that is summed over the 100 images of a mini-batch, as in the authors' "
    "programs. The report does not say which.",
    cells={"sg": "sg-hundred-times", "bp": "bp-hundred-times", "bp-ten-times": "bp-thousand-times"},
    seeds=SEEDS_BESIDE,
)
CROSS_ENTROPY = Reading(
    name="cross-entropy",
    text="the rates as printed. The report names no loss; with a softmax this one is usual.",
    cells={"sg": "sg-cross-entropy", "bp": "bp-cross-entropy", "bp-ten-times": "bp-cross-entropy-ten-times"},
    seeds=SEEDS_BESIDE,
)
READINGS = (PRINTED, LONGER, ONE_RATE, SUMMED, CROSS_ENTROPY)
"""Readings of figures 14 to 16."""

WITH_INPUTS = ("sg", "si", "si-blocked")
INPUT_READINGS = (
    replace(
        PRINTED,
        text="0.01, which section 7.3 gives for synthetic gradients. The loss is the mean of a mini-batch.",
    ),
    Reading(
        name=LONGER.name,
        text="0.1. It contradicts that section, and was tried after the printed rate had missed the report's curves.",
        cells={name: f"{name}-ten-times" for name in WITH_INPUTS},
        seeds=SEEDS_BESIDE,
    ),
    Reading(
        name="slow input modules",
        text="0.1, and for the module that predicts inputs the 0.00001 of the authors' programs.",
        cells={"sg": "sg-ten-times", "si": "si-as-programmed", "si-blocked": "si-blocked-as-programmed"},
        seeds=SEEDS_BESIDE,
    ),
    replace(SUMMED, cells={name: f"{name}-hundred-times" for name in WITH_INPUTS}),
    replace(CROSS_ENTROPY, cells={name: f"{name}-cross-entropy" for name in WITH_INPUTS}),
)
"""Readings of figure 17."""
EARLY_READINGS = (
    replace(PRINTED, text="0.01 with synthetic gradients, 0.1 by back-propagation, as section 7.3 has them."),
    replace(ONE_RATE, text="that of figure 15, by both methods.", cells={"sg-first-steps": "sg-first-steps-ten-times"}),
)
"""Readings of how steadily accuracy rises."""
