"""One timer for several deadlines asks for few wakes, and never for none that is needed."""

import heapq
import math

from hypothesis import given
from hypothesis import strategies as st

from edgebed.roles.alarm import Alarm
from edgebed.roles.events import Wake


def test_only_an_earlier_time_asks_for_another_wake():
    """Of the two the earlier counts, and after it none is to come."""
    alarm = Alarm()

    assert alarm.set(math.inf) == []
    assert alarm.set(5.0) == [Wake(5.0, "1")]
    assert alarm.set(7.0) == []
    assert alarm.set(3.0) == [Wake(3.0, "2")]
    assert [alarm.rings("2"), alarm.rings("1"), alarm.at_s] == [True, False, math.inf]


@given(deadlines=st.lists(st.integers(0, 20), min_size=1, max_size=20))
def test_every_deadline_rings_at_its_time_and_wakes_do_not_multiply(deadlines):
    """Set to the earliest that is left after each wake, whatever was asked for before."""
    alarm, wakes, left, rung = Alarm(), [], [], []
    for at_s in deadlines:
        left.append(at_s)
        wakes += [(wake.at_s, wake.token) for wake in alarm.set(min(left))]
    asked = len(wakes)
    heapq.heapify(wakes)
    while wakes:
        now, token = heapq.heappop(wakes)
        if alarm.rings(token):
            rung.append(now)
            left = [at_s for at_s in left if at_s > now]
            for wake in alarm.set(min(left, default=math.inf)):
                asked += 1
                heapq.heappush(wakes, (wake.at_s, wake.token))

    assert rung == sorted(set(deadlines))
    assert asked <= 2 * len(deadlines)
