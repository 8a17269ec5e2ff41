"""Reproducing a paper for real: a sweep that is broken off, gone on with, and read again."""

import contextlib
import io
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_paper import write_paper
from warm_command import WarmCommand

import edgebed
from edgebed.cli import main as cli
from edgebed.core import records
from edgebed.journal.journal import journal_hash, read_journal
from edgebed.journal.run_folder import RunFolder, runs_of
from edgebed.roles.control.controller import Controller
from edgebed.running.run import without_report
from edgebed.studies.cells.cells import CellRun, PaperCells
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import state_of
from edgebed.studies.cells.running_cells import CellRunner
from edgebed.studies.papers.registry import find_paper

DEADLINE_S = 120.0
WORDS = ("reproduce", "papers_of_mine:PAPER", "--processes", "1", "--json")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a tiny paper, which is the current one."""
    write_paper(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "papers_of_mine", raising=False)
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    return tmp_path


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """A command to its end, in this process, which has imported everything already."""
    out, err = io.StringIO(), io.StringIO()
    command = ["edgebed", *words]
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as left:
            cli.main()
    return subprocess.CompletedProcess(command, int(left.value.code or 0), out.getvalue(), err.getvalue())


def reproduced(*words: str) -> dict[str, Any]:
    """What a sweep that ended well says."""
    done = call(*WORDS, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By name."""
    return {row["row"]: row for table in answer["reproduction"]["tables"].values() for row in table}


def folders() -> list[RunFolder]:
    """The runs there are."""
    return runs_of(Path("runs"), "tiny-digits")


def versions(run: RunFolder, trial: str) -> list[int]:
    """Of the updates in a trial's journal, which need not be complete."""
    journal = run.trial(trial).journal
    entries = read_journal(journal) if journal.exists() else ()
    return [record.version for _, _, record in entries if isinstance(record, records.Update)]


def begin_and_break_off(number: int, how: signal.Signals) -> tuple[int, str]:
    """Begin a sweep, and end it by a signal in the middle of the run of this number; exit code and standard error."""
    process = WarmCommand(*WORDS)
    latest_s = time.monotonic() + DEADLINE_S
    while len(folders()) < number or max(versions(folders()[-1], begun(folders()[-1])), default=0) < 60:
        assert process.poll() is None, "it ended before it could be broken off"
        assert time.monotonic() < latest_s
        time.sleep(0.01)
    process.send_signal(how)
    _, said = process.communicate(timeout=DEADLINE_S)
    return process.wait(), said


def begun(run: RunFolder) -> str:
    """The only trial of a run; empty while the manifest is not there yet."""
    trials = run.read_manifest().get("trials", [""])
    assert len(trials) == 1
    return str(trials[0])


@pytest.mark.usefixtures("undrawn")
def test_a_killed_sweep_goes_on_where_it_was(place: Path) -> None:
    """What had completed is not run again, what was under way goes on, and the rest follows."""
    begin_and_break_off(2, signal.SIGKILL)
    kept = journal_hash(folders()[0].trial("asgd").journal)
    answer = reproduced("--resume")

    assert [(begun(run), run.read_manifest()["seed"]) for run in folders()] == [
        ("asgd", 1), ("adacomp", 1), ("asgd", 2), ("adacomp", 2)
    ]  # fmt: skip
    assert journal_hash(folders()[0].trial("asgd").journal) == kept
    assert [bool(run.read_manifest().get("resumed")) for run in folders()] == [False, True, False, False]
    found = rows(answer)
    assert found["asgd"]["values"].keys() == {"1", "2"}
    assert found["asgd"]["finding"] == "reproduced"
    assert found["perfect"]["finding"] == "so far inside"  # half of the updates, after which it may yet be reached
    asgd, adacomp = (edgebed.load(f"tiny-digits/{number}").trials for number in (3, 4))
    difference = 100 * (adacomp["adacomp"].series.evaluations.final_value - asgd["asgd"].series.evaluations.final_value)
    assert found["difference"]["values"]["2"] == pytest.approx(difference)
    assert adacomp["adacomp"].summary.updates == 600

    again = call(*WORDS, "--resume")
    assert "4 of 4 runs are there already" in again.stderr
    assert json.loads(again.stdout)["reproduction"] == answer["reproduction"]
    assert len(folders()) == 4

    shutil.rmtree(place / "runs/tiny-digits")
    without = call(*WORDS, "--resume")
    assert "4 of 4 runs are there already" in without.stderr
    assert json.loads(without.stdout)["reproduction"] == answer["reproduction"]
    assert folders() == []


