"""The cells of Tao, Li 2018, and the readings of its tables: which of its variants a method is by each of them."""

from edgebed.studies.papers.paper import Cell, Reading

from . import containers

UPDATES = 800_000
"""Updates of four nodes in 200,000 iterations."""
SCALE = 0.02
"""Share of the updates: 4,000 iterations in the place of 200,000."""
ESGD = {
    "esgd-25": "eSGD, 25 % dropped",
    "esgd-50": "eSGD, 50 % dropped",
    "esgd-75": "eSGD, 75 % dropped",
    "esgd-87": "eSGD, 87.5 % dropped",
    "esgd-50-of-32": "eSGD, 50 % dropped, mini-batches of 32",
    "esgd-50-of-64": "eSGD, 50 % dropped, mini-batches of 64, three quarters of the iterations",
    "esgd-50-short": "eSGD, 50 % dropped, half of the iterations",
    "esgd-75-of-32": "eSGD, 75 % dropped, mini-batches of 32",
    "esgd-75-of-64": "eSGD, 75 % dropped, mini-batches of 64, three quarters of the iterations",
    "esgd-75-short": "eSGD, 75 % dropped, half of the iterations",
}
OTHERS = {
    "std": "Standard SGD",
    "threshold-tuned": "thresholdSGD, tuned to drop half",
    "threshold": "thresholdSGD, a threshold of 0.001",
    "threshold-larger": "thresholdSGD, a threshold of 0.01",
    "threshold-50-times": "thresholdSGD, a threshold of 0.05",
    "threshold-70-times": "thresholdSGD, a threshold of 0.07",
    "threshold-100-times": "thresholdSGD, a threshold of 0.1",
    "top-k-50": "Top-k with memory, 50 % dropped",
}
WHAT = OTHERS | ESGD
"""Methods in words."""
BY_UPDATES = ("esgd-50-of-32", "esgd-50-of-64", "esgd-75-of-32", "esgd-75-of-64")
"""Methods with smaller mini-batches that are run with a learning rate by updates, too."""
SIGNED = {name: f"{name}-signed" for name in ESGD}
PRINTED = {name: name for name in OTHERS} | SIGNED
"""Cells by the first reading."""
READINGS = (
    Reading(
        name="as printed",
        text="a residual is sent where it is above the mean of the gradient's signed values, the learning rate is "
        "0.1 / (2 e), and e counts epochs.",
        cells={},
    ),
    Reading(
        name="magnitudes",
        text="a residual is sent where it is above the mean of the gradient's magnitudes.",
        cells={SIGNED[name]: name for name in ESGD},
        seeds=3,
    ),
    Reading(
        name="constant rate",
        text="the printed threshold, and a learning rate that stays 0.1.",
        cells={SIGNED[name]: f"{SIGNED[name]}-tuned" for name in ESGD}
        | {"std": "std-tuned", "threshold-tuned": "threshold-tuned-tuned"},
        seeds=3,
    ),
    Reading(
        name="rate by updates",
        text="the printed threshold, and a learning rate that smaller mini-batches have after as many updates as those "
        "of 128, within 12 %.",
        cells={SIGNED[name]: f"{name}-by-updates" for name in BY_UPDATES},
        seeds=3,
    ),
    Reading(
        name="to the letter",
        text="as printed, and algorithm 1 before the text: after the loss has fallen what was sent before is sent "
        "again, values and all, and coordinates are drawn of the gradient of the step before.",
        cells={SIGNED[name]: f"{name}-letter" for name in ESGD},
        seeds=3,
    ),
)
TUNED = {
    "esgd-50-tuned": "eSGD, 50 % dropped, magnitudes, a learning rate that stays",
    "esgd-87-tuned": "eSGD, 87.5 % dropped, magnitudes, a learning rate that stays",
}
"""Methods with two switches at a time, in words."""
VARIANTS = {*TUNED, *PRINTED.values(), *(cell for reading in READINGS for cell in reading.cells.values())}
CELLS = {name: Cell(scenario="tables.yaml", variant=name, scale=SCALE) for name in sorted(VARIANTS)} | containers.CELLS
