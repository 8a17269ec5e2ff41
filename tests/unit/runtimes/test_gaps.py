"""Gaps of a node's own clock: a process that is stopped from outside notices it, one that is busy or waits does not."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.runtimes.live.shell.gaps import GAP_MIN_S, GapDetector, gap_s

NODE = textwrap.dedent(
    """
    import select, sys, time
    from edgebed.runtimes.live.shell.gaps import GapDetector
    detector = GapDetector()
    detector.start()
    print("begun", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        sum(range(10_000)) if sys.argv[1] == "computing" else time.sleep(0.01)
    detector.close()
    print(detector.stopped_s)
    """
)


def test_a_process_that_is_stopped_in_bursts_notices_it_and_those_beside_it_do_not():
    """Whether it computes or sleeps; what the others wait for a core is none, with two that compute all the time.

    Each runs until the test ends its input: however late the last one begins, all live through both stops.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    nodes = {
        (what, is_stopped): subprocess.Popen([sys.executable, "-c", NODE, what], **pipes)
        for what in ("computing", "sleeping") for is_stopped in (True, False)
    }  # fmt: skip
    for node in nodes.values():
        assert node.stdout.readline() == "begun\n"
    stopped = [node for (_, is_stopped), node in nodes.items() if is_stopped]
    for number, lasts_s in ((signal.SIGSTOP, 1.5), (signal.SIGCONT, 0.5)) * 2:
        for node in stopped:
            os.kill(node.pid, number)
        time.sleep(lasts_s)
    told = {which: float(node.communicate(timeout=60)[0]) for which, node in nodes.items()}

    assert told["computing", False] == told["sleeping", False] == 0.0
    for what in ("computing", "sleeping"):
        assert 0.1 < told[what, True] < 4.0, "of three seconds in all, without a sleep and what it waits for a core"


@given(late_s=st.floats(0.0, 100.0), explained_s=st.floats(0.0, 100.0))
def test_a_gap_is_what_nothing_explains(late_s, explained_s):
    """Never more than the lateness, and nothing that is too short to tell."""
    found = gap_s(late_s, explained_s)

    assert found == 0.0 or GAP_MIN_S <= found <= late_s
    assert gap_s(late_s, late_s) == 0.0


def test_a_kernel_without_schedstat_cannot_tell_a_stop_from_waiting(monkeypatch, tmp_path):
    """Nothing is claimed then."""
    monkeypatch.setattr("edgebed.runtimes.live.shell.gaps.MAIN_THREAD", tmp_path / "schedstat")
    detector = GapDetector()
    detector.start()
    detector.close()

    assert detector.stopped_s is None


@pytest.mark.parametrize("throttled_s", [None, 3.0])
def test_what_its_own_cap_holds_back_is_no_gap(throttled_s):
    """It is among what explains that the process was late."""
    detector = GapDetector(lambda: throttled_s)

    assert detector._explained_s() >= (throttled_s or 0.0)
