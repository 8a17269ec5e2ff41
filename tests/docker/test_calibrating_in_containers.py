"""What containers hold, measured as `edgebed calibrate` does it."""

import pytest

from edgebed.studies.host.calibrate import Programme, Runner, measure_bulk

pytestmark = pytest.mark.alone

SHORT = Programme(
    bulk_s={10: 3.0, 50: 2.0},
    single_mbit=(),
    single_s=0.0,
    cpus=(),
    cpu_s=0.0,
    together={},
    together_s=0.0,
)
TRIES = 6
"""Times as many measurements, at most, until each rate is as quick as asked."""
LIMIT = 0.1


@pytest.mark.timeout(300)
def test_two_rates_hold_in_both_directions(tmp_path):
    """Goodput within 10 % of what the rate leaves for payload.

    At no time faster, and as fast once in a few times: a machine whose timers come late loses throughput.
    """
    asked = {(10, "up"), (10, "down"), (50, "up"), (50, "down")}
    quickest = dict.fromkeys(asked, -1.0)

    for each_try in range(TRIES):
        found = {
            (each.rate_bit_s // 10**6, each.direction): each.deviation
            for each in measure_bulk(Runner("docker", tmp_path / f"{each_try}"), SHORT)
        }
        assert found.keys() == asked
        quickest = {key: max(quickest[key], found[key]) for key in asked}
        if min(quickest.values()) >= -LIMIT:
            break

    assert all(abs(deviation) <= LIMIT for deviation in quickest.values()), quickest
