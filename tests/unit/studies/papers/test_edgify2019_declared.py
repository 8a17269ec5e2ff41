"""The declaration of Edgify 2019, and the arithmetic behind its rates and totals."""

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from edgify2019 import containers, network, paper, totals
from edgify2019.cells import CELLS, EPOCHS, LARGE_BATCH_EPOCHS, RESNET18_ROUNDS, ROUNDS
from edgify2019.encodings import (
    KEPT,
    NETS,
    STEPS,
    WARM_UP,
    Encoded,
    Epoch,
    Selection,
    encoded,
    parts_of,
    selection,
    task_of,
    total_bytes,
)
from edgify2019.measures import largest_distance, mean_distance
from edgify2019.rates import FOLLOWS
from edgify2019.weights import SEEDS, as_int8
from hypothesis import given
from hypothesis import strategies as st
from tasks import one_array

from edgebed.algorithms.compression import dgc
from edgebed.learning.models import registry as models
from edgebed.scenario.load import load_scenario
from edgebed.studies.papers.paper import AtMost, Near
from edgebed.studies.papers.prose import with_prose

FOLDER = Path(__file__).parents[4] / "scenarios/edgify2019"
PAPER = with_prose(paper.PAPER, FOLDER / "paper.md")
IMAGES = 50_000


@pytest.mark.parametrize("cell", [name for name in CELLS if name not in containers.CELLS | network.CELLS])
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
    assert overrides == (() if stays else (f"variants.{CELLS[cell].variant}.method.aggregation.zero_at={EPOCHS}",))


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


def test_rows_beside_each_other_are_judged_alike() -> None:
    """By one claim, or the page would find two things in one value."""
    for name, row in PAPER.rows.items():
        if row.beside:
            assert row.claim == PAPER.rows[row.beside].claim, name


def test_what_the_baseline_has_may_be_passed_but_the_same_accuracy_may_not() -> None:
    """Large batch achieves the baseline's accuracy, federated learning has the same one; half a point bounds both."""
    trials: Any = {
        name: SimpleNamespace(summary=SimpleNamespace(value={"final_accuracy": accuracy}.get))
        for name, accuracy in (("large-batch", 0.7), ("large-batch-int8", 0.71), ("large-batch-dgc", 0.68),
                               ("federated", 0.7), ("federated-int8", 0.71))
    }  # fmt: skip
    found = {name: PAPER.rows[name] for name in ("loss-int8", "loss-dgc", "federated-int8-keeps")}
    assert {name: row.measure(trials) for name, row in found.items()} == {
        "loss-int8": pytest.approx(-1), "loss-dgc": pytest.approx(2), "federated-int8-keeps": pytest.approx(1)
    }  # fmt: skip
    assert found["loss-int8"].claim == found["loss-dgc"].claim == AtMost(value=0.5, published=0.0)
    assert found["federated-int8-keeps"].claim == Near(value=0.0, tolerance=0.5)


def test_rows_of_a_smaller_network_or_of_a_worker_alone_are_no_whole_setting() -> None:
    """Only the post's network with its workers is, whose row is shorter, and the networks themselves."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    for table in PAPER.tables:
        for cell in {cell for row in table.rows.values() for cell in row.cells}:
            assert table.other_setting == (trials[CELLS[cell].variant].task.model == "resnet8")


@pytest.mark.parametrize("name", ["large-batch-int8", "federated-int8"])
def test_one_scale_for_the_model_is_one_switch(name: str) -> None:
    """All else is as in the variant with a scale for each tensor."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    one, own = trials[f"{name}-model-scale"], trials[name]
    assert one.method.parts["compression"].settings == own.method.parts["compression"].settings | {"scope": "model"}
    for part in ("aggregation", "local_work"):
        assert one.method.parts[part] == own.method.parts[part]
    assert (one.task, one.stop, one.evaluation, one.num_workers) == (
        own.task,
        own.stop,
        own.evaluation,
        own.num_workers,
    )


def test_dgc_as_the_post_describes_it_clips_and_takes_a_sample() -> None:
    """Of one hundredth, which is what a sample is; all else is as in the variant that does neither."""
    trials = load_scenario(FOLDER / "accuracy.yaml").trials
    clipped, plain = trials["large-batch-dgc-clipped"], trials["large-batch-dgc"]
    settings, of_plain = (each.method.parts["compression"].settings for each in (clipped, plain))
    assert dgc.SAMPLE == 0.01
    assert settings["clip"] > 0
    assert settings == of_plain | {"selection": "sampled", "clip": settings["clip"]}
    assert (of_plain["selection"], of_plain["clip"]) == ("exact", None)
    assert (clipped.task, clipped.method.parts["aggregation"]) == (plain.task, plain.method.parts["aggregation"])


def test_texts_have_no_measured_figures() -> None:
    """A value stands in a row; headlines and causes name the row in braces."""
    texts = [headline.found for headline in PAPER.headlines]
    texts += [row.cause.text for row in PAPER.rows.values() if row.cause]
    assert not [text for text in texts if re.search(r"[0-9]\.[0-9]", re.sub(r"\{[^}]*\}", "", text))]


