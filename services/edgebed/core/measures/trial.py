"""The numbers of a trial, each declared once: what all trials have, those with a server that is pushed to, and shards.

The headline bytes are the payload of the pushes the server applied, that of the models it sent to workers, and both
together; the payload of all messages and the bytes at the network interface stand beside them.
"""

from collections.abc import Collection, Iterable
from typing import Annotated

import msgspec

from edgebed.core.measures.clients import of_clients
from edgebed.core.measures.measure import (
    BYTES,
    COUNT,
    MOMENTS,
    NUMBER,
    SECONDS,
    SHARE,
    VERDICT,
    Family,
    Measure,
    measures_of,
    unit_of,
)
from edgebed.core.measures.task import VALIDATION, TaskMeasure
from edgebed.core.quantities import bytes_text


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one kind from one node to another, as far as they were received."""

    source: str
    target: str
    message: str
    """Kind of message: activation, gradient, taken, fetch, backup, ..."""
    count: int
    bytes: int
    """Payload in bytes."""


class CommonMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of every trial. None: not measured."""

    most_frequent_class: Annotated[float | None, Measure(SHARE, "", "always the most frequent class")] = None
    """The share of the test set's most frequent class: what who always says it comes to. None: the task's headline is
    none that this tells anything of."""
    updates: Annotated[int, Measure(COUNT, "more", "updates", column="updates", compared="updates")]
    """Pushes that the server applied."""
    time_s: Annotated[float | None, Measure(SECONDS, "less", "time of training", column="time", compared="time")]
    """Seconds of training, from its start to its end, outages included; None where it did not start."""
    last_update_s: Annotated[float | None, Measure(SECONDS, "", "time of the last update", column="last update")] = None
    """Seconds from the start of training to the last update; None without any."""
    updates_per_s: Annotated[float | None, Measure(NUMBER, "more", "updates a second", column="updates/s")]
    """Updates a second, over all of the training."""
    evaluations: Annotated[int, Measure(COUNT)]
    """Number of versions of the model that were measured."""
    last_version: Annotated[int | None, Measure(COUNT)] = None
    """The number of updates after which the model was measured last."""
    chosen_version: Annotated[int | None, Measure(COUNT, "", "best version")] = None
    """The version whose headline was best, on the validation part where there is one, else on the test part."""
    diverged_at: Annotated[int | None, Measure(COUNT, "more")] = None
    """The first update at which something was not finite; None where every loss was."""
    examples_per_update: Annotated[float | None, Measure(NUMBER)] = None
    """Training examples that an update stands for, at a worker with an average share: those of a mini-batch, or of all
    local steps between two pushes. None where the plan does not say."""
    ingress_payload_bytes: Annotated[int | None, Measure(BYTES, "less")]
    """Payload of all messages the server received."""
    egress_payload_bytes: Annotated[int | None, Measure(BYTES, "less")]
    """Payload of all messages the server sent."""
    ingress_interface_bytes: Annotated[int | None, Measure(BYTES, "less", "up: at the server's interface")]
    """Bytes received at the server's network interface, headers and acknowledgements included; None where it has none
    of its own."""
    egress_interface_bytes: Annotated[int | None, Measure(BYTES, "less")]
    """Bytes sent at the server's network interface, headers and acknowledgements included; None where it has none of
    its own."""
    ack_bytes: Annotated[int | None, Measure(BYTES, "less")] = None
    """Bytes received at the interface in packets without payload, which acknowledge the models sent."""
    refused: Annotated[int, Measure(COUNT, "less")]
    """Number of messages that were understood and refused."""
    dropped: Annotated[int, Measure(COUNT, "less")]
    """Number of messages that could not be read."""
    log_bytes: Annotated[int | None, Measure(BYTES, "less", "the server's log: written")] = None
    """Bytes that the server wrote to its log, with snapshots of the model, as far as it reported. None, here and
    below: it kept none, or in virtual time, where a log costs nothing."""
    log_entries: Annotated[int | None, Measure(COUNT, "", "the server's log: entries")] = None
    """Number of entries that the server appended to its log: pushes, and whatever else it is to remember."""
    log_share: Annotated[float | None, Measure(SHARE, "less", "the server's log: share of its time")] = None
    """Share of the server's time in which it did nothing but write its log."""
    log_syncs: Annotated[int | None, Measure(COUNT, "less", "the server's log: syncs")] = None
    """Number of times that the disk was asked to have the whole log (`durability: fsync`)."""
    log_wait_s: Annotated[float | None, Measure(MOMENTS, "less", "the server's log: mean wait for a sync")] = None
    """Mean time for which messages of the server waited for the disk, of those that did; None where none did."""
    log_saved: Annotated[
        int | None, Measure(COUNT, "", "the server's log: updates that the last checkpoint lacked")
    ] = None
    """Updates that a server which came back found in its log, and that the last checkpoint lacked."""
    faults: Annotated[int, Measure(COUNT)] = 0
    """Number of faults, or actions by hand, done to nodes."""
    faults_failed: Annotated[int, Measure(COUNT, "less")] = 0
    """Number of faults that were to be done, and could not be."""
    faults_missed: Annotated[int, Measure(COUNT, "less")] = 0
    """Number of faults that were to be done, and did not happen, since training had ended."""
    fault_delay_s: Annotated[float | None, Measure(SECONDS, "less")] = None
    """Seconds by which faults were done later than asked, at most."""
    not_back: Annotated[int, Measure(COUNT, "less")] = 0
    """Number of times that a node which was to be brought back was not heard of until training ended."""
    back_s: Annotated[float | None, Measure(SECONDS, "less")] = None
    """Seconds after a heal, a thaw or a launch until the server heard of the node again, or until training ended, at
    most."""
    unobserved_s: Annotated[float, Measure(SECONDS, "less")] = 0.0
    """Seconds of training without a controller: it had died, and nodes went on."""
    unobserved_updates: Annotated[int, Measure(COUNT, "less")] = 0
    """Updates that the server applied in that time."""
    nodes_expected: Annotated[int, Measure(COUNT, "", "nodes")]
    """Number of nodes in the plan."""
    nodes_joined: Annotated[int, Measure(COUNT, "more", "nodes that joined")]
    """Number of nodes that have said hello."""
    nodes_died: Annotated[int, Measure(COUNT, "less", "nodes that died")]
    """Number of nodes that have died, on purpose or not."""
    nodes_missing: Annotated[int, Measure(COUNT, "less", "nodes that never came")]
    """Number of nodes that never came."""


class ServerMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a trial whose workers push to a parameter server. None: not measured."""

    ingress_bytes: Annotated[
        int | None, Measure(BYTES, "less", "up: payload of the pushes", column="up", compared="up")
    ]
    """Bytes up: payload of the pushes applied, with those that were lost with a server. None: shards push nothing."""
    egress_bytes: Annotated[
        int | None, Measure(BYTES, "less", "down: payload of the models sent", column="down", compared="down")
    ] = None
    """Bytes down: payload of all models sent to workers, the final one included, which is of no use to training and was
    paid for; as at the last point of a curve. None here and below: not reported, or shards train."""
    traffic_bytes: Annotated[int | None, Measure(BYTES, "less", "up and down", column="total", compared="total")] = None
    """Bytes up and down together."""
    beside_up_bytes: Annotated[int | None, Measure(BYTES, "less", "up: vectors beside the model")] = None
    """Bytes up that are of vectors beside the model, as of control variates. None: nothing else travels."""
    beside_down_bytes: Annotated[int | None, Measure(BYTES, "less", "down: vectors beside the model")] = None
    """Bytes down that are of such vectors, of models that updates came after."""
    push_bytes_mean: Annotated[float | None, Measure(BYTES, "less", "a push, mean", column="a push", compared="a push")]
    """Mean payload of a push, in bytes."""
    entries_mean: Annotated[float | None, Measure(NUMBER, "less", "values in a push, mean")]
    """Mean number of values in a push."""
    bits: Annotated[int, Measure(COUNT, "less")]
    """Bits that the algorithm needs for all pushes, without encoding or framing."""
    pulls: Annotated[int, Measure(COUNT)] = 0
    """Number of models sent to workers."""
    pulls_changed: Annotated[int, Measure(COUNT)] = 0
    """Number of models sent to workers that held changed entries only."""
    pull_changed_bytes: Annotated[int, Measure(BYTES, "less")] = 0
    """Payload of the models sent that held changed entries only, in bytes."""
    staleness_mean: Annotated[float | None, Measure(NUMBER, "less", "staleness, mean", column="staleness")]
    """Mean number of updates applied between a worker's pull and its push."""
    staleness_median: Annotated[float | None, Measure(NUMBER, "less", "staleness, median")]
    """Median staleness: half of the pushes are no staler."""
    staleness_p90: Annotated[float | None, Measure(NUMBER, "less", "staleness, 90th percentile")]
    """90th percentile of staleness: nine tenths of the pushes are no staler."""
    staleness_max: Annotated[int | None, Measure(NUMBER, "less", "staleness, maximum")]
    """Staleness of the stalest push."""
    worker_updates_min: Annotated[int, Measure(COUNT, "more", "updates of the worker with fewest")]
    """Updates of the worker that contributed least."""
    worker_updates_max: Annotated[int, Measure(COUNT, "", "updates of the worker with most")]
    """Updates of the worker that contributed most."""
    pushes: Annotated[int, Measure(COUNT)]
    """Pushes the workers numbered, up to the last one applied: those applied and those refused or lost in between."""
    updates_begun: Annotated[int | None, Measure(COUNT)] = None
    """Updates that workers began to compute."""
    updates_lost: Annotated[int | None, Measure(COUNT, "less")] = None
    """Updates that were begun and lost: in flight, with a worker or with the server."""
    updates_unexplained: Annotated[int | None, Measure(COUNT, "less")] = None
    """Updates that were begun and of which nothing says what became; `"== 0"` asks for complete accounting."""

    @property
    def payload_bytes(self) -> int | None:
        """Payload that passed between nodes."""
        return self.traffic_bytes

    @property
    def payload_text(self) -> str:
        """What passed between nodes, e.g. `12.7 kB up, 254 MB down`."""
        return f"{bytes_text(self.ingress_bytes)} up, {bytes_text(self.egress_bytes)} down"


class ShardMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a trial whose workers have shards of the model. None: not measured."""

    steps_per_s: Annotated[
        float | None,
        Measure(NUMBER, "more", "steps a second of the slowest shard", column="steps/s", compared="steps/s"),
    ] = None
    """Steps a second of the slowest shard, over all of the training."""
    exchanged_bytes: Annotated[
        int | None,
        Measure(BYTES, "less", "exchanged: payload of all messages", column="exchanged", compared="exchanged"),
    ] = None
    """Payload of all messages that nodes sent each other over the data network, each counted once."""
    messages_per_step: Annotated[float | None, Measure(NUMBER, "less", "messages a step", column="messages a step")] = (
        None
    )
    """Activations, gradients and what belongs to them, sent by all nodes together, for each step that all shards made;
    a step that was rolled back counts as well."""
    bytes_per_step: Annotated[float | None, Measure(BYTES, "less")] = None
    """Payload of the messages of a step, in bytes."""
    steps_min: Annotated[int | None, Measure(COUNT, "more")] = None
    """Steps of the shard that made fewest in layer-wise training, without those that were rolled back."""
    steps_max: Annotated[int | None, Measure(COUNT, "more")] = None
    """Steps of the shard that made most: with `send_every` those above the first make fewer."""
    steps_begun: Annotated[int | None, Measure(COUNT)] = None
    """Steps that all shards together began."""
    steps_lost: Annotated[int | None, Measure(COUNT, "less")] = None
    """Steps that were begun and rolled back, or lost with a shard or with the server."""
    steps_rolled_back: Annotated[int | None, Measure(COUNT, "less")] = None
    """Steps in histories that the server gave up, of all shards together, without those lost with the server. None,
    here and in the next: no shard has reported its steps."""
    steps_unexplained: Annotated[int | None, Measure(COUNT, "less")] = None
    """Steps that were begun and of which nothing says what became; `"== 0"` asks for complete accounting."""
    rollbacks: Annotated[int | None, Measure(COUNT, "less")] = None
    """How often all shards resumed from a backup, or began anew."""
    matched: Annotated[int, Measure(COUNT)] = 0
    """Pairs that modules learnt from: what a shard predicted and what came for the same batch, in any epoch."""
    match_staleness_mean: Annotated[float | None, Measure(NUMBER, "less")] = None
    """Mean number of epochs that the two of these pairs were apart, whichever was older."""
    match_staleness_max: Annotated[float | None, Measure(NUMBER, "less")] = None
    """Epochs that the two of the pair furthest apart were apart."""
    gradient_loss_early: Annotated[float | None, Measure(NUMBER, "less")] = None
    """Loss of the gradient modules, what they could not predict, summed over all of them: the mean over the first tenth
    of the steps."""
    gradient_loss_late: Annotated[float | None, Measure(NUMBER, "less")] = None
    """Loss of the gradient modules, summed over all of them: the mean over the last tenth of the steps."""
    shard_steps_per_s: dict[str, float] = {}
    """Steps a second of each shard."""
    shard_phases: dict[str, dict[str, float]] = {}
    """Shares of the time of each shard, and of the node that has all gradient modules: forward, learn, teach, copy,
    inputs and answers; in the last two it waited."""
    messages_per_step_by_kind: dict[str, float] = {}
    exchanges: tuple[Exchange, ...] = ()
    """Messages that nodes sent each other, by pair and kind."""

    @property
    def payload_bytes(self) -> int | None:
        """Payload that passed between nodes."""
        return self.exchanged_bytes

    @property
    def payload_text(self) -> str:
        """What passed between nodes, e.g. `254 MB exchanged`."""
        return f"{bytes_text(self.exchanged_bytes)} exchanged"


ZERO_OR_MORE = COUNT._replace(by="difference")
"""Counts that are 0 as a rule."""
OF_OUTPUT = NUMBER._replace(by="difference")
"""What a program tells, which may be 0 or less."""


class ProgramMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a trial whose nodes run programs of the user's, beside those of their output. None: not known."""

    programs_ended: Annotated[int, Measure(COUNT, "more", "programs that ended by themselves")]
    """Number of programs that ended by themselves, in their last life."""
    exit_code: Annotated[
        int | None, Measure(ZERO_OR_MORE, "less", "exit code, highest", column="exit code", compared="exit code")
    ] = None
    """The highest exit code of the programs whose end counts; 128 and the signal's number of one that a signal ended.
    None: none has ended."""
    restarts: Annotated[int, Measure(ZERO_OR_MORE, "less", "restarts", column="restarts", compared="restarts")] = 0
    """Number of times that a program was started anew."""
    traffic_bytes: Annotated[
        int | None, Measure(BYTES, "less", "sent over all links", column="traffic", compared="traffic")
    ] = None
    """Bytes that all nodes sent over their links, headers and acknowledgements included."""
    memory_peak_bytes: Annotated[int | None, Measure(BYTES, "less", "memory of a node, at most")] = None
    """The most memory that the programs of one node had at a time."""


