"""What came of a node while it was frozen, or cut off: nothing, of who was, whatever it did before and after."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from edgebed.core.records import Fault
from edgebed.emulation.outside.effects import LOOKS_MAX, SETTLES_S, Effects
from edgebed.emulation.outside.looks import Look

EPOCH_S = 50.0
"""The trial's launch, on the monotonic clock."""


def fault(action: str, asked_s: float, **more: str) -> Fault:
    """What was to be done at a time of the trial."""
    return Fault(name="freeze", action=action, target="edge-0", asked_s=asked_s, **more)  # type: ignore[arg-type]


def look(t: float, cpu_s: float = 0.0, sent: int = 0, life: str = "a", *, stopped: bool = False) -> Look:
    """A look at a time of the trial."""
    at_s = EPOCH_S + t
    return Look(
        life=life, since_s=at_s, until_s=at_s, cpu_s=cpu_s, uplink_bytes=sent, is_whole=True, is_stopped=stopped
    )


def followed(effects: Effects, pauses_s: list[float], holds: tuple[float, float], *, is_real: bool) -> None:
    """Looks at a node that works at a core, and sends 1,000 bytes a second, but for a fault that is real."""
    t, worked_s = 0.0, 0.0
    for pause_s in pauses_s:
        idle_s = max(0.0, min(t + pause_s, holds[1]) - max(t, holds[0])) if is_real else 0.0
        worked_s += pause_s - idle_s
        t += pause_s
        is_stopped = is_real and holds[0] <= t < holds[1]
        effects.add(look(t, worked_s, round(1000 * worked_s), stopped=is_stopped))


@given(
    pauses_s=st.lists(st.floats(0.05, 1.0), min_size=80, max_size=80),
    began_s=st.floats(0.5, 5.0),
    lasts_s=st.floats(0.1, 20.0),
    late_s=st.floats(0.0, 0.4),
    kind=st.sampled_from([("freeze", "thaw"), ("cut", "heal"), ("freeze", "kill")]),
    is_real=st.booleans(),
)
def test_a_fault_that_holds_lets_nothing_come_and_one_that_does_nothing_is_seen(
    pauses_s: list[float], began_s: float, lasts_s: float, late_s: float, kind: tuple[str, str], *, is_real: bool
) -> None:
    """Whenever the node is looked at, however late its end is told; what works on is counted to the digit."""
    effects = Effects()
    ended_s = began_s + lasts_s
    effects.done(fault(kind[0], began_s), EPOCH_S, EPOCH_S + began_s)
    followed(effects, pauses_s, (began_s, ended_s), is_real=is_real)
    effects.done(fault(kind[1], ended_s), EPOCH_S, EPOCH_S + ended_s + late_s)
    counts = effects.counts
    came, covered_s = (
        counts.get("frozen_cpu_s", 0.0) + counts.get("cut_bytes", 0) / 1000,
        sum(counts.get(name, 0.0) for name in ("frozen_s", "cut_s")),
    )

    assert covered_s <= max(0.0, lasts_s - SETTLES_S) + 1e-6
    if is_real:
        assert came == pytest.approx(0.0, abs=2e-3)
        assert "frozen_running" not in counts
    else:
        assert came == pytest.approx(covered_s, abs=2e-3)
        assert counts.get("frozen_running") == counts.get("frozen_looks")
    assert (covered_s > 0.0) or lasts_s < SETTLES_S + 2.0 or ended_s > sum(pauses_s)


def test_a_cut_of_hours_keeps_few_looks_and_covers_all_of_it() -> None:
    """The first look, and the last ones."""
    effects = Effects()
    effects.done(fault("cut", 0.0), EPOCH_S, EPOCH_S)
    for k in range(1, 5000):
        effects.add(look(float(k), sent=7))
    kept = len(effects.looks["cut"])
    effects.close(EPOCH_S + 4999.0)

    assert kept <= 2 * LOOKS_MAX + 1
    assert effects.counts == {"cut_s": 4998.0}


def test_a_new_life_is_measured_by_itself_and_several_faults_add_up() -> None:
    """A container's counters begin anew while its link stays cut."""
    effects = Effects()
    effects.done(fault("cut", 0.0), EPOCH_S, EPOCH_S)
    for t, sent, life in ((1.0, 900, "a"), (2.0, 900, "a"), (3.0, 10, "b"), (5.0, 40, "b")):
        effects.add(look(t, sent=sent, life=life))
    effects.done(fault("heal", 6.0), EPOCH_S, EPOCH_S + 6.0)
    effects.done(fault("cut", 10.0), EPOCH_S, EPOCH_S + 10.0)
    for t in (11.0, 12.0):
        effects.add(look(t, sent=int(5 * t), life="b"))
    effects.done(fault("heal", 13.0), EPOCH_S, EPOCH_S + 13.0)

    assert effects.counts == {"cut_s": 3.0, "cut_bytes": 35}
