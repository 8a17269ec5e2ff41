"""Methods and models that scenarios are drawn with, and roughly what of a model's bytes a method sends."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]


class DrawnMethod(NamedTuple):
    """A method that may be drawn, and its rough traffic as shares of the model's bytes."""

    settings: Settings
    push: float
    pull: float = 1.0
    in_rounds: bool = False


METHODS: Mapping[str, DrawnMethod] = {
    "asgd": DrawnMethod({"method": "asgd"}, 1.0),
    "float16": DrawnMethod({"method": {"preset": "asgd", "compression": {"values": "float16"}}}, 0.5),
    "comp-asgd": DrawnMethod(
        {"method": {"preset": "comp-asgd", "compression": {"fraction": 0.05}}, "pull": "changed-since"}, 0.07, 0.3
    ),
    "adacomp": DrawnMethod(
        {"method": {"preset": "adacomp", "compression": {"fraction": 0.1}}, "pull": "changed-since"}, 0.12, 0.4
    ),
    "ssp": DrawnMethod({"method": {"preset": "ssp", "aggregation": {"bound": 2}}}, 1.0),
    "softsync": DrawnMethod({"method": {"preset": "softsync", "aggregation": {"count": 3}}}, 1.0),
    "fedbuff": DrawnMethod(
        {"method": {"preset": "fedbuff", "aggregation": {"count": 3}, "local_work": {"steps": 4}}}, 1.0
    ),
    "sync-sgd": DrawnMethod({"method": "sync-sgd"}, 1.0, in_rounds=True),
    "top-k": DrawnMethod(
        {
            "method": {
                "preset": "sync-sgd",
                "compression": {"name": "top-k", "fraction": 0.05, "residual": True},
            }
        },
        0.07,
        in_rounds=True,
    ),
    "int8": DrawnMethod({"method": {"preset": "sync-sgd", "compression": {"name": "int8"}}}, 0.25, in_rounds=True),
    "fedavg": DrawnMethod({"method": {"preset": "fedavg", "local_work": {"steps": 4}}}, 1.0, in_rounds=True),
}
"""Methods that are drawn, by the name of their variant."""
MODEL_BYTES = {"small": 19_240, "mlp": 68_904, "cnn": 109_480}
"""Bytes of the models on the digits that have one size."""
PIXELS_POOLED = 16
"""Pixels of a digit after the pool of `four-layer`, for each of its filters."""
DENSE = 256
"""Width of the dense layers of `four-layer`."""
CLASSES = 10


def model_bytes(task: Settings) -> int | None:
    """Bytes of a task's model on the digits; None where they are not known here."""
    if task["data"] != "digits":
        return None
    if task["model"] == "four-layer" and {"width", "kernel"} <= task.keys():
        return four_layer_bytes(int(task["width"]), int(task["kernel"]))
    return MODEL_BYTES.get(task["model"])


def four_layer_bytes(width: int, kernel: int) -> int:
    """Bytes of `four-layer` on the digits: one convolution of `width` filters, two dense layers and the scores.

    Each of the first three has a batch normalisation, of two parameters and two buffers for each of its outputs.
    """
    convolution = (kernel**2 + 1) * width + 4 * width
    dense = sum((inputs + 1) * DENSE + 4 * DENSE for inputs in (PIXELS_POOLED * width, DENSE))
    return 4 * (convolution + dense + (DENSE + 1) * CLASSES)
