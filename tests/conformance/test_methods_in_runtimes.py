"""Methods of rounds, buffers, bounded staleness and local steps, simulated and live: one run of each has them all.

Where a round waits for everybody nothing depends on who was first, so the weights are the simulation's, bit for bit.
Containers hold the same nodes as processes do.
"""

import functools
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from swarm import running_swarm, why_no_swarm

from edgebed.core import records
from edgebed.emulation.namespaces import inside
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run, Trial
from edgebed.running.run import Options, host_of, plan_checked, run_trials
from edgebed.scenario.load import load_scenario

pytestmark = pytest.mark.timeout(300)  # of the first test in each runtime: all of its trials

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("hosts", marks=[pytest.mark.docker, pytest.mark.campaign, pytest.mark.timeout(1200)]),
]
"""`hosts`: containers on three hosts, with clocks of their own."""
WORKERS = 3
UPDATES = 90
ROUNDS: dict[str, Any] = {
    "fedavg": {"preset": "fedavg", "local_work": {"steps": 3}},
    "fedyogi": {"preset": "fedyogi", "local_work": {"steps": 3}},
    "diloco": {"preset": "diloco", "local_work": {"steps": 3}},
    "scaffold": {
        "preset": "scaffold",
        "local_work": {"steps": 3},
        "beside_compression": "int8",
        "downlink": "int8",
    },
    "streaming": {"preset": "streaming-diloco", "local_work": {"steps": 6, "fragments": 2, "overlap": 1}},
    "feddyn": {"preset": "feddyn", "local_work": {"steps": 3}},
    "dgc": {"preset": "dgc", "compression": {"fraction": 0.01, "clip": 1.0}},
    "esgd": {"preset": "esgd", "aggregation": {"learning_rate": 0.5}},
    "int8": {"preset": "sync-sgd", "compression": {"name": "int8", "deflate": True, "rounding": "stochastic"}},
    "both-ways": {"preset": "sync-sgd", "compression": {"name": "powersgd-local"}, "downlink": {"name": "int8"}},
}
OTHERS: dict[str, Any] = {
    "ssp": {"preset": "ssp", "aggregation": {"bound": 1}},
    "softsync": {"preset": "softsync", "aggregation": {"count": 3}},
    "fedasync": {"preset": "fedasync", "local_work": {"steps": 3}},
    "fedbuff": {"preset": "fedbuff", "aggregation": {"count": 2}, "local_work": {"steps": 2}},
}
MOVING: dict[str, Any] = {
    "method": {"preset": "sync-sgd", "aggregation": {"momentum": 0.9, "schedule": "plateau", "patience": 0}},
    "task": {"fraction": WORKERS / 1438, "batch_size": 1},
    "checkpoints": {"every": f"{WORKERS} updates"},
}
"""Each worker has one example, so that what is lost with a server changes nothing."""
SCENARIO: dict[str, Any] = {
    "name": "methods",
    "seed": 7,
    "task": {"data": "digits", "fraction": 0.5, "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "fleet": {"edge": {"count": WORKERS, "waiting": "50ms"}},  # the fault at an update is done before the last
    "evaluation": {"every": f"{UPDATES} updates"},
    "stop": {"updates": UPDATES},
    "variants": {name: {"method": method} for name, method in (ROUNDS | OTHERS).items()}
    | {
        "moving": MOVING,
        "moving-anew": MOVING | {"faults": [{"restart": "server", "at_update": 30, "delay": "0s"}]},
    },
}
FOLDER = tempfile.TemporaryDirectory(prefix="edgebed-methods-")  # gone when the tests are over


@functools.cache
def trials(runtime: str) -> dict[str, Trial]:
    """All methods in that runtime, with every message journaled and without a report; run once for all tests."""
    with over_hosts(SCENARIO) if runtime == "hosts" else nullcontext(SCENARIO) as scenario:
        name = "docker" if runtime == "hosts" else runtime
        options = Options(runtime=name, emulation="auto", trace=True, force=False)  # type: ignore[arg-type]
        planned = plan_checked(load_scenario(scenario), options)
        folder = RunFolder.create(Path(FOLDER.name) / runtime, SCENARIO["name"])
        with host_of(options, planned, processes=1, port=0) as host:
            run_trials(planned, folder, host, progress=None)
    return Run(folder).trials


@contextmanager
def over_hosts(scenario: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The scenario on three hosts, of which this thread is on the first."""
    if reason := why_no_swarm():
        pytest.skip(reason)
    with running_swarm(3) as swarm, inside(str(swarm.namespace("e1"))):
        yield scenario | {"hosts": {each.host: {"engine": each.engine} for each in swarm.addresses}}


@functools.cache
def accounting(runtime: str, name: str) -> Accounting:
    """What became of each update."""
    found = UpdateAccounting(Timeline()).add_all(trials(runtime)[name].events()).close()
    assert found is not None
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", SCENARIO["variants"])
def test_every_method_trains_and_every_update_is_accounted_for(runtime: str, name: str) -> None:
    """One line for each version, and each worker's pushes in order, unless the server died between."""
    trial = trials(runtime)[name]
    books, updates = accounting(runtime, name), trial.series.updates

    assert trial.summary.outcome == "completed"
    assert books.closes, books.problems
    assert (books.total.applied, books.total.unexplained) == (UPDATES, 0)
    assert updates.version.tolist() == list(range(1, UPDATES + 1))
    if not name.startswith("moving"):  # of three examples there is little to learn
        assert trial.series.evaluations.final_value is not None
        assert trial.series.evaluations.final_value > 0.3
        assert (books.total.refused.keys() | {"finished"}) == {"finished"}
        for worker in {life.worker for life in books.lives}:
            steps = [
                record.step
                for _, _, record in trial.events()
                if isinstance(record, records.Update) and record.worker == worker
            ]
            assert steps == list(range(len(steps)))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", [*ROUNDS, *OTHERS])
def test_bytes_counted_are_bytes_that_came(runtime: str, name: str) -> None:
    """At the socket, in the journal and for each update, however it was compressed."""
    trial = trials(runtime)[name]
    received = [
        record
        for _, node, record in trial.events()
        if node == "server" and isinstance(record, records.Received) and record.message in ("join", "push")
    ]
    pushed = [record.bytes for record in received if record.message == "push"]
    updates = trial.series.updates

    assert trial.series.traffic[-1][1].ingress_payload == sum(record.bytes for record in received)
    assert not Counter(updates.bytes.tolist()) - Counter(pushed)  # what is in the model is some of what came
    assert len(pushed) <= accounting(runtime, name).total.begun


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_leave_the_same_weights_in_every_runtime(runtime: str, name: str) -> None:
    """And each worker has pushed the same bytes and losses, in the same order of its own."""
    expected, found = trials("simulation")[name], trials(runtime)[name]

    np.testing.assert_array_equal(expected.checkpoint(), found.checkpoint())
    assert expected.series.evaluations.final_value == found.series.evaluations.final_value
    for worker in range(WORKERS):
        assert pushes_of(expected, f"edge-{worker}") == pushes_of(found, f"edge-{worker}")


def pushes_of(trial: Trial, worker: str) -> list[tuple[Any, ...]]:
    """What is known of each of a worker's pushes that is in the model."""
    return [
        (record.step, record.base, record.entries, record.bits, record.bytes, record.loss)
        for _, _, record in trial.events()
        if isinstance(record, records.Update) and record.worker == worker
    ]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_models_come_down_compressed_in_every_runtime(runtime: str) -> None:
    """All but the first and the final one of each worker, in fewer bytes than whole ones."""
    traffic = trials(runtime)["both-ways"].series.traffic[-1][1]
    whole = trials(runtime)["int8"].series.traffic[-1][1]

    assert traffic.pulls - traffic.pulls_changed <= 2 * WORKERS
    assert traffic.pull_bytes < whole.pull_bytes / 2


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_that_is_started_anew_has_its_momentum_again(runtime: str) -> None:
    """And its schedule: the weights are those of a run whose server was never gone."""
    expected, found = trials("simulation")["moving"], trials(runtime)["moving-anew"]
    restored = [record for _, _, record in found.events() if isinstance(record, records.Restored)]

    assert len(restored) == 1
    assert restored[0].version >= 30 - WORKERS
    np.testing.assert_array_equal(expected.checkpoint(), found.checkpoint())
