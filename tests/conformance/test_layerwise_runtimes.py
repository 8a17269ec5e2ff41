"""Layer-wise training by one body of tests in every runtime."""

import functools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soaking
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from patiently import TooLateError, patiently
from torch import nn

from edgebed.core import records
from edgebed.journal.run_folder import RunFolder
from edgebed.learning.inputs import standardize
from edgebed.learning.models import registry as models
from edgebed.learning.shards.building import optimizer_of, task_layers
from edgebed.learning.trained import Trained
from edgebed.planning.planning import plan_trials
from edgebed.roles.layerwise.layer_shard import batch_of
from edgebed.running.results import Run, Trial
from edgebed.running.run import Options, host_of, plan_checked, run_trials
from edgebed.scenario.load import load_scenario

pytestmark = pytest.mark.timeout(300)  # of the first test in each runtime: all its trials

RUNTIMES = ("simulation", "process", "docker")


def of(runtime: str, *values: str, soak: bool = False):  # what pytest.param makes has no public name
    """A case in that runtime, with its marker."""
    names = (runtime, "soak") if soak else (runtime,)
    return pytest.param(runtime, *values, marks=[getattr(pytest.mark, name) for name in names])


SHARDS = ("edge-0", "edge-1", "edge-2", "edge-3")
STEPS = 40
SCENARIO: dict[str, Any] = {
    "name": "layers",
    "question": "Do all runtimes do the same?",
    "seed": 7,
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32, "gradient_time": "1ms"},
    "method": "back-propagation",
    "fleet": {"edge": {"count": 4}},
    "evaluation": {"every": "20 updates"},
    "checkpoints": {"every": "10 updates"},
    "stop": {"updates": STEPS},
    "deadlines": {"stall": "2m"},  # a busy machine takes long for four new containers
}
KILLS = [{"kill": shard, "at_update": 8 + 8 * k} for k, shard in enumerate(SHARDS)]
RESTARTED = {"on_failure": "restart", "restart_delay": "200ms"}


def said(method: str = "back-propagation", traffic: str = "direct", **more: Any) -> dict[str, Any]:
    """A variant's sections; `learning` are settings of the method's, `task` and `modules` those that differ."""
    learning, task, modules = more.pop("learning", {}), more.pop("task", {}), more.pop("modules", "beside")
    return {
        "method": {"preset": method, "learning": learning},
        "shards": {"traffic": traffic, "modules": modules},
        "task": SCENARIO["task"] | task,
        **more,
    }


TOKENS = {
    "data": "token_data:walk", "model": "transformer-untied", "width": 16, "layers": 2, "heads": 2,
    "objective": "next-token",
}  # fmt: skip
METHODS = ("synthetic-gradients", "synthetic-inputs", "decoupled-greedy", "direct-minimisation")
LIVE_METHODS = ("synthetic-inputs", "decoupled-greedy")
"""Those of which one has every message and the other the fewest; "apart" and "every-third" are synthetic gradients."""
IN_CONTAINERS: dict[str, dict[str, Any]] = {"killed": said(faults=KILLS[1:3], **RESTARTED)}
"""Containers hold the same nodes as processes do: one trial, in which two of them are killed."""
LIVE: dict[str, dict[str, Any]] = {
    "killed": said(faults=KILLS, **RESTARTED),
    "apart": said("synthetic-gradients", modules="apart"),
    "direct": said(),
    "store": said(traffic="store"),
    **{method: said(method) for method in LIVE_METHODS},
    "tokens": said(task=TOKENS),
    "greedy-tokens": said("decoupled-greedy", task=TOKENS),
    "every-third": said("synthetic-gradients", learning={"send_every": 3}, faults=KILLS[1:3], **RESTARTED),
}
SOAKED: dict[str, dict[str, Any]] = {
    "killed-store": said(traffic="store", faults=KILLS, **RESTARTED),
    "batch-store": said("synthetic-inputs", "store", learning={"match": "batch"}),
}
"""What the suite has in the simulation alone."""
SIMULATED = {
    **LIVE,
    **SOAKED,
    **{method: said(method) for method in METHODS},
    "batch-direct": said("synthetic-inputs", "direct", learning={"match": "batch"}),
    "squared": said(task={"objective": {"name": "classification", "loss": "squared-softmax"}}),
    "standardized": said(task={"inputs": "standardized"}),
    "recurrent-tokens": said(task=TOKENS | {"model": "gru", "heads": None}),
}
RUN_IN = {"simulation": SIMULATED, "process": SOAKED if soaking.SEED else LIVE, "docker": IN_CONTAINERS}
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-layerwise-")


@functools.cache
def trials(runtime: str) -> dict[str, Trial]:
    """All variants in that runtime; run once for all tests."""
    return run(runtime, RUN_IN[runtime])


