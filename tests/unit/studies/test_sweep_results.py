"""What a sweep says of its runs: who wins where, what was counted, where methods break even; and its page."""

import dataclasses
import io
import socket
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import goldens
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from quick_runs import run as run_quickly
from rich.console import Console
from swept_result import METHODS, RATES, swept
from tiny_sweep import SWEEP, write_sweep

from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.measures.task import Level
from edgebed.core.plan import Part, TensorLayout
from edgebed.core.planned.device_core import Core
from edgebed.core.units import format_duration
from edgebed.learning.objectives.classification import ACCURACY
from edgebed.reports.studies.sweep_charts import cell_lines, factor_text, layout_of, letters, maps_of
from edgebed.reports.studies.sweep_curves import QUANTITIES, curves_of, places_of
from edgebed.reports.studies.sweep_page import sweep_page
from edgebed.reports.writing.markdown import to_markdown, write
from edgebed.reports.writing.page import charts_in
from edgebed.reports.writing.terminal import show
from edgebed.studies.measures import Fall
from edgebed.studies.statistics import paired_ratio
from edgebed.studies.sweep.break_even import break_even
from edgebed.studies.sweep.costs import (
    CompressionCost,
    Costs,
    GradientCost,
    read_costs,
    rounded,
    times_of,
    with_costs,
    write_costs,
)
from edgebed.studies.sweep.points import Point, SweepPlan, axes_of, place_of, read_points, sweep_command
from edgebed.studies.sweep.sweep_result import SweepResult, WinAt, _cpu_s, cpu_seconds
from edgebed.studies.sweep.winners import Win, is_coarse, win
from edgebed.studies.trial_result import FinishedTrial


@pytest.fixture
def points(tmp_path: Path) -> SweepPlan:
    """Those of the tiny sweep."""
    return read_points(write_sweep(tmp_path))


def test_every_method_is_run_at_every_combination(points: SweepPlan) -> None:
    """Rates in increasing order, and all of the first seed before any of the second."""
    assert points.all == [
        Point(method, (uplink, count))
        for uplink in ("250kbit", "16mbit")
        for count in ("2", "3")
        for method in ("dense", "top-k")
    ]
    twice = dataclasses.replace(points, seeds=2).runs
    assert [run.seed for run in twice] == [1] * 8 + [2] * 8
    assert len(set(twice)) == 16
    assert twice[1].cell == "top-k, uplink 250kbit, count 2"


def test_a_point_is_an_ordinary_run(points: SweepPlan) -> None:
    """With the axes' values, the accuracy it ends at, and what was measured; the scenario's own times are kept."""
    point = points.all[1]
    recipes = points.recipes({point: ["task.gradient_time=2ms"]})
    run = points.runs[1]
    plan = recipes.plans([run])[run]

    assert recipes.spec(run).sets == (
        "seed=1", "fleet.edge.uplink=250kbit", "fleet.edge.count=2", "stop.accuracy=0.8", "stop.window=3",
        "task.gradient_time=2ms",
    )  # fmt: skip
    assert recipes.spec(run).updates == 600
    assert (plan.trial, plan.stop_level, plan.stop_updates) == ("top-k", Level("accuracy", 0.8, 3), 600)
    assert plan.nodes[0].task.gradient_time_s == 0.002
    assert [node.link.uplink_bit_s for node in plan.nodes if node.role == "worker"] == [250_000] * 2
    assert not points.has_own(point, "gradient_time")
    own = dataclasses.replace(points, sets=("task.gradient_time=1ms",))
    assert own.has_own(point, "gradient_time")


def test_options_of_the_user_are_those_of_every_point(tmp_path: Path) -> None:
    """But for those of the section, which are not the runs'; a seed is refused."""
    path = write_sweep(tmp_path)
    sets = ["sweep.accuracy=0.7", "task.batch_size=5", "sweep.methods=[dense]", " sweep .seeds = 2"]
    points = read_points(path, sets)

    assert points.sets == ("task.batch_size=5",)
    assert points.methods == ("dense",)
    assert points.recipes({}).spec(points.runs[0]).sets[:2] == ("seed=1", "task.batch_size=5")
    assert sweep_command(points, sets).startswith("edgebed sweep tiny.yaml --set sweep.accuracy=0.7 --set task")
    with pytest.raises(ScenarioError, match="--set seed=3: a sweep is run with seeds 1, 2"):
        read_points(path, ["seed=3"])
    with pytest.raises(ScenarioError, match="has no section sweep"):
        read_points(path, ["sweep=null"])


