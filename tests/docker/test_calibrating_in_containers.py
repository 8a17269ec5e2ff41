"""What containers hold, measured as `edgebed calibrate` does it."""

import pytest

from edgebed.studies.host.calibrating import Programme, Runner, measure_bulk

pytestmark = pytest.mark.timed

SHORT = Programme(
    bulk_s={10: 3.0, 50: 2.0},
    single_mbit=(),
    single_s=0.0,
    cpus=(),
    cpu_s=0.0,
    together={},
    together_s=0.0,
)


def test_two_rates_hold_in_both_directions(tmp_path):
    """Goodput within 10 % of what the rate leaves for payload."""
    found = {
        (each.rate_bit_s // 10**6, each.direction): each.deviation
        for each in measure_bulk(Runner("docker", tmp_path), SHORT)
    }

    assert found.keys() == {(10, "up"), (10, "down"), (50, "up"), (50, "down")}
    assert all(abs(deviation) <= 0.1 for deviation in found.values()), found
