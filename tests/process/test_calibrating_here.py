"""What this machine really holds, measured as `edgebed calibrate` does it, in network namespaces."""

import pytest

from edgebed.emulation.means import why_no_namespaces
from edgebed.studies.host.calibrate import Programme, Runner, measure_bulk, measure_single

pytestmark = pytest.mark.timed

SHORT = Programme(
    bulk_s={10: 3.0, 50: 2.0},
    single_mbit=(10,),
    single_s=5.0,
    cpus=(),
    cpu_s=0.0,
    together={},
    together_s=0.0,
)


@pytest.fixture
def namespaces(tmp_path):
    """A runner of trials whose nodes have network namespaces."""
    if reason := why_no_namespaces():
        pytest.skip(f"no network namespaces: {reason}")
    return Runner("namespaces", tmp_path)


def test_two_rates_hold_in_both_directions(namespaces):
    """Goodput within 10 % of what the rate leaves for payload."""
    found = {(each.rate_bit_s // 10**6, each.direction): each.deviation for each in measure_bulk(namespaces, SHORT)}

    assert found.keys() == {(10, "up"), (10, "down"), (50, "up"), (50, "down")}
    assert all(abs(deviation) <= 0.1 for deviation in found.values()), found


def test_a_small_push_after_a_rest_does_not_slip_through(namespaces):
    """It takes at least (bytes on the wire - burst) / rate: a larger burst would let it pass in no time."""
    limited, free = measure_single(namespaces, SHORT)

    assert limited.messages >= 5
    assert limited.time_s >= 0.95 * limited.ideal_s
    assert free.time_s < limited.ideal_s
