"""The declaration of Hardy et al. 2017: it fits its scenario files, and what it says of sizes is so."""

import pickle
from pathlib import Path

import pytest
from hardy2017 import authors_pickle
from hardy2017.paper import CELLS, METHODS, ORDER, PUBLISHED
from tasks import one_array

from edgebed.algorithms.compression import top_k
from edgebed.learning.models import registry as models
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import Scenario, TrialSection

FOLDER = Path(__file__).parents[4] / "scenarios/hardy2017"
FILES = ("figure-3.yaml", "figure-3-uniform.yaml", "figure-3-narrow.yaml", "table-2.yaml", "figure-4.yaml")
SECTION_3 = "section-3.yaml"
"""One worker, of others' work, whose size is not known."""
CNN = [tensor.size for tensor in models.layout("cnn", one_array((1, 28, 28)), 10)]
PYTHON_2_BYTES = {1.0: 1_905_858, 0.1: 281_314, 0.01: 28_531, 0.001: 3_275}
"""Share of the entries -> what cPickle of Python 2.7.18 makes of a push of the CNN in the form of the first release."""
PYTHON_2_BYTES_WRAPPED = {0.1: 619_396, 0.01: 61_696, 0.001: 6_007}


@pytest.fixture(scope="module")
def scenarios() -> dict[str, Scenario]:
    """By file name."""
    return {name: load_scenario(FOLDER / name) for name in (*FILES, SECTION_3)}


def counts(fraction: float) -> list[int]:
    """Entries that AdaComp selects of each tensor of the CNN."""
    groups = top_k.Compression(top_k.Config(fraction=fraction), [(size,) for size in CNN]).groups
    return [count for _, _, count in groups]


