"""What a trial asks for and rules out itself: beyond its own end, or where nothing has come before.

Each value is right by itself. Written in a file, such values are a mistake; where an option brought one of them in, as
a shortened run does, they are a warning, and the run's verdict says what became of them (load.py decides). Refused is
only what certainly cannot be, whatever the runtime and whatever chance draws.
"""

import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from edgebed.algorithms.registry import applied_together, has_own_models
from edgebed.core.actions import BRINGS_BACK, TAKES_AWAY, UNDOES
from edgebed.core.measures.clients import WHOSE
from edgebed.core.measures.trial import MEASURES, OF_TASK
from edgebed.core.planned.fault import FaultPlan
from edgebed.core.units import format_duration
from edgebed.scenario.faults.registry import name_of, plan_faults
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.targets import Some, groups_of

if TYPE_CHECKING:
    from edgebed.scenario.by_client import ByClientSection
    from edgebed.scenario.programs.trial import ProgramTrial
    from edgebed.scenario.schema import AnyTrial, Evaluation, StopSection, TrialSection

Keys = tuple[str, ...]


class Contradiction(NamedTuple):
    """Values that contradict each other."""

    paths: tuple[Keys, ...]
    """Keys of the values; the first is to blame."""
    message: str
    refused: Literal["always", "written-together", "never"] = "always"
    """When the values are refused, where no option brought one of them. `written-together`: in a file alone, where no
    variant brought one of them to the other either, since nothing that was asked for is left undone; `never`: it may be
    meant."""


def contradictions(trial: "TrialSection", seed: int) -> Iterator[Contradiction]:
    """Yield everything in a trial that contradicts itself."""
    yield from _evaluations(trial.evaluation, trial.stop)
    yield from _own_models(trial)
    yield from _expectations(trial, _last_update(trial))
    faults = _faults_by_entry(trial, seed)
    yield from _unmeasured(trial, faults)
    never: set[int] = set()
    """Places of entries that do not come before the end."""
    for k, (entry, of_entry) in enumerate(faults):
        for found in (*_after_the_end(k, entry, of_entry, trial.stop.time), *_after_the_last_update(k, entry, trial)):
            never |= {k} if found.refused == "always" else set()
            yield found
        yield from _nothing_to_undo(k, of_entry, faults, trial)
    yield from _unreachable_steps(faults, never, trial)


def program_contradictions(trial: "ProgramTrial", seed: int) -> Iterator[Contradiction]:
    """Yield everything in a trial of programs that contradicts itself: its faults, and when it ends."""
    faults = _faults_by_entry(trial, seed)
    for k, (entry, of_entry) in enumerate(faults):
        yield from _after_the_end(k, entry, of_entry, trial.stop.time)
        yield from _nothing_to_undo(k, of_entry, faults, trial)


def _last_update(trial: "TrialSection") -> int | None:
    """Return the highest version that a trial may end with; None: nothing limits it."""
    if trial.stop.updates is None:
        return None
    if trial.sharding:
        return trial.stop.updates
    return trial.stop.updates - 1 + applied_together(trial.method, trial.num_workers)


# --- measures --------------------------------------------------------------------------------------------------------


def _evaluations(evaluation: "Evaluation", stop: "StopSection") -> Iterator[Contradiction]:
    """An interval that does not come to its end; the default may be as long as it is where nobody chose it.

    Written out it is not refused, since so the resolved form of every scenario has it.
    """
    if "every" not in evaluation.model_fields_set:
        return
    every = evaluation.every
    is_default = every == type(evaluation).model_fields["every"].default
    key, ends = "", ""
    if every.updates and stop.updates and every.updates > stop.updates:
        key, ends = "updates", f"{every.updates:,} updates, but the trial ends with update {stop.updates:,}"
    if every.time_s and stop.time and every.time_s > stop.time:
        key, ends = "time", f"{format_duration(every.time_s)}, but the trial ends at {format_duration(stop.time)}"
    if key:
        message = f"evaluations are to come every {ends}: the last model alone is measured; evaluate more often"
        paths = (("evaluation", "every"), ("stop", key))
        yield Contradiction(paths, message, "never" if is_default else "written-together")