def test_an_interrupted_sweep_says_how_to_go_on(place: Path) -> None:
    """With the exit code of an interruption, and nothing left running."""
    code, said = begin_and_break_off(1, signal.SIGINT)

    assert code == 130
    assert "interrupted; to resume: edgebed reproduce papers_of_mine:PAPER --processes 1 --json --resume" in said
    assert not any(run.is_running() for run in folders())


def test_an_interruption_at_the_end_of_a_run_ends_the_sweep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though that run has nothing left to be interrupted in."""

    def interrupted_end(self: Controller, *arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return stop(self, *arguments)

    stop = Controller._end
    monkeypatch.setattr(Controller, "_end", interrupted_end)
    cells = PaperCells(find_paper("papers_of_mine:PAPER"))
    kept = ResultCache(cells, place / "kept")
    runner = CellRunner(
        cells=cells,
        report=without_report,
        root=Path("runs"),
        cache=kept,
        resume=False,
        processes=1,
        progress=None,
        tell=lambda _: None,
    )
    with pytest.raises(KeyboardInterrupt):
        runner.run([CellRun("asgd", 0.1, 1), CellRun("asgd", 0.1, 2)])
    assert [state_of(run, "asgd") for run in folders()] == ["completed"]


def test_a_row_alone_keeps_the_others_on_the_page(place: Path) -> None:
    """The page has every row: those of this command, those of earlier ones, and those that were never run."""
    assert rows(reproduced("--row", "push", "--scale", "0.2", "--seeds", "1"))["push"]["updates"] == [240, 240]
    page = (place / "runs/reproductions/tiny.md").read_text()
    assert page.count("| not run |") == 2 + 1  # both of table 1, and the other of table 2 at its own size
    assert "240 updates (20 %), 1 seed" in page

    call(*WORDS, "--row", "asgd", "--scale", "0.2", "--seeds", "1", "--output", str(place / "elsewhere"))
    answer = reproduced("--no-run", "--scale", "0.2", "--seeds", "1", "--output", str(place / "elsewhere"))
    assert {name: row["finding"] or "–" for name, row in rows(answer).items() if row["values"]}.keys() == {
        "asgd", "difference", "push", "perfect"
    }  # fmt: skip
    assert answer["page"] == str(place / "elsewhere/tiny.html")
    assert (place / "elsewhere/tiny/accuracy-over-updates.svg").read_text().startswith("<svg")
    text = Path(answer["page"]).with_suffix(".md").read_text()
    assert str(place) not in text
    assert "| not run |" not in text
    assert len(folders()) == 2


@pytest.mark.usefixtures("undrawn")
def test_a_run_by_hand_counts(place: Path) -> None:
    """The command that the page gives for a cell makes what a sweep looks for, also if its question is reworded."""
    command = next(
        cell["command"] for cell in json.loads(call(*WORDS, "--list").stdout)[0]["cells"] if cell["cell"] == "adacomp"
    )
    assert command == (
        "edgebed run scenarios/tiny/digits.yaml --runtime simulation --variant adacomp "
        "--set seed=1 --set stop.updates=600 --set 'evaluation.every=60 updates'"
    )
    edgebed.run(
        "scenarios/tiny/digits.yaml", runtime="simulation", variants=["adacomp"], processes=1,
        set=["seed=1", "stop.updates=600", "evaluation.every=60 updates", "question=Reworded?"],
    )  # fmt: skip
    assert rows(reproduced("--no-run"))["push"]["values"].keys() == {"1"}

    edgebed.run(
        "scenarios/tiny/digits.yaml", runtime="simulation", variants=["adacomp"], processes=1,
        set=["seed=2", "stop.updates=600", "evaluation.every=75 updates"],
    )  # fmt: skip
    assert rows(reproduced("--no-run"))["push"]["values"].keys() == {"1"}


@pytest.mark.usefixtures("undrawn")
def test_a_cell_that_fails_does_not_end_the_sweep(place: Path) -> None:
    """It is reported, the others are measured, and the exit code says that something is missing."""
    scenario = place / "scenarios/tiny/digits.yaml"
    stuck = "adacomp: { method: adacomp, faults: [{ kill: server, at_update: 20 }] }"
    scenario.write_text(scenario.read_text().replace("adacomp: { method: adacomp }", stuck))
    done = call(*WORDS, "--seeds", "1")
    answer = json.loads(done.stdout)

    assert done.returncode == 3
    (failure,) = answer["failed"]
    assert failure.startswith("adacomp, seed 1: tiny-digits/0002 failed: ")
    assert f"error: {failure}" in done.stderr
    assert rows(answer)["asgd"]["values"].keys() == {"1"}
    assert rows(answer)["push"]["finding"] is None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("reproduce", "nobody"), "there is no paper 'nobody'"),
        (("reproduce", "--row", "x"), "--row x: of which paper?"),
        (("reproduce", "papers_of_mine:PAPER", "--list", "--row", "x"), "tiny has no row 'x'"),
        (("reproduce", "papers_of_mine:PAPER", "--row", "x"), "tiny has no row 'x'"),
        (("reproduce", "papers_of_mine:PAPER", "--scale", "0"), "--scale: 0 is no share"),
        (("reproduce", "papers_of_mine:PAPER", "--budget", "3"), "--budget: "),
        (("reproduce", "--budget", "3h", "--row", "x"), "--row x: of which paper?"),
        (("reproduce", "papers_of_mine:PAPER", "--budget", "3h", "--no-run"), "--budget, --no-run: "),
        (("reproduce", "papers_of_mine:PAPER", "--output", "papers_of_mine.py"), "--output: papers_of_mine.py is not"),
    ],
)
def test_mistakes_are_found_before_anything_runs(place: Path, words: tuple[str, ...], problem: str) -> None:
    """With the user's exit code, in one line."""
    done = call(*words)

    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {problem}")
    assert folders() == []


