"""Measure what this host can emulate: ordinary trials with links and caps, and what their messages took.

Only the scenarios are special: the nodes, their sockets and what shapes them are those of every run. Each message
says when its first byte left, and is traced when all of it has arrived, on the machine's one clock.

    bulk      one worker whose link has one rate both ways; pushes and models of 847 kB, one at a time
    single    workers that rest before each push of some 12.7 kB, one for each rate
    cpu       one worker that computes all the time under a CPU cap
    together  many workers whose links are busy nearly all the time, more and more until they no longer hold
    beside    what exchanges and restarts take that virtual time has no model of (times_beside.py)
"""

import datetime as dt
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
from numpy.typing import NDArray

from edgebed.core import chance, records
from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.framing import burst_bytes
from edgebed.core.quantities import seconds_text
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.core.units import format_duration, format_rate
from edgebed.emulation.calibration import (
    PAYLOAD_SHARE,
    Beside,
    Bulk,
    Calibration,
    Cpu,
    Direction,
    HostFacts,
    Place,
    PlaceMeasurements,
    Single,
    Together,
    calibration_path,
    load,
    save,
)
from edgebed.emulation.means import why_no_namespaces
from edgebed.journal.folds import of_type
from edgebed.journal.journal import Entry
from edgebed.journal.transfer_times import Passed, passed
from edgebed.running.results import Trial
from edgebed.running.run import run, without_report
from edgebed.runtimes.signals import ending_by_signal
from edgebed.studies.host.times_beside import RESTARTS_S, beside

INTERRUPTED = 130
RUNTIME_OF: dict[Place, Runtime] = {"docker": "docker", "namespaces": "process", "model": "process"}
EMULATION_OF: dict[Place, Emulation] = {"docker": "auto", "namespaces": "kernel", "model": "model"}
MBIT = 1_000_000
DIRECTIONS: dict[str, Direction] = {"push": "up", "model": "down"}
EXAMPLES = 1024
START_S: dict[Place, float] = {"docker": 10.0, "namespaces": 6.0, "model": 6.0}
"""Rough number of seconds that a trial takes beside its own time, by place."""
SINGLE_FRACTION = 0.0142  # of the CNN's gradient: pushes of some 12.7 kB
SINGLE_REST = {"uniform": ["350ms", "550ms"]}  # longer than the acknowledgements of a model take at 1 mbit
CPU_BATCH_SIZE = 512  # on a whole core; computing then takes much longer than waiting for the next model
MODEL_BYTES = {"cnn": 847_000, "small": 204_000}
CNN_MBIT_MIN = 10  # at lower rates many nodes exchange the smaller model, or it would take minutes
TOGETHER_SETTLED_S = 4.0


@dataclass(frozen=True, kw_only=True)
class Programme:
    """The measurements of a calibration, and how long each takes."""

    bulk_s: Mapping[int, float]
    """Duration in seconds by rate in mbit."""
    single_mbit: tuple[int, ...]
    single_s: float
    cpus: tuple[float, ...]
    cpu_s: float
    together: Mapping[Place, Mapping[int, tuple[int, ...]]]
    """Numbers of nodes by rate in mbit, until they no longer hold."""
    together_s: float
    beside_s: float = 0.0
    """Rough duration of measuring exchanges and restarts; 0: they are left out."""

    def duration_s(self, place: Place) -> float:
        """Rough number of seconds that the programme takes in a place, if every number of nodes holds."""
        times_s = [*self.bulk_s.values(), self.single_s]
        times_s += [self.cpu_s] * len(self.cpus) + [self.together_s] * sum(map(len, self.together[place].values()))
        times_s += [self.beside_s] if self.beside_s else []
        return sum(times_s) + START_S[place] * len(times_s)


