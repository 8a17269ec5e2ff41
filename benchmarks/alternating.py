"""Rounds in which subjects take turns, so that none is always first: the rate of each, and its processor time."""

from collections.abc import Callable, Sequence

from benchmarks.subjects import node_plan, real_gradient
from edgebed.algorithms.compression import top_k
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_update


def sparse_push() -> tuple[Tensor, list[Buffer]]:
    """A push of 1 % of a real gradient: its tensor and frames."""
    shapes = [tensor.shape for tensor in node_plan("worker").task.layout]
    tensor, frames = encode_update("update", top_k.Compression(top_k.Config(), shapes).choose(real_gradient()))
    return tensor, [bytes(frame) for frame in frames]


def alternate(
    subjects: Sequence[str], measure: Callable[[str, float], tuple[float, float]], *, quick: bool
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Times a second and processor time of one in microseconds, by subject and round.

    `measure(subject, seconds)` returns times a second, and the processor time in seconds of all.
    """
    seconds, rounds = (0.3, 1) if quick else (2.0, 7)
    per_s: dict[str, list[float]] = {name: [] for name in subjects}
    cpu_us: dict[str, list[float]] = {name: [] for name in subjects}
    for k in range(rounds):
        for name in (*subjects, *subjects)[k % len(subjects) :][: len(subjects)]:  # each is first in turn
            rate, spent_s = measure(name, seconds)
            per_s[name].append(rate)
            cpu_us[name].append(1e6 * spent_s / (rate * seconds))
    return per_s, cpu_us
