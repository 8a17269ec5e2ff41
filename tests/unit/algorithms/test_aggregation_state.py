"""What is stored of an aggregation: a server that goes on from a log or a checkpoint is as one that was never gone."""

import enum
import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregator import NO_INFO, Aggregator, PushInfo
from edgebed.algorithms.registry import AGGREGATIONS, configure
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate
from edgebed.core.errors import OwnCodeError
from edgebed.core.plan import Part
from edgebed.roles.server.snapshot import dump, dump_lasting, load, load_lasting

N = 4
WORKERS = ("a", "b", "c")
PLATEAU = {"schedule": "plateau", "patience": 0, "threshold": 0.1, "decay_by": 0.5, "warm_up": 1.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "asynchronous": ("asynchronous", {"staleness": "whole-update"}),
    "per-parameter": ("asynchronous", {"staleness": "per-parameter"}),
    "rounds": ("synchronous", {}),
    "momentum": ("synchronous", {"momentum": 0.9, "weights": "examples"}),
    "scaffold": ("scaffold", {}),
    "feddyn": ("feddyn", {}),
    "fednova": ("fednova", {"weights": "examples"}),
    "adam": ("buffered", {"count": 3, "optimizer": "adam"}),
    "stale-synchronous": ("stale-synchronous", {"bound": 1}),
    "buffered": ("buffered", {"count": 3, "staleness": "power"}),
    "mixing": ("mixing", {}),
    "dc-asgd": ("dc-asgd", {"adaptive": True}),
    "own": ("own", {}),
}


@dataclass
class Steps:
    """What an aggregation of one's own may count in."""

    made: int = 0


class Mode(enum.Enum):
    """A choice."""

    LATE = 1


