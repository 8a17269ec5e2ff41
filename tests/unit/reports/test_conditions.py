"""Where the verdict shows: summary, expectations, terminal, report, `edgebed link show`, metrics."""

import io
import json

import msgspec
import pytest
from conditioned_runs import MBIT, PROBLEM, run_of
from prometheus_client import generate_latest
from rich.console import Console
from sample_runs import make_plan
from typer.testing import CliRunner

from edgebed.cli.main import app
from edgebed.core import records
from edgebed.core.planned.link import LinkPlan
from edgebed.core.quantities import VERDICTS, rate_text
from edgebed.journal.outcome import outcome_of
from edgebed.journal.verdict.fidelity import Fidelity
from edgebed.journal.verdict.hosts import HostConditions
from edgebed.journal.verdict.measured import DirectionConditions, NodeConditions
from edgebed.metrics.exporter import NodeMetrics
from edgebed.metrics.table import METRICS
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.reports.live.event_text import event_text
from edgebed.reports.run.brief import links_brief
from edgebed.reports.run.conditions_text import HOST_HEAD, condition_parts, latency_text, link_rows
from edgebed.reports.run.report import met_cell, report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import Span
from edgebed.reports.writing.terminal import show
from edgebed.running.results import Run


def printed(brief, run):
    """What a terminal shows of a run."""
    out = io.StringIO()
    show(brief(run), Console(file=out, width=200))
    return out.getvalue()


@pytest.mark.parametrize(
    ("problem", "expects_trusted", "exit_code"),
    [("", False, 0), ("", True, 0), (PROBLEM, False, 0), (PROBLEM, True, 1)],
)
def test_the_verdict_changes_the_exit_code_only_where_it_is_expected(tmp_path, problem, expects_trusted, exit_code):
    """`expect: {verdict: trusted}` is an expectation like any other."""
    run = run_of(tmp_path, problem=problem, expects_trusted=expects_trusted)

    assert run.exit_code == exit_code
    assert run.summary.trials[0].fidelity.verdict == ("degraded" if problem else "trusted")


@pytest.mark.usefixtures("undrawn")
def test_a_simulation_is_not_judged_by_whether_it_can_be_trusted(tmp_path):
    """It measures no conditions: that is said, and fails nothing; other expectations are judged."""
    run = run_of(tmp_path, expects_trusted=True, runtime="simulation")
    (trial,) = run.summary.trials
    page = to_html(report_page(run))
    assert '<td class="long quiet">not judged in a simulation</td>' in page
    assert '<p class="badge good">' in page
    assert "<li>modelled</li>" in page
    unmeasured = msgspec.structs.replace(trial.expectations[1], measured=None)
    assert met_cell(unmeasured, ran_to_end=False) == Span("not judged in a simulation", "quiet")


def test_a_verdict_has_one_word_everywhere():
    """That of `summary.json`; its reasons follow, if it has any."""
    for word in VERDICTS:
        assert Fidelity(verdict=word, reasons=("why",)).lines == (f"{word}: why",)
        assert Fidelity(verdict=word).lines == (word,)
    (metric,) = [each for each in METRICS if each.name == "edgebed_trial_verdict"]
    assert ", ".join(f"{place} {word}" for place, word in enumerate(VERDICTS)) in metric.help


def test_a_simulation_of_which_only_trust_was_expected_completes(tmp_path):
    """There is nothing to meet, and nothing missed."""
    (trial,) = run_of(tmp_path, expects_trusted=True, runtime="simulation").summary.trials
    alone = msgspec.structs.replace(trial, expectations=trial.expectations[1:])

    found = outcome_of([alone])
    assert (found.exit_code, found.badge) == (0, "completed, modelled")
    assert found.text == "What the scenario expects is not judged in a simulation."


