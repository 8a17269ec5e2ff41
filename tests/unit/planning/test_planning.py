"""Planning: who gets which data, what a node is told, and the mistakes that only data and model can show."""

import json

import msgspec
import numpy as np
import pytest
from tests.shared.plan_text import plan_text

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Level
from edgebed.core.plan import Waiting
from edgebed.learning.data_sets.registry import load_data
from edgebed.planning.planning import plan_trials
from edgebed.planning.warnings import HostCapacity
from edgebed.reports.plan.described import as_dict
from edgebed.reports.plan.description import describe_plan
from edgebed.reports.plan.faults import fault_grid, fault_rows
from edgebed.reports.plan.page import labels_text

FLEET = """\
name: planned
question: Who gets what?
seed: 5
task: { data: digits, model: small, batch_size: 4 }
method: adacomp
fleet:
  slow: { count: 2, cpus: 0.5, memory: 256MiB, compute_speed: 0.5, waiting: { exponential: 20ms } }
  fast: { count: 1, waiting: { uniform: [0s, 1s] } }
server: { cpus: 1, memory: 1GiB }
evaluation: { every: 50 updates }
stop: { updates: 100, time: 30s, accuracy: 0.9 }
expect: { best_accuracy: ">= 0.8", ingress_bytes: "<= 1MB", time_s: "<= 1m" }
deadlines: { join: 10s, stall: 20s }
"""


@pytest.fixture
def plan(load):
    """Plans a text with `--set` options."""
    return lambda *sets, text=FLEET: plan_trials(load(text, *sets))


@pytest.fixture
def refusals(plan):
    """What is wrong with a plan; fails if nothing is."""

    def refusals(*sets, text=FLEET):
        with pytest.raises(ScenarioError) as caught:
            plan(*sets, text=text)
        return caught.value.problems

    return refusals


def test_the_nodes_are_server_evaluator_and_the_workers_in_the_order_of_the_fleet(plan):
    """Workers are called by class and index."""
    (planned,) = plan()

    assert [node.node for node in planned.plan.nodes] == ["server", "evaluator", "slow-0", "slow-1", "fast-0"]
    assert [node.role for node in planned.plan.nodes] == ["server", "evaluator", "worker", "worker", "worker"]
    assert list(planned.parts) == ["slow-0", "slow-1", "fast-0"]


def test_each_node_is_told_its_caps_its_speed_and_its_part(plan):
    """Nothing of the class is lost on the way into the plan."""
    (planned,) = plan()
    slow, fast, server = (planned.plan.node(name) for name in ("slow-1", "fast-0", "server"))

    assert (slow.cpus, slow.memory_bytes, slow.compute_speed, slow.device_class) == (0.5, 256 * 2**20, 0.5, "slow")
    assert Waiting(distribution="exponential", mean_s=0.02) == slow.waiting
    assert (None, None, 1.0, Waiting(distribution="uniform", high_s=1.0)) == (
        fast.cpus,
        fast.memory_bytes,
        fast.compute_speed,
        fast.waiting,
    )
    assert (server.cpus, server.memory_bytes, server.stop_updates, server.num_examples) == (1.0, 2**30, 100, 0)
    assert planned.plan.node("evaluator").evaluate_every_updates == 50


def test_a_node_is_told_nothing_that_only_other_roles_need(plan):
    """Neither as a field nor where its plan is written."""
    (planned,) = plan()
    written = {node["role"]: node.keys() for node in msgspec.json.decode(msgspec.json.encode(planned.plan.nodes))}

    assert "evaluate_every_updates" in written["evaluator"] - written["server"] - written["worker"]
    assert "waiting" in written["worker"] - written["server"] - written["evaluator"]
    assert "silence_s" in written["server"] - written["worker"] - written["evaluator"]
    assert not {"link", "shard"} & written["evaluator"]


