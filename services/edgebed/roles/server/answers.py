"""The model as it is sent: encoded once for all who need the same.

With `pull: changed-since` a worker that has been answered since it joined gets only the entries that may have changed
since then, with their new values, bit for bit. It gets the whole model when it has joined, when its push names another
version than it was last sent, when the model is final, and when the whole model is no larger. With a `downlink` it gets
what it lacks as that compresses it (downlink.py); the whole model when it has joined, and in the end.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.registry import compresses_down, compression_of
from edgebed.algorithms.several import apart
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import ServerPlan
from edgebed.roles.server.changes import Changes
from edgebed.roles.server.downlink import Downlink
from edgebed.roles.server.snapshot import dump_lasting
from edgebed.wire.messages import Checkpoint, Model, Tensor
from edgebed.wire.tensors import Buffer, CopyFrames, encode_dense, encode_update, payload_bytes, split_frames


class Answers:
    """What the server has sent to each worker, and the encodings of its present model."""

    transient = ("node", "aggregation", "snapshot", "tensors", "encoded", "present")
    """Attributes that do not outlast the server."""

    def __init__(self, plan: ServerPlan, aggregation: Aggregator, snapshot: CopyFrames) -> None:
        self.node = plan.node
        self.aggregation = aggregation
        self.snapshot = snapshot
        size = aggregation.theta.size
        self.tensors = tuple(Tensor(name, "float32", (size,), "dense", size) for name in aggregation.vectors)
        count = len(self.tensors)
        self.changes = Changes(count * size, aggregation.version) if plan.pull == "changed-since" else None
        self.downlink = None
        if compresses_down(plan.method):
            self.downlink = Downlink(compression_of(plan.method, plan.task, "downlink"), plan.seed)
        self.client_versions: dict[str, int] = {}
        """Version that each worker was last sent, and said it had if it has pushed since; absent: it needs all of the
        model."""
        self.final = False
        """Whether no update will follow."""
        self.encoded: dict[int | None, tuple[Model, Sequence[Buffer]]] = {}
        """Encodings of the present model since each version asked for (None: whole)."""
        self.present = (-1, False)
        """(version, final) of these encodings."""

    def changed(self, indices: NDArray[np.int64] | None) -> None:
        """Note that the model got to its present version, by changes at `indices` (k,); None: to any entry."""
        if self.changes:
            self.changes.note(self.aggregation.version, indices)

    def pushed(self, worker: str, base: int) -> None:
        """Note that `worker` says that it has version `base`."""
        if self.client_versions.get(worker) != base:
            self.forget(worker)

    def forget(self, worker: str) -> None:
        """Note that `worker` needs all of the model."""
        self.client_versions.pop(worker, None)
        if self.downlink:
            self.downlink.forget(worker)

    def to_worker(self, worker: str) -> tuple[Model, Sequence[Buffer]]:
        """Return what `worker` needs of the present model."""
        version = self.aggregation.version
        since = self.client_versions.get(worker) if self.changes and not self.final else None
        self.client_versions[worker] = version
        if self.downlink and not self.final:
            row = self.aggregation.row
            sent = self.downlink.changes(worker, row, version, self.aggregation.epoch)
            if sent is not None:
                model = Model(sender=self.node, version=version, final=False, since=sent.since, tensors=sent.tensors)
                return model, sent.frames
            self.downlink.whole(worker, row, version)
        return self._since(since)

    def whole(self) -> tuple[Model, Sequence[Buffer]]:
        """Return all of the present model."""
        return self._since(None)

    def checkpoint(self) -> tuple[Checkpoint, Sequence[Buffer]]:
        """Return the present model, to be stored, and what the aggregation resumes from besides."""
        model, frames = self.whole()
        theta, of_theta = split_frames(model.tensors, frames)["theta"]
        tensor, own = encode_dense("state", dump_lasting(self.aggregation))
        tensors, frames = (theta, tensor), of_theta
        return Checkpoint(sender=self.node, version=model.version, final=model.final, tensors=tensors), [*frames, *own]

    def _since(self, version: int | None) -> tuple[Model, Sequence[Buffer]]:
        present = (self.aggregation.version, self.final)
        if self.present != present:
            self.present = present
            self.encoded.clear()
        if version not in self.encoded:
            self.encoded[version] = self._encode(version)
        return self.encoded[version]

    def _encode(self, since: int | None) -> tuple[Model, Sequence[Buffer]]:
        """Encode the present model, whole, or what may have changed of it since a version if that is smaller."""
        version, final = self.present
        row = self.aggregation.row
        model = Model(sender=self.node, version=version, final=final, tensors=self.tensors)
        if since is None:
            return model, self.snapshot(row, self.tensors)
        assert self.changes is not None
        changed = self.changes.since(since)
        if changed is not None and len(changed) < len(row):
            parts = apart(ModelUpdate(len(row), changed, row[changed]), len(self.tensors))
            encoded = [encode_update(tensor.name, part) for tensor, part in zip(self.tensors, parts, strict=True)]
            tensors = tuple(tensor for tensor, _ in encoded)
            if sum(map(payload_bytes, tensors)) < sum(map(payload_bytes, self.tensors)):
                frames = [frame for _, each in encoded for frame in each]
                return msgspec.structs.replace(model, since=since, tensors=tensors), frames
        return self._since(None)
