"""Runs to live with: what lists tell of them, notes, and what is removed and what stays."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import Command, command_line
from finished_runs import RISING, SCENARIO, finished_run
from repository_files import ROOT
from told_tasks import VERSES, of_perplexity, told_run

from edgebed.core.errors import ScenarioError
from edgebed.core.quantities import RESULTS as TRIAL_RESULTS
from edgebed.journal.overview import RESULTS
from edgebed.journal.run_folder import RunFolder, write_atomically
from edgebed.running.results import Run
from edgebed.running.run import run as run_scenario
from edgebed.running.run import without_report
from edgebed.scenario.source import yaml_text

BOTH = {"asgd": RISING, "adacomp": RISING}


@pytest.fixture
def edgebed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, in a terminal of 160 columns."""
    monkeypatch.setenv("COLUMNS", "160")
    return command_line(monkeypatch, capsys)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs, which the environment names."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


def over(root: Path, accuracies: Any = BOTH, began: str = "", **given: Any) -> RunFolder:
    """A run that has its summary; `began` is put into its manifest."""
    run = finished_run(root, accuracies, **given)
    write_atomically(run.folder.summary, run.summary_json())
    if began:
        manifest = msgspec.json.decode(run.folder.manifest.read_bytes())
        run.folder.manifest.write_bytes(msgspec.json.encode(manifest | {"started": began}))
    return run.folder


def names(out: str) -> list[str]:
    """The runs in a list, in its order."""
    return [line.split()[0] for line in out.splitlines() if "/0" in line]


def test_a_list_tells_runs_of_one_scenario_apart(edgebed: Command, root: Path) -> None:
    """By what options set, by notes, by the best accuracy, and by the room on the disk."""
    over(root)
    folder = over(root, {"asgd": (0.1, 0.5)}, sets=("seed=2", "fleet.edge.count=3"), note="fewer devices")
    _, out, _ = edgebed("ls")
    first, second = (line for line in out.splitlines() if "pair/" in line)
    row = json.loads(edgebed("ls", "--json")[1])[1]
    used = sum(path.lstat().st_blocks * 512 for path in folder.path.rglob("*") if path.is_file())

    assert out.split("\n")[0].split() == [
        "run", "started", "runtime", "trials", "changed", "note", "best", "accuracy", "size", "result",
    ]  # fmt: skip
    assert "98.00 %" in first
    assert "seed=2, fleet.edge.count=3 fewer devices 50.00 %" in " ".join(second.split())
    assert (row["changed"], row["note"]) == (["seed=2", "fleet.edge.count=3"], "fewer devices")
    assert (row["best"]["accuracy"], row["disk_bytes"]) == (0.5, used)
    assert used > 0


def test_a_list_names_what_each_task_is_told_by(edgebed: Command, root: Path) -> None:
    """Where runs of several tasks are beside each other; a number alone says nothing then."""
    over(root)
    values = [(of_perplexity(each), {}) for each in (9.0, 5.0, 4.0)]
    verses = told_run(root, VERSES, {"asgd": values, "dgc": values})
    write_atomically(verses.folder.summary, verses.summary_json())
    both = " ".join(edgebed("ls")[1].split())

    assert " best size " in both
    assert " accuracy 98.00 % " in both
    assert " perplexity 4 " in both
    assert " best perplexity size " in " ".join(edgebed("ls", "verses")[1].splitlines()[0].split())