def test_the_plan_holds_stop_deadlines_and_expectations_in_base_units(plan):
    """Seconds and bytes."""
    (planned,) = plan()

    assert (planned.plan.stop_updates, planned.plan.stop_time_s) == (100, 30.0)
    assert planned.plan.stop_level == Level("accuracy", 0.9)
    assert (planned.plan.join_deadline_s, planned.plan.stall_deadline_s) == (10.0, 20.0)
    assert {("best_accuracy", ">=", 0.8), ("time_s", "<=", 60.0), ("ingress_bytes", "<=", 1e6)} == set(
        planned.plan.expectations
    )


@pytest.mark.parametrize("split", ["iid", "{dirichlet: 0.3}", "{by-label: 4}"])
def test_parts_are_disjoint_and_what_the_nodes_are_told_of_them_is_true(plan, split):
    """Number of examples and of each label."""
    (planned,) = plan(f"task.split={split}")
    together = np.concatenate(list(planned.parts.values()))

    assert len(np.unique(together)) == len(together) <= len(planned.data.train.targets[""])
    for node in planned.plan.workers():
        labels = planned.data.train.targets[""][planned.parts[node.node]]
        assert len(labels) == node.num_examples == sum(node.label_counts)
        assert np.bincount(labels, minlength=10).tolist() == list(node.label_counts)


def test_a_fraction_uses_that_share_of_the_training_set_alone(plan):
    """Drawn from all of it, not its beginning; the test set is whole."""
    (planned,) = plan("task.fraction=0.25")
    together = np.concatenate(list(planned.parts.values()))
    total = len(planned.data.train.targets[""])

    assert int(total * 0.25) == len(together)
    assert together.max() > total // 2
    assert len(planned.data.test.targets[""]) == planned.plan.node("evaluator").num_examples


def test_variants_with_the_same_task_share_data_and_parts(plan):
    """So that their comparison is one of methods alone; the data is in memory once."""
    text = FLEET + "variants: { asgd: { method: asgd }, adacomp: {} }\n"
    first, second = plan("task.fraction=0.5", text=text)

    assert [first.plan.trial, second.plan.trial] == ["asgd", "adacomp"]
    assert first.data is second.data
    assert all(np.array_equal(first.parts[name], second.parts[name]) for name in first.parts)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(plan):
    """All that chance decides hangs on the seed."""
    (first,), (again,), (other,) = plan(), plan(), plan("seed=6")

    assert first.plan == again.plan
    assert all(np.array_equal(first.parts[name], again.parts[name]) for name in first.parts)
    assert not np.array_equal(first.parts["fast-0"], other.parts["fast-0"])


def test_tracing_is_told_to_every_node(load):
    """It is no part of the scenario."""
    (planned,) = plan_trials(load(FLEET), trace=True)

    assert all(node.trace for node in planned.plan.nodes)


@pytest.mark.parametrize("option", ["task.model=nowhere.nets:tiny", "task.data=nowhere.sets:tiny"])
def test_what_is_nowhere_is_refused_before_anything_starts(refusals, option):
    """With where it was looked for."""
    (problem,) = refusals(option)

    assert problem.startswith(f"--set {option}: {option.partition('=')[2]}: there is no module 'nowhere' in ")


def test_the_users_model_is_found_beside_the_scenario_file(plan, tmp_path):
    """And only such a plan names folders."""
    (tmp_path / "ownnets_for_planning.py").write_text(
        "from torch import nn\n\ndef tiny(outputs):\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))\n"
    )
    (own,) = plan("task.model=ownnets_for_planning:tiny")
    (built_in,) = plan()

    assert describe_plan(own).parameters == 650
    assert str(tmp_path) in own.plan.nodes[0].task.python_path
    assert built_in.plan.nodes[0].task.python_path == ()


