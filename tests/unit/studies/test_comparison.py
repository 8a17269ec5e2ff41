"""A comparison: measures by seed, means with intervals, differences from the baseline over the same seeds."""

import json
import math
import re

import msgspec
import pytest
from finished_runs import RISING, SCENARIO, finished_run

import edgebed
from edgebed.core import records
from edgebed.core.errors import ScenarioError
from edgebed.journal.journal import JournalWriter
from edgebed.reports.run.report import report_page
from edgebed.reports.studies.comparison_tables import csv_text, grids, how_to_read, trials_grid
from edgebed.reports.studies.study import compare, compared
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run
from edgebed.studies.comparison.comparison import Comparison
from edgebed.studies.measures import LADDER


@pytest.fixture
def runs(tmp_path):
    """Three seeds; adacomp is 0.01 better in each, and reaches 90 % 100 updates later."""
    ends = (0.95, 0.96, 0.98)
    return [
        finished_run(tmp_path, {"asgd": (0.1, 0.9, 0.93, end), "adacomp": (0.1, 0.8, 0.91, end + 0.01)}, seed=seed)
        for seed, end in enumerate(ends, start=1)
    ]


def test_a_steady_gain_is_told_from_the_spread_over_seeds(runs):
    """The means' intervals overlap; the paired difference is certain."""
    comparison = compare(runs, window=1)
    asgd, adacomp = comparison.arms["asgd"].measures, comparison.arms["adacomp"].measures
    assert comparison.baseline == "asgd"
    assert asgd["best_accuracy"].mean.high > adacomp["best_accuracy"].mean.low
    difference = adacomp["best_accuracy"].against
    assert (difference.low, difference.mean, difference.high) == pytest.approx((0.01, 0.01, 0.01))
    assert asgd["best_accuracy"].against is None


def test_what_each_trial_came_to(runs):
    """Final and best accuracy, updates, seconds, bytes, and what it took to the accuracy."""
    outcome = compare(runs, to=0.9, window=1).arms["adacomp"].outcomes[1]
    assert (outcome.run, outcome.seed) == ("pair/0002", 2)
    assert (outcome.measures["best_accuracy"], outcome.measures["final_accuracy"]) == pytest.approx((0.97, 0.97))
    assert (
        outcome.measures["updates"],
        outcome.measures["time_s"],
        outcome.measures["ingress_bytes"],
        outcome.measures["push_bytes_mean"],
    ) == (300, 3.0, 3000, 10.0)
    assert (outcome.reached.updates, outcome.reached.time_s, outcome.reached.ingress_bytes) == (200, 2.0, 2000)


def test_costs_are_compared_by_their_ratio(runs):
    """Twice the updates, a tenth of the bytes of each: a fifth of the bytes to the same accuracy."""
    measures = compare(runs, to=0.9, window=1).arms["adacomp"].measures
    assert measures["updates_to"].against.mean == pytest.approx(2.0)
    assert measures["ingress_bytes_to"].against.mean == pytest.approx(0.2)
    assert measures["push_bytes_mean"].against.mean == pytest.approx(0.1)


def test_what_is_cheaper_upwards_may_be_dearer_in_all(runs):
    """Both are told: pushes of 10 bytes instead of 100, models of 30 for each push, twice as many pushes."""
    comparison = compare(runs, to=0.9, window=1)
    measures, outcome = comparison.arms["adacomp"].measures, comparison.arms["adacomp"].outcomes[0]

    assert (outcome.reached.ingress_bytes, outcome.reached.egress_bytes, outcome.reached.traffic_bytes) == (
        2000, 6000, 8000,
    )  # fmt: skip
    assert (outcome.measures["ingress_bytes"], outcome.measures["egress_bytes"], outcome.measures["traffic_bytes"]) == (
        3000,
        9000,
        12_000,
    )
    ratios = [measures[f"{way}_bytes_to"].against.mean for way in ("ingress", "egress", "traffic")]
    assert ratios == pytest.approx([0.2, 2.0, 8000 / 13_000])
    assert grids(comparison)["To 90 % accuracy against asgd"].head[-3:] == ("up, ×", "down, ×", "total, ×")


