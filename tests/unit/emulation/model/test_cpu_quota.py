"""A CPU cap by the kernel's periods: its laws, whatever is computed when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.emulation.model.cpu_quota import PERIOD_S, CpuQuota

CPUS = st.floats(0.05, 0.99)
JOBS = st.lists(st.tuples(st.floats(0.0, 0.3), st.floats(0.0, 0.3)), min_size=1, max_size=40)
"""Work, and the pause after it."""
A_BIT_S = 1e-7


@given(CPUS, st.floats(-PERIOD_S, 0.0), JOBS)
def test_a_cap_lets_no_more_through_than_its_share(cpus, phase_s, jobs):
    """Over any number of jobs and pauses, but for a period's; it holds back no more than the cap's speed would."""
    quota, now_s = CpuQuota(cpus, phase_s), 0.0
    for work_s, pause_s in jobs:
        done_s = quota.done_s(now_s, work_s)
        assert now_s + work_s <= done_s + A_BIT_S
        assert done_s - now_s <= work_s / cpus + PERIOD_S + A_BIT_S
        now_s = done_s + pause_s

    assert sum(work_s for work_s, _ in jobs) <= cpus * (now_s + 2 * PERIOD_S) + A_BIT_S


@given(CPUS, st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_work_that_fits_into_its_share_is_not_slowed_down(cpus, now_s, part):
    """After a period without any; all of it has to be done in that period."""
    work_s = part * cpus * PERIOD_S
    begins_s = PERIOD_S * round(now_s / PERIOD_S)

    assert CpuQuota(cpus).done_s(begins_s, work_s) == pytest.approx(begins_s + work_s, abs=A_BIT_S)


@given(CPUS, st.floats(-PERIOD_S, 0.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_work_takes_as_long_in_parts(cpus, phase_s, first_s, then_s):
    """One after the other without a pause, or as one."""
    whole, parts = CpuQuota(cpus, phase_s), CpuQuota(cpus, phase_s)
    in_parts_s = parts.done_s(parts.done_s(0.0, first_s), then_s)

    assert in_parts_s == pytest.approx(whole.done_s(0.0, first_s + then_s), abs=A_BIT_S) or then_s < A_BIT_S


@pytest.mark.parametrize("cpus", [None, 1.0, 4.0])
def test_without_a_cap_below_a_core_work_takes_what_it_takes(cpus):
    """It uses one core."""
    assert CpuQuota(cpus).done_s(3.0, 0.75) == 3.75


def test_a_cap_that_changes_holds_for_what_comes():
    """What was used of the period counts."""
    quota = CpuQuota(0.5)
    assert quota.done_s(0.0, 0.04) == pytest.approx(0.04)
    quota.cpus = 0.3

    assert quota.done_s(0.04, 0.02) == pytest.approx(0.12)


def test_ten_thousand_years_of_work_are_reckoned_at_once():
    """Not period by period."""
    assert CpuQuota(0.25).done_s(0.0, 1e11) == pytest.approx(4e11, rel=1e-6)
