"""What a program says is kept and searched the same, however its bytes are cut."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.runtimes.programs.output import LINE_BYTES_MAX, MEASURES_S_MAX, Line, OutputLog, OutputReader

KEPT = 20
MEASURES = {"loss": r"loss=([-+.\w]+)", "step": r"step (\d+)", "accuracy": ""}
PIECES = (
    b"loss=0.5", b"loss=nan", b"loss=x", b" step 7", b"ready\n", b"\n", b"\r", b"\r\n", b'{"accuracy": 0.25}\n',
    b'{"accuracy": NaN}', b'{"accuracy": "0.5", "a": 1}', b"{", b"\xff\xfe", "µ".encode(), b"x" * 40, b"",
)  # fmt: skip
OUTPUTS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=30), max_size=20).map(b"".join)


def chunks(data, cuts):
    """The same bytes, in pieces."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[one:other] for one, other in pairwise(places)]


def read_all(pieces, measures=MEASURES, now=lambda: 0.0):
    """Every line that was found, and the reader."""
    reader = OutputReader(measures, {"up": "^ready$"}, now)
    return [line for piece in pieces for line in reader.read(piece)] + reader.close(), reader


def kept(path, pieces):
    """What the log has of an output at its end."""
    log = OutputLog(path, KEPT)
    for piece in pieces:
        log.write(piece)
    log.close()
    assert list(path.parent.iterdir()) == [path]
    return path.read_bytes(), log.left_out_bytes


@given(OUTPUTS, st.lists(st.integers(0, 10_000), max_size=30))
def test_what_is_found_does_not_depend_on_how_an_output_is_cut(data, cuts):
    """Neither measures nor lines waited for, nor what is counted."""
    whole, one = read_all([data])
    parts, other = read_all(chunks(data, cuts))

    assert parts == whole
    assert (other.dropped, other.unusable) == (one.dropped, one.unusable)


@given(st.binary(max_size=5 * KEPT), st.lists(st.integers(0, 1000), max_size=10))
def test_a_log_has_the_beginning_and_the_end_however_they_come(tmp_path_factory, data, cuts):
    """Between them it says how much is missing; what fits is there as it was."""
    text, left_out = kept(tmp_path_factory.mktemp("log") / "home-0.log", chunks(data, cuts))

    if len(data) <= 2 * KEPT:
        assert (text, left_out) == (data, 0)
    else:
        between = f"\n[edgebed: {len(data) - 2 * KEPT} bytes were left out here]\n".encode()
        assert text == data[:KEPT] + between + data[-KEPT:]
        assert left_out == len(data) - 2 * KEPT


def test_measures_are_found_by_expressions_and_in_json():
    """Those of one line belong together; a progress bar's lines end with a carriage return."""
    output = b'step 1 loss=2.5e-1\rstep 2\r\nready\n{"accuracy": 0.5, "other": 3}\nstep 3'

    assert read_all([output])[0] == [
        Line({"loss": 0.25, "step": 1.0}),
        Line({"step": 2.0}),
        Line({}, ("up",)),
        Line({"accuracy": 0.5}),
        Line({"step": 3.0}),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"loss=nan", b"loss=-inf", b"loss=five", b"loss=1e999", b'{"accuracy": NaN}', b'{"accuracy": "high"}',
        b'{"accuracy": null}', b'{"accuracy": true}', b'{"accuracy": [1]}', b'{"accuracy": 1' + 400 * b"0" + b"}",
    ],
)  # fmt: skip
def test_a_value_that_is_no_finite_number_is_counted(line):
    """It is no measure."""
    found, reader = read_all([line])

    assert (found, reader.unusable) == ([], 1)


@pytest.mark.parametrize("line", [b"{", b"{" * 60_000, b'{"accuracy": 1' + 5_000 * b"0" + b"}", b"{'accuracy': 1}"])
def test_a_line_that_only_looks_like_json_is_none(line):
    """Nor does it stop anything."""
    found, reader = read_all([line + b"\nloss=1\n"])

    assert (found, reader.unusable) == ([Line({"loss": 1.0})], 0)


def test_the_rest_of_a_long_line_is_not_searched():
    """Nor kept in memory, however long it is."""
    reader = OutputReader(MEASURES, {}, lambda: 0.0)
    short = b"x" * (LINE_BYTES_MAX - len("loss=12")) + b"loss=12"

    assert reader.read(short + b"345\n") == [Line({"loss": 12.0})]
    for _ in range(100):
        assert reader.read(b"x" * LINE_BYTES_MAX + b"loss=3") == []
    assert len(reader._line) == LINE_BYTES_MAX
    assert reader.read(b"\nloss=4\n") == [Line({"loss": 4.0})]


def test_measures_beyond_a_thousand_a_second_are_counted():
    """The next second has room again; those of a line are taken or dropped together."""
    now = [0.5]
    lines = [json.dumps({"loss": k, "step": k}).encode() + b"\n" for k in range(600)]
    reader = OutputReader({"loss": "", "step": ""}, {}, lambda: now[0])
    found = reader.read(b"".join(lines))

    assert len(found) == MEASURES_S_MAX // 2
    assert reader.dropped == 200
    now[0] = 1.0
    assert reader.read(lines[7]) == [Line({"loss": 7.0, "step": 7.0})]


def test_what_a_measure_came_to_is_taken_however_fast_it_came():
    """At the end, unless a later one was taken."""
    reader = OutputReader(MEASURES, {}, lambda: 0.0)
    reader.read(b"".join(b"loss=%d\n" % k for k in range(MEASURES_S_MAX + 500)))

    assert reader.close() == [Line({"loss": MEASURES_S_MAX + 499.0})]
    assert reader.dropped == 499
    now = iter([0.0] * (MEASURES_S_MAX + 500) + [1.0])
    other = OutputReader(MEASURES, {}, lambda: next(now))
    other.read(b"".join(b"loss=%d\n" % k for k in range(MEASURES_S_MAX + 501)))
    assert (other.close(), other.dropped) == ([], 500)


def test_a_log_that_goes_on_is_read_as_it_is(tmp_path):
    """Its beginning is there at once."""
    log = OutputLog(tmp_path / "home-0.log", KEPT)
    log.write(b"starting\n")

    assert (tmp_path / "home-0.log").read_bytes() == b"starting\n"
    log.close()
