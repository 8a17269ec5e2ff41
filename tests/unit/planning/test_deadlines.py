"""Deadlines follow from the slowest push of a plan, and one that the scenario gives is refused where no push fits."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.planning.checking import check
from edgebed.planning.deadlines import _passing_s, _up, check_deadlines
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

TOY = {
    "name": "toy",
    "seed": 1,
    "task": {"data": "digits", "model": "small", "batch_size": 32, "gradient_time": "580ms"},
    "fleet": {"a": {}, "d": {"compute_speed": 0.174174}},
    "stop": {"updates": 10},
}
"""Two devices of which one needs 20 steps of 3.33 s between two pushes."""
STEPS = {"preset": "fedbuff", "aggregation": {"count": 1}, "local_work": {"steps": 20}}


def scenario(method=STEPS, **more):
    """The toy with other sections."""
    return load_scenario(TOY | {"method": method} | more)


def deadlines(method=STEPS, **more):
    """Seconds of silence, of stall, and of work after which the first worker says that it works."""
    (planned,) = plan_trials(scenario(method, **more))
    workers = planned.plan.workers()
    return planned.plan.server.silence_s, planned.plan.stall_deadline_s, workers[0].working_s


@pytest.mark.parametrize(
    ("more", "silence_s"),
    [
        ({}, 200.0),
        ({"fleet": {"a": {}}}, 60.0),
        ({"fleet": {"a": {"waiting": "30s"}}}, 125.0),
        ({"fleet": {"a": {"waiting": {"uniform": ["0s", "30s"]}}}}, 125.0),
        ({"fleet": {"a": {"waiting": {"exponential": "10s"}}}}, 243.0),
        ({"fleet": {"a": {"cpus": 0.25}}}, 140.0),
        ({"fleet": {"a": {"uplink": "8kbit"}}}, 96.0),
        ({"fleet": {"a": {"count": 3}}, "server": {"uplink": "8kbit"}}, 217.0),
    ],
    ids=["speed", "a minute", "pause", "longest pause", "rare pause", "cap", "link", "shared link"],
)
def test_silence_and_stall_are_three_slowest_pushes_and_a_minute_at_least(more, silence_s):
    """With what computes, pauses and passes links; a worker speaks three times in that."""
    assert deadlines(**more) == (silence_s, silence_s, silence_s / 3)


def test_a_recorded_link_counts_by_its_slowest_stretch(tmp_path):
    """Good for four minutes, then hardly anything for more than two."""
    trace = tmp_path / "gap.csv"
    rates = [10.0] * 250 + [0.008] * 150
    trace.write_text("time_s,up_mbit,down_mbit\n" + "".join(f"{t},{rate},{rate}\n" for t, rate in enumerate(rates)))
    silence_s, _, _ = deadlines(fleet={"a": {"link_trace": str(trace)}})

    assert silence_s > 150.0


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.integers(1_000, 1_000_000)), min_size=2, max_size=6),
    st.integers(1, 100_000),
)
def test_the_slowest_stretch_is_that_of_the_worst_beginning(steps, size):
    """By going through the trace from each of its changes on; its mean is never slower."""
    times_s = [sum(lasts_s for lasts_s, _ in steps[:k]) for k in range(len(steps) + 1)]
    changes = [LinkChange(at_s=at_s, uplink_bit_s=rate) for at_s, (_, rate) in zip(times_s[:-1], steps, strict=True)]
    link = LinkPlan(uplink_bit_s=steps[0][1], period_s=times_s[-1], changes=tuple(changes))

    def lasts_s(begin_s):
        schedule, at_s, left = LinkSchedule(link), begin_s, 8.0 * size
        while left > 0:
            rate, until_s = schedule.at(at_s).uplink_bit_s, schedule.next_change_s(at_s)
            step_s = min(until_s - at_s, left / rate)
            is_over = step_s == left / rate
            left, at_s = (0.0, at_s + step_s) if is_over else (left - step_s * rate, until_s)
        return at_s - begin_s

    slowest_s = max(map(lasts_s, times_s[:-1]))
    assert _passing_s(size, link, _up, slowest=True) == pytest.approx(slowest_s, rel=1e-6)
    assert _passing_s(size, link, _up, slowest=False) <= slowest_s * (1 + 1e-9)


def test_a_buffer_that_needs_several_pushes_of_each_worker_may_take_as_long():
    """Six pushes of two workers: three of the slowest."""
    assert deadlines(STEPS | {"aggregation": {"count": 6}})[:2] == (200.0, 600.0)


def test_what_is_given_holds():
    """Also where it is less than what would follow; a worker says that it works within either."""
    given_s = deadlines(deadlines={"silence": "70s", "stall": "15s"})

    assert given_s == (70.0, 15.0, pytest.approx(15 / 3))


def refusal(runtime, method=STEPS, **more):
    """What is refused in a runtime; empty: nothing."""
    loaded = scenario(method, **more)
    try:
        check_deadlines(loaded, [planned.plan for planned in plan_trials(loaded)], runtime)
    except ScenarioError as error:
        return error.problems
    return ()


def test_a_silence_shorter_than_a_push_is_refused_with_class_and_seconds():
    """In virtual time, where a device's speed is known."""
    (problem,) = refusal("simulation", deadlines={"silence": "1m"})

    assert problem == (
        "deadlines.silence: a push of class d takes 66.6s in virtual time (computing 66.6s), but a worker that says "
        "nothing for 1m is taken to have left. Give 3m20s, or leave deadlines.silence out, and it is three times the "
        "slowest push"
    )
    assert refusal("process", deadlines={"silence": "1m"}) == ()


