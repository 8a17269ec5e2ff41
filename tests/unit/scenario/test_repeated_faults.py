"""Faults that are repeated: `every` beside `at`. How often, on whom, what is refused, and what the plan says of it."""

import json

import pytest
from tests.shared.plan_text import plan_text

from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.described import as_dict
from edgebed.reports.plan.description import describe_plan
from edgebed.scenario.load import resolved_yaml

BASE = """\
name: reboots
seed: 3
task: { data: digits, model: small }
method: asgd
fleet: { pi: { count: 12 } }
stop: { updates: 600, time: 30m }
faults: [%s]
"""
REBOOT = "{ restart: { class: pi, random: 1 }, at: 10m, every: 10m, delay: 45s }"
OPEN = BASE.replace(", time: 30m", "")


@pytest.fixture
def faults(load):
    """The plan's faults of one entry, by `(time in s, node)`."""

    def faults(entry, *sets, text=BASE):
        (planned,) = plan_trials(load(text % entry, *sets))
        return [(fault.trigger.at_s, fault.node) for fault in planned.plan.faults]

    return faults


@pytest.mark.parametrize(
    ("times", "text", "moments_s"),
    [
        ("at: 10m, every: 10m", BASE, [600, 1200]),  # the trial ends with the third
        ("at: 10m, every: 10m, until: 30m", BASE, [600, 1200, 1800]),
        ("at: 10m, every: 10m, until: 30m", OPEN, [600, 1200, 1800]),
        ("at: 0s, every: 7m, until: 20m", BASE, [0, 420, 840]),
        ("at: 10m, every: 10m, until: 10m", BASE, [600]),
        ("at: 10m", BASE, [600]),
        ("at: 100ms, every: 200ms, until: 900ms", BASE, [0.1, 0.3, 0.5, 0.7, 0.9]),
    ],
)
def test_a_fault_is_repeated_until_its_last_time_or_the_end_of_the_trial(faults, times, text, moments_s):
    """What is at `until` still comes; with the trial's end nothing begins."""
    found = faults(f"{{ cut: pi-0, for: 50ms, {times} }}", text=text)

    assert found == [(moment_s, "pi-0") for moment_s in moments_s]


def test_each_time_draws_its_nodes_anew_by_the_seed(faults):
    """One of twelve reboots every ten minutes; the first one is whom the entry without `every` draws."""
    often = REBOOT.replace("every: 10m", "every: 1m")
    found = faults(often)

    assert len(found) == 20
    assert len({node for _, node in found}) > 5
    assert found == faults(often)
    assert found != faults(often, "seed=4")
    assert found[:1] == faults(REBOOT.replace("every: 10m, ", ""))


@pytest.mark.parametrize("target", ["partition: [[server], [pi]]", "link: pi, uplink: 1mbit", "cpus: pi, to: 0.5"])
def test_any_kind_with_a_time_can_be_repeated(faults, target):
    """Its own `for` is how long each lasts."""
    found = faults(f"{{ {target}, at: 1m, every: 1m, until: 3m, for: 10s }}")

    assert found == [(moment_s, f"pi-{k}") for moment_s in (60, 120, 180) for k in range(12)]


def test_the_plan_says_how_often_and_the_resolved_form_is_the_same(load):
    """In a line of the terminal; with the interval for programs."""
    scenario = load(BASE % REBOOT.replace("delay", "until: 29m, delay"))
    (planned,) = plan_trials(scenario)
    described = describe_plan(planned)
    (row, *_) = json.loads(json.dumps(as_dict(described)))["faults"]

    assert "at 10m, then every 10m: 2 times, the last at 20m" in plan_text(described)
    assert row["every_s"] == 600.0
    assert plan_trials(load(resolved_yaml(scenario)))[0].plan.faults == planned.plan.faults


def test_the_plan_says_who_is_hit_when_at_the_first_few_moments(load):
    """Where each time draws its nodes anew; the others are in the sum."""
    (planned,) = plan_trials(load(BASE % REBOOT.replace("every: 10m", "every: 2m")))
    moments = [f"{fault.node} at {10 + 2 * k}m" for k, fault in enumerate(planned.plan.faults)]
    (line,) = (line for line in plan_text(describe_plan(planned)).splitlines() if "launch after" in line)

    assert f"{'; '.join(moments[:4])}; ..., in all " in line
    assert moments[4] not in line
