"""Traces: what is read is what the rows say, and every mistake has its line and column."""

import os
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import chance
from edgebed.core.planned.link import LinkChange
from edgebed.emulation.conditions import LinkSchedule, LinkState
from edgebed.scenario.links import LinkSection, link_of
from edgebed.scenario.mistakes.problems import Problems
from edgebed.scenario.traces.cells import PROBLEMS_MAX
from edgebed.scenario.traces.csv_file import BYTES_MAX, read_trace
from edgebed.scenario.traces.mahimahi import read_mahimahi
from edgebed.scenario.traces.trace import ROWS_MAX

GOOD = """\
# recorded by hand
time_s,up_mbit,down_mbit
0,4.2,18

1,3.9,21.5
2.5,,
"""


@pytest.fixture
def trace_file(tmp_path, monkeypatch):
    """Writes a text as `t.csv` in the current folder and returns its path."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        Path("t.csv").write_text(text, encoding="utf-8")
        return Path("t.csv")

    return write


@pytest.fixture
def problems(trace_file):
    """What is wrong with a text; fails if nothing is."""

    def problems(text):
        with pytest.raises(Problems) as caught:
            read_trace(trace_file(text))
        return [problem.message for problem in caught.value.problems]

    return problems


def test_a_trace_is_its_rows_in_base_units(trace_file):
    """Remarks and empty lines are skipped; the last row is when the trace begins anew, whatever its rates."""
    trace = read_trace(trace_file(GOOD))

    assert trace.changes == (
        LinkChange(at_s=0.0, uplink_bit_s=4_200_000, downlink_bit_s=18_000_000),
        LinkChange(at_s=1.0, uplink_bit_s=3_900_000, downlink_bit_s=21_500_000),
    )
    assert trace.period_s == 2.5
    assert read_trace(trace_file(GOOD.replace("2.5,,", "2.5,1,1"))) == trace


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("time_ms,up_kbit,down_kbit", "1000,640,9", (1.0, 640_000, 9_000)),
        ("time_s,up_bit,down_gbit", "1,64000,1.5", (1.0, 64_000, 1_500_000_000)),
        (" time_s , up_mibit,down_mbit", " 1 , 1 ,\t2 ", (1.0, 2**20, 2_000_000)),
    ],
)
def test_the_header_says_what_the_columns_are_counted_in(trace_file, header, row, expected):
    """So that a recorded file needs no new cells; space around a cell means nothing."""
    first = row.split(",", 1)[1]
    (_, change) = read_trace(trace_file(f"{header}\n0,{first}\n{row}\n5000,,\n")).changes

    assert expected == (change.at_s, change.uplink_bit_s, change.downlink_bit_s)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "time_s,up_mbit,down_mbit",
            "time,up,down",
            "t.csv:2:1: units are missing: time_s,up_mbit,down_mbit",
        ),
        (
            "time_s,up_mbit,down_mbit\n",
            "",
            "t.csv:2:1: not the header of a trace; a trace has three columns",
        ),
        ("time_s,up_mbit", "time_s,up_mbps", "t.csv:2:8: column up_mbps: 'mbps' is no unit; write up_mbit"),
        ("down_mbit", "down_Kb", "t.csv:2:16: column down_Kb: 'Kb' is no unit; write down_kbit"),
        ("down_mbit", "down_MBps", "t.csv:2:16: column down_MBps: 'MBps' is no unit; write down_gbit or down_mbit or"),
        ("time_s", "time_sec", "t.csv:2:1: column time_sec: 'sec' is no unit; write time_s or time_ms"),
        ("down_mbit", "uplink_mbit", "t.csv:2:1: no column of down, e.g. time_s,up_mbit,down_mbit; unknown: 'uplink_m"),
        ("down_mbit", "up_kbit", "t.csv:2:16: a second column of up; a trace has one"),
        (GOOD, GOOD.replace(",", ";"), "t.csv:2:1: columns are separated by commas here; found ';' (Excel: save as"),
        (GOOD, GOOD.replace(",", "\t"), "t.csv:2:1: columns are separated by commas here; found '\\t' (Excel: save as"),
        ("time_s,", "sep=;\ntime_s;", "t.csv:2:1: columns are separated by commas here; found ';' (Excel: save as"),
        ("0,4.2,18", "0,4.2mbit,18", "t.csv:3:3: not a rate: '4.2mbit'; a plain number such as 0.25 (its unit is in"),
        ("0,4.2,18", "0,4.2,  -1", "t.csv:3:9: not a rate: '-1'; a plain number such as 0.25"),
        ("0,4.2,18", "0,4.2,", "t.csv:3:7: not a rate: ''; a plain number such as 0.25"),
        (
            "0,4.2,18",
            "0,4.2,0",
            "t.csv:3:7: 0bit is no rate of a link; from 8kbit to 10gbit; for an outage write 0.008",
        ),
        ("0,4.2,18", "0,4.2,20000", "t.csv:3:7: 20gbit is no rate of a link; from 8kbit to 10gbit"),
        ("0,4.2,18", "0,4.2", "t.csv:3:1: 2 cells; a row has 3: time_s, up_mbit, down_mbit"),
        ("0,4.2,18", "0;4.2;18", "t.csv:3:1: 1 cell; a row has 3: time_s, up_mbit, down_mbit"),
        ("0,4.2,18", "0.5,4.2,18", "t.csv:3:1: the first row is at 0.5; a trace begins at 0"),
        ("1,3.9", "0,3.9", "t.csv:5:1: 0 is not at least 100ms after the row before it; times increase"),
        ("1,3.9", "0.099,3.9", "t.csv:5:1: 0.099 is not at least 100ms after the row before it; times increase"),
        ("1,3.9", "nan,3.9", "t.csv:5:1: not a time: 'nan'; a plain number such as 0.25"),
        ("2.5,,", "2.5,,3", "t.csv:6:5: not a rate: ''; a plain number such as 0.25"),
        ("1,3.9,21.5\n2.5,,\n", "", "t.csv: 1 rows below the header; a trace has from 2 to 10,000"),
        (GOOD, "# nothing\n", "t.csv is empty; a trace begins with a header, e.g. time_s,up_mbit,down_mbit"),
    ],
)
def test_a_mistake_has_its_line_and_column_and_says_what_is_allowed(problems, old, new, message):
    """One change to a good trace."""
    assert old in GOOD

    assert message in "\n".join(problems(GOOD.replace(old, new)))


def test_nothing_is_told_of_a_file_that_is_no_trace(tmp_path):
    """A scenario of somebody else's may name any file that its reader can read; one without an end is not read."""
    secret, pipe = tmp_path / "secret", tmp_path / "pipe"
    secret.write_text("correct,horse\nbattery,staple\n")
    os.mkfifo(pipe)
    for path, message in (
        (secret, "not the header of a trace"),
        (pipe, "it is no file"),
        (Path("/dev/zero"), "no file"),
    ):
        for read in (read_trace, lambda path: read_mahimahi(path, None)):
            with pytest.raises(Problems) as caught:
                read(path)
            told = str(caught.value.problems)
            assert message in told or "not a time" in told
            assert not {"correct", "horse", "battery", "staple"} & set(re.findall(r"\w+", told))


