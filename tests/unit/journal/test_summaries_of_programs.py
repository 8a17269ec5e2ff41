"""Trials of programs as numbers: what they told, how they ended, what they sent; and which conditions did not hold."""

from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.program import Ends, OutputMeasure, Program, ProgramPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.programs.summary import summarise_programs
from edgebed.journal.series import Series

NAMES = ("hub-0", "home-0", "home-1")
LINK = LinkPlan(uplink_bit_s=5_000_000, latency_s=0.02)
KILL = FaultPlan(
    name="kill-1", node="home-0", trigger=Trigger(at_s=5.0),
    steps=(FaultStep(after_s=0.0, injection=Injection(node="home-0", action="kill")),),
)  # fmt: skip


def plan_of(*, ends: Ends = Ends(), **settings) -> ProgramsPlan:  # noqa: B008
    """A hub and two homes, which print a loss."""
    nodes = tuple(
        ProgramPlan(node=name, device_class=name.partition("-")[0], seed=1, index=0, rank=k, run=("app",), link=LINK)
        for k, name in enumerate(NAMES)
    )
    measures = (OutputMeasure(name="loss", pattern="loss=(.*)"), OutputMeasure(name="step", pattern="step (.*)"))
    program = Program(ends=ends, measures=measures)
    return ProgramsPlan(scenario="s", trial="program", question="", seed=1, nodes=nodes, program=program, **settings)


def exited(name: str, **how) -> tuple[float, str, records.Record]:
    """How a program ended, 20 s after all were ready."""
    return 22.0, "controller", records.Exited(name=name, **({"incarnation": 1, "code": 0} | how))


def state(t: float, name: str, state: str, incarnation: int = 1) -> tuple[float, str, records.Record]:
    """A node comes to a state."""
    return t, "controller", records.Node(name=name, state=state, incarnation=incarnation)


def used(t: float, name: str, time_s: float, sent: int, **more) -> tuple[float, str, records.Record]:
    """A node's own account."""
    fields = {"cpu_s": 1.0, "starved_s": 0.0, "downlink_bytes": 0, "memory_bytes": 9_000_000} | more
    return t, name, records.Usage(time_s=time_s, uplink_bytes=sent, **fields)


def joined(t: float, sent: int, round_trip_s: float) -> tuple[float, str, records.Record]:
    """What home-0's witness tells of its connection with the hub."""
    record = records.Connections(peer="hub-0", count=1, acked_bytes=sent, received_bytes=0, round_trip_s=round_trip_s)
    return t, "home-0", record


BEGIN = [
    *(state(1.0, name, "started") for name in NAMES),
    *(state(2.0, name, "ready") for name in NAMES),
    (
        2.0,
        "controller",
        records.Trial(
            scenario="s",
            trial="program",
            seed=1,
            runtime="process",
            nodes=3,
            parameters=0,
            runs_programs=True,
        ),
    ),
    *(state(2.0, name, "running") for name in NAMES),
]
HELD = [
    (2.0, name, records.Link(mechanism="tc", uplink_held=5_000_000, uplink_asked=5_000_000, delay="netem"))
    for name in NAMES
]
WELL = [*(used(21.5, name, 19.5, 400_000) for name in NAMES), *HELD]
LOOKS = [(21.6, "controller", records.Seen(name=name, time_s=19.5)) for name in NAMES]
QUIET = [
    (2.0 + t, "controller", records.HostLoad(busy=0.1, steal=0.0, load=0.1, lag_s=0.0, cores=8))
    for t in range(2, 21, 2)
]
END = [
    *(exited(name) for name in NAMES),
    *(state(22.0, name, "stopped") for name in NAMES),
    (22.0, "controller", records.Ended(outcome="completed", reason="all programs have ended")),
]


