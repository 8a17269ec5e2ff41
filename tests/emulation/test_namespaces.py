"""Nodes' networks in the process runtime: real namespaces on a real bridge, held by a process of its own."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyroute2 import IPRoute
from waiting import until

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.namespaces import Namespaces, inside
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.tc import NUD_PERMANENT

pytestmark = pytest.mark.process  # it starts processes and waits in wall-clock time

MBIT = 1_000_000
PAYLOAD_BYTES = 200_000
DEADLINE_S = 20.0
CONTROLLER = """
import sys, time
from pathlib import Path
from edgebed.emulation.namespaces import Namespaces
from edgebed.core.planned.link import LinkPlan
namespaces = Namespaces({"server": LinkPlan(), "edge-0": LinkPlan(uplink_bit_s=1_000_000)}, Path(sys.argv[1]))
print(namespaces.process.pid, flush=True)
time.sleep(600)
"""
LINKS = {
    "server": LinkPlan(),
    "edge-0": LinkPlan(
        uplink_bit_s=8 * MBIT, downlink_bit_s=16 * MBIT, changes=(LinkChange(at_s=0.2, uplink_bit_s=2 * MBIT),)
    ),
    "edge-1": LinkPlan(uplink_bit_s=5 * MBIT),
}


@pytest.fixture
def namespaces(tmp_path) -> Iterator[Namespaces]:
    """A server and two workers."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run the tests as root")
    made = Namespaces(LINKS, tmp_path / "namespaces.log")
    yield made
    made.close()


@contextlib.contextmanager
def reading(namespaces: Namespaces, node: str) -> Iterator[LinkReader]:
    """What the kernel holds of a node's link."""
    with inside(namespaces.homes[node].namespace):
        reader = LinkReader(namespaces.homes[node].address)
    yield reader
    reader.close()


def send(namespaces: Namespaces, node: str, size: int) -> None:
    """So many bytes from a node to the server, over a connection whose ends are made inside."""
    server = namespaces.homes["server"]
    with inside(server.namespace):
        listening = socket.create_server((server.address, 0))
    with inside(namespaces.homes[node].namespace):
        near = socket.create_connection(listening.getsockname())
    far, _ = listening.accept()
    sender = threading.Thread(target=near.sendall, args=(bytes(size),))
    sender.start()
    received = 0
    while received < size:
        received += len(far.recv(1 << 16))
    sender.join()
    for each in (near, far, listening):
        each.close()


def loopback_bytes(namespace: str) -> tuple[int, int]:
    """Through `lo` in a namespace."""
    with inside(namespace):
        reader = LinkReader("127.0.0.1")
    counted = reader.bytes()
    reader.close()
    return counted


def test_data_passes_between_nodes_and_nobody_else_gets_any_of_it(namespaces):
    """Nobody has to be asked for, so not even the first packet goes to all."""
    with reading(namespaces, "edge-0") as sender, reading(namespaces, "edge-1") as bystander:
        with reading(namespaces, "server") as receiver:
            send(namespaces, "edge-0", PAYLOAD_BYTES)
            received, _ = receiver.bytes()
        _, sent = sender.bytes()
        overheard = bystander.bytes()

    assert PAYLOAD_BYTES < sent < 1.1 * PAYLOAD_BYTES
    assert received == pytest.approx(sent, abs=500)  # the packets that end the connection may be on their way
    assert overheard == (0, 0)
    assert loopback_bytes(namespaces.homes["edge-0"].namespace) == (0, 0)


def test_every_link_is_held_before_anybody_is_told_of_it(namespaces):
    """Each as it is when training begins; a link without limits has no queue."""
    with reading(namespaces, "edge-0") as one, reading(namespaces, "edge-1") as other:
        rates = [queue and queue.rate_bit_s for reader in (one, other) for queue in reader.queues()]
    with reading(namespaces, "server") as server:
        assert server.queues() == (None, None)

    assert rates == [8 * MBIT, 16 * MBIT, 5 * MBIT, None]


def test_a_link_changes_when_its_time_has_come(namespaces):
    """Not before training begins, and only what is to change."""
    with reading(namespaces, "edge-0") as link, reading(namespaces, "edge-1") as other:
        before = link.queues()[0].rate_bit_s
        namespaces.began(time.monotonic())
        until(lambda: link.queues()[0].rate_bit_s == 2 * MBIT, "the change", DEADLINE_S, every_s=0.01)

        assert before == 8 * MBIT
        assert link.queues()[1].rate_bit_s == 16 * MBIT
        assert other.queues()[0].rate_bit_s == 5 * MBIT


