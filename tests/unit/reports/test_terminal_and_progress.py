"""What a person sees while a run goes on and when it is over, on a terminal and in a log."""

import errno
import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgebed.core import records
from edgebed.core.measures.trial import compared_texts
from edgebed.core.quantities import (
    bytes_text,
    local_text,
    number_text,
    percent_text,
    seconds_text,
    utc_text,
)
from edgebed.journal.accounts.ledger import Accounting, Ledger
from edgebed.journal.series import Series
from edgebed.journal.trial_state import TrialStatus
from edgebed.journal.troubles import Trouble
from edgebed.learning.objectives.classification import ACCURACY, Classification
from edgebed.reports.live.progress import ProgressDisplay, line_every_s
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.report import write_report
from edgebed.reports.run.text_chart_of_run import headline_chart
from edgebed.reports.writing.terminal import show


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Yes."""
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """A terminal of 80 columns with colours, whoever runs the tests."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def status(updates=10, **others):
    """A status with the given figures."""
    return TrialStatus(
        trial="asgd", state=others.pop("state", "running"), updates=updates, updates_per_s=98.7,
        measured={"accuracy": 0.9321}, headline=ACCURACY, ingress_bytes=312_000, nodes_up=6,
        nodes_expected=6, elapsed_s=12.3, stop_updates=600, **others,
    )  # fmt: skip


def run_progress(stream, statuses, make_sample_plan, summary, step_s=1.0):
    """Show these statuses, one every `step_s` of a clock of our own."""
    now = iter(range(100_000))
    with ProgressDisplay(stream, width=80, clock=lambda: next(now) * step_s) as progress:
        progress.trial_started(make_sample_plan())
        for each in statuses:
            progress.update(each)
        progress.trial_ended(summary)
    return stream.getvalue()


def test_a_log_gets_a_line_every_few_seconds(make_sample_plan, sample_run):
    """Without a terminal: plain lines, no escape sequence, not one for each update."""
    statuses = [status(updates) for updates in range(20)]
    text = run_progress(io.StringIO(), statuses, make_sample_plan, sample_run.trials["asgd"].summary)
    lines = text.splitlines()

    assert "\x1b" not in text
    assert len(lines) == 2 + 20 / 5
    assert lines[1] == (
        "asgd: running, 0 of 600 updates, 98.7 updates/s, accuracy 93.21 %, 312 kB up, 6/6 nodes up, 12.3 s"
    )
    assert (
        lines[-1] == "✓ asgd completed: accuracy 97.50 % (best 97.50 %), 600 updates in 6.81 s, 24 MB up, 1.63 MB down"
    )


@pytest.mark.parametrize(("minutes", "lines_max"), [(1, 12), (10, 70), (60, 120), (480, 210)])
def test_the_longer_a_trial_takes_the_fewer_lines_a_minute_has_its_log(
    make_sample_plan, sample_run, minutes, lines_max
):
    """A night is read from its log as well as a minute; a new state is shown at once also after hours."""
    statuses = [status(updates) for updates in range(12 * minutes)]
    statuses.append(status(1, interrupted=True))
    text = run_progress(io.StringIO(), statuses, make_sample_plan, sample_run.trials["asgd"].summary, step_s=5.0)
    shown = [line for line in text.splitlines() if line.startswith("asgd: running")]

    assert lines_max / 2 < len(shown) <= lines_max
    assert "asgd: interrupted, stopping" in text
    assert [line_every_s(age_s) for age_s in (0.0, 59.9, 60.0, 7200.0)] == [5.0, 5.0, 10.0, 300.0]


def test_a_change_of_state_is_shown_at_once(make_sample_plan, sample_run):
    """Whoever presses Ctrl-C sees that it was heard."""
    statuses = [status(1), status(2), status(3, interrupted=True)]
    text = run_progress(io.StringIO(), statuses, make_sample_plan, sample_run.trials["asgd"].summary)

    assert "interrupted, stopping, 3 of 600 updates" in text
    assert "2 of 600" not in text


