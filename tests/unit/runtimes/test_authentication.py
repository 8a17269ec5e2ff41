"""Password and keys of a run, and sockets that ask for them, over loopback."""

import re

import msgspec
import pytest
import zmq
from raw_zmtp import OLD_GREETINGS, closes, frame, greeting, no_mechanism, plain_hello
from run_secret import CREDENTIALS, SECRET
from waiting import until
from zmq.utils import z85

from edgebed.core.errors import InfrastructureError
from edgebed.core.records import Unauthenticated, Usage
from edgebed.runtimes.live.authentication import Credentials, KeyPair, new_identity, new_secret
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.shell.reporter import REPORT_RECORDS_MAX
from edgebed.runtimes.live.sockets import REPORT_BYTES_MAX, bind, data_socket, management_socket
from edgebed.wire import frames as codec
from edgebed.wire import messages

ENCRYPTED = Credentials.of(SECRET, "curve")
STRANGERS = Credentials.of("ff" * 16)
KINDS = {
    "data, plain": (data_socket, CREDENTIALS),
    "data, curve": (data_socket, ENCRYPTED),
    "management": (management_socket, CREDENTIALS),
}
WAIT_MS = 10_000
HOST = "127.0.0.1"


@pytest.fixture
def ask(context):
    """`ask(opened, credentials)`: a socket that asks, as an endpoint that looks at its connections."""
    ends = []

    def make(opened=management_socket, credentials=CREDENTIALS):
        ends.append(RouterEndpoint(opened(context, zmq.ROUTER, credentials), "data", pytest.fail))
        ends[-1].look()
        return ends[-1]

    yield make
    for end in ends:
        end.monitor.close(linger=0)
        end.socket.close(linger=0)


@pytest.fixture(params=KINDS)
def asking(request, ask):
    """A socket that asks, of each kind: (its endpoint, its address, what opens such sockets, what they show)."""
    opened, credentials = KINDS[request.param]
    endpoint = ask(opened, credentials)
    return endpoint, bind(endpoint.socket, HOST), opened, credentials


def is_heard(endpoint, client, address, wait_ms=WAIT_MS):
    """Whether something that a client says reaches an endpoint."""
    with client:
        client.linger = 0
        client.connect(address)
        if not client.poll(wait_ms, zmq.POLLOUT):
            return False
        client.send(b"let me in")
        return bool(endpoint.socket.poll(wait_ms))


def refused(endpoint):
    """How many connections an endpoint has refused; waits for the first."""
    assert endpoint.monitor.poll(WAIT_MS)
    endpoint.look()
    return sum(record.count for record in endpoint.refusals("data"))


def test_what_is_shown_follows_from_the_secret_and_each_thing_from_its_purpose():
    """The same in every version, or a node of an older image would be a stranger; 128 bits, and never the same."""
    assert CREDENTIALS.password == b"d05de3f1038166a38c6488c860424ee8"
    assert CREDENTIALS == Credentials.of(SECRET) != STRANGERS
    assert CREDENTIALS.host.private != CREDENTIALS.client.private
    assert bytes.fromhex(CREDENTIALS.password.decode()) not in z85.decode(CREDENTIALS.client.private)
    assert CREDENTIALS.client.public == zmq.curve_public(CREDENTIALS.client.private)
    assert len({new_secret() for _ in range(100)}) == 100
    assert all(len(bytes.fromhex(new_secret())) == 16 for _ in range(10))


def test_nothing_secret_is_in_the_words_for_them():
    """As a traceback or a log would have it."""
    shown = repr(CREDENTIALS)
    assert shown == "Credentials(encrypts_data=False)"


@pytest.mark.parametrize("secret", ["", "00", "00" * 15, "00" * 17, "not a number at all, of no bytes"])
def test_anything_but_128_bits_is_no_secret(secret):
    """An empty one would make a key that everybody knows."""
    with pytest.raises(ValueError, match=r"16 bytes|non-hexadecimal"):
        Credentials.of(secret)


def test_a_libzmq_without_curve_is_named(monkeypatch):
    """Before anything starts, and with what to do."""
    monkeypatch.setattr(zmq, "has", lambda _: False)
    with pytest.raises(InfrastructureError, match="without CURVE; the wheels"):
        Credentials.of(SECRET)


def test_identities_hold_64_random_bits():
    """So that nobody comes upon another's, or upon that of a later life."""
    first, second = new_identity("edge-0"), new_identity("edge-0")
    assert first != second
    assert all(re.fullmatch("edge-0~[0-9a-f]{16}", each) for each in (first, second))


def test_only_what_the_secret_gives_is_admitted():
    """By either mechanism, whole, and by no other."""
    user, public = b"edgebed", z85.decode(CREDENTIALS.client.public)
    assert CREDENTIALS.admits(b"PLAIN", [user, CREDENTIALS.password])
    assert CREDENTIALS.admits(b"CURVE", [public])
    for mechanism, shown in (
        (b"PLAIN", [user, STRANGERS.password]),
        (b"PLAIN", [user, b""]),
        (b"PLAIN", [b"root", CREDENTIALS.password]),
        (b"PLAIN", [CREDENTIALS.password]),
        (b"CURVE", [z85.decode(STRANGERS.client.public)]),
        (b"CURVE", [z85.decode(CREDENTIALS.host.public)]),
        (b"CURVE", []),
        (b"NULL", []),
        (b"GSSAPI", [CREDENTIALS.password]),
    ):
        assert not CREDENTIALS.admits(mechanism, shown), (mechanism, shown)


