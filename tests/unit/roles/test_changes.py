"""Which entries changed since a version: as a search of the whole history finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebed.roles.server.changes import Changes

N = 5
PUSHES = st.lists(st.none() | st.sets(st.integers(0, N - 1)), max_size=12)
"""The entries that each update touches; None: all."""


@given(pushes=PUSHES, data=st.data())
def test_what_changed_since_a_version_is_what_later_updates_touched(pushes, data):
    """No entry too few and none too many, in increasing order."""
    changes = Changes(N)
    for version, touched in enumerate(pushes, start=1):
        changes.note(version, None if touched is None else np.array(sorted(touched), np.int64))
    since = data.draw(st.integers(0, len(pushes)))
    later = pushes[since:]

    found = changes.since(since)

    if None in later:
        assert found is None
    else:
        assert found.tolist() == sorted(set().union(*later))


def test_nothing_has_changed_since_the_present_version():
    """Also where the last update touched every entry."""
    changes = Changes(N)
    changes.note(1, None)

    assert changes.since(1).tolist() == []
    assert changes.since(0) is None


def test_nothing_is_known_of_the_time_before_the_history_begins():
    """At a checkpoint's version: who has an older one needs everything."""
    changes = Changes(N, 40)
    changes.note(41, np.array([2]))

    assert changes.since(39) is None
    assert changes.since(40).tolist() == [2]
