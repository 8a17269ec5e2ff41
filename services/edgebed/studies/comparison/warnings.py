"""Warnings about a comparison: few or other seeds, other faults, other code, conditions not held, or not known."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from edgebed.core.actions import BRINGS_BACK
from edgebed.core.quantities import count_text, first_text, seconds_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import TrialSummary
from edgebed.studies.arms import Arm, ArmTrial

NAMED_MAX = 3
"""Number of faults that are named."""


def warnings_of(arms: Sequence[Arm], baseline: Arm, window: int = 1) -> tuple[str, ...]:
    """The warnings, the gravest first; none where all is well. `window`: evaluations in a moving average."""
    members = [member for arm in arms for member in arm.members.values()]
    return (
        *_seeds(arms, baseline),
        *_short(arms, window),
        *_runtimes(arms),
        *_faults(arms, baseline),
        *_code(members),
        *_machines(members),
        *(line for member in members for line in _troubles(member)),
    )


def _seeds(arms: Sequence[Arm], baseline: Arm) -> Iterator[str]:
    alone = [arm.name for arm in arms if len(arm.members) == 1]
    if alone:
        who = "every arm" if len(alone) == len(arms) else ", ".join(alone)
        yield f"1 seed in {who}: there is no interval, and a difference may be chance; run more seeds (--set seed=2)"
    for arm in arms:
        common = arm.members.keys() & baseline.members.keys()
        if not common:
            yield f"{arm.name} and {baseline.name} have no seed in common: they cannot be compared seed by seed"
        elif arm.members.keys() != baseline.members.keys():
            seeds = ", ".join(map(str, sorted(common)))
            word = "seed" if len(common) == 1 else "seeds"
            yield f"{arm.name} is compared with {baseline.name} over {word} {seeds} alone: the others are not in both"


def _short(arms: Sequence[Arm], window: int) -> Iterator[str]:
    """Arms that were evaluated too seldom for the moving average that was asked for."""
    for arm in arms:
        least = min(len(member.begun.series.evaluations) for member in arm.members.values())
        if 0 < least < window:
            yield f"{arm.name} has {count_text(least, 'evaluation')}, fewer than --window {window}: all are averaged"


def _runtimes(arms: Sequence[Arm]) -> Iterator[str]:
    runtimes = list(dict.fromkeys(str(arm.settings["runtime"]) for arm in arms))
    if len(runtimes) > 1:
        virtual = "; time is virtual in the simulation and real elsewhere" if any(map(is_virtual, runtimes)) else ""
        yield f"the arms come from different runtimes ({', '.join(runtimes)}){virtual}"


def _faults(arms: Sequence[Arm], baseline: Arm) -> Iterator[str]:
    """Arms to whose nodes something else was done than to the baseline's, with a seed that both have."""
    for arm in arms:
        for seed in sorted(arm.members.keys() & baseline.members.keys()):
            met, base = (_done_to(each.members[seed]) for each in (arm, baseline))
            if met != base:
                yield (
                    f"{arm.name} met other faults than {baseline.name} with seed {seed} ({_faults_text(met - base)}; "
                    f"{baseline.name}: {_faults_text(base - met)}): what differs may be their doing"
                )
                break


def _done_to(member: ArmTrial) -> Counter[str]:
    """How often each thing was done to each node, but for what only undoes it."""
    done = (each.record for each in member.begun.series.faults if each.was_done)
    texts = (f"{each.action} {each.target} {each.change}".rstrip() for each in done if each.action not in BRINGS_BACK)
    return Counter(texts)


def _faults_text(faults: Counter[str]) -> str:
    named = [f"{what}{f', {count} times' if count > 1 else ''}" for what, count in faults.most_common()]
    return first_text(named, NAMED_MAX, "; ") or "none of its own"


def _code(members: Sequence[ArmTrial]) -> Iterator[str]:
    yield from _told_apart(
        members,
        lambda member: str(member.run.manifest.get("code", "unknown")),
        "were made by different code of edgebed",
    )
    yield from _told_apart(
        members,
        lambda member: str(member.run.manifest.get("versions", {}).get("torch", "unknown")),
        "were made with different releases of torch",
    )


def _machines(members: Sequence[ArmTrial]) -> Iterator[str]:
    """A warning where times of real processes are from different machines."""

    def machine(member: ArmTrial) -> str:
        host = member.run.manifest.get("host", {})
        return f"{host.get('cpu', 'unknown')}, {count_text(int(host.get('cores', 0)), 'core')}"

    real = [member for member in members if not is_virtual(member.run.manifest.get("runtime"))]
    yield from _told_apart(real, machine, "were made on different machines")


def _told_apart(members: Sequence[ArmTrial], tell: Callable[[ArmTrial], str], what: str) -> Iterator[str]:
    """A sentence where runs differ in what `tell` returns: each version with the first of its runs."""
    versions: dict[str, str] = {}
    for member in members:
        versions.setdefault(tell(member), member.run.folder.name)
    if len(versions) > 1:
        yield f"the runs {what}: {', '.join(f'{version} ({run})' for version, run in versions.items())}"


def _troubles(member: ArmTrial) -> Iterator[str]:
    """The warnings of a trial's own report."""
    summary = member.begun.summary
    if summary.outcome == "diverged":
        yield f"{member.name} {outcome_text(summary)}"
    if summary.fidelity and summary.fidelity.verdict in ("degraded", "unknown"):
        reasons = summary.fidelity.lines
        more = f", and {count_text(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
        yield f"{member.name}: {reasons[0]}{more}"
    if isinstance(summary, TrialSummary) and summary.has_idle_end:
        last = f"at {seconds_text(summary.last_update_s)}" if summary.updates else "never"
        yield f"{member.name}: the last update came {last}, of {seconds_text(summary.time_s)} of training"
    for warning in summary.warnings:
        yield f"{member.name}: {warning}"
