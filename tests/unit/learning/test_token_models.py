"""Models of tokens: their sizes, what a place sees, and what is refused."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from tasks import one_array
from token_data import PLACES, VOCABULARY, walk
from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Part, Task
from edgebed.learning import weights
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.models import registry as models
from edgebed.learning.models.anatomy import gradient_operations
from edgebed.learning.models.token_models import TOKEN_MODELS
from edgebed.learning.task_trial import try_task
from edgebed.scenario.load import load_scenario

SMALL = {
    "transformer": {"width": 16, "layers": 2, "heads": 2},
    "transformer-untied": {"width": 16, "layers": 2, "heads": 2},
    "gru": {"width": 16, "layers": 2},
}
DOCUMENT = Path(__file__).parents[3] / "docs/models.md"


def task_of(name: str, places: int = PLACES, vocabulary: int = VOCABULARY, **sizes: int) -> Task:
    """A task of tokens with that model."""
    inputs, chosen = one_array((places,), "int64"), tuple((sizes or SMALL[name]).items())
    return Task(
        model=name, inputs=inputs, targets=inputs, outputs=vocabulary, batch_size=4, gradient_time_s=1.0,
        layout=models.layout(name, inputs, vocabulary, (), chosen), sizes=chosen, objective=Part(name="next-token"),
    )  # fmt: skip


def parameters(task: Task) -> int:
    """Number of all parameters."""
    return sum(each.size for each in task.layout)


def built(name: str) -> nn.Module:
    """A small one, always the same."""
    torch.manual_seed(1)
    return models.build_for(task_of(name)).eval()


def rows() -> list[tuple[str, dict[str, Any], int, int, int, int]]:
    """What the document says: model, sizes, places, vocabulary, parameters, and millions of operations."""
    row = r"(?m)^\| `([a-z-]+)` \| (\d+) \| (\d+) \| (\d+|–) \| (\d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|"
    found = re.findall(row, DOCUMENT.read_text())
    return [
        (
            name,
            {"width": int(width), "layers": int(layers)} | ({} if heads == "–" else {"heads": int(heads)}),
            int(places),
            *(int(each.replace(",", "")) for each in (vocabulary, count, mflop)),
        )
        for name, width, layers, heads, places, vocabulary, count, mflop in found
    ]


@pytest.mark.parametrize(("name", "sizes", "places", "vocabulary", "count"), [row[:-1] for row in rows()])
def test_sizes_are_those_of_the_document(name, sizes, places, vocabulary, count):
    """Parameters of each row, and those of the formula."""
    width, layers = sizes["width"], sizes["layers"]
    dense = vocabulary * width
    formula = {
        "transformer": dense + (places + 1) * width + layers * (12 * width**2 + 2 * width),
        "transformer-untied": 2 * dense + (places + 1) * width + layers * (12 * width**2 + 2 * width),
        "gru": dense + layers * (6 * width**2 + 6 * width) + dense + vocabulary,
    }
    assert parameters(task_of(name, places, vocabulary, **sizes)) == count == formula[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes", "places", "vocabulary", "mflop"), [(*row[:-2], row[-1]) for row in rows()])
def test_operations_are_those_of_the_document(name, sizes, places, vocabulary, mflop):
    """Of one example's gradient."""
    task = replace(task_of(name, places, vocabulary, **sizes), batch_size=1)

    assert round(gradient_operations(task) / 10**6) == mflop


def test_the_document_has_ten_sizes():
    """From a tenth of a million parameters to ten."""
    counts = [row[-2] for row in rows()]

    assert len(counts) >= 10
    assert min(counts) == pytest.approx(10**5, rel=0.1)
    assert max(counts) == pytest.approx(10**7, rel=0.1)


@pytest.mark.parametrize("name", TOKEN_MODELS)
def test_a_place_sees_those_before_it_and_itself(name):
    """Whatever follows changes nothing; the token of the place itself, and one before it, do."""
    model, tokens = built(name), torch.arange(PLACES)[None] % VOCABULARY
    at = PLACES // 2

    def scores(place: int) -> torch.Tensor:
        changed = tokens.clone()
        changed[0, place] = (changed[0, place] + 5) % VOCABULARY
        with torch.no_grad():
            return model(changed)[0, : at + 1]

    with torch.no_grad():
        before = model(tokens)[0, : at + 1]
    assert torch.equal(scores(at + 1), before)
    assert not torch.allclose(scores(at)[-1], before[-1])
    assert not torch.allclose(scores(at - 3)[-1], before[-1])


def test_a_place_is_known_to_a_transformer():
    """The same token twice: the second has other scores than the first."""
    with torch.no_grad():
        scores = built("transformer")(torch.zeros(1, PLACES, dtype=torch.int64))[0]
    assert not torch.allclose(scores[0], scores[1], atol=1e-4)