def done(namespaces: Namespaces, *numbers: int) -> dict[int, str]:
    """Wait until these changes are done; the problem of each."""
    answers = {}

    def all_are() -> bool:
        answers.update({answer.done: answer.problem for answer in namespaces.answers()})
        return set(answers) == set(numbers)

    until(all_are, "the answer", DEADLINE_S, every_s=0.01)
    return answers


def test_any_nodes_link_is_changed_where_a_fault_asks_for_it(namespaces):
    """One that changes with time, one that does not, and one that had no limit; the timeline goes on below."""
    nodes = ["edge-0", "edge-1", "server"]
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(reading(namespaces, node)) for node in nodes]
        for number, node in enumerate(nodes):
            namespaces.inject(number, Injection(node=node, action="cut"))
        assert done(namespaces, 0, 1, 2) == {0: "", 1: "", 2: ""}
        assert all(queue.cut for reader in readers for queue in reader.queues())

        namespaces.began(time.monotonic() - 1.0)
        change = LinkChange(downlink_bit_s=3 * MBIT)
        for number, node in enumerate(nodes):
            namespaces.inject(number, Injection(node=node, action="link", change=change))
            namespaces.inject(10 + number, Injection(node=node, action="heal"))
        done(namespaces, 0, 1, 2, 10, 11, 12)
        rates = [[queue and queue.rate_bit_s for queue in reader.queues()] for reader in readers]

        namespaces.inject(20, Injection(node="server", action="link"))
        done(namespaces, 20)
        assert readers[-1].queues() == (None, None)

    assert rates == [[2 * MBIT, 3 * MBIT], [5 * MBIT, 3 * MBIT], [None, 3 * MBIT]]


def test_two_nodes_are_cut_off_from_each_other_and_from_nobody_else(namespaces):
    """Nobody is told, each reads it back, and after the heal each knows the other as before."""
    nodes = ["server", "edge-0", "edge-1"]
    ends = {}
    for node in nodes:
        with inside(namespaces.homes[node].namespace):
            ends[node] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ends[node].bind((namespaces.homes[node].address, 5000))
        ends[node].settimeout(0.2)

    def reached() -> set[tuple[str, str]]:
        found = set()
        for source, target in itertools.permutations(nodes, 2):
            ends[source].sendto(b"x", (namespaces.homes[target].address, 5000))
            with contextlib.suppress(TimeoutError):
                found.add((source, target) if ends[target].recv(1) else None)
        return found

    everybody = reached()
    with contextlib.ExitStack() as stack:
        readers = {node: stack.enter_context(reading(namespaces, node)) for node in nodes}
        known = {node: known_to(namespaces, node) for node in nodes}
        for number, peer in enumerate(("server", "edge-1")):
            namespaces.inject(number, Injection(node="edge-0", action="cut", peer=peer))
        assert done(namespaces, 0, 1) == {0: "", 1: ""}
        barred = {node: len(readers[node].barred()) for node in nodes}
        cut = reached()
        namespaces.inject(2, Injection(node="edge-0", action="heal", peer="server"))
        done(namespaces, 2)
        after = reached()
        assert known_to(namespaces, "server") == known["server"]
    for end in ends.values():
        end.close()

    assert everybody == set(itertools.permutations(nodes, 2))
    assert barred == {"server": 1, "edge-0": 2, "edge-1": 1}
    assert cut == {("server", "edge-1"), ("edge-1", "server")}
    assert after == everybody - {("edge-0", "edge-1"), ("edge-1", "edge-0")}


def known_to(namespaces: Namespaces, node: str) -> set[tuple[str, str]]:
    """The neighbours that a node knows for good, by their addresses and Ethernet's."""
    with inside(namespaces.homes[node].namespace), IPRoute() as ip:
        found = ip.get_neighbours(family=socket.AF_INET)
    return {(each.get("NDA_DST"), each.get("NDA_LLADDR")) for each in found if each["state"] & NUD_PERMANENT}


