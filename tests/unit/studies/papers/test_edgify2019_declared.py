"""The declaration of Edgify 2019, and the arithmetic behind its rates and totals."""

import math
from pathlib import Path

import numpy as np
import pytest
from edgify2019 import containers
from edgify2019.encodings import (
    KEPT,
    NETS,
    STEPS,
    WARM_UP,
    encoded,
    parts_of,
    selection,
    task_of,
    total_bytes,
)
from edgify2019.paper import CELLS, EPOCHS, FOLLOWS, LARGE_BATCH_EPOCHS, PAPER, RESNET18_ROUNDS, ROUNDS, eight
from edgify2019.weights import SEEDS, as_int8
from hypothesis import given
from hypothesis import strategies as st

from edgebed.learning.models import registry as models
from edgebed.scenario.load import load_scenario
from edgebed.studies.claims_text import claim_text

FOLDER = Path(__file__).parents[4] / "scenarios/edgify2019"
IMAGES = 50_000


def test_the_post_is_declared_without_mistakes() -> None:
    """Every cell is in a row, no two rows have one name, nor two of a table one label."""
    assert PAPER.mistakes == ()
    for table in PAPER.tables:
        labels = [row.what for row in table.rows.values()]
        assert len(set(labels)) == len(labels)


def test_the_scenario_file_holds_the_cells_and_nothing_else() -> None:
    """So it holds nothing that the page does not show."""
    variants = set(load_scenario(FOLDER / "accuracy.yaml").trials)
    assert {(cell.scenario, cell.variant) for cell in CELLS.values()} == {("accuracy.yaml", name) for name in variants}


@pytest.mark.parametrize("cell", [name for name in CELLS if name not in containers.CELLS])
def test_every_training_is_as_many_epochs(cell: str) -> None:
    """Of the post's 100, or 150 rounds; a cosine ends with them, and rates of rounds of models stay."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    trial = trials[CELLS[cell].variant]
    pushes = IMAGES * trial.task.fraction / trial.task.batch_size
    epochs = trial.stop.updates / (trial.num_workers if cell.startswith("federated") else pushes)
    assert epochs == (ROUNDS if cell.startswith("federated") else LARGE_BATCH_EPOCHS)
    run = {"federated-resnet18": RESNET18_ROUNDS}.get(cell, LARGE_BATCH_EPOCHS if "hundred" in cell else EPOCHS)
    assert CELLS[cell].scale * epochs == pytest.approx(run)
    overrides = CELLS[cell].sets(CELLS[cell].scale)
    stays = "plateau" in cell or "hundred" in cell or cell.startswith("federated")
    assert overrides == (() if stays else (f"variants.{CELLS[cell].variant}.method.aggregation.epochs={EPOCHS}",))


def test_a_hundred_epochs_are_as_many_steps_as_the_others_take() -> None:
    """So that two cores can run them; the warm-up of DGC is four epochs of them."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    steps = trials["large-batch"].stop.updates * CELLS["large-batch"].scale
    for name in ("large-batch-hundred-epochs", "large-batch-dgc-hundred-epochs"):
        assert trials[name].stop.updates == pytest.approx(steps, rel=0.001)
        assert CELLS[name].scale == 1


