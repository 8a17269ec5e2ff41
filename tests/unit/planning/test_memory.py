"""What a node needs in a container: never below what was measured, and refused caps are named where they stand."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_plans import plan_of_role
from tasks import one_array

from edgebed.algorithms.registry import PRESETS
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Method, Part, Task, TensorLayout, TrainingPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.models.examined import Footprint
from edgebed.learning.models.footprint import footprint_of
from edgebed.planning.memory import MIB, Need, check_caps, mib_text, need_of, needs_of
from edgebed.planning.planning import plan_trials
from edgebed.planning.shard_memory import CONSTANT_COPIES
from edgebed.planning.warnings import HostCapacity, warnings_of
from edgebed.scenario.methods import family_of

ROOMY = HostCapacity(cpus=1000, memory_bytes=2**50)


IMAGES, LABELS = np.zeros((4, 1, 8, 8), np.uint8), np.zeros(4, np.uint8)
DATA = DataSet(name="d", train=(IMAGES, LABELS), test=(IMAGES, LABELS), outputs=10)
"""Only the size of an example matters."""


def preset(name, **aggregation):
    """A method as the plan has it, with these settings of its aggregation."""
    parts = {
        kind: Part(name=part["name"], settings={key: value for key, value in part.items() if key != "name"})
        for kind, part in PRESETS[name].items()
    }
    if aggregation:
        before = parts["aggregation"]
        parts["aggregation"] = Part(name=before.name, settings=before.settings | aggregation)
    return Method(name=name, parts=parts)


SOME = Footprint(kept=1000, widest=500)
FREE, SLOW = LinkPlan(), LinkPlan(downlink_bit_s=10**6)


def need(
    role, *, method="asgd", parameters=1000, examples=100, batch=10, workers=2, footprint=SOME, link=FREE,
    **aggregation,
):  # fmt: skip
    """What a node of `role` needs."""
    task = Task(
        model="small", inputs=one_array((1, 8, 8)), outputs=10, layout=(TensorLayout("w", (parameters,)),),
        batch_size=batch, gradient_time_s=0.01,
    )  # fmt: skip
    roles = [("server", "server"), ("evaluator", "evaluator"), *((f"edge-{k}", "worker") for k in range(workers))]
    nodes = tuple(
        plan_of_role(
            node=name, role=kind, device_class=kind, seed=1, task=task, method=preset(method, **aggregation),
            num_examples=0 if kind == "server" else examples, link=link if kind == "worker" else FREE,
        )
        for name, kind in roles
    )  # fmt: skip
    plan = TrainingPlan(scenario="s", trial="t", question="", seed=1, nodes=nodes)
    node = next(node for node in nodes if node.role == role)
    return need_of(node, plan, DATA, footprint).bytes


def test_a_server_needs_more_for_what_it_holds():
    """Pushes of a buffer, and a velocity, which a checkpoint has with eight bytes a number."""
    ten, twenty = (need("server", method="softsync", parameters=10**6, count=count) for count in (10, 20))
    assert twenty - ten >= 10 * 4 * 10**6
    plain, moving = (need("server", method="sync-sgd", parameters=10**6, momentum=m) for m in (0.0, 0.9))
    assert moving - plain >= (1 + 2) * 4 * 10**6


FLAT = sorted(name for name in PRESETS if family_of({"preset": name}) == "parameter-server")
SIZES = {
    "parameters": st.integers(1, 10**9),
    "examples": st.integers(1, 10**7),
    "batch": st.integers(1, 10**5),
    "workers": st.integers(1, 1000),
    "kept": st.integers(0, 10**8),
    "widest": st.integers(0, 10**8),
}


@pytest.mark.parametrize("grown", SIZES)
@given(data=st.data(), method=st.sampled_from(FLAT), role=st.sampled_from(["server", "evaluator", "worker"]))
def test_nothing_that_grows_lowers_a_need(grown, data, method, role):
    """A larger model, part, batch or fleet never fits where a smaller one does not."""
    given_sizes = {name: data.draw(sizes) for name, sizes in SIZES.items() if name != "workers"}
    given_sizes["workers"] = data.draw(st.integers(1, 20))
    larger = given_sizes | {grown: given_sizes[grown] + data.draw(st.integers(1, 50))}

    def needed(sizes):
        rest = {name: size for name, size in sizes.items() if name not in Footprint._fields}
        return need(role, method=method, footprint=Footprint(sizes["kept"], sizes["widest"]), **rest)

    assert needed(given_sizes) <= needed(larger)


def test_a_server_is_small_and_grows_with_its_workers():
    """It has no torch; per-parameter staleness counts for each parameter and worker, a round holds all its updates."""
    assert need("server") < 32 * MIB < 150 * MIB < need("worker")
    few, many = (need("server", method="adacomp", parameters=10**6, workers=workers) for workers in (2, 12))
    assert many - few >= 10 * 1.5 * 4 * 10**6
    few, many = (need("server", method="sync-sgd", parameters=10**6, workers=workers) for workers in (2, 12))
    assert many - few >= 10 * 4 * 10**6
    assert need("server", method="sync-sgd", parameters=10**6) > need("server", parameters=10**6)
    assert need("server", examples=10**6) == need("server")


@pytest.mark.parametrize(
    ("task", "method", "measured"),
    [
        ("{data: digits, model: small}", "asgd", {"server": 28, "evaluator": 150, "edge-0": 150}),
        ("{data: mnist, model: cnn}", "adacomp", {"server": 34, "evaluator": 188, "edge-0": 207}),
        ("{data: mnist, model: mlp}", "adacomp", {"server": 31, "evaluator": 168, "edge-0": 200}),
    ],
)
def test_a_need_is_at_least_what_was_measured_and_not_much_more(load, good, request, task, method, measured):
    """The lowest limits in MiB, found by halving, that real nodes of two workers lived under in a memory cgroup."""
    if "mnist" in task:
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("EDGEBED_DATA_DIR", str(request.getfixturevalue("data_dir")))
    (planned,) = plan_trials(load(good, f"task={task}", f"method={method}"))
    needs = needs_of(planned)

    for name, lowest in measured.items():
        assert lowest * MIB <= needs[name].bytes <= 1.15 * lowest * MIB, name


@pytest.mark.parametrize(
    ("sizes", "batch", "measured"),
    [
        ("model: transformer, width: 128, layers: 4, heads: 4", 16, {"evaluator": 235, "edge-0": 265}),
        ("model: gru, width: 128", 16, {"evaluator": 199, "edge-0": 184}),
    ],
)
def test_a_need_of_a_model_of_tokens_is_at_least_what_was_measured_and_not_much_more(
    load, good, sizes, batch, measured
):
    """Measured as the others, for texts of 128 tokens out of 65: many layers hold what few of them use at a time."""
    text = "{name: 'token_data:walk', places: 128, vocabulary: 65}"
    task = f"{{data: {text}, objective: next-token, batch_size: {batch}, {sizes}}}"
    (planned,) = plan_trials(load(good, f"task={task}", "method=asgd"))
    needs = needs_of(planned)

    for name, lowest in measured.items():
        assert lowest * MIB <= needs[name].bytes <= 1.16 * lowest * MIB, name


def test_activations_are_those_of_the_model_and_not_its_parameters(load, good):
    """A linear layer keeps its input, a ReLU its output: 64 inputs and 64 hidden values of 4 bytes for each example.

    The loss keeps ten scores of 4 bytes and a label of 8; of two examples together, a weight of 4. The widest operation
    is the first layer, from inputs to hidden values; its weights do not count.
    """
    (planned,) = plan_trials(load(good))

    assert footprint_of(planned.plan.nodes[0].task) == ((64 + 64) * 4 + 10 * 4 + 8 + 2, (64 + 64) * 4)


OWN_TABLES = """
import torch
from torch import nn

