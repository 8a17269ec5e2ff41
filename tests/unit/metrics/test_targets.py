"""The HTTP pages, over real loopback connections: scrapes, discovery, status, and clients that misbehave."""

import contextlib
import http.client
import json
import logging
import re
import select
import socket
import threading
import time

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from edgebed.core.errors import InfrastructureError
from edgebed.metrics import discovery as under_test
from edgebed.metrics.discovery import Target, TargetList, serve_controller, serve_metrics
from edgebed.metrics.exporter import NodeMetrics

HOST = "127.0.0.1"
TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    """A registry with one counter at 0."""
    made = CollectorRegistry()
    Counter("edgebed_test", "A test.", registry=made)
    return made


@pytest.fixture(scope="module")
def port(registry):
    """The port of a controller's pages whose status counts its calls."""
    calls = iter(range(1_000))
    server, port = serve_controller(registry, TargetList(), lambda: {"calls": next(calls)}, HOST)
    with contextlib.closing(server):
        yield port


SCRAPE = {"X-Prometheus-Scrape-Timeout-Seconds": "2"}
REFRESH = {"X-Prometheus-Refresh-Interval-Seconds": "5"}


def fetch(port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, str, bytes]:
    """Status, content type and body of one request."""
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read()


def target(node: str, port: int = 9000, host: str = "") -> Target:
    """A worker's target."""
    place = f"{HOST}:{port}"
    return Target(address=place, node=node, role="worker", device_class="edge", run="7", trial="asgd", host=host)


def test_a_scrape_reads_what_a_node_exports():
    """Prometheus' own parser understands the page, and the value is the node's."""
    metrics = NodeMetrics("server")
    server, port = serve_metrics(metrics.registry, HOST)
    with contextlib.closing(server):
        metrics.count_bytes("ingress", "push", 12_700)
        status, content_type, body = fetch(port, "/metrics")
    samples = {
        (sample.name, sample.labels.get("kind")): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }

    assert status == 200
    assert content_type.startswith("text/plain")
    assert samples["edgebed_ps_ingress_bytes_total", "push"] == 12_700


def test_discovery_without_nodes_is_an_empty_list(port):
    """Prometheus wants 200 and JSON even then; an error would make it keep an old list."""
    status, content_type, body = fetch(port, "/targets")

    assert (status, content_type, json.loads(body)) == (200, "application/json", [])


def test_discovery_lists_every_node_with_its_labels(registry):
    """In the form of Prometheus' HTTP service discovery; a node that comes back is listed once, at its new place."""
    nodes = TargetList()
    for entry in (target("edge-0"), target("edge-1", 9001), target("edge-0", 9002)):
        nodes.add(entry)
    server, port = serve_controller(registry, nodes, dict, HOST)
    with contextlib.closing(server):
        _, _, body = fetch(port, "/targets")
    labels = {"role": "worker", "device_class": "edge", "run": "7", "trial": "asgd"}

    assert json.loads(body) == [
        {"targets": ["127.0.0.1:9002"], "labels": {"node": "edge-0", **labels}},
        {"targets": ["127.0.0.1:9001"], "labels": {"node": "edge-1", **labels}},
    ]


def test_a_node_on_one_of_several_hosts_has_its_name():
    """With one alone there is no such label, so that series are called as they always were."""
    nodes = TargetList()
    for entry in (target("edge-0"), target("edge-1", host="lab-1")):
        nodes.add(entry)

    assert [one["labels"].get("host") for one in nodes.as_discovery()] == [None, "lab-1"]


def test_a_new_trial_starts_with_an_empty_list():
    """The nodes of the trial before are none of its own."""
    nodes = TargetList()
    nodes.add(target("edge-0"))
    nodes.clear()

    assert nodes.as_discovery() == []


def test_a_node_that_ended_in_order_is_listed_no_longer():
    """One that died stays; removing one that never came is no mistake."""
    nodes = TargetList()
    nodes.add(target("edge-0"))
    nodes.add(target("edge-1"))
    nodes.remove("edge-0")
    nodes.remove("edge-7")

    assert [one["labels"]["node"] for one in nodes.as_discovery()] == ["edge-1"]


