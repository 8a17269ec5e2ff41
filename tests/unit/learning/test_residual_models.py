"""Residual networks have the published numbers of parameters, and shapes that fit."""

import pytest
import torch
from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.learning.models import registry as models


def counts(name, classes, input_shape=(3, 224, 224)):
    """Parameters of convolutions, of batch normalisation and of dense layers."""
    model = models.build(name, input_shape, classes)
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
    return tuple(
        sum(p.numel() for module in model.modules() if isinstance(module, kind) for p in module.parameters())
        for kind in kinds
    )


@pytest.mark.parametrize(
    ("name", "classes", "published"),
    [
        ("resnet18-imagenet", 10, (11_166_912, 9_600, 5_130)),
        ("resnet18-imagenet", 1000, (11_166_912, 9_600, 513_000)),
        ("resnet50-imagenet", 10, (23_454_912, 53_120, 20_490)),
        ("resnet50-imagenet", 1000, (23_454_912, 53_120, 2_049_000)),
        ("resnet18", 10, (11_166_912 - 7_680, 9_600, 5_130)),
        ("resnet50", 10, (23_454_912 - 7_680, 53_120, 20_490)),
    ],
)
def test_parameters_are_those_of_the_published_networks(name, classes, published):
    """11,689,512 and 25,557,032 in all with 1000 classes; a small stem has 7,680 fewer."""
    assert counts(name, classes) == published


def test_the_cifar_networks_have_the_published_size():
    """He et al., table 6: 0.27 million with 20 layers; 8 and 20 layers with weights."""
    convolutions, normalised, dense = counts("resnet20", 10, (3, 32, 32))

    assert round((convolutions + normalised + dense) / 1e6, 2) == 0.27
    for name, layers in (("resnet8", 8), ("resnet20", 20)):
        model = models.build(name, (3, 32, 32), 10)
        assert sum(isinstance(module, (nn.Conv2d, nn.Linear)) for module in model.modules()) == layers


@pytest.mark.parametrize(
    "name", ["resnet8", "resnet20", "resnet18", "resnet18-imagenet", "resnet50", "resnet50-imagenet"]
)
@pytest.mark.parametrize("input_shape", [(3, 32, 32), (1, 28, 28)])
def test_scores_come_out(name, input_shape):
    """One for each class, of a narrow one; every parameter has a gradient."""
    model = models.build(name, input_shape, 7, (), (("width", 4),))
    scores = model(torch.zeros(2, *input_shape))
    scores.sum().backward()

    assert scores.shape == (2, 7)
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_shortcut_without_parameters_keeps_what_it_can():
    """Every second pixel, and zeros in the new channels."""
    from edgebed.learning.models.residual import Thinned

    x = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4)
    thinned = Thinned(2, 2)(x)

    assert thinned.shape == (2, 5, 2, 2)
    assert torch.equal(thinned[:, :3], x[:, :, ::2, ::2])
    assert not thinned[:, 3:].any()


def test_images_are_asked_for():
    """Vectors are none."""
    with pytest.raises(ScenarioError, match="'resnet8' needs images"):
        models.build("resnet8", (10,), 3)