def test_a_page_that_cannot_be_written_costs_no_training(place: Path) -> None:
    """Its folder is made before anything runs."""
    (place / "file").touch()
    done = call(*WORDS, "--output", "file/pages")

    assert done.returncode == 3
    assert done.stderr.startswith("error: file/pages/tiny: cannot be made: ")
    assert folders() == []


def test_a_list_is_of_the_chosen_rows(place: Path) -> None:
    """With the cells that they need."""
    (listed,) = json.loads(call(*WORDS, "--list", "--row", "push").stdout)

    assert [[row["row"] for row in table] for table in listed["tables"].values()] == [["push"]]
    assert [cell["cell"] for cell in listed["cells"]] == ["adacomp"]


@pytest.mark.usefixtures("undrawn")
def test_a_budget_is_spent_on_what_decides_most(place: Path) -> None:
    """What is there counts and says what the rest costs; what does not fit is not begun."""
    reproduced("--row", "asgd", "--seeds", "1")
    (made,) = folders()
    listed = json.loads(call(*WORDS, "--list", "--budget", "1h").stdout)
    assert [(each["run"]["cell"], each["run"]["seed"], each["worth"]) for each in listed] == [
        ("adacomp", 1, 1 / 3 + 1 / 2), ("adacomp", 2, 1 / 3 + 1 / 2), ("asgd", 2, 1 + 1 / 3)
    ]  # fmt: skip
    took_s = made.read_manifest()["wall_s"]
    assert [each["cost_s"] for each in listed] == pytest.approx([took_s / 2, took_s / 2, took_s])

    shown = call(*WORDS[:-1], "--list", "--budget", f"{1500 * took_s:.0f}ms")
    assert [line.split()[-1] == "yes" for line in shown.stdout.splitlines() if "papers_of_mine" in line] == [
        True, True, False
    ]  # fmt: skip
    assert reproduced("--budget", "0s")["failed"] == []
    assert [run.path for run in folders()] == [made.path]
    answer = reproduced("--budget", "1h", "--jobs", "2")
    assert [begun(run) for run in folders()] == ["asgd", "adacomp", "adacomp", "asgd"]
    assert rows(answer)["difference"]["values"].keys() == {"1", "2"}


@pytest.mark.usefixtures("undrawn")
def test_a_resumed_run_has_the_chosen_variants_alone(place: Path) -> None:
    """The other variants of its scenario do not follow."""
    begin_and_break_off(1, signal.SIGINT)
    run = edgebed.resume(folders()[0].path, processes=1)

    assert list(run.trials) == ["asgd"]
    assert run.manifest["trials"] == ["asgd"]
    assert run.exit_code == 0
