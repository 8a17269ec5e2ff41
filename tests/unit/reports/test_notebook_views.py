"""What a notebook shows of results and of progress, and which runs there are."""

from html.parser import HTMLParser

from finished_runs import RISING, SCENARIO, finished_run

import edgebed
from edgebed.journal.trial_state import TrialStatus
from edgebed.planning.planning import plan_trials
from edgebed.reports.live.notebook import REFRESH_S, NotebookProgress, showing
from edgebed.reports.live.progress import ProgressDisplay
from edgebed.reports.studies.study import compared
from edgebed.scenario.load import load_scenario


class Cells(HTMLParser):
    """The rows of a table, and the names of all elements."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        """Begin a row or a cell."""
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data):
        """Add to the cell."""
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


class Page:
    """Pieces of HTML below each other, of which each can be rewritten."""

    def __init__(self):
        self.pieces, self.writes = [], 0

    def show(self, html):
        """Add a piece; return what rewrites it."""
        self.pieces.append(html)
        place = len(self.pieces) - 1

        def rewrite(new):
            self.pieces[place] = new
            self.writes += 1

        return rewrite


def test_a_run_and_a_trial_show_their_key_figures(tmp_path):
    """A row a trial."""
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    rows = Cells(run._repr_html_()).rows

    assert rows[0][:4] == ["trial", "outcome", "accuracy", "best"]
    assert [row[0] for row in rows[1:]] == ["asgd", "adacomp"]
    assert rows[1][2].startswith("98")
    assert Cells(run.trials["asgd"]._repr_html_()).rows == rows[:2]


def test_a_comparison_and_a_study_show_their_arms(tmp_path):
    """With the interval over seeds; without measures that nobody has."""
    runs = [finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=seed) for seed in (1, 2, 3)]
    rows = Cells(edgebed.compare(runs)._repr_html_()).rows
    study = Cells(compared(runs)._repr_html_())

    assert [row[:2] for row in rows] == [["arm", "seeds"], ["asgd", "3"], ["adacomp", "3"]]
    assert "steps_per_s" not in rows[0]
    assert "±" in rows[1][rows[0].index("traffic_bytes")]
    assert any("asgd" in row[0] for row in study.rows)
    assert "html" not in study.tags


def test_names_are_no_markup(tmp_path):
    """A scenario's name comes from anywhere."""
    run = finished_run(tmp_path, {"asgd": RISING})
    run.folder.scenario_name = "<script>"

    assert "script" not in Cells(run._repr_html_()).tags


def test_runs_are_listed_the_newest_first(tmp_path):
    """Of all scenarios or of one; a run whose manifest is broken is the last."""
    first, second = (finished_run(tmp_path, {"asgd": RISING}, seed=seed) for seed in (1, 2))
    other = finished_run(tmp_path, {"asgd": RISING}, scenario=SCENARIO | {"name": "other"})
    broken = finished_run(tmp_path, {"asgd": RISING})
    broken.folder.manifest.write_text("{")
    names = [run.folder.name for run in edgebed.runs(runs_dir=tmp_path)]

    assert names[-1] == broken.folder.name
    assert set(names) == {run.folder.name for run in (first, second, other, broken)}
    assert [run.folder.name for run in edgebed.runs("other", runs_dir=tmp_path)] == [other.folder.name]
    assert edgebed.runs(runs_dir=tmp_path / "none") == []


def test_a_notebook_has_a_piece_a_trial_that_is_rewritten(tmp_path):
    """A bar while it trains, one line when it is over; not rewritten more often than an eye follows."""
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    plans = [trial.plan for trial in plan_trials(load_scenario(SCENARIO))]
    now, page = [0.0], Page()
    progress = NotebookProgress(page.show, clock=lambda: now[0])
    for plan in plans:
        progress.trial_started(plan)
        for updates in range(100):
            now[0] += REFRESH_S / 10
            progress.update(TrialStatus(trial=plan.trial, state="training", updates=updates, stop_updates=100))
        assert 'value="0.9' in page.pieces[-1]
        progress.trial_ended(run.trials[plan.trial].summary)

    assert len(page.pieces) == 2
    assert "<progress" not in "".join(page.pieces)
    assert "completed: accuracy 98" in page.pieces[0]
    assert page.writes <= 2 * (100 / 10 + 2)


def test_nothing_is_shown_in_a_script_unless_asked_for():
    """And an observer of one's own is taken as it is."""
    own = NotebookProgress(Page().show)

    with showing() as shown, showing(progress=False) as silent, showing(own) as observer:
        assert (shown, silent, observer) == (None, None, own)
    with showing(progress=True) as display:
        assert isinstance(display, ProgressDisplay)


def test_figures_are_files_of_a_run(tmp_path):
    """Each chart as SVG and PNG."""
    run = finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})
    files = edgebed.figures(run, tmp_path / "figures")

    assert files
    assert {path.suffix for path in files} == {".svg", ".png"}
    assert sorted(files) == sorted((tmp_path / "figures").iterdir())
