"""What is left of a run beside a paper's page counts like the run, as long as the same is asked for."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from finished_runs import completed_run
from tiny_paper import tiny_paper, write_paper

from edgebed.core.errors import EdgebedError
from edgebed.journal.accounts.ledger import Accounting, Ledger
from edgebed.journal.verdict.fidelity import Fidelity
from edgebed.reports.studies.reproduction_page import reproduction_page, runs_sentences
from edgebed.reports.writing.markdown import to_markdown
from edgebed.running.results import Trial
from edgebed.running.run import without_report
from edgebed.studies.cells.cells import CellRun, PaperCells, Size
from edgebed.studies.cells.result_cache import EMPTY, FILE, PARTS, ResultCache, _line, read_runs
from edgebed.studies.cells.running_cells import CellRunner
from edgebed.studies.json_lines import read_lines, write_lines
from edgebed.studies.reproduction.analytic_rows import FILE as COMPUTED_FILE
from edgebed.studies.reproduction.analytic_rows import _row
from edgebed.studies.reproduction.reproduction import Reproduction, evaluate
from edgebed.studies.trial_result import PASSED, FinishedTrial, columns_of, evaluations_of

RUN = CellRun("adacomp", 0.5, 1)
SCENARIO = Path("scenarios/tiny/digits.yaml")
RESULTS = Path(__file__).parents[3] / "docs/results"
SHIPPED = sorted(RESULTS.glob(f"*/{FILE}"))
SHIPPED_VALUES = sorted(RESULTS.glob(f"*/{COMPUTED_FILE}"))


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PaperCells:
    """Those of the tiny paper, whose folder is the current one."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    return PaperCells(tiny_paper())


def said_of(cells: PaperCells, root: Path, file: Path) -> tuple[Reproduction, list[str]]:
    """What the runs in a folder and a file of kept ones say; the file is written."""
    said: list[str] = []
    kept = ResultCache(cells, file)
    result, curves = evaluate(cells, root, kept, (), Size(), said.append)
    kept.write()
    assert bool(curves["Accuracy over updates"]["adacomp"]) == any(each.cell == "adacomp" for each in result.cells)
    return result, said


def test_a_kept_run_says_what_the_run_said(cells: PaperCells, tmp_path: Path) -> None:
    """Values, verdicts, machine and time; the file stays as it was, wherever it is read."""
    folder = completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    first, _ = said_of(cells, tmp_path / "runs", file)
    text = file.read_bytes()
    folder.trial("adacomp").journal.unlink()

    assert said_of(cells, tmp_path / "runs", file) == (first, [])
    assert said_of(cells, tmp_path / "none", file) == (first, [])
    assert said_of(PaperCells(cells.paper), tmp_path / "none", file) == (first, [])
    assert file.read_bytes() == text
    (kept,) = first.cells
    assert kept.runs[0].run == "tiny-digits/0001"


def test_a_line_leaves_out_what_is_empty_and_one_that_has_it_says_the_same(cells: PaperCells, tmp_path: Path) -> None:
    """Half of a summary is not known of any one run; a sweep keeps hundreds."""
    completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    first, _ = said_of(cells, tmp_path / "runs", file)
    text = file.read_bytes()
    line = msgspec.json.decode(text)
    assert line["summary"]["updates"]
    assert not [name for name, value in line["summary"].items() if value is None]
    line["summary"] |= {
        name: empty for name, empty in EMPTY.items() if name not in {**line["summary"], **PARTS, "steps_min": 0}
    }
    file.write_bytes(msgspec.json.encode(line) + b"\n")

    assert said_of(cells, tmp_path / "none", file) == (first, [])
    assert file.read_bytes() == text
    assert "updates" not in EMPTY