class Tabled(nn.Linear):
    def __init__(self, rows=0):
        super().__init__(64, 64)
        self.register_buffer("table", torch.zeros(rows, 64), persistent=False)

    def forward(self, x):
        return super().forward(x.flatten(1))

def plain():
    return nn.Sequential(Tabled(), nn.Linear(64, 10))

def tabled():
    return nn.Sequential(Tabled(4 * 2**10), nn.Linear(64, 10))
"""


def test_who_computes_with_a_models_constants_has_them_in_memory(load, good, tmp_path, monkeypatch):
    """A table of 1 MiB, with what it takes to receive it: on workers, evaluator, and the shard of its layer alone."""
    (tmp_path / "own_tables.py").write_text(OWN_TABLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    found = {}
    for method in ("asgd", "back-propagation"):
        for model in ("plain", "tabled"):
            text = good.replace("small\nmethod", f"own_tables:{model}\nmethod")
            (planned,) = plan_trials(load(text, f"method={method}"))
            found[method, model] = {name: need.bytes for name, need in needs_of(planned).items()}
        more = {name: size - found[method, "plain"][name] for name, size in found[method, "tabled"].items()}
        holders = ("evaluator", "edge-0", "edge-1") if method == "asgd" else ("evaluator", "edge-0")
        assert more == {name: CONSTANT_COPIES * MIB if name in holders else 0 for name in more}


@given(sizes=st.lists(st.integers(0, 200 * MIB), min_size=1, max_size=5))
def test_the_parts_of_a_need_add_up_to_it(sizes):
    """As they are written, each rounded by less than a MiB."""
    need = Need({f"part {k}": size for k, size in enumerate(sizes)})
    shown = {name: int(mib) for name, mib in re.findall(r"(part \d) (\d+)MiB", str(need))}

    assert f"{sum(shown.values())}MiB" == mib_text(need.bytes)
    assert all(abs(shown.get(name, 0) - size / MIB) < 1 for name, size in need.parts.items())


def test_a_model_that_cannot_be_trained_is_the_users_to_mend(load, good, tmp_path, monkeypatch):
    """It may take an input in evaluation, and raise in training."""
    (tmp_path / "own_untrainable.py").write_text(
        "from torch import nn\n\n\nclass Moody(nn.Linear):\n    def forward(self, x):\n        if self.training:\n"
        "            raise RuntimeError('not today')\n        return super().forward(x.flatten(1))\n\n\n"
        "def moody():\n    return Moody(64, 10)\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ScenarioError, match=r"own_untrainable:moody: it does not take the first batch .*: not t"):
        plan_trials(load(good.replace("small\nmethod", "own_untrainable:moody\nmethod")))


# --- caps that are too low -------------------------------------------------------------------------------------------


@pytest.fixture
def refusals(load, good):
    """`refusals(*sets, text)`: what is refused in docker."""

    def refusals(*sets, text=good):
        scenario = load(text, *sets)
        with pytest.raises(ScenarioError) as caught:
            check_caps(scenario, plan_trials(scenario))
        return caught.value.problems

    return refusals


def test_a_cap_below_the_need_is_refused_where_it_stands(refusals, good):
    """With what the node needs, what for, and what to do."""
    (problem,) = refusals(text=good.replace("256MiB", "128MiB"))

    assert problem.startswith("s.yaml:9:40: fleet.edge.memory: 128MiB is below the 165MiB that a worker of this task")
    assert "(torch 164MiB, model 1MiB)" in problem
    assert problem.endswith("; raise it, or run with --force")


def test_every_cap_is_looked_at_and_an_option_is_named(refusals):
    """Server and evaluator too."""
    problems = refusals("server.memory=16MiB", "evaluator.memory=64MiB", "fleet.edge.memory=100MiB")

    assert [problem.partition(": ")[0] for problem in problems] == [
        "--set server.memory=16MiB", "--set evaluator.memory=64MiB", "--set fleet.edge.memory=100MiB",
    ]  # fmt: skip


def test_the_same_cap_in_several_variants_is_refused_once_with_the_largest_need(refusals, good):
    """AdaComp's server remembers more than that of the others."""
    text = f"{good}server: {{ memory: 29MiB }}\nvariants: {{ a: {{ method: asgd }}, b: {{}} }}\n"
    task = "task={data: synthetic, model: cnn}"
    (problem,) = refusals(task, "fleet.edge.memory=null", text=text)
    (alone,) = refusals(task, "fleet.edge.memory=null", text=text.replace("a: { method: asgd }, ", ""))

    assert problem == alone


