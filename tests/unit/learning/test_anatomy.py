"""Operations of a layer, for one example."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from edgebed.learning.models.anatomy import operations


class Attention(nn.Module):
    """A sequence that attends to itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, width) as it comes."""
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Linear(16, 8), (16,)),
        (nn.Linear(16, 8), (5, 16)),
        (nn.Conv2d(4, 8, 3, groups=2), (4, 8, 8)),
        (nn.ConvTranspose2d(3, 4, 3), (3, 8, 8)),
        (nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()), (3, 8)),
    ],
    ids=lambda value: value.__class__.__name__ if isinstance(value, nn.Module) else None,
)
def test_products_are_counted_as_torch_counts_them(module, shape):
    """By its own counter, which loads more than it needs."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module.eval()(torch.zeros(1, *shape))

    assert operations(module, torch.zeros(2, *shape)) == counter.get_total_flops() > 0


def test_attention_is_counted_by_its_products():
    """Four projections, queries by keys, weights by values; where it runs in one fused kernel as well."""
    steps, width = 5, 16
    projections, pairs = 4 * 2 * steps * width * width, 2 * 2 * steps * steps * width

    assert operations(Attention(width, 4), torch.zeros(2, steps, width)) == projections + pairs
    assert operations(nn.TransformerEncoderLayer(width, 4, 32, batch_first=True), torch.zeros(2, steps, width)) == (
        projections + pairs + 2 * 2 * steps * width * 32
    )


def test_what_has_no_product_costs_one_operation_a_value():
    """An activation, a pool."""
    assert operations(nn.ReLU(), torch.zeros(2, 3, 4, 4)) == 48
    assert operations(nn.MaxPool2d(2), torch.zeros(2, 3, 4, 4)) == 12
