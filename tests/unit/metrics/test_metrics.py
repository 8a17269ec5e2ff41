"""Records go in, Prometheus samples come out: `metrics/exporter.py`, `metrics/trial_metrics.py`."""

import time
import timeit

import msgspec
import pytest
from evaluated import MEASURES, evaluation
from hypothesis import given
from hypothesis import strategies as st
from node_plans import plan_of_role
from prometheus_client import CollectorRegistry, Counter, generate_latest

from edgebed.core import records
from edgebed.core.plan import Method, Part, Plan, Task, TensorLayout
from edgebed.core.quantities import RESULTS
from edgebed.metrics import table
from edgebed.metrics.exporter import NodeMetrics
from edgebed.metrics.trial_metrics import TrialMetrics

RUN = "quickstart/0001"
METHOD = Method(
    name="adacomp", parts={"aggregation": Part(name="a"), "compression": Part(name="b"), "local_work": Part(name="c")}
)
TASK = Task(
    model="small",
    input_shape=(1, 8, 8),
    classes=10,
    layout=(TensorLayout("w", (10,)),),
    batch_size=10,
    gradient_time_s=0.001,
)

TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=2, parameters=6)


def update(**changes) -> records.Update:
    """An update record with the given fields."""
    fields = {
        "worker": "edge-0", "incarnation": 0, "step": 0, "version": 1, "base": 0, "staleness": 0, "entries": 21,
        "bits": 1344, "bytes": 160, "loss": 2.3,
    }  # fmt: skip
    return records.Update(**(fields | changes))


def plan(num_workers: int = 2, **changes) -> Plan:
    """A small plan: a server, an evaluator and some workers of one class."""

    def node(name, role, device_class):
        return plan_of_role(node=name, role=role, device_class=device_class, seed=7, task=TASK, method=METHOD)

    workers = [node(f"edge-{index}", "worker", "edge") for index in range(num_workers)]
    nodes = (node("server", "server", "server"), node("evaluator", "evaluator", "evaluator"), *workers)
    return Plan(scenario="quickstart", trial="adacomp", question="?", seed=7, measures=MEASURES, nodes=nodes, **changes)


def metrics_of(role: str) -> NodeMetrics | TrialMetrics:
    """Fresh ones."""
    return TrialMetrics() if role == "controller" else NodeMetrics(role)


def sample(metrics: NodeMetrics | TrialMetrics, name: str, **labels: str) -> float | None:
    """The value of one series as a scrape would see it."""
    return metrics.registry.get_sample_value(name, labels)


def sample_of_trial(metrics: NodeMetrics | TrialMetrics, name: str, **labels: str) -> float | None:
    """The value of one of the controller's series, which name run and trial."""
    return sample(metrics, name, run=RUN, trial=labels.pop("trial", "adacomp"), **labels)


@pytest.mark.parametrize("role", table.ROLES)
def test_a_role_exports_what_the_table_says_and_nothing_else(role):
    """The families in a scrape are the declared ones of the role; what this machine cannot tell may be absent."""
    metrics = metrics_of(role)
    exported = {family.name for family in metrics.registry.collect()}
    declared = {metric.name.removesuffix("_total") for metric in table.METRICS if role in metric.roles}
    resources = {metric.name.removesuffix("_total") for metric in table.RESOURCE_METRICS}

    assert exported <= declared
    assert declared - resources <= exported


@pytest.mark.parametrize("role", table.ROLES)
def test_any_record_may_be_observed_by_any_role(role):
    """A record that says nothing about a role changes nothing in it, and a scrape after it is whole."""
    metrics = metrics_of(role)
    if role == "controller":
        metrics.start_trial(plan(), RUN, "process", 0.0)
    for kind in records.RECORDS:
        fields = {field.name: _value(field) for field in msgspec.structs.fields(kind) if field.required}
        metrics.observe(kind(**(fields | ({"name": "edge-0", "state": "ready"} if kind is records.Node else {}))))

    assert b"edgebed_process_cpu_seconds_total" in generate_latest(metrics.registry)


def _value(field):
    return {} if field.name == "sums" else {int: 1, float: 1.0, str: "x"}.get(field.type, 1)