def test_variants_of_32_workers_differ_from_those_of_four_in_nothing_else() -> None:
    """The settings of each are those of its namesake."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    for name in ("large-batch", "large-batch-dgc", "federated", "federated-int8"):
        four, many = trials[name], trials[f"{name}-32"]
        assert (four.num_workers, many.num_workers) == (4, 32)
        assert (many.task, many.method) == (four.task, four.method)


def test_all_seeds_agree_by_chance_less_often_than_a_test_at_95_percent_errs() -> None:
    """The row of rounded weights is the least of them, so that all decide; on either side of zero."""
    assert 2 * 0.5 ** len(SEEDS) < 0.05
    assert PAPER.rows["weights-lose"].what.endswith(f"least of {len(SEEDS)} seeds")


def test_what_follows_from_arithmetic_or_was_worked_out_here_confirms_nothing() -> None:
    """Four rates of floats over bytes, two factors that a batch size was chosen for, and four rates not of the post."""
    claimed = {name: row for name, row in PAPER.rows.items() if row.claim and name not in containers.TABLE.rows}

    assert [name for name, row in claimed.items() if not row.counts] == [
        *(f"{kind}-{net}" for net in NETS for kind in ("f2i", "dgc")),
        "factor-published-resnet18-10",
        "factor-published-resnet18-1000",
    ]
    assert {claim_text(claimed[f"dgc-{net}"].claim, "x") for net in NETS} == {"–"}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("resnet18-10", (11_166_912, 9_600, 5_130)),
        ("resnet18-1000", (11_166_912, 9_600, 513_000)),
        ("resnet50-10", (23_454_912, 53_120, 20_490)),
        ("resnet50-1000", (23_454_912, 53_120, 2_049_000)),
    ],
)
def test_networks_have_the_parameters_of_the_publication(name: str, parts: tuple[int, int, int]) -> None:
    """By kind of layer, and the rate that a thousandth of the convolutions at eight bytes an entry gives."""
    assert parts_of(name) == parts
    convolutions, *whole = parts
    rate = 4 * sum(parts) / (8 * KEPT * convolutions + 4 * sum(whole))
    assert rate == pytest.approx(FOLLOWS[name], rel=0.03)


@pytest.mark.slow
def test_what_is_sent_of_resnet_18_is_counted() -> None:
    """A thousandth of each convolution, all else whole; an integer an entry and a scale a tensor."""
    task = task_of(NETS["resnet18-10"])
    convolutions = [tensor.size for tensor in task.layout if len(tensor.shape) == 4]
    size = sum(tensor.size for tensor in task.layout)
    vector = np.random.default_rng(1).laplace(size=size).astype(np.float32)
    found = encoded(task, vector)

    assert found.float32 == 4 * 11_181_642
    assert found.int8 == 11_181_642 + 4 * sum(not tensor.kept for tensor in task.layout)
    assert found.int8_deflated < found.int8
    assert found.dgc.chosen == sum(each // 1000 for each in convolutions) == 11_155
    assert found.dgc.whole == 9_600 + 5_130
    assert found.dgc.eight_bytes == 8 * 11_155 + 4 * 14_730
    assert found.float32 / found.dgc.eight_bytes == pytest.approx(302, rel=0.05)
    assert 4 * (11_155 + 14_730) < found.dgc.ours_bytes < found.dgc.eight_bytes


def test_totals_of_the_post_follow() -> None:
    """193 MB by large batch and 839 MB by federated learning, 4.35 times as much; and 3.2 the other way round."""
    assert math.ceil(IMAGES / 32 / 128) == STEPS
    large_batch = total_bytes(148_160, LARGE_BATCH_EPOCHS)
    federated = ROUNDS * 44_726_568 / 8
    assert large_batch == 1300 * 148_160
    assert large_batch / 1e6 == pytest.approx(193, abs=1)
    assert federated / 1e6 == pytest.approx(839, abs=1)
    assert federated / large_batch == pytest.approx(4.35, abs=0.01)
    assert total_bytes(2_179_640, LARGE_BATCH_EPOCHS) / (ROUNDS * 46_758_048 / 8) == pytest.approx(3.2, abs=0.05)


@given(st.lists(st.integers(0, 10**9), max_size=6), st.integers(0, 10**9), st.integers(0, 10))
def test_a_total_is_that_of_its_epochs(first: list[int], later: int, epochs: int) -> None:
    """The first ones have sizes of their own, as far as there are so many."""
    sizes = [*first, *[later] * epochs][:epochs]
    assert total_bytes(later, epochs, tuple(first)) == STEPS * sum(sizes)


def test_more_is_sent_the_larger_the_share() -> None:
    """In every encoding, of the same vector."""
    shapes = [(32, 32, 3, 3), (32,), (10, 32)]
    vector = np.random.default_rng(1).laplace(size=32 * 32 * 9 + 32 + 320).astype(np.float32)
    found = [selection(shapes, vector, share) for share in (*WARM_UP, KEPT)]

    assert [each.chosen for each in found] == [2304, 576, 144, 36, 9]
    assert {each.whole for each in found} == {352}
    for size in (eight, lambda each: each.ours_bytes, lambda each: each.eight_deflated_bytes):
        sizes = [size(each) for each in found]
        assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=40))
def test_a_rounded_weight_is_at_most_half_a_unit_away(weights: list[float]) -> None:
    """Of its own tensor; rounded again it stays nearly where it is."""
    parameters = np.array(weights, np.float32)
    shapes = [(len(parameters) - 2,), (2,)]
    rounded = as_int8(parameters, shapes)
    for span in (slice(0, -2), slice(-2, None)):
        unit = float(np.abs(parameters[span]).max()) / 127
        assert np.abs(rounded[span] - parameters[span]).max() <= 0.5 * unit * (1 + 1e-4) + 1e-30
    np.testing.assert_allclose(as_int8(rounded, shapes), rounded, rtol=1e-5)


def test_the_trained_model_has_the_numbers_that_the_page_gives() -> None:
    """75,290 parameters, of whose convolutions a thousandth, at least one of each, are 72."""
    layout = [tensor for tensor in models.layout("resnet8", (3, 32, 32), 10) if not tensor.kept]
    assert sum(tensor.size for tensor in layout) == 75_290
    assert "75,290 parameters" in " ".join(PAPER.text.split())
    assert sum(max(1, tensor.size // 1000) for tensor in layout if len(tensor.shape) == 4) == 72
