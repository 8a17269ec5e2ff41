"""The page of all runs: written with each run, a line for each there is, whatever is left of it."""

import itertools
import re
import sys
from collections.abc import Callable

import msgspec
import pytest
from finished_runs import RISING, finished_run
from quick_runs import run as run_quietly
from told_tasks import VERSES, of_perplexity, told_run

import edgebed
from edgebed.core.errors import EdgebedError
from edgebed.journal.outcome import RunSummary
from edgebed.journal.overview import overview_of
from edgebed.journal.run_folder import RunFolder, write_atomically
from edgebed.reports.run.runs_index import index_page, write_index, write_report_and_index
from edgebed.reports.writing.page import Grid, plain, shade_of, spans
from edgebed.running.results import Run

TINY = {
    "name": "tiny",
    "question": "Is there a page?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "5ms"},
    "fleet": {"edge": {"count": 1}},
    "evaluation": {"every": "5 updates"},
    "stop": {"updates": 5},
    "method": "asgd",
}


def over(run):
    """The run with its summary written, as one that is over has."""
    write_atomically(run.folder.summary, run.summary_json())
    return run


def lines(root):
    """The rows of the page, each by the titles of its cells."""
    (grid,) = (part for part in index_page(root).parts if isinstance(part, Grid))
    assert grid.is_sortable
    return [dict(zip(grid.head, row, strict=True)) for row in grid.rows]


@pytest.mark.usefixtures("undrawn")
def test_every_run_writes_the_page_of_all_runs(tmp_path):
    """With a link to its report, when it began, what came of it and its key figures; one line more for one run more."""
    first = edgebed.run(TINY, runtime="simulation", processes=1, runs_dir=tmp_path)
    page = (tmp_path / "index.html").read_text()
    (line,) = lines(tmp_path)

    assert '<a href="tiny/0001/report.html">tiny/0001</a>' in page
    assert "<h1>1 run</h1>" in page
    assert (tmp_path / "tiny/0001/report.html").is_file()
    assert plain(line["result"]) == first.summary.badge == "completed, modelled"
    best, final = (100 * of["accuracy"] for of in (first.summary.trials[0].best, first.summary.trials[0].final))
    assert best > final + 5  # which is said, so that nobody takes it for the last model's
    assert plain(line["best accuracy"]) == f"{best:.2f} %, final {final:.2f} %"
    assert line["question"] == "Is there a page?"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d", plain(line["started (UTC)"]))
    edgebed.run(TINY, runtime="simulation", processes=1, runs_dir=tmp_path)
    assert "<h1>2 runs</h1>" in (tmp_path / "index.html").read_text()


def test_a_run_that_nobody_looks_at_writes_no_page(tmp_path):
    """Its folder is one of many that a study makes."""
    run_quietly(TINY, runtime="simulation", runs_dir=tmp_path)

    assert not (tmp_path / "index.html").exists()
    assert plain(lines(tmp_path)[0]["run"]) == "tiny/0001"
    assert spans(lines(tmp_path)[0]["run"])[0].file == "tiny/0001/"


def test_several_trials_share_a_line(tmp_path):
    """The best accuracy with its trial, bytes and times from the least to the most; sorted by numbers, not by texts."""
    over(finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.5, 0.6, 0.7)}))
    (line,) = lines(tmp_path)

    assert plain(line["best accuracy"]) == "98.00 % (asgd)"
    assert spans(line["best accuracy"])[0].order == pytest.approx(0.98)
    assert plain(line["up and down"]) == "12 kB to 39 kB"
    assert spans(line["up and down"])[0].order == 39_000
    assert plain(line["time"]) == "3.00 s"
    assert line["trials"] == "asgd, adacomp"


def test_best_values_of_other_tasks_are_told_by_their_names(tmp_path):
    """In each cell where runs of several are beside each other, and once above where all have the same."""
    values = [(of_perplexity(each), {}) for each in (9.0, 5.0, 3.875, 5.5)]
    over(told_run(tmp_path, VERSES, {"asgd": values, "dgc": values[:3]}))

    assert plain(lines(tmp_path)[0]["best perplexity"]) == "3.88, final 5.5 (asgd)"
    over(finished_run(tmp_path, {"asgd": RISING}))
    assert {plain(line["best"]) for line in lines(tmp_path)} == {
        "perplexity 3.88, final 5.5 (asgd)", "accuracy 98.00 %",
    }  # fmt: skip


