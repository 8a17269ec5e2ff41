"""What is known of built-in models: the file is what torch counts, and planning by it is planning without it."""

import msgspec
import pytest
from tasks import one_array

from edgebed.core.plan import Task
from edgebed.learning.models import anatomy, examined, footprint, registry
from edgebed.learning.models.examined import CLASSES, FILE, SHAPES, Examination, examine
from edgebed.learning.models.token_models import TOKEN_MODELS

SMALL = ("small", "mlp", "cnn", "logistic", "resnet8")
LINES = {
    (each.model, each.input_shape): each for each in msgspec.json.Decoder(Examination).decode_lines(FILE.read_bytes())
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SMALL)
def test_the_file_is_what_torch_counts(name, shape):
    """Tensors, operations and bytes of models that are quickly counted, on all inputs."""
    assert LINES[name, shape] == examine(name, shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*registry.MODELS} - {*SMALL} - {*TOKEN_MODELS}))
def test_the_file_is_what_torch_counts_of_large_models(name):
    """On the inputs that most of them are for."""
    assert LINES[name, (3, 32, 32)] == examine(name, (3, 32, 32))


def test_every_model_of_images_is_known_on_every_built_in_input():
    """None takes torch to be planned; models of tokens take none of these inputs."""
    assert set(LINES) == {(name, shape) for name in registry.MODELS if name not in TOKEN_MODELS for shape in SHAPES}


@pytest.mark.parametrize("batch_size", [1, 7, 32])
def test_a_batch_counts_as_its_examples(batch_size):
    """Operations grow with the batch; memory is told for one example."""
    tensors = registry.layout("resnet8", one_array((3, 32, 32)), CLASSES)
    task = Task(
        model="resnet8", inputs=one_array((3, 32, 32)), outputs=CLASSES, layout=tensors, batch_size=batch_size,
        gradient_time_s=1.0,
    )  # fmt: skip

    assert examined.gradient_operations(task) == anatomy.gradient_operations(task)
    assert examined.footprint(task) == footprint.footprint_of(task)
    assert examined.constant_bytes(task) == footprint.constant_bytes(task)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "sizes"),
    [("mlp", (2, 5), 3, ()), ("resnet8", (3, 32, 32), 10, (("width", 4),)), ("small", (1, 8, 8), 7, ())],
)
def test_what_is_not_known_is_counted(name, shape, classes, sizes):
    """Other inputs, classes and sizes than the usual ones."""
    assert examined.layout(name, one_array(shape), classes, (), sizes) == registry.layout(
        name, one_array(shape), classes, (), sizes
    )
