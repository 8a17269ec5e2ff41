"""What a scenario asks for and rules out itself: refused where a file says so, a doubt where an option made it so."""

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.planning.describe import describe_plan
from edgebed.planning.planning import plan_trials
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
    ("text", "message"),
    [
        (
            BASE + "evaluation: { every: 201 updates }\n",
            "s.yaml:9:22: evaluation.every: evaluations are to come every 201 updates, but the trial ends with update",
        ),
        (BASE + "evaluation: { every: 61s }\n", "9:22: evaluation.every: evaluations are to come every 1m1s, but"),
        (
            BASE + "expect: { updates: '>= 201' }\n",
            "s.yaml:9:20: expect.updates: updates >= 201 cannot be met: the trial ends with update 200; change the bo",
        ),
        (BASE + "expect: { updates: '== 201' }\n", "expect.updates: updates == 201 cannot be met"),
        (BASE + "expect: { updates: '> 200' }\n", "expect.updates: updates > 200 cannot be met"),
        (ROUNDS + "expect: { updates: '> 205' }\n", "expect.updates: updates > 205 cannot be met"),
        (ALONE + "expect: { updates: '< 200' }\n", "expect.updates: updates < 200 cannot be met: the trial ends with"),
        (BASE + "expect: { time_s: '>= 61s' }\n", "expect.time_s: time_s >= 61s cannot be met: the trial ends at 1m;"),
        (
            BASE.replace("updates: 200, time: 60s", "accuracy: 0.9") + "expect: { best_accuracy: '< 0.9' }\n",
            "best_accuracy < 0.9 cannot be met: the trial goes on until the accuracy is 0.9; change the bound",
        ),
        (
            BASE + "faults: [{ kill: hub-0, at_update: 201 }]\n",
            "s.yaml:9:36: faults.0.at_update: kill-1 comes at update 201, but the trial ends with update 200; let it",
        ),
        (ROUNDS + "faults: [{ kill: hub-0, at_update: 206 }]\n", "kill-1 comes at update 206, but the trial ends"),
        (
            BASE.replace("asgd", "{ preset: softsync, aggregation: { count: 20 } }")
            + "faults: [{ kill: hub-0, at_update: 220 }]\n",
            "kill-1 comes at update 220, but the trial ends",
        ),
        (
            BASE + "faults: [{ restart: server, at: 61s, name: late }]\n",
            "s.yaml:9:33: faults.0.at: late comes at 1m1s, but the trial ends at 1m; let it come sooner",
        ),
        (
            BASE + "faults: [{ churn: 3, at: 2m, for: 1m }]\n",
            "faults.0.at: churn-1 comes at 134.201s, but",
        ),
        (
            BASE + "faults: [{ kill: hub-0, before: push, step: 201 }]\n",
            "s.yaml:9:45: faults.0.step: kill-1 waits for push 201 of a worker, but the trial ends with update 200 of",
        ),
        (
            BASE + "faults: [{ thaw: phone, at: 5s }]\n",
            "s.yaml:9:18: faults.0.thaw: thaw-1 has nothing to thaw: no fault freezes its nodes before; add one, or",
        ),
        (BASE + "faults: [{ freeze: hub, at: 1s }, { thaw: phone, at: 5s }]\n", "faults.1.thaw: thaw-2 has nothing"),
        (BASE + "faults: [{ freeze: hub, at: 9s }, { thaw: hub, at: 5s }]\n", "faults.1.thaw: thaw-2 has nothing"),
        (
            BASE + "faults: [{ freeze: hub, at_update: 9 }, { thaw: hub, at_update: 5 }]\n",
            "faults.1.thaw: thaw-2 has nothing to thaw",
        ),
        (BASE + "faults: [{ freeze: hub, at: 1s }, { heal: hub, at: 5s }]\n", "faults.1.heal: heal-2 has nothing to h"),
        (
            BASE + "expect: { steps_lost: '== 0' }\n",
            "s.yaml:9:23: expect.steps_lost: 'asgd' has no steps_lost: workers have the whole model, and make no steps",
        ),
        (BASE + "expect: { steps_unexplained: '== 0' }\n", "'asgd' has no steps_unexplained"),
        *(
            (SHARDS + f"expect: {{ {measure}: '<= 10MB' }}\n", f"'back-propagation' has no {measure}: shards push no")
            for measure in ("ingress_bytes", "egress_bytes", "traffic_bytes")
        ),
        *(
            (SHARDS + f"expect: {{ {measure}: '== 0' }}\n", f"'back-propagation' has no {measure}: shards push no")
            for measure in ("updates_lost", "updates_unexplained")
        ),
    ],
)
def test_what_a_trial_rules_out_itself_is_refused_at_its_place(problems, text, message):
    """With what rules it out, and what to do."""
    (problem,) = problems(text)

    assert message in problem


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