FULL = Programme(
    bulk_s={1: 30.0, 5: 8.0, 10: 6.0, 50: 5.0, 100: 5.0},
    single_mbit=(1, 5, 10, 50, 100),
    single_s=8.0,
    cpus=(0.25, 0.5, 1.0),
    cpu_s=10.0,
    together={
        "docker": {10: (8, 16, 32)},
        "namespaces": {10: (8, 32, 64, 100, 200), 1: (100, 200, 300, 400)},
        "model": {10: (8, 32, 64, 100, 200), 1: (100, 200, 300, 400)},
    },
    together_s=16.0,
    beside_s=RESTARTS_S + 10.0,
)
QUICK = Programme(
    bulk_s={10: 4.0, 50: 2.0},
    single_mbit=(10, 50),
    single_s=6.0,
    cpus=(),
    cpu_s=0.0,
    together={"docker": {}, "namespaces": {}, "model": {}},
    together_s=0.0,
)
NODE_BYTES: dict[Place, int] = {"docker": 300 * 2**20, "namespaces": 40 * 2**20, "model": 40 * 2**20}
"""Bytes that one more node may need, by place: no more are started than there is memory for."""


def images(seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Noise of MNIST's shape, so that the CNN has the size that it has there; (1024, 1, 28, 28) and (10, 1, 28, 28)."""
    x = chance.generator(seed, "calibration").random((EXAMPLES, 1, 28, 28), dtype=np.float32)
    y = np.arange(EXAMPLES) % 10
    return x, y, x[:10], y[:10]


def calibrate(
    runtime: Runtime | None, programme: Programme, say: Callable[[str], None], show: Callable[[Place, Any], None]
) -> Calibration:
    """Measure in each place of `runtime` (None: in all) that this host has.

    `say` is called with what is going to happen, `show` with each result. Raises InfrastructureError where nothing can
    be measured.
    """
    places, missing = places_here(runtime)
    for reason in missing:
        say(f"left out: {reason}")
    if not places:
        raise InfrastructureError("nothing to calibrate: " + "; ".join(missing))
    parts = ", ".join(f"{place} {seconds_text(programme.duration_s(place))}" for place in places)
    total_s = sum(programme.duration_s(place) for place in places)
    say(f"calibrating takes about {seconds_text(total_s)} ({parts}); leave this machine alone meanwhile")
    calibration = Calibration(host=HostFacts.here())
    try:
        with ending_by_signal():
            for place in places:
                when = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
                calibration = calibration.with_place(place, measure(place, programme, when, partial(show, place)))
    except KeyboardInterrupt:
        say("interrupted: nothing is stored")
        raise
    return calibration


def keep(calibration: Calibration) -> Path:
    """Write the calibration where `plan` looks, beside other places' on this host; return the path."""
    path = calibration_path()
    before = load(path)
    if before and before.holds_on(calibration.host):
        calibration = msgspec.structs.replace(calibration, places={**before.places, **calibration.places})
    save(calibration, path)
    return path


def places_here(runtime: Runtime | None) -> tuple[list[Place], list[str]]:
    """The places of `runtime` (None: all) that this host has, and why others are left out."""
    places: list[Place] = []
    missing: list[str] = []
    for place, needed in RUNTIME_OF.items():
        if runtime in (None, needed):
            try:
                REQUIREMENTS[place]()
                places.append(place)
            except InfrastructureError as error:
                missing.append(f"{place}: {error}")
    return places, missing


def _require_containers() -> None:
    from edgebed.runtimes.containers.engine import connect, explained
    from edgebed.runtimes.containers.project import ImageNames

    with closing(connect()) as client, explained("the images of the nodes"):
        for name in vars(ImageNames.named()).values():
            client.api.inspect_image(name)


def _require_namespaces() -> None:
    if reason := why_no_namespaces():
        raise InfrastructureError(reason)


REQUIREMENTS: dict[Place, Callable[[], None]] = {
    "docker": _require_containers,
    "namespaces": _require_namespaces,
    "model": lambda: None,
}


class Runner:
    """Runs short trials in one place."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.folder = folder

    def trial(
        self,
        name: str,
        fleet: dict[str, Any],
        time_s: float,
        *,
        method: Any = "asgd",
        model: str = "cnn",
        batch_size: int = 1,
    ) -> Trial:
        """Run a trial to its end; InfrastructureError where it does not complete."""
        scenario = {
            "name": "calibration",
            "question": "What can this host emulate?",
            "seed": 1,
            "task": {"data": f"{__name__}:images", "model": model, "batch_size": batch_size},
            "method": method,
            "fleet": fleet,
            "evaluation": {"every": "24h"},
            "stop": {"time": format_duration(time_s)},
            "variants": {name: {}},
        }
        result = run(
            without_report,
            scenario,
            runtime=RUNTIME_OF[self.place],
            emulation=EMULATION_OF[self.place],
            trace=True,
            runs_dir=self.folder,
        )
        if result.exit_code == INTERRUPTED:
            raise KeyboardInterrupt
        trial = result.trials[name]
        if not trial.summary.ran_to_end:
            raise InfrastructureError(f"{name}: the trial did not complete: {trial.summary.reason}")
        return trial


def measure_bulk(runner: Runner, programme: Programme) -> Iterator[Bulk]:
    """Measure large messages at each rate, both ways."""
    for mbit, time_s in programme.bulk_s.items():
        rate = f"{mbit}mbit"
        trial = runner.trial(f"bulk-{rate}", {"edge": {"uplink": rate, "downlink": rate}}, time_s)
        messages = list(passed(trial.events()))
        for kind, direction in DIRECTIONS.items():
            yield bulk_of(mbit * MBIT, direction, [message for message in messages if message.kind == kind])


def bulk_of(rate_bit_s: int, direction: Direction, messages: Sequence[Passed]) -> Bulk:
    """The goodput of messages in one direction; the share of a message that the burst passes is subtracted."""
    burst = burst_bytes(rate_bit_s) * PAYLOAD_SHARE
    rates = [8 * (message.bytes - burst) / message.time_s for message in messages]
    if not rates:
        raise InfrastructureError(f"no message passed at {format_rate(rate_bit_s)}, {direction}")
    return Bulk(rate_bit_s=rate_bit_s, direction=direction, messages=len(rates), goodput_bit_s=statistics.median(rates))


def measure_single(runner: Runner, programme: Programme) -> Iterator[Single]:
    """Measure small pushes after a rest, at each rate and without a limit; all at once, since they are rare."""
    if not programme.single_mbit:
        return
    rates = {f"rate-{mbit}": mbit for mbit in programme.single_mbit}
    fleet = {name: {"waiting": SINGLE_REST, "uplink": f"{mbit}mbit"} for name, mbit in rates.items()}
    method = {"preset": "adacomp", "compression": {"fraction": SINGLE_FRACTION}}
    trial = runner.trial("single", {**fleet, "free": {"waiting": SINGLE_REST}}, programme.single_s, method=method)
    messages = [message for message in passed(trial.events()) if message.kind == "push"]
    for name in fleet | {"free": {}}:
        mine = [message for message in messages if message.worker == f"{name}-0"]
        rate_bit_s = rates[name] * MBIT if name in rates else None
        if not mine:
            raise InfrastructureError(f"single: no push of {name} passed")
        yield Single(
            rate_bit_s=rate_bit_s,
            messages=len(mine),
            bytes=statistics.median(message.bytes for message in mine),
            time_s=statistics.median(message.time_s for message in mine),
            ideal_s=statistics.median(message.ideal_s(rate_bit_s) if rate_bit_s else 0.0 for message in mine),
        )


def measure_cpu(runner: Runner, programme: Programme) -> Iterator[Cpu]:
    """Measure the share of a core that a node gets which computes all the time."""
    for cpus in programme.cpus:
        name = f"cpus-{1000 * cpus:.0f}m"
        trial = runner.trial(name, {"edge": {"cpus": cpus}}, programme.cpu_s, batch_size=round(CPU_BATCH_SIZE * cpus))
        usages = (usage for _, node, usage in of_type(trial.events(), records.Usage) if node == "edge-0")
        last = max(usages, key=lambda usage: usage.time_s, default=None)
        if last is None:
            raise InfrastructureError(f"{name}: the node did not report what it used")
        yield Cpu(asked=cpus, got=last.cpu_s / last.time_s)


def measure_together(runner: Runner, programme: Programme) -> Iterator[Together]:
    """Measure more and more nodes with busy links, until they are slower than asked or memory does not suffice.

    Short random rests keep nodes whose links are all alike from sending, and so from waiting for the server, in step.
    """
    for mbit, numbers in programme.together[runner.place].items():
        rate, model = f"{mbit}mbit", "cnn" if mbit >= CNN_MBIT_MIN else "small"
        cycle_s = 2 * 8 * MODEL_BYTES[model] / (mbit * MBIT)  # time of a push and a model
        for nodes in numbers:
            if nodes * NODE_BYTES[runner.place] > psutil.virtual_memory().available:
                break
            rest = {"uniform": ["0s", f"{cycle_s / 4:.3f}s"]}
            fleet = {"edge": {"count": nodes, "uplink": rate, "downlink": rate, "waiting": rest}}
            trial = runner.trial(f"nodes-{nodes}-{rate}", fleet, programme.together_s, model=model)
            result = together_of(nodes, mbit * MBIT, list(trial.events()))
            yield result
            if not result.holds:
                break


def measure_beside(runner: Runner, programme: Programme) -> Iterator[Beside]:
    """Measure what exchanges and restarts take besides."""
    if programme.beside_s:
        yield beside(RUNTIME_OF[runner.place], EMULATION_OF[runner.place])


def together_of(nodes: int, rate_bit_s: int, entries: Sequence[Entry]) -> Together:
    """The rates that a trial's links carried together after the first messages, which all leave at once."""
    began_s = next((t for t, _, _ in of_type(entries, records.Trial)), 0.0)
    settled_s = began_s + TOGETHER_SETTLED_S
    messages = [message for message in passed(entries) if message.sent_s >= settled_s]
    loads = [load.busy for t, _, load in of_type(entries, records.HostLoad) if t >= settled_s]
    memory = {
        node: usage.memory_bytes
        for _, node, usage in of_type(entries, records.Usage)
        if node.startswith("edge-") and usage.memory_bytes
    }
    if not messages:
        raise InfrastructureError(f"{nodes} nodes at {format_rate(rate_bit_s)}: no message passed")
    ideal_s = sum(message.ideal_s(rate_bit_s) for message in messages)
    return Together(
        nodes=nodes,
        rate_bit_s=rate_bit_s,
        messages=len(messages),
        held=ideal_s / sum(message.time_s for message in messages),
        host_busy=statistics.mean(loads) if loads else None,
        node_bytes=statistics.median(memory.values()) if memory else None,
    )


def measure(place: Place, programme: Programme, when: str, show: Callable[[Any], None]) -> PlaceMeasurements:
    """Measure one place; `show` is called with each result. Failures become problems; KeyboardInterrupt ends it."""
    found: dict[str, list[Any]] = {"bulk": [], "single": [], "cpu": [], "together": [], "beside": []}
    problems = []
    with tempfile.TemporaryDirectory(prefix="edgebed-calibrate-") as folder:
        runner = Runner(place, Path(folder))
        for name, measuring in MEASURING.items():
            try:
                for result in measuring(runner, programme):
                    found[name].append(result)
                    show(result)
            except EdgebedError as error:
                problems.append(str(error))
                show(error)
    return PlaceMeasurements(
        when=when, problems=tuple(problems), **{name: tuple(results) for name, results in found.items()}
    )


MEASURING: dict[str, Callable[[Runner, Programme], Iterator[Any]]] = {
    "bulk": measure_bulk,
    "single": measure_single,
    "cpu": measure_cpu,
    "together": measure_together,
    "beside": measure_beside,
}
