"""One example of every message with its tensors' frames, large enough that every part of a header is there."""

import numpy as np
from evaluated import evaluation
from tasks import one_array

from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.core.plan import Method, Part, Task, TensorLayout, Waiting, WorkerPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.wire import messages
from edgebed.wire.tensors import encode_dense, encode_update


def node_plan() -> WorkerPlan:
    """A worker's plan with something in every field."""
    return WorkerPlan(
        node="edge-0",
        device_class="edge",
        seed=7,
        cpus=0.5,
        memory_bytes=1 << 29,
        waiting=Waiting(distribution="uniform", low_s=0.1, high_s=0.2),
        task=Task(
            model="small",
            inputs=one_array((1, 8, 8)),
            outputs=10,
            layout=(TensorLayout("w", (64, 10)), TensorLayout("b", (10,))),
            batch_size=10,
            gradient_time_s=0.01,
            python_path=("models",),
        ),
        method=Method(
            name="adacomp",
            parts={
                "aggregation": Part(name="asynchronous", settings={"staleness": "per-parameter"}),
                "compression": Part(name="top-k", settings={"fraction": 0.01}),
                "local_work": Part(name="gradient-step"),
            },
        ),
        num_examples=300,
        label_counts=(30,) * 10,
    )


def sparse(size: int, entries: int, dtype: str) -> ModelUpdate:
    """A sparse update with positions and values drawn once and for all."""
    rng = np.random.default_rng(entries)
    indices = np.sort(rng.choice(size, entries, replace=False))
    return ModelUpdate(size, indices, rng.normal(size=entries).astype(dtype))


SLOWED = Injection(node="edge-0", action="link", change=LinkChange(uplink_bit_s=1_000_000))


def example_messages() -> list[tuple[messages.AnyMessage, list[memoryview]]]:
    """Every kind, those with tensors in several shapes, one of them in two frames."""
    report = (
        (0.5, records.Update(worker="edge-0", incarnation=1, step=4, version=9, base=7, staleness=1,
                             entries=10, bits=640, bytes=90, loss=2.5)),
        (0.6, evaluation(version=9, accuracy=0.5, loss=1.5, final=True)),
        (0.7, records.Traffic(ingress_payload=10, egress_payload=20, ingress_interface=30)),
    )  # fmt: skip
    found: list[tuple[messages.AnyMessage, list[memoryview]]] = [
        (messages.Join(sender="edge-0", incarnation=1), []),
        (messages.Working(sender="edge-0"), []),
        (messages.Pull(sender="evaluator", at_version=100), []),
        (messages.Refuse(sender="server", code="not-joined", reason="'edge-9' has not joined"), []),
        (messages.Hello(sender="edge-0", pid=4711), []),
        (messages.Built(sender="edge-0"), []),
        (messages.Ready(sender="server", data_address="tcp://127.0.0.1:1", metrics_address="127.0.0.1:2"), []),
        (messages.Start(sender="controller", addresses=(("server", "tcp://127.0.0.1:1"),)), []),
        (messages.Incarnations(sender="controller", workers=(("edge-0", 2),)), []),
        (messages.Report(sender="server", first=3, records=report), []),
        (messages.Journaled(sender="controller", durable=7), []),
        (messages.Finish(sender="controller", reason="60 s have passed"), []),
        (messages.Stop(sender="controller", reason="done"), []),
        (messages.Bye(sender="edge-0", reason="done"), []),
        (messages.Alive(sender="edge-0", incarnation=2), []),
        (messages.AskTime(sender="edge-0", asked_ns=1_000), []),
        (messages.TellTime(sender="controller", asked_ns=1_000, heard_ns=-5, told_ns=2**62), []),
        (messages.Errors(sender="controller", nodes=(("server", 0.001),)), []),
        (messages.Reached(sender="edge-0", fault=3, step=12), []),
        (messages.Proceed(sender="controller"), []),
        (messages.Inject(sender="controller", injection=SLOWED), []),
        (messages.Failed(sender="controller", node="edge-0", incarnation=2), []),
        (messages.Fetch(sender="edge-1", of="edge-0", what="activation", history=1, step=12, micro=3), []),
        (messages.Taken(sender="edge-1", history=1, step=12, micro=3), []),
    ]
    updates = [
        sparse(650, 7, "float32"), sparse(650, 64, "float16"), sparse(100_000, 40, "float32"),
        sparse(650, 650, "float16"),
        sparse(1, 1, "float32"), sparse(5, 0, "float32"), ModelUpdate(24, None, np.arange(24, dtype="f4")),
        sparse(300_000, 70_000, "float32"),
    ]  # fmt: skip
    for update in updates:
        tensor, frames = encode_update("update", update)
        push = messages.Push(sender="edge-0", incarnation=1, step=4, base=7, loss=2.5, tensors=(tensor,))
        found.append((push, frames))
    tensor, frames = encode_dense("h", np.ones((10, 4, 14, 14), "f4"))
    found.append((messages.Activation(sender="edge-0", history=1, step=12, micro=3, tensors=(tensor,)), frames))
    tensor, frames = encode_dense("gradient", np.ones((10, 4, 14, 14), "f4"))
    found.append((messages.Gradient(sender="edge-1", history=1, step=12, micro=3, tensors=(tensor,)), frames))
    for name in ("weights", "state"):
        tensor, frames = encode_dense(name, np.ones(650, "f4"))
        found.append((messages.Backup(sender="edge-0", history=1, step=12, tensors=(tensor,)), frames))
        found.append((messages.Resume(sender="server", history=2, step=12, tensors=(tensor,)), frames))
    tensor, frames = encode_dense("theta", np.linspace(-1, 1, 650, dtype="f4"))
    found.append((messages.Model(sender="server", version=9, final=True, tensors=(tensor,)), frames))
    found.append((messages.Checkpoint(sender="server", version=9, tensors=(tensor,)), frames))
    state, state_frames = encode_dense("state", np.ones(5, np.float32))
    parts = (("edge-0", 2), ("edge-1", 3))
    found.append((messages.Keep(sender="server", step=40, parts=parts, tensors=(state,)), state_frames))
    found.append((messages.RollBack(sender="controller", step=40, parts=parts, tensors=(state,)), state_frames))
    x, x_frames = encode_dense("inputs/", np.arange(640, dtype="u1").reshape(10, 1, 8, 8))
    y, y_frames = encode_dense("targets/", np.arange(10, dtype="i8"))
    configure = messages.Configure(
        sender="controller", incarnation=2, epoch_ns=123, plan=node_plan(), peers=("edge-0", "edge-1"), tensors=(x, y)
    )
    found.append((configure, [*x_frames, *y_frames]))
    return found
