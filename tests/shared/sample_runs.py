"""Sample plans, journals and runs, as a small fleet would leave them."""

import numpy as np
from evaluated import MEASURES, evaluation
from node_plans import plan_of_role
from tasks import one_array

from edgebed.core import records
from edgebed.core.plan import Method, Part, Task, TensorLayout, TrainingPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run

WORKERS = ("edge-0", "edge-1", "phone-0", "phone-1")


def make_plan(
    trial="adacomp", expectations=(("final_accuracy", ">=", 0.9),), workers=WORKERS, question="Does it learn?"
):
    """A plan with a server, an evaluator and workers."""
    task = Task(
        model="small", inputs=one_array((1, 8, 8)), outputs=10, layout=(TensorLayout("w", (10, 64)),), batch_size=16,
        gradient_time_s=0.01,
    )  # fmt: skip
    method = Method(
        name=trial,
        parts={
            "aggregation": Part(name="asgd"),
            "compression": Part(name="none"),
            "local_work": Part(name="gradient-step"),
        },
    )
    roles = [("server", "server"), ("evaluator", "evaluator"), *((worker, "worker") for worker in workers)]
    nodes = tuple(
        plan_of_role(
            node=name, role=role, device_class=name.split("-")[0], seed=7, task=task, method=method,
            num_examples=300 if role == "worker" else 0, cpus=0.5 if name.startswith("phone") else None,
        )
        for name, role in roles
    )  # fmt: skip
    return TrainingPlan(scenario="sample", trial=trial, question=question, seed=7, measures=MEASURES, nodes=nodes,
                stop_updates=600, expectations=expectations)  # fmt: skip


def sample_entries(updates=600, push_bytes=2600, workers=WORKERS, reach=0.97, outcome="completed", seed=0):
    """The lines of a journal: joins, updates with rising accuracy, traffic, phases, an end."""
    draw = np.random.default_rng(seed)
    yield (
        0.0,
        "controller",
        records.Trial(scenario="sample", trial="x", seed=7, runtime="process", nodes=len(workers) + 2, parameters=640),
    )
    for name in ("server", "evaluator", *workers):
        yield 0.1, "controller", records.Node(name=name, state="joined")
    steps = dict.fromkeys(workers, 0)
    t = 1.0
    yield t, "evaluator", evaluation(version=0, accuracy=0.1, loss=2.3)
    for version in range(1, updates + 1):
        t += float(draw.exponential(0.01))
        worker = workers[int(draw.integers(len(workers)))]
        stale = min(version - 1, int(draw.poisson(len(workers) - 1)))
        loss = 2.3 * float(np.exp(-version / 150))
        yield t, "server", records.Update(
            worker=worker, incarnation=0, step=steps[worker], version=version, base=version - 1 - stale,
            staleness=stale, entries=push_bytes // 5, bits=push_bytes * 6, bytes=push_bytes, loss=loss,
            sent=2700,
        )  # fmt: skip
        steps[worker] += 1
        if version % 50 == 0:
            accuracy = reach - (reach - 0.1) * float(np.exp(-version / 90))
            yield t, "evaluator", evaluation(version=version, accuracy=accuracy, loss=loss)
    yield t, "server", records.Finished(version=updates, reason="updates")
    yield t, "server", records.Refused(peer="edge-0", code="finished", reason="no more updates")
    yield t, "server", records.Traffic(
        ingress_payload=updates * (push_bytes + 80), egress_payload=(updates + 4) * 2700 + 50,
        ingress_interface=updates * (push_bytes + 900), egress_interface=updates * 3500, interface="lo",
        pulls=updates + 4, pull_bytes=(updates + 4) * 2700,
    )  # fmt: skip
    for worker in workers:
        yield t, worker, records.Phases(
            steps=steps[worker], compute_s=steps[worker] * 0.012, encode_s=steps[worker] * 0.001,
            wait_s=steps[worker] * 0.004, pause_s=steps[worker] * 0.02,
        )  # fmt: skip
    yield t + 0.2, "evaluator", evaluation(version=updates, accuracy=reach, loss=0.1, final=True)
    yield t + 0.3, "controller", records.Ended(outcome=outcome, reason="stopped after 600 updates")


def write_sample_run(root, trials=None, scenario="sample"):
    """A run folder with a manifest, a scenario and the given {trial: entries}."""
    if trials is None:
        trials = {
            "asgd": sample_entries(push_bytes=40_000, reach=0.975),
            "adacomp": sample_entries(push_bytes=520, reach=0.97, seed=1),
        }
    folder = RunFolder.create(root, scenario)
    folder.write_scenario("name: sample\nquestion: Does it <learn> & when?\nseed: 7\n")
    folder.write_manifest(
        seed=7, runtime="process", command=["edgebed", "run", "sample.yaml"], trials=list(trials),
        scenario_file="sample.yaml", sets=["fleet.edge.count=2"],
    )  # fmt: skip
    for name, entries in trials.items():
        trial = folder.trial(name)
        trial.make(make_plan(name))
        with JournalWriter(trial.journal) as journal:
            journal.write_many(entries)
    return Run(folder)
