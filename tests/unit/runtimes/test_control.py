"""The control socket, with real sockets: orders in, answers out, and clients that are not what they should be."""

import select
import socket
import stat
import subprocess
import sys
import threading

import msgspec
import pytest

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.roles.events import CommandResult
from edgebed.running import operate as by_hand
from edgebed.runtimes.live.control import CLIENTS_MAX, LINE_MAX, SOCKET, Control, OperatorCommand

DEADLINE_S = 30.0
KILL = Injection(node="edge-0", action="kill")


@pytest.fixture
def control(tmp_path):
    """The controller's end."""
    with Control(tmp_path) as control:
        yield control


def orders(control):
    """The next orders; a test that waits for none hangs in no test run for longer than the deadline."""
    while True:
        assert select.select([control], [], [], DEADLINE_S)[0], "nothing came"
        ordered = control.orders()
        if ordered:
            return ordered


def dial(folder):
    """A client of which only the connection is right."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(DEADLINE_S)
    client.connect(str(folder / SOCKET))
    return client


def everything(client):
    """What a client is told until it is hung up on."""
    with client, client.makefile("rb") as lines:
        return lines.read()


class Asking(threading.Thread):
    """Asks in a thread of its own; `reply` or `error` is what came of it."""

    def __init__(self, folder, *injections, answer_s_max=DEADLINE_S):
        super().__init__()
        self.arguments = folder, OperatorCommand(injections), answer_s_max
        self.reply = self.error = None
        self.start()

    def run(self):
        """Ask."""
        try:
            self.reply = by_hand.ask(*self.arguments)
        except Exception as error:  # noqa: BLE001 # the test looks at it
            self.error = error

    def ended(self):
        """Itself, once it has ended."""
        self.join(DEADLINE_S)
        assert not self.is_alive()
        return self


def test_an_order_arrives_and_its_answer_returns(control, tmp_path):
    """Every field of an injection survives the way."""
    change = Injection(node="edge-1", action="link", change=LinkChange(uplink_bit_s=10**6, loss=0.5))
    asking = Asking(tmp_path, KILL, change)
    (ordered,) = orders(control)
    control.answer(CommandResult(ordered.ticket))

    assert ordered.injections == (KILL, change)
    assert asking.ended().reply.problem == ""


def test_each_client_gets_the_answer_to_its_own_order(control, tmp_path):
    """Whatever the order of the answers."""
    askings = [Asking(tmp_path, Injection(node=f"edge-{k}", action="kill")) for k in range(8)]
    found = []
    while len(found) < len(askings):
        found += orders(control)
    for ordered in reversed(found):
        control.answer(CommandResult(ordered.ticket, problem=f"not {ordered.injections[0].node}"))

    assert len({ordered.ticket for ordered in found}) == len(askings)
    assert [asking.ended().reply.problem for asking in askings] == [f"not edge-{k}" for k in range(8)]


@pytest.mark.parametrize(
    "said",
    [
        b"hello\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"injections": []}\n',
        b'{"injections": [{"node": "edge-0", "action": "explode"}]}\n',
        b"[" * 100_000 + b"\n",
        b"x" * (LINE_MAX + 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["word", "bytes", "list", "empty", "unknown action", "deep", "endless", "http"],
)
def test_nonsense_is_answered_and_is_no_order(control, tmp_path, said):
    """The next client is served as if nothing had been."""
    client = dial(tmp_path)
    shouting = threading.Thread(target=shout, args=(client, said))
    shouting.start()
    while select.select([client], [], [], 0.01)[0] == []:
        assert control.orders() == []
    shouting.join(DEADLINE_S)
    reply = client.recv(1 << 16)
    client.close()
    asking = Asking(tmp_path, KILL)
    (ordered,) = orders(control)
    control.answer(CommandResult(ordered.ticket))

    assert b"not an order" in reply
    assert asking.ended().reply.problem == ""


def shout(client, said):
    """Say it, whether or not anybody listens to the end."""
    try:
        client.sendall(said)
    except OSError:
        return


def test_a_client_that_leaves_is_no_event(control, tmp_path):
    """Before its line, in the middle of it, and before its answer."""
    dial(tmp_path).close()
    half = dial(tmp_path)
    half.sendall(b'{"injections"')
    half.close()
    whole = dial(tmp_path)
    whole.sendall(msgspec.json.encode(OperatorCommand((KILL,))) + b"\n")
    whole.close()
    (ordered,) = orders(control)
    control.answer(CommandResult(ordered.ticket))
    control.answer(CommandResult(ordered.ticket))
    control.answer(CommandResult(77))

    assert control.orders() == []
    assert not select.select([control], [], [], 0)[0]


def test_an_order_may_come_in_pieces(control, tmp_path):
    """A line is complete at its end."""
    client = dial(tmp_path)
    line = msgspec.json.encode(OperatorCommand((KILL,))) + b"\n"
    client.sendall(line[:10])
    select.select([control], [], [], DEADLINE_S)
    while select.select([control], [], [], 0.05)[0]:
        assert control.orders() == []
    client.sendall(line[10:])
    (ordered,) = orders(control)
    control.answer(CommandResult(ordered.ticket))

    assert ordered.injections == (KILL,)
    assert msgspec.json.decode(everything(client)) == {"problem": "", "told": ""}


def test_silent_clients_do_not_keep_others_out(control, tmp_path):
    """The one that has been silent longest makes room."""
    silent = []
    for _ in range(CLIENTS_MAX):
        silent.append(dial(tmp_path))
        control.orders()
    asking = Asking(tmp_path, KILL)
    (ordered,) = orders(control)
    control.answer(CommandResult(ordered.ticket))

    assert asking.ended().reply.problem == ""
    assert everything(silent[0]) == b""
    for client in silent:
        client.close()


def test_the_owner_alone_may_connect(control, tmp_path):
    """From the moment that the socket has a name."""
    assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600


def test_a_path_that_is_too_long_for_a_socket_is_none_for_the_control(tmp_path):
    """A path to a socket may have 107 bytes, a run's folder more."""
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    with Control(folder) as control:
        asking = Asking(folder, KILL)
        (ordered,) = orders(control)
        control.answer(CommandResult(ordered.ticket))

        assert asking.ended().reply.problem == ""
    assert not (folder / SOCKET).exists()