def run(runtime: str, variants: dict[str, dict[str, Any]]) -> dict[str, Trial]:
    """These variants in that runtime, without a report."""
    options = Options(runtime=runtime, emulation="auto", trace=False, force=False)  # type: ignore[arg-type]
    planned = plan_checked(load_scenario(SCENARIO | {"variants": variants}), options)
    folder = RunFolder.create(Path(FOLDER.name) / runtime, SCENARIO["name"])
    with host_of(options, planned, processes=1, port=0) as host:
        run_trials(planned, folder, host, progress=None)
    return Run(folder).trials


def trial(runtime: str, variant: str = "direct", *, again: bool = False) -> Trial:
    """That variant in that runtime, which has come to its end; `again`: in a run of its own."""
    variants = {variant: RUN_IN[runtime][variant]}
    found = (run(runtime, variants) if again else trials(runtime))[variant]
    assert found.summary.outcome == "completed", found.summary.reason
    return found


def killed(found: Trial) -> list[str]:
    """Who was killed, in order of names."""
    return sorted(each.record.target for each in found.series.faults if each.record.action == "kill")


@functools.cache
def trained_whole(
    kind: str = "cross-entropy", *, standardized: bool = False, variant: str = "direct"
) -> NDArray[np.float32]:
    """The weights that a single process leaves, which knows nothing of shards."""
    (planned,) = plan_trials(load_scenario(SCENARIO | SIMULATED[variant]))
    node, data = planned.plan.workers()[0], planned.data
    layers = task_layers(node.task)
    theta = models.initial_parameters(node.task, planned.plan.seed)
    model = Trained(nn.Sequential(*(part for layer in layers for part in layer)), optimizer_of(node.method))
    model.begin(theta)
    for step in range(STEPS):
        batch = batch_of(node, step)
        inputs = torch.from_numpy(data.train.inputs[""][batch])
        if standardized:
            inputs = standardize(inputs)
        scores, labels = model(inputs), torch.from_numpy(data.train.targets[""][batch].astype(np.int64))
        scores, labels = scores.flatten(0, -2), labels.flatten()
        if kind == "squared":
            loss = (scores.softmax(dim=1) - F.one_hot(labels, 10)).square().sum() / len(scores)
        else:
            loss = F.cross_entropy(scores, labels)
        model.step(torch.autograd.grad(loss, model.parameters))
    return model.weights()


@pytest.mark.parametrize(
    ("runtime", "traffic"), [of(each, way) for each in ("simulation", "process") for way in ("direct", "store")]
)
def test_back_propagation_through_shards_is_that_of_one_process(runtime: str, traffic: str) -> None:
    """Bit for bit, running means included."""
    np.testing.assert_array_equal(trial(runtime, traffic).checkpoint(), trained_whole())


@pytest.mark.parametrize(
    ("runtime", "variant"),
    [of("simulation", "tokens"), of("simulation", "recurrent-tokens"), of("process", "tokens")],
)
def test_layers_of_tokens_leave_the_weights_of_one_process(runtime: str, variant: str) -> None:
    """Bit for bit, by back-propagation; the loss is that of each token, and its measures are those of the whole."""
    found = trial(runtime, variant)
    evaluations = found.series.evaluations

    np.testing.assert_array_equal(found.checkpoint(), trained_whole(variant=variant))
    assert evaluations.measured["perplexity"][0] == pytest.approx(12, rel=0.05)
    assert evaluations.measured["perplexity"][-1] < 0.9 * evaluations.measured["perplexity"][0]


@pytest.mark.parametrize("runtime", [of("simulation"), of("process")])
def test_layers_of_tokens_learn_by_heads_of_their_own(runtime: str) -> None:
    """Decoupled greedy learning: nothing comes down, and perplexity falls."""
    found = trial(runtime, "greedy-tokens")
    perplexity = found.series.evaluations.measured["perplexity"]

    assert found.summary.shards.steps_min == STEPS
    assert found.summary.accounting.problems == ()
    assert perplexity[-1] < 0.9 * perplexity[0]


def test_the_squared_loss_is_that_of_one_process() -> None:
    """Bit for bit; it is measured on the test set, too."""
    found = trial("simulation", "squared")
    np.testing.assert_array_equal(found.checkpoint(), trained_whole("squared"))

    assert found.summary.final["loss"] is not None
    assert 0.0 < found.summary.final["loss"] < 0.9  # that of equal scores
    assert (found.series.updates.loss <= 2.0).all()


def test_inputs_are_standardized_where_the_task_says_so() -> None:
    """Bit for bit what one process does; and otherwise than with inputs as they are."""
    weights = trial("simulation", "standardized").checkpoint()

    np.testing.assert_array_equal(weights, trained_whole(standardized=True))
    assert not np.array_equal(weights, trained_whole())


