"""CIFAR-10 whose test images are training images, so that an evaluation gives the accuracy and loss of training."""

from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.registry import load_data

EVALUATED = 10_000
"""Number of training images that a model is evaluated on: as many as there are test images."""


def cifar10() -> DataSet:
    """All 50,000 images to train on, and the first of them to evaluate on; ScenarioError where they are not there."""
    data = load_data("cifar10", seed=0)
    return data.replaced(test=data.train.take(slice(0, EVALUATED)))