def series_of(path: Path, *entries: tuple[float, str, records.Record]) -> Series:
    """The series of a journal with these lines, in the order of their times."""
    with JournalWriter(path / "events.jsonl") as journal:
        for t, node, record in sorted(entries, key=lambda entry: entry[0]):
            journal.write(t, node, record)
    return Series.from_journal(path / "events.jsonl")


def measured(t: float, name: str, **values: float) -> tuple[float, str, records.Record]:
    """A line of output."""
    return t, name, records.Measured(measured=values)


def test_what_output_told_is_known_at_last_at_least_and_at_most_whichever_node_told_it(tmp_path):
    """The last is that of the latest line, of any node."""
    told = [
        measured(3.0, "home-0", loss=2.0, step=1),
        measured(5.0, "home-1", loss=0.5),
        measured(4.0, "hub-0", loss=9),
    ]
    summary = summarise_programs(plan_of(), series_of(tmp_path, *BEGIN, *told, *END))

    assert summary.final == {"loss": 0.5, "step": 1.0}
    assert (summary.min["loss"], summary.max["loss"]) == (0.5, 9.0)
    assert [summary.value(name) for name in ("final_loss", "min_loss", "max_loss", "max_step")] == [0.5, 0.5, 9.0, 1.0]
    assert summary.value("final_nothing") is None
    assert summary.time_s == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("ends", "how", "code"),
    [
        (Ends(), {}, 0),
        (Ends(), {"code": 3}, 3),
        (Ends(), {"code": None, "signal": "SIGSEGV"}, 139),
        (Ends(kind="class", of="hub"), {"code": 3}, 0),
        (Ends(kind="class", of="home"), {"code": 3}, 3),
        (Ends(), {"code": 3, "asked": True}, 0),
    ],
)
def test_the_exit_code_is_the_highest_of_those_that_decide_and_were_not_ended_on_purpose(tmp_path, ends, how, code):
    """A signal's is that which a shell tells."""
    entries = [entry for entry in END if not (isinstance(entry[2], records.Exited) and entry[2].name == "home-1")]
    summary = summarise_programs(plan_of(ends=ends), series_of(tmp_path, *BEGIN, exited("home-1", **how), *entries))

    assert summary.exit_code == code


def test_restarts_bytes_and_memory_are_those_of_all_lives(tmp_path):
    """Each life has a witness of its own, which counts anew, whatever the life before had used."""
    lives = [
        used(6.0, "home-0", 4.0, 100_000), joined(6.0, 100, 0.001),
        (7.0, *exited("home-0", code=None, signal="SIGKILL")[1:]), state(7.0, "home-0", "died"),
        state(8.0, "home-0", "started", 2),
        state(8.0, "home-0", "ready", 2), used(12.0, "home-0", 3.0, 40_000, cpu_s=2.0), joined(12.0, 50, 0.003),
    ]  # fmt: skip
    series = series_of(tmp_path, *BEGIN, *lives, *END)
    summary, seen = summarise_programs(plan_of(), series), series.programs.connections["home-0", "hub-0"]

    assert (seen.count, seen.acked_bytes, seen.round_trip_s) == (2, 150, 0.001)
    assert series.programs.sent.value.tolist() == [100_000, 140_000]
    assert (summary.restarts, summary.nodes_died) == (1, 1)
    assert summary.memory_peak_bytes == 9_000_000
    assert summary.traffic_bytes == 140_000


def test_expectations_are_judged_and_what_never_came_or_was_left_out_is_said(tmp_path):
    """A measure without a line, output that was too much, values that are none, a program that failed."""
    kept = (21.9, "home-0", records.Output(bytes=10**8, left_out_bytes=3 * 10**7, dropped=5, unusable=1))
    failed = [exited("home-1", code=1)]
    entries = [entry for entry in END if not (isinstance(entry[2], records.Exited) and entry[2].name == "home-1")]
    plan = plan_of(expectations=(("final_loss", "<=", 1.0), ("exit_code", "==", 0.0), ("final_step", ">", 1.0)))
    told = measured(3.0, "hub-0", loss=0.5)
    summary = summarise_programs(plan, series_of(tmp_path, *BEGIN, told, kept, *failed, *entries))

    assert [each.met for each in summary.expectations] == [True, False, False]
    assert not summary.met
    assert summary.warnings == (
        "home-1 ended with exit code 1",
        "no output told step: does its expression fit what is printed?",
        "of the output of home-0 30 MB between first and last are not kept",
        "5 measures of home-0 came too fast, and were dropped",
        "1 value of home-0 were no finite numbers",
    )


