"""A compression, an aggregation, local work and a fault of one's own, by import path, in every runtime."""

import hashlib
from pathlib import Path

import pytest
from custom_parts import layerwise_scenario_of, own_package, scenario_of
from quick_runs import run as run_quickly

import edgebed

RUNTIMES = [
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.mark.simulation
def test_the_same_parts_of_ones_own_leave_the_same_journal(tmp_path: Path) -> None:
    """Byte for byte that of the built-in parts, which they are copies of; the manifest has their fingerprints."""
    package, journals = own_package(tmp_path), {}
    for name in ("", package):
        run = run_quickly(scenario_of(tmp_path, name), runtime="simulation", runs_dir=tmp_path / f"runs{name}")
        assert run.exit_code == 0
        journals[name] = hashlib.sha256((run.path / "trial/events.jsonl").read_bytes()).hexdigest()
        own_code = edgebed.load("own", runs_dir=tmp_path / f"runs{name}").path / "manifest.json"
        assert (f"{package}/sparse.py" in own_code.read_text(encoding="utf-8")) == bool(name)

    assert journals[""] == journals[package]


@pytest.mark.simulation
def test_shards_follow_parts_of_ones_own_to_the_same_journal(tmp_path: Path) -> None:
    """A rule, an exchange and an optimizer."""
    package, journals = own_package(tmp_path), set()
    for name in ("", package):
        path = layerwise_scenario_of(tmp_path, name)
        run = run_quickly(path, runtime="simulation", runs_dir=tmp_path / f"runs{name}")
        assert run.exit_code == 0
        journals.add((run.path / "trial/events.jsonl").read_bytes())

    assert len(journals) == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_parts_of_ones_own_train_where_nodes_are_processes(runtime: str, tmp_path: Path) -> None:
    """The server's as well, which has numpy alone in a container; the fault happens, and the books close."""
    path = scenario_of(tmp_path, own_package(tmp_path))
    run = run_quickly(path, runtime=runtime, runs_dir=tmp_path / "runs")

    assert run.exit_code == 0
    assert run.trials["trial"].summary.faults == 2


@pytest.mark.process
def test_a_part_that_fails_ends_its_nodes_with_one_line(tmp_path: Path) -> None:
    """Part, step and the line in the user's file; no frame of edgebed's."""
    package = own_package(tmp_path)
    sparse = tmp_path / package / "sparse.py"
    text = sparse.read_text(encoding="utf-8")
    begin = "        whole = vector if memory is None else vector + memory\n"
    assert begin in text
    sparse.write_text(text.replace(begin, f"        assert context.step < 5, 'too far'\n{begin}"), encoding="utf-8")
    line = 1 + text[: text.index(begin)].count("\n")
    run = run_quickly(scenario_of(tmp_path, package), runtime="process", runs_dir=tmp_path / "runs")
    log = (run.path / "trial/logs/edge-1.log").read_text(encoding="utf-8")

    assert run.exit_code == 3
    expected = f"edge-1, step 5: compression {package}.sparse:Compression failed in compress: AssertionError: too far"
    assert log.strip().splitlines()[-1] == f"{expected} ({sparse}:{line})"
    assert "Traceback" not in log
    assert "too far" in run.trials["trial"].summary.reason