def test_a_pause_is_known_in_every_runtime():
    """And so are links, and devices by their name."""
    slow = {"fleet": {"a": {"waiting": "6s", "uplink": "1mbit"}}, "deadlines": {"silence": "4s"}}
    (problem,) = refusal("process", **slow)
    (named,) = refusal("docker", fleet={"a": {"speed": "1 MFLOP/s"}}, deadlines={"silence": "1s"}, task=COUNTED)

    assert "a push of class a takes at least 6.161s (pause 6s, push 161ms)" in problem
    assert "a push of class a takes at least " in named
    assert "computing" in named


COUNTED = {"data": "digits", "model": "small", "batch_size": 32}


@pytest.mark.parametrize(("method", "is_refused"), [("fedavg", True), ("fedbuff", False)])
def test_a_stall_is_refused_where_no_update_can_come_before(method, is_refused):
    """A round waits for the slowest worker; an asynchronous server has the fastest one's pushes, each 11.6 s."""
    each = {"preset": method, "local_work": {"steps": 20}}

    assert bool(refusal("simulation", each, deadlines={"stall": "15s"})) is is_refused
    assert bool(refusal("simulation", each, deadlines={"stall": "11s"}))


@pytest.mark.parametrize("pause", ["{}s", "{{uniform: [0s, {}s]}}", "{{exponential: {}s}}"])
def test_pauses_of_all_workers_beyond_a_stall_are_refused(pause):
    """Such a trial is ended for want of progress; one class that pauses less keeps it going."""
    slow, quick = ({"waiting": yaml.safe_load(pause.format(seconds))} for seconds in (21, 20))
    stall = {"task": TOY["task"] | {"gradient_time": "1ms"}, "deadlines": {"stall": "20100ms"}}

    assert refusal("process", fleet={"a": slow, "b": slow}, **stall)
    assert not refusal("process", fleet={"a": slow, "b": quick}, **stall)


def test_validate_refuses_it_where_it_is_written(tmp_path):
    """As it refuses all that `edgebed plan` does."""
    file = tmp_path / "slow.yaml"
    file.write_text(
        "name: slow\nseed: 1\ntask: { data: digits, model: small, batch_size: 10 }\nmethod: asgd\n"
        "fleet: { slow: { waiting: 6s } }\nstop: { updates: 5 }\ndeadlines: { silence: 4s }\n"
    )
    (problem,) = check(file).problems

    assert problem.startswith(f"{file}:7:23: deadlines.silence: a push of class slow takes 6.")


@settings(max_examples=20)
@given(
    speed=st.floats(0.01, 2.0),
    cpus=st.none() | st.floats(0.1, 1.0),
    pause_s=st.integers(0, 100),
    mean_s=st.integers(1, 50),
    kbit=st.integers(8, 1000),
    preset=st.sampled_from(["asgd", "fedavg", "fedbuff"]),
)
def test_what_follows_from_a_plan_always_fits(speed, cpus, pause_s, mean_s, kbit, preset):
    """Whatever devices, pauses and links: a deadline that is left out is never the one that would be refused."""
    fleet = {
        "a": {"compute_speed": round(speed, 3), "waiting": f"{pause_s}s"} | ({"cpus": round(cpus, 2)} if cpus else {}),
        "b": {"waiting": {"exponential": f"{mean_s}s"}, "uplink": f"{kbit}kbit", "downlink": f"{2 * kbit}kbit"},
    }
    silence_s, stall_s, _ = deadlines(preset, fleet=fleet)
    given_s = {"silence": f"{silence_s:.0f}s", "stall": f"{stall_s:.0f}s"}

    assert refusal("simulation", preset, fleet=fleet, deadlines=given_s) == ()
