"""An evaluator that is slower than training measures the versions that are due: their models wait at the server."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Part
from edgebed.core.records import Evaluated
from edgebed.roles.evaluator import BACKLOG_S, Evaluator
from edgebed.roles.events import Compute, Computed, Connected, Journal, MessageReceived, Send
from edgebed.roles.server import due_models
from edgebed.roles.server.due_models import MODELS_MIN, ROOM_BYTES, DueModels, room_for
from edgebed.roles.work import EvaluationResult
from edgebed.wire.messages import Finish, Model, Start

PUSH, MEASURED, BROKEN = "a push", "a measurement is done", "the evaluator's connection breaks"
SUMS = {"test": {"accuracy": (1.0, 1.0), "loss": (1.0, 1.0)}}


@dataclass
class Pair:
    """A server and an evaluator that measures as slowly as a test has it; messages take no time."""

    bench: object
    evaluator: Evaluator
    measured: list = field(default_factory=list)
    """Versions that were measured, in order; the final one as well."""
    models: dict = field(default_factory=dict)
    """The model of each version, as the server had it."""
    seen: dict = field(default_factory=dict)
    """The model of each version, as the evaluator measured it."""
    job: object = None
    waiting_max: int = 0
    now: float = 0.0

    def start(self):
        """Training begins, before the evaluator has asked for anything."""
        self.note()
        self.bench.tell(Start(sender="controller", workers=("edge-0",)))
        self.bench.join("edge-0")

    def note(self):
        """Note what the server has."""
        aggregation = self.bench.server.aggregation
        self.models[aggregation.version] = aggregation.theta.copy()
        self.waiting_max = max(self.waiting_max, len(self.bench.server.due.waiting))

    def push(self):
        """The worker pushes something."""
        values = np.full(6, len(self.models), "f4")
        begin = len(self.bench.sent)
        self.bench.push("edge-0", update=ModelUpdate(6, None, values))
        self.note()
        self.answered(begin)

    def ask(self, event):
        """The evaluator does what follows on an event."""
        for effect in self.evaluator.handle(event, self.now):
            if isinstance(effect, Send):
                begin = len(self.bench.sent)
                self.bench.tell(effect.message)
                self.answered(begin)
            elif isinstance(effect, Compute):
                assert self.job is None
                self.job = effect.job
            elif isinstance(effect, Journal) and isinstance(effect.record, Evaluated):
                self.measured.append(effect.record.version)

    def answered(self, begin):
        """What the server has sent to the evaluator arrives."""
        for to, message, frames in self.bench.sent[begin:]:
            if to == "evaluator" and isinstance(message, Model):
                self.ask(MessageReceived("server", message, frames, 0))

    def done(self):
        """What the evaluator measures is measured."""
        if self.job:
            job, self.job = self.job, None
            self.seen[job.version] = job.theta
            self.ask(Computed(EvaluationResult(job.version, job.final, SUMS)))

    def finish(self, each_s=0.0):
        """Training ends; the evaluator works off what there is, a measurement in so many seconds."""
        begin = len(self.bench.sent)
        self.bench.finish()
        self.answered(begin)
        self.ask(MessageReceived("controller", Finish(sender="controller", reason="enough"), (), 0))
        while self.job:
            self.now += each_s
            self.done()


@pytest.fixture(scope="session")
def make_pair(make_bench, make_node):
    """`make_pair(every, **plan)`: with an evaluator that has not begun to ask."""

    def make(every=3, **plan):
        evaluator = Evaluator(make_node("evaluator", "evaluator", evaluate_every_updates=every))
        return Pair(make_bench(due_every_updates=every, **plan), evaluator)

    return make


ACTS = st.lists(st.sampled_from([PUSH, PUSH, PUSH, MEASURED, BROKEN]), max_size=80)


@settings(max_examples=80)
@given(acts=ACTS, every=st.integers(1, 5), late=st.integers(0, 9))
def test_every_due_version_is_measured_in_order_however_slow_the_evaluator(make_pair, acts, every, late):
    """The exact models of the exact versions; also where it begins late, and where its connection breaks."""
    pair = make_pair(every)
    pair.start()
    for _ in range(late):
        pair.push()
    pair.ask(MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0))
    for act in acts:
        if act == PUSH:
            pair.push()
        elif act == MEASURED:
            pair.done()
        else:
            pair.ask(Connected())
    pair.finish()

    last = pair.bench.server.aggregation.version
    assert [*range(0, last + 1, every)] == [each for each in dict.fromkeys(pair.measured) if each % every == 0]
    assert pair.measured == sorted(pair.measured)
    assert pair.measured[-1] == last
    for version, theta in pair.seen.items():
        np.testing.assert_array_equal(pair.models[version], theta)


@settings(max_examples=40)
@given(acts=ACTS)
def test_what_there_is_no_room_for_is_skipped_and_no_more_waits_than_was_said(make_pair, acts):
    """The newest due versions are measured; memory has a bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due_models, "ROOM_BYTES", 3 * 24)  # a model has 24 bytes
        pair = make_pair(1)
    pair.start()
    pair.ask(MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0))
    for act in acts:
        pair.push() if act == PUSH else pair.done()
    waiting = [model.version for model, _ in pair.bench.server.due.waiting]
    begun = len(pair.measured)
    pair.finish()

    assert pair.waiting_max <= 3
    assert pair.measured == sorted(pair.measured)
    assert set(waiting) <= set(pair.measured[max(0, begun - 1) :])