class _Range(NamedTuple):
    """The values that a measure may have in a trial that completes, and what limits them."""

    low: float
    high: float
    limit: str
    """Key of `stop` that limits the values."""
    reason: str


_POSSIBLE: dict[str, Callable[[_Range, float], bool]] = {
    ">=": lambda found, bound: found.high >= bound,
    ">": lambda found, bound: found.high > bound,
    "<=": lambda found, bound: found.low <= bound,
    "<": lambda found, bound: found.low < bound,
    "==": lambda found, bound: found.low <= bound <= found.high,
    "!=": lambda found, bound: not found.low == bound == found.high,
}


def _own_models(trial: "TrialSection") -> Iterator[Contradiction]:
    """What cannot be where workers train alone: the server's model is never trained, and each of theirs has clients."""
    parts = {kind: trial.method.parts[kind].name for kind in ("compression", "downlink") if kind in trial.method.parts}
    if not has_own_models(trial.method):
        if "nothing" in parts.values():
            message = "with `nothing` no update or model arrives, and nobody learns; it goes with local_work: alone"
            yield Contradiction((("method",),), message)
        return
    alone, by_client = "each worker keeps a model of its own", trial.evaluation.by_client
    if parts != {"compression": "nothing", "downlink": "nothing"}:
        message = f"{alone}, so that what travels is of no use; write compression: nothing and downlink: nothing"
        yield Contradiction((("method",),), message)
    if trial.task.split.kind != "by-client":
        message = f"{alone}, which is measured on its clients; write split: by-client, with data that says whose it is"
        yield Contradiction((("task", "split"), ("method",)), message)
    if by_client is None:
        message = f"{alone}, and nobody would measure them; add evaluation: {{ by_client: final }}"
        yield Contradiction((("method",), ("evaluation",)), message)
    elif by_client.every and by_client.every.time_s:
        message = f"{alone}, and measures it at updates of the trial; write a number of updates, or final"
        yield Contradiction((("evaluation", "by_client", "every"), ("method",)), message)
    if level := trial.stop.level:
        message = (
            f"{alone}, and the server's, which is never trained, comes to no {level.measure}; end by updates or time"
        )
        yield Contradiction((("stop", level.measure), ("method",)), message)
    for measure in trial.expect.bounds:
        of, _, name = measure.partition("_")
        if (of in OF_TASK or of == "chosen") and measure not in MEASURES:
            own = measure.removeprefix("chosen_") if of == "chosen" else f"client_mean_{name}"
            message = f"{alone}, and the server's is never trained; expect {own} instead"
            yield Contradiction((("expect", measure), ("method",)), message)


def _expectations(trial: "TrialSection", last_update: int | None) -> Iterator[Contradiction]:
    """Bounds that no trial which ends like this can meet."""
    ranges = _ranges(trial, last_update, "best" if trial.task.validation is None else "validated")
    for measure, bound in trial.expect.bounds.items():
        found = ranges.get(measure)
        if found and not _POSSIBLE[bound.comparison](found, bound.value):
            message = f"{measure} {bound.text} cannot be met: {found.reason}; change the bound, or stop.{found.limit}"
            limits = ("stop",) if found.low else ("stop", found.limit)
            yield Contradiction((("expect", measure), limits), message)


def _ranges(trial: "TrialSection", last_update: int | None, reached: str) -> dict[str, _Range]:
    """Return the ranges of what `stop` limits. A lower limit is certain where nothing else ends the trial.

    `reached`: which of a measure's numbers is on the part of the data that stopping looks at.
    """
    ranges, stop = {}, trial.stop
    level = stop.level
    alone = [stop.updates, stop.time, level].count(None) == 2
    if stop.updates is not None and last_update is not None:
        reason = f"the trial ends with update {stop.updates:,}"
        ranges["updates"] = _Range(stop.updates if alone else 0, last_update, "updates", reason)
    if stop.time is not None:
        ranges["time_s"] = _Range(0.0, stop.time, "time", f"the trial ends at {format_duration(stop.time)}")
    if level and alone:
        measure = next(each for each in trial.measures if each.name == level.measure)
        reason = f"the trial goes on until the {measure.words} is {level.value:g}"
        ends = (level.value, 1.0 if measure.is_share else math.inf)
        ends = ends if measure.better == "more" else (0.0 if measure.is_share else -math.inf, level.value)
        ranges[f"{reached}_{level.measure}"] = _Range(*ends, stop.level_key, reason)
    return ranges