def test_an_update_counts_as_applied_with_its_staleness_and_its_own_bytes():
    """One applied update, one observation of staleness, its payload, bits / 8 of algorithm bytes."""
    metrics = NodeMetrics("server")
    metrics.observe(update(staleness=3, bits=1344, bytes=160))

    assert sample(metrics, "edgebed_ps_updates_total", result="applied") == 1
    assert sample(metrics, "edgebed_ps_update_staleness_versions_sum") == 3
    assert sample(metrics, "edgebed_ps_update_staleness_versions_bucket", le="2.0") == 0
    assert sample(metrics, "edgebed_ps_update_staleness_versions_bucket", le="4.0") == 1
    assert sample(metrics, "edgebed_ps_algorithm_bytes_total") == 168
    assert sample(metrics, "edgebed_ps_update_bytes_total") == 160


@given(st.lists(st.integers(min_value=0, max_value=1000)))
def test_the_staleness_buckets_count_exactly(staleness):
    """Each bucket holds the number of updates at most that stale; staleness 0 is told apart from 1."""
    metrics = NodeMetrics("server")
    for value in staleness:
        metrics.observe(update(staleness=value))

    for bound in table.STALENESS_BUCKETS:
        counted = sample(metrics, "edgebed_ps_update_staleness_versions_bucket", le=f"{float(bound)}")
        assert counted == sum(value <= bound for value in staleness)


def test_payload_is_counted_by_direction_and_kind():
    """What the shell counts shows up under its kind, and kinds not seen yet show 0."""
    metrics = NodeMetrics("server")
    metrics.count_bytes("ingress", "push", 12_700)
    metrics.count_bytes("ingress", "push", 300)
    metrics.count_bytes("egress", "model", 847_000)

    assert sample(metrics, "edgebed_ps_ingress_bytes_total", kind="push") == 13_000
    assert sample(metrics, "edgebed_ps_ingress_bytes_total", kind="join") == 0
    assert sample(metrics, "edgebed_ps_egress_bytes_total", kind="model") == 847_000


def test_interface_bytes_follow_the_totals_of_traffic_records():
    """The counter ends at the last record's total, whatever the steps on the way, and None changes nothing."""
    metrics = NodeMetrics("server")
    for total in (100, None, 250, 250):
        record = records.Traffic(
            ingress_payload=0, egress_payload=0, ingress_interface=total, egress_interface=total, interface="lo"
        )
        metrics.observe(record)

    assert sample(metrics, "edgebed_link_bytes_total", direction="ingress", interface="lo") == 250


def test_pulls_and_acknowledgements_follow_the_totals_of_traffic_records():
    """Whole models and changed entries apart; where acknowledgements are not known their counter stays."""
    metrics = NodeMetrics("server")
    for pulls, acknowledged in ((2, 660), (3, None), (5, 1320)):
        record = records.Traffic(
            ingress_payload=0, egress_payload=0, pulls=pulls, pull_bytes=pulls * 800, pulls_changed=pulls - 2,
            pull_changed_bytes=(pulls - 2) * 100, ack_bytes=acknowledged,
        )  # fmt: skip
        metrics.observe(record)

    assert sample(metrics, "edgebed_ps_pulls_total", pull="full") == 2
    assert sample(metrics, "edgebed_ps_pulls_total", pull="changed-since") == 3
    assert sample(metrics, "edgebed_ps_pull_bytes_total", pull="full") == 5 * 800 - 3 * 100
    assert sample(metrics, "edgebed_ps_pull_bytes_total", pull="changed-since") == 300
    assert sample(metrics, "edgebed_ps_acknowledgement_bytes_total") == 1320


def test_a_refusal_is_counted_by_its_code_and_a_dropped_message_by_its_socket():
    """Neither counts as an applied update."""
    metrics = NodeMetrics("server")
    metrics.observe(records.Refused(peer="edge-0", code="stale-incarnation", reason="incarnation 1 has joined"))
    metrics.observe(records.Dropped(socket="data", reason="no header"))

    assert sample(metrics, "edgebed_ps_updates_total", result="stale-incarnation") == 1
    assert sample(metrics, "edgebed_ps_updates_total", result="applied") == 0
    assert sample(metrics, "edgebed_messages_dropped_total", socket="data") == 1