def test_a_line_leaves_out_what_befell_no_update(cells: PaperCells, tmp_path: Path) -> None:
    """An accounting counts a dozen fates, of which most befall nobody, and a verdict rarely needs reasons."""
    completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    said_of(cells, tmp_path / "runs", file)
    line = msgspec.json.decode(file.read_bytes())
    befell = {"begun": 7, "applied": 4, "lost_in_flight": 1, "refused": {"unready": 2}}
    nobody = {"worker": "", "incarnation": 0, "rolled_back": 0, "unexplained": 0}
    line["summary"]["accounting"] = {"closes": False, "lives": [], "problems": [], "total": befell | nobody}
    line["summary"]["fidelity"] = {"verdict": "modelled", "reasons": [], "host": None}
    file.write_bytes(msgspec.json.encode(line) + b"\n")
    said_of(cells, tmp_path / "none", file)

    summary = msgspec.json.decode(file.read_bytes())["summary"]
    assert summary["accounting"] == {"closes": False, "total": befell}
    assert summary["fidelity"] == {"verdict": "modelled"}
    read = ResultCache(cells, file).trial(RUN).summary
    assert (read.accounting, read.fidelity) == (
        Accounting(closes=False, total=Ledger(**befell)), Fidelity(verdict="modelled")
    )  # fmt: skip


def test_a_line_leaves_out_columns_that_are_as_usual(cells: PaperCells, tmp_path: Path) -> None:
    """Only the last evaluation is final, and shards push nothing to a server; what is otherwise is written."""
    completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    first, _ = said_of(cells, tmp_path / "runs", file)
    line = msgspec.json.decode(file.read_bytes())
    columns, count = line["evaluations"], len(line["evaluations"]["t"])
    usual = {"final": [*[False] * (count - 1), True], "ingress_bytes": [0] * count, "bits": [0] * count}
    assert {name for name in usual if name not in columns} == {"final"}
    file.write_bytes(msgspec.json.encode(line | {"evaluations": usual | columns}) + b"\n")
    assert said_of(cells, tmp_path / "none", file) == (first, [])

    unusual = {"final": [True] * count, "ingress_bytes": usual["ingress_bytes"]}
    file.write_bytes(msgspec.json.encode(line | {"evaluations": columns | unusual}) + b"\n")
    said_of(cells, tmp_path / "none", file)
    again = msgspec.json.decode(file.read_bytes())["evaluations"]
    assert again == {name: column for name, column in (columns | unusual).items() if name != "ingress_bytes"}
    assert not ResultCache(cells, file).trial(RUN).evaluations.ingress_bytes.any()


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        (
            {"t": [0, 0.25, 0.5, 0.75], "version": [0, 50, 100, 150], "bits": [0, 64, 128, 192]},
            {"t": [0, 0.25], "version": [0, 50], "bits": [0, 64]},
        ),
        (
            {"t": [0, 0.246709, 0.496709, 0.746709], "version": [0, 50, 100, 120], "bits": [0, 60, 124, 188]},
            {"t": [0, 0.246709, 0.496709], "bits": [0, 60, 124]},
        ),
        ({"t": [0, 0.1, 0.2, 0.300001], "version": [0, 49, 101, 150], "bits": [0, 64, 128, 191]}, {}),
    ],
)
def test_a_line_leaves_out_what_goes_on_evenly(
    cells: PaperCells, tmp_path: Path, columns: dict[str, list[float]], kept: dict[str, list[float]]
) -> None:
    """Of times, versions and bits it has the beginning then; where they do not go on so to the end it has them all."""
    completed_run(cells, RUN, tmp_path / "runs", (0.1, 0.5, 0.8, 0.9))
    file = tmp_path / "kept.jsonl"
    said_of(cells, tmp_path / "runs", file)
    line = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode(line | {"evaluations": line["evaluations"] | columns}))
    said_of(cells, tmp_path / "none", file)

    written = msgspec.json.decode(file.read_bytes())["evaluations"]
    assert {name: written[name] for name in columns} == columns | kept
    found = ResultCache(cells, file).trial(RUN).evaluations
    assert {name: getattr(found, name).tolist() for name in columns} == columns


