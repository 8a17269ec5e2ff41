"""Recordings become traces: bytes are kept, over any window, and the same file gives the same trace."""

from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.link import RATE_MIN_BIT_S
from edgebed.scenario.mistakes.problems import Problems
from edgebed.scenario.traces.csv_file import read_trace
from edgebed.scenario.traces.mahimahi import read_mahimahi
from edgebed.scenario.traces.published import COLLECTIONS, convert, trace_text
from edgebed.scenario.traces.resampling import PACKET_BITS, US_A_SECOND, Packets, Pieces, resample

BUSY = st.lists(st.integers(0, 40), min_size=30, max_size=300).map(lambda gaps: tuple(accumulate(gaps, initial=1)))
"""Opportunities so close together that no second is an outage."""
STEPS_S = st.sampled_from([0.1, 0.25, 1.0, 2.5])


@given(times_ms=BUSY, step_s=STEPS_S)
def test_the_packets_of_a_period_all_pass_in_it(times_ms, step_s):
    """To the bit that rounding leaves of the last step: conversion conserves bytes."""
    rows = resample(Packets(times_ms), None, step_s, "t")

    rounds = rows.bounds_us[-1] // (times_ms[-1] * 1000)
    passed = sum(Fraction(rate * (end - begin), US_A_SECOND) for rate, (begin, end) in _rows(rows))
    assert abs(passed - rounds * len(times_ms) * PACKET_BITS) <= max(1, step_s)