def test_commands_name_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is named from the current folder, or by its name alone."""
    path = write_sweep(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    assert place_of(path) == Path(tmp_path.name, "tiny.yaml")
    monkeypatch.chdir(Path(__file__).parent)
    assert place_of(path) == Path("tiny.yaml")


def test_axes_that_would_be_called_alike_are_called_in_full() -> None:
    """The last word of the key is enough where it is the only such."""
    labels = [
        axis.label for axis in axes_of({"fleet.a.uplink": ["1mbit"], "fleet.b.uplink": ["1mbit"], "pull": ["full"]})
    ]

    assert labels == ["fleet.a.uplink", "fleet.b.uplink", "pull"]


def test_a_learning_rate_is_no_rate_of_a_link() -> None:
    """Nothing breaks even along it."""
    (axis,) = axes_of({"method.aggregation.learning_rate": ["0.1", "0.2"]})

    assert not axis.is_rate
    assert swept({"method.aggregation.learning_rate": ["0.1", "0.2"]}).break_even == ()


def test_cpu_seconds_are_those_of_gradients_compression_and_restoring() -> None:
    """A push of several mini-batches takes as many gradients."""
    assert cpu_seconds(100, 5, 0.01, 0.002, 0.001) == pytest.approx(100 * (0.05 + 0.003))


@given(st.integers(0, 10_000), st.integers(1, 50), *[st.floats(0.0, 10.0)] * 3)
def test_cpu_seconds_add_up(
    updates: int, batches: int, gradient_s: float, compression_s: float, restore_s: float
) -> None:
    """Over updates; and what takes no time is not counted."""
    taken = cpu_seconds(updates, batches, gradient_s, compression_s, restore_s)

    assert taken == pytest.approx(updates * cpu_seconds(1, batches, gradient_s, compression_s, restore_s))
    assert taken >= cpu_seconds(updates, batches, gradient_s, 0.0, 0.0)


def test_a_line_is_broken_where_the_accuracy_was_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not run straight through a rate at which a method never got there."""
    result = swept({"fleet.edge.uplink": RATES})
    points = [
        msgspec.structs.replace(point, time_s=None) if point.values["fleet.edge.uplink"] == "1mbit" else point
        for point in result.points
    ]
    axes = Figure().add_subplot()
    (axis,) = axes_of(result.axes)
    (chart,) = curves_of(msgspec.structs.replace(result, points=tuple(points)), "time_s", axis)
    chart.plot(axes)
    drawn = {line.get_label(): line for line in axes.lines}

    assert drawn.keys() == {"dense", "top-k"}
    for line in drawn.values():
        assert line.get_xdata().tolist() == [250e3, 1e6, 4e6, 16e6]
        assert np.isnan(line.get_ydata()).tolist() == [False, True, False, False]


def finished(tmp_path: Path, **task: Any) -> FinishedTrial:
    """A simulated trial of workers with unequal shares that let nobody wait."""
    scenario = {
        "name": "uneven", "seed": 3, "task": {
            "data": "digits", "model": "small", "gradient_time": "10ms", "split": {"dirichlet": 0.3},
            **task,
        },
        "method": {"preset": "fedbuff", "aggregation": {"count": 2}}, "fleet": {"edge": {"count": 6}},
        "stop": {"updates": 60},
    }  # fmt: skip
    run = run_quickly(scenario, runtime="simulation", runs_dir=tmp_path)
    return FinishedTrial.of(next(iter(run.trials.values())))


