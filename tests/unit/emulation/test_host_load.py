"""The probe of the host: a real one, and its arithmetic."""

import errno
import subprocess
import sys
import threading
import time

import msgspec
import psutil
import pytest

from edgebed.core.recorded.measured import HOST_LOAD_S, HostLoad
from edgebed.emulation.host_load import HostProbe, count_runnable, host_load, interface_rate_bit_s, look

KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")


def times(**spent):
    """What cores have spent, in seconds, as psutil names it."""
    return dict.fromkeys(KINDS, 0.0) | spent


def test_shares_are_of_all_cores_time():
    """Waiting for a disk is idle; a guest's time is in user already."""
    load = host_load(times(), times(user=2.0, guest=1.0, system=1.0, idle=4.0, iowait=2.0, steal=1.0), [0.0], [0])

    assert (load.busy, load.steal) == (0.3, 0.1)


def test_lag_is_what_99_in_100_stay_below():
    """One sleep in a thousand may be late."""
    assert host_load(times(), times(idle=1.0), [0.001] * 999 + [1.0], [0]).lag_s == pytest.approx(0.001)
    assert host_load(times(), times(idle=1.0), [0.001] * 80 + [1.0] * 20, [0]).lag_s == pytest.approx(1.0)


def test_a_burst_counts_as_long_as_it_lasts():
    """Half of the time eight others wanted to run."""
    load = host_load(times(), times(idle=1.0), [0.0] * 4, [8, 8, 0, 0]).load

    assert load == pytest.approx(4.0 / psutil.cpu_count())


def test_whoever_runs_is_counted_at_once():
    """No mean over a minute hides it; who asks does not count."""
    others = [subprocess.Popen(["sh", "-c", "echo; while :; do :; done"], stdout=subprocess.PIPE) for _ in range(4)]
    try:
        assert [other.stdout.readline() for other in others] == [b"\n"] * 4
        assert count_runnable() >= 4
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_a_clock_that_stands_still_divides_by_nothing():
    """Two looks within one tick of the kernel."""
    assert host_load(times(user=1.0), times(user=1.0), [0.0], [0]).busy == 0.0


def test_the_probe_looks_until_it_is_closed(monkeypatch):
    """What it has found by then, though it is less than a whole record's time, can be taken once."""
    looks = []
    monkeypatch.setattr(
        "edgebed.emulation.host_load.count_runnable", lambda: looks.append(count_runnable()) or looks[-1]
    )
    probe = HostProbe()
    found = []
    deadline_s = time.monotonic() + 30 * HOST_LOAD_S
    while not found:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
        found += probe.take()
    seen = len(looks)
    while len(looks) == seen:  # so that there is something of the next record
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    probe.close()
    found += probe.take()

    assert len(found) >= 2
    assert not list(probe.take())
    assert all(0.0 <= load.busy <= 1.0 and load.lag_s >= 0.0 for _, load in found)
    clocks = [clock_ns for clock_ns, _ in found]
    assert clocks == sorted(clocks)
    assert clocks[-1] <= time.monotonic_ns()


def test_a_clock_that_is_slewed_is_measured_by_the_hardwares_counter(monkeypatch):
    """A counter that stands for one that the clock outruns by a twentieth; the real one agrees with the clock."""
    monkeypatch.setattr("edgebed.emulation.host_load.HOST_LOAD_S", 0.3)
    real = look(threading.Event())
    monkeypatch.setattr("edgebed.emulation.host_load._raw_s", lambda: time.monotonic() / 1.05)
    slewed = look(threading.Event())

    assert abs(real.slew) < 0.005
    assert slewed.slew == pytest.approx(0.05, abs=0.005)


def test_a_probe_that_cannot_open_a_file_goes_on(monkeypatch):
    """As in a controller with as many open files as it may have: the look is missing, the thread lives."""
    tried = threading.Event()

    def fail():
        tried.set()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(psutil, "cpu_times", fail)
    probe = HostProbe()
    assert tried.wait(5 * HOST_LOAD_S)
    assert probe._thread.is_alive()
    probe.close()

    assert list(probe.take()) == []


@pytest.mark.parametrize(("address", "has_network"), [(("127.0.0.1",), True), (("203.0.113.7",), False), ((), False)])
def test_the_program_tells_each_two_seconds_until_its_input_closes(address, has_network):
    """As in a container on another host; one without an interface of that address tells of the cores alone."""
    command = [sys.executable, "-m", "edgebed.emulation.host_load", *address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        first = msgspec.json.decode(program.stdout.readline(), type=HostLoad)
        program.stdin.close()
        rest = program.stdout.readlines()
        ended = program.wait(timeout=2 * HOST_LOAD_S)

    assert (ended, len(rest) <= 1) == (0, True)
    assert first.cores == psutil.cpu_count()
    assert (first.received_bytes_s is not None, first.sent_bytes_s is not None) == (has_network, has_network)
    assert (first.rate_bit_s, first.host) == (0, ""), "a loopback has no rate"


@pytest.mark.parametrize(("text", "rate_bit_s"), [("1000\n", 10**9), ("-1\n", 0), ("", 0), (None, 0)])
def test_the_rate_of_an_interface_is_what_the_kernel_says(tmp_path, text, rate_bit_s):
    """In mbit a second; -1, or no answer, where it knows none."""
    if text is not None:
        (tmp_path / "speed").write_text(text)

    assert interface_rate_bit_s(tmp_path) == rate_bit_s
