"""`edgebed traces`: what it shows, and what it converts a scenario finds by name."""

import json

import pytest
from command_line import command_line

from edgebed.scenario.load import load_scenario

SCENARIO = {
    "name": "s", "task": {"data": "digits", "model": "small"}, "method": "asgd", "stop": {"updates": 1},
    "fleet": {"edge": {"link_trace": "x-LTE"}},
}  # fmt: skip


@pytest.fixture
def edgebed(monkeypatch, capsys, tmp_path):
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("EDGEBED_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x-LTE.up").write_text("100\n1000\n")
    (tmp_path / "x-LTE.down").write_text("1000\n1000\n2000\n")

    return command_line(monkeypatch, capsys)


def test_what_is_there_and_where_more_is(edgebed, monkeypatch):
    """Each trace with its rates, licence and source; each collection with where to get it."""
    monkeypatch.setenv("COLUMNS", "400")  # a row on a line
    code, out, _ = edgebed("traces")

    assert code == 0
    (row,) = (line for line in out.splitlines() if line.startswith("lte-synthetic"))
    assert "LTE, synthetic" in row
    assert "2m" in row
    assert "https://github.com/uccmisl/5Gdataset" in out


def test_a_converted_trace_is_known_by_its_name(edgebed, monkeypatch):
    """Also as JSON; a scenario elsewhere finds it, a file of the same name beside the scenario goes before."""
    code, out, err = edgebed("traces", "--json", "--convert", "mahimahi", "x-LTE.up", "x-LTE.down")

    assert code == 0, err
    (told,) = json.loads(out)
    assert (told["name"], told["family"], told["licence"]) == ("x-LTE", "LTE", "GPL-3.0-or-later")
    assert told["up_bit_s"] == {"mean": 24000.0, "least": 24000, "most": 24000}
    assert told["down_bit_s"] == {"mean": 18000.0, "least": 12000, "most": 24000}
    trace = load_scenario(SCENARIO).trials["asgd"].fleet["edge"].link_trace
    assert (str(trace.path), trace.sha256) == (told["path"], told["sha256"])
    monkeypatch.setenv("COLUMNS", "400")
    assert "x-LTE " in edgebed("traces")[1]


def test_a_trace_goes_where_it_is_asked_to(edgebed, tmp_path):
    """And is shown from there, as any file."""
    assert edgebed("traces", "--convert", "mahimahi", "x-LTE.up", "--step", "500ms", "-o", "here")[0] == 0

    code, out, _ = edgebed("traces", "here/x-LTE.csv")

    assert code == 0
    assert out.splitlines()[2].startswith("x-LTE ")
    assert (tmp_path / "here/x-LTE.csv").read_text().endswith("time_s,up_bit\n0,24000\n0.5,24000\n1,\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--convert", "mahimahi"), "--convert mahimahi: which files? give them, e.g. traces/ATT-LTE-driving.up"),
        (("--convert", "mahi", "x-LTE.up"), "no collection 'mahi'; did you mean 'mahimahi'?"),
        (("--convert", "mahimahi", "y-LTE.up"), "y-LTE.up cannot be read: No such file or directory"),
        (("--convert", "mahimahi", "x-LTE.up", "--step", "1ms"), "--step: 1ms is below 100ms; faster changes cannot"),
        (("--convert", "mahimahi", "x-LTE.up", "-o", "x-LTE.up"), "x-LTE.up cannot be written: "),
        (("x-LTE.up",), "x-LTE.up:1:1: not the header of a trace; a trace has three columns"),
    ],
)
def test_a_mistake_is_one_line(edgebed, words, message):
    """That says what to do, and no traceback."""
    code, out, err = edgebed("traces", *words)

    assert (code in (2, 3), out) == (True, "")
    assert err.startswith(f"error: {message}")