def test_time_that_another_device_took_is_no_time_of_a_core(cells: PaperCells, tmp_path: Path) -> None:
    """The run counts, its page names the device, and nobody takes its time for what such a run costs here."""
    folder = completed_run(cells, RUN, tmp_path / "runs")
    manifest = msgspec.json.decode(folder.manifest.read_bytes())
    folder.manifest.write_bytes(msgspec.json.encode(manifest | {"wall_s": 9.0, "engine": {"torch_device": "A GPU"}}))
    result, _ = said_of(cells, tmp_path / "runs", tmp_path / "kept.jsonl")
    (run,) = result.cells[0].runs
    page = " ".join(to_markdown(reproduction_page(cells.paper, result, {})).split())

    assert (run.torch_device, run.core_s) == ("A GPU", None)
    assert "of memory; torch computed on A GPU" in page
    assert "are of runs that another device than the CPU computed." in page
    assert msgspec.structs.replace(run, torch_device="").core_s == 9.0


def test_a_line_has_what_must_be_said_of_its_data_and_the_instructions_that_rounded_it(
    cells: PaperCells, tmp_path: Path
) -> None:
    """As the manifest has them; a line without either is read, and stays as it is."""
    folder = completed_run(cells, RUN, tmp_path / "runs")
    manifest = msgspec.json.decode(folder.manifest.read_bytes())
    noted = {"data": {"digits": "half of it"}, "host": manifest["host"] | {"instructions": "AVX2"}}
    folder.manifest.write_bytes(msgspec.json.encode(manifest | noted))
    file = tmp_path / "kept.jsonl"
    first, _ = said_of(cells, tmp_path / "runs", file)
    line = msgspec.json.decode(file.read_bytes())
    (run,) = first.cells[0].runs

    assert (run.data, run.instructions) == ({"digits": "half of it"}, "AVX2")
    assert (line["run"]["data"], line["run"]["instructions"]) == (run.data, run.instructions)
    assert said_of(cells, tmp_path / "none", file) == (first, [])

    without = {name: value for name, value in line["run"].items() if name not in ("data", "instructions")}
    text = msgspec.json.encode(line | {"run": without}, order="deterministic") + b"\n"
    file.write_bytes(text)
    result, _ = said_of(cells, tmp_path / "none", file)
    assert (result.cells[0].runs[0].data, result.cells[0].runs[0].instructions) == ({}, "")
    assert file.read_bytes() == text


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.parent.name)
def test_reading_and_writing_a_shipped_line_leaves_its_bytes_as_they_are(file: Path, tmp_path: Path) -> None:
    """Of whichever age it is: who draws a page anew changes nothing of what it was made from."""
    write_lines(tmp_path / FILE, map(_line, read_runs(file)))

    assert (tmp_path / FILE).read_bytes().splitlines() == file.read_bytes().splitlines()


@pytest.mark.parametrize("file", SHIPPED_VALUES, ids=lambda file: file.parent.name)
def test_reading_and_writing_a_shipped_value_says_the_same(file: Path, tmp_path: Path) -> None:
    """Of a row that needs no run; written again it stays as it is."""
    written = tmp_path / COMPUTED_FILE
    write_lines(written, read_lines(file, _row, ""))
    once = written.read_bytes()
    write_lines(written, read_lines(written, _row, ""))

    assert list(map(msgspec.json.decode, once.splitlines())) == list(
        map(msgspec.json.decode, file.read_bytes().splitlines())
    )
    assert written.read_bytes() == once


def test_a_newer_run_takes_the_place_of_the_kept_one(cells: PaperCells, tmp_path: Path) -> None:
    """Of the same cell, size and seed."""
    file = tmp_path / "kept.jsonl"
    completed_run(cells, RUN, tmp_path / "runs")
    said_of(cells, tmp_path / "runs", file)
    completed_run(cells, RUN, tmp_path / "runs")
    result, _ = said_of(cells, tmp_path / "runs", file)

    assert [run.run for cell in result.cells for run in cell.runs] == ["tiny-digits/0002"]
    assert len(file.read_text().splitlines()) == 1


