"""The offset between two clocks is never further from the truth than is said, and who follows it never runs back."""

import math
import random
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from edgebed.runtimes.containers.programs.clocks import WitnessClock
from edgebed.runtimes.live.clocks.estimate import DRIFT_MAX, WANDER, Estimate, Estimator, Exchange
from edgebed.runtimes.live.clocks.following import EVERY_S, EXCHANGES, ClockMeter, FollowedClock
from edgebed.runtimes.live.clocks.steering import SLEW, STEP_NS, Steering

SECOND = 1_000_000_000
MS = 1_000_000
MICROSECOND = 1_000


class Other(NamedTuple):
    """Another clock, as a function of one's own: ahead by an offset, and drifting, differently from some time on."""

    offset_ns: int = 0
    drift: float = 0.0
    later_drift: float | None = None
    later_ns: int = 0

    def at(self, own_ns: int) -> int:
        """What it shows."""
        late_ns = 0 if self.later_drift is None else max(0, own_ns - self.later_ns)
        return own_ns + self.offset_ns + round(self.drift * (own_ns - late_ns) + (self.later_drift or 0.0) * late_ns)

    def exchange(self, asked_ns: int, up_ns: int, took_ns: int, down_ns: int) -> Exchange:
        """An exchange whose question and answer are so long on their way."""
        heard_ns = asked_ns + up_ns
        answered_ns = heard_ns + took_ns + down_ns
        return Exchange(asked_ns, self.at(heard_ns), self.at(heard_ns + took_ns), answered_ns)


delays = st.one_of(st.integers(0, 1000), st.integers(0, 5 * SECOND))
others = st.tuples(st.integers(-(10**18), 10**18), st.floats(-DRIFT_MAX, DRIFT_MAX)).map(lambda given: Other(*given))
rounds = st.lists(
    st.lists(st.tuples(delays, st.integers(0, MS), delays), min_size=1, max_size=4), min_size=1, max_size=40
)


def told(other: Other, rounds_of: list[list[tuple[int, int, int]]], gap_ns: int) -> list[tuple[int, Estimate]]:
    """The estimate after each round of exchanges, and one's own time then."""
    estimator, own_ns, found = Estimator(), 7 * SECOND, []
    for exchanges in rounds_of:
        made = []
        for up_ns, took_ns, down_ns in exchanges:
            made.append(other.exchange(own_ns, up_ns, took_ns, down_ns))
            own_ns = made[-1].answered_ns + 1
        found.append((own_ns, estimator.add(made)))
        own_ns += gap_ns
    return found


@given(other=others, rounds_of=rounds, gap_ns=st.integers(1, 60 * SECOND), later_ns=st.integers(0, 600 * SECOND))
def test_the_truth_lies_within_the_error_whatever_the_delays_are(other, rounds_of, gap_ns, later_ns):
    """With any offset, any drift and any delays in either direction; right after an exchange, and long after."""
    for own_ns, estimate in told(other, rounds_of, gap_ns):
        for at_ns in (own_ns, own_ns + later_ns):
            wrong_ns = abs(estimate.offset_ns(at_ns) - (other.at(at_ns) - at_ns))
            assert wrong_ns <= estimate.error_ns(at_ns) + 2  # two roundings of the test's own


@given(
    offset_ns=st.integers(-(10**15), 10**15),
    drift=st.floats(-DRIFT_MAX + WANDER, DRIFT_MAX - WANDER),
    turn=st.sampled_from((-WANDER, WANDER)),
    turned_ns=st.integers(0, 400 * SECOND),
    rounds_of=rounds,
)
def test_the_truth_lies_within_the_error_while_the_drift_wanders(offset_ns, drift, turn, turned_ns, rounds_of):
    """As much as is allowed for, at any time."""
    other = Other(offset_ns, drift - turn, drift + turn, turned_ns)
    for own_ns, estimate in told(other, rounds_of, 10 * SECOND):
        assert abs(estimate.offset_ns(own_ns) - (other.at(own_ns) - own_ns)) <= estimate.error_ns(own_ns) + 2


