"""Models of tokens: of T whole numbers each makes, at each place, scores for what follows there.

`transformer`          a decoder of L layers of width W with H heads: learned positions, layer normalisation before
                       attention and before four times as wide a dense layer with GELU (Radford et al. 2019, Language
                       models are unsupervised multitask learners), without biases; its last layer is the embedding
                       once more (Press, Wolf 2017, Using the output embedding to improve language models, EACL).
                       (V + T + 1) W + L (12 W^2 + 2 W) parameters.
`transformer-untied`   the same with a last layer of its own, V W parameters more, so that its layers may lie on
                       several devices.
`gru`                  an embedding, L layers of gated recurrent units (Cho et al. 2014, Learning phrase representations
                       using RNN encoder-decoder for statistical machine translation, EMNLP), and a dense layer;
                       V W + L (6 W^2 + 6 W) + V (W + 1) parameters.

Each is a `torch.nn.Sequential` of L + 2 layers. Inputs and targets have the same vocabulary.

Shapes: B examples, T places, V tokens, width W, H heads; an input is (T,), an output (T, V).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by
from torch import Tensor, nn

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm

WIDTH, LAYERS, HEADS = 128, 4, 4
GRU_LAYERS = 1
DEVIATION = 0.02
"""Standard deviation of a transformer's initial weights; smaller by the root of 2 L where a layer adds to its input."""


class Embedding(nn.Module):
    """Tokens and their places as vectors."""

    def __init__(self, vocabulary: int, places: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(DEVIATION * torch.randn(vocabulary, width))
        self.places = nn.Parameter(DEVIATION * torch.randn(places, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, T, W)."""
        return F.embedding(tokens, self.weight) + self.places[: tokens.shape[1]]


class Attention(nn.Module):
    """Each place attends to itself and to those before it."""

    def __init__(self, width: int, heads: int, deviation: float) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.output = _dense(width, 3 * width), _dense(width, width, deviation)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, W) as it comes."""
        batch, places, width = x.shape
        split = self.inputs(x).view(batch, places, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        output: Tensor = self.output(attended.transpose(1, 2).reshape(batch, places, width))
        return output


class Block(nn.Module):
    """A layer of the transformer: attention, then two dense layers, each added to what it is given."""

    def __init__(self, width: int, heads: int, deviation: float) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width, bias=False), Attention(width, heads, deviation))
        self.dense = nn.Sequential(
            nn.LayerNorm(width, bias=False), _dense(width, 4 * width), nn.GELU(), _dense(4 * width, width, deviation)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, W) as it comes."""
        x = x + self.attention(x)
        output: Tensor = x + self.dense(x)
        return output


class Recurrent(nn.GRU):
    """A layer of gated recurrent units, without its last state."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """(B, T, W) as it comes."""
        outputs: Tensor = super().forward(x)[0]
        return outputs


def transformer(
    input_shape: tuple[int, ...], outputs: int, width: int = WIDTH, layers: int = LAYERS, heads: int = HEADS
) -> nn.Sequential:
    """Embedding, layers, and the embedding once more."""
    model = transformer_untied(input_shape, outputs, width, layers, heads)
    model.get_submodule(f"{layers + 1}.1").weight = model[0].weight
    return model


def transformer_untied(
    input_shape: tuple[int, ...], outputs: int, width: int = WIDTH, layers: int = LAYERS, heads: int = HEADS
) -> nn.Sequential:
    """Embedding, layers, and scores. ScenarioError where the heads do not share the width equally."""
    if width % heads:
        raise ScenarioError(f"model: a width of {width} cannot be shared by {heads} heads; choose a multiple of them.")
    added = DEVIATION / (2 * layers) ** 0.5
    return nn.Sequential(
        Embedding(outputs, input_shape[0], width),
        *(Block(width, heads, added) for _ in range(layers)),
        nn.Sequential(nn.LayerNorm(width, bias=False), _dense(width, outputs)),
    )


def gru(
    input_shape: tuple[int, ...],
    outputs: int,
    width: int = WIDTH,
    layers: int = GRU_LAYERS,
) -> nn.Sequential:
    """Embedding, recurrent layers, and scores."""
    return nn.Sequential(
        nn.Embedding(outputs, width), *(Recurrent(width) for _ in range(layers)), nn.Linear(width, outputs)
    )


def check_tokens(name: str, inputs: tuple[ArrayForm, ...]) -> None:
    """Raise ScenarioError unless inputs are one array of tokens."""
    for form in inputs:
        if form.dtype != "int64" or len(form.shape) != 1:
            hint = "; whole numbers of 8 bits are pixels: give tokens as int64" if form.dtype == "uint8" else ""
            raise ScenarioError(
                f"model: '{name}' needs tokens, whole numbers of shape (places,), not {form.dtype} of shape "
                f"{form.shape}{hint}."
            )


def _dense(before: int, after: int, deviation: float = DEVIATION) -> nn.Linear:
    layer = nn.Linear(before, after, bias=False)
    nn.init.normal_(layer.weight, std=deviation)
    return layer


TOKEN_MODELS: dict[str, Callable[..., nn.Sequential]] = {
    "transformer": transformer,
    "transformer-untied": transformer_untied,
    "gru": gru,
}
UNTIED = {"transformer": "transformer-untied"}
"""For a model whose layers share weights: the one whose layers do not."""
