"""What a ranking study states before its first run: what it draws, what it runs, and what it will call the same.

It is a file in the study's folder. A study that is resumed goes by it, and refuses to be told otherwise; its scenarios
lie beside it as they were drawn, each an ordinary file, with the times that gradients, compressions, exchanges and
restarts take on this machine.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core.disk import make_folder
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.host import facts
from edgebed.core.package import VERSION, fingerprint
from edgebed.core.reading import read_json
from edgebed.core.runtimes import Emulation, Runtime, is_virtual
from edgebed.core.units import format_duration
from edgebed.journal.run_folder import write_atomically
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.scenario.source import yaml_text
from edgebed.studies.host.times_beside import LARGE, USUAL, exchange_s, restart_times
from edgebed.studies.sweep.costs import FILE as COSTS
from edgebed.studies.sweep.costs import Costs, read_costs, times_of, with_costs, write_costs
from validation.ranking import edges
from validation.ranking import generate as usual
from validation.ranking.drawn_methods import model_bytes
from validation.ranking.draws import DRAWINGS, Drawing, Drawn

FILE = "stated.json"
SCENARIOS = "scenarios"
SEEDS_MIN = 2
TAU_MIN = 0.95
"""Least tau with which virtual time ranks as a live run does."""
TRIES_MAX = 3
"""Number of times that a live trial is run whose conditions did not hold."""
LARGE_BYTES = 500_000
"""Bytes from which on a model is a large one, whose exchanges are few."""
TIME_MARGIN = 0.05
MARGINS: Mapping[str, float] = {"bytes up": 0.005, "bytes down": 0.005, "staleness": 0.25, "accuracy": 0.02}
"""Margins of the other measures: shares of the bytes; updates; fraction of the test set."""


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """A ranking study as stated before its first run."""

    seed: int
    """Seed from which scenarios are drawn."""
    drawing: Drawing = "usual"
    scenarios: int
    """Number of scenarios."""
    seeds: int
    """Number of seeds with which each scenario is run, live and in the simulation."""
    runtime: Runtime
    """Runtime of the live runs."""
    emulation: Emulation = "auto"
    drawn: dict[str, tuple[str, ...]]
    """What is special about each scenario, by its name."""
    margins: dict[str, float]
    """Margins by measure, within which virtual time and live runs count as the same."""
    tau_min: float = TAU_MIN
    tries_max: int = TRIES_MAX
    started: str = ""
    """When it was stated, UTC as in a run's manifest; runs that began before do not count."""
    code: str = ""
    """Fingerprint of edgebed's sources then."""
    version: str = ""
    cpu: str = ""
    cores: int = 0

    @property
    def name(self) -> str:
        """Name of the study, of its page and of its folder."""
        kind = "" if self.drawing == "usual" else f"{self.drawing}-"
        return f"ranks-{self.seed}-{kind}{self.runtime}"

    @property
    def methods(self) -> int:
        """Number of methods in a scenario."""
        return edges.SCENARIO_METHODS if self.drawing == "edges" else usual.SCENARIO_METHODS


def state(
    *,
    scenarios: int,
    seed: int,
    seeds: int,
    runtime: Runtime,
    emulation: Emulation = "auto",
    margin: float = TIME_MARGIN,
    drawing: Drawing = "usual",
) -> Stated:
    """A study stated now; ScenarioError for numbers that make none."""
    if is_virtual(runtime):
        raise ScenarioError(f"--runtime: {runtime} is not live; the simulation is compared with process or docker")
    if drawing not in DRAWINGS:
        raise ScenarioError(f"--drawing: {drawing!r} is none of {', '.join(DRAWINGS)}")
    if scenarios < 1:
        raise ScenarioError(f"--scenarios: {scenarios} is below 1")
    if seeds < SEEDS_MIN:
        raise ScenarioError(f"--seeds: {seeds} is below {SEEDS_MIN}; one seed tells no two methods apart")
    if seed < 0:
        raise ScenarioError(f"--seed: {seed} is below 0")
    if not 0 < margin < 1:
        raise ScenarioError(f"--margin: {margin:g} is no share of the time; above 0 % and below 100 %, e.g. 5%")
    here = facts()
    return Stated(
        seed=seed,
        drawing=drawing,
        scenarios=scenarios,
        seeds=seeds,
        runtime=runtime,
        emulation=emulation,
        margins={"time": margin, **MARGINS},
        started=here["started"],
        code=fingerprint(),
        version=VERSION,
        cpu=here["host"]["cpu"],
        cores=here["host"]["cores"],
        drawn={each.name: each.traits for each in _drawn(drawing, seed, scenarios)},
    )


def begin_study(wanted: Stated, folder: Path, tell: Callable[[str], None], *, resume: bool) -> Stated:
    """Write what is stated and all scenarios into the study's folder; with `resume` what is there already counts.

    ScenarioError where what is there says something else; `tell` hears what takes time.
    """
    there = read_stated(folder) if resume else None
    stated = there or wanted
    if there:
        _check_same(wanted, there, folder)
    else:
        write_atomically(folder / FILE, _pretty(stated), "--output")
    write_scenarios(stated, folder, tell, keep=there is not None)
    return stated