def test_a_list_is_sorted_as_asked(edgebed: Command, root: Path) -> None:
    """The best, newest or largest first; what has no value last."""
    over(root, {"asgd": (0.1, 0.5), "adacomp": (0.1, 0.6)}, began="2026-01-03T00:00:00+00:00")
    over(root, began="2026-01-01T00:00:00+00:00").scenario.write_bytes(bytes(200_000))
    over(root, {"asgd": RISING, "adacomp": (0.1, 0.7)}, began="2026-01-02T00:00:00+00:00")
    finished_run(root, {}).folder.manifest.write_text("{")

    for order, expected in {
        "name": "1234", "started": "1324", "best": "2314", "time": "1234", "result": "1234",
    }.items():  # fmt: skip
        assert "".join(name[-1] for name in names(edgebed("ls", "--sort", order)[1])) == expected, order
    assert names(edgebed("ls", "--sort", "size")[1])[0] == "pair/0002"
    code, _, err = edgebed("ls", "--sort", "acuracy")
    assert code == 2
    assert err.endswith("error: --sort: 'acuracy' is none of name, started, best, time, size, result\n")


def test_a_list_is_narrowed_by_words_and_results(edgebed: Command, root: Path) -> None:
    """Each word has to be there, in whatever case: in name, note, options, trials, runtime, result or question."""
    over(root, note="Rate of table 2")
    over(root, sets=("fleet.edge.count=3",))
    finished_run(root, BOTH)

    for words, expected in {
        "table": "1", "TABLE rate": "1", "table count": "", "count=3": "2", "unfinished": "3", "pair": "123",
        "--result completed": "12", "--result completed --result unfinished": "123", "--result unfinished rate": "",
    }.items():  # fmt: skip
        assert "".join(name[-1] for name in names(edgebed("ls", *words.split())[1])) == expected, words
    assert edgebed("ls", "nowhere") == (0, "", "none of 3 runs is so\n")
    assert edgebed("ls", "--result", "failed")[::2] == (
        2, f"error: --result: 'failed' is none of {', '.join(RESULTS)}\n",
    )  # fmt: skip
    assert set(TRIAL_RESULTS) < set(RESULTS)


def test_a_run_is_noted_when_it_begins_and_later(edgebed: Command, root: Path) -> None:
    """In a line of the manifest, which the list and the page of all runs show; "" takes it away."""
    folder = over(root, note="as it began")

    assert edgebed("note", "pair", " as it turned out ") == (0, "", "")
    assert folder.read_manifest()["note"] == "as it turned out"
    assert "as it turned out" in edgebed("ls")[1]
    assert "as it turned out" in (root / "index.html").read_text()
    assert edgebed("note", "pair/1", "")[0] == 0
    assert "note" not in folder.read_manifest()


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("two\nlines", "a note is one line of printable characters"),
        ("red \x1b[31m", "a note is one line of printable characters"),
        (201 * "x", "201 characters; a note has 200 at most"),
    ],
)
def test_a_note_is_a_line_that_lists_can_show(edgebed: Command, root: Path, note: str, said: str) -> None:
    """Which is found before anything runs."""
    folder = over(root)
    code, _, err = edgebed("note", "pair", note)

    assert (code, err.startswith(f"error: TEXT: {said}")) == (2, True)
    assert "note" not in folder.read_manifest()
    with pytest.raises(ScenarioError, match=f"^--note: {said}"):
        run_scenario(without_report, "nowhere.yaml", note=note)


def test_a_run_in_progress_is_noted_when_it_is_over(edgebed: Command, root: Path) -> None:
    """Its manifest is written meanwhile."""
    folder = over(root)
    with folder.locked():
        assert edgebed("note", "pair", "x") == (2, "", "error: run pair/0001 is in progress\n")


def test_a_run_is_removed_with_what_points_to_it(edgebed: Command, root: Path) -> None:
    """`latest` leads to the newest that is left, and the page of all runs has the others; then nothing is left."""
    for _ in range(3):
        over(root)
    room = RunFolder.find(root, "pair/3").disk_bytes()
    code, out, err = edgebed("rm", "pair/3", "pair/0001", root / "pair/0001")

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"removed pair/0003, {room / 1000:.3g} kB"
    assert [path.name for path in sorted((root / "pair").iterdir())] == ["0002", "latest"]
    assert RunFolder.find(root, "pair").path.name == "0002"
    assert "<h1>1 run</h1>" in (root / "index.html").read_text()
    edgebed("rm", "pair/2")
    assert [path.name for path in root.iterdir()] == ["index.html"]


