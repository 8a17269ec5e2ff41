"""The parameter server against a raw ZeroMQ echo of the same frames, in one run.

Clients push the same frames to both and wait for the answer, a whole model; both share the machine with them, and both
ask for the run's secret. What the ratio leaves is the server's own work: decoding, appending to the log, applying,
counting staleness, taking a snapshot, journaling.
"""

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec
import numpy as np
import psutil
import zmq

from benchmarks.subjects import PARAMETERS, node_plan, real_gradient, theta
from edgebed.algorithms.compression import top_k
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.linux import monotonic_clock
from edgebed.core.plan import Durability
from edgebed.learning.allocator import keep_freed_memory
from edgebed.runtimes.live.authentication import Credentials, new_secret
from edgebed.runtimes.live.node import NodeEnvironment, run_node
from edgebed.runtimes.live.sockets import data_socket, management_socket
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, encode_dense, encode_update

CLIENTS = (1, 4, 8)
SECRET = new_secret()
CREDENTIALS = Credentials.of(SECRET)
_fork = multiprocessing.get_context("fork")


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Rows of (push, clients, echo/s, server/s, ratio): medians over rounds that alternate the two."""
    seconds, rounds = (0.3, 1) if quick else (2.0, 7)
    rows = []
    gradient = real_gradient()
    shapes = [tensor.shape for tensor in node_plan("worker").task.layout]
    pushes = {
        "1 % sparse": ("adacomp", top_k.Compression(top_k.Config(), shapes).choose(gradient)),
        "dense": ("asgd", ModelUpdate(len(gradient), None, gradient)),
    }
    for kind, (method, update) in pushes.items():
        tensor, frames = encode_update("update", update)
        payload: list[Buffer] = [bytes(frame) for frame in frames]
        for clients in CLIENTS:
            rates: dict[str, list[float]] = {"echo": [], "server": []}
            for _ in range(rounds):
                load = clients, tensor, payload, seconds
                rates["echo"].append(_rate(start_echo(method, clients), load))
                with tempfile.TemporaryDirectory(dir=".") as folder:  # on the disk of the checkout, not in memory
                    rates["server"].append(_rate(start_server(method, clients, "log", folder), load))
            echo, server = (float(np.median(rates[name])) for name in ("echo", "server"))
            ratios = [s / e for s, e in zip(rates["server"], rates["echo"], strict=True)]
            rows.append(
                {"push": kind, "clients": clients, "echo_per_s": echo, "server_per_s": server,
                 "ratio": float(np.median(ratios))}
            )  # fmt: skip
    return rows


def _rate(
    started: tuple[BaseProcess, str, Callable[[], None]], load: tuple[int, messages.Tensor, list[Buffer], float]
) -> float:
    """Answers a second of a process that has been started, and is ended."""
    with running(started) as (_, address):
        return drive(address, *load)


@contextlib.contextmanager
def running(started: tuple[BaseProcess, str, Callable[[], None]]) -> Iterator[tuple[psutil.Process, str]]:
    """The process that has been started, and its address; it is ended afterwards."""
    process, address, close = started
    try:
        yield psutil.Process(process.pid), address
    finally:
        process.kill()
        process.join()
        close()


def cpu_s(process: psutil.Process) -> float:
    """Processor time that a process has used, of all its threads."""
    times = process.cpu_times()
    return float(times.user + times.system)


def start_echo(
    method: str, clients: int, credentials: Credentials = CREDENTIALS
) -> tuple[BaseProcess, str, Callable[[], None]]:
    """A ROUTER that answers every message with the same model's frames."""
    here, there = _fork.Pipe()

    def serve(pipe: Connection) -> None:
        keep_freed_memory()
        socket = data_socket(zmq.Context(), zmq.ROUTER, credentials)
        pipe.send(f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}")
        tensor, frames = encode_dense("theta", theta())
        model = messages.Model(sender="server", version=1, final=False, tensors=(tensor,))
        answer = codec.encode(model, frames)
        while True:
            peer, *_ = socket.recv_multipart(copy=False)
            socket.send_multipart([peer, *answer], copy=False)

    process = _fork.Process(target=serve, args=(there,), daemon=True)
    process.start()
    return process, here.recv(), lambda: None