def test_what_the_kernel_refuses_is_answered_and_the_network_stays(namespaces):
    """A node without a link, and a rate that tc does not take."""
    namespaces.inject(1, Injection(node="evaluator", action="cut"))
    namespaces.inject(2, Injection(node="edge-1", action="link", change=LinkChange(uplink_bit_s=7)))
    namespaces.inject(3, Injection(node="edge-1", action="cut"))

    answers = done(namespaces, 1, 2, 3)

    assert answers == {
        1: "evaluator has no link to the data network",
        2: "tc holds rates from 1000bit to 34359738360bit here, not 7bit",
        3: "",
    }


def test_nothing_appears_in_the_machines_own_namespace_and_nothing_is_left(namespaces, tmp_path):
    """Namespaces have no names, and end with whoever holds them."""
    another = Namespaces(LINKS, tmp_path / "another.log")
    interfaces = set(psutil.net_if_addrs())
    another.close()

    assert not {"switch", "data", "port1"} & interfaces
    assert not Path(another.homes["edge-0"].namespace).exists()


def test_whoever_is_inside_comes_out_again(namespaces):
    """Also after an error."""
    own = Path("/proc/thread-self/ns/net").readlink()

    def fail() -> None:
        assert Path("/proc/thread-self/ns/net").readlink() != own
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), inside(namespaces.homes["edge-0"].namespace):
        fail()

    assert Path("/proc/thread-self/ns/net").readlink() == own
    with inside(""):
        assert Path("/proc/thread-self/ns/net").readlink() == own


def test_a_namespace_that_is_gone_cannot_be_entered(namespaces):
    """The message names it."""
    home = namespaces.homes["edge-0"]
    namespaces.close()
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(InfrastructureError, match=f"no network namespace {home.namespace}"), inside(home.namespace):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "no file is left open"


def test_whoever_gives_up_while_they_are_made_need_not_wait_for_them(tmp_path, monkeypatch):
    """As with Ctrl-C: the process is killed, not asked to end."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run the tests as root")
    begun = []

    def give_up(self: Namespaces) -> None:
        begun.append(self.process)
        raise KeyboardInterrupt

    monkeypatch.setattr(Namespaces, "_line", give_up)
    with pytest.raises(KeyboardInterrupt):
        Namespaces(LINKS, tmp_path / "namespaces.log")

    assert [process.returncode for process in begun] == [-signal.SIGKILL]


def test_the_end_of_the_process_that_holds_them_is_noticed(namespaces):
    """The trial cannot go on without its network."""
    namespaces.process.kill()
    namespaces.process.wait()

    with pytest.raises(InfrastructureError, match="the process that holds the namespaces ended"):
        list(namespaces.answers())


def test_namespaces_are_made_anew_where_their_process_was_killed(namespaces):
    """At the same addresses, each link as it is at this time; a change that nobody has answered is made then."""
    namespaces.began(time.monotonic() - 1.0)
    addresses = {node: home.address for node, home in namespaces.homes.items()}
    namespaces.process.kill()
    namespaces.process.wait()
    namespaces.inject(1, Injection(node="edge-1", action="cut"))

    namespaces.mend()

    assert done(namespaces, 1) == {1: ""}
    assert {node: home.address for node, home in namespaces.homes.items()} == addresses
    with reading(namespaces, "edge-0") as link, reading(namespaces, "edge-1") as other:
        until(lambda: link.queues()[0].rate_bit_s == 2 * MBIT, "the change", DEADLINE_S, every_s=0.01)
        assert all(queue.cut for queue in other.queues())
    send(namespaces, "edge-0", 1000)


def test_namespaces_end_with_a_controller_that_is_killed(namespaces, tmp_path):
    """It has no time to say anything."""
    command = [sys.executable, "-c", CONTROLLER, str(tmp_path / "killed.log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        holder = psutil.Process(int(controller.stdout.readline()))
        controller.kill()

    assert psutil.wait_procs([holder], timeout=10)[1] == []
    assert psutil.pid_exists(namespaces.process.pid)


def test_without_the_right_it_is_said_what_is_in_the_way(tmp_path):
    """Root in a container that may not make namespaces."""
    if os.geteuid() != 0:
        pytest.skip("taking a right away needs root: run the tests as root")
    code = "from edgebed.emulation.means import why_no_namespaces; print(why_no_namespaces())"
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    found = subprocess.run([*drop, sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "a network namespace cannot be made: Operation not permitted\n"