class Own(Aggregator):
    """One of a user's own: it steps along the mean of the last two pushes, and says nothing of how it is stored."""

    def __init__(self, config: Scheduled, theta: Any, version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.last = deque[Any](maxlen=2)
        self.seen = {"pushes": np.int64(0), "by": {"a": (1, [2.5])}}
        self.steps = Steps()

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Apply it at once."""
        self.last.append(update)
        self.seen["pushes"] += 1
        self.steps.made += 2
        divisor = float(len(self.last) + self.seen["pushes"] + self.steps.made)
        self.move(None, sum(each.values for each in self.last), divisor)
        self.version += 1
        return Applied((worker,), None)


def make(kind: str, settings: dict[str, Any], theta: Any = None, version: int = 0) -> Aggregator:
    """A server that all workers have joined, and been sent the model of; three pushes are an epoch."""
    name, own = KINDS[kind]
    begin = np.linspace(-1, 1, N, dtype="f4") if theta is None else theta
    made: Aggregator
    if name == "own":
        made = Own(Scheduled(**settings), begin, version)
    else:
        config = configure("aggregation", Part(name=name, settings=own | settings))
        made = AGGREGATIONS[name].Aggregation(config, begin, version)
    made.epochs_a_push = 1 / 3
    for worker in WORKERS:
        made.joined(worker)
        made.pulled(worker)
    return made


def round_of(server: Aggregator, values: list[float], base: int) -> None:
    """A push of each of the first so many; nothing is held when the last of all has come."""
    for worker, value in zip(WORKERS, values, strict=False):
        server.schedule.note(server.epoch, abs(value))
        update, count = ModelUpdate(N, None, np.full(N, value, "f4")), len(server.vectors) - 1
        server.push(worker, update, base, PushInfo(examples=1 + ord(worker) % 3, beside=(update,) * count))
        server.pulled(worker)


ROUNDS = st.lists(st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), max_size=8)


@pytest.mark.parametrize(
    "settings", [{}, PLATEAU, {"schedule": "cosine", "zero_at": 6.0}], ids=["as-is", "plateau", "cosine"]
)
@pytest.mark.parametrize("kind", KINDS)
@given(before=ROUNDS, after=ROUNDS)
def test_a_server_that_goes_on_from_a_checkpoint_is_the_one_before(
    kind: str, settings: dict[str, Any], before: list[list[float]], after: list[list[float]]
) -> None:
    """Bit for bit in model, version and learning rate, whatever came before and comes after."""
    lasting = make(kind, settings)
    for values in before:
        round_of(lasting, values, lasting.version)
    state = dump_lasting(lasting)
    kept = state.copy()
    anew = make(kind, settings, lasting.theta.copy(), lasting.version)
    load_lasting(anew, state)
    for worker in WORKERS:  # all have to join the new one
        lasting.joined(worker)
        lasting.pulled(worker)
    for values in after:
        for server in (lasting, anew):
            round_of(server, values, server.version)

    np.testing.assert_array_equal(lasting.theta, anew.theta)
    assert (lasting.version, lasting.learning_rate) == (anew.version, anew.learning_rate)
    np.testing.assert_array_equal(dump_lasting(lasting), dump_lasting(anew))
    np.testing.assert_array_equal(state, kept)  # it was handed out: nobody writes to it


@pytest.mark.parametrize(("kind", "settings"), [("momentum", {}), ("rounds", PLATEAU)])
def test_without_its_state_it_is_another(kind: str, settings: dict[str, Any]) -> None:
    """What is kept matters."""
    lasting = make(kind, settings)
    for loss in (1.0, 1.0, 1.0, 1.0):
        round_of(lasting, [loss] * 3, lasting.version)
    anew = make(kind, settings, lasting.theta.copy(), lasting.version)
    for server in (lasting, anew):
        round_of(server, [1.0] * 3, server.version)

    assert (lasting.theta != anew.theta).all()


@pytest.mark.parametrize("settings", [{}, PLATEAU], ids=["as-is", "plateau"])
@pytest.mark.parametrize("kind", KINDS)
@given(before=ROUNDS, cut=st.integers(0, 2), after=ROUNDS)
def test_whatever_it_holds_the_next_updates_are_the_same(
    kind: str, settings: dict[str, Any], before: list[list[float]], cut: int, after: list[list[float]]
) -> None:
    """Bit for bit, also in the middle of a round: who takes part and what is held goes through a log as well."""
    lasting = make(kind, settings)
    for values in before:
        round_of(lasting, values, lasting.version)
    round_of(lasting, [0.5, -1.5][:cut], lasting.version)
    snapshot, frames = dump(lasting)
    anew = make(kind, settings)
    load(anew, snapshot, b"".join(frames))
    for values in after:
        for server in (lasting, anew):
            round_of(server, values, server.version)

    assert anew.theta.tobytes() == lasting.theta.tobytes()
    assert dump(anew)[0] == dump(lasting)[0]
    assert b"".join(dump(anew)[1]) == b"".join(dump(lasting)[1])


def test_a_velocity_takes_four_bytes_an_entry() -> None:
    """Beside it a checkpoint has some hundred bytes of names."""
    sizes = [len(dump_lasting(make("momentum", {}, np.zeros(size, "f4")))) for size in (1_000, 2_000)]

    assert 4_000 <= sizes[1] - sizes[0] < 4_010


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("momentum", "adam", "scaffold", "feddyn", "dc-asgd", "own")]
)
def test_most_remember_nothing_but_the_model(kind: str) -> None:
    """So their checkpoints are about as small as it, however large it is, and whatever is held."""
    sizes = []
    for size in (1_000, 2_000):
        server = make(kind, {}, np.zeros(size, "f4"))
        server.push("a", ModelUpdate(size, None, np.ones(size, "f4")), 0)
        sizes.append(len(dump_lasting(server)))

    assert max(sizes) < 400
    assert sizes[1] - sizes[0] < 10


def test_what_another_remembers_is_refused() -> None:
    """With what does not fit."""
    with pytest.raises(ValueError, match="state: not what this aggregation remembers: Aggregation has no last"):
        load_lasting(make("rounds", {}), dump_lasting(make("own", {})))


@pytest.mark.parametrize(
    "held",
    [
        Counter(a=1),
        OrderedDict(a=1),
        defaultdict(int, a=1),
        random.Random(1),
        np.random.default_rng(1),
        Mode.LATE,
        np.zeros(2, [("a", "i4"), ("b", "f8")]),
        np.array([None]),
        (each for each in "ab"),
        2**64,
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_could_not_be_there_again_whole_is_refused(held: Any) -> None:
    """By the attribute's name: none may be stored without what it holds beside attributes."""
    server = make("own", {})
    server.held = held  # type: ignore[attr-defined] # which one of a user's own may have

    with pytest.raises(OwnCodeError, match=r"^held: .*cannot be stored"):
        dump(server)