@pytest.mark.slow
def test_cpu_seconds_count_each_workers_own_mini_batches(tmp_path: Path) -> None:
    """Who has few examples pushes more often; a line that was kept before they were counted takes their mean."""
    trial = finished(tmp_path)
    batches = {node.node: node.num_examples / node.task.batch_size for node in trial.plan.workers()}
    assert trial.summary.accounting
    done = {life.worker: life.begun - life.unfinished for life in trial.summary.accounting.lives}
    made = sum(batches[worker] * count for worker, count in done.items())
    mean = sum(batches.values()) / len(batches) * sum(done.values())

    assert trial.batches == pytest.approx(made)
    assert mean > 1.02 * made
    taken = [_cpu_s(each, Costs()) for each in (trial, dataclasses.replace(trial, batches=None))]
    assert taken == [pytest.approx(0.01 * made), pytest.approx(0.01 * mean)]


@pytest.mark.slow
def test_a_mini_batch_of_few_examples_is_a_part_of_one(tmp_path: Path) -> None:
    """Workers with fewer examples than a mini-batch go through what they have, which takes that much of the time."""
    trial = finished(tmp_path, batch_size=2000)
    assert trial.summary.accounting
    examples = {node.node: node.num_examples for node in trial.plan.workers()}
    made = sum(examples[life.worker] * (life.begun - life.unfinished) for life in trial.summary.accounting.lives) / 2000

    assert trial.batches == pytest.approx(made)
    assert made < sum(life.begun - life.unfinished for life in trial.summary.accounting.lives) / 2


NEEDED = st.dictionaries(st.integers(1, 4), st.floats(0.001, 1e6), max_size=4)


@given(st.dictionaries(st.text(min_size=1, max_size=3), NEEDED, max_size=6))
def test_nobody_needs_less_than_the_winner(needed: dict[str, dict[int, float]]) -> None:
    """The second needs the factor as much, and no less than any other."""
    found = win(needed, {})
    means = {name: geometric_mean(each.values()) for name, each in needed.items() if each}

    assert (found is None) == (not means)
    if found:
        assert means[found.method] == min(means.values())
        others = {name: mean for name, mean in means.items() if name != found.method}
        assert (found.second is None) == (not others)
        if found.second and needed[found.method].keys() == needed[found.second].keys():
            assert found.factor == pytest.approx(min(others.values()) / means[found.method])


def test_who_is_first_is_decided_where_pairs_of_seeds_tell_it_from_each_of_the_others() -> None:
    """By the interval of the ratio over seeds; with one seed nothing is said."""
    ones, twos = {1: 10.0, 2: 12.0, 3: 11.0}, {1: 12.0, 2: 14.0, 3: 13.5}
    far = {1: 10.1, 2: 30.0, 3: 80.0}
    clear, rivals = win({"a": ones, "b": twos}, {}), win({"a": ones, "b": twos, "c": far}, {})
    ratio = paired_ratio(twos, ones)

    assert clear
    assert rivals
    assert ratio
    assert (clear.factor, clear.between, clear.is_decided) == (ratio.mean, (ratio.low, ratio.high), True)
    assert (rivals.second, rivals.is_decided) == ("b", False)  # the third is once as fast
    one_seed = win({"a": {1: 10.0}, "b": {1: 12.0}}, {})
    assert one_seed
    assert (one_seed.is_decided, one_seed.between, one_seed.detectable) == (None, None, None)


@pytest.mark.parametrize(("spacing", "is_coarse"), [(0.1, False), (0.3, True)])
def test_less_than_lies_between_two_evaluations_is_marked(spacing: float, is_coarse: bool) -> None:
    """The second needs a fifth more."""
    found = win({"a": {1: 10.0}, "b": {1: 12.0}}, {"a": spacing})

    assert found
    assert found.is_coarse == is_coarse


@pytest.mark.parametrize(("spacing", "expected"), [((0.1, 0.1), False), ((0.3, 0.1), True), ((0.1, 0.3), True)])
def test_a_rate_beside_which_two_are_close_is_marked(spacing: tuple[float, float], expected: bool) -> None:
    """They are a fifth apart at the rates on both sides, and as far as can be at one further away."""
    needed = {"a": [10.0, 10.0, 12.0, None], "b": [90.0, 12.0, 10.0, 1.0]}
    spacings = {"a": [9.0, spacing[0], spacing[1], 9.0], "b": [0.0] * 4}
    (at,) = break_even((1.0, 2.0, 4.0, 8.0), ("a", needed["a"]), ("b", needed["b"]))

    assert is_coarse(at, (1.0, 2.0, 4.0, 8.0), needed, spacings) == expected


