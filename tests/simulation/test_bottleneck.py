"""What a report says of a step of shards: where its time went, links included, and what holds it up."""

import msgspec
import pytest
from quick_runs import run

from edgebed.reports.run.answer import answer_lines
from edgebed.reports.run.report import report_page
from edgebed.reports.run.step_breakdown import LINK, NODE, bottleneck_text, busy_of
from edgebed.reports.writing.html import to_html

SCENARIO = {
    "name": "shards",
    "question": "Why is it slow?",
    "task": {"data": "digits", "model": "four-layer", "width": 2, "batch_size": 20, "gradient_time": "40ms"},
    "method": "back-propagation",
    "fleet": {"near": {"count": 2}, "far": {"count": 1, "uplink": "1mbit", "downlink": "1mbit", "latency": "5ms"}},
    "shards": {"cuts": "even"},
    "evaluation": {"every": "100 updates"},
    "stop": {"updates": 100},
}


@pytest.fixture(scope="module")
def on_a_slow_link(tmp_path_factory):
    """A run of which the link to the last shard takes the most time."""
    return run(SCENARIO, runtime="simulation", runs_dir=tmp_path_factory.mktemp("runs"))


def test_the_time_on_links_is_a_part_of_a_step(on_a_slow_link):
    """Where shards take turns, computing and messages together are the step; the rest is weights that are evaluated."""
    (trial,) = on_a_slow_link.trials.values()
    busy = busy_of(trial)

    assert {each.kind for each in busy} == {NODE, LINK}
    assert sum(each.share for each in busy) == pytest.approx(1.0, abs=0.1)
    assert sum(each.step_s for each in busy) == pytest.approx(1.0 / trial.summary.shards.steps_per_s, rel=0.1)
    assert [each.share for each in busy] == sorted((each.share for each in busy), reverse=True)


def test_the_page_names_the_bottleneck(on_a_slow_link):
    """In the answer, and as the first row of a chart; no column is of time that was not spent."""
    (trial,) = on_a_slow_link.trials.values()
    text = bottleneck_text(trial)
    document = to_html(report_page(on_a_slow_link))

    assert text.startswith(("near-1 → far-0 takes ", "far-0 → near-1 takes "))
    assert answer_lines([trial])[0].endswith(f" holds each up: back-propagation {speed(trial)} ({text}).")
    assert "back-propagation: what holds a step up" in document
    assert document.index("What holds a step up") < document.index("<h2>Charts</h2>")
    assert "teaching modules" not in document


def test_a_slow_device_is_the_bottleneck_where_links_are_fast(tmp_path):
    """It computes for most of a step."""
    fleet = {"near": {"count": 2}, "far": {"count": 1, "compute_speed": 0.1}}
    found = run(SCENARIO | {"fleet": fleet}, runtime="simulation", runs_dir=tmp_path)

    assert bottleneck_text(found.trials["back-propagation"]).startswith("far-0 computes for ")


def test_what_was_measured_counts_before_what_links_should_take(on_a_slow_link):
    """Where nodes measured how long the messages of a pair were on their way."""
    (trial,) = on_a_slow_link.trials.values()
    before = {each.name: each for each in busy_of(trial)}
    nodes = trial.summary.fidelity.nodes
    pair = "near-1 → far-0"
    way = msgspec.structs.replace(nodes[0].uplink, to="far-0", time_s=1.0, messages=100)
    measured = [msgspec.structs.replace(each, pairs=(way,) if each.node == "near-1" else ()) for each in nodes]
    fidelity = msgspec.structs.replace(trial.summary.fidelity, nodes=tuple(measured))
    trial.__dict__["summary"] = msgspec.structs.replace(trial.summary, fidelity=fidelity)
    after = {each.name: each for each in busy_of(trial)}

    assert after[pair].step_s == pytest.approx(1.0 / 100, rel=0.1)
    assert after.keys() == before.keys()
    assert after["far-0"] == before["far-0"]


def speed(trial):
    """Its steps a second as a sentence has them."""
    return f"{trial.summary.shards.steps_per_s:.3g}"
