"""What exchanges and restarts take on this machine, measured with real nodes."""

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.studies.host.times_beside import EVERY_S, PAUSE_S, beside, exchange_s, series_of

TASK = {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "500us"}


@pytest.mark.timed
def test_an_exchange_is_what_an_iteration_takes_besides() -> None:
    """More than nothing; with a gradient that is said to take longer than the iteration does, nothing is left of it."""
    local = {"method": {"preset": "fedavg", "local_work": {"steps": 4}}}

    assert 0.0 < exchange_s(TASK, local, "process", "model") < 10 * PAUSE_S
    assert exchange_s(TASK | {"gradient_time": "5s"}, {"method": "sync-sgd"}, "process", "model") == 0.0


def test_a_restart_takes_what_passes_from_a_kill_until_the_node_runs_again() -> None:
    """Of the server, and of workers; as a calibration has it, with an exchange of the costs measured here."""
    found = beside("process", "model")

    assert 0.0 < found.exchange_s < 10 * PAUSE_S
    assert found.restart_s.keys() == {"server", "others"}
    assert all(0.0 < seconds < EVERY_S for seconds in found.restart_s.values())


def test_what_cannot_be_measured_is_said() -> None:
    """A training that does not end as asked tells nothing."""
    scenario = {
        "name": "restart", "task": TASK, "method": "asgd", "fleet": {"edge": {"count": 1}},
        "faults": [{"kill": "server", "at": "0s"}], "stop": {"updates": 10_000},
    }  # fmt: skip

    with pytest.raises(InfrastructureError, match="what a restart takes cannot be measured here: failed, the server"):
        series_of(scenario, "process", "model")