def test_the_least_round_trip_counts():
    """Half of it is the error, however long the others took."""
    other = Other(1000 * SECOND)
    slow, quick = other.exchange(0, 400 * MS, 0, 0), other.exchange(SECOND, MS, 5, MS)
    estimate = Estimator().add([slow, quick])

    assert abs(estimate.at_offset_ns - 1000 * SECOND) < MICROSECOND
    assert abs(estimate.at_error_ns - MS) < MICROSECOND


def test_a_drift_of_100_ppm_is_followed():
    """Within a fifth of a millisecond after a minute, and found to a few per cent of it, in an hour of exchanges."""
    other = Other(-1000 * SECOND, 100e-6)
    rounds_of = [[(150_000 + 10_000 * (k % 7), 20_000, 150_000 + 10_000 * (k % 5))] for k in range(360)]
    found = told(other, rounds_of, 10 * SECOND)

    for own_ns, estimate in found[6:]:
        next_ns = own_ns + 10 * SECOND
        assert abs(estimate.offset_ns(next_ns) - (other.at(next_ns) - next_ns)) < MS / 5
        assert estimate.error_ns(next_ns) < MS / 2
        assert math.isclose(estimate.drift, 100e-6, rel_tol=0.05)


def test_what_contradicts_the_past_makes_it_forgotten():
    """The other host was suspended for a minute: what came before says nothing any more."""
    estimator, before, after = Estimator(), Other(5 * SECOND), Other(-55 * SECOND)
    for k in range(10):
        estimator.add([before.exchange(k * 10 * SECOND, MS, 0, MS)])
    estimate = estimator.add([after.exchange(100 * SECOND, MS, 0, MS)])

    assert abs(estimate.at_offset_ns + 55 * SECOND) < MICROSECOND
    assert len(estimator.kept) == 1


def test_an_answer_that_overtakes_the_next_question_is_a_bound_like_others():
    """Its round trip is long; the slope between the two is not asked of it."""
    other, estimator = Other(SECOND), Estimator()
    late = other.exchange(0, 0, 0, 3 * SECOND)
    estimator.add([late])
    estimate = estimator.add([other.exchange(2 * SECOND, MS, 0, 2 * SECOND)])

    assert abs(estimate.offset_ns(4 * SECOND) - SECOND) <= estimate.error_ns(4 * SECOND)


estimates = st.builds(
    Estimate, st.just(0), st.integers(-SECOND, SECOND), st.floats(-DRIFT_MAX, DRIFT_MAX), st.integers(0, SECOND),
    st.floats(0, DRIFT_MAX),
)  # fmt: skip
changes = st.lists(st.tuples(st.integers(0, 20 * SECOND), estimates), max_size=8)


@given(first=estimates, changed=changes, looks=st.lists(st.integers(0, 3 * SECOND), max_size=8))
def test_a_clock_that_follows_never_runs_backwards(first, changed, looks):
    """Whatever it is told to follow, at any moments at which it is looked at."""
    own_ns, steering = 0, Steering.begin(first)
    last_ns = own_ns + steering.offset_ns(own_ns)
    for later_ns, estimate in changed:
        for passed_ns in (*sorted(looks), later_ns):
            at_ns = own_ns + min(passed_ns, later_ns)
            assert at_ns + steering.offset_ns(at_ns) >= last_ns - 2  # roundings of a slope
            last_ns = at_ns + steering.offset_ns(at_ns)
        own_ns += later_ns
        steering = steering.towards(estimate._replace(at_ns=own_ns), own_ns)
        assert own_ns + steering.offset_ns(own_ns) >= last_ns - 2