def read_stated(folder: Path) -> Stated | None:
    """What was stated in this folder; None where nothing was. EdgebedError where the file is broken."""
    place = folder / FILE
    return read_json(place, Stated, "what a ranking study states") if place.exists() else None


def scenario_files(stated: Stated, folder: Path) -> dict[str, Path]:
    """The files of all scenarios by name, in order."""
    return {name: folder / SCENARIOS / f"{name}.yaml" for name in stated.drawn}


def write_scenarios(stated: Stated, folder: Path, tell: Callable[[str], None], *, keep: bool) -> None:
    """Write each scenario's file unless it is there and `keep`; times are measured, each once, and kept as well."""
    scenarios = folder / SCENARIOS
    try:
        make_folder(scenarios)
    except OSError as error:
        raise InfrastructureError(f"{scenarios}: cannot be made: {error.strerror}; choose another --output") from error
    before = costs = read_costs(folder / COSTS) if keep else Costs()
    beside = TimesBeside(stated=stated, tell=tell)
    for drawn in _drawn(stated.drawing, stated.seed, stated.scenarios):
        place = scenarios / f"{drawn.name}.yaml"
        if keep and place.exists():
            continue
        costs = _timed(drawn, costs, beside, tell)
        write_atomically(place, _file(drawn, stated), "--output")
    if costs != before:
        write_costs(costs, folder / COSTS)


def _drawn(drawing: Drawing, seed: int, scenarios: int) -> Iterator[Drawn]:
    draw_scenario = edges.draw_scenario if drawing == "edges" else usual.draw_scenario
    return (draw_scenario(seed, number) for number in range(scenarios))


def _timed(drawn: Drawn, costs: Costs, beside: "TimesBeside", tell: Callable[[str], None]) -> Costs:
    """Put into a scenario what gradients, compressions, exchanges and restarts take here; return the costs measured."""
    for trial in plan_trials(load_scenario(drawn.document, ())):
        costs = with_costs(trial, costs, tell)
        variant = drawn.document["variants"][trial.plan.trial]
        variant["task"] = times_of(trial, costs)
        variant["task"]["exchange_time"] = beside.exchange(drawn.document["task"], variant, trial.plan.trial)
    if any({"kill", "restart", "churn"} & fault.keys() for fault in drawn.document.get("faults", ())):
        drawn.document["restart_time"] = beside.restart(drawn.document["task"])
    return costs


@dataclass(frozen=True, kw_only=True)
class TimesBeside:
    """What exchanges and restarts take here: measured once for a model and a method, and once."""

    stated: Stated
    tell: Callable[[str], None]
    _exchanges: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _restarts: dict[str, str] = field(default_factory=dict)

    def exchange(self, task: Mapping[str, Any], variant: Mapping[str, Any], method: str) -> str:
        """The time of a push and its answer, as a scenario writes it."""
        width = f" of width {task['width']}" if "width" in task else ""
        key = str(task["model"]), width, method
        if key not in self._exchanges:
            self.tell(f"measuring what an exchange of {method} takes with the model {task['model']}{width} …")
            pace = LARGE if (model_bytes(task) or 0) >= LARGE_BYTES else USUAL
            given = {**task, **variant["task"]}
            seconds = exchange_s(given, variant, self.stated.runtime, self.stated.emulation, pace)
            self._exchanges[key] = format_duration(seconds)
        return self._exchanges[key]

    def restart(self, task: Mapping[str, Any]) -> dict[str, str]:
        """The times of a restart of the server and of others, as a scenario writes them."""
        if not self._restarts:
            self.tell("measuring what restarts take …")
            times_s = restart_times(task, self.stated.runtime, self.stated.emulation)
            self._restarts.update({node: format_duration(seconds) for node, seconds in times_s.items()})
        return dict(self._restarts)


def _file(drawn: Drawn, stated: Stated) -> bytes:
    option = "" if stated.drawing == "usual" else f" --drawing {stated.drawing}"
    return (
        f"# Drawn by `scripts/validate ranks{option} --seed {stated.seed}`: {', '.join(drawn.traits)}.\n"
        f"# The times that it gives were measured on {stated.cpu or 'this machine'}.\n"
        f"{yaml_text(drawn.document)}"
    ).encode()


def _check_same(wanted: Stated, there: Stated, folder: Path) -> None:
    """ScenarioError where a study is resumed with other settings than were stated."""
    options: Mapping[str, Callable[[Stated], Any]] = {
        "--drawing": lambda each: each.drawing,
        "--scenarios": lambda each: each.scenarios,
        "--seed": lambda each: each.seed,
        "--seeds": lambda each: each.seeds,
        "--runtime": lambda each: each.runtime,
        "--emulation": lambda each: each.emulation,
        "--margin": lambda each: f"{100 * each.margins['time']:g}%",
    }
    differing = [
        f"{option}: {value(wanted)}, but {folder / FILE} states {value(there)}"
        for option, value in options.items()
        if value(wanted) != value(there)
    ]
    if differing:
        raise ScenarioError(
            *(f"{each}; nothing is changed after the first run: leave out --resume, or choose another --output"
              for each in differing)
        )  # fmt: skip


def _pretty(stated: Stated) -> bytes:
    return msgspec.json.format(msgspec.json.encode(stated), indent=2) + b"\n"
