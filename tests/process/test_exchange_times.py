"""What a push and its answer take on this machine, measured with real nodes."""

import pytest

from edgebed.studies.ranking.exchanges import PAUSE_S, exchange_s

TASK = {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "500us"}


@pytest.mark.timed
def test_an_exchange_is_what_an_iteration_takes_besides() -> None:
    """More than nothing; with a gradient that is said to take longer than the iteration does, nothing is left of it."""
    local = {"method": {"preset": "fedavg", "local_work": {"steps": 4}}}

    assert 0.0 < exchange_s(TASK, local, "process", "model") < 10 * PAUSE_S
    assert exchange_s(TASK | {"gradient_time": "5s"}, {"method": "sync-sgd"}, "process", "model") == 0.0