@given(first=estimates, second=estimates, since_ns=st.integers(0, SECOND), passed_ns=st.integers(0, 300 * SECOND))
def test_a_clock_that_follows_agrees_in_the_end_and_says_how_wrong_it_is_until_then(first, second, since_ns, passed_ns):
    """Where it was far behind, at once."""
    steering = Steering.begin(first).towards(second._replace(at_ns=since_ns), since_ns)
    estimate, at_ns = steering.estimate, since_ns + passed_ns
    differs_ns = abs(steering.offset_ns(at_ns) - estimate.offset_ns(at_ns))

    assert steering.error_ns(at_ns) == estimate.error_ns(at_ns) + differs_ns
    behind_ns = estimate.offset_ns(since_ns) - first.offset_ns(since_ns)
    assume(abs(abs(behind_ns) - STEP_NS) > 1)
    if behind_ns > STEP_NS or passed_ns * SLEW >= abs(behind_ns) + 1:
        assert differs_ns == 0


def test_an_hour_with_a_drifting_clock_is_told_in_a_few_lines_that_hold():
    """Each says what times may be wrong by until the next; the clock meanwhile runs forwards, and is within that."""
    own_ns, other = [3000 * SECOND], Other(-1000 * SECOND, 100e-6)
    draw = random.Random(1)
    clock = FollowedClock("edge-0", lambda: own_ns[0])
    meter, told = ClockMeter(clock), []
    last_ns = -1
    for _ in range(3600):
        if own_ns[0] >= clock.next_ns:
            made = []
            for _ in range(EXCHANGES):
                up_ns, down_ns = (80_000 + round(draw.expovariate(1 / 100_000)) for _ in range(2))
                made.append(other.exchange(own_ns[0], up_ns, 20_000, down_ns))
                own_ns[0] = made[-1].answered_ns + 1000
            clock.take(made)
        told += meter.read(0.0, None)
        wrong_ns = abs(clock.now_ns() - other.at(own_ns[0]))
        assert clock.now_ns() > last_ns
        assert wrong_ns <= clock.error_s() * 1e9 + 2
        assert wrong_ns <= told[-1].error_s * 1e9 + 2
        line_s = told[-1].offset_s + told[-1].drift * (own_ns[0] * 1e-9 - told[-1].own_s)
        assert abs(line_s + 1000.0 - 100e-6 * own_ns[0] * 1e-9) <= 2.0 * told[-1].error_s
        last_ns = clock.now_ns()
        own_ns[0] += SECOND

    assert len(told) < 12
    assert told[-1].error_s < 0.5e-3
    assert wrong_ns < MS / 10


@given(
    other=others,
    delays_ns=st.lists(st.tuples(st.integers(1, 50 * MS), st.integers(1, 50 * MS)), min_size=40, max_size=40),
)
def test_times_of_a_witness_are_known_to_half_a_round_trip(other, delays_ns):
    """Whatever its clock shows: asked eight times in a row, and after each pause; what is journaled says so."""
    now_ns = 7 * SECOND
    clock = WitnessClock(lambda: now_ns)
    for up_ns, down_ns in delays_ns:
        while not (asked_ns := clock.due()):
            now_ns += SECOND // 4
        theirs_ns = other.at(now_ns + up_ns)
        now_ns += up_ns + down_ns
        news = clock.answered(asked_ns, theirs_ns)
        if news is not None:
            error_s = abs(news.offset_s + (other.at(now_ns) - now_ns) * 1e-9)
            assert error_s <= news.error_s + 1e-6 * max(1.0, abs(news.offset_s) * 1e-6)

    assert clock.told is not None
    assert clock.told.error_s <= 0.1 + 2 * EVERY_S * DRIFT_MAX
    theirs_s = other.at(now_ns) * 1e-9
    assert abs(clock.ours_s(theirs_s) - now_ns * 1e-9) <= 0.1 + abs(theirs_s) * 1e-12
    assert abs(clock.theirs_s(clock.ours_s(theirs_s)) - theirs_s) <= 1e-6 + abs(theirs_s) * 1e-12
