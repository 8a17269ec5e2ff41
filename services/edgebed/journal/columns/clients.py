"""What was measured client by client, as arrays, and in a few numbers.

A worker that trains alone measures its own model of its own clients: the values of one version are then those of many
models.

Shapes: V versions, C clients.
"""

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.measures.clients import WHOSE
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.plan import TrainingPlan
from edgebed.core.records import Clients
from edgebed.journal.columns.evaluations import Evaluations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DECILE = 0.1
"""Share of the clients whose mean is told as that of the worst, and of the best."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientEvaluations:
    """The values of each client, of the versions that were measured so; in order of versions."""

    version: Ints
    """(V,)"""
    clients: Ints
    """(C,) numbers of the clients, into the plan's `client_names`."""
    measured: dict[str, Floats]
    """(V, C) values by measure; NaN: not measured, or a client's examples give none."""
    tuned: dict[str, Floats]
    """(V, C) the same after local fine-tuning; empty: there is none."""
    chosen: int | None = None
    """Place of the version whose headline on the validation part is best of these; None: nothing chooses among them."""

    def __len__(self) -> int:
        """Number of versions, V."""
        return len(self.version)

    def last(self, measure: str, *, tuned: bool = False) -> Floats:
        """(C,) what was measured of each client last; NaN: nothing."""
        return self._at(-1, (self.tuned if tuned else self.measured).get(measure))

    def told(self, measure: str, part: str) -> Floats:
        """(C,) what was measured of each client that a part of a summary tells of; NaN: nothing."""
        if part == "chosen":
            return self._at(self.chosen, self.measured.get(measure))
        return self.last(measure, tuned=part == "tuned")

    def _at(self, place: int | None, values: Floats | None) -> Floats:
        found: Floats = np.full(len(self.clients), math.nan) if values is None or place is None else values[place]
        return found


NONE = ClientEvaluations(version=np.zeros(0, np.int64), clients=np.zeros(0, np.int64), measured={}, tuned={})


def client_evaluations(told: Iterable[Clients], kept: Collection[int] | None) -> ClientEvaluations:
    """The values of these records; of versions that are `kept`, if these are given.

    Of a client and version that were measured twice, the later line holds.
    """
    rows = [record for record in told if kept is None or record.version in kept]
    if not rows:
        return NONE
    versions = sorted({record.version for record in rows})
    clients = sorted({client for record in rows for client in record.clients})
    row_of, place_of = ({each: k for k, each in enumerate(all_)} for all_ in (versions, clients))
    found: dict[str, dict[str, Floats]] = {"measured": {}, "tuned": {}}
    for record in rows:
        row, places = row_of[record.version], [place_of[client] for client in record.clients]
        for part, by_measure in found.items():
            for name, values in getattr(record, part).items():
                if len(values) != len(places):
                    continue
                if name not in by_measure:
                    by_measure[name] = np.full((len(versions), len(clients)), math.nan)
                by_measure[name][row, places] = values
    return ClientEvaluations(
        version=np.array(versions, np.int64),
        clients=np.array(clients, np.int64),
        measured=found["measured"],
        tuned=found["tuned"],
    )


def chosen_of(found: ClientEvaluations, evaluations: Evaluations) -> int | None:
    """The place of the version that validation chooses of those that were measured so; None where it does not."""
    if len(found) < 2 or not evaluations.validation:
        return None
    by_version = dict(zip(evaluations.version.tolist(), evaluations.values.tolist(), strict=True))
    return evaluations.headline.best_place([by_version[version] for version in found.version.tolist()])


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """One measure over clients."""

    mean: float
    """Each client counts as one, whatever it has."""
    std: float
    worst_decile: float
    """Mean of the worst tenth of the clients, of one at least."""
    best_decile: float
    clients: int
    """Number of clients that have a value."""


class ClientSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured client by client last, in numbers."""

    part: str
    """Part of the data that clients were measured on."""
    version: int
    """Version of the model."""
    own_models: bool = False
    """Whether each client was measured with its worker's own model, and nothing with one of all."""
    clients: int
    unseen: int = 0
    """Clients that training never saw."""
    fine_tune: str = ""
    """Local fine-tuning in words; empty: there was none."""
    seen: dict[str, Spread] = {}
    """By measure, over clients that training saw."""
    chosen: dict[str, Spread] = {}
    """The values by the version that validation chose of those that were measured so; empty: it chose none."""
    chosen_version: int | None = None
    """The version of the model that these values are of."""
    tuned: dict[str, Spread] = {}
    """The values after local fine-tuning."""
    held_out: dict[str, Spread] = {}
    """By measure, over clients that training never saw."""


def spread_of(values: Floats, measure: TaskMeasure) -> Spread | None:
    """(C,) values -> what is told of them; None where no client has one."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    ranked = np.sort(known)[:: -1 if measure.better == "more" else 1]
    tenth = max(1, round(DECILE * len(known)))
    return Spread(
        mean=float(known.mean()),
        std=float(known.std()),
        worst_decile=float(ranked[-tenth:].mean()),
        best_decile=float(ranked[:tenth].mean()),
        clients=len(known),
    )


def client_summary(plan: TrainingPlan, found: ClientEvaluations) -> ClientSummary | None:
    """The numbers of what was measured last; None where nothing was measured client by client."""
    by = plan.by_client
    if by is None or not len(found):
        return None
    is_unseen = np.isin(found.clients, by.unseen)
    parts: dict[str, dict[str, Spread]] = {}
    for part in WHOSE.values():
        which = is_unseen if part == "held_out" else ~is_unseen
        spreads = {each.name: spread_of(found.told(each.name, part)[which], each) for each in plan.measures}
        parts[part] = {measure: spread for measure, spread in spreads.items() if spread}
    return ClientSummary(
        part=by.part,
        version=int(found.version[-1]),
        own_models=plan.evaluator.by_client is None,
        clients=len(found.clients),
        unseen=int(is_unseen.sum()),
        chosen_version=None if found.chosen is None else int(found.version[found.chosen]),
        fine_tune=f"{by.fine_tune.steps} steps at {by.fine_tune.learning_rate:g}" if by.fine_tune else "",
        **parts,
    )


def without_last(plan: TrainingPlan, found: ClientEvaluations) -> list[str]:
    """Names of clients that were to be measured with their workers' own models, and of whom nothing was told last."""
    by = plan.by_client
    if by is None or plan.evaluator.by_client or not len(found):
        return []
    told = [~np.isnan(values[-1]) for values in found.measured.values()]
    known = {int(client) for client in found.clients[np.any(told, axis=0)]}
    return names_of(plan, sorted({*by.clients} - known))


def without_examples(plan: TrainingPlan) -> list[str]:
    """Names of clients that are not measured: they have no example of the part that clients are measured on."""
    by, every = plan.by_client, range(len(plan.client_names))
    if by is None:
        return []
    has_own_models = plan.evaluator.by_client is None
    known = {each for node in plan.workers() for each in node.clients} if has_own_models else {*every}
    return names_of(plan, sorted(known - {*by.clients}))


def names_of(plan: TrainingPlan, clients: Sequence[int] | Ints) -> list[str]:
    """The names of clients."""
    return [plan.client_names[int(client)] for client in clients]
