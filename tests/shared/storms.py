"""Storms of random faults in virtual time: what must hold of each, and the fewest faults that make one fail."""

import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import random_faults
from ruamel.yaml import YAML
from server_laws import check_deadline, check_effects, memory_of

from edgebed.core import records
from edgebed.roles.events import Effect, Event, Heart
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation
from edgebed.runtimes.simulation.simulation import Simulation
from edgebed.wire import messages

Outcome = Any  # of tests/simulation/conftest.py
Run = Callable[[dict[str, Any]], Outcome]
REVIVED = ("finished", "final")
"""What a server that comes back begins with, whatever the one before had come to."""


class ServerTruth:
    """Looks at the servers of a simulation: at what holds of their hearts, and that each is the one that ended."""

    def __init__(self, simulation: Simulation) -> None:
        self.restored = 0
        """Servers that went on from a log."""
        hearts, end = simulation.hearts, simulation._end
        build, go_on = hearts.build, hearts.go_on
        last: Any = None

        def build_known(configure: messages.Configure) -> Heart:
            heart = build(configure)
            if isinstance(heart, ParameterServer):
                self._follow(heart)
            return heart

        def go_on_known(heart: Heart, ready: messages.Ready, now: float) -> messages.Ready:
            ready = go_on(heart, ready, now)
            if hearts.log and simulation.controller.plan.seed % 2:
                hearts.log.bytes_min = hearts.log.bound = 0  # so that there are snapshots of anything
            if ready.replayed is not None and isinstance(heart, ParameterServer):
                self.restored += 1
                assert memory_of(heart, *REVIVED) == last, "another server than the one that ended came of its log"
            return ready

        def end_known(life: SimulatedIncarnation) -> None:
            nonlocal last
            if isinstance(life.heart, ParameterServer):
                last = memory_of(life.heart, *REVIVED)
            end(life)

        hearts.build, hearts.go_on = build_known, go_on_known  # type: ignore[method-assign]
        simulation._end = simulation.launcher.end = end_known  # type: ignore[method-assign]

    def _follow(self, heart: ParameterServer) -> None:
        handle, began_s = heart.handle, math.inf  # or thawed: it is woken after what else happens at that moment

        def followed(event: Event, now: float) -> list[Effect]:
            nonlocal began_s
            effects = handle(event, now)
            check_effects(heart, effects)
            if now > began_s:
                check_deadline(heart, began_s)
            began_s = now
            return effects

        heart.handle = followed  # type: ignore[method-assign]


def check(outcome: Outcome) -> None:
    """What must hold of every storm."""
    told = random_faults.Told(outcome.plan, outcome.entries)
    random_faults.check_journal(told)
    check_versions(told)
    check_pushes(outcome)


def check_versions(told: random_faults.Told) -> None:
    """Versions in a row, of a server that goes on from a checkpoint those after it; from a log nothing is lost."""
    version, has_lost = 0, False
    for _, _, record in told.entries:
        if isinstance(record, records.Update):
            assert record.version == version + 1, f"{record}: after version {version}"
            version += 1
        elif isinstance(record, records.Restored):
            assert record.version <= version
            assert record.replayed is None or record.version == version, f"{record}: after version {version}"
            version, has_lost = record.version, has_lost or record.replayed is None
    if not has_lost and is_there(told):
        assert told.accounting.total.lost_with_server == 0


def is_there(told: random_faults.Told) -> bool:
    """Whether there was a server in the end: what one holds that does not come back is lost with it."""
    last = [record for _, record in told.of(records.Node) if record.name == "server"][-1]
    return last.state == "stopped" and "frozen" not in last.reason


def check_pushes(outcome: Outcome) -> None:
    """What the journal tells of each update is what the simulation did with it."""
    told = [entry for entry in outcome.entries if isinstance(entry[2], records.Pushes)]
    pushed = {(node, record.incarnation, step) for _, node, record in told for step in range(record.pushed)}
    seen = Counter(
        (record.worker, record.incarnation, record.step)
        for _, record in outcome.of(records.Update) + outcome.of(records.Refused)
        if record.step >= 0
    )
    assert max(seen.values(), default=1) == 1
    restored = [record for _, record in outcome.of(records.Restored)]
    again = seen.keys() if restored else set()  # what was lost was pushed once more
    expected = (outcome.lost.keys() | outcome.under_way) - again
    has_log = all(record.replayed is not None for record in restored)
    if has_log and is_there(random_faults.Told(outcome.plan, outcome.entries)):
        assert pushed - seen.keys() == expected
    else:  # what a server held has gone with it
        assert pushed - seen.keys() >= expected
    assert seen.keys() <= pushed
    last = {(node, record.incarnation): record.begun for _, node, record in told}
    begun = sum(last.values())
    total = outcome.accounting.total
    assert total.begun == begun
    if has_log:
        assert total.applied + sum(total.refused.values()) == len(seen)
        assert total.lost + total.unfinished == begun - len(seen)


# --- the fewest faults --------------------------------------------------------------------------------------------


def failure_of(run: Run, scenario: dict[str, Any]) -> Exception | None:
    """What is wrong with a storm, if anything."""
    try:
        check(run(scenario))
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    return None


def fewest(faults: Sequence[dict[str, Any]], fails: Callable[[Sequence[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """A schedule of which no fault can be left out so that it still fails: first halves are left out, then less.

    Zeller, Hildebrandt 2002, Simplifying and isolating failure-inducing input (ddmin, by complements alone).
    """
    left, size = list(faults), len(faults)
    while size:
        begin = 0
        while begin < len(left):
            rest = left[:begin] + left[begin + size :]
            if fails(rest):
                left = rest
            else:
                begin += size
        size //= 2
    return left


def shortened(run: Run, scenario: dict[str, Any], error: Exception) -> dict[str, Any]:
    """The same scenario with the fewest faults that lead to an error of the same kind."""

    def fails(faults: Sequence[dict[str, Any]]) -> bool:
        return type(failure_of(run, scenario | {"faults": list(faults)})) is type(error)

    return scenario | {"faults": fewest(scenario["faults"], fails)}


def as_text(faults: Sequence[dict[str, Any]]) -> str:
    """The `faults` of a scenario file."""
    yaml, file = YAML(), io.StringIO()
    yaml.default_flow_style, yaml.width = True, 1000
    yaml.dump(list(faults), file)
    entries = io.StringIO()
    entries.write("faults:\n" if faults else "faults: []\n")
    for fault in faults:
        file = io.StringIO()
        yaml.dump(fault, file)
        entries.write(f"  - {file.getvalue()}")
    return entries.getvalue()


def complaint(run: Run, seed: int, scenario: dict[str, Any], error: Exception) -> str:
    """What a test says of a storm that failed: its seed, how to repeat it, and the schedule cut down."""
    short = shortened(run, scenario, error)["faults"]
    return (
        f"seed {seed}: {error!r}; again with {random_faults.SEEDS}={seed}-{seed}. Of its {len(scenario['faults'])} "
        f"faults {len(short)} are enough, with the rest of the scenario as it is:\n{as_text(short)}"
    )
