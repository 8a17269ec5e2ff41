"""Late messages: what else was asked for explains so many seconds of their time, and what is left is judged."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgebed.core.plan import Shard
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.verdict.fidelity import judge

from .conftest import LATE, MBIT, TEN_MBIT, WELL, WORKERS, held, host, plan_of, series_of, transfers, usage, verdict_on

PLAN = plan_of(link=TEN_MBIT, cpus=0.015)
THROTTLED = usage(cpu_s=0.3, throttled_s=15.0, cpus_held=0.015)
"""A node that its cap held back for three quarters of the training."""
BUSY = usage(cpu_s=19.0)


@pytest.mark.parametrize(
    ("cause", "seconds", "remark"),
    [
        ("throttled_s", 0.4, "a CPU cap held a device back for up to 4.0 ms of that"),
        ("busy_s", 0.4, "server computed for up to 4.0 ms of that"),
        ("repeated_s", 0.364, "packets that had come were sent again for up to 4.0 ms of that"),
        ("beside_s", 0.364, "other messages shared their links for up to 4.0 ms of that"),
    ],
)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_an_explanation_is_worth_the_time_that_it_took(cause, seconds, remark, direction):
    """As much as messages were late: a remark; a tenth of a second less: late, and what is left is named."""
    late = msgspec.structs.replace(LATE, direction=direction, **{cause: seconds})
    short = msgspec.structs.replace(LATE, direction=direction, **{cause: seconds - 0.1})
    enough, too_little = (judge(PLAN, series_of([THROTTLED, held(), each], [BUSY])) for each in (late, short))

    assert enough.verdict == "trusted"
    assert "took up to 20.0 ms, where 10.0 ms were asked: " in enough.remarks[0]
    assert remark in enough.remarks[0]
    assert too_little.causes == ("link",)
    assert "which leaves 1." in too_little.reasons[0]


def test_explanations_add_up():
    """Half of it by the cap, as both ends tell, and half by the server: the sender tells in a line without messages."""
    told = transfers(messages=0, asked_s=0.0, throttled_s=0.1)
    late = msgspec.structs.replace(LATE, throttled_s=0.1, busy_s=0.2)

    assert verdict_on(PLAN, THROTTLED, held(), late, told) == ("trusted", [])
    assert verdict_on(PLAN, THROTTLED, held(), late) == ("degraded", ["link"])


@pytest.mark.parametrize("took_ms", [157.0, 713.0])
def test_a_cap_excuses_no_link_at_a_tenth_of_its_rate(took_ms):
    """Pushes of 76 updates that were to take 37 ms, of nodes that were throttled for most of the time.

    Their caps took 56 ms of each push, as without anybody's doing.
    """
    pushes = transfers(messages=76, asked_s=76 * 0.037, share=took_ms / 37.0, throttled_s=76 * 0.056)
    quiet = transfers(messages=208, asked_s=208 * 0.037, share=93.0 / 37.0, throttled_s=208 * 0.056)

    assert verdict_on(PLAN, THROTTLED, held(), pushes) == ("degraded", ["link"])
    assert verdict_on(PLAN, THROTTLED, held(), quiet) == ("trusted", [])


def test_neither_a_busy_server_nor_its_shared_link_nor_a_throttled_node_excuses_by_being_there():
    """Where nothing of it fell on the messages: their amount is none."""
    plan = plan_of(link=TEN_MBIT, cpus=0.015, server={"link": TEN_MBIT, "cpus": 1.0})
    server = [usage(cpu_s=19.0, throttled_s=10.0, cpus_held=1.0), held()]

    assert judge(plan, series_of([THROTTLED, held(), LATE], server)).causes == ("link",)


EXCUSES = ("throttled_s", "busy_s", "beside_s", "repeated_s")
AMOUNTS = st.fixed_dictionaries({name: st.floats(0.0, 100.0) for name in EXCUSES})


@given(amounts=AMOUNTS, asked_s=st.floats(0.01, 10.0), messages=st.integers(5, 1000))
@example(amounts=dict.fromkeys(EXCUSES, 100.0), asked_s=0.01, messages=5)
def test_whatever_explains_lateness_there_is_one_that_is_too_much(amounts, asked_s, messages):
    """Lateness that grows while the amounts stay the same ends degraded, and stays so."""
    links_s = asked_s + amounts["beside_s"] + amounts["repeated_s"]
    ends_s = 1.1 * links_s + 0.005 * messages + amounts["throttled_s"] + amounts["busy_s"]

    def verdict(time_s):
        told = transfers(messages=messages, asked_s=asked_s, share=time_s / asked_s, **amounts)
        return verdict_on(PLAN, THROTTLED, held(), told)[0]

    assert verdict(0.999 * ends_s) == "trusted"
    assert verdict(1.001 * ends_s) == verdict(100.0 * ends_s) == "degraded"


def test_pairs_of_shards_have_their_own_amounts():
    """What a pair's messages met excuses no other pair's."""
    plan = plan_of(link=TEN_MBIT, shard=Shard(first=0, end=1))
    pairs = [msgspec.structs.replace(LATE, to=to, busy_s=0.4 * (to == "edge-1")) for to in ("edge-1", "edge-2")]
    fidelity = judge(plan, series_of([usage(), held(), *pairs]))

    assert fidelity.causes == ("link",)
    assert any("edge-1 computed for up to 4.0 ms of that" in remark for remark in fidelity.remarks)


# --- what the kernels of both ends saw --------------------------------------------------------------------------------


def acknowledged(took_ms, asked_ms=37.0, **more):
    """A sender's line: 100 messages that took so long to be acknowledged."""
    return transfers(
        messages=0,
        asked_s=0.0,
        unacknowledged=100,
        unacknowledged_s=took_ms / 10,
        unacknowledged_asked_s=asked_ms / 10,
        **more,
    )