@pytest.mark.slow
def test_rounds_and_mini_batches_are_not_drawn_on_one_axis(tmp_path):
    """Updates that stand for different work are told, and drawn against the examples that they stand for."""
    variants = {"asgd": {"method": "asgd"}, "fedavg": {"method": "fedavg"}}
    run = finished_run(tmp_path, {"asgd": RISING, "fedavg": RISING}, scenario=SCENARIO | {"variants": variants})
    study = compared([run])
    titles = [chart.title for chart in study.view.charts]
    shown = [chart.title for chart in report_page(run).charts]

    (sentence,) = [text for text in how_to_read(study.result) if text.startswith("An update stands for")]
    assert re.fullmatch(r"An update stands for 10 training examples in asgd, for [67]\d\d in fedavg\.", sentence)
    assert sentence.rstrip(".") in to_html(report_page(run))
    assert sentence in to_html(study.view)
    for found in (titles, shown):
        assert "Accuracy against examples" in found
        assert "Accuracy against updates" not in found


def test_updates_that_stand_for_the_same_work_are_drawn_as_updates(runs):
    """Nothing is said then."""
    study = compared(runs)

    assert "Accuracy against updates" in [chart.title for chart in study.view.charts]
    assert "An update stands for" not in " ".join(how_to_read(study.result))
    assert "Accuracy against updates" in [chart.title for chart in report_page(runs[0]).charts]


def test_a_moving_average_over_a_window(runs):
    """Of the last two evaluations."""
    comparison = compare(runs, window=2)
    outcome = comparison.arms["asgd"].outcomes[0]
    assert (outcome.measures["best_accuracy"], outcome.measures["final_accuracy"]) == pytest.approx((0.94, 0.95))
    assert comparison.notes == ()


def test_a_window_that_no_training_fills_is_noted(runs):
    """Four evaluations are no average over nine."""
    assert compare(runs, window=9).notes == (
        "asgd has 4 evaluations, fewer than --window 9: all are averaged",
        "adacomp has 4 evaluations, fewer than --window 9: all are averaged",
    )


def test_the_accuracy_is_the_highest_round_one_that_all_reach(runs):
    """In every seed: the worst of them has 95 %, and 91 % in the mean of three."""
    comparison = compare(runs, window=1)
    assert (comparison.level.value, not comparison.level.is_named) == (0.95, True)
    assert all(arm.num_reached == 3 for arm in comparison.arms.values())
    assert comparison.level.value in LADDER
    unasked = compare(runs)
    assert (unasked.level.value, unasked.window) == (
        0.85,
        3,
    )  # asgd's lowest: the mean of 0.9, 0.93, 0.95; adacomp's 0.89
    assert unasked.arms["asgd"].outcomes[0].measures["best_accuracy"] == pytest.approx(2.78 / 3)


def test_a_level_may_be_of_another_measure_of_the_task(runs):
    """Reached where that is as good, whatever the headline is."""
    comparison = compare(runs, to=0.2, measure="loss", window=1)
    assert (comparison.level.measure.name, comparison.headline.name) == ("loss", "accuracy")
    assert {arm.num_reached for arm in comparison.arms.values()} == {3}
    assert compare(runs, to=0.05, measure="loss", window=1).arms["asgd"].num_reached == 0
    assert csv_text(comparison).splitlines()[1].split(",")[6:8] == ["loss", "0.2"]


def test_where_less_is_better_the_level_is_the_lowest(runs):
    """And is told so."""
    comparison = compare(runs, window=1)
    falling = msgspec.structs.replace(comparison.headline, better="less")
    level = msgspec.structs.replace(comparison.level, measure=falling)
    fewer = msgspec.structs.replace(comparison, headline=falling, level=level)

    assert how_to_read(comparison)[-1].startswith("95 % is the highest round accuracy that every arm reached in every")
    assert how_to_read(fewer)[-1].startswith("95 % is the lowest round accuracy that every arm reached in every seed")


def test_without_a_common_accuracy_there_is_none(tmp_path):
    """Nobody learnt as much as the lowest of the ladder."""
    comparison = compare([finished_run(tmp_path, {"asgd": (0.05, 0.05), "adacomp": (0.05, 0.05)})])
    assert comparison.level is None
    assert comparison.arms["asgd"].num_reached == 0
    assert comparison.arms["asgd"].measures["updates_to"].values == {}


def test_an_arm_that_learnt_nothing_does_not_decide_to_which_accuracy_is_told(tmp_path):
    """As with the answer of a run: costs to 10 % would say nothing of the other arm."""
    comparison = compare([finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.1, 0.1)})])
    assert comparison.level.value == 0.94
    assert [arm.num_reached for arm in comparison.arms.values()] == [1, 0]


