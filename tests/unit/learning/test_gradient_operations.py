"""Operations of a gradient: counted for any model, the same with every library that torch may use."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tasks import one_array
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from edgebed.core.errors import Uncountable
from edgebed.core.plan import Part, Task
from edgebed.learning.models.anatomy import gradient_operations
from edgebed.learning.models.registry import build_for, layout

BATCH, INPUTS, HIDDEN, CLASSES = 10, 64, 64, 10


def task(model: str, shape: tuple[int, ...] = (1, 8, 8), batch_size: int = BATCH) -> Task:
    """A task with that model."""
    return Task(
        model=model, inputs=one_array(shape), outputs=CLASSES, layout=layout(model, one_array(shape), CLASSES),
        batch_size=batch_size, gradient_time_s=1.0,
    )  # fmt: skip


class Recurrent(nn.Module):
    """Rows of an image, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.end = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 1, 8, 8) -> (B, classes)."""
        return self.end(self.rows(images[:, 0])[0][:, -1])


class Scaled(nn.Module):
    """A model without any product of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(CLASSES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 1, 8, 8) -> (B, classes)."""
        return images.flatten(1)[:, :CLASSES] * self.scale


class Hidden(nn.Module):
    """A model that does not run while it is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(INPUTS, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 1, 8, 8) -> (B, classes)."""
        if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            raise RuntimeError("not so")
        return self.layer(images.flatten(1))


def test_they_are_those_of_the_formula() -> None:
    """Two an entry and example forward; as many for the gradient of the weights, and of the inputs that are layers'."""
    products = INPUTS * HIDDEN + HIDDEN * CLASSES
    assert gradient_operations(task("small")) == 2 * BATCH * (2 * products + HIDDEN * CLASSES)


def test_they_grow_with_the_batch() -> None:
    """As the examples do."""
    assert gradient_operations(task("cnn", batch_size=30)) == 3 * gradient_operations(task("cnn"))


def task_of_tokens(model: str, *sizes: tuple[str, int]) -> Task:
    """A task of next tokens with that model: 24 places, 11 tokens."""
    tokens = one_array((24,), "int64")
    return Task(
        model=model, inputs=tokens, targets=tokens, outputs=11, layout=layout(model, tokens, 11, (), sizes),
        batch_size=BATCH, gradient_time_s=1.0, sizes=sizes, objective=Part(name="next-token"),
    )  # fmt: skip


@pytest.mark.parametrize("model", ["transformer", "transformer-untied", "gru"])
def test_embeddings_attention_recurrence_and_norms_are_counted_as_torch_counts_them(model: str) -> None:
    """By its own counter, where attention is made of products; where it is fused, torch leaves it out on a CPU."""
    of = task_of_tokens(model, ("width", 16), ("layers", 2))
    network, tokens = build_for(of), torch.zeros(BATCH, 24, dtype=torch.int64)
    was = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        F.cross_entropy(network(tokens).flatten(0, 1), tokens.flatten()).backward()
    torch._C._set_mkldnn_enabled(was)

    assert gradient_operations(of) == counter.get_total_flops()


def test_a_transformers_operations_are_those_of_the_formula() -> None:
    """Six for each weight of a product and token, and for each pair of places twice the width, in every layer."""
    width, layers, places, vocabulary = 16, 3, 24, 11
    found = gradient_operations(task_of_tokens("transformer", ("width", width), ("layers", layers)))
    products = layers * 12 * width**2 + vocabulary * width

    assert found == 6 * BATCH * places * (products + layers * 2 * places * width)


@pytest.mark.parametrize("is_there", [True, False], ids=["onednn", "no onednn"])
def test_a_library_does_not_change_the_count(is_there: bool) -> None:
    """OneDNN has recurrent layers of its own, whose products torch does not show; where it is, it stays switched on."""
    was = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(is_there)
    try:
        found = gradient_operations(task(f"{__name__}:Recurrent"))
        assert torch._C._get_mkldnn_enabled() == is_there
    finally:
        torch._C._set_mkldnn_enabled(was)

    gates = 8 * 4 * 16 * (8 + 16)
    assert found > 2 * BATCH * 2 * gates


def test_counting_leaves_chance_as_it_was() -> None:
    """What torch draws afterwards does not depend on it."""
    torch.manual_seed(5)
    gradient_operations(task("cnn"))
    found = torch.rand(3)
    torch.manual_seed(5)

    assert torch.equal(found, torch.rand(3))


@pytest.mark.parametrize(
    ("model", "why"),
    [("Scaled", "it has no product or convolution that torch has a formula for"), ("Hidden", "not so")],
)
def test_what_cannot_be_counted_says_why(model: str, why: str) -> None:
    """No figure is made up."""
    with pytest.raises(Uncountable, match=why):
        gradient_operations(task(f"{__name__}:{model}"))