def test_a_record_that_stands_for_a_flood_counts_as_many():
    """Of a flood only the first messages have records of their own; the counters know of all."""
    metrics = NodeMetrics("server")
    metrics.observe(records.Refused(peer="edge-0", code="malformed", reason="a shape", count=30))
    metrics.observe(records.Dropped(socket="data", reason="no header", count=500))

    assert sample(metrics, "edgebed_ps_updates_total", result="malformed") == 30
    assert sample(metrics, "edgebed_messages_dropped_total", socket="data") == 500


def test_a_workers_phases_are_taken_from_its_running_totals():
    """Counters follow the totals; the histogram gets one observation for each step, with the mean of its stretch."""
    metrics = NodeMetrics("worker")
    metrics.observe(records.Phases(steps=1, compute_s=1.0, encode_s=0.5, wait_s=0.25, pause_s=0.25))
    metrics.observe(records.Phases(steps=3, compute_s=2.0, encode_s=1.0, wait_s=1.5, pause_s=0.5))

    assert sample(metrics, "edgebed_worker_iterations_total") == 3
    assert sample(metrics, "edgebed_worker_phase_seconds_total", phase="compute") == 2.0
    assert sample(metrics, "edgebed_worker_phase_seconds_total", phase="wait") == 1.5
    assert sample(metrics, "edgebed_worker_step_duration_seconds_count") == 3
    assert sample(metrics, "edgebed_worker_step_duration_seconds_sum") == 5.0


def test_a_second_without_a_finished_step_counts_its_waiting():
    """It belongs to its phase at once, and to the step when that has ended: so a freeze of three seconds is seen."""
    metrics = NodeMetrics("worker")

    def within(bound: str) -> float | None:
        return sample(metrics, "edgebed_worker_step_duration_seconds_bucket", le=bound)

    metrics.observe(records.Phases(steps=0, compute_s=0.0, encode_s=0.0, wait_s=9.0, pause_s=0.0))
    metrics.observe(records.Phases(steps=1, compute_s=1.0, encode_s=0.0, wait_s=9.0, pause_s=0.0))
    metrics.observe(records.Phases(steps=1, compute_s=1.0, encode_s=0.0, wait_s=12.0, pause_s=0.0))

    assert sample(metrics, "edgebed_worker_phase_seconds_total", phase="wait") == 12.0
    assert sample(metrics, "edgebed_worker_step_duration_seconds_count") == 1

    metrics.observe(records.Phases(steps=11, compute_s=2.0, encode_s=0.0, wait_s=12.0, pause_s=0.0))

    assert sample(metrics, "edgebed_worker_step_duration_seconds_count") == 11
    assert sample(metrics, "edgebed_worker_step_duration_seconds_sum") == pytest.approx(1.0 + 3.0 + 1.0)
    assert (within("0.1"), within("2.5"), within("5.0")) == (9.0, 10.0, 11.0)

    metrics.observe(records.Phases(steps=31, compute_s=2.0, encode_s=0.0, wait_s=16.0, pause_s=0.0))

    assert sample(metrics, "edgebed_worker_step_duration_seconds_sum") == pytest.approx(5.0 + 4.0)
    assert (within("0.1"), within("2.5"), within("5.0")) == (28.0, 29.0, 31.0)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["joined", "ready", "running", "stopped", "died"]))))
def test_the_node_counts_always_add_up_to_the_plan(changes):
    """Whatever the nodes do, each is in exactly one state."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(num_workers=3), RUN, "process", 0.0)
    for index, state in changes:
        metrics.observe(records.Node(name=f"edge-{index}", state=state))
    counts = [
        value.value
        for family in metrics.registry.collect()
        if family.name == "edgebed_nodes"
        for value in family.samples
    ]

    assert sum(counts) == 5
    assert min(counts) >= 0


def test_a_node_that_dies_is_one_crash_of_its_class():
    """A node that stops when told is none."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    for name, state in (("edge-0", "running"), ("edge-0", "died"), ("edge-1", "stopped")):
        metrics.observe(records.Node(name=name, state=state))

    assert sample_of_trial(metrics, "edgebed_crashes_total", device_class="edge") == 1
    assert sample_of_trial(metrics, "edgebed_nodes", device_class="edge", state="died") == 1
    assert sample_of_trial(metrics, "edgebed_nodes", device_class="edge", state="running") == 0
    assert sample_of_trial(metrics, "edgebed_nodes", device_class="server", state="expected") == 1