def test_columns_are_found_by_their_names_and_cells_may_be_quoted(trace_file, problems):
    """As a spreadsheet writes them: in any order, with capitals, and with columns that are not the trace's."""
    quoted = GOOD.replace("time_s,up_mbit,down_mbit", '"time_s","up_mbit","down_mbit"').replace(
        "0,4.2,18", '"0","4.2",18'
    )
    other = "Down_Mbit,place,TIME_s,up_mbit\n18,here,0,4.2\n21.5,,1,3.9\n,,2.5,\n"

    assert read_trace(trace_file(quoted)) == read_trace(trace_file(other)) == read_trace(trace_file(GOOD))
    assert problems(quoted.replace('"4.2"', '"x"'))[0].startswith("t.csv:3:6: not a rate: 'x'")
    assert problems(other.replace("21.5", "21,5"))[0].startswith("t.csv:3:1: 5 cells; a row has 4: Down_Mbit, place")


@pytest.mark.parametrize("first", ["2", "nan", "2;"])
def test_a_bad_first_row_says_nothing_of_the_others(problems, first):
    """Each row is judged for itself."""
    (problem,) = problems(f"time_s,up_mbit,down_mbit\n{first},1,1\n3,1,1\n4,1,1\n5,,\n")

    assert problem.startswith("t.csv:2:1: ")