@pytest.mark.parametrize(("took_ms", "causes"), [(48.0, []), (85.0, []), (86.5, ["link"]), (370.0, ["link"])])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_what_kernels_take_is_the_links_whatever_holds_nodes_back(took_ms, causes, direction):
    """A far end that limits as well: no cap is an excuse, since no process has a part in that time."""
    said = [
        acknowledged(took_ms, direction=direction),
        transfers(asked_s=3.7, share=20.0, throttled_s=100.0, direction=direction),
    ]
    verdict, found = verdict_on(PLAN, THROTTLED, held(), *said)

    assert (verdict, found) == ("degraded" if causes else "trusted", causes)


def test_what_kernels_take_is_told_with_figures_and_a_guess_is_called_one():
    """On an overloaded host it may be that; it is said once, not again by the times of messages."""
    said = [THROTTLED, held(), acknowledged(370.0), transfers(asked_s=3.7, share=20.0)]
    quiet, overloaded = (judge(PLAN, series_of(said, WELL, [load])) for load in (host(), host(busy=1.0)))

    assert len(quiet.reasons) == len(overloaded.reasons) == 1
    assert quiet.reasons[0].startswith(
        "link: pushes of all 4 nodes of edge were under way between the kernels of both ends for up to 370.0 ms, where "
        "37.0 ms were asked; "
    )
    assert "were asked, perhaps since the host was overloaded (cores busy 100 %" in overloaded.reasons[0]


def test_late_messages_that_the_kernels_had_in_time_are_not_the_links_fault():
    """Somebody handled them late; on an overloaded host perhaps because of that."""
    said = [usage(), held(), acknowledged(40.0), transfers(asked_s=3.7, share=20.0)]
    plan = plan_of(link=TEN_MBIT)

    assert judge(plan, series_of(said)).causes == ("handling",)
    assert judge(plan, series_of(said, WELL, [host(busy=1.0)])).causes == ("host CPU",)


def test_what_the_kernels_cannot_tell_from_an_acknowledgement_held_back_may_be_the_links():
    """A link at four tenths of its rate: 85 ms where 37 were asked, within what Linux may hold back."""
    plan = plan_of(link=TEN_MBIT)
    late = transfers(asked_s=3.7, share=2.3)

    for took_ms, cause in ((82.0, "link"), (60.0, "link"), (50.0, "handling"), (40.0, "handling")):
        assert judge(plan, series_of([usage(), held(), acknowledged(took_ms), late])).causes == (cause,)


def test_what_shares_a_link_is_allowed_for_between_kernels_as_well():
    """The server's downlink has all workers' pushes: what others' took is known to whoever received them."""
    received = transfers(asked_s=3.7, share=1.0, beside_s=30.0)

    assert verdict_on(PLAN, THROTTLED, held(), received, acknowledged(370.0)) == ("trusted", [])
    assert verdict_on(PLAN, THROTTLED, held(), received, acknowledged(450.0)) == ("degraded", ["link"])


@pytest.mark.parametrize(("took_ms", "verdict"), [(370.0, "trusted"), (450.0, "degraded")])
def test_what_is_still_on_its_way_at_the_end_is_allowed_as_much_as_what_came(took_ms, verdict):
    """Half of the messages have not come: what others took of those that came, they took of these as well."""
    received = transfers(messages=50, asked_s=1.85, share=1.0, beside_s=15.0)

    assert verdict_on(PLAN, THROTTLED, held(), received, acknowledged(took_ms))[0] == verdict


@pytest.mark.parametrize(("took_ms", "verdict"), [(190.0, "trusted"), (200.0, "degraded")])
def test_acknowledgements_stand_behind_packets_that_were_sent_again_on_their_way(took_ms, verdict):
    """The uplink's were the node's own: models' acknowledgements come after them."""
    models = [acknowledged(took_ms, direction="down"), transfers(asked_s=3.7, direction="down")]
    pushes = transfers(asked_s=3.7, repeated_s=10.0)

    assert verdict_on(PLAN, THROTTLED, held(), *models, pushes)[0] == verdict


@pytest.mark.parametrize(("took_ms", "verdict"), [(300.0, "trusted"), (310.0, "degraded")])
def test_acknowledgements_between_shards_stand_behind_what_both_sent_again(took_ms, verdict):
    """To each other: of each message's time, 110 ms one way and 110 ms the other."""
    plan = plan_of(link=TEN_MBIT, shard=Shard(first=0, end=1))
    said = [
        each
        for to in WORKERS
        for each in (acknowledged(took_ms, to=to), transfers(asked_s=3.7, to=to, repeated_s=10.0))
    ]

    assert judge(plan, series_of([usage(), held(), *said])).verdict == verdict


def test_a_netem_that_delays_acknowledgements_is_as_asked():
    """847 kB need five more round trips of 80 ms until all has left."""
    link = LinkPlan(uplink_bit_s=100 * MBIT, latency_s=0.04)
    received = transfers(messages=100, size=870_000, asked_s=11.0, latency_s=4.0)
    slow, fast = (acknowledged(took_ms, asked_ms=150.0) for took_ms in (700.0, 600.0))

    assert verdict_on(plan_of(link=link), usage(), held(link, delay="netem"), received, fast) == ("trusted", [])
    assert verdict_on(plan_of(link=link), usage(), held(link, delay="netem"), received, slow) == ("degraded", ["link"])