def test_a_crash_is_dated_and_named():
    """A node that did not crash has no series."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    before_s = time.time()
    metrics.observe(records.Node(name="edge-0", state="died"))
    name = "edgebed_node_last_crash_timestamp_seconds"

    assert before_s <= sample_of_trial(metrics, name, device_class="edge", node="edge-0") <= time.time()
    assert sample_of_trial(metrics, name, device_class="edge", node="edge-1") is None


def test_the_controller_tells_what_runs_and_how_well():
    """Run info, start, progress by updates, accuracy and loss of the last evaluation."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(stop_updates=400), RUN, "process", 1_700_000_000.0)
    metrics.observe(update(version=100))
    metrics.observe(evaluation(version=100, accuracy=0.91, loss=0.3))
    info = {"scenario": "quickstart", "algorithm": "adacomp", "seed": "7", "runtime": "process"}

    assert sample_of_trial(metrics, "edgebed_run_info", **info) == 1
    assert sample_of_trial(metrics, "edgebed_run_start_timestamp_seconds") == 1_700_000_000.0
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.25
    assert sample_of_trial(metrics, "edgebed_model_version") == 100
    assert sample_of_trial(metrics, "edgebed_model_accuracy_ratio", split="test") == 0.91
    assert sample_of_trial(metrics, "edgebed_model_loss", split="test") == 0.3


@given(st.lists(st.integers(0, 10_000)), st.integers(0, 10_000))
def test_the_controller_counts_the_bytes_of_all_updates(payloads, applied_bytes):
    """From 0 on, or from what there was where a trial goes on, whatever becomes of the server; anew for each trial."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0, applied_bytes=applied_bytes)
    assert sample_of_trial(metrics, "edgebed_run_update_bytes_total") == applied_bytes
    for payload_bytes in payloads:
        metrics.observe(update(bytes=payload_bytes))
        metrics.observe(records.Node(name="server", state="died"))
    assert sample_of_trial(metrics, "edgebed_run_update_bytes_total") == applied_bytes + sum(payloads)

    metrics.start_trial(plan(), RUN, "process", 0.0)
    metrics.observe(update(bytes=160))
    assert sample_of_trial(metrics, "edgebed_run_update_bytes_total") == 160


def passed(ingress: int, pulled: int) -> records.Traffic:
    """What a server says of one of its lives."""
    return records.Traffic(ingress_payload=ingress, egress_payload=pulled + 1, pull_bytes=pulled)


def totals_of(metrics: TrialMetrics) -> list[float | None]:
    """Payload of models, all payload into the server and out of it."""
    server = "edgebed_run_server_bytes_total"
    return [
        sample_of_trial(metrics, "edgebed_run_pull_bytes_total"),
        sample_of_trial(metrics, server, direction="ingress"),
        sample_of_trial(metrics, server, direction="egress"),
    ]


def test_totals_of_the_server_are_those_of_all_its_lives():
    """They never fall when it comes back, go on where a trial goes on, and begin anew with each trial."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    seen = [totals_of(metrics)]
    for said in (
        passed(100, 40), passed(300, 50), records.Node(name="server", state="died"),
        records.Node(name="server", state="joined", incarnation=1), passed(0, 0), passed(7, 60),
    ):  # fmt: skip
        metrics.observe(said, "server" if isinstance(said, records.Traffic) else "controller")
        seen.append(totals_of(metrics))
    metrics.observe(passed(1_000, 1_000), "edge-0")

    assert seen == sorted(seen)
    assert (seen[0], seen[-1], totals_of(metrics)) == ([0, 0, 0], [110, 307, 112], [110, 307, 112])

    metrics.start_trial(plan(), RUN, "process", 0.0, past_traffic=passed(500, 200))
    assert totals_of(metrics) == [200, 500, 201]
    metrics.observe(passed(7, 60), "server")
    assert totals_of(metrics) == [260, 507, 262]

    metrics.start_trial(plan(), RUN, "process", 0.0)
    assert totals_of(metrics) == [0, 0, 0]