STOPS = SCENARIO | {"stop": {"updates": 300, "accuracy": 0.9, "window": 2}}


def test_the_accuracy_at_which_all_scenarios_stop_is_told_with_its_window(tmp_path):
    """Whoever did not reach it is told so; another --to or --window goes before it."""
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.95, 0.8, 0.85)}, scenario=STOPS)
    comparison = compare([run])

    assert (comparison.level.value, comparison.window, not comparison.level.is_named) == (0.9, 2, False)
    assert [arm.num_reached for arm in comparison.arms.values()] == [1, 0]
    assert "To 90 % accuracy in the mean of 2 evaluations" in grids(comparison)
    assert (compare([run], to=0.8).window, compare([run], window=1).level.value) == (2, 0.9)
    assert compare([run], window=1).arms["adacomp"].num_reached == 1


def test_an_accuracy_of_the_scenarios_that_nobody_reached_is_said(tmp_path):
    """Then it is the highest that all reached, by the mean of as many evaluations."""
    comparison = compare([finished_run(tmp_path, {"asgd": (0.1, 0.8, 0.8, 0.8)}, scenario=STOPS)])

    assert (comparison.level.value, comparison.window, not comparison.level.is_named) == (0.8, 2, True)
    assert comparison.notes[0] == "no trial reached 90 % accuracy in the mean of 2 evaluations"


def test_an_accuracy_that_all_scenarios_expect_is_told(tmp_path):
    """As in the answer of a run; an arm that did not reach it leaves it to the round ones."""
    expects = SCENARIO | {"expect": {"final_accuracy": ">= 0.87"}}
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.85, 0.88, 0.9)}, scenario=expects)
    comparison = compare([run])
    assert (comparison.level.value, comparison.window, not comparison.level.is_named) == (0.87, 3, False)
    lower = compare([finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.8, 0.8, 0.9)}, scenario=expects)])
    assert (lower.level.value, lower.level.is_named) == (0.8, False)


def test_scenarios_that_stop_at_different_accuracies_ask_for_none(tmp_path):
    """No one of them speaks for the others."""
    runs = [
        finished_run(tmp_path, {"asgd": RISING}, scenario=STOPS),
        finished_run(tmp_path, {"asgd": RISING}, scenario=STOPS, sets=["stop.accuracy=0.95"]),
    ]
    assert not compare(runs).level.is_named
    assert compare(runs).window == 3


def test_who_is_first_is_decided_by_seeds_alone(runs):
    """By time asgd, 100 updates sooner in each seed; with one seed nothing is decided; without a second it is alone."""
    study = compared(runs, to=0.9, window=1)
    first, firsts = study.result.firsts["time_s_to"], "First by time: asgd (adacomp takes 2.00 ×, decided at 95 %)"

    assert (first.method, first.second, first.factor) == ("asgd", "adacomp", pytest.approx(2.0))
    assert firsts in to_html(study.view)
    one = to_html(compared(runs[:1], to=0.9, window=1).view)
    assert "First by time: asgd (adacomp takes 2.00 ×); by bytes: adacomp (asgd takes ≈ 1.62 ×). One seed: not" in one
    assert compare(runs[2:], to=0.985, window=1).firsts["time_s_to"].second is None


def test_who_is_first_in_the_mean_may_be_undecided(tmp_path):
    """Once the one is sooner by far, once the other a little."""
    rises = [((0.1, 0.9, 0.9, 0.9), (0.1, 0.2, 0.3, 0.9)), ((0.1, 0.2, 0.9, 0.9), (0.1, 0.9, 0.9, 0.9))]
    found = [
        finished_run(tmp_path, {"asgd": one, "adacomp": other}, seed=seed)
        for seed, (one, other) in enumerate(rises, start=1)
    ]
    view = to_html(compared(found, to=0.9, window=1).view)

    assert "First by time: asgd (adacomp takes ≈ 1.22 ×, not decided)" in view


