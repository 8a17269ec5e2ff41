"""Workers that train alone push nothing; each measures its own model, of which pages, tables and comparisons tell."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from named_people import PEOPLE
from quick_runs import run as run_quickly

from edgebed.exporting.subjects import tables_of
from edgebed.reports.run.report import report_page
from edgebed.reports.studies.study import compared
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run, Trial

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
NET = """

def net(input_shape, outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, outputs))
"""
STEPS = {"local_work": {"learning_rate": 0.05, "momentum": 0.9}, "aggregation": {"weights": "equal"}}
SCENARIO: dict[str, Any] = {
    "name": "people",
    "seed": 4,
    "task": {
        "data": "people_alone:table", "model": "people_alone:net", "gradient_time": "5ms", "split": "by-client",
    },
    "fleet": {"edge": {"count": 1}},
    "evaluation": {
        "every": "6 updates",
        "by_client": {"every": "6 updates", "fine_tune": {"steps": 10, "learning_rate": 0.05}},
    },
    "stop": {"updates": 15},
    "variants": {
        "together": {"method": {"preset": "fedavg", **STEPS}}, "alone": {"method": {"preset": "local-only", **STEPS}},
    },
}  # fmt: skip
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-alone-")  # gone when the tests are over


@functools.cache
def run(runtime: str, workers: int = 1, *, killed: str = "", validation: str | None = None) -> Run:
    """A run with so many workers, one of which may be killed, made once for all tests."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    (folder / "people_alone.py").write_text(PEOPLE + NET)
    changed: dict[str, Any] = {
        "fleet": {"edge": {"count": workers}},
        "faults": [{"kill": killed, "at_update": 8}] if killed else [],
    }
    changed["task"] = SCENARIO["task"] | {"validation": validation}
    (folder / "people.yaml").write_bytes(msgspec.json.encode(SCENARIO | changed))
    found = run_quickly(folder / "people.yaml", runtime=runtime, runs_dir=folder / "runs")
    assert {trial.summary.outcome for trial in found.trials.values()} == {"completed"}
    return found


def trials(runtime: str, workers: int = 1) -> tuple[Trial, Trial]:
    """The trial in which workers train together, and that in which each trains alone."""
    found = run(runtime, workers).trials
    return found["together"], found["alone"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_single_worker_learns_alone_what_it_learns_by_fedavg(runtime: str) -> None:
    """At the same versions and to the bit: values of each of its clients, with running means, fine-tuned or not."""
    together, alone = (trial.series.clients for trial in trials(runtime))

    assert together.version.tolist() == alone.version.tolist() == [0, 6, 12, 15]
    assert together.clients.tolist() == [0, 1, 2, 3, 4]
    assert alone.clients.tolist() == [0, 1, 2, 3]  # nobody has a model for the last, who is in no training part
    for name in ("accuracy", "loss"):
        np.testing.assert_array_equal(together.measured[name][:, :4], alone.measured[name])
        np.testing.assert_array_equal(together.tuned[name][:, :4], alone.tuned[name])
    assert alone.measured["loss"][-1].mean() < 0.5 * alone.measured["loss"][0].mean()


@pytest.mark.parametrize(
    "runtime", [*RUNTIMES[:2], pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.soak])]
)
def test_every_worker_measures_its_last_model_before_the_end(runtime: str) -> None:
    """Each on its own clients, however many it has; nothing else travels than that it has trained."""
    together, alone = trials(runtime, workers=3)
    updates, found = alone.series.updates, alone.series.clients

    assert found.version.tolist() == [0, 6, 12, 15]
    assert not np.isnan(found.measured["accuracy"]).any()
    assert not np.isnan(found.tuned["accuracy"]).any()
    assert found.clients.tolist() == [0, 1, 2, 3]
    assert sorted(len(node.clients) for node in alone.plan.workers()) == [1, 1, 2]
    assert updates.entries.tolist() == [0] * 15
    assert updates.bytes.max() < 100 < together.series.updates.bytes.min()
    traffic, of_fedavg = (each.summary.server.egress_bytes for each in (alone, together))
    assert traffic < 0.4 * of_fedavg  # the first model alone travels whole


@pytest.mark.simulation
def test_workers_alone_do_not_see_each_others_examples() -> None:
    """With several workers each has learnt other things than all of them together; with runs alike to the bit."""
    together, alone = (trial.series.clients.measured["loss"] for trial in trials("simulation", workers=3))
    again = trials("process", workers=3)[1].series.clients.measured["loss"]

    np.testing.assert_array_equal(alone, again)
    assert (together[-1, :4] != alone[-1]).all()


@pytest.mark.simulation
def test_nothing_is_told_of_a_model_that_nobody_trains() -> None:
    """Not by the server's untrained model: no page has a value of it, each says whose models were measured."""
    found = run("simulation", workers=3)
    summary, page = found.trials["alone"].summary, to_html(report_page(found))
    (table,) = (table for table in tables_of(found) if table.name == "clients")
    filled = table.fill(found, found.trials["alone"])
    columns = dict(zip([column.name for column in table.columns], filled, strict=True))

    assert not summary.final
    assert not summary.best
    assert not summary.warnings
    assert summary.clients is not None
    assert summary.clients.own_models
    assert summary.value("client_mean_accuracy") == summary.clients.seen["accuracy"].mean
    assert "alone: there is no model of all to measure, but each worker" in page
    assert list(columns["client"])[-4:] == ["ann", "ben", "cleo", "dan"]


@pytest.mark.simulation
def test_the_clients_of_a_worker_that_is_gone_are_not_measured_at_the_end() -> None:
    """The trial ends without them, and says so; the others count."""
    trial = run("simulation", workers=3, killed="edge-0").trials["alone"]
    gone = trial.plan.workers()[0].clients
    found = trial.series.clients

    assert np.isnan(found.measured["loss"][-1]).tolist() == [client in gone for client in found.clients]
    assert not np.isnan(found.measured["loss"][1]).any()
    assert trial.summary.clients.seen["loss"].clients == 4 - len(gone)
    assert any("not measured at the end: their workers were away" in each for each in trial.summary.warnings)


@pytest.mark.simulation
def test_the_version_that_validation_chose_is_told_and_compared_as_well() -> None:
    """Beside the last one; with the last models of those who trained alone, of whom validation chooses none."""
    found = run("simulation", workers=3, validation="25%")
    together, alone = found.trials["together"], found.trials["alone"]
    clients, evaluations = together.series.clients, together.series.evaluations
    chosen = int(np.argmax([evaluations.values[evaluations.version == version] for version in clients.version]))
    study = compared([found], baseline="alone")
    arm = study.result.clients["together, where validation was best"]

    assert together.summary.clients is not None
    assert alone.summary.clients is not None
    assert together.summary.clients.chosen_version == clients.version[chosen]
    values = clients.measured["accuracy"][chosen][:4]
    assert together.summary.value("chosen_client_mean_accuracy") == values.mean()
    assert alone.summary.value("chosen_client_mean_accuracy") is None
    assert [*arm.gains.values()] == pytest.approx(values - alone.series.clients.measured["accuracy"][-1])
    assert sorted(study.result.clients) == [
        "alone", "alone, fine-tuned", "together", "together, fine-tuned", "together, where validation was best",
    ]  # fmt: skip
    assert "validation was best after" in to_html(report_page(found))