def test_the_embedding_is_the_last_layer_once_more():
    """One tensor in two places, whose gradient is that of both; the untied model has two."""
    tied, untied = built("transformer"), built("transformer-untied")
    shared = [each for each in weights.trained(tied) if len(each.places) == 2]
    fuller = task_of("transformer-untied")

    assert [each.name for each in shared] == ["0.weight"]
    assert all(len(each.places) == 1 for each in weights.trained(untied))
    assert parameters(fuller) - parameters(task_of("transformer")) == VOCABULARY * SMALL["transformer"]["width"]


def test_layers_of_recurrence_are_torchs_own_one_after_the_other():
    """The same scores as of one module with all layers."""
    model = built("gru")
    embedding, first, second, last = model
    together = nn.GRU(16, 16, 2, batch_first=True)
    together.load_state_dict(
        {
            f"{key[:-1]}{k}": value
            for k, layer in enumerate((first, second))
            for key, value in layer.state_dict().items()
        }
    )
    tokens = torch.arange(2 * PLACES).view(2, PLACES) % VOCABULARY
    with torch.no_grad():
        torch.testing.assert_close(model(tokens), last(together(embedding(tokens))[0]))


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        ((PLACES,), "float32", r"needs tokens, whole numbers of shape \(places,\), not float32"),
        ((PLACES,), "uint8", "whole numbers of 8 bits are pixels: give tokens as int64"),
        ((1, 8, 8), "int64", r"not int64 of shape \(1, 8, 8\)"),
    ],
)
@pytest.mark.parametrize("name", TOKEN_MODELS)
def test_what_is_no_text_of_tokens_is_refused(name, shape, dtype, says):
    """Where the model is looked at first."""
    with pytest.raises(ScenarioError, match=says):
        models.layout(name, one_array(shape, dtype), VOCABULARY)


@pytest.mark.parametrize(
    ("name", "sizes", "says"),
    [
        ("transformer", {"width": 30, "heads": 4}, "a width of 30 cannot be shared by 4 heads"),
        ("gru", {"heads": 2}, "'gru' has no choice of heads; leave `heads` out"),
        ("transformer", {"kernel": 3}, "'transformer' has no choice of kernel; leave `kernel` out"),
    ],
)
def test_sizes_that_a_model_cannot_have_are_refused(name, sizes, says):
    """With what to do."""
    with pytest.raises(ScenarioError, match=says):
        task_of(name, **sizes)


@pytest.mark.parametrize(("part", "named"), [("train", "training"), ("test", "test")])
def test_a_token_outside_of_the_vocabulary_is_found_wherever_it_is(part, named):
    """In the middle of the examples too, where no batch is tried."""
    text = walk(1)
    given = {which: (each.inputs[""].copy(), each.targets[""]) for which, each in text.parts.items()}
    given[part][0][20, 3] = VOCABULARY
    data = DataSet(name="text", outputs=VOCABULARY, **given)

    with pytest.raises(ScenarioError, match=rf"the {named} inputs are tokens from 0 to {VOCABULARY}; .* 0 to 11"):
        try_task(task_of("gru"), data, lambda _: nullcontext())


def test_sizes_come_from_the_scenario():
    """All four keys reach the plan."""
    task = {"data": "token_data:walk", "model": "transformer", "width": 24, "layers": 3, "heads": 3}
    given = {
        "name": "sizes", "task": task | {"objective": "next-token"}, "method": "asgd", "fleet": {"edge": {"count": 1}},
        "stop": {"updates": 1},
    }  # fmt: skip
    (trial,) = load_scenario(given, ()).trials.values()

    assert trial.task.sizes == (("width", 24), ("layers", 3), ("heads", 3))


def test_a_transformer_begins_as_its_authors_say():
    """All weights have a deviation of 0.02, smaller where a layer adds to what it is given; norms are one."""
    task = task_of("transformer", vocabulary=500, width=64, layers=8, heads=2)
    theta = models.initial_parameters(task, 1)
    tensors = dict(
        zip(
            [each.name for each in task.layout],
            np.split(theta, np.cumsum([each.size for each in task.layout])[:-1]),
            strict=True,
        )
    )

    assert tensors["0.weight"].std() == pytest.approx(0.02, rel=0.05)
    assert tensors["1.dense.1.weight"].std() == pytest.approx(0.02, rel=0.05)
    assert tensors["1.dense.3.weight"].std() == pytest.approx(0.02 / 4, rel=0.05)
    assert tensors["1.attention.1.output.weight"].std() == pytest.approx(0.02 / 4, rel=0.05)
    assert (tensors["1.dense.0.weight"] == 1).all()
