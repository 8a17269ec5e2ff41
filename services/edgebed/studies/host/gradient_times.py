"""What gradients take on this machine, beside what their counted operations say; and a device's profile from that.

CPU time of one thread, the median of some gradients, as a node makes them (learning/network.py). A device has two
numbers, its speed and what a gradient takes whatever its batch; they are those with the least squares of relative
errors, over a few built-in models and batches.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from edgebed.core.host import facts
from edgebed.core.plan import ArrayForm, Task
from edgebed.core.planned.device_core import Core
from edgebed.core.quantities import ms_text, operations_text
from edgebed.core.units import format_duration, format_memory, format_speed
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.models import registry as models
from edgebed.learning.models.anatomy import gradient_operations
from edgebed.learning.network import Network
from edgebed.planning.planning import PlannedTraining
from edgebed.scenario.devices.profile import DeviceProfile

IMAGES = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
TRIED = (
    ("small", "digits", 1), ("small", "digits", 10), ("mlp", "mnist", 10), ("mlp", "mnist", 100), ("cnn", "mnist", 10),
    ("cnn", "mnist", 50), ("cifar-cnn", "cifar10", 10), ("resnet8", "cifar10", 10), ("resnet8", "cifar10", 64),
    ("resnet20", "cifar10", 10),
)  # fmt: skip
"""Models, data whose shape they take, and batches that a device's profile rests on."""
CLASSES = 10
GRADIENTS_MIN, GRADIENTS_MAX, LONG_S = 5, 40, 1.5
WARM_UP = 2
DIGITS = 3


class Measured(NamedTuple):
    """A gradient as it was measured."""

    model: str
    batch_size: int
    flop: int
    """Operations of it, as counted."""
    seconds: float

    def off(self, core: Core) -> float:
        """How far counting is off: what the core is said to take, relative to what was measured, less one."""
        return core.gradient_s(self.flop) / self.seconds - 1.0


class Fitted(NamedTuple):
    """A core, and how far its gradients are off that it rests on."""

    core: Core
    rows: tuple[Measured, ...]

    @property
    def error(self) -> str:
        """The relative errors in words."""
        off = np.abs([row.off(self.core) for row in self.rows])
        return f"{_percent(np.median(off))} in the median, {_percent(np.max(off))} at most, of {len(off)} gradients"


def measure_machine(say: Callable[[str], None] = lambda _: None) -> Fitted:
    """This machine's core, by gradients of built-in models of random images."""
    rows, rng = [], np.random.default_rng(0)
    for model, data, batch_size in TRIED:
        shape = IMAGES[data]
        inputs = (ArrayForm("", shape, "float32"),)
        layout = models.layout(model, inputs, CLASSES)
        task = Task(
            model=model, inputs=inputs, outputs=CLASSES, layout=layout, batch_size=batch_size, gradient_time_s=1.0
        )
        say(f"{model}, mini-batches of {batch_size} …")
        x, y = rng.random((batch_size, *shape), np.float32), rng.integers(0, CLASSES, batch_size)
        rows.append(measure(task, Examples({"": x}, {"": y})))
    return Fitted(fit(rows), tuple(rows))


def measure_trials(trials: Sequence[PlannedTraining]) -> list[Measured]:
    """Gradients of the models that these trials train, each model and batch once, with their data."""
    found: dict[bytes, Measured] = {}
    for trial in trials:
        task = trial.plan.nodes[0].task
        key = msgspec.json.encode((task.model, task.inputs, task.layout, task.batch_size, task.objective))
        if key not in found:
            found[key] = measure(task, trial.data.train.take(slice(0, task.batch_size)))
    return list(found.values())


def measure(task: Task, examples: Examples) -> Measured:
    """The gradient of a mini-batch. Uncountable where its operations cannot be counted."""
    flop = gradient_operations(task)
    network, theta, batch = Network(task, examples), models.initial_parameters(task, 0), np.arange(len(examples))
    taken_s: list[float] = []
    began_s = time.monotonic()
    while len(taken_s) < WARM_UP + GRADIENTS_MIN or (
        len(taken_s) < WARM_UP + GRADIENTS_MAX and time.monotonic() - began_s < LONG_S
    ):
        began_cpu_s = time.thread_time()
        network.gradient(theta, batch)
        taken_s.append(time.thread_time() - began_cpu_s)
    return Measured(task.model, task.batch_size, flop, float(np.median(taken_s[WARM_UP:])))


def fit(rows: Sequence[Measured]) -> Core:
    """The core with the least squares of relative errors; what a gradient takes whatever its batch is not negative."""
    flop, seconds = np.array([row.flop for row in rows], float), np.array([row.seconds for row in rows])
    (overhead_s, each_s), *_ = np.linalg.lstsq(np.stack([1 / seconds, flop / seconds], 1), np.ones(len(rows)))
    if overhead_s < 0:
        shares = flop / seconds
        overhead_s, each_s = 0.0, shares.sum() / (shares**2).sum()
    return Core(flop_s=_rounded(1 / each_s), overhead_s=_rounded(overhead_s))


def device_profile(fitted: Fitted) -> DeviceProfile:
    """The profile of this machine, as another's scenario reads it."""
    here = facts()
    host, versions = here["host"], here["versions"]
    tried = ", ".join(f"{row.model} x {row.batch_size}" for row in fitted.rows)
    return DeviceProfile.model_validate(
        {
            "speed": format_speed(round(fitted.core.flop_s)),
            "overhead": format_duration(fitted.core.overhead_s),
            "memory": format_memory(host["memory_bytes"] // 2**20 * 2**20),
            "measured": f"gradients of {tried} by edgebed profile, one thread, CPU time, least squares",
            "source": f"{host['cpu']}, torch {versions.get('torch', 'unknown')}, {here['started'][:10]}",
            "error": fitted.error,
        }
    )


def write_device(profile: DeviceProfile) -> str:
    """The text of a profile's file; what `read_device` reads."""
    written = profile.model_dump(mode="json", exclude_none=True)
    return "".join(f"{key}: {_quoted(value)}\n" for key, value in written.items())


def told(fitted: Fitted, rows: Sequence[Measured]) -> Iterator[str]:
    """Sentences on a scenario's gradients: predicted by this machine's core, and measured."""
    core = fitted.core
    yield (
        f"This machine's core: {operations_text(core.flop_s)}/s and {ms_text(core.overhead_s)} a gradient; off by "
        f"{fitted.error}."
    )
    for row in rows:
        off = row.off(core)
        yield (
            f"A gradient of {row.model} with mini-batches of {row.batch_size}: {operations_text(row.flop)} as counted, "
            f"{ms_text(core.gradient_s(row.flop))} predicted, {ms_text(row.seconds)} measured: counting is "
            f"{_percent(abs(off))} too {'slow' if off > 0 else 'fast'}; task.gradient_time would be "
            f"{format_duration(_rounded(row.seconds))}."
        )


def _quoted(value: str) -> str:
    """A text in YAML; what edgebed writes has no control characters, and the kernel's name of a processor none."""
    return "'" + value.replace("'", "''") + "'"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