def test_the_page_says_that_its_images_were_compressed_again() -> None:
    """Every line reads a copy that is not the published files."""
    assert "re-compressed" in PAPER.text
    for table in PAPER.tables:
        assert "CIFAR-10" not in table.text.replace("CIFAR-10,\nre-compressed", "").replace(
            "CIFAR-10, re-compressed", ""
        )


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
    assert found.int8 == 11_181_642 + 4 * sum(not tensor.is_buffer for tensor in task.layout)
    assert found.deflated["tensor"] < found.int8
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
    for size in (totals.eight, totals.ours, totals.ours_zip, totals.eight_zip):
        sizes = [size(each) for each in found]
        assert sizes == sorted(sizes, reverse=True)


def test_one_scale_makes_tensors_of_small_entries_coarse_and_so_smaller() -> None:
    """Encoded for real; integers that all fit one scale take as many bytes by either."""
    task = task_of(NETS["resnet18-10"])
    layout = task.layout[:1]
    task = msgspec.structs.replace(task, layout=(*layout, *(msgspec.structs.replace(layout[0], name="b"),)))
    size = layout[0].size
    vector = np.random.default_rng(1).laplace(size=2 * size).astype(np.float32)
    alike, apart = encoded(task, vector, ()), encoded(task, np.append(vector[:size], vector[size:] / 1000), ())

    assert alike.deflated["model"] == pytest.approx(alike.deflated["tensor"], rel=0.05)
    assert apart.deflated["model"] < 0.6 * apart.deflated["tensor"]
    assert apart.deflated["tensor"] == pytest.approx(alike.deflated["tensor"], rel=0.01)
    assert apart.float32 == 8 * size
    assert apart.selections == {}


ENTRIES = 64_000
"""Entries of convolutions, so many that each share of them is a whole number."""


def sizes(**deflated: int) -> Encoded:
    """A vector of 800 floats whose integers take so many bytes; an entry that is selected takes six after zip."""
    chosen = {
        share: Selection(
            chosen=int(share * ENTRIES), whole=1, ours_bytes=1, ours_deflated_bytes=1,
            eight_deflated_bytes=6 * int(share * ENTRIES),
        )
        for share in (*WARM_UP, KEPT)
    }  # fmt: skip
    return Encoded(float32=3200, int8=804, deflated=deflated, int8_entropy=1, selections=chosen)


@pytest.mark.parametrize("name", ["resnet18-10", "resnet18-1000"])
def test_factors_are_those_of_the_totals_that_their_names_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Federated learning's over large batch's with 10 classes, else the other way round; the warm-up in four epochs."""
    first, change, weights = sizes(), sizes(tensor=700, model=300), sizes(tensor=600, model=500)
    monkeypatch.setattr(totals, "first_gradient", lambda _: first)
    monkeypatch.setattr(totals, "epoch", lambda _: Epoch(change, change, weights))
    values: dict[str, Any] = {key.removesuffix(f"-{name}"): row.measure({}) for key, row in PAPER.rows.items()
                              if key.endswith(f"-{name}") and key.startswith(("factor", "total"))}  # fmt: skip
    zipped = name == "resnet18-10"
    own, entry, whole = ("eight-zip", 6, 0) if zipped else ("eight", 8, 4)
    later, zipped_later = (96 * STEPS * (each * 64 + more) for each, more in ((entry, whole), (6, 0)))
    first_four = sum(map(int, np.multiply(WARM_UP, ENTRIES)))
    warm_up = STEPS * (entry * first_four + 4 * whole)

    def factor(together: float, apart: float) -> float:
        return together / apart if zipped else apart / together

    assert values[f"factor-{own}"] == pytest.approx(factor(150 * 700, later / 0.96))
    assert values[f"factor-warm-up-{own}"] == pytest.approx(factor(150 * 700, later + warm_up))
    assert values[f"factor-warm-up-{own}-model-scale"] == pytest.approx(factor(150 * 300, later + warm_up))
    assert values[f"factor-{own}-weights-model-scale"] == pytest.approx(factor(150 * 500, later / 0.96))
    assert values["factor-published"] == pytest.approx(factor(150 * 400, 100 * STEPS * (8 * 64 + 4)))
    assert values["total-federated-weights-model-scale"] == 150 * 500
    assert values["total-large-batch-warm-up-zip"] == zipped_later + STEPS * 6 * first_four


def curve(versions: list[int], accuracies: list[float]) -> Any:
    """A finished trial with these evaluations."""
    evaluations = SimpleNamespace(version=np.array(versions), values=np.array(accuracies, np.float32))
    return SimpleNamespace(evaluations=evaluations)


def test_the_distance_of_two_curves_leaves_out_the_first_weights() -> None:
    """Mean and largest over what both evaluated, in points, on either side."""
    trials = {"a": curve([0, 4, 8, 12], [0.5, 0.1, 0.4, 0.3]), "b": curve([0, 4, 8, 16], [0.1, 0.2, 0.1, 0.9])}

    for one, other in (("a", "b"), ("b", "a")):
        assert mean_distance(one, other)(trials) == pytest.approx(20)
        assert largest_distance(one, other)(trials) == pytest.approx(30)
    assert mean_distance("a", "a")(trials) == 0
    assert mean_distance("a", "b")(trials | {"b": curve([0], [0.1])}) is None


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
    layout = [tensor for tensor in models.layout("resnet8", one_array((3, 32, 32)), 10) if not tensor.is_buffer]
    assert sum(tensor.size for tensor in layout) == 75_290
    assert "75,290 parameters" in " ".join(PAPER.text.split())
    assert sum(max(1, tensor.size // 1000) for tensor in layout if len(tensor.shape) == 4) == 72