def test_a_time_that_is_wrong_is_reported_once(problems):
    """The rows after the one that goes back follow it well."""
    (problem,) = problems("time_s,up_mbit,down_mbit\n0,1,1\n30,1,1\n4,1,1\n5,1,1\n6,,\n")

    assert problem.startswith("t.csv:4:1: 4 is not at least 100ms after")


def test_a_mistake_in_every_row_is_reported_for_the_first_few(problems):
    """The rest would say nothing new."""
    rows = "".join(f"{k},1,1mbit\n" for k in range(100))

    found = problems(f"time_s,up_mbit,down_mbit\n{rows}")

    assert [f"t.csv:{line}:" for line in range(2, 2 + PROBLEMS_MAX)] == [text[: len("t.csv:2:")] for text in found]


def test_a_trace_has_up_to_ten_thousand_rows(trace_file, problems):
    """More of them would not fit into a plan of many nodes; larger files are not read at all."""
    text = "time_s,up_mbit,down_mbit\n" + "".join(f"{k},1,1\n" for k in range(ROWS_MAX))

    assert len(read_trace(trace_file(text)).changes) == ROWS_MAX - 1
    assert problems(f"{text}{ROWS_MAX},1,1\n") == ["t.csv: 10,001 rows below the header; a trace has from 2 to 10,000"]
    assert "larger than 1 MiB" in problems("#" * (BYTES_MAX + 1))[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read: No such file"), (b"time_s,\xff", "not UTF-8 text (byte 0xff); save it as UTF-8")],
)
def test_what_is_no_text_file_is_refused(trace_file, content, message):
    """With its name."""
    path = trace_file("")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)

    with pytest.raises(Problems, match=r"t\.csv") as caught:
        read_trace(path)
    assert message in str(caught.value)


@given(content=st.binary(max_size=60) | st.text("time_sup,ndwbk0123456789.\n -", max_size=120).map(str.encode))
def test_any_file_is_a_trace_or_has_problems(tmp_path_factory, content):
    """No other exception."""
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    path.write_bytes(content)

    try:
        read = read_trace(path).changes
    except Problems as problems:
        read = [problem for problem in problems.problems if str(path) in problem.message]

    assert read


@given(
    gaps=st.lists(st.integers(7, 640), min_size=1, max_size=20),
    rates=st.lists(st.tuples(st.integers(8, 10**6), st.integers(8, 10**6)), min_size=21, max_size=21),
    seed=st.integers(0, 1000),
    asked=st.lists(st.integers(0, 10**7), min_size=1, max_size=10),
)
def test_a_link_that_follows_a_trace_is_what_the_rows_say_at_every_time(tmp_path_factory, gaps, rates, seed, asked):
    """Of the row whose time has come, counted from the node's own place in the trace, again and again."""
    times_s = [Fraction(sum(gaps[:k]), 64) for k in range(len(gaps) + 1)]
    rows = [f"{float(at_s)},{up},{down}" for at_s, (up, down) in zip(times_s, rates, strict=False)]
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    path.write_text("\n".join(["time_s,up_kbit,down_kbit", *rows[:-1], f"{float(times_s[-1])},,"]), encoding="utf-8")
    section = LinkSection.model_validate({"link_trace": str(path), "latency": "40ms"})

    link = link_of(section, seed, "edge-0")
    assert link.offset_s == chance.uniform(seed, "trace", "edge-0") * link.period_s
    for number in asked:
        now_s = Fraction(number, 64)
        place_s = float(now_s + Fraction(link.offset_s)) % float(times_s[-1])
        up, down = rates[max(k for k, at_s in enumerate(times_s[:-1]) if at_s <= place_s)]
        conditions = LinkState(uplink_bit_s=1000 * up, downlink_bit_s=1000 * down, latency_s=0.04)
        assert LinkSchedule(link).at(float(now_s)) == conditions