def test_runs_of_one_scenario_are_told_apart(tmp_path):
    """By what was set, by their notes and by the room they take, which is sorted as a number."""
    over(finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}))
    over(
        finished_run(
            tmp_path, {"asgd": RISING, "adacomp": RISING}, sets=("seed=2", "stop.updates=9"), note="as in <table> 2"
        )
    )
    found = {plain(line["run"]): line for line in lines(tmp_path)}
    write_index(tmp_path)

    assert [plain(found[name]["changed"]) for name in ("pair/0001", "pair/0002")] == ["", "seed=2, stop.updates=9"]
    assert [plain(found[name]["note"]) for name in ("pair/0001", "pair/0002")] == ["", "as in <table> 2"]
    assert plain(found["pair/0001"]["size"]).endswith("kB")
    assert spans(found["pair/0001"]["size"])[0].order == overview_of(RunFolder.find(tmp_path, "pair/1")).disk_bytes
    assert "<table> 2" not in (tmp_path / "index.html").read_text()


def test_a_run_without_a_result_has_a_line_as_well(tmp_path):
    """One that broke off, one whose manifest is damaged, and one without a badge."""
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    damaged = finished_run(tmp_path, {"asgd": RISING})
    damaged.folder.manifest.write_text("{")
    old = over(finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}))
    without = msgspec.json.decode(old.folder.summary.read_bytes())
    for key in ("badge", "result", "conditions", "causes"):
        del without[key]
    old.folder.summary.write_bytes(msgspec.json.encode(without))
    found = {plain(line["run"]): line["result"] for line in lines(tmp_path)}

    assert {name: plain(result) for name, result in found.items()} == {
        "pair/0001": "unfinished", "pair/0002": "damaged", "pair/0003": "completed, modelled",
    }  # fmt: skip
    assert shade_of(found["pair/0001"]) == "quiet"
    assert str(damaged.folder.manifest) in overview_of(damaged.folder).problem


def test_a_line_says_what_the_summary_says(tmp_path):
    """Though it reads a part of it only."""
    run = over(finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}))
    summary = msgspec.json.decode(run.folder.summary.read_bytes(), type=RunSummary)
    line = overview_of(run.folder)

    for name in ("question", "exit_code", "result", "conditions", "badge"):
        assert getattr(line, name) == getattr(summary, name)
    for one, whole in zip(line.figures, summary.trials, strict=True):
        assert {name: getattr(one, name) for name in one.__struct_fields__} == {
            name: getattr(whole, name) for name in one.__struct_fields__
        }


@pytest.mark.usefixtures("undrawn")
def test_a_page_that_cannot_be_written_costs_no_run_its_report(tmp_path, capsys):
    """It is said."""
    run = over(finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}))
    (tmp_path / "index.html").mkdir()
    write_report_and_index(run)

    assert run.folder.report.is_file()
    assert "note: no page of all runs: " in capsys.readouterr().err
    write_index(tmp_path / "nowhere")


def test_names_from_outside_stay_text(tmp_path):
    """In links, too."""
    folder = RunFolder.create(tmp_path, "a b")
    folder.write_manifest(seed=1, runtime="<i>", command=[], trials=["<b>"])
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text()

    assert 'href="a%20b/0001/"' in page
    assert "<i>" not in page
    assert "<b>" not in page


def calls_of(work: Callable[[], None]) -> int:
    """How many functions it calls, which is the same on any machine."""
    count = itertools.count()
    sys.setprofile(lambda *_: next(count))
    try:
        work()
    finally:
        sys.setprofile(None)
    return next(count)


def test_a_list_of_many_runs_takes_no_longer_than_in_proportion(tmp_path):
    """Four times as many runs take some four times as many calls; each by each it were sixteen times."""
    run = over(finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}))
    summary, manifest = run.folder.summary.read_bytes(), run.folder.manifest.read_bytes()
    counts = []
    for more in (49, 150):
        for _ in range(more):
            folder = RunFolder.create(tmp_path, "pair")
            folder.summary.write_bytes(summary)
            folder.manifest.write_bytes(manifest)
        counts.append(calls_of(lambda: write_index(tmp_path)))

    assert counts[1] < 6 * counts[0]
    assert "<h1>200 runs</h1>" in (tmp_path / "index.html").read_text()


def test_the_error_of_a_damaged_run_is_the_one_that_loading_it_has(tmp_path):
    """It names the file."""
    run = finished_run(tmp_path, {"asgd": RISING})
    run.folder.manifest.write_text("[]")

    with pytest.raises(EdgebedError) as caught:
        _ = Run(run.folder).manifest
    assert overview_of(run.folder).problem == str(caught.value)