@pytest.mark.parametrize(
    ("text", "option", "doubt"),
    [
        (
            BASE.replace("200", "900") + KILL,
            "stop.updates=100",
            "--set stop.updates=100: kill-1 comes at update 500, but the trial ends with update 100; let it come soon",
        ),
        (OPEN + KILL, "stop={updates: 100}", "--set stop={updates: 100}: stop.updates: kill-1 comes at update 500"),
        (BASE, "faults=[{thaw: hub, at: 5s}]", "--set faults=[{thaw: hub, at: 5s}]: faults.0.thaw: thaw-1 has nothing"),
        (
            BASE + "faults: [{ freeze: hub, at: 1s }, { thaw: hub, at: 5s }]\n",
            "faults.0.at=9s",
            "--set faults.0.at=9s: thaw-2 has nothing to thaw",
        ),
        (
            BASE + "evaluation: { every: 150 updates }\n",
            "stop.updates=100",
            "--set stop.updates=100: evaluations are to come every 150 updates, but the trial ends with update 100",
        ),
        (BASE, "expect.updates='>= 500'", "--set expect.updates='>= 500': updates >= 500 cannot be met"),
        (
            BASE + "expect: { updates: '< 100' }\n",
            "stop.time=null",
            "--set stop.time=null: updates < 100 cannot be met: the trial ends with update 200",
        ),
    ],
)
def test_what_an_option_made_impossible_is_a_doubt_of_the_plan(load, text, option, doubt):
    """It runs, since a shortened run is worth having, and its verdict says what became of it."""
    (planned,) = plan_trials(load(text, option))

    (found,) = planned.warnings
    assert found.startswith(doubt)
    assert found in describe_plan(planned, runtime="simulation").warnings


@pytest.mark.parametrize(
    ("faults", "doubt"),
    [
        ("{ kill: hub, at: 60s }", "s.yaml:9:27: faults.0.at: kill-1 comes at 1m, when the trial ends"),
        ("{ kill: hub, at_update: 200 }", "kill-1 comes at update 200, but the trial ends with update 200"),
        ("{ churn: 3, at: 5s, for: 2m }", "faults.0.at: churn-1 goes on until 124.106s, but the trial"),
    ],
)
def test_what_comes_with_the_end_or_goes_on_beyond_it_is_doubted(load, faults, doubt):
    """It may be meant."""
    ((found,),) = load(f"{BASE}faults: [{faults}]\n").warnings.values()

    assert doubt in found


def test_a_fault_that_never_comes_costs_no_pushes(problems):
    """So that what waits for a push beyond the end is refused as well."""
    first, second = problems(BASE + "faults: [{ kill: hub, before: push, step: 300 }, { kill: hub, at: 2m }]\n")

    assert "faults.0.step: kill-1 waits for push 300" in first
    assert "faults.1.at: kill-2 comes at 2m" in second


def test_a_variant_that_rules_out_what_the_scenario_asks_for_is_named(problems):
    """What is wrong is in one of them alone."""
    text = BASE.replace("200", "900") + KILL + "variants: { long: {}, short: { stop: { updates: 100 } } }\n"

    (problem,) = problems(text)

    assert problem.startswith("s.yaml:9:36: faults.0.at_update: kill-1 comes at update 500, but the trial ends with up")
    assert problem.endswith("(in variant short)")


def test_a_variant_may_be_shorter_than_the_interval_of_evaluations_that_it_inherits(load):
    """Nothing that was asked for is left undone: the last model is measured. It is doubted all the same."""
    text = BASE + "evaluation: { every: 150 updates }\nvariants: { a: {}, b: { stop: { updates: 30 } } }\n"

    ((name, doubts),) = load(text).warnings.items()

    assert (name, len(doubts)) == ("b", 1)
    with pytest.raises(ScenarioError, match="evaluations are to come every 150 updates"):
        load(text.replace("b: { stop", "b: { evaluation: { every: 150 updates }, stop"))


def test_an_interval_that_was_chosen_is_doubted_where_it_is_the_default_too(load):
    """It is not refused: the resolved form of a scenario, which is one itself, has every default written out."""
    ((doubt,),) = load(BASE.replace("200", "100") + "evaluation: { every: 200 updates }\n").warnings.values()

    assert "evaluations are to come every 200 updates, but the trial ends with update 100" in doubt


def test_the_time_until_a_node_is_back_is_doubted_where_nothing_brings_one_back(load):
    """It is not refused, since anybody may do it by hand."""
    ((doubt,),) = load(BASE + "faults: [{ kill: hub-0, at: 2s }]\nexpect: { back_s: '<= 9s' }\n").warnings.values()

    assert "expect.back_s: no fault brings a node back" in doubt


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