def test_a_pair_breaks_even_wherever_it_crosses() -> None:
    """At 80 Mbit less 2 Mbit over 8 s, as far as a straight line between two rates can say; the lead changes."""
    result = swept({"fleet.edge.uplink": RATES, "fleet.edge.count": ["2", "3"]})

    assert [(row.where, row.below, row.above, row.is_lead) for row in result.break_even] == [
        ("count 2", "top-k", "dense", True),
        ("count 3", "top-k", "dense", True),
    ]
    assert all(8e6 < row.rate_bit_s < 12e6 for row in result.break_even)


def test_a_cell_of_the_map_says_who_by_how_much() -> None:
    """Letters make it readable without colours; whether that is decided stands beside it."""
    letter_of = letters(METHODS)
    clear = Win(method="top-k", mean=12.0, second="dense", factor=2.5, is_decided=True, detectable=1.4, is_coarse=False)
    one_seed = msgspec.structs.replace(clear, factor=1.02, is_decided=None, is_coarse=True)
    alone = msgspec.structs.replace(clear, second=None, factor=None, is_decided=None)

    assert letter_of == {"dense": "A", "top-k": "B", "slow": "C"}
    assert cell_lines(WinAt(values={}, time=clear), letter_of) == ("B top-k", "12.0 s", "2.50 × A, decided")
    assert cell_lines(WinAt(values={}, time=one_seed), letter_of)[2] == "≈ 1.02 × A"
    assert cell_lines(WinAt(values={}, time=alone), letter_of)[2] == "alone"
    assert cell_lines(WinAt(values={}, time=clear, not_run=3), letter_of)[2] == "3 not run"
    assert cell_lines(WinAt(values={}, time=None), letter_of) == ("nobody",)
    assert cell_lines(WinAt(values={}, time=None, not_run=1), letter_of) == ("not run",)
    assert factor_text(123.4) == "123"
    assert len(set(letters([str(k) for k in range(100)]).values())) == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("over", "maps", "facets"),
    [
        ({"fleet.edge.uplink": RATES}, [""], {"uplink": [""]}),
        (
            {"fleet.edge.count": ["2", "3"], "fleet.edge.uplink": RATES},
            [""],
            {"uplink": [", count 2", ", count 3"], "count": [f", uplink {rate}" for rate in RATES]},
        ),
        (
            {"fleet.edge.uplink": RATES[:1], "fleet.edge.count": ["2"], "pull": ["full", "changed-since"]},
            [", pull full", ", pull changed-since"],
            {"pull": [f", uplink {RATES[0]}, count 2"]},
        ),
        ({"task.batch_size": ["5", "10"]}, [""], {"batch_size": [""]}),
    ],
    ids=["a rate", "two axes", "three axes", "no rate"],
)
def test_a_sweep_is_drawn_against_each_of_its_axes(
    over: dict[str, list[str]], maps: list[str], facets: dict[str, list[str]]
) -> None:
    """Rates to the right; a map for each value of a third axis, a chart of a quantity for each of all other axes."""
    result = swept(over)
    axes = {axis.label: axis for axis in axes_of(over)}

    drawn = maps_of(result)
    assert [chart.title for chart in drawn] == [f"Who is first{where}" for where in maps]
    assert "A dense" in drawn[0].svg or "B top-k" in drawn[0].svg
    assert drawn[0].svg == maps_of(result)[0].svg
    for label, wheres in facets.items():
        for measure, quantity in QUANTITIES.items():
            charts = curves_of(result, measure, axes[label])
            title = f"{quantity.title} to the accuracy against {label}"
            assert [chart.title for chart in charts] == [f"{title}{where}" for where in wheres]
            assert {point.name for point in charts[0].data.points} == {"dense", "top-k"}  # slow never gets there
    titles = [chart.title for chart in charts_in(sweep_page(result, "edgebed sweep").parts)]
    assert len(set(titles)) == len(titles)
    assert {title.partition(" against ")[2].partition(",")[0] for title in titles} - {""} == facets.keys() | (
        {layout_of(tuple(axes.values())).columns.label}
    )
    assert layout_of(axes_of(over)).columns.key == next((key for key in over if key.endswith("uplink")), [*over][-1])