def _unmeasured(trial: "TrialSection", faults: "_Entries") -> Iterator[Contradiction]:
    """Bounds on what is never measured, and so not met; a node may be brought back by hand."""
    for measure, why in trial.expect.of_others("shards" if trial.sharding else "server"):
        message = f"'{trial.method.name}' has no {measure}: {why}; leave it out"
        yield Contradiction((("expect", measure), ("method",)), message)
    for measure in trial.expect.bounds if trial.task.validation is None else ():
        if measure.startswith("validated_"):
            message = "the task has no validation part; add task.validation, or expect final_ or best_"
            yield Contradiction((("expect", measure), ("task", "validation")), message)
    yield from _unmeasured_clients(trial)
    done = {step.injection.action for _, of_entry in faults for fault in of_entry for step in fault.steps}
    if "back_s" in trial.expect.bounds and trial.on_failure != "restart" and not done & BRINGS_BACK:
        message = "no fault brings a node back, so nothing is measured unless it is done by hand; leave it out"
        yield Contradiction((("expect", "back_s"), ("faults",), ("on_failure",)), message, "never")


def _is_chosen(trial: "TrialSection", by_client: "ByClientSection") -> bool:
    """Whether validation chooses among versions that are measured so; more is said of workers' own models."""
    return has_own_models(trial.method) or (by_client.every is not None and trial.task.validation is not None)


def _unmeasured_clients(trial: "TrialSection") -> Iterator[Contradiction]:
    """Bounds on numbers over clients that nobody measures."""
    by_client, key = trial.evaluation.by_client, ("evaluation", "by_client")
    for measure in trial.expect.bounds:
        whose = next((each for each in WHOSE if measure.startswith(f"{each}_")), None)
        if whose and by_client is None:
            message = "nothing is measured client by client; add evaluation: { by_client: final }"
            yield Contradiction((("expect", measure), key), message)
        elif whose == "chosen_client" and by_client and not _is_chosen(trial, by_client):
            message = "validation chooses among no versions; add task.validation, and an interval to by_client"
            yield Contradiction((("expect", measure), key), message)
        elif whose == "tuned_client" and by_client and by_client.fine_tune is None:
            message = "clients are not fine-tuned; add fine_tune: { steps: 5, learning_rate: 0.01 } to by_client"
            yield Contradiction((("expect", measure), key), message)


# --- faults ----------------------------------------------------------------------------------------------------------

_Entries = Sequence[tuple[FaultSection, Sequence[FaultPlan]]]


def _faults_by_entry(trial: "AnyTrial", seed: int) -> _Entries:
    found: dict[str, list[FaultPlan]] = {name_of(entry, k): [] for k, entry in enumerate(trial.faults)}
    for fault in plan_faults(trial.faults, trial.roster, seed, trial.stop.time):
        found[fault.name].append(fault)
    return list(zip(trial.faults, found.values(), strict=True))


def _after_the_end(
    k: int, entry: FaultSection, faults: Sequence[FaultPlan], stop_s: float | None
) -> Iterator[Contradiction]:
    """An entry that would come when the trial is over; what comes with its end is no more than doubtful."""
    name = name_of(entry, k)
    times_s = [fault.trigger.at_s for fault in faults if fault.trigger.at_s is not None]
    if times_s and stop_s is not None and max(times_s) >= stop_s:
        first, last, end = map(format_duration, (min(times_s), max(times_s), stop_s))
        paths: tuple[Keys, ...] = (("faults", str(k), "at"), ("stop", "time"))
        if min(times_s) > stop_s:
            yield Contradiction(paths, f"{name} comes at {first}, but the trial ends at {end}; {_SOONER}")
        elif min(times_s) == stop_s:
            yield Contradiction(paths, f"{name} comes at {first}, when the trial ends", "never")
        else:
            blamed = "until" if entry.until is not None else "at"
            paths = (("faults", str(k), blamed), ("stop", "time"))
            yield Contradiction(paths, f"{name} goes on until {last}, but the trial ends at {end}", "never")