@pytest.fixture
def watched(registry):
    """A controller's pages and their visits."""
    server, _ = serve_controller(registry, TargetList(), dict, HOST)
    with contextlib.closing(server):
        yield server


def answered(watched, path, headers):
    """Ask for a page and wait until the visit has been noted, which comes after the answer."""
    noted = threading.Event()
    note = watched.visits.note

    def note_and_tell(*visit):
        note(*visit)
        noted.set()

    watched.visits.note = note_and_tell
    fetch(watched.port, path, headers=headers)
    assert noted.wait(TIMEOUT_S)
    watched.visits.note = note


def is_readable(visits) -> bool:
    """Whether the scrape that is expected has come."""
    return bool(select.select([visits], [], [], 0)[0])


def test_nodes_wait_for_prometheus_while_it_asks_for_their_list(watched, monkeypatch):
    """Neither a person who looks at the list nor scrapes of the controller make them wait; nor does one that left."""
    answered(watched, "/targets", {})
    answered(watched, "/metrics", SCRAPE)
    assert watched.visits.linger_s() == 0.0

    answered(watched, "/targets", REFRESH)
    assert watched.visits.linger_s() == under_test.SCRAPE_FIRST_S

    monkeypatch.setattr(under_test, "WATCHED_S", 0.0)
    assert watched.visits.linger_s() == 0.0


def test_a_scrape_is_expected_once_values_are_final(watched):
    """A scrape before that, another page or another visitor is not it; every expectation needs a scrape of its own."""
    answered(watched, "/metrics", SCRAPE)
    for _ in range(2):
        watched.visits.expect_scrape()
        answered(watched, "/metrics", {})
        answered(watched, "/targets", REFRESH)
        assert not is_readable(watched.visits)

        answered(watched, "/metrics?name[]=x", SCRAPE)
        assert is_readable(watched.visits)


def test_a_scrape_that_began_before_the_values_were_final_is_not_the_expected_one(watched):
    """It may have read what has changed since."""
    began_s = time.monotonic()
    watched.visits.expect_scrape()
    watched.visits.note("/metrics", SCRAPE, began_s)

    assert not is_readable(watched.visits)


def test_who_waits_for_a_scrape_goes_on_when_it_came(watched, monkeypatch):
    """And at once where nobody scrapes."""
    monkeypatch.setattr(under_test, "SCRAPE_AGAIN_S", 1_000.0)
    watched.visits.await_scrape()
    answered(watched, "/metrics", SCRAPE)
    waiting = threading.Thread(target=watched.visits.await_scrape)
    waiting.start()
    assert waiting.is_alive()
    while waiting.is_alive():
        answered(watched, "/metrics", SCRAPE)

    assert is_readable(watched.visits)


def test_the_status_is_asked_for_at_each_request(port):
    """It is the state of now, not of the start."""
    before, after = (json.loads(fetch(port, "/status")[2])["calls"] for _ in range(2))

    assert after == before + 1


def test_a_status_that_fails_is_an_error_of_that_page_alone(registry, caplog):
    """500 with a word, the traceback in the log, and the metrics still there."""
    server, port = serve_controller(registry, TargetList(), lambda: 1 / 0, HOST)
    with contextlib.closing(server), caplog.at_level(logging.CRITICAL + 1):
        failed, _, _ = fetch(port, "/status")
        fine, _, _ = fetch(port, "/metrics")

    assert (failed, fine) == (500, 200)