@given(times_ms=BUSY, step_s=STEPS_S, ends=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
def test_over_any_window_a_trace_is_within_a_step_of_its_recording(times_ms, step_s, ends):
    """What passes from any moment to any other differs by no more than what passes in the steps at its ends."""
    rows = resample(Packets(times_ms), None, step_s, "t")
    begin_us, end_us = sorted(1000 * (end % (rows.bounds_us[-1] // 1000)) for end in ends)

    recorded = Packets(times_ms).bits([begin_us, end_us])[0]
    passed = sum(
        Fraction(rate * max(0, min(end, end_us) - max(begin, begin_us)), US_A_SECOND)
        for rate, (begin, end) in _rows(rows)
    )
    touched = [rate * (end - begin) / US_A_SECOND for rate, (begin, end) in _rows(rows) if begin <= end_us < end]
    touched += [rate * (end - begin) / US_A_SECOND for rate, (begin, end) in _rows(rows) if begin <= begin_us < end]
    assert abs(passed - recorded) <= sum(touched) + PACKET_BITS


def test_what_an_outage_carries_is_taken_off_what_follows(tmp_path):
    """A link's least rate is not nothing; the whole period has the packets of the file all the same."""
    times_ms = (*range(10, 1001, 10), *range(20_010, 21_001, 10))

    rows = resample(Packets(times_ms), None, 1.0, "t")

    assert set(rows.up_bit_s[1:20]) == {RATE_MIN_BIT_S}
    assert rows.up_bit_s[0] == 100 * PACKET_BITS
    assert rows.up_bit_s[20] == 100 * PACKET_BITS - 19 * RATE_MIN_BIT_S
    assert sum(rows.up_bit_s) == 200 * PACKET_BITS


def test_an_outage_at_the_end_is_taken_off_the_beginning():
    """A trace is repeated."""
    rows = resample(None, Pieces((0, 10**6, 4 * 10**6), (Fraction(10**6), Fraction(0))), 1.0, "t")

    assert rows.down_bit_s == (10**6 - 3 * RATE_MIN_BIT_S, *[RATE_MIN_BIT_S] * 3)


@given(
    gaps_us=st.lists(st.integers(1, 3 * 10**6), min_size=1, max_size=30),
    rates=st.lists(st.integers(10_000, 10**8), min_size=30, max_size=30),
    step_s=STEPS_S,
)
def test_rates_that_hold_for_any_time_keep_their_bytes(gaps_us, rates, step_s):
    """However short, as they were recorded; beyond the end of a recording that is too short nothing passes."""
    times_us = tuple(accumulate(gaps_us, initial=0))
    source = Pieces(times_us, tuple(map(Fraction, rates[: len(gaps_us)])))

    rows = resample(None, source, step_s, "t")

    if rows.bounds_us[-1] == times_us[-1]:
        recorded = sum(Fraction(rate * gap, US_A_SECOND) for rate, gap in zip(rates, gaps_us, strict=False))
        passed = sum(Fraction(rate * (end - begin), US_A_SECOND) for rate, (begin, end) in _rows(rows))
        assert abs(passed - recorded) <= max(1, step_s)


@given(up=BUSY, down=BUSY, step_s=STEPS_S)
def test_a_converted_trace_is_read_as_it_was_written(tmp_path_factory, up, down, step_s):
    """Round trip: the same rows as the link that is given mahimahi's files themselves, with what the file says."""
    folder = tmp_path_factory.mktemp("trace")
    for name, times_ms in (("x-LTE.up", up), ("x-LTE.down", down)):
        (folder / name).write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
    files = [folder / "x-LTE.up", folder / "x-LTE.down"]

    (converted,) = convert("mahimahi", files, step_s)
    (again,) = convert("mahimahi", files[::-1], step_s)
    (folder / "x.csv").write_text(converted.text)

    assert converted == again
    assert converted.name == "x-LTE"
    read, direct = read_trace(folder / "x.csv"), read_mahimahi(*files, step_s)
    assert (read.changes, read.period_s) == (direct.changes, direct.period_s)
    assert read.about == {
        "family": "LTE", "source": "https://github.com/ravinet/mahimahi", "licence": "GPL-3.0-or-later",
    }  # fmt: skip


def test_the_shorter_direction_is_repeated_until_the_longer_ends():
    """As mahimahi does with each; a packet at 0 counts in the first step."""
    rows = resample(Packets((0, 500, 1000)), Packets((1000, 3000)), 1.0, "t")

    assert rows.bounds_us == (0, 10**6, 2 * 10**6, 3 * 10**6)
    assert rows.up_bit_s == (3 * PACKET_BITS,) * 3
    assert sum(rows.down_bit_s) == 2 * PACKET_BITS


def test_a_file_of_a_millisecond_is_a_fixed_rate(tmp_path):
    """As mahimahi's manual has it: a packet each millisecond is 12 mbit."""
    (tmp_path / "12").write_text("1\n")

    trace = read_mahimahi(tmp_path / "12", None)

    assert [change.uplink_bit_s for change in trace.changes] == [12_000_000]
    assert (trace.period_s, trace.has_down) == (0.1, False)


def test_a_last_step_that_would_be_too_short_is_part_of_the_one_before():
    """Rows are at least 100 ms apart."""
    rows = resample(Packets((500, 1050)), None, 0.5, "t")

    assert rows.bounds_us == (0, 500_000, 1_050_000)


def test_two_columns_are_read_as_pensieve_reads_them(tmp_path):
    """A rate ends at its line's time; the first line is only where the recording begins."""
    (tmp_path / "norway_bus_1").write_text("5.0 99\n6.5 2\n8.0\t4.5\n")

    (converted,) = convert("pensieve", [tmp_path / "norway_bus_1"], 1.5)

    assert converted.text.splitlines()[-4:] == ["time_s,down_bit", "0,2000000", "1.5,4500000", "3,"]
    assert "# family: HSDPA" in converted.text


def test_the_5g_recordings_have_what_came_down(tmp_path):
    """Of several rows at a time the last counts; the uplink's figures are no capacity."""
    rows = ("34,1,9", "34,8000,9", "36,2000,9", "37,5,9")
    text = "Timestamp,DL_bitrate,UL_bitrate\n" + "".join(f"2019.11.25_15.34.{row}\n" for row in rows)
    (tmp_path / "B_x.csv").write_text(text)

    (converted,) = convert("5gdataset", [tmp_path / "B_x.csv"], 1.0)

    assert converted.text.splitlines()[-5:] == ["time_s,down_bit", "0,8000000", "1,8000000", "2,2000000", "3,"]
    assert (converted.name, "# family: 5G" in converted.text) == ("B_x", True)


@pytest.mark.parametrize(
    ("collection", "name", "text", "message"),
    [
        ("mahimahi", "x-LTE.up", "1\nx\n", "x-LTE.up:2: not a time: 'x'; a line has the time of one packet"),
        ("mahimahi", "x-LTE.up", "7\n5\n", "x-LTE.up:2: 5 is before the 7 of the line before; sort them"),
        ("mahimahi", "x-LTE.up", "0\n0\n", "x-LTE.up: no time above 0, at which the trace would be repeated"),
        ("mahimahi", "x-LTE.up", "20000000\n", "x-LTE.up in steps of 1s: 20,000 rows; a trace has up to 10,000. Take"),
        ("mahimahi", "x-LTE", "1\n", "x-LTE: its ending does not say the direction; this collection has .up and .d"),
        ("mahimahi", "x.up", "1\n", "x.up: its name is none of this collection's: LTE (LTE), 3G (UMTS), 3G (EVDO);"),
        ("pensieve", "norway_bus_1", "0 1\n1 2 3\n", "norway_bus_1:2: not seconds and Mbit/s: '1 2 3'; e.g. 1.5 4.03"),
        ("pensieve", "norway_bus_1", "1 1\n1 2\n", "norway_bus_1:2: 1 s is not after the line before; times increase"),
        ("pensieve", "norway_bus_1", "1 1\n", "norway_bus_1: 1 times; a recording has two or more"),
        ("5gdataset", "B_x.csv", "Time,DL\n1,2\n", "B_x.csv:1: no columns Timestamp and DL_bitrate, as G-NetTrack wr"),
        ("5gdataset", "B_x.csv", "Timestamp,DL_bitrate\nnow,2\n", "B_x.csv:2: not a time and kbit/s: 'now,2'; e.g."),
        ("mahi", "x-LTE.up", "1\n", "no collection 'mahi'; did you mean 'mahimahi'?"),
    ],
)
def test_a_file_that_is_not_as_published_is_refused_with_its_place(tmp_path, collection, name, text, message):
    """And with what it should be."""
    (tmp_path / name).write_text(text)

    with pytest.raises(Problems) as caught:
        list(convert(collection, [tmp_path / name], 1.0))
    assert message in str(caught.value)


@given(
    name=st.sampled_from(sorted(COLLECTIONS)),
    content=st.binary(max_size=80) | st.text("0123456789. \n,-_").map(str.encode),
)
def test_any_file_converts_or_has_problems(tmp_path_factory, name, content):
    """No other exception."""
    path = (
        tmp_path_factory.mktemp("any") / {"mahimahi": "x-LTE.up", "pensieve": "trace_1_x", "5gdataset": "B_x.csv"}[name]
    )
    path.write_bytes(content)

    try:
        told = [converted.text for converted in convert(name, [path], 1.0)]
    except Problems as problems:
        told = [str(problems)]
        path.write_text("time_s,up_bit\n0,8000\n1,\n")
    else:
        path.write_text(told[0])

    assert len(told) == 1
    assert path.name in told[0]
    assert read_trace(path).changes


def test_a_trace_of_one_direction_has_no_column_of_the_other():
    """Its text says the times of its rows exactly."""
    rows = resample(None, Pieces((0, 123_456, 500_000), (Fraction(10**6), Fraction(10**6))), 0.25, "t")

    assert trace_text(rows, {"family": "x"}) == "# family: x\ntime_s,down_bit\n0,1000000\n0.25,1000000\n0.5,\n"


def _rows(rows):
    """Each rate, upwards or else downwards, with its beginning and end in microseconds."""
    return list(zip(rows.up_bit_s or rows.down_bit_s, pairwise(rows.bounds_us), strict=True))