def test_what_an_interrupted_trial_waits_for_is_said(make_sample_plan, sample_run):
    """And how not to."""
    awaited = "nodes have 5 s to end; Ctrl-C again: at once"
    statuses = [status(1), status(3, interrupted=True, awaited=awaited)]
    text = run_progress(io.StringIO(), statuses, make_sample_plan, sample_run.trials["asgd"].summary)

    assert f"asgd: interrupted, {awaited}, 3 of 600 updates" in text


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_a_live_display_and_keeps_the_last_line(make_sample_plan, sample_run, monkeypatch, colour):
    """The bar moves and is wiped; NO_COLOR takes the colours away, and bold and dim with them."""
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    text = run_progress(Terminal(), [status(1), status(300)], make_sample_plan, sample_run.trials["asgd"].summary)

    assert "300 of 600 updates" in text
    assert "━" in text
    assert "\x1b[?25h" in text  # The cursor is given back.
    assert text.rstrip().endswith("1.63 MB down" + ("\x1b[0m" if colour else ""))
    assert ("\x1b[32m" in text) == colour
    assert bool(re.search(r"\x1b\[[0-9;]*m", text)) == colour


def test_a_trial_whose_books_do_not_close_gets_no_green_mark(make_sample_plan, sample_run):
    """Its numbers cannot be relied on, whatever was expected."""
    books = Accounting(closes=False, problems=("edge-0: 1 of its updates is missing",), total=Ledger(), lives=())
    summary = msgspec.structs.replace(sample_run.trials["asgd"].summary, accounting=books)
    text = run_progress(io.StringIO(), [], make_sample_plan, summary)

    assert "✗ asgd completed, accounting does not close: edge-0: 1 of its updates is missing: accuracy" in text


def test_an_expectation_not_met_is_named_when_the_trial_ends(make_sample_plan, sample_run):
    """Red without the reason would only worry."""
    summary = sample_run.trials["asgd"].summary
    missed = msgspec.structs.replace(
        summary, expectations=(msgspec.structs.replace(summary.expectations[0], met=False),)
    )
    failed = msgspec.structs.replace(summary, outcome="failed", reason="the server died")

    assert "✗ asgd completed (expected final_accuracy >= 90.00 %): " in run_progress(
        io.StringIO(), [], make_sample_plan, missed
    )
    assert "✗ asgd failed (the server died): " in run_progress(io.StringIO(), [], make_sample_plan, failed)


def test_the_results_are_plain_text_in_a_file(sample_run, monkeypatch):
    """Within as many columns as are asked for, but for the path, and without escape sequences."""
    monkeypatch.setenv("COLUMNS", "80")
    output = io.StringIO()
    show(results_brief(sample_run), Console(file=output, width=80))
    text = output.getvalue()

    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("run:")) <= 80
    assert f"run: {sample_run.path}" in text


def test_the_chart_shows_every_trial_and_nothing_without_points(sample_run):
    """Each curve has its own mark; colours only where they are wanted."""
    series = {name: trial.series for name, trial in sample_run.trials.items()}
    plain, coloured = headline_chart(series), headline_chart(series, colours=True)

    assert plain.count("x") > 10
    assert plain.count("o") > 10
    assert "\x1b" not in plain
    assert "\x1b" in coloured
    assert headline_chart({"asgd": Series.empty()}) == ""


def test_quantities_are_written_as_people_read_them():
    """Three significant digits with a unit, and a dash for what was not measured."""
    assert [bytes_text(value) for value in (0, 999, 12_680, 254e6, 999_999, None)] == [
        "0 B",
        "999 B",
        "12.7 kB",
        "254 MB",
        "1 MB",
        "–",
    ]
    assert [
        number_text(value) for value in (0, 0.1234, 12.34, 99.99999999999999, 1234.4, 0.1, 0.00005, 1e300, float("nan"))
    ] == [
        "0",
        "0.123",
        "12.3",
        "100",
        "1,234",
        "0.1",
        "5e-05",
        "1e+300",
        "not finite",
    ]
    assert [seconds_text(value) for value in (-0.42, -185.0, 0.42, 12.34, 185, 7620)] == [
        "-0.42 s",
        "-3 min 05 s",
        "0.42 s",
        "12.3 s",
        "3 min 05 s",
        "2 h 07 min",
    ]
    assert percent_text(0.9725) == "97.25 %"


@given(value=st.floats(1, 1e15))
def test_bytes_lose_at_most_half_a_per_cent_to_rounding(value):
    """Reading a text back gives the value to its three digits."""
    number, unit = bytes_text(value).split()
    factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]

    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_death_is_told_once_when_it_happens(make_sample_plan, sample_run, stream):
    """A line of its own in a log, even between two lines of progress; on a terminal, that it keeps, at the end."""
    texts = ("edge-0 died: killed by SIGKILL", "edge-1 missing: no sign of life")
    death, other = (Trouble(1.5, text) for text in texts)
    statuses = [status(1), status(2, troubles=(death,)), status(3, troubles=(death, other))]
    text = run_progress(stream(), statuses, make_sample_plan, sample_run.trials["asgd"].summary, step_s=0.001)

    assert [text.count(f"! asgd at 1.50 s: {each}") for each in texts] == [1, 1]