def test_why_no_page_told_a_measure_is_said(tmp_path):
    """By the first node that knows, and how many more there are; one that came is not named."""
    unread = {"loss": "it does not answer", "step": "it has no steps"}
    told = [(21.9, node, records.Output(bytes=0, unread=unread)) for node in NAMES[:2]]
    names = ("loss", "step", "speed")
    measures = tuple(OutputMeasure(name=name, pattern="", metric=name) for name in names)
    plan = msgspec.structs.replace(plan_of(), program=Program(measures=measures))
    summary = summarise_programs(plan, series_of(tmp_path, *BEGIN, measured(3.0, "hub-0", loss=0.5), *told, *END))

    assert summary.warnings == (
        "no page told step: it has no steps (hub-0 and 1 more)",
        "no page told speed: none was read",
    )


def verdict_of(tmp_path, *more, plan=None):
    """The verdict on a quiet trial, with some lines more."""
    fidelity = summarise_programs(plan or plan_of(), series_of(tmp_path, *BEGIN, *WELL, *LOOKS, *QUIET, *more, *END))
    assert fidelity.fidelity is not None
    return fidelity.fidelity


def test_a_quiet_trial_is_trusted_and_says_what_nobody_can_know(tmp_path):
    """Updates, staleness, times of messages."""
    fidelity = verdict_of(tmp_path)

    assert fidelity.lines == ("trusted",)
    assert any(remark.startswith("not known of a program: ") for remark in fidelity.remarks)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            (9.0, "home-0", records.Bypass(interface="eth0", bytes=5_000_000)),
            "bypass: 5 MB of home-0 passed its interface eth0",
        ),
        (
            (9.0, "home-0", records.Connections(
                peer="hub-0", count=1, acked_bytes=5, received_bytes=5, round_trip_s=0.001)),
            "latency: the smallest round trip between home-0 and hub-0 was 1 ms, where their links take 80 ms",
        ),
        ((9.0, "controller", records.Node(name="home-0", state="died")), "deaths: home-0 died unasked"),
    ],
)  # fmt: skip
def test_each_condition_that_did_not_hold_degrades(tmp_path, line, reason):
    """Traffic past the link, a latency that nobody made, a death that nobody asked for."""
    fidelity = verdict_of(tmp_path, line)

    assert fidelity.verdict == "degraded"
    assert any(text.startswith(reason) for text in fidelity.reasons), fidelity.reasons


@pytest.mark.parametrize(
    ("told", "passed"),
    [
        ([(6.2, 900), (8.0, 5_000), (9.5, 5_900)], ""),  # what was under way, once, and what came after the heal
        ([(6.2, 900), (8.0, 5_000), (8.8, 5_700)], "700 B"),
    ],
)
def test_what_reaches_a_node_that_is_cut_off_from_another_is_found(tmp_path, told, passed):
    """By their connections' own account; who was cut off from one alone was never away."""
    cut, heal = (
        (t, "controller", records.Fault(name="cut-1", action=action, target="home-0", peer="hub-0", asked_s=t))
        for t, action in ((6.0, "cut"), (9.0, "heal"))
    )
    lines = [joined(t, size, 0.1) for t, size in told]
    (path := tmp_path / "again").mkdir()
    series, fidelity = series_of(path, *BEGIN, cut, *lines, heal, *END), verdict_of(tmp_path, cut, *lines, heal)
    found = [text for text in fidelity.reasons if text.startswith("faults: the way between home-0 and hub-0 was cut")]

    assert [passed in text for text in found] == ([True] if passed else [])
    assert [each.away_s for each in series.faults] == [None, None]