def test_a_simulation_that_did_not_have_what_was_asked_for_is_told(cells: PaperCells, tmp_path: Path) -> None:
    """On the page of a reproduction, in its cell's row and below; a sweep's has the same words."""
    completed_run(cells, RUN, tmp_path / "runs")
    (cell,) = said_of(cells, tmp_path / "runs", tmp_path / "modelled.jsonl")[0].cells
    assert cell.runs[0].verdict == ""
    SCENARIO.write_text(SCENARIO.read_text() + "faults: [{ kill: edge-0, at: 1h }]\n")
    cells = PaperCells(cells.paper)
    completed_run(cells, RUN, tmp_path / "runs")
    result, _ = said_of(cells, tmp_path / "runs", tmp_path / "degraded.jsonl")
    told = "Conditions did not hold as asked in 1 run (see runs.jsonl): tiny-digits/0002."

    assert result.cells[0].runs[0].verdict == "degraded"
    assert [*runs_sentences(result.cells[0].runs)][1:] == [told]
    page = to_markdown(reproduction_page(cells.paper, result, {}))
    assert "| simulation, degraded |" in page
    assert told in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("question: Which", "question: Which one", True),
        ("asgd: { method: asgd }", "asgd: { method: comp-asgd }", True),
        ("adacomp: { method: adacomp }", "adacomp: { method: adacomp, expect: { updates: '>= 1' } }", True),
        ("adacomp: { method: adacomp }", "adacomp: { method: comp-asgd }", False),
        ("count: 3", "count: 4", False),
        ("updates: 1200", "updates: 1400", False),
    ],
)
def test_it_counts_while_the_scenario_asks_for_the_same(
    cells: PaperCells, tmp_path: Path, before: str, after: str, counts: bool
) -> None:
    """Other variants, the question and what is expected change nothing of a trial."""
    completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    said_of(cells, tmp_path / "runs", file)
    text = SCENARIO.read_text()
    assert before in text
    SCENARIO.write_text(text.replace(before, after))

    kept = ResultCache(PaperCells(cells.paper), file)
    assert (kept.find(RUN) is not None) == counts
    assert kept.find(RUN._replace(seed=2)) is None
    assert kept.find(RUN._replace(scale=0.25)) is None


@pytest.mark.slow
def test_it_counts_while_modules_of_ones_own_are_the_same(cells: PaperCells, tmp_path: Path) -> None:
    """Their texts, which no scenario has."""
    SCENARIO.write_text(SCENARIO.read_text().replace("model: small", "model: nets_of_keeping:tiny"))
    Path("nets_of_keeping.py").write_text(
        "import torch\n\n\ndef tiny():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))\n"
    )
    cells = PaperCells(cells.paper)
    completed_run(cells, RUN, tmp_path / "runs")
    file = tmp_path / "kept.jsonl"
    said_of(cells, tmp_path / "runs", file)
    assert ResultCache(cells, file).find(RUN)

    kept = msgspec.json.decode(file.read_bytes())
    assert list(kept["own_code"]) == ["nets_of_keeping.py"]
    file.write_bytes(msgspec.json.encode(kept | {"own_code": {"nets_of_keeping.py": "another"}}))
    assert ResultCache(cells, file).find(RUN) is None


def test_what_is_kept_is_not_run_again(cells: PaperCells, tmp_path: Path) -> None:
    """A sweep goes on elsewhere."""
    file, said = tmp_path / "kept.jsonl", []
    completed_run(cells, RUN, tmp_path / "runs")
    said_of(cells, tmp_path / "runs", file)
    elsewhere = tmp_path / "elsewhere"
    runner = CellRunner(
        cells=cells,
        report=without_report,
        root=elsewhere,
        cache=ResultCache(cells, file),
        resume=True,
        processes=1,
        progress=None,
        tell=said.append,
    )
    runner.run([RUN])

    assert said == ["1 of 1 run are there already"]
    assert not elsewhere.exists()