def test_the_cap_of_a_class_has_to_hold_its_largest_node(load, good):
    """Parts differ; the largest decides, and a cap of exactly its need will do."""

    def planned(cap):
        scenario = load(good, "task.split={dirichlet: 0.2}", f"fleet.edge.memory={cap}B", "fleet.edge.count=3")
        return scenario, plan_trials(scenario)

    _, (trial,) = planned(2**30)
    needs = needs_of(trial)
    workers = [needs[node.node].bytes for node in trial.plan.workers()]
    assert len(set(workers)) > 1

    check_caps(*planned(max(workers)))
    with pytest.raises(ScenarioError):
        check_caps(*planned(max(workers) - 1))


def test_force_warns_instead(load, good, capsys):
    """On standard error."""
    scenario = load(good, "fleet.edge.memory=128MiB")
    check_caps(scenario, plan_trials(scenario), force=True)

    assert "warning: --set fleet.edge.memory=128MiB: 128MiB is below the 165MiB" in capsys.readouterr().err


# --- what else may surprise in containers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "host", "warning"),
    [
        (("fleet.edge.cpus=2",), HostCapacity(cpus=2, memory_bytes=2**40), "the CPU caps add up to 4 cores"),
        (("fleet.edge.memory=10GiB",), HostCapacity(cpus=64, memory_bytes=2**30), "the memory caps add up to 20GiB"),
        (
            ("fleet.edge.memory=null",),
            HostCapacity(cpus=64, memory_bytes=400 * MIB),
            "the 4 nodes without a memory cap need 524MiB together, but this machine has 419 MB",
        ),
        (
            (),
            HostCapacity(cpus=64, memory_bytes=600 * MIB),
            "the 2 nodes without a memory cap need 195MiB together beside the memory caps of 512MiB",
        ),
        (("fleet.edge.memory=100MiB",), ROOMY, "memory cap of edge: 100MiB is below the 165MiB"),
        (("fleet.edge.compute_speed=2",), ROOMY, "a compute speed above 1 has no effect in the docker runtime"),
        (("task.gradient_time=9ms",), ROOMY, "task.gradient_time has no effect in the docker runtime"),
        (
            ("fleet.edge.count=99",),
            ROOMY,
            "101 containers are many for one machine: the docker runtime is meant for up to 100 nodes on each",
        ),
    ],
)
def test_what_may_surprise_in_containers_is_warned_of(load, good, sets, host, warning):
    """Each alone."""
    (planned,) = plan_trials(load(good, *sets))
    (warned,) = warnings_of(planned.plan, "docker", host, needs_of(planned))

    assert warning in warned


def test_caps_are_held_in_containers(load, good):
    """So nothing is said of them where they fit."""
    (planned,) = plan_trials(load(good, "fleet.edge.count=98"))

    assert list(warnings_of(planned.plan, "docker", ROOMY, needs_of(planned))) == []


def test_the_server_needs_more_where_links_are_slow():
    """Every worker's model may be on its way to it at the same time, not half of them."""
    size = 10**6

    free, shaped = (need("server", method="comp-asgd", parameters=size, workers=10, link=link) for link in (FREE, SLOW))

    assert shaped - free == 0.5 * 10 * 4 * size