@pytest.mark.parametrize(
    ("runtime", "variant"),
    [
        of("simulation", "killed-store"),
        of("process", "killed-store", soak=True),
        *(of(each, "killed") for each in RUNTIMES),
    ],
)
def test_who_is_killed_goes_on_where_all_go_on(runtime: str, variant: str) -> None:
    """Once each: the same bits at the end, each step made once, and what was given up is marked."""
    doomed = [fault["kill"] for fault in RUN_IN[runtime][variant]["faults"]]

    def attempt(times: int) -> Trial:
        """A trial; the steps after a kill take less than half a second, and a controller may hear of them too late."""
        found = trial(runtime, variant, again=times > 1)
        if runtime != "simulation" and set(killed(found)) < set(doomed):
            raise TooLateError("all steps were made before the last kill")
        return found

    found = patiently(attempt)
    steps = [record for _, _, record in found.events() if isinstance(record, records.Step)]
    last = max(record.history for record in steps)

    assert killed(found) == sorted(doomed)
    np.testing.assert_array_equal(found.checkpoint(), trained_whole())
    assert found.series.shards.steps.keys() == set(SHARDS)
    assert all(made.tolist() == list(range(STEPS)) for made in found.series.shards.steps.values())
    assert last >= len(doomed) // 2  # who dies while others begin again goes on with them
    assert found.series.shards.steps_made >= len(SHARDS) * STEPS
    assert len(found.series.updates) == STEPS
    books = found.summary.accounting
    assert books.closes, books.problems
    assert (books.total.applied, books.total.unfinished) == (len(SHARDS) * STEPS, 0)
    assert (
        found.summary.shards.steps_lost
        == books.total.begun - books.total.applied
        >= found.summary.shards.steps_rolled_back
    )
    if runtime == "simulation":  # live, a kill may come while all wait for a checkpoint
        assert found.series.shards.steps_made > len(SHARDS) * STEPS
        assert found.summary.shards.steps_rolled_back > 0


@pytest.mark.parametrize(
    ("runtime", "method"),
    [*(of("simulation", each) for each in METHODS), *(of("process", each) for each in LIVE_METHODS)],
)
def test_every_method_comes_to_its_end(runtime: str, method: str) -> None:
    """All shards make all steps, and the model that they make together is measured."""
    found = trial(runtime, method)

    assert found.summary.shards.steps_min == STEPS
    assert found.summary.final["accuracy"] is not None
    assert found.summary.accounting.problems == ()
    assert (found.summary.shards.steps_begun, found.summary.shards.steps_lost) == (len(SHARDS) * STEPS, 0)
    assert found.series.evaluations.version.tolist() == [0, 20, STEPS]
    assert list(found.series.shards.module_losses) == ([] if method == "decoupled-greedy" else list(SHARDS[:-1]))
    assert list(found.series.shards.input_losses) == (list(SHARDS[1:]) if method == "synthetic-inputs" else [])
    for losses in (*found.series.shards.module_losses.values(), *found.series.shards.input_losses.values()):
        assert losses.step.tolist() == list(range(len(losses.step)))
        assert STEPS - 8 <= len(losses.step) <= STEPS  # the last ones may come too late to be told
        assert (losses.loss >= 0).all()


@pytest.mark.parametrize(
    ("runtime", "traffic"), [of("simulation", "direct"), of("simulation", "store"), of("process", "store", soak=True)]
)
def test_what_is_matched_by_batch_holds_nobody_up(runtime: str, traffic: str) -> None:
    """All shards make all steps, modules learn, and how far pairs were apart is told in whole epochs."""
    found = trial(runtime, f"batch-{traffic}")
    shard = found.plan.workers()[0].shard
    assert shard is not None
    batches = shard.batches

    assert (found.summary.shards.steps_min, found.summary.shards.steps_max) == (STEPS, STEPS)
    assert batches == found.plan.workers()[0].num_examples // 32
    assert (found.series.shards.lags % batches == 0).all()
    assert found.summary.shards.matched == len(found.series.shards.lags) > 0
    assert found.summary.shards.match_staleness_max == found.series.shards.lags.max() / batches


