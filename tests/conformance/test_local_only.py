"""Workers that train alone push nothing; each measures its own model, of which pages, tables and comparisons tell."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from quick_runs import run as run_quickly

from edgebed.exporting.subjects import tables_of
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run, Trial

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
PEOPLE = '''
import numpy as np
from torch import nn

from edgebed import DataSet

NAMES = np.array(["ann", "ben", "cleo", "dan", "eve"])


def table():
    """Points of four classes, which lie elsewhere for each person; eve is in the test part alone."""
    rng = np.random.default_rng(1)
    centres, who = rng.normal(0, 2, (5, 4, 6)), rng.integers(0, 5, 900)
    y = rng.integers(0, 4, 900)
    x = (centres[0][y] + 0.6 * centres[who, y] + rng.normal(0, 1, (900, 6))).astype("float32")
    train, test = np.arange(900) < 600, np.arange(900) >= 600
    train &= who != 4
    return DataSet(train=(x[train], y[train], NAMES[who[train]]), test=(x[test], y[test], NAMES[who[test]]))


def net(input_shape, outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, outputs))
'''
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
def run(runtime: str, workers: int = 1) -> Run:
    """A run with so many workers, made once for all tests."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    (folder / "people_alone.py").write_text(PEOPLE)
    fleet = {"edge": {"count": workers}}
    (folder / "people.yaml").write_bytes(msgspec.json.encode(SCENARIO | {"fleet": fleet}))
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


@pytest.mark.parametrize("runtime", RUNTIMES)
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
    assert "own model; there is none of all to measure, after 15 updates" in page
    assert list(columns["client"])[-4:] == ["ann", "ben", "cleo", "dan"]