def test_charts_of_a_quantity_can_be_held_against_each_other() -> None:
    """Their vertical axes are the same, and the points are those of the sweep."""
    result = swept({"fleet.edge.uplink": RATES, "fleet.edge.count": ["2", "3"]}, seeds=2)
    rate, count = axes_of(result.axes)
    limits = set()
    for axis in (rate, count):
        for chart in curves_of(result, "time_s", axis):
            axes = Figure().add_subplot()
            chart.plot(axes)
            limits.add(axes.get_ylim())
            assert len(axes.collections) == 2  # a band for each method that got there
    assert len(limits) == 1
    (two, _) = curves_of(result, "traffic_bytes", rate)
    assert [point[:3] for point in two.data.points if point.name == "top-k"] == [
        ("top-k", "250000", "250000"), ("top-k", "1000000", "250000"), ("top-k", "4000000", "250000"),
        ("top-k", "16000000", "250000"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "values", "places", "scale"),
    [
        ("fleet.edge.uplink", ["250kbit", "1mbit"], [250e3, 1e6], "log"),
        ("fleet.edge.count", ["4", "8"], [4.0, 8.0], "linear"),
        ("task.split.dirichlet", ["0.1", "1", "10"], [0.1, 1.0, 10.0], "log"),
        ("server.momentum", ["0", "0.9"], [0.0, 0.9], "linear"),
        ("pull", ["full", "changed-since"], [0.0, 1.0], "linear"),
        ("task.split", ["iid", "2"], [0.0, 1.0], "linear"),
    ],
)
def test_values_have_their_place_on_an_axis(key: str, values: list[str], places: list[float], scale: str) -> None:
    """Numbers by their size, words equally far apart."""
    (axis,) = axes_of({key: values})

    assert places_of(axis) == (places, scale)


def test_the_page_is_a_file_with_charts_and_nothing_of_this_machine(tmp_path: Path) -> None:
    """What it says is in `goldens/sweep.txt`."""
    page = write(sweep_page(swept({"fleet.edge.uplink": RATES}), "edgebed sweep tiny.yaml"), tmp_path)
    text = page.with_suffix(".md").read_text()

    assert socket.gethostname() not in text
    assert str(tmp_path) not in text
    for line in text.splitlines():
        if line.startswith("!["):
            assert (tmp_path / line.partition("](")[2].rstrip(")")).read_text().startswith("<svg")


def with_points(result: SweepResult, method: str, **settings: object) -> SweepResult:
    """The result with other points of a method, and no others."""
    points = (msgspec.structs.replace(point, **settings) for point in result.points if point.method == method)
    return msgspec.structs.replace(result, points=tuple(points))


def undecided(result: SweepResult) -> SweepResult:
    """The result with leads in time that seeds leave open."""
    wins = [
        msgspec.structs.replace(each, time=msgspec.structs.replace(each.time, is_decided=False))
        for each in result.wins if each.time
    ]  # fmt: skip
    return msgspec.structs.replace(result, wins=tuple(wins))


RATE, FLEETS = {"fleet.edge.uplink": RATES}, {"fleet.edge.uplink": RATES, "fleet.edge.count": ["4", "8"]}
FELL = (Fall(best=0.86, final=0.17, measure=ACCURACY), Fall(best=0.9, final=0.5, measure=ACCURACY))
FIRST, WINNERS, POINTS = "\n## Who is first", "\n## What each", "\n## CPU time"
PAGES = {
    "two seeds: spreads": (swept({"fleet.edge.uplink": RATES[:1]}, seeds=2), POINTS),
    "three seeds decide, with intervals of factors and break-even rates": (swept(RATE, seeds=3), WINNERS),
    "a lead that seeds leave open": (undecided(swept(RATE, seeds=3)), FIRST),
    "points that fell and seeds that diverged": (
        with_points(swept({"fleet.edge.uplink": RATES[:1]}, seeds=3), "slow", fell=FELL, diverged=1),
        POINTS,
    ),
    "fleets, of which one method is first in all": (
        swept({"fleet.edge.uplink": RATES[:2], "fleet.edge.count": ["4", "8", "16"]}, seeds=3),
        FIRST,
    ),
    "fleets with other winners at some rates": (swept(FLEETS, seeds=3), FIRST),
    "fleets with one seed": (swept(FLEETS), FIRST),
}
"""Results, and before which heading of the page that stands which they are about."""