@pytest.mark.parametrize(("late", "is_decided"), [((2, 3, 5), True), ((1, 2, 5), False)])
def test_who_is_first_is_told_in_the_terms_of_the_tables(tmp_path, late, is_decided):
    """By their ratio and its interval: one that holds 1 decides nothing, though on one side there may be 97 %."""
    curves = {k: (0.1, *([0.2] * k), *([0.9] * (8 - k))) for k in (0, *late)}
    found = [finished_run(tmp_path, {"asgd": curves[0], "adacomp": curves[k]}, seed=k) for k in late]
    result = compare(found, to=0.9, window=1)
    ratio, first = result.arms["adacomp"].measures["time_s_to"].against, result.firsts["time_s_to"]

    assert (first.method, first.factor, first.between) == ("asgd", ratio.mean, (ratio.low, ratio.high))
    assert first.is_decided is ratio.excludes(1.0) is is_decided


def test_a_trial_that_did_not_keep_what_it_reached_says_so(tmp_path):
    """Beside an arm that stayed where it was."""
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.86, 0.5, 0.17)})
    notes = compare([run]).notes

    assert "pair/0001: adacomp did not stay: it reached 86.00 % and ended at 17.00 %" in notes
    assert not [note for note in notes if "asgd did not stay" in note]


def test_an_arm_that_is_no_better_than_the_most_frequent_class_says_so(tmp_path):
    """37 of the 359 test images of the digits are of one class."""
    comparison = compare([finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.1, 0.1)})])

    assert comparison.arms["adacomp"].most_frequent_class == pytest.approx(37 / 359)
    assert "adacomp is no better than the most frequent class (10.31 %)" in comparison.notes
    assert not [note for note in comparison.notes if note.startswith("asgd is no better")]


def test_an_accuracy_that_some_seeds_never_reach_has_no_mean(runs):
    """Leaving those out would flatter the arm; the values of the others are there."""
    comparison = compare(runs, to=0.97, window=1)
    asgd, adacomp = comparison.arms.values()
    assert (asgd.num_reached, adacomp.num_reached) == (1, 2)
    measure = adacomp.measures["updates_to"]
    assert (measure.values, measure.mean, measure.against) == ({2: 300.0, 3: 300.0}, None, None)


def test_one_seed_has_no_interval(runs):
    """And the notes say what follows from that."""
    comparison = compare(runs[:1])
    measure = comparison.arms["adacomp"].measures["best_accuracy"]
    assert (measure.mean.low, measure.against.low, measure.against.seeds) == (None, None, 1)
    assert "1 seed in every arm" in comparison.notes[0]


def test_differences_are_over_the_common_seeds(tmp_path):
    """The others count for the means alone."""
    runs = [
        finished_run(tmp_path, {"asgd": RISING}, seed=1),
        finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=2),
        finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=3),
    ]
    comparison = compare(runs)
    assert comparison.arms["adacomp"].measures["updates"].against.seeds == 2
    assert comparison.arms["asgd"].measures["updates"].mean.seeds == 3
    assert any("over seeds 2, 3 alone" in note for note in comparison.notes)


def test_no_common_seed_is_no_difference(tmp_path):
    """And it is said."""
    runs = [finished_run(tmp_path, {"asgd": RISING}, seed=1), finished_run(tmp_path, {"adacomp": RISING}, seed=2)]
    comparison = compare(runs)
    assert {measure.against for measure in comparison.arms["adacomp"].measures.values()} == {None}
    assert any("no seed in common" in note for note in comparison.notes)


@pytest.mark.parametrize("baseline", ["adacomp", "adacomp (pair)"])
def test_another_baseline(tmp_path, baseline):
    """By the arm's name, or by the trial's where one arm alone has it."""
    runs = [finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})]
    if baseline != "adacomp":
        runs.append(finished_run(tmp_path, {"adacomp": RISING}, scenario=SCENARIO | {"name": "twin"}))
    comparison = compare(runs, baseline=baseline)
    assert comparison.baseline == baseline
    ratio = comparison.arms["asgd"].measures["push_bytes_mean"].against
    assert ratio.mean == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"baseline": "adacmp"}, "--baseline: no arm 'adacmp'; did you mean 'adacomp'\\? allowed: asgd, adacomp"),
        ({"window": 0}, "--window: 0 is below 1"),
        ({"to": 0.0}, "--to: 0 is not above 0"),
        ({"to": 97.0}, "--to: 97 is not above 0 and at most 1"),
        ({"to": math.nan}, "--to: nan"),
        ({"to": 0.5, "measure": "los"}, "--to: the tasks have no measure 'los' in common; did you mean 'loss'"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, options, problem):
    """With what is allowed."""
    with pytest.raises(ScenarioError, match=problem):
        compare(runs, **options)