def test_the_controller_counts_what_was_refused_and_dropped_by_all_lives_of_a_node():
    """By the refusal's code and the socket, whoever said it."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    for _ in range(2):
        metrics.observe(records.Refused(peer="edge-0", code="not-joined", reason="", count=3), "server")
        metrics.observe(records.Dropped(socket="data", reason="no header", count=2), "edge-0")
        metrics.observe(records.Node(name="server", state="joined", incarnation=1), "controller")

    assert sample_of_trial(metrics, "edgebed_run_refused_total", result="not-joined") == 6
    assert sample_of_trial(metrics, "edgebed_run_messages_dropped_total", socket="data") == 4
    assert sample_of_trial(metrics, "edgebed_run_messages_dropped_total", socket="management") == 0


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_told_by_its_place_among_them(result):
    """Once the trial is over, and not before."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    assert sample_of_trial(metrics, "edgebed_trial_result") is None
    metrics.judge_trial(verdict=None, result=result)

    assert RESULTS[int(sample_of_trial(metrics, "edgebed_trial_result"))] == result


def test_progress_is_1_once_a_trial_has_completed_and_never_above():
    """A trial may complete early, by its accuracy, or a few updates late."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(stop_updates=400), RUN, "process", 0.0)
    metrics.observe(update(version=404))

    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 1.0

    metrics.start_trial(plan(stop_accuracy=0.9), RUN, "process", 0.0)

    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.0

    metrics.observe(records.Ended(outcome="completed", reason="accuracy reached"))

    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 1.0


def test_a_limit_of_time_counts_from_the_beginning_of_training():
    """Not from the launch; where a trial goes on, from when it first began, also when it has not begun again."""
    now = 1_000.0
    metrics = TrialMetrics(clock=lambda: now)
    metrics.start_trial(plan(stop_time_s=100.0), RUN, "process", 1_000.0)
    now = 1_030.0
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.0
    metrics.observe(TRIAL)
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.0
    now = 1_055.0
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.25
    metrics.observe(TRIAL)  # of a trial that broke off and went on, as replay reads it
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.25

    now = 2_000.0
    metrics.start_trial(plan(stop_time_s=100.0), RUN, "process", 2_000.0)
    metrics.observe(records.Continued(trained_s=50.0))
    now = 2_025.0
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.5, "it stands still until it goes on"
    metrics.observe(msgspec.structs.replace(TRIAL, trained_s=55.0))
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.55
    now = 2_045.0
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.75

    metrics.start_trial(plan(stop_time_s=100.0), RUN, "process", 2_025.0)
    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") == 0.0


def test_a_wall_clock_that_is_set_changes_no_progress(monkeypatch):
    """It says when the controller began, and is not looked at again."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(stop_time_s=100.0, stall_deadline_s=60.0), RUN, "process", metrics.clock())
    metrics.observe(TRIAL)
    began_s = time.time()
    monkeypatch.setattr(time, "time", lambda: 2.0 * began_s)

    assert sample_of_trial(metrics, "edgebed_run_progress_ratio") < 0.5
    assert sample_of_trial(metrics, "edgebed_run_stalled_ratio") < 0.5
    assert metrics.clock() == pytest.approx(began_s, abs=30.0)


STALLING = {
    "not before training begins, nor when it has ended; an update takes all of it back": [
        (30.0, None, 0.0), (0.0, TRIAL, 0.0), (30.0, None, 0.5), (0.0, update(version=3), 0.0), (15.0, None, 0.25),
        (0.0, records.Step(step=0), 0.0), (90.0, None, 1.0), (0.0, records.Ended(outcome="failed", reason=""), 0.0),
    ],
    "the final evaluation has as long again; then nodes may linger as long as they like": [
        (0.0, TRIAL, 0.0), (0.0, update(version=3), 0.0), (30.0, None, 0.5),
        (0.0, records.Finished(version=3, reason="?"), 0.0), (15.0, None, 0.25),
        (0.0, evaluation(version=2, accuracy=0.9, loss=0.3), 0.25),
        (0.0, evaluation(version=3, accuracy=0.9, loss=0.3, final=True), 0.0), (45.0, None, 0.0),
        (0.0, records.Step(step=3), 0.0), (45.0, None, 0.0),
        (0.0, records.Ended(outcome="interrupted", reason="?"), 0.0), (0.0, TRIAL, 0.0), (15.0, None, 0.25),
    ],
}  # fmt: skip
"""Seconds that pass, then what happens, and how much of a minute has passed without an update after that."""