def test_evaluations_are_the_same_after_json(cells: PaperCells, tmp_path: Path) -> None:
    """Bit for bit, but for a loss, which has eight digits; one that is not finite is none."""
    folder = completed_run(cells, RUN, tmp_path / "runs")
    trial = FinishedTrial.of(Trial(folder.trial("adacomp")))
    measured = trial.evaluations.measured | {"loss": np.array([np.inf, 0.1 + 0.2])}
    wanted = dataclasses.replace(trial.evaluations, measured=measured)
    read = evaluations_of(msgspec.json.decode(msgspec.json.encode(columns_of(wanted))), wanted.measures)

    assert read.measures == wanted.measures
    for name in (*PASSED, "measured"):
        column, again = getattr(wanted, name), getattr(read, name)
        kept = measured | {"loss": np.array([np.nan, 0.3])} if name == "measured" else column
        np.testing.assert_equal(again, kept)
        assert name == "measured" or column.dtype == again.dtype


def with_exchanges(columns: dict[str, Any], kept: dict[str, Any]) -> bytes:
    """A line with these columns of exchanges."""
    return msgspec.json.encode(kept | {"summary": kept["summary"] | {"exchanges": columns, "steps_min": 1}})


def test_exchanges_are_written_as_columns(cells: PaperCells, tmp_path: Path) -> None:
    """Read they are what they were."""
    exchanges = [
        {"source": "edge-0", "target": "edge-1", "message": "activation", "count": 10, "bytes": 800},
        {"source": "edge-1", "target": "edge-0", "message": "gradient", "count": 9, "bytes": 720},
    ]
    file = tmp_path / "kept.jsonl"
    completed_run(cells, RUN, tmp_path / "runs")
    said_of(cells, tmp_path / "runs", file)
    line = msgspec.json.decode(file.read_bytes())
    columns = {key: [exchange[key] for exchange in exchanges] for key in exchanges[0]}
    file.write_bytes(with_exchanges(columns, line))
    said_of(cells, tmp_path / "none", file)

    assert msgspec.json.decode(file.read_bytes())["summary"]["exchanges"] == columns
    assert list(map(msgspec.structs.asdict, ResultCache(cells, file).trial(RUN).summary.shards.exchanges)) == exchanges


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda kept: b"nothing", "JSON is malformed"),
        (lambda kept: msgspec.json.encode(kept | {"counts": True}), "Object contains unknown field `counts`"),
        (lambda kept: msgspec.json.encode(kept | {"summary": 1}), r"Expected `object`, got `int`"),
        (
            lambda kept: msgspec.json.encode(kept | {"evaluations": {"t": [1]}}),
            "evaluations have the columns t, version",
        ),
        (
            lambda kept: msgspec.json.encode(kept | {"evaluations": kept["evaluations"] | {"t": ["soon", "late"]}}),
            "evaluations are numbers",
        ),
        (
            lambda kept: msgspec.json.encode(
                kept
                | {
                    "evaluations": {name: [*column, 0.9] for name, column in kept["evaluations"].items()}
                    | {"t": [0, None]}
                }
            ),
            "all of one length",
        ),
        *(
            (partial(with_exchanges, columns), problem)
            for columns, problem in (
                ({"source": 1}, "Expected `array`, got `int`"),
                ({"source": ["a"], "target": []}, "all of one length"),
                ({"source": ["a"]}, "missing required field"),
            )
        ),
    ],
)
def test_a_line_that_is_none_is_named(cells: PaperCells, tmp_path: Path, change, problem: str) -> None:
    """With what to do."""
    file = tmp_path / "kept.jsonl"
    completed_run(cells, RUN, tmp_path / "runs")
    said_of(cells, tmp_path / "runs", file)
    line = file.read_bytes()
    file.write_bytes(line + change(msgspec.json.decode(line)))

    with pytest.raises(EdgebedError, match=rf"kept.jsonl:2: not a stored run: .*{problem}.*; remove the line"):
        ResultCache(cells, file)