def test_a_death_that_follows_from_a_planned_one_is_none_that_nobody_asked_for(tmp_path):
    """As a ring ends of which one is killed."""
    plan = plan_of(faults=(KILL,))
    killed = (
        7.0, "controller",
        records.Fault(name="kill-1", action="kill", target="home-0", asked_s=7.0, trigger="at 5s"),
    )  # fmt: skip
    follows = [
        (7.1, "controller", records.Exited(name="home-0", incarnation=1, signal="SIGKILL", asked=True)),
        (7.1, "controller", records.Node(name="home-0", state="died", incarnation=1, reason="SIGKILL on purpose")),
        (9.0, "controller", records.Exited(name="home-1", incarnation=1, code=1, consequence_of="home-0")),
        (9.0, "controller", records.Node(name="home-1", state="died", incarnation=1, reason="exit code 1")),
    ]
    fidelity = verdict_of(tmp_path, killed, *follows, plan=plan)

    assert not [reason for reason in fidelity.reasons if reason.startswith("deaths")]


def test_a_link_that_carried_nothing_while_others_did_is_a_remark(tmp_path):
    """Perhaps the program does not use it."""
    idle = [used(21.5, "home-1", 19.5, 0)]
    well = [entry for entry in WELL if entry[1] != "home-1" or not isinstance(entry[2], records.Usage)]
    series = series_of(tmp_path, *BEGIN, *well, *idle, *LOOKS, *QUIET, *END)
    fidelity = summarise_programs(plan_of(), series).fidelity

    assert fidelity is not None
    assert any(remark.startswith("idle link: nothing passed the link of home-1, ") for remark in fidelity.remarks)


@given(kept=st.integers(0, 40))
def test_a_journal_that_breaks_off_anywhere_has_numbers(tmp_path_factory, kept):
    """Unfinished, and its summary can be written and read."""
    entries = sorted([*BEGIN, *WELL, *LOOKS, *QUIET, measured(3.0, "hub-0", loss=1.0), *END], key=lambda each: each[0])
    summary = summarise_programs(plan_of(), series_of(tmp_path_factory.mktemp("cut"), *entries[:kept]))

    assert msgspec.json.decode(msgspec.json.encode(summary), type=type(summary)) == summary
    assert summary.outcome == ("completed" if kept >= len(entries) else "unfinished")


@pytest.mark.parametrize("told_first", ["ready", "launch"])
def test_a_program_is_back_when_it_is_ready_and_after_a_heal_at_once(tmp_path, told_first):
    """Whichever of a launch and the readiness that it brings is told first."""

    def done(t: float, action: str, node: str) -> tuple[float, str, records.Record]:
        return t, "controller", records.Fault(name=action, action=action, target=node, asked_s=t)

    ready_s, launch_s = (9.0, 9.1) if told_first == "ready" else (9.6, 9.1)
    entries = [
        done(5.0, "cut", "home-1"), done(6.0, "heal", "home-1"),
        done(7.0, "kill", "home-0"), state(7.1, "home-0", "died"), state(8.9, "home-0", "started", 2),
        state(ready_s, "home-0", "ready", 2), done(launch_s, "launch", "home-0"),
    ]  # fmt: skip
    faults = {each.record.action: each for each in series_of(tmp_path, *BEGIN, *entries, *END).faults}

    assert (faults["heal"].back_s, faults["heal"].away_s) == (0.0, 1.0)
    assert faults["launch"].back_s == pytest.approx(max(0.0, ready_s - launch_s))
    assert faults["launch"].away_s == pytest.approx(max(ready_s, launch_s) - 7.0)
