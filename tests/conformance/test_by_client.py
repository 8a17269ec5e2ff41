"""What is measured client by client is the same in every runtime, before and after local fine-tuning."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from named_people import PEOPLE
from plan_text import plan_text
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.core.errors import ScenarioError
from edgebed.exporting.subjects import tables_of
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.reports.run.clients_line import client_line
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run
from edgebed.scenario.load import load_scenario

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
NET = '''

def few():
    """Numbers of three people, of whom ben has a single test example and cleo none."""
    x = np.random.default_rng(1).normal(size=(60, 3))
    who = np.array(["ann"] * 20 + ["ben"] * 10 + ["cleo"] * 10 + ["ann"] * 19 + ["ben"])
    y = x.sum(axis=1)
    return DataSet(train=(x[:40], y[:40], who[:40]), test=(x[40:], y[40:], who[40:]))


def net(input_shape, outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.ReLU(), nn.Linear(16, outputs))
'''
SCENARIO: dict[str, Any] = {
    "name": "people",
    "seed": 4,
    "task": {"data": "people_of_mine:table", "model": "people_of_mine:net", "gradient_time": "5ms"},
    "method": {"preset": "fedavg", "local_work": {"learning_rate": 0.05}},
    "fleet": {"edge": {"count": 1}},
    "evaluation": {
        "every": "5 updates",
        "by_client": {"every": "10 updates", "fine_tune": {"steps": 10, "learning_rate": 0.05}},
    },
    "stop": {"updates": 15},
    "expect": {"tuned_client_worst_decile_accuracy": ">= 0.5", "unseen_client_mean_accuracy": ">= 0.1"},
}
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-by-client-")  # gone when the tests are over


def scenario(**changed: Any) -> Path:
    """The scenario's file, beside the user's one module, with other sections in place of its own."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    (folder / "people_of_mine.py").write_text(PEOPLE + NET)
    (folder / "people.yaml").write_bytes(msgspec.json.encode(SCENARIO | changed))
    return folder / "people.yaml"


@functools.cache
def run(runtime: str) -> Run:
    """A run of it, made once for all tests."""
    return run_of(scenario(), runtime)


def run_of(path: Path, runtime: str) -> Run:
    """A run of a file."""
    found = run_quickly(path, runtime=runtime, runs_dir=path.parent / "runs")
    assert found.trials["fedavg"].summary.outcome == "completed"
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_client_has_the_same_values_in_every_runtime(runtime: str) -> None:
    """With one worker: of the same versions, to the bit, fine-tuned or not; the final model in any case."""
    expected, found = (run(each).trials["fedavg"].series.clients for each in ("simulation", runtime))

    assert expected.version.tolist() == found.version.tolist() == [0, 10, 15]
    for name in ("accuracy", "loss"):
        np.testing.assert_array_equal(expected.measured[name], found.measured[name])
        np.testing.assert_array_equal(expected.tuned[name], found.tuned[name])
    assert found.measured["accuracy"].shape == (3, 5)


@pytest.mark.simulation
def test_clients_that_training_never_saw_are_told_apart() -> None:
    """They count in no mean of the others, and have nothing to be tuned on."""
    trial = run("simulation").trials["fedavg"]
    found, summary = trial.series.clients, trial.summary.clients
    assert summary is not None
    accuracy = found.measured["accuracy"][-1]

    assert (summary.clients, summary.unseen, trial.plan.client_names[4]) == (5, 1, "eve")
    assert summary.seen["accuracy"].mean == pytest.approx(accuracy[:4].mean())
    assert summary.held_out["accuracy"].mean == accuracy[4]
    assert np.isnan(found.tuned["accuracy"][:, 4]).all()
    assert not np.isnan(found.tuned["accuracy"][:, :4]).any()
    assert trial.summary.value("unseen_client_mean_accuracy") == accuracy[4]
    assert trial.summary.met


@pytest.mark.simulation
def test_measuring_by_client_changes_nothing_else() -> None:
    """The journal is that of the same trial without it, but for the lines about clients."""
    plain = run_of(scenario(evaluation={"every": "5 updates"}, expect={}), "simulation")
    told, without = (
        [(t, node, record) for t, node, record in each.trials["fedavg"].events() if type(record) is not records.Clients]
        for each in (run("simulation"), plain)
    )

    assert told == without


