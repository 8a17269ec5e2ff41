"""What nodes tell against what was seen of them from outside: each difference, and what is none."""

import dataclasses

import pytest

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.verdict.effect_rules import EFFECT_RULES
from edgebed.journal.verdict.fidelity import _observed, judge
from edgebed.journal.verdict.seen_rules import NOBODY, SEEN_RULES, unread
from edgebed.journal.verdict.sightings import Sighting, Sightings

from .conftest import WELL, WORKERS, done, held, plan_of, series_of, with_faults

MB = 1_000_000
CAPPED = plan_of(cpus=0.1, memory_bytes=400 * MB)
OWN = records.Usage(
    time_s=100.0, cpu_s=10.0, cpus_held=0.1, memory_bytes=50 * MB, uplink_bytes=20 * MB, downlink_bytes=10 * MB,
    starved_s=0.0,
)  # fmt: skip


def seen(name="edge-0", **more):
    """The line that agrees with it."""
    fields = {
        "time_s": 100.0, "cpu_s": 10.0, "cpu_error_s": 0.2, "memory_bytes": 50 * MB, "uplink_bytes": 20 * MB,
        "uplink_error_bytes": 100_000, "downlink_bytes": 10 * MB,
    }  # fmt: skip
    return records.Seen(name=name, **(fields | more))


def reasons(*lines, reported=OWN, plan=CAPPED, faults=()):
    """Why a trial is degraded in which these lines were journaled, each beside the same account; and remarks."""
    found = {}
    for line in lines:
        found[line.name] = (*found.get(line.name, ()), Sighting(line, line, reported))
    series = with_faults(series_of(WELL, WELL), *faults)
    trial = _observed(plan, dataclasses.replace(series, seen=found, finished_t=100.0))
    findings = [finding for rule in SEEN_RULES for finding in rule(trial)]
    return tuple(tuple(each.text for each in findings if each.is_fault is fault) for fault in (True, False))


def test_what_agrees_degrades_nothing():
    """Within the error, within a twentieth, or within what may differ in any case."""
    assert reasons(seen()) == reasons() == ((), ())
    assert reasons(seen(cpu_s=10.69)) == ((), ())
    assert reasons(seen(uplink_bytes=21 * MB)) == ((), ())
    assert reasons(seen(memory_bytes=53 * MB)) == ((), ())
    little = records.Usage(time_s=1.0, cpu_s=0.2, starved_s=0.0, uplink_bytes=10_000)
    line = seen(time_s=1.0, cpu_s=0.29, cpu_error_s=0.0, uplink_bytes=70_000, uplink_error_bytes=0, memory_bytes=None)
    assert reasons(line, reported=little) == ((), ())


@pytest.mark.parametrize(
    ("differs", "text"),
    [
        ({"cpu_s": 10.9}, "10 s of CPU time, where its cgroup had 10.7 s to 11.1 s"),
        ({"cpu_s": 5.0}, "10 s of CPU time, where its cgroup had 4.8 s to 5.2 s"),
        ({"uplink_bytes": 22 * MB}, "20 MB on its uplink, where 21.9 MB to 22.1 MB passed the far end"),
        ({"downlink_bytes": 9 * MB}, "10 MB on its downlink, where 9 MB passed the far end"),
        ({"memory_bytes": 60 * MB}, "50 MB of memory at most, where its cgroup had had 60 MB"),
    ],
)
def test_what_a_node_tells_that_was_not_seen_so_is_named_with_both_figures(differs, text):
    """More or less than there was."""
    (reason,), _ = reasons(seen(**differs))

    assert reason.startswith(f"usage: edge-0 told {text}, as seen from outside; is its code")


def test_of_several_nodes_and_figures_the_worst_is_told():
    """With the number of the others."""
    (reason,), _ = reasons(*(seen(name, cpu_s=20.0 + (name == "edge-2"), uplink_bytes=22 * MB) for name in WORKERS))

    assert reason.startswith("usage: edge-2 told 10 s of CPU time, where its cgroup had 20.8 s to 21.2 s, as seen from")
    assert "and the figures of 3 more differ" in reason


def test_each_life_counts_and_what_was_not_told_or_not_read_does_not():
    """A node that lied and was restarted; one whose far end cannot be read; one that never told anything."""
    (reason,), _ = reasons(seen(cpu_s=20.0), seen(incarnation=2))
    hidden = seen(uplink_bytes=None, downlink_bytes=None, cpu_s=None, memory_bytes=None)
    series = dataclasses.replace(series_of(WELL, WELL), seen={"edge-0": (Sighting(seen(cpu_s=99.0)),)})

    assert "10 s of CPU time" in reason
    assert reasons(hidden) == ((), ())
    assert judge(CAPPED, series).reasons == ()