def test_a_description_counts_what_is_asked_for_and_what_a_push_costs(plan):
    """Caps of all nodes together; a hundredth of each tensor's entries, at least one, with 8 bytes each."""
    description = describe_plan(plan()[0], host=HostCapacity(cpus=8, memory_bytes=2**34))

    assert (description.cpus, description.memory_bytes) == (2.0, 2**30 + 2 * 256 * 2**20)
    assert (description.parameters, description.model_bytes, description.num_workers) == (4810, 4 * 4810, 3)
    assert (description.push_entries, description.push_bytes) == (40 + 1 + 6 + 1, 8 * (40 + 1 + 6 + 1))
    assert len(load_data("digits", seed=5).train) == description.examples


def test_the_most_frequent_class_of_the_test_set_is_told(plan):
    """37 of the 359 test images of the digits are of one class, which who always says it has right."""
    (planned,) = plan()
    description = describe_plan(planned, host=HostCapacity(cpus=8, memory_bytes=2**34))
    counts = np.bincount(load_data("digits", seed=5).test.targets[""])

    assert description.most_frequent == (int(counts.argmax()), counts.max() / counts.sum())
    text = f"Most frequent class of the test set: {counts.argmax()}, accuracy of always saying it: 10.31 %"
    assert f"  {text}" in plan_text(description).splitlines()


def test_the_accuracy_of_a_sweep_is_in_the_plans_of_trials_that_stop_at_none(plan):
    """With its window; runs of the sweep itself stop there."""
    sweep = "sweep: { accuracy: 0.7, window: 4, over: { fleet.fast.count: [1, 2] } }\n"
    (without,) = plan("stop.accuracy=null", text=FLEET + sweep)
    (stops,) = plan(text=FLEET + sweep)

    assert without.plan.sweep_level == Level("accuracy", 0.7, 4)
    assert (stops.plan.sweep_level, stops.plan.stop_level) == (None, Level("accuracy", 0.9))


@pytest.mark.parametrize(("cpus", "text"), [(0.5, "Caps: 0.5 cores of 1, "), (1, "Caps: 1 core of 1, ")])
def test_one_core_is_no_cores(plan, cpus, text):
    """In the line of the caps."""
    capped = plan(f"fleet.slow.cpus={cpus}", "fleet.slow.count=1", "fleet.fast.cpus=null", "server.cpus=null")

    assert text in plan_text(describe_plan(capped[0], host=HostCapacity(cpus=1, memory_bytes=2**34)))


def test_a_description_of_a_dense_method_has_four_bytes_an_entry(plan):
    """No indices travel."""
    description = describe_plan(plan("method=asgd")[0])

    assert (description.push_entries, description.push_bytes) == (4810, 4 * 4810)


@pytest.mark.parametrize(
    ("option", "runtime", "host", "warning"),
    [
        ("fleet.slow.count=20", "process", HostCapacity(cpus=2, memory_bytes=2**40), "CPU caps add up to 11 cores"),
        (
            "fleet.slow.memory=10GiB",
            "process",
            HostCapacity(cpus=64, memory_bytes=2**30),
            "memory caps add up to 21GiB",
        ),
        ("seed=1", "process", HostCapacity(cpus=64, memory_bytes=2**40), "memory caps are not enforced"),
        ("seed=1", "process", HostCapacity(cpus=64, memory_bytes=2**40), "CPU caps are paced"),
        (
            "seed=1",
            "simulation",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "memory caps have no effect in the simulation",
        ),
        ("fleet.fast.compute_speed=2", "process", HostCapacity(cpus=64, memory_bytes=2**40), "a compute speed above 1"),
        (
            "task.gradient_time=9ms",
            "process",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "task.gradient_time has no effect",
        ),
        (
            "task.compression_time=1ms",
            "process",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "task.compression_time has no eff",
        ),
        (
            "restart_time.server=4ms",
            "process",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "restart_time has no effect",
        ),
        (
            "task.exchange_time=4ms",
            "docker",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "task.exchange_time has no effect",
        ),
        (
            "task.compression_time=1ms",
            "docker",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "task.compression_time has no eff",
        ),
        (
            "stop={updates: null, time: null}",
            "process",
            HostCapacity(cpus=64, memory_bytes=2**40),
            "only accuracy ends this trial",
        ),
        (
            "task.split.by-label=1",
            "simulation",
            HostCapacity(cpus=1, memory_bytes=1),
            "7 of 10 labels are with no worker",
        ),
        ("task.split.by-label=3", "process", HostCapacity(cpus=1, memory_bytes=1), "1 of 10 labels is with no worker"),
    ],
)
def test_what_may_surprise_is_warned_of(plan, option, runtime, host, warning):
    """Caps beyond the machine, and settings without effect in the runtime."""
    description = describe_plan(plan(option)[0], runtime=runtime, emulation="model", host=host)

    assert any(warning in text for text in description.warnings)


