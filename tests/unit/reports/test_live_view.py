"""The lines that a terminal shows of a trial: what they say, and that they fit."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from edgebed.journal.trial_state import ClassStatus, TrialStatus
from edgebed.journal.troubles import Trouble
from edgebed.learning.objectives.classification import ACCURACY
from edgebed.reports.live.live_view import figures_of, live_view
from edgebed.reports.live.pace import Pace, Times

HOME = ClassStatus(name="home", states={"running": 4}, rate_per_s=73.12, share=0.741, cpus_used=0.481, cpus_held=0.5)
PHONE = ClassStatus(
    name="phone", states={"running": 1, "died": 1, "unresponsive": 1}, rate_per_s=25.6, share=0.259, cpus_used=0.2
)
TIMES = Times(wall_s=12.3, left_s=12.2)
LATEST = (Trouble(3.0, "home-0: cut (cut-1)"), Trouble(9.51, "phone-1 died: killed by SIGKILL"))


def status(classes=(HOME, PHONE), latest=LATEST, **others):
    """A status with the given classes and troubles."""
    figures = {
        "updates": 300, "updates_per_s": 98.7, "measured": {"accuracy": 0.9321},
        "headline": ACCURACY, "ingress_bytes": 312_000, "nodes_up": 6,
        "nodes_expected": 7, "elapsed_s": 12.3, "stop_updates": 600,
    }  # fmt: skip
    figures |= {"trial": "asgd", "state": "training"}
    return TrialStatus(classes=classes, latest=latest, **figures | others)


def shown(each, width=80, height=24, times=TIMES):
    """The lines of a terminal of that size, wide enough not to hide one that is too long."""
    console = Console(file=io.StringIO(), width=1000, height=height, force_terminal=True, color_system=None)
    console.print(live_view(each, each.state, times, width, height))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_terminal_tells_how_far_each_class_is_and_what_happened_last():
    """Who is down, how fast, which share, CPU against its cap; troubles with their time."""
    first, second, *below = shown(status(), 100)

    assert first.startswith("asgd training ━")
    assert first.endswith("300 of 600 updates")
    assert second == "98.7 updates/s  accuracy 93.21 %  312 kB up  6/7 nodes up  12.3 s  12 s left"
    assert below == [
        "home   4 nodes                         73.1 updates/s  74.1 %  CPU 0.48 of 0.5",
        "phone  1/3 up, 1 died, 1 unresponsive  25.6 updates/s  25.9 %  CPU 0.20",
        "3.00 s  home-0: cut (cut-1)",
        "9.51 s  phone-1 died: killed by SIGKILL",
    ]


def test_of_programs_it_tells_what_they_measured_last():
    """And no updates, and no rates, of which nothing is known."""
    measured = {"loss": 0.25, "step": 40.0}
    of_programs = status(
        state="running", trains=False, headline=None, measured=measured, stop_updates=None, stop_time_s=60.0
    )
    first, second, *below = shown(of_programs, 100)

    assert first.endswith("6 of 7 programs up")
    assert second == "loss 0.25, step 40  12.3 s of 60.0 s"
    assert below[0] == "home   4 nodes                         74.1 %  CPU 0.48 of 0.5"


@pytest.mark.parametrize(
    ("width", "cells"),
    [
        (100, ["updates/s", "%", "CPU"]),
        (80, ["updates/s", "CPU"]),
        (60, ["updates/s"]),
        (44, []),
    ],
)
def test_a_narrow_terminal_goes_without_what_matters_least(width, cells):
    """First the share, then CPU time, then the rate; who is down stays."""
    line = shown(status(), width)[3]

    assert line.startswith("phone  1/3 up, 1 died, 1 unresponsive")
    assert [cell for cell in ("updates/s", "%", "CPU") if cell in line] == cells


@pytest.mark.parametrize(
    ("height", "below"),
    [
        (24, ["home", "phone", "3.00", "9.51"]),
        (6, ["home", "phone", "9.51"]),
        (5, ["and", "9.51"]),
        (4, ["9.51"]),
        (3, []),
        (1, []),
    ],
)
def test_a_low_terminal_goes_without_older_troubles_then_without_classes(height, below):
    """What happened last stays longest, below the two lines."""
    assert [line.split()[0] for line in shown(status(), height=height)[2:]] == below


@pytest.mark.parametrize(("height", "is_shown"), [(7, True), (6, False)])
def test_several_hosts_have_a_line_where_all_classes_have(height, is_shown):
    """How busy each is of late; the last trouble comes before it."""
    line = "hosts  lab-1 40 % busy  lab-2 97 % busy"
    below = shown(status(hosts={"lab-1": 0.4, "lab-2": 0.97}), 100, height)[2:]

    assert (line in below) == is_shown
    assert below[-1].startswith("9.51 s")


def test_classes_that_do_not_fit_are_counted():
    """With twenty of them the last line says how many are not shown."""
    classes = tuple(ClassStatus(name=f"class-{k}", states={"running": 1}) for k in range(20))
    lines = shown(status(classes), height=10)

    assert [line.split()[0] for line in lines[2:]] == [*(f"class-{k}" for k in range(5)), "and", "9.51"]
    assert lines[-2] == "and 15 more"


def test_of_shards_it_tells_steps_and_of_one_class_no_share():
    """There is nothing to share."""
    steps = shown(status((HOME,), (), ingress_bytes=None))[2]

    assert steps == "home  4 nodes  73.1 steps/s  CPU 0.48 of 0.5"


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    names=st.lists(st.text("abcdefgh-", min_size=1, max_size=30), max_size=30, unique=True),
    states=st.dictionaries(st.sampled_from(("running", "died", "expected", "stopped")), st.integers(1, 10**6)),
    figures=st.tuples(*[st.one_of(st.none(), st.floats(0, 1e9))] * 3),
    texts=st.lists(st.text("abc ,:\n\x1b\u4e16\u2028", max_size=300), max_size=3),
)
def test_whatever_there_is_to_tell_it_fits(width, height, names, states, figures, texts):
    """With room for the cursor below, and for the echo of Ctrl-C in every line after the first two."""
    share, used, held = figures
    classes = tuple(
        ClassStatus(
            name=name, states=states or {"running": 1}, rate_per_s=used or 0.0, share=share, cpus_used=used,
            cpus_held=held,
        )
        for name in names
    )  # fmt: skip
    lines = shown(status(classes, tuple(Trouble(1.0, text) for text in texts)), width, height)

    assert len(lines) <= max(2, height - 1)
    assert all(cell_len(line) <= max(0, width - len("^C")) for line in lines[2:])


def test_in_virtual_time_nothing_is_called_as_in_the_table():
    """The table's updates/s are of virtual time; what is simulated in a second of the clock has another name."""
    virtual = status((HOME,), (), is_virtual=True)
    second, of_class = shown(virtual, 140, times=Times(4.06, 4.2))[1:]

    assert second == (
        "98.7 simulated/s  accuracy 93.21 %  312 kB up  6/7 nodes up  12.3 s of virtual time  4.06 s by the clock  "
        "4 s left"
    )
    assert of_class.startswith("home  4 nodes  73.1 simulated/s")