def test_what_was_set_from_outside_is_named_once_for_all_its_nodes():
    """A queue at the far end, and a cap: with how often it was seen."""
    limit = "link: a tbf of 400 kbit on what the node receives, at the far end of its link"
    cap = "CPU cap: its cgroup held 0.2 cores, where 0.1 cores had been set"
    found, _ = reasons(
        *(seen(name, differed=9, differences=(limit,)) for name in WORKERS),
        seen("server", differed=3, differences=(cap,)),
    )

    assert [text.partition("; so it was found")[0] for text in found] == [
        "CPU cap: server: its cgroup held 0.2 cores, where 0.1 cores had been set",
        "link: edge-0, edge-1 and 2 more: a tbf of 400 kbit on what the node receives, at the far end of its link",
    ]
    assert [text.rpartition(" in ")[2] for text in found] == [
        f"{looks} looks, five a second: find who did it" for looks in (3, 9)
    ]


def test_both_ends_of_a_link_have_one_mtu():
    """What the node tells of its own end; a far end that was not read is not compared."""
    links = series_of((*WELL, held(mtu=1450)), WELL)

    def found(**more):
        return judge(CAPPED, dataclasses.replace(links, seen={"edge-1": (Sighting(seen("edge-1", **more)),)})).reasons

    assert found(mtu=1450) == ()
    assert found(uplink_bytes=None) == ()
    assert found(mtu=400) == (
        "link: edge-1: the far end has an MTU of 400, the node's own 1,450; find who changed one",
    )


def quota(share, cpus=0.2, **more):
    """A quota above all nodes, used up for a share of the training."""
    return [
        seen(name, above="/sys/fs/cgroup/slice", cpus_above=cpus, above_s=100.0 * share, **more)
        for name in ("server", *WORKERS)
    ]


def test_a_quota_above_the_nodes_degrades_where_it_held_them_back():
    """Whatever the caps are: what counts is whether it ran out. One that might have is a remark."""
    (reason,), _ = reasons(*quota(0.48))
    nothing, (remark,) = reasons(*quota(0.04))

    assert reason == (
        "CPU cap: a quota of 0.2 cores on /sys/fs/cgroup/slice, above the cgroups of server, edge-0 and 3 more, was "
        "used up for 48 % of the training; their caps add up to 0.4 cores; raise it or take it away, or ask for fewer "
        "nodes"
    )
    assert nothing == ()
    assert remark.endswith("their caps add up to 0.4 cores; it was hardly ever used up")
    assert reasons(*quota(0.04, cpus=2.0)) == ((), ())
    assert reasons(*quota(0.48), plan=plan_of())[0] == ()


def test_what_could_not_be_seen_is_told_with_its_reason():
    """Of each node by itself; of all in a run that nobody looked at."""
    lines = {
        "edge-0": (Sighting(seen()),),
        "edge-1": (Sighting(seen("edge-1", unread=("far end: hidden", "caps: too"))),),
    }
    trial = _observed(CAPPED, dataclasses.replace(series_of(WELL, WELL), seen=lines))

    assert unread(trial) == {
        "server": NOBODY, "edge-1": "far end: hidden; caps: too", "edge-2": NOBODY, "edge-3": NOBODY,
    }  # fmt: skip


def test_faults_of_a_cap_are_no_difference():
    """The controller knows what it has set, and journals no difference: nothing is left to be judged here."""
    assert reasons(seen(cpus_held=0.05), faults=(done("cpus"),)) == ((), ())


def test_a_line_is_joined_to_the_account_that_it_was_made_for():
    """Of the same node and time, whatever else was told; a life whose last line has none keeps the one before."""
    fold = Sightings()
    for t, node, record in (
        (1.0, "edge-0", OWN),
        (1.1, "controller", seen()),
        (2.0, "edge-0", records.Usage(time_s=110.0, cpu_s=11.0)),
        (2.1, "controller", seen(time_s=111.0, differed=4)),
        (3.0, "edge-0", records.Usage(time_s=5.0, cpu_s=1.0)),
        (3.1, "controller", seen(time_s=5.0, incarnation=2, cpu_s=1.0)),
        (3.2, "controller", seen("edge-1", time_s=100.0)),
    ):
        fold.add(t, node, record)
    first, second = fold.by_node()["edge-0"]

    assert (first.reported, first.seen, first.last.differed) == (OWN, seen(), 4)
    assert (second.reported.cpu_s, second.seen.cpu_s) == (1.0, 1.0)
    (other,) = fold.by_node()["edge-1"]
    assert other[:3] == Sighting(seen("edge-1", time_s=100.0))[:3]
    assert [watch.lasted_s for watch in (*second.watches, *other.watches)] == [3.1, 3.2]
    assert not first.watches
    assert Series.empty().seen == {}


