"""What is measured of the paper's runs, on a small run of the same kind."""

import pytest
from hardy2017 import measures as hardy2017_measures
from hardy2017.measures import (
    BARE,
    PICKLED,
    RELEASED,
    SENT,
    accuracy,
    early_accuracy,
    ingress_to_best,
    ingress_to_target,
    push_bytes,
    updates_to_target,
)
from quick_runs import run as run_quickly

from edgebed.studies.papers.measuring import difference, ratio, times
from edgebed.studies.trial_result import FinishedTrial

SCENARIO = {
    "name": "small",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "fleet": {"edge": {"count": 4, "waiting": {"exponential": "1s"}}},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 1000},
    "variants": {
        "dense": {"method": "asgd"},
        "selected": {"method": {"preset": "adacomp", "compression": {"fraction": 0.1}}},
        "global": {"method": {"preset": "comp-asgd", "compression": {"fraction": 0.1}}},
        "brief": {"method": "asgd", "stop": {"updates": 20}},
    },
}
ENTRIES, SELECTED = 4_810, 409 + 6 + 64 + 1
ENCODINGS = (PICKLED, RELEASED, BARE, SENT)


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """By variant."""
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path_factory.mktemp("runs"))
    return {name: FinishedTrial.of(trial) for name, trial in run.trials.items()}


def test_accuracy_is_the_highest_moving_average_in_per_cent(trials):
    """Over whole windows of five evaluations."""
    measured = trials["selected"].evaluations.values
    averages = [measured[k : k + 5].mean() for k in range(len(measured) - 4)]

    assert accuracy("selected")(trials) == pytest.approx(100 * max(averages))


def test_early_accuracy_is_of_the_first_tenth_of_the_updates(trials):
    """The evaluation before the first update is one of them."""
    evaluations = trials["selected"].evaluations
    early = evaluations.values[evaluations.version <= 100]

    assert early_accuracy("selected")(trials) == pytest.approx(100 * early.mean())


@pytest.mark.parametrize(("encoding", "least", "most"), [
    (PICKLED, 9 * ENTRIES, 9.1 * ENTRIES),
    (RELEASED, 9 * ENTRIES, 9.1 * ENTRIES),
    (BARE, 4 * ENTRIES, 4 * ENTRIES),
    (SENT, 4 * ENTRIES, 4.1 * ENTRIES),
])  # fmt: skip
def test_a_dense_push_weighs(trials, encoding, least, most):
    """As many bytes a value as the encoding says, and a little for the rest."""
    assert least <= push_bytes("dense", encoding)(trials) <= most


@pytest.mark.parametrize(("encoding", "least", "most"), [
    (PICKLED, 11 * SELECTED, 13 * SELECTED),
    (RELEASED, 27 * SELECTED, 29 * SELECTED),
    (BARE, 8 * SELECTED, 8 * SELECTED),
    (SENT, 4 * SELECTED, 6 * SELECTED),
])  # fmt: skip
def test_a_selected_push_weighs(trials, encoding, least, most):
    """Positions count, and the authors' wrappers."""
    assert least <= push_bytes("selected", encoding)(trials) <= most


def test_a_selection_across_the_model_is_pickled_as_one_tensor(trials):
    """Comp-ASGD has no counts by tensor."""
    assert push_bytes("global", PICKLED)(trials) == pytest.approx(push_bytes("selected", PICKLED)(trials), rel=0.1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ingress_is_pushes_times_bytes(trials, encoding, monkeypatch):
    """Both stand in the table, and their product."""
    monkeypatch.setattr(hardy2017_measures, "TARGET", 0.8)
    updates = updates_to_target("selected")(trials)
    ingress = ingress_to_target("selected", encoding)(trials)

    assert ingress == pytest.approx(updates * push_bytes("selected", encoding)(trials), rel=0.02)
    assert ingress_to_best("selected", encoding, below_points=0.1)(trials) >= ingress


def test_what_was_sent_is_the_ingress_of_the_journal(trials):
    """The headline ingress of every report."""
    summary = trials["selected"].summary

    assert push_bytes("selected", SENT)(trials) == pytest.approx(summary.server.push_bytes_mean)
    assert push_bytes("selected", SENT)(trials) * summary.updates == pytest.approx(summary.server.ingress_bytes)
    assert push_bytes("selected", BARE)(trials) * summary.updates == pytest.approx(summary.server.bits / 8)


def test_what_is_never_reached_has_no_number(trials):
    """Nor has what is computed from it."""
    for measure in (
        updates_to_target("brief"),
        *(ingress_to_target("brief", encoding) for encoding in ENCODINGS),
        ratio(updates_to_target("brief"), updates_to_target("selected")),
        ratio(updates_to_target("selected"), updates_to_target("brief")),
        difference(updates_to_target("selected"), updates_to_target("brief")),
        times(updates_to_target("brief"), 2),
    ):
        assert measure(trials) is None


def test_combined_measures(trials):
    """Seed by seed, so that differences are paired."""
    one, other = accuracy("selected"), accuracy("dense")

    assert difference(one, other)(trials) == one(trials) - other(trials)
    assert ratio(one, other)(trials) == one(trials) / other(trials)
    assert times(one, 2)(trials) == 2 * one(trials)
