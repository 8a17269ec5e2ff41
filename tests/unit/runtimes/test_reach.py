"""What is measured between two hosts: by real sockets, one after the other on loopback."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edgebed.runtimes.containers.hosts import reach

MODULE = "edgebed.runtimes.containers.hosts.reach"


@pytest.fixture
def door():
    """A door that somebody is to answer."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_the_way_to_a_server_is_measured(door) -> None:
    """Within one machine there is no offset, beyond half of the least round trip; the MTU is that of loopback."""
    threading.Thread(target=reach.serve, args=(door,), daemon=True).start()

    found = reach.measure(*door.getsockname())

    assert found.round_trip_s > 0.0
    assert abs(found.offset_s) <= found.round_trip_s / 2
    assert found.mtu == int(Path("/sys/class/net/lo/mtu").read_text())
    assert found.passes


def test_the_offset_is_of_this_clock_from_the_others(door, monkeypatch) -> None:
    """Positive where this one is ahead."""

    def answer() -> None:
        with door.accept()[0] as connection, connection.makefile("rwb") as stream:
            while question := stream.readline():
                behind_ns = time.monotonic_ns() - 5 * 10**9
                stream.write(b"%d\n" % behind_ns if question == reach.TIME else stream.read(reach.BULK_BYTES))
                stream.flush()

    threading.Thread(target=answer, daemon=True).start()

    found = reach.measure(*door.getsockname())

    assert abs(found.offset_s - 5.0) <= found.round_trip_s / 2


def test_large_packets_that_get_lost_are_noticed(door, monkeypatch) -> None:
    """Small ones pass, and the time is told; what fills many does not come back."""
    monkeypatch.setattr(reach, "PASS_S_MAX", 0.3)

    def answer() -> None:
        with door.accept()[0] as connection, connection.makefile("rwb") as stream:
            while stream.readline() == reach.TIME:
                stream.write(b"%d\n" % time.monotonic_ns())
                stream.flush()
            stream.read()

    threading.Thread(target=answer, daemon=True).start()

    assert not reach.measure(*door.getsockname()).passes


def test_a_server_that_ends_is_an_error(door) -> None:
    """No time was told, and none is made up."""

    def leave() -> None:
        door.accept()[0].close()

    threading.Thread(target=leave, daemon=True).start()

    with pytest.raises(OSError, match="reset"):
        reach.measure(*door.getsockname())


def test_the_program_serves_until_its_input_ends_and_measures_once() -> None:
    """Answers are JSON; a server that is not there is one, too."""
    serve = [sys.executable, "-m", MODULE, "serve"]
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        port = json.loads(server.stdout.readline())["port"]
        measure = [sys.executable, "-m", MODULE, "measure", "127.0.0.1", str(port)]
        found = json.loads(subprocess.run(measure, capture_output=True, check=True, timeout=30).stdout)
        server.stdin.close()
        assert server.wait(10) == 0
    assert found["passes"]
    quick = f"from {MODULE} import main; import {MODULE} as reach; reach.CONNECT_S_MAX = 0.0; main()"
    gone = [sys.executable, "-c", quick, "measure", "127.0.0.1", str(port)]
    refused = json.loads(subprocess.run(gone, capture_output=True, check=True, timeout=30, env=os.environ).stdout)

    assert refused == {"problem": "Connection refused"}
