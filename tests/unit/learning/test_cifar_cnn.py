"""The network of Tong et al. 2016 for CIFAR-10, in both readings of its dropout."""

import pytest
import torch
from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.learning.models import registry as models
from edgebed.learning.models.layers import layers_of

SHAPE = (3, 32, 32)
NAMES = ("cifar-cnn", "cifar-cnn-keep")


@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_parameters_of_convolutions_that_keep_the_image_size(name: str) -> None:
    """896 + 9,248 + 18,496 + 36,928 + (64 * 8 * 8 + 1) * 512 + 5,130, in six layers."""
    layers = layers_of(name, models.build(name, SHAPE, 10))
    sizes = [sum(parameter.numel() for parameter in layer.parameters()) for layer in layers]

    assert sizes == [896, 9248, 18496, 36928, 2_097_664, 5130]
    assert sum(sizes) == 2_168_362


@pytest.mark.parametrize(("name", "dropped"), [(NAMES[0], [0.25, 0.25, 0.5]), (NAMES[1], [0.75, 0.5, 0.75])])
def test_the_readings_differ_in_what_is_dropped(name: str, dropped: list[float]) -> None:
    """After each pool and after the dense layer; and in nothing else."""
    model = models.build(name, SHAPE, 10)
    kinds = [type(module) for module in models.build("cifar-cnn", SHAPE, 10).modules()]

    assert [module.p for module in model.modules() if isinstance(module, nn.Dropout)] == dropped
    assert [type(module) for module in model.modules()] == kinds


def test_what_is_measured_drops_nothing() -> None:
    """With the same weights both give the same scores."""
    plain, keep = (models.build(name, SHAPE, 10).eval() for name in NAMES)
    keep.load_state_dict(plain.state_dict())
    images = torch.rand(2, *SHAPE)

    assert torch.equal(plain(images), keep(images))


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_images(name: str) -> None:
    """The message has the model's own name."""
    with pytest.raises(ScenarioError, match=f"model: '{name}' needs images"):
        models.build(name, (3072,), 10)
