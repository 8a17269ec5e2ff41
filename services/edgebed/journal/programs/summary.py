"""The numbers of a trial whose nodes run programs of the user's, and its verdict, from its plan and series; pure."""

from collections.abc import Mapping
from signal import Signals
from typing import Any, ClassVar

import msgspec

from edgebed.core.measures.trial import ProgramMeasures
from edgebed.core.plan import ProgramsPlan
from edgebed.core.quantities import bytes_text, count_text, first_text
from edgebed.core.records import Exited
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.programs.series import Told
from edgebed.journal.series import Series
from edgebed.journal.series_divergence import Divergence
from edgebed.journal.summary import Expectation, fault_numbers, judged, node_numbers
from edgebed.journal.verdict.fidelity import Fidelity, judge

NAMED_MAX = 6


class ProgramSummary(ProgramMeasures, frozen=True, kw_only=True):
    """One trial of programs in numbers. None: not measured."""

    accounting: ClassVar[Accounting | None] = None
    diverged: ClassVar[Divergence | None] = None
    examples_per_update: ClassVar[float | None] = None
    most_frequent_class: ClassVar[float | None] = None
    unheard: ClassVar[tuple[str, ...]] = ()
    trial: str
    outcome: str
    """How the trial ended: completed, interrupted or failed; where the journal breaks off running, if the run is in
    progress, else unfinished."""
    reason: str
    time_s: float | None
    """Seconds from when all programs were ready to the trial's end; None where they never were."""
    faults: int
    faults_failed: int
    faults_missed: int
    fault_delay_s: float | None
    unobserved_s: float = 0.0
    nodes_expected: int
    nodes_joined: int
    nodes_died: int
    nodes_missing: int
    measures: tuple[str, ...] = ()
    """What is measured of the programs' output, the headline first."""
    final: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """The value of each measure that any node told last; None: none did."""
    min: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    max: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    exits: tuple[Exited, ...] = ()
    """How the last life of each program ended."""
    fidelity: Fidelity | None = None
    """Whether the conditions that were asked for held; None where the programs were never ready together."""
    expectations: tuple[Expectation, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers."""

    def value(self, measure: str) -> float | None:
        """A measure's value by its name; None where it was not measured."""
        of, _, name = measure.partition("_")
        told: Mapping[str, float | None] = getattr(self, of, {}) if of in ("final", "min", "max") else {}
        if name in told:
            return told[name]
        value: float | None = getattr(self, measure, None)
        return value

    @property
    def ran_to_end(self) -> bool:
        """Whether the trial ran to its end."""
        return self.outcome == "completed"

    @property
    def is_sound(self) -> bool:
        """Whether its numbers can be relied on."""
        return self.ran_to_end

    @property
    def met(self) -> bool:
        """Whether the trial completed, and no expectation is missed."""
        return self.ran_to_end and not any(each.met is False for each in self.expectations)


def summarise_programs(plan: ProgramsPlan, series: Series) -> ProgramSummary:
    """The numbers of one trial; works for a journal that breaks off anywhere, also for an empty one."""
    names = tuple(dict.fromkeys(each.name for each in plan.program.measures))
    told = {name: series.programs.measured.get(name, {}) for name in names}
    exits, sent = series.programs.last_exits(), series.programs.sent
    fidelity = judge(plan, series)
    summary = ProgramSummary(
        trial=plan.trial,
        outcome=series.outcome,
        reason=series.ended.reason if series.ended else "the journal breaks off",
        time_s=series.trained_s if series.trial else None,
        programs_ended=sum(not each.asked for each in exits.values()),
        exit_code=max(map(_code, _that_count(plan, exits)), default=None),
        restarts=sum(each - 1 for each in _lives(series).values()),
        traffic_bytes=int(sent.value[-1]) if len(sent.value) else None,
        memory_peak_bytes=max((row.memory_bytes or 0 for row in fidelity.nodes), default=0) if fidelity else None,
        **fault_numbers(plan, series),
        **node_numbers(plan, series),
        unobserved_s=series.unobserved_s,
        measures=names,
        final={name: _last(nodes) for name, nodes in told.items()},
        min={name: _extreme(nodes, min) for name, nodes in told.items()},
        max={name: _extreme(nodes, max) for name, nodes in told.items()},
        exits=tuple(exits[node.node] for node in plan.nodes if node.node in exits),
        fidelity=fidelity,
        warnings=tuple(_warnings(plan, series)),
    )
    return msgspec.structs.replace(summary, expectations=judged(plan, summary))


def _lives(series: Series) -> dict[str, int]:
    """Number of lives of each program that was started."""
    lives: dict[str, int] = {}
    for _, node in series.nodes:
        if node.state == "started":
            lives[node.name] = lives.get(node.name, 0) + 1
    return lives


def _that_count(plan: ProgramsPlan, exits: Mapping[str, Exited]) -> list[Exited]:
    """The ends that decide: those of the class or node whose end is the trial's, else all; none that was asked for."""
    of = plan.program.ends.of if plan.program.ends.kind == "class" else ""
    return [
        exits[node.node]
        for node in plan.nodes
        if node.node in exits and of in ("", node.node, node.device_class) and not exits[node.node].asked
    ]


def _code(record: Exited) -> int:
    """The exit code, as a shell would tell it: 128 and the number of a signal."""
    if record.code is not None:
        return record.code
    return 128 + Signals[record.signal].value if record.signal in Signals.__members__ else 127


def _last(nodes: Mapping[str, Told]) -> float | None:
    """The value that any node told last."""
    last = max(nodes.values(), key=lambda told: told.t[-1], default=None)
    return None if last is None else float(last.value[-1])


def _extreme(nodes: Mapping[str, Told], of: Any) -> float | None:
    found = [float(of(told.value)) for told in nodes.values()]
    return of(found) if found else None


def _warnings(plan: ProgramsPlan, series: Series) -> list[str]:
    """Programs that failed by themselves, measures that never came, output that is not all kept."""
    failed = [each for each in series.programs.last_exits().values() if each.is_failure]
    texts = [f"{each.name} ended with {each.text}" for each in failed[:NAMED_MAX]]
    if len(failed) > NAMED_MAX:
        texts.append(f"{len(failed) - NAMED_MAX:,} more programs failed")
    never = [each for each in plan.program.measures if each.name not in series.programs.measured and series.trial]
    if printed := [each.name for each in never if not each.metric]:
        texts.append(f"no output told {first_text(printed, NAMED_MAX)}: does its expression fit what is printed?")
    for each in never:
        if each.metric:
            outputs = series.programs.outputs
            whys = {node: kept.unread[each.name] for node, kept in outputs.items() if each.name in kept.unread}
            why = f"{next(iter(whys.values()))} ({first_text(list(whys), 1)})" if whys else "none was read"
            texts.append(f"no page told {each.name}: {why}")
    return texts + [text for node, kept in series.programs.outputs.items() for text in _output(node, kept)]


def _output(node: str, kept: Any) -> list[str]:
    texts = []
    if kept.left_out_bytes:
        texts.append(f"of the output of {node} {bytes_text(kept.left_out_bytes)} between first and last are not kept")
    if kept.dropped:
        texts.append(f"{count_text(kept.dropped, 'measure')} of {node} came too fast, and were dropped")
    if kept.unusable:
        texts.append(f"{count_text(kept.unusable, 'value')} of {node} were no finite numbers")
    return texts