def effects(*lines, plan=CAPPED):
    """Why a trial is degraded by what was seen while faults held."""
    found = {line.name: (Sighting(line),) for line in lines}
    trial = _observed(plan, dataclasses.replace(series_of(WELL, WELL), seen=found, finished_t=100.0))
    return tuple(finding.text for rule in EFFECT_RULES for finding in rule(trial))


def test_who_is_frozen_or_cut_off_and_goes_on_is_found_from_outside():
    """By CPU time, by looks, by bytes; what is charged late, or was under way, is none."""
    well = {"frozen_s": 10.0, "frozen_cpu_s": 0.1, "frozen_looks": 50, "frozen_running": 1, "cut_s": 9.0}
    assert effects(seen(**well, cut_bytes=1_514)) == ()
    assert effects(seen(frozen_s=10.0, frozen_cpu_s=2.5, frozen_looks=50, frozen_running=50)) == (
        (
            "faults: edge-0 was frozen, and used 2.5 s of CPU time in 10.0 s and was found running in 50 of 50 looks "
            "all the same, as seen from outside; the freeze did not hold, or somebody ended it"
        ),
    )
    assert effects(seen(frozen_s=1.0, frozen_looks=5, frozen_running=2))[0].startswith(
        "faults: edge-0 was frozen, and was found running in 2 of 5 looks all the same"
    )
    assert effects(seen(cut_s=4.0, cut_bytes=9_000)) == (
        (
            "faults: the link of edge-0 was cut, and 9 kB came out of it all the same in 4.0 s, as seen from outside; "
            "the cut did not hold, or there is another way"
        ),
    )


@pytest.mark.parametrize(
    ("states", "is_found"),
    [
        ([(31.0, "died")], False),
        ([(29.5, "died")], False),
        ([(32.0, "started")], False),
        ([], True),
        ([(45.0, "died")], True),
        ([(26.0, "died"), (28.0, "running")], True),
    ],
)
def test_a_kill_after_which_the_node_does_not_end_is_found(states, is_found):
    """The end may be told a moment before the kill is, and some seconds after it."""
    series = with_faults(series_of(WELL, WELL), done("kill", asked_t=30.0))
    nodes = tuple((t, records.Node(name="edge-0", state=state)) for t, state in ((0.0, "running"), *states))
    trial = _observed(CAPPED, dataclasses.replace(series, nodes=nodes, finished_t=100.0))
    found = [finding.text for rule in EFFECT_RULES for finding in rule(trial)]

    assert found == ["faults: kill of edge-0 had no effect: its process did not end"] * is_found


@pytest.mark.parametrize(("times", "found"), [((5.2, 5.4, 5.9, 9.1), 0), ((5.9, 6.5, 7.0), 2)])
def test_updates_of_a_worker_that_is_cut_off_from_the_server_are_found(tmp_path, times, found):
    """But for what was under way, and one more; cut off from another node it may send the server what it likes."""
    for peer, count in (("server", found), ("edge-1", 0)):
        with JournalWriter(tmp_path / f"{peer}.jsonl") as journal:
            journal.write(0.0, "controller", records.Node(name="edge-0", state="running"))
            for t, action in ((5.0, "cut"), (9.0, "heal")):
                fault = records.Fault(name="cut-1", action=action, target="edge-0", peer=peer, asked_s=t)
                journal.write(t, "controller", fault)
            for k, t in enumerate(times):
                update = records.Update(
                    worker="edge-0", incarnation=1, step=k, version=k + 1, base=k, staleness=0, entries=4, bits=4,
                    bytes=4, loss=1.0,
                )  # fmt: skip
                journal.write(t, "server", update)
        trial = _observed(CAPPED, Series.from_journal(tmp_path / f"{peer}.jsonl"))

        assert trial.passed == ({("edge-0", "server"): f"{count} updates"} if count else {})