def test_a_round_that_goes_by_several_due_versions_has_one_model(make_pair):
    """The first at or beyond them; nothing waits of versions that there is no model of."""
    pair = make_pair(2, aggregation=Part(name="synchronous"))
    pair.bench.tell(Start(sender="controller", workers=("edge-0", "edge-1", "edge-2")))
    for k in range(3):
        pair.bench.join(f"edge-{k}")
    for _ in range(3):
        for k in range(3):
            pair.bench.push(f"edge-{k}")

    assert [model.version for model, _ in pair.bench.server.due.waiting] == [0, 3, 6, 9]


def test_the_backlog_at_the_end_is_worked_off_for_a_while(make_pair):
    """Then the final model is measured, whatever waits."""
    pair = make_pair(1)
    pair.start()
    pair.ask(MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0))
    for _ in range(10):
        pair.push()
    pair.finish(each_s=0.3 * BACKLOG_S)

    assert pair.measured == [0, 1, 2, 3, 10]


def test_an_evaluator_that_was_started_anew_measures_the_model_that_there_is(make_pair):
    """What waited for the last one is given up; what is due from now on waits for the new one."""
    pair = make_pair(5)
    pair.start()
    pair.ask(MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0))
    pair.done()
    for _ in range(17):
        pair.push()
    pair.evaluator, pair.job = Evaluator(pair.evaluator.plan), None
    pair.ask(MessageReceived("controller", Start(sender="controller", addresses=(("server", "x"),)), (), 0))
    for _ in range(17):
        pair.push()
    for _ in range(5):
        pair.done()

    assert pair.measured == [0, 17, 20, 25, 30]


def test_where_evaluations_come_at_times_nothing_waits(make_pair):
    """The model of the moment is measured."""
    due = DueModels(None, 100)
    due.add(Model(sender="server", version=0, final=False, tensors=()), [])

    assert not due.is_due(-1, 0)
    assert due.next(0) is None


@pytest.mark.parametrize("model_bytes", [1, 10_000, ROOM_BYTES // 3, ROOM_BYTES, 10 * ROOM_BYTES])
def test_there_is_room_for_two_models_and_for_as_many_as_fit(model_bytes):
    """However large a model is."""
    assert room_for(model_bytes) == max(MODELS_MIN, ROOM_BYTES // model_bytes)
