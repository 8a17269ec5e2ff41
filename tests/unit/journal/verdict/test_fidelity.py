"""The verdict: each rule from both sides, and that it does not matter in which order records came."""

from itertools import chain
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.emulation.witness.usage import Reading, add_window
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.verdict.evidence import TOO_SHORT
from edgebed.journal.verdict.fidelity import NOTHING_ASKED, SIMULATED, judge
from edgebed.journal.verdict.lots import MESSAGES_MIN, lots

from .conftest import (
    TEN_MBIT,
    WELL,
    WORKERS,
    held,
    host,
    plan_of,
    series_of,
    transfers,
    trial,
    usage,
    verdict_on,
)  # fmt: skip


def test_what_was_never_trained_has_no_verdict():
    """The journal breaks off before the training."""
    assert judge(plan_of(), Series.empty()) is None


def test_a_simulation_is_modelled_and_says_what_its_time_is():
    """Nothing was measured, so nothing is trusted; and times come from somewhere."""
    fidelity = judge(plan_of(link=TEN_MBIT), series_of(runtime="simulation"))

    assert (fidelity.verdict, fidelity.causes) == ("modelled", ())
    assert fidelity.remarks[0] == SIMULATED
    assert "a gradient takes 10 ms (the scenario's gradient_time)" in fidelity.remarks[1]


def test_a_run_that_asks_for_nothing_is_trusted_however_busy_the_host():
    """Nodes without caps may fight for cores, be late and starve."""
    busy = host(busy=1.0, steal=0.3, lag_s=0.1)
    fidelity = judge(plan_of(), series_of([usage(starved_s=15.0)], [usage()], [busy]))

    assert fidelity.verdict == "trusted"
    assert fidelity.remarks[0] == NOTHING_ASKED


def test_a_trial_too_short_to_be_measured_says_so():
    """A cap was asked for, and nobody measured."""
    fidelity = judge(plan_of(cpus=1.0), series_of())

    assert (fidelity.verdict, fidelity.reasons) == ("unknown", (TOO_SHORT,))


# --- links ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20), max_size=8))
def test_all_messages_of_a_class_are_judged_once_if_they_are_enough(counts):
    """However few each node had; whoever had more than all who had few together is judged alone."""
    rows = {name: SimpleNamespace(messages=count) for name, count in zip("abcdefgh", counts, strict=False)}
    found = list(lots([SimpleNamespace(name=name, ways=lambda _, row=row: (row,)) for name, row in rows.items()], "up"))
    sizes = [[way.messages for _, way in lot.members] for lot in found]

    assert sorted(chain(*sizes)) == (sorted(filter(None, counts)) if sum(counts) >= MESSAGES_MIN else [])
    assert all(sum(lot) >= MESSAGES_MIN for lot in sizes)
    assert all(len(lot) == 1 for lot in sizes[:-1] if lot[0] >= MESSAGES_MIN)


def differing(*differences, looks=1):
    """A link that is right by now, but was not."""
    return held(differed=looks, differences=differences)


def test_a_trace_that_falls_behind_is_one_finding_for_each_direction():
    """However many rates were held instead of others."""
    said = series_of(WELL, WELL)
    for number, name in enumerate(WORKERS[:3], start=1):
        ways = [f"{way}: the kernel holds {number}mbit, asked {number + 3}mbit" for way in ("uplink", "downlink")]
        said.links[name] = (differing(*ways[:number], looks=10), differing(*ways[:number], looks=number))
    said.links["edge-3"] = (held(),)
    up, down = judge(plan_of(link=TEN_MBIT), said).reasons

    assert up.startswith("link: the uplink of 3 of 4 nodes of edge was not as asked in up to 13 looks")
    assert "(edge-0: the kernel holds 1mbit, asked 4mbit)" in up
    assert down.startswith("link: the downlink of 2 of 4 nodes of edge")


def test_an_mtu_that_another_life_found_is_a_difference():
    """What was changed while the node was away it would take for what was asked."""
    said = series_of(WELL, WELL)
    said.links["edge-1"] = (held(), held(mtu=400))
    said.links.update({name: (held(mtu=1450), held(mtu=1450)) for name in WORKERS if name != "edge-1"})
    (reason,) = judge(plan_of(link=TEN_MBIT), said).reasons

    assert reason.startswith(
        "link: the MTU of edge-1 was not as asked in one look (edge-1: the interface takes packets of 400 bytes, in an "
        "earlier life of 1,500)"
    )


def test_latency_before_the_first_byte_and_behind_it_add_up():
    """The sender tells the one, whoever receives the other: the least of all their lives; None: nobody could tell."""
    received = [transfers(delay_s=delay_s) for delay_s in (0.0011, 0.0003)]
    sent = [transfers(messages=0, asked_s=0.0, delay_s=delay_s) for delay_s in (0.0207, 0.025)]
    only_sent = transfers(direction="down", messages=0, asked_s=0.0, delay_s=0.02)
    (row,) = [row for row in judge(plan_of(), series_of([*received, *sent, only_sent])).nodes if row.node == "edge-0"]

    assert (row.uplink.delay_s, row.downlink.delay_s) == (pytest.approx(0.021), None)