@pytest.mark.usefixtures("undrawn")
def test_what_is_said_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its page and its lines on a terminal: of a sweep over rates with one seed all, of others what comes first."""
    monkeypatch.delenv("COLUMNS", raising=False)
    page, stream = sweep_page(swept(RATE), "edgebed sweep"), io.StringIO()
    show(page.brief, Console(file=stream, width=200))
    whole, changed = to_markdown(page), {}
    for name, (result, end) in PAGES.items():
        other = to_markdown(sweep_page(result, "edgebed sweep"))
        changed[name] = goldens.changes(whole.partition(end)[0], other.partition(end)[0])

    goldens.compare(
        f"{whole}\n{stream.getvalue()}{goldens.sections(changed)}", Path(__file__).parent / "goldens/sweep.txt"
    )


def test_a_sweep_ends_at_its_own_measure_whatever_its_trials_end_at(tmp_path: Path) -> None:
    """Alone each variant ends at its value; the sweep's takes the place of all of them."""
    text = SWEEP.replace("stop: {", "stop: { measure: loss, at: 0.1,").replace(
        "{ method: sync-sgd }", "{ method: sync-sgd, stop: { measure: loss, at: 1 } }"
    )
    points = read_points(write_sweep(tmp_path, text))

    assert {trial.stop.level.measure for trial in points.scenario.trials.values() if trial.stop.level} == {"loss"}
    assert {trial.plan.stop_level for _, trial in points.planned()} == {points.level}


def test_measured_times_are_found_again_by_what_they_are_of(points: SweepPlan, tmp_path: Path) -> None:
    """Methods with the same task share a gradient's time; each compression has its own."""
    trials = {point.method: trial for point, trial in points.planned()}
    parts = {name: trial.plan.nodes[0].method.parts["compression"] for name, trial in trials.items()}
    task = trials["dense"].plan.nodes[0].task
    parameters = sum(tensor.size for tensor in task.layout)
    costs = Costs(
        cpu="A processor",
        gradients=(
            GradientCost(
                data="digits",
                model="small",
                batch_size=10,
                inputs="unit",
                objective=Part(name="classification"),
                seconds=2e-3,
            ),
        ),
        compressions=tuple(
            CompressionCost(model="small", parameters=parameters, compression=part, seconds=k * 1e-4, restore_s=0.0)
            for k, part in enumerate(parts.values())
        ),
    )
    write_costs(costs, tmp_path / "costs.json")

    assert read_costs(tmp_path / "costs.json") == costs
    assert times_of(trials["dense"], costs) == {"gradient_time": "2ms", "compression_time": "0s"}
    assert times_of(trials["top-k"], costs) == {"gradient_time": "2ms", "compression_time": "100us"}
    plan = trials["top-k"].plan
    cores = [msgspec.structs.replace(node, core=Core.of_speed(2e9)) for node in plan.workers()]
    of_speed = dataclasses.replace(trials["top-k"], plan=msgspec.structs.replace(plan, nodes=tuple(cores)))
    assert times_of(of_speed, costs) == {"compression_time": format_duration(rounded(task.gradient_time_s / 20))}
    assert read_costs(tmp_path / "none.json") == Costs()
    other = Part(name="none", settings={"values": "float16"})
    assert costs.compression(task, trials["dense"].plan.nodes[0].method)
    larger = msgspec.structs.replace(task, layout=(*task.layout, TensorLayout("more", (2,))))
    assert costs.compression(larger, trials["dense"].plan.nodes[0].method) is None
    assert all(cost.compression != other for cost in costs.compressions)
    assert with_costs(trials["dense"], costs, print) is costs
    with pytest.raises(EdgebedError, match="of another processor, A processor, and dense has none yet"):
        with_costs(trials["dense"], Costs(cpu="A processor"), print)
    (tmp_path / "costs.json").write_text("[]")
    with pytest.raises(EdgebedError, match=r"costs.json: .*; remove the file to measure anew"):
        read_costs(tmp_path / "costs.json")