def test_caps_that_the_kernel_holds_are_not_warned_of(plan):
    """In processes too, where cgroups hold them."""
    roomy = HostCapacity(cpus=64, memory_bytes=2**40)

    assert describe_plan(plan()[0], runtime="process", emulation="kernel", host=roomy).warnings == ()


def test_a_plan_without_surprises_has_no_warnings(plan):
    """A warning that is always there is not read."""
    (planned,) = plan("fleet.slow.cpus=null", "fleet.slow.memory=null", "fleet.slow.compute_speed=1", "server=null")
    host = HostCapacity(cpus=1, memory_bytes=1)

    assert describe_plan(planned, runtime="simulation", host=host).warnings == ()
    assert describe_plan(planned, runtime="process", host=host).warnings == ()


def test_the_examples_of_all_workers_are_counted_against_the_training_set(plan):
    """A fraction, or labels with no worker, leaves some unused."""
    description = describe_plan(plan("task.fraction=0.5")[0])

    assert (description.examples, description.examples_total) == (719, 1438)
    assert "Workers: 3 with 719 of 1,438 examples" in plan_text(description)


def test_the_text_names_every_node_and_the_dict_is_json(plan):
    """The same facts for people and for programs."""
    description = describe_plan(plan()[0])
    text = plan_text(description)

    assert all(any(line.startswith(f"{row.node} ") for line in text.splitlines()) for row in description.nodes)
    assert "uniform 0s..1s" in text
    assert json.loads(json.dumps(as_dict(description)))["nodes"][2]["node"] == "slow-0"


@pytest.mark.parametrize(
    ("counts", "text"), [((1,) * 10, "0-9"), ((0, 3, 4, 0, 5), "1-2 4"), ((0, 0), "–"), ((2, 0, 2), "0 2")]
)
def test_labels_are_written_as_ranges(counts, text):
    """Only those that occur."""
    assert text == labels_text(counts)


BETWEEN = FLEET + "faults: [{ cut: { between: [slow, server] }, at: 1s, for: 2s, every: 5s }]\n"


def test_what_is_cut_between_two_is_told_in_a_row(plan):
    """However many there are on each side, and at however many moments."""
    (planned,) = plan(text=BETWEEN)
    (row,) = fault_grid(list(fault_rows(planned.plan))).rows

    assert row[1:] == (
        "at 1s, then every 5s: 6 times, the last at 26s", "cut, heal after 2s", "between slow-0..1 and server",
    )  # fmt: skip
    assert {node.node for node in planned.plan.nodes if getattr(node, "changeable", False)} == {
        "slow-0", "slow-1", "server",
    }  # fmt: skip


def test_nothing_can_be_cut_between_nodes_that_never_talk(refusals):
    """With who talks with whom."""
    (problem,) = refusals(text=BETWEEN.replace("server]", "fast-0]"))

    assert problem.endswith(
        "slow-0 and fast-0 send each other nothing: slow-0 talks with server alone, fast-0 with server alone. Name two "
        "that talk"
    )