STRUCTS: dict[Family, type[msgspec.Struct]] = {
    "all": CommonMeasures, "server": ServerMeasures, "shards": ShardMeasures,
}  # fmt: skip
MEASURES = {each.name: each for family, struct in STRUCTS.items() for each in measures_of(struct, family)}
"""Every measure of a trial by name, but for those of its task."""


OF_TASK = {
    "final": "Of the last model, on the test part:",
    "best": "On the test part, of the version that was best by it, on the validation part where there is one:",
    "last": "Measured last, on the test part:",
    "validated": "The best on the validation part; there is none without `task.validation`:",
}
"""What a trial has of each measure of its task; `final_loss` names one of these numbers."""


OF_PROGRAMS = {each.name: each for each in measures_of(ProgramMeasures, "program")} | {
    name: MEASURES[name]
    for name in (
        "time_s", "faults", "faults_failed", "faults_missed", "fault_delay_s", "unobserved_s", "nodes_expected",
        "nodes_joined", "nodes_died", "nodes_missing",
    )
}  # fmt: skip
"""Every measure of a trial of programs by name, but for those of their output."""
OF_TOLD = {"final": "last", "min": "lowest", "max": "highest"}
"""What a trial of programs has of each number that their output tells; `final_loss` names one of these."""


def program_measures(names: Iterable[str]) -> dict[str, Measure]:
    """Every measure of a trial of programs whose output tells these numbers, these first."""
    return {
        f"{of}_{name}": Measure(
            OF_OUTPUT, name=f"{of}_{name}", family="program", label=f"{words} {name}", compared=f"{words} {name}"
        )
        for name in names
        for of, words in OF_TOLD.items()
    } | OF_PROGRAMS