def test_what_a_killed_controller_left_is_replaced(tmp_path):
    """Its socket is there, and nobody behind it."""
    program = (
        "import os, sys, pathlib; from edgebed.runtimes.live.control import Control;"
        "control = Control(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=DEADLINE_S)
    assert (tmp_path / SOCKET).is_socket()

    with pytest.raises(ScenarioError, match="nobody listens"):
        by_hand.ask(tmp_path, OperatorCommand((KILL,)))
    with Control(tmp_path) as control:
        asking = Asking(tmp_path, KILL)
        (ordered,) = orders(control)
        control.answer(CommandResult(ordered.ticket))
        assert asking.ended().reply.problem == ""


def test_nobody_listens_once_it_is_closed(tmp_path):
    """The socket is gone, and whoever still waits is told that the trial has ended."""
    control = Control(tmp_path)
    asking = Asking(tmp_path, KILL)
    orders(control)
    control.close()
    control.close()

    assert isinstance(asking.ended().error, InfrastructureError)
    assert "the trial ended before" in str(asking.error)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ScenarioError, match="nobody listens"):
        by_hand.ask(tmp_path, OperatorCommand((KILL,)))


def test_an_order_that_was_not_read_any_more_has_come_too_late(tmp_path):
    """The connection is reset, which says no more than that it is over."""
    control = Control(tmp_path)
    asking = Asking(tmp_path, KILL)
    assert select.select([control], [], [], DEADLINE_S)[0]
    control.close()

    assert isinstance(asking.ended().error, InfrastructureError)
    assert "the trial ended before" in str(asking.error)


def test_a_controller_that_does_not_answer_is_not_waited_for_for_ever(control, tmp_path):
    """It may have been done all the same, and the message says so."""
    asking = Asking(tmp_path, KILL, answer_s_max=0.05)

    assert isinstance(asking.ended().error, InfrastructureError)
    assert "not answered within 0.05 s; it may still do it" in str(asking.error)


def test_a_folder_that_can_have_no_socket_is_named(tmp_path):
    """The run goes on without."""
    with pytest.raises(InfrastructureError, match=r"gone/control\.sock: no socket can be made here"):
        Control(tmp_path / "gone")