def test_another_path_is_answered_with_the_paths_there_are(port):
    """404 tells where to look."""
    status, _, body = fetch(port, "/")

    assert status == 404
    assert body == b"Here are /metrics, /targets, /status.\n"


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "nonsense"])
def test_only_reading_is_answered(port, method):
    """Nothing can be changed over HTTP."""
    assert fetch(port, "/status", method)[0] == 405


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /%00%ff?\xff HTTP/1.1\r\n\r\n",
    ],
    ids=["empty", "tls", "short", "version", "length", "headers", "long", "bytes"],
)
def test_a_malformed_request_harms_nobody(port, capfd, request_bytes):
    """It gets an error or nothing, standard error stays empty, and the next scrape is answered."""
    with socket.create_connection((HOST, port), timeout=TIMEOUT_S) as client, contextlib.suppress(OSError):
        client.sendall(request_bytes)
        client.shutdown(socket.SHUT_WR)
        client.recv(65536)

    assert fetch(port, "/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_client_that_says_nothing_blocks_nobody(port):
    """Others are answered while it keeps its connection open."""
    with socket.create_connection((HOST, port)), socket.create_connection((HOST, port)) as half:
        half.sendall(b"GET /metr")

        assert fetch(port, "/metrics")[0] == 200


def test_silent_clients_beyond_the_bound_are_turned_away_and_cut_off(registry, monkeypatch):
    """However many there are, after a while the pages are to be had again."""
    monkeypatch.setattr(under_test, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(under_test, "CONNECTION_S_MAX", 0.2)
    server, port = serve_metrics(registry, HOST)
    with contextlib.closing(server), contextlib.ExitStack() as silent:
        clients = [silent.enter_context(socket.create_connection((HOST, port), timeout=TIMEOUT_S)) for _ in range(6)]
        ends = [client.recv(1) for client in clients]  # returns once the server closes

        assert ends == [b""] * 6
        monkeypatch.setattr(under_test, "CONNECTION_S_MAX", TIMEOUT_S)
        until_s = time.monotonic() + TIMEOUT_S
        while not is_answered(port):  # what has just been closed counts for a moment longer
            assert time.monotonic() < until_s


def is_answered(port: int) -> bool:
    """Whether the pages can be had."""
    with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
        return fetch(port, "/metrics")[0] == 200
    return False


def test_a_client_that_leaves_before_the_answer_is_no_event(port, capfd):
    """Nothing is written to standard error, and others are answered."""
    for _ in range(20):
        client = socket.create_connection((HOST, port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # reset, not close
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        client.close()

    assert fetch(port, "/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_port_in_use_is_named_with_what_to_do(registry, port):
    """An error of the infrastructure, before anything runs."""
    message = rf"{re.escape(HOST)}:{port}: the port is in use\. Choose another, or 0"
    with pytest.raises(InfrastructureError, match=message):
        serve_metrics(registry, HOST, port)


def test_an_address_that_is_not_here_is_named(registry):
    """203.0.113.0/24 is reserved for documents; no machine has it."""
    with pytest.raises(InfrastructureError, match=r"203\.0\.113\.7:0: this machine has no such address"):
        serve_metrics(registry, "203.0.113.7")


def test_the_server_holds_no_process_back(registry):
    """All its threads are daemons, those of its connections as well."""
    others = set(threading.enumerate())
    server, port = serve_metrics(registry, HOST)
    with contextlib.closing(server), socket.create_connection((HOST, port)) as silent:
        silent.sendall(b"GET")
        fetch(port, "/metrics")
        started = set(threading.enumerate()) - others

        assert len(started) >= 2
        assert all(thread.daemon for thread in started)


def test_a_closed_server_gives_its_port_back(registry):
    """The next run may have it at once."""
    server, port = serve_metrics(registry, HOST)
    server.close()
    again, same = serve_metrics(registry, HOST, port)
    again.close()

    assert same == port


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:80", "127.0.0.1.rebound.example", "a.b."])
def test_a_page_that_gave_itself_this_machines_address_learns_nothing(host, port):
    """DNS rebinding: a browser sends the name that it was asked for."""
    status, _, body = fetch(port, "/status", headers={"Host": host})
    assert (status, body) == (403, b"Ask by an address, localhost or this machine's name.\n")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "controller:9464", socket.gethostname()])
def test_whoever_asks_by_an_address_or_a_local_name_is_answered(host, port):
    """Prometheus asks by a container's name."""
    assert fetch(port, "/metrics", headers={"Host": host})[0] == 200