def test_what_happened_last_is_told_though_the_trial_is_over(make_sample_plan, sample_run):
    """Its end has a line of its own."""
    death = Trouble(1.5, "edge-0 died: killed by SIGKILL")
    statuses = [status(1), status(600, state="over", troubles=(death,))]
    lines = run_progress(io.StringIO(), statuses, make_sample_plan, sample_run.trials["asgd"].summary).splitlines()

    assert [line.split()[0] for line in lines] == ["adacomp:", "asgd:", "!", "✓"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_live_lines_fit_with_room_for_the_echo_of_ctrl_c(make_sample_plan, sample_run, width):
    """What does not fit is left out whole, the accuracy last of all."""
    stream = Terminal()
    with ProgressDisplay(stream, width=width) as progress:
        progress.trial_started(make_sample_plan())
        progress.update(status(300, interrupted=True))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    lines = [line.rstrip() for line in text.replace("\r", "\n").splitlines()]
    first = next(line for line in lines if line.startswith("asgd interrupted"))
    last = next(line for line in lines if "accuracy" in line)

    assert max(len(first), len(last)) <= width - len("^C")
    assert "…" not in text
    assert "300 of 600 updates" in text
    assert ("98.7 updates/s" in text) == (width >= 80)


def test_a_broken_standard_error_ends_the_display_not_the_run(make_sample_plan, sample_run):
    """A full disk behind `2>` takes nothing from the results."""

    class Full(Terminal):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    assert run_progress(Full(), [status(1), status(2)], make_sample_plan, sample_run.trials["asgd"].summary) == ""


def print_plain(run, width=80, *, verbose=True):
    """The results in a file of so many columns."""
    output = io.StringIO()
    show(results_brief(run, verbose=verbose), Console(file=output, width=width))
    return output.getvalue()


def test_all_notes_of_the_controller_are_in_the_json_and_shown_if_asked_for(
    tmp_path, make_sample_run, make_sample_entries
):
    """Each once, though both trials have it; a node's own are in neither."""
    notes = [f"Something else, {k}." for k in range(7)]
    extra = [(5.0, "controller", records.Note(text=text)) for text in notes]
    extra.append((5.0, "edge-1", records.Note(text="a node's own")))
    run = make_sample_run(tmp_path, {name: [*make_sample_entries(), *extra] for name in ("asgd", "adacomp")})

    assert [line for line in print_plain(run).splitlines() if line.startswith("note: ")] == [
        f"note: {text}" for text in notes
    ]
    assert msgspec.json.decode(run.summary_json())["notes"] == notes


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_table_keeps_its_first_column(tmp_path, make_sample_run, make_sample_entries, monkeypatch, width):
    """Less important columns go; nothing is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    name = "hardy2017-adacomp-strict"
    run = make_sample_run(tmp_path, {name: make_sample_entries()})
    write_report(run)
    _, *table = print_plain(run, width).split("test accuracy")[0].splitlines()

    assert any(line.startswith(f"{name}  ") for line in table)
    assert max(len(line) for line in table) <= width
    assert "accuracy" in table[0]
    assert ("staleness" in table[0]) == (width >= 90)


def test_a_measure_is_written_in_its_unit_beside_its_bound():
    """With all digits where rounding would hide the difference."""
    assert compared_texts("final_accuracy", 0.975, 0.9, Classification.measures) == ("97.50 %", "90.00 %")
    assert compared_texts("ingress_bytes", 1_200_000, 1e6) == ("1.2 MB", "1 MB")
    assert compared_texts("ingress_bytes", 1_000_001, 1e6) == ("1000001", "1000000")
    assert compared_texts("time_s", None, 60.0) == ("–", "60.0 s")
    assert compared_texts("final_loss", float("nan"), 0.5, Classification.measures) == ("not finite", "0.5")


def test_moments_are_dates_that_people_read():
    """In UTC in a report, short in a list."""
    assert utc_text("2026-11-02T13:56:01+00:00") == "2 November 2026, 13:56 UTC"
    assert re.fullmatch(r"2026-11-0[123] \d\d:\d\d", local_text("2026-11-02T13:56:01+00:00"))
    assert utc_text("") == local_text("") == ""