def test_who_has_the_secret_is_heard(asking, ask, context):
    """Whatever the mechanism; several sockets of a context share the one who answers."""
    endpoint, address, opened, credentials = asking
    other = ask(data_socket)

    assert is_heard(endpoint, opened(context, zmq.DEALER, credentials, new_identity("edge-0")), address)
    assert is_heard(
        other, data_socket(context, zmq.DEALER, CREDENTIALS, new_identity("edge-0")), bind(other.socket, HOST)
    )
    assert list(endpoint.refusals("data")) == []


@pytest.mark.parametrize("identity", ["edge-0", "edge-1~1", "controller", ""])
def test_a_connection_speaks_for_the_node_alone_that_it_names(ask, context, identity):
    """Whoever has the secret: what it says in another's name, or as nobody, is dropped."""
    endpoint, complaints = ask(data_socket), []
    endpoint.complain = complaints.append
    with data_socket(context, zmq.DEALER, CREDENTIALS, identity) as client:
        client.connect(bind(endpoint.socket, HOST))
        for sender in ("edge-0", "edge-1"):
            client.send_multipart(codec.encode(messages.Join(sender=sender, incarnation=1)))
        heard = []
        until(lambda: heard.extend(endpoint.receive()) or len(heard) + len(complaints) == 2, "both", every_s=0.01)

    assert [event.message.sender for event in heard] == (["edge-1"] if identity == "edge-1~1" else [])
    assert all("it says that it is" in each for each in complaints)


def test_who_has_another_secret_is_refused_and_counted(asking, context):
    """As one record, with how many there were."""
    endpoint, address, opened, credentials = asking
    theirs = Credentials.of("ff" * 16, "curve" if credentials.encrypts_data else "plain")

    assert not is_heard(endpoint, opened(context, zmq.DEALER, theirs), address, wait_ms=200)
    assert endpoint.monitor.poll(WAIT_MS)
    endpoint.look()
    (record,) = endpoint.refusals("data")
    assert record == Unauthenticated(socket="data", count=record.count)
    assert list(endpoint.refusals("data")) == []


def test_the_key_of_the_host_alone_does_not_help(ask, context):
    """It is known to whom it was shown, and a client has to have the clients' own key."""
    endpoint = ask()
    client = context.socket(zmq.DEALER)
    keys = KeyPair(*zmq.curve_keypair())
    client.curve_serverkey, client.curve_publickey, client.curve_secretkey = CREDENTIALS.host.public, *keys

    assert not is_heard(endpoint, client, bind(endpoint.socket, HOST), wait_ms=200)
    assert refused(endpoint)


def test_the_password_opens_no_encrypted_socket(ask, context):
    """What was overheard on the data network is of no use on the management network."""
    endpoint = ask()

    assert not is_heard(
        endpoint, data_socket(context, zmq.DEALER, CREDENTIALS), bind(endpoint.socket, HOST), wait_ms=200
    )
    assert refused(endpoint)


def test_a_host_without_the_secret_is_told_nothing_where_it_is_encrypted(ask, context):
    """A node does not talk to somebody else who listens at the controller's address."""
    theirs = ask(credentials=STRANGERS)
    node = management_socket(context, zmq.DEALER, CREDENTIALS)

    assert not is_heard(theirs, node, bind(theirs.socket, HOST), wait_ms=200)


def test_nobody_is_admitted_while_nobody_answers(ask, context, monkeypatch):
    """Rather than everybody."""
    monkeypatch.setattr(Credentials, "_answer_in", lambda *_: None)
    for opened, credentials in KINDS.values():
        endpoint = ask(opened, credentials)
        client = opened(context, zmq.DEALER, credentials)
        assert not is_heard(endpoint, client, bind(endpoint.socket, HOST), wait_ms=200)


@pytest.mark.parametrize(
    "parts",
    [
        (b"GET / HTTP/1.1\r\n\r\n",),
        (OLD_GREETINGS["1.0"], b"\x06\0hello"),
        (OLD_GREETINGS["2.0"], b"\0\5hello"),
        (greeting(b"NULL"), no_mechanism(), frame(b"hello")),
        (greeting(b"PLAIN"), plain_hello(b"edgebed", b"wrong"), frame(b"hello")),
        (greeting(b"PLAIN"), no_mechanism(), frame(b"hello")),
        (greeting(b"PLAIN"), frame(b"hello")),
        (greeting(b"CURVE"), no_mechanism(), frame(b"hello")),
        (greeting(b"CURVE"), frame(b"hello")),
    ],
    ids=["http", "zmtp-1", "zmtp-2", "null", "wrong", "no-password", "no-handshake", "no-keys", "no-curve"],
)
def test_what_shows_nothing_is_closed_before_a_frame_is_read(asking, parts):
    """Older versions of the protocol, which have no handshake, included."""
    endpoint, address, _, _ = asking

    assert closes(address, *parts)
    assert not endpoint.socket.poll(50)


def test_a_whole_report_passes_the_controllers_socket():
    """As many records as one may have, of the kind with the most fields, all of them set."""
    numbers = {field.name: 2**40 + 1 for field in msgspec.structs.fields(Usage)}
    usage = Usage(**numbers)
    report = messages.Report(sender="edge-0", first=0, records=((1e4, usage),) * REPORT_RECORDS_MAX)

    assert len(codec.encode(report)[0]) < REPORT_BYTES_MAX
