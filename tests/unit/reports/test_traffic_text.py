"""The bytes at the server in words."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import make_plan

from edgebed.core import records
from edgebed.core.measures.trial import Exchange, ShardMeasures
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary, summarise
from edgebed.reports.live.event_text import event_text
from edgebed.reports.run.traffic_text import (
    byte_rows,
    bytes_by_kind,
    changed_models_text,
    ingress_interface_text,
    interface_text,
    lacks_messages,
    traffic_lines,
    whole_models_text,
)

MEASURED = {
    "ingress_interface_bytes": 5_200_000, "egress_interface_bytes": 90_000_000, "interface": "eth0",
    "ack_bytes": 3_120_000, "pulls": 500, "egress_bytes": 85_000_000, "pulls_changed": 480,
    "pull_changed_bytes": 68_000_000,
}  # fmt: skip


SIZES = st.integers(0, 10**12)


@pytest.fixture(scope="module")
def make_trial():
    """`make_trial(**fields)`: the summary of a trial with these measurements and no others."""
    unmeasured = summarise(make_plan("adacomp"), Series.empty())

    def make(**fields):
        common = {name: fields.pop(name) for name in list(fields) if name in TrialSummary.__struct_fields__}
        if fields.keys() & set(ShardMeasures.__struct_fields__):
            return msgspec.structs.replace(unmeasured, **common, server=None, shards=ShardMeasures(**fields))
        return msgspec.structs.replace(
            unmeasured, **common, server=msgspec.structs.replace(unmeasured.server, **fields)
        )

    return make


def test_the_share_that_acknowledgements_have_of_the_interfaces_bytes_is_named(make_trial):
    """As a part of the whole."""
    text = ingress_interface_text(make_trial(**MEASURED))

    assert text == "5.2 MB (eth0), of it 3.12 MB (60 %) acknowledgements of pulls"


def test_bytes_of_an_interface_that_the_whole_machine_shares_are_nowhere(tmp_path):
    """The loopback's are other people's as well: not in the summary, its JSON, or any table; the server's own are."""
    for name, is_own in (("lo", False), ("eth0", True)):
        told = records.Traffic(
            ingress_payload=900, egress_payload=800, ingress_interface=791_000_000, egress_interface=5_000_000,
            interface=name, ack_bytes=70, pulls=2, pull_bytes=700,
        )  # fmt: skip
        journal = tmp_path / name
        with JournalWriter(journal) as writer:
            writer.write(1.0, "server", told)
        trial = summarise(make_plan("asgd"), Series.from_journal(journal))
        shown = [*traffic_lines(trial), *(cell for row in byte_rows([trial]) for cell in row), event_text(told)]

        assert (trial.interface, trial.ingress_interface_bytes, trial.egress_interface_bytes, trial.ack_bytes) == (
            ("eth0", 791_000_000, 5_000_000, 70) if is_own else ("", None, None, None)
        )
        assert any("791 MB" in text for text in shown) == is_own
        assert any("interface" in text for text in shown) == is_own


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
    """Nothing in a trial that never began; only models where there is no interface of the server's own."""
    models = {key: MEASURED[key] for key in ("pulls", "egress_bytes")}

    assert list(traffic_lines(make_trial())) == []
    assert list(traffic_lines(make_trial(**models))) == ["down: 500 models, 85 MB"]
    assert list(traffic_lines(make_trial(**MEASURED))) == [
        "up, at the server's interface: 5.2 MB (eth0), of it 3.12 MB (60 %) acknowledgements of pulls",
        "down: 20 models, 17 MB whole; 480 models, 68 MB of changed entries",
    ]


@given(pushes=SIZES, others=SIZES, whole=SIZES, changed=SIZES, refusals=SIZES)
def test_the_kinds_are_all_that_passed_the_server(make_trial, pushes, others, whole, changed, refusals):
    """Up and down; what there is nothing of is not named."""
    trial = make_trial(
        ingress_bytes=pushes, ingress_payload_bytes=pushes + others, egress_bytes=whole + changed,
        pull_changed_bytes=changed, egress_payload_bytes=whole + changed + refusals,
    )  # fmt: skip
    kinds = bytes_by_kind(trial)

    assert sum(kinds.values()) == trial.ingress_payload_bytes + trial.egress_payload_bytes
    assert sum(size for kind, size in kinds.items() if kind.startswith("up")) == trial.ingress_payload_bytes
    assert all(kinds.values())
    assert kinds.get("down: changed entries of models", 0) == changed


@given(st.lists(st.tuples(st.sampled_from(["activation", "gradient", "backup"]), SIZES), max_size=6), SIZES)
def test_the_kinds_are_all_that_shards_sent(make_trial, received, lost):
    """By kind of message, over all pairs; what was lost on its way was sent as well."""
    exchanges = tuple(
        Exchange(source="a", target="b", message=message, count=1, bytes=size) for message, size in received
    )
    total = sum(size for _, size in received) + lost
    kinds = bytes_by_kind(make_trial(steps_min=1, exchanges=exchanges, exchanged_bytes=total))

    assert sum(kinds.values()) == total
    assert kinds.get("sent and never received", 0) == lost
    for message in ("activation", "gradient", "backup"):
        assert kinds.get(message, 0) == sum(size for kind, size in received if kind == message)


def test_of_what_was_not_counted_there_are_no_kinds(make_trial):
    """A trial that broke off before its server told anything; one whose last words came before its last pushes."""
    assert bytes_by_kind(make_trial()) == {}
    killed = make_trial(ingress_bytes=900, ingress_payload_bytes=800, egress_payload_bytes=100)
    assert bytes_by_kind(killed) == {"up: pushes that were applied": 800, "down: all else": 100}
    assert [lacks_messages(trial) for trial in (killed, make_trial(**MEASURED), make_trial())] == [True, False, False]


def test_the_table_of_bytes_has_a_column_a_trial(make_trial):
    """Shards push nothing, so lines on pushes and models are of others alone."""
    served, layerwise = make_trial(**MEASURED), make_trial(steps_min=1)

    assert {len(row) for row in byte_rows([served, layerwise])} == {3}
    assert ("down: whole models to workers", "20 models, 17 MB", "–") in byte_rows([served, layerwise])
    told = make_trial(steps_min=1, ingress_payload_bytes=1, egress_payload_bytes=1)
    assert [row[0] for row in byte_rows([told])] == [
        "up: payload of all messages",
        "down: payload of all messages",
    ]
    assert byte_rows([layerwise]) == []