def meanings(measures: Iterable[TaskMeasure]) -> dict[str, str]:
    """What the numbers of a task are."""
    return {f"{of}_{each.name}": f"{text} {each.meaning}" for each in measures for of, text in OF_TASK.items()}


def of_task(measures: Iterable[TaskMeasure]) -> dict[str, Measure]:
    """What a trial has of each measure of its task: of the last model, the best, what was measured last, validated."""
    found: dict[str, Measure] = {}
    for each in measures:
        unit, words, is_headline = unit_of(each), each.words, not found
        final, best, validated = f"final {words}", f"best {words}", f"best {each.words_on(VALIDATION)}"
        declared = {
            "final": Measure(
                unit, each.better, final, words if is_headline else "", final if is_headline else "",
            ),
            "best": Measure(unit, each.better, best, "best", best) if is_headline else Measure(unit, each.better),
            "last": Measure(unit, each.better),
            "validated": Measure(unit, each.better, validated, "validated") if is_headline else (
                Measure(unit, each.better)
            ),
        }  # fmt: skip
        found |= {
            f"{of}_{each.name}": one._replace(name=f"{of}_{each.name}", label=f"{of} {words}")
            for of, one in declared.items()
        }
    return found


def all_measures(task: Iterable[TaskMeasure]) -> dict[str, Measure]:
    """Every measure of a trial by name, those of its task first."""
    own = of_task(task)
    chance = "most_frequent_class"  # beside the headline, whose value it is without training
    return dict(list(own.items())[:2]) | {chance: MEASURES[chance]} | own | MEASURES


def program_measure(name: str, output: Iterable[str]) -> Measure:
    """The measure that an expectation of programs names, whose output tells these numbers."""
    return VERDICT if name == VERDICT.name else program_measures(output)[name]


def measure_of(name: str, task: Collection[TaskMeasure] = ()) -> Measure:
    """The measure that an expectation names."""
    return VERDICT if name == VERDICT.name else MEASURES.get(name) or (of_task(task) | of_clients(task))[name]


def measure_text(name: str, value: float | None, task: Collection[TaskMeasure] = ()) -> str:
    """A measure's value in its own unit."""
    return measure_of(name, task).text(value)


def compared_texts(
    name: str, measured: float | None, bound: float, task: Collection[TaskMeasure] = ()
) -> tuple[str, str]:
    """A measured value and its bound; with all their digits where rounding would make them look the same."""
    return measure_of(name, task).beside(measured, bound)