@pytest.mark.parametrize("name", ["pair", "latest", "pair/latest"])
def test_what_is_removed_is_named_by_its_number(edgebed: Command, root: Path, name: str) -> None:
    """Since tomorrow the same name means another run."""
    folder = over(root)
    code, out, err = edgebed("rm", name)

    assert (code, out) == (2, "")
    assert err == f"error: '{name}' means pair/0001 just now; remove it by its number: edgebed rm pair/0001\n"
    assert folder.path.is_dir()


def test_a_run_that_can_be_resumed_stays_unless_it_is_forced(edgebed: Command, root: Path) -> None:
    """With it all that are named beside it; with --force all go."""
    over(root)
    broken = finished_run(root, {"asgd": RISING})
    write_atomically(broken.folder.summary, broken.summary_json())  # adacomp did not begin
    finished_run(root, BOTH, outcome=None)
    code, out, err = edgebed("rm", "pair/1", "pair/2", "pair/3")

    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: run pair/000{k} can be resumed: edgebed resume pair/000{k}; --force removes runs that can be resumed, "
        "too"
        for k in (2, 3)
    ]
    assert len(names(edgebed("ls")[1])) == 3
    assert edgebed("rm", "pair/1", "pair/2", "pair/3", "--force")[0] == 0
    assert not (root / "pair").exists()


def test_a_run_in_progress_is_never_removed(edgebed: Command, root: Path) -> None:
    """Nor with --force, nor by prune."""
    folder = over(root)
    with folder.locked():
        assert edgebed("rm", "pair/1", "--force") == (2, "", "error: run pair/0001 is in progress\n")
        assert edgebed("prune", "pair", "--force", "--yes") == (
            0, "", "kept: pair/0001 is in progress\nnothing to remove\n",
        )  # fmt: skip
    assert folder.path.is_dir()


def test_a_folder_that_may_be_no_runs_is_not_removed(edgebed: Command, root: Path, tmp_path: Path) -> None:
    """A folder of photos of a year is called by a number, too; one that leads elsewhere is not followed."""
    photos = tmp_path / "2024"
    photos.mkdir()
    (photos / "one.jpg").write_text("")
    over(root)
    (root / "pair/0002").symlink_to(photos)

    code, _, err = edgebed("rm", photos, "--force")
    assert (code, "has no manifest.json, so that it may be no run's" in err) == (2, True)
    assert "kept: pair/0002 is a link to" in edgebed("prune", "pair", "--force", "--yes")[2]
    assert (photos / "one.jpg").exists()


def test_prune_lists_what_it_would_remove(edgebed: Command, root: Path) -> None:
    """And removes nothing until --yes is given; what can be resumed is named, and stays."""
    over(root, began="2020-01-01T00:00:00+00:00")
    over(root)
    finished_run(root, BOTH, outcome=None)
    code, out, err = edgebed("prune", "--keep", "0")

    assert (code, names(out)) == (0, ["pair/0001", "pair/0002"])
    assert err.startswith("kept: pair/0003 can be resumed: edgebed resume pair/0003\n2 runs, ")
    assert err.endswith("; nothing is removed yet: --yes removes them\n")
    assert len(names(edgebed("ls")[1])) == 3
    assert edgebed("prune", "--keep", "0", "--yes")[1].count("removed pair/000") == 2
    assert names(edgebed("ls")[1]) == ["pair/0003"]