@pytest.mark.parametrize("case", STALLING)
def test_a_trial_stalls_from_its_beginning_or_last_update_on(case):
    """Until its final model has been measured."""
    now = 1_000.0
    metrics = TrialMetrics(clock=lambda: now)
    metrics.start_trial(plan(stall_deadline_s=60.0), RUN, "process", 0.0)

    for passed_s, record, share in STALLING[case]:
        now += passed_s
        if record:
            metrics.observe(record)
        assert sample_of_trial(metrics, "edgebed_run_stalled_ratio") == share


def test_a_second_trial_forgets_the_first():
    """Run info and node counts are those of the trial that runs."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(num_workers=9), RUN, "process", 0.0)
    metrics.observe(evaluation(version=1, accuracy=0.9, loss=0.3))
    metrics.start_trial(msgspec.structs.replace(plan(num_workers=1), trial="asgd"), RUN, "process", 0.0)
    text = generate_latest(metrics.registry).decode()

    assert text.count("edgebed_run_info{") == 1
    assert 'trial="asgd"' in text
    assert sample_of_trial(metrics, "edgebed_nodes", trial="asgd", device_class="edge", state="expected") == 1
    assert 'edgebed_model_accuracy_ratio{run="quickstart/0001",split="test",trial="asgd"} NaN' in text


def test_no_created_series_are_exported():
    """They would double the number of series and mean nothing here."""
    metrics = NodeMetrics("server")
    metrics.observe(update())

    assert b"_created" not in generate_latest(metrics.registry)


def test_observing_an_update_costs_far_less_than_applying_it():
    """As much as ten counters that are increased, by the best of several tries; ten times that is a mistake."""
    metrics, counter = NodeMetrics("server"), Counter("one", "One.", registry=CollectorRegistry())
    record = update(staleness=200)
    observing_s, increasing_s = (
        min(timeit.repeat(each, number=2_000, repeat=5)) for each in (lambda: metrics.observe(record), counter.inc)
    )

    assert observing_s < 100 * increasing_s


def test_the_controller_counts_what_was_done_to_nodes():
    """By what came of it; only what was done has a time."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    for fields in ({}, {"problem": "no such process"}, {"moot": "it is being killed"}):
        metrics.observe(records.Fault(name="kill-1", action="kill", target="edge-0", asked_s=1.0, **fields))
    metrics.observe(records.Fault(name="cut-2", action="cut", target="edge-1", asked_s=1.0, problem="no link"))

    def count(action, result):
        name = "edgebed_faults_total"
        return sample_of_trial(metrics, name, device_class="edge", action=action, result=result)

    assert [count("kill", result) for result in ("done", "failed", "moot")] == [1, 1, 1]
    assert sample_of_trial(metrics, "edgebed_fault_timestamp_seconds", action="kill", node="edge-0") > 0
    assert sample_of_trial(metrics, "edgebed_fault_timestamp_seconds", action="cut", node="edge-1") is None