# --- CPU, memory, host ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpus", [0.02, 0.05, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("had", "verdict"), [(0.49, "degraded"), (0.85, "degraded"), (0.95, "trusted")])
def test_a_share_of_what_was_promised_is_missing_however_small_the_cap(cpus, had, verdict):
    """A quota above the nodes' own, say: they used so much of their caps, were hardly throttled, and waited."""
    before, after = (
        Reading(t, cpu_s=had * cpus * t, waited_s=0.9 * t, absorbed_s=0.0, throttled_s=0.002 * t, throttled_periods=0)
        for t in (0.0, 20.0)
    )
    measured = add_window(records.Usage(time_s=0.0, cpu_s=0.0), cpus, before, after)

    assert measured.starved_s == pytest.approx(20.0 * (1.0 - had))
    assert verdict_on(plan_of(cpus=cpus), msgspec.structs.replace(measured, cpus_held=cpus))[0] == verdict


def test_a_capped_node_that_waits_a_moment_whenever_it_wakes_up_misses_nothing():
    """A fiftieth of a core, half of it used, and a thousandth of the time waited: a twentieth of the cap."""
    before, after = (
        Reading(t, cpu_s=0.01 * t, waited_s=0.001 * t, absorbed_s=0.0, throttled_s=0.0, throttled_periods=0)
        for t in (0.0, 20.0)
    )
    measured = add_window(records.Usage(time_s=0.0, cpu_s=0.0), 0.02, before, after)

    assert measured.starved_s == pytest.approx(0.02)
    assert verdict_on(plan_of(cpus=0.02), msgspec.structs.replace(measured, cpus_held=0.02)) == ("trusted", [])


def test_one_node_may_be_worse_than_the_mean_but_not_much():
    """A fifth of the training is too much for any."""
    said = series_of([usage(starved_s=0.0)], [usage()])
    said.usage["edge-1"] = (usage(starved_s=3.9),)
    assert judge(plan_of(cpus=1.0), said).verdict == "trusted"
    said.usage["edge-1"] = (usage(starved_s=4.1),)
    assert judge(plan_of(cpus=1.0), said).verdict == "degraded"


def test_the_evaluator_is_not_judged():
    """Watching is no condition of the experiment."""
    plan = plan_of(cpus=1.0)
    said = series_of([usage()], [usage()])
    said.usage["evaluator"] = (usage(starved_s=19.0),)

    assert judge(plan, said).verdict == "trusted"


# --- records ----------------------------------------------------------------------------------------------------------


def read_back(tmp_path_factory, entries, plan):
    """The verdict on a journal with these entries, in seconds since training began."""
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many([(10.0, "controller", trial()), *((10.0 + t, node, each) for t, node, each in entries)])
    return judge(plan, Series.from_journal(path))


@pytest.mark.parametrize("second", [(2.0, 12.0), (10.0, 30.0)], ids=["shorter", "as long, but later"])
def test_a_node_that_was_started_anew_counts_with_both_lives(tmp_path_factory, second):
    """Cumulative figures begin at 0 again; the later ones of one life replace the earlier."""
    time_s, t = second
    entries = [
        (4.0, "edge-0", usage(time_s=4.0, cpu_s=1.0, starved_s=0.0)),
        (6.0, "edge-0", usage(time_s=6.0, cpu_s=2.0, starved_s=1.0)),
        (t, "edge-0", usage(time_s=time_s, cpu_s=1.0, starved_s=1.0)),
    ]
    fidelity = read_back(tmp_path_factory, entries, plan_of(cpus=1.0))
    row = next(row for row in fidelity.nodes if row.node == "edge-0")

    assert (row.time_s, row.starved, row.cpus_measured) == (6.0 + time_s, 2.0 / (6.0 + time_s), 3.0 / (6.0 + time_s))


SPOKEN = [
    [
        ("edge-0", held()),
        ("edge-0", held(differed=1, differences=("uplink: other",), problem="uplink: other")),
        ("edge-0", held(differed=1, differences=("uplink: other",))),
    ],
    *(
        [(name, usage(time_s=float(t), cpu_s=0.2 * t, starved_s=0.3 * t, uplink_bytes=10**6 * t)) for t in (2, 4, 6, 8)]
        for name in (*WORKERS, "server")
    ),
    *(
        [("server", transfers(name, "up", messages=t, early=t - 1, asked_s=0.01 * t)) for t in (2, 6, 10)]
        for name in WORKERS
    ),
    [("edge-0", transfers(direction="up", messages=0, asked_s=0.0, delay_s=0.1 / t)) for t in (4, 5)],
    [("edge-0", transfers(direction="down", messages=t, asked_s=0.01 * t)) for t in (3, 7)],
    [("controller", host(busy=0.125 * t)) for t in range(1, 8)],
]
"""What each says of each thing, in its order."""


@given(data=st.data())
def test_the_order_in_which_nodes_are_heard_does_not_matter(tmp_path_factory, data):
    """They report in batches, late and interleaved, each in its own order."""
    turns = [index for index, said in enumerate(SPOKEN) for _ in said]
    left = [iter(said) for said in SPOKEN]
    mixed = [(float(9), *next(left[index])) for index in data.draw(st.permutations(turns))]
    plan = plan_of(link=TEN_MBIT, cpus=0.5)
    found = read_back(tmp_path_factory, mixed, plan)

    assert found == read_back(tmp_path_factory, [(9.0, *each) for said in SPOKEN for each in said], plan)
    assert found.verdict == "degraded"