def test_what_else_differs_is_noted(tmp_path):
    """Code, releases, machines and runtimes, each with a run; real times are those of a machine."""
    facts = ({"code": "aaaa"}, {"code": "bbbb", "runtime": "process", "options": {"emulation": "kernel"}})
    runs = [finished_run(tmp_path, {"asgd": RISING}, seed=seed, **each) for seed, each in enumerate(facts, start=1)]
    notes = compare(runs).notes
    assert any("different runtimes (simulation, process); time is virtual" in note for note in notes)
    assert any("different code of edgebed: aaaa (pair/0001), bbbb (pair/0002)" in note for note in notes)


@pytest.mark.parametrize("action", ["kill", "launch"])
def test_arms_that_met_other_faults_are_noted(tmp_path, action):
    """Seed by seed, with what was done; bringing back alone is none."""
    run = finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    journal = run.folder.trial("adacomp").journal
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    fault = {"t": 0.5, "node": "controller", "kind": "fault", "name": "f", "target": "edge-1", "asked_s": 0.5}
    journal.write_bytes(first + json.dumps(fault | {"action": action}).encode() + b"\n" + b"".join(rest))
    notes = [note for note in compare([Run(run.folder)]).notes if "faults" in note]

    note = "adacomp met other faults than asgd with seed 1 (kill edge-1; asgd: none of its own): what differs may be"
    assert notes == [f"{note} their doing"] * (action == "kill")


def test_conditions_that_are_not_known_are_noted(tmp_path):
    """A cap was asked for, and no node told what it had."""
    capped = SCENARIO | {"fleet": {"edge": {"count": 2, "cpus": 0.5}}}
    run = finished_run(tmp_path, {"asgd": RISING}, scenario=capped, runtime="process")

    assert any(note.startswith("pair/0001: asgd: unknown: ") for note in compare([run]).notes)


def test_a_trials_own_warnings_are_noted(tmp_path):
    """E.g. what was not finite, though every loss is."""
    run = finished_run(tmp_path, {"asgd": RISING})
    said = records.Diverged(incarnation=0, step=4, what="gradient", tensor="out.bias")
    with JournalWriter(run.folder.trial("asgd").journal) as journal:
        journal.write(9.0, "edge-0", said)
    warning = "gradient of out.bias at edge-0 is not finite at update 5, though every loss is"
    assert f"pair/0001: asgd: {warning}" in compare([run]).notes


def test_an_arm_that_diverged_is_compared_and_said_so(tmp_path):
    """In a note, in the cells of what it never reached, and for programs."""
    runs = [
        finished_run(tmp_path, {"asgd": RISING}),
        finished_run(tmp_path, {"asgd": RISING[:2]}, seed=2, loss=math.nan),
    ]
    comparison = compare(runs, to=0.95, window=1)
    reached = grids(comparison)["To 95 % accuracy"]

    assert [outcome.diverged for outcome in comparison.arms["asgd"].outcomes] == [False, True]
    assert "pair/0002: asgd diverged at update 1: loss at edge-0 is not finite" in comparison.notes
    assert "in 1 of 2 seeds: 1 diverged" in reached.rows[0]
    for grid in (reached, grids(comparison)["Whole trials"]):
        assert grid.rows[0][grid.head.index("diverged")] == "1 of 2"
    assert "never: diverged" in trials_grid(comparison).rows[1]


def test_from_python(runs, tmp_path):
    """By name as everywhere, or opened; the result survives JSON."""
    comparison = edgebed.compare(["pair/1", runs[1], str(runs[2].path)], runs_dir=tmp_path)
    assert comparison.arms["asgd"].seeds == (1, 2, 3)
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
    with pytest.raises(ScenarioError, match="'pair' is one run; give a list"):
        edgebed.compare("pair", runs_dir=tmp_path)
    with pytest.raises(ScenarioError, match="no run 'nosuch'"):
        edgebed.compare(["nosuch"], runs_dir=tmp_path)
    for given in (5, {"name": "pair"}, [{"name": "pair"}], runs[0]):
        with pytest.raises(ScenarioError, match=r"is no list of runs; run a scenario first"):
            edgebed.compare(given, runs_dir=tmp_path)
    with pytest.raises(ScenarioError, match=r"^5 is no paper; "):
        edgebed.reproduce(5)