def _after_the_last_update(k: int, entry: FaultSection, trial: "TrialSection") -> Iterator[Contradiction]:
    """An entry at an update that does not come; one that chance decides is no more than doubtful."""
    name, stop = name_of(entry, k), trial.stop
    at_update, last_update = entry.at_update, _last_update(trial)
    if at_update is not None and stop.updates is not None and last_update is not None and at_update >= stop.updates:
        paths = (("faults", str(k), "at_update"), ("stop", "updates"))
        message = f"{name} comes at update {at_update:,}, but the trial ends with update {stop.updates:,}"
        if at_update > last_update:
            yield Contradiction(paths, f"{message}; {_SOONER}")
        else:
            yield Contradiction(paths, message, "never")


_SOONER = "let it come sooner, or the trial end later"


def _nothing_to_undo(
    k: int, faults: Sequence[FaultPlan], entries: _Entries, trial: "AnyTrial"
) -> Iterator[Contradiction]:
    """A thaw of what nothing froze until then, a heal of what nothing cut."""
    entry = entries[k][0]
    begin = {fault.steps[0].injection.action for fault in faults}
    for undo, do in UNDOES.items():
        if begin != {undo}:
            continue
        nodes = _whom(entry, faults, trial)
        before = (
            other
            for other_entry, others in entries
            if nodes & _whom(other_entry, others, trial)
            for other in others
            if any(step.injection.action == do for step in other.steps) and not _is_later(other, faults[0])
        )
        if next(before, None) is None:
            message = (
                f"{name_of(entry, k)} has nothing to {undo}: no fault {do}s its nodes before; add one, or leave it out"
            )
            yield Contradiction((("faults", str(k), undo), ("faults",)), message)


def _whom(entry: FaultSection, faults: Sequence[FaultPlan], trial: "AnyTrial") -> set[str]:
    """Return the nodes that an entry may concern, whatever chance draws."""
    target = entry.target
    if isinstance(target, Some) and (target.fraction is not None or target.random is not None):
        return {node for group in groups_of(target, trial.roster) for node in group.nodes}
    return {fault.node for fault in faults}


def _is_later(one: FaultPlan, other: FaultPlan) -> bool:
    """Whether one is certainly triggered after the other; a time and an update cannot be compared."""
    moments = ((each(one.trigger), each(other.trigger)) for each in _MOMENTS)
    return any(first > second for first, second in moments if first is not None and second is not None)


_MOMENTS = (operator.attrgetter("at_s"), operator.attrgetter("at_update"))


def _unreachable_steps(entries: _Entries, never: Collection[int], trial: "TrialSection") -> Iterator[Contradiction]:
    """A push that no worker gets to: before it the server has applied as many updates, and the trial is over.

    Where a fault may cost pushes before, nothing is certain; those at the places `never` do not come.
    """
    last_update = _last_update(trial)
    steps = {k: getattr(entry, "step", None) for k, (entry, _) in enumerate(entries)}
    late = {k: step for k, step in steps.items() if step is not None and last_update is not None and step > last_update}
    others = [faults for k, (_, faults) in enumerate(entries) if k not in late and k not in never]
    if any(step.injection.action in TAKES_AWAY for faults in others for fault in faults for step in fault.steps):
        return
    for k, step in late.items():
        message = (
            f"{name_of(entries[k][0], k)} waits for push {step:,} of a worker, but the trial ends with update "
            f"{trial.stop.updates:,} of all; {_SOONER}"
        )
        yield Contradiction((("faults", str(k), "step"), ("stop", "updates")), message)