def start_server(
    method: str,
    clients: int,
    durability: Durability = "none",
    log_folder: str = "",
    prepare: Callable[[], None] = lambda: None,
) -> tuple[BaseProcess, str, Callable[[], None]]:
    """The real server node, configured by hand as its controller would; its process calls `prepare` first."""
    context: zmq.Context[Any] = zmq.Context()
    socket = management_socket(context, zmq.ROUTER, CREDENTIALS)
    address = f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"
    here = NodeEnvironment(node="server", controller_address=address, secret=SECRET, log_folder=log_folder)

    def serve() -> None:
        keep_freed_memory()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        prepare()
        run_node(here)

    process = _fork.Process(target=serve, daemon=True)
    process.start()
    tensor, frames = encode_dense("theta", theta())
    configure = messages.Configure(
        sender="controller", incarnation=1, epoch_ns=time.monotonic_ns(), clock=monotonic_clock(),
        plan=msgspec.structs.replace(node_plan("server", method), durability=durability),
        peers=tuple(f"edge-{i}" for i in range(clients)), tensors=(tensor,),
    )  # fmt: skip
    data_address = ""
    while not data_address:
        while not socket.poll(1_000):
            assert process.is_alive(), "the server has ended"
        peer, *parts = socket.recv_multipart()
        message, _ = codec.decode(parts, "management")
        if isinstance(message, messages.Hello):
            socket.send_multipart([peer, *codec.encode(configure, frames)])
        elif isinstance(message, messages.Ready):
            data_address = message.data_address
            known = messages.Incarnations(sender="controller", workers=tuple((worker, 1) for worker in configure.peers))
            socket.send_multipart([peer, *codec.encode(known)])

    def close() -> None:
        socket.close(linger=0)
        context.destroy(linger=0)

    return process, data_address, close


def drive(
    address: str,
    clients: int,
    tensor: messages.Tensor,
    payload: list[Buffer],
    seconds: float,
    credentials: Credentials = CREDENTIALS,
) -> float:
    """Answers a second that all clients together get."""
    begin = _fork.Event()
    counts = _fork.Array("d", clients)
    processes = [
        _fork.Process(
            target=_client, args=(i, address, tensor, payload, seconds, begin, counts, credentials), daemon=True
        )
        for i in range(clients)
    ]
    for process in processes:
        process.start()
    time.sleep(0.3)
    begin.set()
    for process in processes:
        process.join()
        assert process.exitcode == 0, "a client was not answered as it should have been"
    return float(sum(counts[:]))


def _client(
    index: int,
    address: str,
    tensor: messages.Tensor,
    payload: list[Buffer],
    seconds: float,
    begin: Any,
    counts: Any,
    credentials: Credentials,
) -> None:
    keep_freed_memory()
    name = f"edge-{index}"
    socket = data_socket(zmq.Context(), zmq.DEALER, credentials, f"{name}~1")
    socket.connect(address)
    socket.send_multipart(codec.encode(messages.Join(sender=name, incarnation=1)))
    socket.recv_multipart(copy=False)
    push = messages.Push(sender=name, incarnation=1, step=0, base=0, loss=1.0, tensors=(tensor,))
    begin.wait()
    answer: list[zmq.Frame] = []
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        frames = codec.encode(msgspec.structs.replace(push, step=count), payload)  # one that came before is not applied
        socket.send_multipart(frames, copy=False)
        answer = socket.recv_multipart(copy=False)
        count += 1
    message, _ = codec.decode([frame.buffer for frame in answer], "data")
    assert isinstance(message, messages.Model), message
    counts[index] = count / (time.perf_counter() - started)


assert PARAMETERS == 211_690
