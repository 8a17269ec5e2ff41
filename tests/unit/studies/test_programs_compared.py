"""`edgebed compare` on runs of programs: arms, what they told, and what cannot be compared."""

import csv
import functools
import io

import finished_runs
import pytest
from command_line import command_line
from program_runs import finished_run

from edgebed.core.errors import ScenarioError
from edgebed.journal.programs.series import Told
from edgebed.reports.programs.charts import charts
from edgebed.reports.studies.study import compared
from edgebed.studies.agreement.run_agreement import judge
from edgebed.studies.arms import gather
from edgebed.studies.comparison.comparison import compare_arms

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of two variants, a seed each; fast has half the loss."""
    root = tmp_path_factory.mktemp("told")

    def loss(trial: str, seed: int, step: int) -> float:
        return (1.0 if trial == "slow" else 0.5) / (1 + step) + 0.01 * seed

    return [finished_run(root, seed=seed, loss=loss) for seed in (1, 2)]


@pytest.fixture
def compare(monkeypatch, capsys):
    """Calls `edgebed compare` in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return functools.partial(command_line(monkeypatch, capsys), "compare")


def test_variants_are_arms_over_seeds_and_numbers_are_those_of_the_programs(runs):
    """Each arm has the last, lowest and highest of each measure, traffic and restarts; differences are seed by seed."""
    found = compare_arms(gather(runs))
    slow, fast = found.arms["slow"].measures, found.arms["fast"].measures

    assert list(found.arms) == ["slow", "fast"]
    assert slow["final_loss"].values == {1: pytest.approx(1 / 3 + 0.01), 2: pytest.approx(1 / 3 + 0.02)}
    assert slow["max_loss"].mean.mean == pytest.approx(1.015)
    assert fast["min_loss"].against.mean == pytest.approx(-1 / 6)
    assert fast["min_loss"].by == "difference"
    assert fast["traffic_bytes"].against.mean == pytest.approx(12_500_000 / 6_500_000)
    assert fast["restarts"].against.mean == 0.0
    assert slow["restarts"].values == {1: 1.0, 2: 1.0}
    assert [str(change) for change in found.arms["fast"].changes] == ["fleet.home.uplink: 1mbit → 20mbit"]


def test_a_page_shows_curves_of_each_arm_and_seed(runs):
    """The page has the charts of the report, a line for each trial and node."""
    page = compared(runs).view
    titles = [chart.title for part in page.lead for chart in getattr(part, "charts", ())]

    assert titles == [
        "loss against time", "loss against bytes sent", "step against time", "step against bytes sent",
    ]  # fmt: skip


def test_csv_has_a_line_for_each_trial(compare, runs):
    """A line a trial, with every number that is compared."""
    names = [run.folder.name for run in runs]
    code, output, _ = compare(*names, "--csv", "-", "--runs-dir", str(runs[0].path.parent.parent))
    rows = list(csv.DictReader(io.StringIO(output)))

    assert code == 0
    assert [(row["arm"], row["seed"]) for row in rows] == [("slow", "1"), ("slow", "2"), ("fast", "1"), ("fast", "2")]
    assert {row["exit_code"] for row in rows} == {"0"}
    assert {row["traffic_bytes"] for row in rows} == {"6500000", "12500000"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--to", "0.5"], "--to: which values of a program's measures are good is not known"),
        (["pair"], "runs programs and asgd trains: leave out the runs of one or the other"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_sentence(compare, runs, more, said):
    """A level, and runs that train beside those of programs."""
    root = runs[0].path.parent.parent
    if "pair" in more:
        finished_runs.finished_run(root, {"asgd": finished_runs.RISING})
    code, _, error = compare(runs[0].folder.name, *more, "--runs-dir", str(root))

    assert (code, said in error) == (2, True), error


def test_a_run_that_broke_off_is_left_out_and_named(runs, tmp_path):
    """A trial without an end is no arm's; the sentence says which it is."""
    broken = finished_run(tmp_path, seed=3)
    journal = broken.begun["fast"].folder.journal
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-3]))

    found = gather([*runs, broken])
    assert found.left_out == ("told/0001: fast is unfinished; edgebed resume told/0001 resumes it",)
    assert [list(arm.members) for arm in found.arms] == [[1, 2, 3], [1, 2]]


def test_agreement_of_programs_is_refused_with_a_sentence(runs):
    """There are no updates to set beside each other."""
    with pytest.raises(ScenarioError, match="of runs of programs edgebed compare shows the differences"):
        judge(runs)


def test_what_was_told_once_is_no_curve(tmp_path):
    """A point that nobody sees; tables have the number."""
    (trial, _) = finished_run(tmp_path, seed=1).programs.values()
    measured = trial.series.programs.measured
    measured["step"] = {node: Told(told.t[:1], told.value[:1]) for node, told in measured["step"].items()}

    assert [chart.title for chart in charts({"slow": trial})] == ["loss against time", "loss against bytes sent"]
