"""Arms compared client by client: in numbers, on the page and in its chart, also where a trial diverged."""

import math

import pytest
from matplotlib.figure import Figure
from told_tasks import VERSES, VOICES, of_error, of_perplexity, told_run

from edgebed.reports.studies.study import compared
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.page import Figures, Section

RISING = [(of_error(each), of_error(each + 0.3)) for each in (9.0, 6.0, 4.0, 3.0)]
PLAIN, TUNED = (3.0, 4.0, 2.0, 5.0, 8.0), (2.0, 3.0, 1.0, 4.8, 8.0)


@pytest.fixture
def runs(tmp_path):
    """Two seeds; under fedavg ann is better by 1, ben worse by 1, and the others are as they were."""
    clients = {"asgd": (PLAIN, TUNED), "fedavg": ((2.0, 5.0, 2.0, 5.0, 8.0), ())}
    values = {"asgd": RISING, "fedavg": RISING}
    return [told_run(tmp_path, VOICES, values, clients=clients, seed=seed) for seed in (1, 2)]


def charts_of(study):
    """The charts of a comparison's section on clients."""
    found = [part for part in study.view.parts if isinstance(part, Section) and part.title == "Client by client"]
    return [chart for part in found for each in part.parts if isinstance(each, Figures) for chart in each.charts]


def test_a_chart_has_a_mark_for_each_client_and_arm(runs):
    """From the worst to the best, which is the least error; hollow after fine-tuning; in the measure's unit."""
    (chart,) = charts_of(compared(runs))
    axes = Figure().add_subplot()
    chart.plot(axes)
    drawn = {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()}

    assert drawn == {
        "asgd": [8, 5, 4, 3, 2], "asgd, fine-tuned": [8, 4.8, 3, 2, 1], "fedavg": [8, 5, 5, 2, 2],
    }  # fmt: skip
    assert [line.get_fillstyle() for line in axes.get_lines()] == ["full", "none", "full"]
    assert axes.get_ylabel() == "test MAE of a client (points)"
    assert chart.title == "MAE of each client"


def test_a_client_is_the_mean_of_its_seeds(tmp_path):
    """In the chart as in the gains that the table is made of."""
    values, runs = {"asgd": RISING, "fedavg": RISING}, []
    for seed, first in ((1, 3.0), (2, 5.0)):
        clients = {"asgd": ((first, *PLAIN[1:]), ()), "fedavg": (PLAIN, ())}
        runs.append(told_run(tmp_path, VOICES, values, clients=clients, seed=seed))
    study = compared(runs)

    assert study.result.clients["asgd"].values == {"ann": 4, "ben": 4, "cleo": 2, "dan": 5, "eve": 8}
    assert study.result.clients["fedavg"].gains == {"ann": 1, "ben": 0, "cleo": 0, "dan": 0, "eve": 0}


def test_there_is_no_chart_of_clients_that_were_not_measured(tmp_path):
    """Nor a section."""
    values = [(of_perplexity(each), {}) for each in (9.0, 5.0, 4.0)]
    study = compared([told_run(tmp_path, VERSES, {"asgd": values, "dgc": values})])

    assert all(chart.svg == "" for chart in charts_of(study))
    assert "Client by client" not in to_markdown(study.view)


def test_a_trial_that_diverged_has_no_last_error_and_is_told_apart(tmp_path):
    """An error of a model that is not finite is not finite: there is no mean of it, nor of what clients lose."""
    nothing = dict.fromkeys(of_error(1.0), math.nan)
    values = {"asgd": RISING, "fedavg": [*RISING[:3], (nothing, nothing)]}
    worse = told_run(tmp_path, VOICES, values, clients={"asgd": (PLAIN, ()), "fedavg": ((math.nan,) * 5, ())}, seed=2)
    values = {"asgd": RISING, "fedavg": RISING}
    good = told_run(tmp_path, VOICES, values, clients={"asgd": (PLAIN, ()), "fedavg": (PLAIN, ())})
    study = compared([good, worse])
    final = study.result.arms["fedavg"].measures["final_mae"]

    assert (final.values, final.mean, final.against) == ({1: 3.0}, None, None)
    assert study.result.arms["asgd"].measures["final_mae"].mean.mean == 3.0
    assert "Not measured so in each seed: fedavg." in to_markdown(study.view)