@pytest.mark.parametrize("runtime", [of("simulation"), of("process")])
def test_shards_above_make_the_steps_that_are_sent(runtime: str) -> None:
    """Every third, whoever is killed: each shard makes each of its steps once, and every mini-batch is an update."""
    found = trial(runtime, "every-third")
    made = {node: steps.tolist() for node, steps in found.series.shards.steps.items()}

    assert made == {node: list(range(0, STEPS, 3 if k else 1)) for k, node in enumerate(SHARDS)}
    assert (found.summary.shards.steps_min, found.summary.shards.steps_max) == (-(-STEPS // 3), STEPS)
    assert found.series.updates.version.tolist() == list(range(1, STEPS + 1))
    assert found.series.evaluations.version.tolist() == [0, 20, STEPS]


@pytest.mark.parametrize("runtime", [of("simulation"), of("process")])
def test_what_is_exchanged_is_counted(runtime: str) -> None:
    """Activations go up and gradients down, three times a step; a store doubles that, and is asked for each."""
    direct, store = trial(runtime, "direct"), trial(runtime, "store")
    up, down = (sum(direct.series.traffic_of[node].egress_payload for node in nodes) for nodes in (SHARDS, SHARDS[1:]))

    assert set(direct.series.traffic_of) == set(SHARDS)
    assert set(store.series.traffic_of) == {*SHARDS, "store"}
    assert up > down > 0
    assert direct.summary.shards.exchanged_bytes is not None
    assert store.summary.shards.exchanged_bytes is not None
    assert direct.summary.shards.exchanged_bytes < store.summary.shards.exchanged_bytes
    assert direct.summary.server is None, "nothing is pushed"


MESSAGES = {
    "direct": {"activation": 3, "gradient": 3},
    "store": {"activation": 6, "gradient": 6, "fetch": 6},
    "synthetic-gradients": {"activation": 3, "gradient": 3},
    "apart": {"activation": 6, "gradient": 6, "taken": 3},
}
"""What a step of four shards takes, by variant."""


@pytest.mark.parametrize(
    ("runtime", "variant"),
    [
        of(runtime, variant)
        for runtime in ("simulation", "process")
        for variant in MESSAGES
        if variant in RUN_IN[runtime]
    ],
)
def test_messages_a_step_are_those_of_the_method(runtime: str, variant: str) -> None:
    """By kind and by pair; what was sent last need not have come when all was over."""
    found, due = trial(runtime, variant).summary.shards, MESSAGES[variant]
    assert found
    pairs = {(each.source, each.target, each.message): each.count for each in found.exchanges}
    above = "store" if variant == "store" else "edge-1"

    assert found.messages_per_step_by_kind == pytest.approx(due, rel=0.07)
    assert found.messages_per_step == pytest.approx(sum(due.values()), rel=0.07)
    assert pairs["edge-0", above, "activation"] == STEPS
    assert sum(each.bytes for each in found.exchanges) == pytest.approx(found.exchanged_bytes, rel=0.07)
    if variant == "apart":
        assert pairs["edge-0", "modules", "activation"] == STEPS


@pytest.mark.parametrize("runtime", [of("simulation"), of("process")])
def test_the_model_is_as_fast_as_its_slowest_shard(runtime: str) -> None:
    """Steps a second of all of the training, from its start to its end, as the journal's own lines have it."""
    found = trial(runtime)
    made: Counter[str] = Counter()
    times: dict[type[records.Record], float] = {}
    for t, node, record in found.events():
        times[type(record)] = t
        made[node] += isinstance(record, records.Step)
    rates = {shard: made[shard] / (times[records.Finished] - times[records.Trial]) for shard in SHARDS}

    assert found.summary.shards.shard_steps_per_s == pytest.approx(rates)
    assert found.summary.shards.steps_per_s == pytest.approx(min(rates.values()))


@pytest.mark.parametrize("runtime", [of("simulation"), of("process")])
def test_where_the_time_of_each_shard_went_is_known(runtime: str) -> None:
    """All of it: work and waiting; the first shard waits for no inputs, the last for no gradient."""
    found = trial(runtime)
    phases = found.series.shards.phases
    shares = found.summary.shards.shard_phases

    assert phases.keys() == set(SHARDS)
    for shard, each in phases.items():
        assert min(each.forward_s, each.learn_s) > 0.0
        spent_s = sum(getattr(each, name) for name in each.__struct_fields__)
        times = found.series.shards.timed_steps[shard].t
        assert spent_s > 0.99 * (times[-1] - times[0])
        assert spent_s <= found.series.last_t + 1e-6
        assert sum(shares[shard].values()) == pytest.approx(1.0)
    assert phases["edge-0"].inputs_s == phases["edge-3"].answers_s == 0.0
    assert all(phases[shard].answers_s > 0.0 for shard in SHARDS[:-1])
    assert all(phases[shard].inputs_s > 0.0 for shard in SHARDS[1:])


def test_in_virtual_time_work_takes_what_it_was_counted_to_take() -> None:
    """All shards together take the 1 ms of a step: a third of it forward, the rest back."""
    phases = trial("simulation").series.shards.phases
    forward_s, learn_s = (sum(getattr(each, name) for each in phases.values()) for name in ("forward_s", "learn_s"))

    assert forward_s == pytest.approx(STEPS * 0.001 / 3, rel=1e-3)
    assert learn_s == pytest.approx(STEPS * 0.001 * 2 / 3, rel=1e-3)