def pickled(fraction: float) -> int:
    """Bytes of a push, pickled in the protocol that Python 2 has."""
    names = [f"layer{k}/weights_grad" for k in range(len(CNN))]
    if fraction == 1.0:
        return len(pickle.dumps([100_000, {name: [0.1] * size for name, size in zip(names, CNN, strict=True)}], 2))
    chosen = list(zip(names, CNN, counts(fraction), strict=True))
    values = {name: [0.1] * count for name, _, count in chosen}
    positions = {name: [k * size // count for k in range(count)] for name, size, count in chosen}
    return len(pickle.dumps((100_000, values, positions), 2))


def test_the_methods_are_those_of_the_paper(scenarios):
    """A cell's name says its method and its share of the entries."""
    for ending in ("", "-exponential", "-uniform"):
        for name in METHODS:
            cell = CELLS[f"{name}{ending}"]
            method = scenarios[cell.scenario].trials[cell.variant].method
            preset, _, fraction = name.rpartition("-")
            assert method.name == (preset or name)
            assert method.parts["aggregation"].settings["learning_rate"] == 0.1
            if preset:
                assert method.parts["compression"].settings["fraction"] == float(fraction)


def test_the_order_is_that_of_the_published_accuracies():
    """From the best to the worst."""
    assert sorted(PUBLISHED, key=PUBLISHED.__getitem__, reverse=True) == list(ORDER)


def test_every_trial_has_the_size_of_the_paper(scenarios):
    """200 devices, mini-batches of 10, 250,000 updates, measured at every hundredth of them."""
    for name in FILES:
        for variant, trial in scenarios[name].trials.items():
            devices = 100 if variant.endswith("100-devices") else 200
            assert (trial.num_workers, trial.stop.updates) == (devices, 250_000), f"{name}: {variant}"
            assert (trial.task.batch_size, trial.evaluation.every.updates) == (10, 2_500), f"{name}: {variant}"


def test_a_single_core_selects_as_comp_asgd_does(scenarios):
    """One entry in a hundred, the largest of the whole model; nothing is kept of the others. Else all is the same."""
    whole, selected = (scenarios[SECTION_3].trials[name] for name in ("single-core", "single-core-1-in-100"))
    comp_asgd = scenarios["figure-3.yaml"].trials["comp-asgd-1-in-100"].method.parts["compression"]

    assert whole.num_workers == selected.num_workers == 1
    assert whole.method.parts["aggregation"] == selected.method.parts["aggregation"]
    assert top_k.Config(**selected.method.parts["compression"].settings) == top_k.Config(**comp_asgd.settings)


def test_all_pauses_have_one_mean(scenarios):
    """One second on average."""
    pauses = {
        trial.fleet["edge"].waiting
        for name in ("figure-3.yaml", "figure-3-uniform.yaml", "figure-3-narrow.yaml")
        for trial in scenarios[name].trials.values()
    }

    assert {(pause.distribution, pause.mean_s or (pause.low_s + pause.high_s) / 2) for pause in pauses} == {
        ("exponential", 1.0),
        ("uniform", 1.0),
    }


def test_three_classes_differ_by_ten_and_by_a_hundred(scenarios):
    """From one push to the next, the gradient included; 30, 40 and 30 % of 200 devices."""
    for variant, trial in scenarios["figure-4.yaml"].trials.items():
        classes = {name: (each.count, mean_cycle_s(trial, name)) for name, each in trial.fleet.items()}
        if variant.startswith("one"):
            assert classes == {"fast": (200, 1.005)}
        else:
            assert classes == {
                "fast": (60, 1.005),
                "medium": (80, pytest.approx(10.05)),
                "slow": (60, pytest.approx(100.5)),
            }


def mean_cycle_s(trial: TrialSection, name: str) -> float:
    """Mean time from one push of a device to its next, without the network."""
    members = trial.fleet[name]
    return trial.task.gradient_time / members.compute_speed + members.waiting.mean_s


@pytest.mark.parametrize("scale", [1.0, 0.2, 0.0001])
def test_half_of_the_devices_crash_at_every_scale(scale):
    """Each of the I updates ends a device with probability p, until then one of n: I p = n / 2."""
    for variant, images in (("60000-images-crashes", 60_000), ("12000-images-crashes", 12_000)):
        cell = CELLS[variant]
        trial = load_scenario(FOLDER / cell.scenario, cell.sets(scale)).trials[cell.variant]
        (fault,) = trial.faults

        assert fault.trigger().probability == pytest.approx(min(1.0, 100 / (250_000 * scale))), images


@pytest.mark.parametrize(("fraction", "total"), [(0.1, 21_166), (0.01, 2_117), (0.001, 215)])
def test_adacomp_selects_as_many_entries_as_the_authors_code(fraction, total):
    """Of each of the eight tensors of the CNN at least one."""
    assert sum(CNN) == 211_690
    assert sum(counts(fraction)) == total


@pytest.mark.parametrize("fraction", PYTHON_2_BYTES)
def test_a_push_of_plain_floats_weighs_what_it_does_pickled(fraction):
    """By Python 3 in the old protocol, and by Python 2."""
    computed = (
        authors_pickle.dense_bytes(CNN) if fraction == 1.0 else authors_pickle.selected_bytes(CNN, counts(fraction))
    )

    assert computed == pytest.approx(pickled(fraction), rel=0.01, abs=300)
    assert computed == pytest.approx(PYTHON_2_BYTES[fraction], rel=0.01)


@pytest.mark.parametrize("fraction", PYTHON_2_BYTES_WRAPPED)
def test_a_push_of_wrapped_floats_weighs_what_python_2_makes_of_it(fraction):
    """Objects of a class derived from float, with their empty dictionaries."""
    computed = authors_pickle.selected_bytes(CNN, counts(fraction), wrapped=True)

    assert computed == pytest.approx(PYTHON_2_BYTES_WRAPPED[fraction], rel=0.02, abs=800)


def test_an_entry_is_some_thirteen_bytes_and_a_dense_value_nine():
    """Nine for the value, and three or five for most positions."""
    assert authors_pickle.selected_bytes(CNN, counts(0.01)) / 2_117 == pytest.approx(13.4, abs=0.1)
    assert authors_pickle.dense_bytes(CNN) / 211_690 == pytest.approx(9, abs=0.01)