@pytest.mark.simulation
def test_who_has_no_test_example_or_no_value_is_told() -> None:
    """In the plan, in the line at the end and in the report; R2 of a single example is in no mean."""
    task = SCENARIO["task"] | {"data": "people_of_mine:few", "objective": "regression", "split": "by-client"}
    path = scenario(task=task, fleet={"edge": {"count": 3}}, evaluation={"by_client": "final"}, expect={})
    (planned,) = plan_trials(load_scenario(path))
    found = run_of(path, "simulation")
    trial = found.trials["fedavg"]
    r2, summary, page = trial.series.clients.last("r2"), trial.summary.clients, to_html(report_page(found))
    assert summary is not None

    assert "of the last model alone; without such examples: 1 client (cleo)" in plan_text(describe_plan(planned))
    assert "by client (2; 1 without test examples)" in client_line(trial)
    assert "Not measured, without examples of the test part: 1 client (cleo)." in page
    assert "Left out of R2, of which their examples give no value: 1 client." in page
    assert np.isnan(r2).tolist() == [False, True]
    assert (summary.seen["r2"].clients, summary.seen["r2"].mean, summary.seen["mae"].clients) == (1, r2[0], 2)


@pytest.mark.simulation
def test_pages_and_tables_have_each_client() -> None:
    """By name, with whether anybody trains on its examples."""
    page = to_html(report_page(run("simulation")))
    (table,) = (table for table in tables_of(run("simulation")) if table.name == "clients")
    filled = table.fill(run("simulation"), run("simulation").trials["fedavg"])
    columns = dict(zip([column.name for column in table.columns], filled, strict=True))

    assert "Client by client" in page
    assert "Accuracy of each client" in page
    assert list(columns["client"])[-5:] == ["ann", "ben", "cleo", "dan", "eve"]
    assert list(columns["seen"])[-5:] == [True, True, True, True, False]
    assert len(columns["tuned_accuracy"]) == 15


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("by_client", "problem"),
    [
        ("7 updates", "every 7 updates is no multiple of evaluation.every, 5 updates"),
        ("5s", "every 5s is no multiple of evaluation.every, 5 updates"),
        (None, "nothing is measured client by client; add evaluation: { by_client: final }"),
        ("final", "clients are not fine-tuned; add fine_tune: { steps: 5, learning_rate: 0.01 }"),
        ({"fine_tune": {"steps": 5}}, "missing key 'learning_rate'"),
    ],
)
def test_what_does_not_fit_is_refused(by_client: object, problem: str) -> None:
    """Where it stands, with what to do."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario(scenario(evaluation={"every": "5 updates", "by_client": by_client}))
    assert problem in str(caught.value)


@pytest.mark.simulation
@pytest.mark.parametrize("method", ["fedavg", "local-only"])
def test_settings_are_chosen_client_by_client_on_the_validation_part(method: str) -> None:
    """Which the scenario asks for: a part of each client's training examples; of a model of all, or of a worker's."""
    task = SCENARIO["task"] | {"validation": "20%", "split": "by-client"}
    by_client = {"every": "10 updates", "part": "validation"}
    path = scenario(task=task, method=method, evaluation={"every": "5 updates", "by_client": by_client}, expect={})
    trial = run_quickly(path, runtime="simulation", runs_dir=path.parent / "runs").trials[method]

    assert trial.summary.clients is not None
    assert trial.summary.clients.part == "validation"
    assert (trial.summary.clients.clients, trial.summary.clients.unseen) == (4, 0)
    assert sum(trial.plan.by_client.sizes) == trial.plan.evaluator.num_validation


@pytest.mark.simulation
def test_a_validation_part_that_is_not_there_cannot_be_asked_for() -> None:
    """Though the test part says whose its examples are."""
    with pytest.raises(ScenarioError, match=r"or of the training part and task\.validation"):
        run_of(
            scenario(evaluation={"every": "5 updates", "by_client": {"part": "validation"}}, expect={}), "simulation"
        )


@pytest.mark.simulation
def test_data_without_clients_is_refused() -> None:
    """There is nobody to measure."""
    nobodys = SCENARIO["task"] | {"data": {"name": "people_of_mine:table", "whose": False}}
    with pytest.raises(ScenarioError, match="does not say whose its held-out examples are"):
        run_of(scenario(task=nobodys), "simulation")
