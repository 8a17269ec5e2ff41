"""What a scenario asks for and rules out itself: refused where a file says so, a doubt where an option made it so."""

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.scenario.load import load_scenario, resolved_yaml

BASE = """\
name: short
seed: 3
task: { data: digits, model: small }
method: asgd
fleet:
  phone: { count: 4 }
  hub: { count: 2 }
stop: { updates: 200, time: 60s }
"""
ROUNDS = BASE.replace("asgd", "sync-sgd")
OPEN = BASE.replace("updates: 200, ", "")
ALONE = BASE.replace(", time: 60s", "")
KILL = "faults: [{ kill: hub-0, at_update: 500 }]\n"
SHARDS = BASE.replace("small", "four-layer").replace("asgd", "back-propagation").replace("4", "1").replace("2 ", "1 ")


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        BASE.replace("200", "10"),  # the interval of evaluations that nobody chose
        BASE + "evaluation: { every: 200 updates }\nexpect: { updates: '>= 200', time_s: '<= 60s' }\n",
        SHARDS
        + "expect: { updates: '== 200', steps_lost: '== 0', steps_unexplained: '== 0', faults_missed: '== 0' }\n",
        BASE + "on_failure: restart\nexpect: { back_s: '<= 9s' }\n",
        BASE + "faults: [{ restart: hub, at: 2s }]\nexpect: { back_s: '<= 9s' }\n",
        BASE + "expect: { updates: '< 200' }\n",  # the time may end it before
        ROUNDS + "expect: { updates: '>= 205' }\n",  # the last round may go beyond
        ALONE + "expect: { updates: '== 200', best_accuracy: '> 0.5', updates_lost: '>= 1000' }\n",
        BASE.replace("time:", "accuracy: 0.5, time:") + "expect: { best_accuracy: '>= 0.9' }\n",
        BASE.replace("updates: 200, time: 60s", "accuracy: 0.9") + "expect: { final_accuracy: '< 0.9' }\n",
        OPEN + KILL + "evaluation: { every: 5000 updates }\n",
        ALONE + "faults: [{ kill: hub-0, at: 9h }]\n",
        BASE + "faults: [{ kill: hub-0, after: push, step: 200 }]\n",
        BASE + "faults: [{ kill: hub, before: push, step: 300 }, { cut: hub, at: 2s, for: 5s }]\n",  # pushes get lost
        BASE + "faults: [{ churn: 3, at: 5s, for: 50s }]\n",
        BASE + "faults: [{ freeze: hub, after: push }, { thaw: hub-1, at: 5s }]\n",
        BASE + "faults: [{ freeze: hub, at_update: 90 }, { thaw: hub, at: 1s }]\n",
        BASE + "faults: [{ freeze: { random: 1 }, at: 1s }, { thaw: { random: 1 }, at: 5s }]\n",
        BASE + "faults: [{ partition: [[server], [hub]], at: 1s }, { heal: hub-0, at: 5s }]\n",
        BASE + "faults: [{ flap: hub, at: 1s, for: 9s }, { heal: workers, at: 5s }]\n",
    ],
)
def test_what_can_be_is_neither_refused_nor_doubted(load, text):
    """Also where it is unlikely, or where chance, or what ends the trial first, decides."""
    scenario = load(text)

    assert scenario.warnings == {}


def test_what_an_option_made_impossible_is_a_doubt_of_the_plan(load):
    """It runs, since a shortened run is worth having, and its verdict says what became of it."""
    (planned,) = plan_trials(load(OPEN + KILL, "stop={updates: 100}"))

    (found,) = planned.warnings
    assert found.startswith("--set stop={updates: 100}: stop.updates: kill-1 comes at update 500")
    assert found in describe_plan(planned, runtime="simulation").warnings


def test_the_resolved_form_of_a_shortened_scenario_is_refused_as_a_file_and_can_be_gone_on_with(load, scenario_file):
    """There nobody can tell any more what an option brought in."""
    shortened = resolved_yaml(load(BASE.replace("200", "900") + KILL, "stop.updates=100"))

    with pytest.raises(ScenarioError, match="kill-1 comes at update 500"):
        load(shortened)
    assert load_scenario(scenario_file(shortened), resolved_from="").warnings == {}


def test_a_scenario_from_python_is_refused_with_the_key():
    """There are no lines."""
    given = {
        "name": "short",
        "task": {"data": "digits", "model": "small"},
        "method": "asgd",
        "fleet": {"hub": {}},
        "stop": {"updates": 10},
        "faults": [{"kill": "hub-0", "at_update": 50}],
    }

    with pytest.raises(ScenarioError, match=r"^faults\.0\.at_update: kill-1 comes at update 50"):
        load_scenario(given)


def test_a_program_may_have_the_last_model_alone_measured():
    """It lays settings together as options do, and nothing that it asks for is left undone."""
    given = {
        "name": "short",
        "task": {"data": "digits", "model": "small"},
        "method": "asgd",
        "fleet": {"hub": {}},
        "evaluation": {"every": "1h"},
        "stop": {"time": "10s"},
    }

    ((doubt,),) = load_scenario(given).warnings.values()

    assert doubt.startswith("evaluation.every: evaluations are to come every 1h, but the trial ends at 10s")