@pytest.mark.parametrize(
    ("words", "removed"),
    [
        ("--keep 2", "12"), ("--keep 9", ""), ("--older 30d", "12"), ("--older 30d --keep 3", "1"),
        ("--result completed", "134"), ("--result diverged", ""), ("--older 87600h", "1"), ("noted", "3"),
        ("--older 520w", "1"), ("noted --older 1d", ""),
    ],
)  # fmt: skip
def test_prune_goes_by_all_that_it_is_told(edgebed: Command, root: Path, words: str, removed: str) -> None:
    """The newest of each scenario stay, then what is younger, then what has another result or lacks a word."""
    over(root, began="2010-01-01T00:00:00+00:00")
    over(root, outcome="failed", began="2025-01-01T00:00:00+00:00")
    over(root, note="noted")
    over(root)

    assert "".join(name[-1] for name in names(edgebed("prune", "--force", *words.split())[1])) == removed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "which runs? say it by --keep N, --older AGE, --result RESULT or words, e.g. --older 30d"),
        ("--older month", "--older: 'month' is no age; give hours, days or weeks, e.g. 12h, 30d or 8w"),
        ("--older 999999d", "--older: '999999d' is no age; give hours, days or weeks, e.g. 12h, 30d or 8w"),
        ("--older 1m", "--older: '1m' counts minutes; give hours, days or weeks, e.g. 12h, 30d or 8w"),
        ("--result failed", f"--result: 'failed' is none of {', '.join(RESULTS)}"),
        ("--keep 1 --runs-dir nowhere", "--runs-dir: the folder"),
    ],
)
def test_prune_says_what_it_lacks(edgebed: Command, root: Path, words: str, said: str) -> None:
    """Every run is nobody's wish."""
    over(root)
    code, out, err = edgebed("prune", *words.split())

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {said}")


@pytest.mark.parametrize("word", ["", " ", "\t\n"])
@pytest.mark.parametrize("command", [("ls",), ("prune",), ("prune", "--yes"), ("prune", "noted", "--yes")])
def test_a_word_of_nothing_means_no_run(edgebed: Command, root: Path, command: tuple[str, ...], word: str) -> None:
    """A variable that was not set in a script would remove all that is there."""
    folder = over(root, note="noted")
    code, out, err = edgebed(*command, word)

    assert (code, out) == (2, "")
    assert err == ("error: WORD: one is empty, which would mean every run; leave it out, or say what the runs have\n")
    assert folder.path.is_dir()


def test_a_log_on_an_engine_is_named(edgebed: Command, root: Path) -> None:
    """It lies in none of the run's files."""
    folder = over(root)
    log = folder.trial("asgd").server_log
    log.mkdir()
    (log / "volume").write_text("edgebed-log-0123\n")

    assert edgebed("rm", "pair/1")[2] == (
        "the log of a server of pair/0001 is left on its container engine; edgebed down removes it\n"
    )


def test_a_damaged_run_can_be_removed(edgebed: Command, root: Path) -> None:
    """Nothing of it can be resumed."""
    over(root).manifest.write_text("{")

    assert edgebed("rm", "pair/1")[0] == 0
    assert not Run(RunFolder(root / "pair/0001")).path.exists()


@pytest.mark.usefixtures("undrawn")
def test_the_document_names_all_that_a_run_leaves(edgebed: Command, root: Path, tmp_path: Path) -> None:
    """Every file and folder of a run, and what lies beside it."""
    run = {"stop": {"updates": 5}, "evaluation": {"every": "5 updates"}, "variants": {"asgd": {"method": "asgd"}}}
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(yaml_text(SCENARIO | run))
    code, _, err = edgebed("run", scenario, "--runtime", "simulation", "--processes", 1, "--note", "tiny")
    assert code == 0, err
    edgebed("export", "pair")
    page = (ROOT / "docs/runs-on-disk.md").read_text()
    left = [path.relative_to(root / "pair") for path in root.rglob("*") if (root / "pair") in path.parents]
    names = {path.name for path in left if "exports" not in path.parts} - {"0001", "asgd"}

    assert {name for name in (*names, "index.html", "exports", "server-log", "volume") if name not in page} == set()
    assert {"latest", "final.npz", "report.html", "logs"} < names
