"""`edgebed calibrate`, as far as it goes without measuring."""

import os
import subprocess
import sys

import msgspec
import pytest
from command_line import command_line

from edgebed.emulation.calibration import Bulk, Calibration, HostFacts, PlaceMeasurements, load
from edgebed.studies.host import calibrate

HOST = HostFacts(kernel="Linux 6.1.0", machine="x86_64", cpu="a processor", cores=2, memory_bytes=8 * 2**30)
FOUND = PlaceMeasurements(
    when="2026-11-20T13:56:00+00:00",
    bulk=(Bulk(rate_bit_s=10**7, direction="up", messages=3, goodput_bit_s=9.56e6),),
)


@pytest.fixture
def edgebed(monkeypatch, capsys, tmp_path):
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("EDGEBED_CALIBRATION", str(tmp_path / "kept.json"))

    return command_line(monkeypatch, capsys)


@pytest.fixture
def measured(monkeypatch):
    """What every calibration finds."""
    found = Calibration(host=HOST, places={"model": FOUND})
    monkeypatch.setattr(calibrate, "calibrate", lambda *_: found)
    return found


def test_the_table_is_printed_and_the_results_are_kept(edgebed, measured, tmp_path):
    """Where `plan` looks for them."""
    code, out, err = edgebed("calibrate")

    assert code == 0
    assert "10mbit" in out
    assert "9.56" in out
    assert f"stored in {tmp_path / 'kept.json'}" in err
    assert load(tmp_path / "kept.json") == measured


def test_places_that_were_measured_before_are_kept_on_the_same_host(edgebed, measured, tmp_path):
    """A calibration of one runtime does not throw away that of the other; one of another kernel is worth nothing."""
    path = tmp_path / "kept.json"
    before = Calibration(host=HOST, places={"docker": FOUND})

    path.write_bytes(msgspec.json.encode(before))
    edgebed("calibrate")
    assert set(load(path).places) == {"docker", "model"}

    other = msgspec.structs.replace(before, host=msgspec.structs.replace(HOST, kernel="Linux 5.10.0"))
    path.write_bytes(msgspec.json.encode(other))
    edgebed("calibrate")
    assert set(load(path).places) == {"model"}


def test_a_quick_look_is_not_kept(edgebed, measured, tmp_path):
    """It would replace a thorough one."""
    code, out, _ = edgebed("calibrate", "--quick", "--json")

    assert code == 0
    assert msgspec.json.decode(out, type=Calibration) == measured
    assert not (tmp_path / "kept.json").exists()


def test_the_results_go_where_they_are_wanted(edgebed, measured, tmp_path):
    """And then nowhere else."""
    code, _, _ = edgebed("calibrate", "--output", tmp_path / "mine.json")

    assert code == 0
    assert load(tmp_path / "mine.json") == measured
    assert not (tmp_path / "kept.json").exists()


def test_a_place_for_the_results_that_is_none_is_refused_before_measuring(edgebed, tmp_path):
    """Not after a quarter of an hour."""
    code, _, err = edgebed("calibrate", "--output", tmp_path / "nowhere" / "mine.json")

    assert code == 2
    assert "--output: there is no folder" in err


@pytest.mark.slow
def test_where_nothing_can_be_measured_it_says_why():
    """Here: no engine."""
    done = subprocess.run(
        [sys.executable, "-m", "edgebed", "calibrate", "--runtime", "docker"],
        env=os.environ | {"DOCKER_HOST": "unix:///nowhere/docker.sock"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing to calibrate: docker: no container engine answers" in done.stderr
    assert "Traceback" not in done.stderr
