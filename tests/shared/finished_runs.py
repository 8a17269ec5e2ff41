"""Runs as `edgebed run` leaves them, of real scenarios and plans, with journals of chosen accuracies."""

from evaluated import evaluation

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder, write_atomically
from edgebed.planning.planning import plan_trials
from edgebed.running.results import Run
from edgebed.scenario.load import load_scenario, resolved_yaml

SCENARIO = {
    "name": "pair",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "fleet": {"edge": {"count": 2}},
    "evaluation": {"every": "100 updates"},
    "stop": {"updates": 300},
    "variants": {
        "asgd": {"method": "asgd"},
        "adacomp": {"method": {"preset": "adacomp", "compression": {"fraction": 0.1}}},
    },
}
RISING = (0.1, 0.9, 0.95, 0.98)


def finished_run(root, accuracies, *, seed=1, sets=(), scenario=SCENARIO, outcome="completed", loss=1.0, **manifest):
    """A run whose trials measured `accuracies[trial]` after 0, 100, ... updates.

    Of another task than a classification, each is a pair of all that was measured on the test and on the validation
    part. A push of ASGD has 100 bytes, any other 10. `accuracies` may leave out trials, which then did not
    begin; `manifest` are further options of `write_manifest`.
    """
    loaded = load_scenario(scenario, [f"seed={seed}", *sets])
    planned = plan_trials(loaded)
    folder = RunFolder.create(root, loaded.name)
    facts = {"runtime": "simulation", "options": {"runtime": "simulation"}, "code": "c0de", "sets": sets} | manifest
    folder.write_manifest(seed=seed, command=["edgebed"], trials=[trial.plan.trial for trial in planned], **facts)
    folder.write_scenario(resolved_yaml(loaded))
    for trial in planned:
        if trial.plan.trial in accuracies:
            place = folder.trial(trial.plan.trial)
            place.make(trial.plan)
            push_bytes = 100 if trial.plan.nodes[0].method.name == "asgd" else 10
            write_journal(place.journal, accuracies[trial.plan.trial], push_bytes, facts["runtime"], outcome, loss)
    return Run(folder)


def write_journal(path, accuracies, push_bytes, runtime="simulation", outcome="completed", loss=1.0):
    """100 updates between two evaluations, one each hundredth of a second; models of 30 bytes come down."""
    with JournalWriter(path) as journal:
        trial = records.Trial(scenario="pair", trial="x", seed=1, runtime=runtime, nodes=4, parameters=10)
        journal.write(0.0, "controller", trial)
        for place, accuracy in enumerate(accuracies):
            is_final = place == len(accuracies) - 1
            for version in range(100 * place - 99, 100 * place + 1) if place else ():
                journal.write(version / 100, "server", records.Update(
                    worker="edge-0", incarnation=0, step=version - 1, version=version, base=version - 1, staleness=0,
                    entries=push_bytes // 4, bits=8 * push_bytes, bytes=push_bytes, loss=loss, sent=30,
                ))  # fmt: skip
            evaluated = (
                records.Evaluated(100 * place, *accuracy, final=is_final)
                if isinstance(accuracy, tuple)
                else evaluation(version=100 * place, accuracy=accuracy, loss=0.1, final=is_final)
            )
            journal.write(float(place), "evaluator", evaluated)
        updates = 100 * (len(accuracies) - 1)
        if outcome == "completed":
            journal.write(updates / 100, "server", records.Finished(version=updates, reason="updates"))
        passed = {"ingress_payload": updates * push_bytes, "egress_payload": updates * 30, "pull_bytes": updates * 30}
        journal.write(float(len(accuracies)), "server", records.Traffic(pulls=updates, **passed))
        if outcome is not None:
            journal.write(float(len(accuracies)), "controller", records.Ended(outcome=outcome, reason="updates"))


def open_books(journal):
    """Have a journal of one trial tell of an update that is in no line, so that its books do not close."""
    last = records.Finished(version=10_000, reason="updates")
    gave_up = records.Unanswered(incarnation=0, joins=0, step=-1, reason="no answer")
    with JournalWriter(journal) as lines:
        lines.write(9.0, "edge-0", gave_up)
        lines.write(9.0, "server", last)


def completed_run(cells, run, root, accuracies=(0.1, 0.9)):
    """As `edgebed run` leaves it, with a hundred pushes of 10 bytes between two evaluations."""
    plan = cells.plans([run])[run]
    folder = RunFolder.create(root, plan.scenario)
    folder.write_manifest(seed=run.seed, runtime="simulation", command=[], trials=[plan.trial])
    folder.trial(plan.trial).make(plan)
    write_journal(folder.trial(plan.trial).journal, accuracies, 10)
    write_atomically(folder.summary, Run(folder).summary_json())
    return folder
