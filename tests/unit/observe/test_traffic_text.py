"""The bytes at the server in words."""

import msgspec
import pytest

from edgebed.observe.series import Series
from edgebed.observe.summary import summarise
from edgebed.observe.traffic_text import (
    changed_models_text,
    ingress_interface_text,
    interface_text,
    traffic_lines,
    whole_models_text,
)

MEASURED = {
    "ingress_interface_bytes": 5_200_000, "egress_interface_bytes": 90_000_000, "interface": "eth0",
    "ack_bytes": 3_120_000, "pulls": 500, "pull_bytes": 85_000_000, "pulls_changed": 480,
    "pull_changed_bytes": 68_000_000,
}  # fmt: skip


@pytest.fixture
def make_trial(make_sample_plan):
    """`make_trial(**fields)`: the summary of a trial with these measurements and no others."""
    unmeasured = summarise(make_sample_plan("adacomp"), Series.empty())

    def make(**fields):
        return msgspec.structs.replace(unmeasured, **fields)

    return make


def test_the_share_that_acknowledgements_have_of_the_interfaces_bytes_is_named(make_trial):
    """As a part of the whole."""
    text = ingress_interface_text(make_trial(**MEASURED))

    assert text == "5.2 MB (eth0), of it 3.12 MB (60 %) acknowledgements of pulls"


def test_of_an_interface_that_the_whole_machine_shares_there_is_no_share(make_trial):
    """Its bytes are everybody's; the acknowledgements are the server's own."""
    text = ingress_interface_text(make_trial(**MEASURED | {"interface": "lo"}))

    assert text == "5.2 MB (lo, shared by the machine), of it 3.12 MB acknowledgements of pulls"


def test_where_acknowledgements_are_not_known_the_bytes_stand_alone(make_trial):
    """An older kernel."""
    trial = make_trial(**MEASURED | {"ack_bytes": None})

    assert ingress_interface_text(trial) == interface_text(trial, trial.ingress_interface_bytes) == "5.2 MB (eth0)"


def test_whole_models_and_changed_entries_are_counted_apart(make_trial):
    """Together they are all the models that workers were sent."""
    trial = make_trial(**MEASURED)

    assert whole_models_text(trial) == "20 models, 17 MB"
    assert changed_models_text(trial) == "480 models, 68 MB"


def test_a_terminal_says_what_was_measured(make_trial):
    """Nothing in a trial that never began; only models where there is no interface, or one that all share."""
    models = {key: MEASURED[key] for key in ("pulls", "pull_bytes")}
    shared = MEASURED | {"interface": "lo", "pulls_changed": 0, "pull_changed_bytes": 0}

    assert list(traffic_lines(make_trial())) == []
    assert list(traffic_lines(make_trial(**models))) == ["egress: 500 models, 85 MB"]
    assert list(traffic_lines(make_trial(**shared))) == ["egress: 500 models, 85 MB"]
    assert list(traffic_lines(make_trial(**MEASURED))) == [
        "ingress at the interface: 5.2 MB (eth0), of it 3.12 MB (60 %) acknowledgements of pulls",
        "egress: 20 models, 17 MB whole; 480 models, 68 MB of changed entries",
    ]