def test_the_summary_has_the_rows_that_the_verdict_rests_on(tmp_path):
    """As JSON, for programs."""
    (trial,) = json.loads(run_of(tmp_path).summary_json())["trials"]
    row = next(row for row in trial["fidelity"]["nodes"] if row["node"] == "edge-0")

    assert trial["fidelity"]["verdict"] == "trusted"
    assert row["uplink"]["held_bit_s"] == 10 * MBIT
    assert row["uplink"]["measured_bit_s"] == pytest.approx((1_410_000 - 100 * 1600) * 8 / 1.01)
    assert row["starved"] == pytest.approx(0.05)


def test_the_report_says_what_measured_each_condition_and_for_how_long(tmp_path):
    """Conditions that one source measured are in one row; of a class the node of which the least was seen is named."""
    fidelity = run_of(tmp_path).summary.trials[0].fidelity
    some = [
        msgspec.structs.replace(row, node="edge-1", observed_s=0.95 * row.owed_s, nodes=2)
        for row in fidelity.evidence if row.subject == "edge"
    ]  # fmt: skip
    *_, section, _ = condition_parts(msgspec.structs.replace(fidelity, evidence=tuple(some)))
    (grid,) = section.parts

    assert [row[:4] for row in grid.rows] == [
        ("uplink rate, MTU", "edge", "read back by the node from tc", "95 % (edge-1)"),
        ("time of pushes, time of models", "edge", "messages", "95 % (edge-1)"),
        ("stops", "edge", "gaps of its own clock", "95 % (edge-1)"),
        (
            "what the node says of itself",
            "edge",
            "the controller, from outside; not seen: nobody looked at it from outside",
            "95 % (edge-1)",
        ),
    ]


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (LinkPlan(), "–"),
        (LinkPlan(latency_s=0.02, jitter_s=0.005), "20ms±5ms"),
        (LinkPlan(latency_s=0.04, loss=0.01), "40ms loss 1%"),
    ],
)
def test_latency_and_loss_stand_as_they_were_asked(link, text):
    """With their units."""
    node = NodeConditions(
        node="edge-0", role="worker", device_class="edge", uplink=DirectionConditions(direction="up"),
        downlink=DirectionConditions(direction="down"),
        latency_s=link.latency_s, jitter_s=link.jitter_s, loss=link.loss,
    )  # fmt: skip

    assert latency_text(node) == text


def test_a_link_that_changed_is_held_as_asked_or_was_not_for_so_long():
    """The last rate alone would say nothing."""
    up = DirectionConditions(direction="up", asked_low_bit_s=MBIT, asked_high_bit_s=10 * MBIT, held_bit_s=MBIT)
    node = NodeConditions(
        node="edge-0",
        role="worker",
        device_class="edge",
        uplink=up,
        downlink=DirectionConditions(direction="down"),
        mechanism="tc",
    )

    assert next(link_rows([node]))[3] == "as asked"
    assert next(link_rows([msgspec.structs.replace(node, differed=3)]))[3] == "differed 3 s"


def test_links_of_a_run_in_progress_are_not_said_to_break_off(tmp_path):
    """Its journal has no end because it is still being written; once nobody writes it, it has broken off."""
    folder = run_of(tmp_path).folder
    journal = folder.trial("adacomp").journal
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"kind":"ended"' not in line))

    with folder.locked():
        in_progress = printed(links_brief, Run(folder))
    left = printed(links_brief, Run(folder))

    assert "– adacomp: running" in in_progress
    assert "✗" not in in_progress
    assert "✗ adacomp: unfinished: the journal breaks off" in left


def test_links_are_shown_to_programs(tmp_path):
    """`edgebed link show RUN --json`."""
    run = run_of(tmp_path, problem=PROBLEM)
    done = CliRunner().invoke(app, ["link", "show", str(run.path), "--json"])
    found = {(row["node"], row["direction"]): row for row in json.loads(done.stdout)}

    assert done.exit_code == 0
    assert found["edge-0", "uplink"]["asked_high_bit_s"] == 10 * MBIT
    assert found["edge-0", "uplink"]["held_bit_s"] == 20 * MBIT
    assert found["edge-0", "uplink"]["problems"] == [PROBLEM]
    assert ("server", "uplink") not in found, "nothing was asked of its link"


