"""Edgify.ai 2019, Distributed training on edge devices: communication compression, a blog post.

The post's claims, computed from encoded vectors (rates.py, totals.py) and rounded weights (weights.py), or measured in
runs of `scenarios/edgify2019/` (accuracy.py, containers.py, network.py). Its tables are lost; where a row has a value
from one of them, it follows from the post's words.
"""

from edgebed.studies.papers.paper import Paper

from . import accuracy, containers, network, rates, totals
from .cells import CELLS

PAPER = Paper(
    name="edgify2019",
    window=1,
    cells=CELLS,
    tables=(
        rates.SIZES,
        rates.F2I,
        rates.DGC,
        totals.TOTALS,
        accuracy.ACCURACY,
        accuracy.MODEL_SCALE,
        accuracy.CLIPPED,
        accuracy.HUNDRED_EPOCHS,
        accuracy.WORKERS_32,
        accuracy.RESNET18,
        accuracy.SCHEDULES,
        accuracy.WEIGHTS,
        containers.TABLE,
        network.TABLE,
    ),
)