def test_the_controller_counts_what_was_lost():
    """Before anything is, the series are there; a restored server takes the version back."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)

    def lost(how):
        return sample_of_trial(metrics, "edgebed_updates_lost_total", how=how)

    assert (lost("unanswered"), lost("rolled-back")) == (0, 0)
    metrics.observe(update(version=120))
    metrics.observe(records.Unanswered(incarnation=1, joins=0, step=7, reason="broke"))
    metrics.observe(records.Unanswered(incarnation=1, joins=1, step=-1, reason="broke"))
    metrics.observe(records.Restored(version=100, incarnation=2))
    metrics.observe(records.Joined(worker="edge-0", incarnation=1, joins=2))

    assert (lost("unanswered"), lost("rolled-back")) == (1, 20)
    assert sample_of_trial(metrics, "edgebed_model_version") == 100
    assert sample_of_trial(metrics, "edgebed_joins_total", device_class="edge") == 1


def test_a_shard_counts_its_steps():
    """Those made again after a roll-back as well: a counter only grows."""
    metrics = NodeMetrics("worker")
    for step, history in ((0, 0), (1, 0), (0, 1)):
        metrics.observe(records.Step(step=step, history=history))

    assert sample(metrics, "edgebed_shard_steps_total") == 3


@pytest.mark.parametrize("role", ["worker", "modules"])
def test_where_a_shards_time_went_is_counted(role):
    """As the node said last, phase by phase."""
    metrics = metrics_of(role)
    metrics.observe(records.ShardPhases(forward_s=1.0, answers_s=2.0))
    metrics.observe(records.ShardPhases(forward_s=1.5, answers_s=2.0))

    assert sample(metrics, "edgebed_shard_phase_seconds_total", phase="forward") == 1.5
    assert sample(metrics, "edgebed_shard_phase_seconds_total", phase="answers") == 2.0
    assert sample(metrics, "edgebed_shard_phase_seconds_total", phase="inputs") == 0.0


@pytest.mark.parametrize("role", ["worker", "modules"])
def test_lessons_are_counted_with_their_losses(role):
    """By whose module it is, which predicts gradients or inputs; an error that falls is one sum growing slower."""
    metrics = metrics_of(role)
    for step, loss in ((0, 2.0), (1, 0.5)):
        metrics.observe(records.Taught(shard="edge-0", step=step, loss=loss))
    metrics.observe(records.Taught(shard="edge-1", step=0, loss=3.0, inputs=True))

    def taught(name, shard, predicts):
        return sample(metrics, f"edgebed_shard_taught{name}_total", shard=shard, predicts=predicts)

    assert (taught("", "edge-0", "gradient"), taught("_loss", "edge-0", "gradient")) == (2, 2.5)
    assert (taught("", "edge-1", "inputs"), taught("_loss", "edge-1", "inputs")) == (1, 3.0)


def test_a_shards_queues_show_their_last_length():
    """Each by its name."""
    metrics = NodeMetrics("worker")
    metrics.shard_queues({"inputs": 3, "unanswered": 1})
    metrics.shard_queues({"inputs": 0, "unanswered": 2})

    assert sample(metrics, "edgebed_shard_queue_length", queue="inputs") == 0
    assert sample(metrics, "edgebed_shard_queue_length", queue="unanswered") == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["joined", "ready", "running", "stopped", "died"]))))
def test_every_node_has_one_dated_state_and_it_is_the_last(changes):
    """Whatever the nodes do; a state that a node has left is no series any more."""
    metrics = TrialMetrics()
    before_s = time.time()
    metrics.start_trial(plan(num_workers=3), RUN, "process", 0.0)
    last = dict.fromkeys(("server", "evaluator", "edge-0", "edge-1", "edge-2"), "expected")
    for index, state in changes:
        metrics.observe(records.Node(name=f"edge-{index}", state=state))
        last[f"edge-{index}"] = state
    states = [
        (value.labels["node"], value.labels["state"], value.value) for family in metrics.registry.collect()
        if family.name == "edgebed_node_state_timestamp_seconds" for value in family.samples
    ]  # fmt: skip

    assert sorted((node, state) for node, state, _ in states) == sorted(last.items())
    assert all(before_s <= since_s <= time.time() for _, _, since_s in states)


@pytest.mark.parametrize("role", ["store", "modules"])
def test_who_serves_shards_tells_of_its_link(role):
    """As everybody who has one."""
    metrics = metrics_of(role)
    metrics.observe(records.Usage(time_s=1.0, cpu_s=0.1, starved_s=0.25))
    metrics.observe(records.Dropped(socket="data", reason="?"))

    assert sample(metrics, "edgebed_starved_seconds_total") == 0.25
    assert sample(metrics, "edgebed_messages_dropped_total", socket="data") == 1