@pytest.mark.parametrize(
    ("bit_s", "text"), [(None, "–"), (800.0, "800 bit"), (64_000, "64 kbit"), (9.94e6, "9.94 mbit"), (1e9, "1 gbit")]
)
def test_rates_are_written_as_tc_writes_them(bit_s, text):
    """So that they can be compared with the scenario."""
    assert rate_text(bit_s) == text


def exposed(metrics):
    """The lines that Prometheus would read, without comments, as name and labels -> value."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_a_node_exports_its_link_and_what_it_was_kept_from():
    """Rates in bytes a second; what has no limit is absent, also after it had one."""
    metrics = NodeMetrics("worker")
    asked = records.Link(mechanism="tc", interface="data", uplink_asked=8 * MBIT, uplink_held=16 * MBIT, problem="!")
    metrics.observe(asked)
    metrics.observe(records.Usage(time_s=2.0, cpu_s=1.0, starved_s=0.5, uplink_bytes=1000, uplink_drops=3))
    metrics.observe(records.Usage(time_s=4.0, cpu_s=2.0, starved_s=0.75, uplink_bytes=3000, uplink_drops=4))
    for name in ("edge-0", "edge-1"):
        took = records.Transfers(name=name, direction="up", messages=1, bytes=1, time_s=2.0, asked_s=1.5)
        metrics.observe(took)
    found = exposed(metrics)

    assert found['edgebed_link_asked_bytes_per_second{direction="egress"}'] == MBIT
    assert found['edgebed_link_held_bytes_per_second{direction="egress"}'] == 2 * MBIT
    assert 'edgebed_link_held_bytes_per_second{direction="ingress"}' not in found
    assert found["edgebed_link_differs"] == 1
    assert found['edgebed_link_bytes_total{direction="egress",interface="data"}'] == 3000
    assert found['edgebed_link_dropped_packets_total{direction="egress"}'] == 4
    assert found["edgebed_starved_seconds_total"] == 0.75
    assert found["edgebed_transfer_seconds_total"] == 4.0
    assert found["edgebed_transfer_asked_seconds_total"] == 3.0
    metrics.observe(records.Link(mechanism="tc", interface="data"))
    assert not any(name.startswith("edgebed_link_held") for name in exposed(metrics))


def test_the_controller_exports_the_host_and_the_verdict():
    """The verdict is absent until the trial is over, and forgotten by the next one."""
    metrics = TrialMetrics()
    labels, of_host = '{run="sample/0001",trial="adacomp"}', '{host="",run="sample/0001",trial="adacomp"}'
    metrics.start_trial(make_plan(), "sample/0001", "process", 0.0)
    metrics.observe(records.HostLoad(busy=0.5, steal=0.1, load=2.0, lag_s=0.004, cores=2))
    before = exposed(metrics)
    metrics.judge_trial(verdict="modelled", steps_per_s=12.5)
    after = exposed(metrics)
    metrics.start_trial(make_plan(), "sample/0001", "process", 0.0)

    assert before[f"edgebed_host_busy_ratio{of_host}"] == 0.5
    assert before[f"edgebed_host_wake_lag_seconds{of_host}"] == 0.004
    assert not any(name.startswith("edgebed_host_network") for name in before)
    assert f"edgebed_trial_verdict{labels}" not in before
    assert after[f"edgebed_trial_verdict{labels}"] == 2.0
    assert after[f"edgebed_trial_steps_per_second{labels}"] == 12.5
    assert f"edgebed_trial_verdict{labels}" not in exposed(metrics)


def test_the_controller_exports_each_of_several_hosts():
    """With what passes its network, against the rate where that is known."""
    metrics = TrialMetrics()
    metrics.start_trial(make_plan(), "r/1", "docker", 0.0)
    for host, busy, rate_bit_s in (("a", 0.25, 8_000), ("b", 0.75, 0)):
        metrics.observe(
            records.HostLoad(
                busy=busy, steal=0.0, load=1.0, lag_s=0.001, host=host, received_bytes_s=300.0, sent_bytes_s=200.0,
                rate_bit_s=rate_bit_s,
            )
        )  # fmt: skip
    found = exposed(metrics)
    network = "edgebed_host_network_bytes_per_second"

    busy = [found[f'edgebed_host_busy_ratio{{host="{host}",run="r/1",trial="adacomp"}}'] for host in "ab"]
    assert busy == [0.25, 0.75]
    assert found[f'{network}{{direction="ingress",host="b",run="r/1",trial="adacomp"}}'] == 300.0
    assert found[f'{network}{{direction="egress",host="b",run="r/1",trial="adacomp"}}'] == 200.0
    limits = {name: value for name, value in found.items() if name.startswith("edgebed_host_network_limit")}
    assert limits == {'edgebed_host_network_limit_bytes_per_second{host="a",run="r/1",trial="adacomp"}': 1000.0}


def test_the_report_has_a_row_for_each_of_several_hosts():
    """With its network, and says of each node where it was; one machine alone has the table that it always had."""
    link = DirectionConditions(direction="up")
    node = NodeConditions(node="edge-0", role="worker", device_class="edge", host="b", uplink=link, downlink=link)
    hosts = tuple(
        HostConditions(
            host=host,
            busy=0.5,
            steal=0.0,
            load=1.0,
            lag_s=0.001,
            network_bit_s=bit_s,
            network_rate_bit_s=rate,
            slew=slew,
        )
        for host, bit_s, rate, slew in (("a", 5e8, 10**9, 0.0001), ("b", 5e8, 0, 0.02), ("c", None, 0, 0.0))
    )
    _, told, _, each = condition_parts(Fidelity(verdict="trusted", hosts=hosts, nodes=(node,)))
    _, alone, _, nodes = condition_parts(
        Fidelity(verdict="trusted", host=hosts[0], nodes=(msgspec.structs.replace(node, host=""),))
    )

    assert [(row[0], *row[-3:]) for row in told.rows] == [
        ("a", "500 mbit", "1 gbit", "50 %"),
        ("b", "500 mbit", "–", "–"),
        ("c", "–", "–", "–"),
    ]
    assert (each.parts[0].head[:2], each.parts[0].rows[0][:2]) == (("node", "host"), ("edge-0", "b"))
    assert [row[told.head.index("clock off by")] for row in told.rows] == ["–", "2.0 %", "–"]
    assert (alone.head, len(alone.rows), nodes.parts[0].head[1]) == (HOST_HEAD[:-1], 1, "uplink: asked")
    assert {len(grid.head) - len(row) for grid in (told, alone, each.parts[0]) for row in grid.rows} == {0}


def test_a_record_of_a_host_says_which_and_what_passed_its_network():
    """In `edgebed events`; of one machine alone what it always did."""
    load = records.HostLoad(busy=0.5, steal=0.0, load=1.0, lag_s=0.001)
    of_host = msgspec.structs.replace(
        load, host="lab-1", received_bytes_s=1_250_000.0, sent_bytes_s=125_000.0, rate_bit_s=10**9
    )

    assert event_text(load) == "the host was 50.00 % busy: load 1 a core, sleepers woke 1 ms late"
    assert event_text(of_host).startswith("host lab-1 was 50.00 % busy: ")
    assert "its clock ran 2.00 % slow" in event_text(msgspec.structs.replace(load, slew=-0.02))
    assert event_text(of_host).endswith(", 10 mbit came from other hosts, 1 mbit went to them, of 1 gbit each way")