def test_what_is_not_known_yet_is_not_shown():
    """No rate at the first look, no forecast at the beginning."""
    assert shown(status(updates_per_s=None), times=Times(0.5, None))[1] == (
        "accuracy 93.21 %  312 kB up  6/7 nodes up  12.3 s"
    )


def test_a_trial_that_time_ends_shows_how_much_of_it_is_over():
    """The bar has its share, and the time its limit."""
    each = status((), (), stop_updates=None, stop_time_s=24.6)
    first, second = shown(each, 100)

    bar = first.removeprefix("asgd training ").partition(" ")[0]
    assert first.endswith("300 updates")
    assert 0.4 < bar.count("━") / (100 - len("asgd training  300 updates") - 4) <= 1.0
    assert "12.3 s of 24.6 s" in second


def test_while_nodes_are_started_no_training_is_shown():
    """How many are ready, and since when: neither updates nor a limit of the training."""
    starting = status(
        (), (), state="starting", updates=0, nodes_ready=9, nodes_expected=10, elapsed_s=40.0, stop_time_s=90.0
    )

    assert ", ".join(figures_of(starting, Times(41.0, None)).values()) == "9 of 10 nodes ready, 40.0 s"
    assert [line.split()[-1] for line in shown(starting, 100)] == ["ready", "s"]


def test_the_time_left_follows_from_the_pace_since_training_began():
    """Start-up does not count; the nearer of two limits does; nothing is said before there is a pace, or at the end."""
    pace = Pace(100.0)
    looks = [
        (status(updates=0, elapsed_s=0.0), 110.0),
        (status(updates=60, elapsed_s=1.0), 120.0),
        (status(updates=66, elapsed_s=1.1), 121.0),
        (status(updates=120, elapsed_s=2.0), 130.0),
        (status(updates=600, elapsed_s=9.0), 210.0),
    ]

    assert [pace.look(*look) for look in looks] == [
        Times(10.0, None), Times(20.0, None), Times(21.0, None), Times(30.0, pytest.approx(80.0)), Times(110.0, None)
    ]  # fmt: skip
    both = Pace(0.0)
    assert both.look(status(state="starting", updates=0, elapsed_s=4.0, stop_time_s=20.0), 4.0).left_s is None
    both.look(status(updates=60, elapsed_s=10.0, stop_time_s=20.0), 10.0)
    assert both.look(status(updates=90, elapsed_s=15.0, stop_time_s=20.0), 15.0).left_s == pytest.approx(5.0)
    assert both.look(status(state="stopping", updates=91, elapsed_s=15.1, stop_time_s=20.0), 15.1).left_s is None
