"""Records go in, Prometheus samples come out: `metrics/exporter.py`, `metrics/trial_metrics.py`."""

import time
import timeit

import msgspec
import pytest
from evaluated import MEASURES, evaluation
from hypothesis import given
from hypothesis import strategies as st
from node_plans import METHOD, plan_of_role
from prometheus_client import CollectorRegistry, Counter, generate_latest

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import RESULTS
from edgebed.metrics import table
from edgebed.metrics.exporter import NodeMetrics
from edgebed.metrics.trial_metrics import TrialMetrics

RUN = "quickstart/0001"

TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=2, parameters=6)


def update(**changes) -> records.Update:
    """An update record with the given fields."""
    fields = {
        "worker": "edge-0", "incarnation": 0, "step": 0, "version": 1, "base": 0, "staleness": 0, "entries": 21,
        "bits": 1344, "bytes": 160, "loss": 2.3,
    }  # fmt: skip
    return records.Update(**(fields | changes))


def plan(num_workers: int = 2, **changes) -> TrainingPlan:
    """A small plan: a server, an evaluator and some workers of one class."""
    method = msgspec.structs.replace(METHOD, name="adacomp")

    def node(name, role, device_class):
        return plan_of_role(node=name, role=role, device_class=device_class, method=method)

    workers = [node(f"edge-{index}", "worker", "edge") for index in range(num_workers)]
    nodes = (node("server", "server", "server"), node("evaluator", "evaluator", "evaluator"), *workers)
    return TrainingPlan(
        scenario="quickstart", trial="adacomp", question="?", seed=7, measures=MEASURES, nodes=nodes, **changes
    )


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
    return {} if field.name == "measured" else {int: 1, float: 1.0, str: "x"}.get(field.type, 1)


WAITED = [
    records.Phases(steps=steps, compute_s=compute_s, encode_s=0.0, wait_s=wait_s, pause_s=0.0)
    for steps, compute_s, wait_s in ((0, 0.0, 9.0), (1, 1.0, 9.0), (1, 1.0, 12.0), (11, 2.0, 12.0), (31, 2.0, 16.0))
]
"""A worker that stood still for three seconds between two steps, and for four within a stretch of twenty."""
NOW_S = -1.0
"""In a table, for a time that is that of the test."""
TRAFFIC = {"ingress_payload": 0, "egress_payload": 0}
STEP = "edgebed_worker_step_duration_seconds"
SAMPLES = {
    "an update: one observation of its staleness, its payload, bits / 8 of algorithm bytes": (
        "server", [update(staleness=3, bits=1344, bytes=160)],
        {"edgebed_ps_updates_total{result=applied}": 1, "edgebed_ps_update_staleness_versions_sum": 3,
         "edgebed_ps_update_staleness_versions_bucket{le=2.0}": 0,
         "edgebed_ps_update_staleness_versions_bucket{le=4.0}": 1,
         "edgebed_ps_algorithm_bytes_total": 168, "edgebed_ps_update_bytes_total": 160},
    ),
    "an interface: the total of the last record that has one": (
        "server", [records.Traffic(**TRAFFIC, ingress_interface=total, egress_interface=total, interface="lo")
                   for total in (100, None, 250, 250)],
        {"edgebed_link_bytes_total{direction=ingress,interface=lo}": 250},
    ),
    "pulls: whole models and changed entries apart; acknowledgements that are not known change nothing": (
        "server", [records.Traffic(**TRAFFIC, pulls=pulls, pull_bytes=pulls * 800, pulls_changed=pulls - 2,
                                   pull_changed_bytes=(pulls - 2) * 100, ack_bytes=acknowledged)
                   for pulls, acknowledged in ((2, 660), (3, None), (5, 1320))],
        {"edgebed_ps_pulls_total{pull=full}": 2, "edgebed_ps_pulls_total{pull=changed-since}": 3,
         "edgebed_ps_pull_bytes_total{pull=full}": 5 * 800 - 3 * 100,
         "edgebed_ps_pull_bytes_total{pull=changed-since}": 300, "edgebed_ps_acknowledgement_bytes_total": 1320},
    ),
    "what is refused or dropped: no update that was applied; the first records of a flood stand for all of it": (
        "server", [records.Refused(peer="edge-0", code="stale-incarnation", reason="incarnation 1 has joined"),
                   records.Dropped(socket="data", reason="no header"),
                   records.Refused(peer="edge-0", code="malformed", reason="a shape", count=30),
                   records.Dropped(socket="data", reason="no header", count=500)],
        {"edgebed_ps_updates_total{result=stale-incarnation}": 1, "edgebed_ps_updates_total{result=applied}": 0,
         "edgebed_ps_updates_total{result=malformed}": 30, "edgebed_messages_dropped_total{socket=data}": 501},
    ),
    "phases: the last totals; the histogram has an observation a step, with the mean of its stretch": (
        "worker", [records.Phases(steps=1, compute_s=1.0, encode_s=0.5, wait_s=0.25, pause_s=0.25),
                   records.Phases(steps=3, compute_s=2.0, encode_s=1.0, wait_s=1.5, pause_s=0.5)],
        {"edgebed_worker_iterations_total": 3, "edgebed_worker_phase_seconds_total{phase=compute}": 2.0,
         "edgebed_worker_phase_seconds_total{phase=wait}": 1.5, f"{STEP}_count": 3, f"{STEP}_sum": 5.0},
    ),
    "a freeze: its phase at once": (
        "worker", WAITED[:3], {"edgebed_worker_phase_seconds_total{phase=wait}": 12.0, f"{STEP}_count": 1},
    ),
    "a step after a freeze: it has the seconds that passed without one": (
        "worker", WAITED[:4], {f"{STEP}_count": 11, f"{STEP}_sum": 5.0, f"{STEP}_bucket{{le=0.1}}": 9.0,
                               f"{STEP}_bucket{{le=2.5}}": 10.0, f"{STEP}_bucket{{le=5.0}}": 11.0},
    ),
    "a stretch with a freeze within": (
        "worker", WAITED, {f"{STEP}_sum": 9.0, f"{STEP}_bucket{{le=0.1}}": 28.0, f"{STEP}_bucket{{le=2.5}}": 29.0,
                           f"{STEP}_bucket{{le=5.0}}": 31.0},
    ),
    "steps of a shard: those made again after a roll-back as well": (
        "worker", [records.Step(step=step, history=history) for step, history in ((0, 0), (1, 0), (0, 1))],
        {"edgebed_shard_steps_total": 3},
    ),
    "a node that dies is one crash of its class; one that stops when told is none": (
        "controller", [records.Node(name="edge-0", state="running"), records.Node(name="edge-0", state="died"),
                       records.Node(name="edge-1", state="stopped")],
        {"edgebed_crashes_total{device_class=edge}": 1, "edgebed_nodes{device_class=edge,state=died}": 1,
         "edgebed_nodes{device_class=edge,state=running}": 0, "edgebed_nodes{device_class=server,state=expected}": 1,
         "edgebed_node_last_crash_timestamp_seconds{device_class=edge,node=edge-0}": NOW_S,
         "edgebed_node_last_crash_timestamp_seconds{device_class=edge,node=edge-1}": None},
    ),
    "what runs and how well": (
        "controller", [update(version=100), evaluation(version=100, accuracy=0.91, loss=0.3)],
        {"edgebed_run_info{scenario=quickstart,algorithm=adacomp,seed=7,runtime=process}": 1,
         "edgebed_run_start_timestamp_seconds": 0.0, "edgebed_run_progress_ratio": 0.25,
         "edgebed_model_version": 100, "edgebed_model_accuracy_ratio{split=test}": 0.91,
         "edgebed_model_loss{split=test}": 0.3},
    ),
    "progress: never above 1": ("controller", [update(version=404)], {"edgebed_run_progress_ratio": 1.0}),
    "progress: a trial may complete early": (
        "controller", [records.Ended(outcome="completed", reason="accuracy reached")],
        {"edgebed_run_progress_ratio": 1.0},
    ),
    "what was refused and dropped by all lives of a node": (
        "controller", 2 * [(records.Refused(peer="edge-0", code="not-joined", reason="", count=3), "server"),
                           (records.Dropped(socket="data", reason="no header", count=2), "edge-0"),
                           records.Node(name="server", state="joined", incarnation=1)],
        {"edgebed_run_refused_total{result=not-joined}": 6, "edgebed_run_messages_dropped_total{socket=data}": 4,
         "edgebed_run_messages_dropped_total{socket=management}": 0},
    ),
    "what was done to nodes, by what came of it; only what was done has a time": (
        "controller", [records.Fault(name="kill-1", action="kill", target="edge-0", asked_s=1.0, **fields)
                       for fields in ({}, {"problem": "no such process"}, {"no_op": "it is being killed"})]
                      + [records.Fault(name="cut-2", action="cut", target="edge-1", asked_s=1.0, problem="no link")],
        {f"edgebed_faults_total{{device_class=edge,action=kill,result={result}}}": 1
         for result in ("done", "failed", "no_op")}
        | {"edgebed_fault_timestamp_seconds{action=kill,node=edge-0}": NOW_S,
           "edgebed_fault_timestamp_seconds{action=cut,node=edge-1}": None},
    ),
    "before anything is lost, the series are there": (
        "controller", [], {f"edgebed_updates_lost_total{{how={how}}}": 0 for how in ("unanswered", "rolled-back")},
    ),
    "what was lost; a restored server takes the version back": (
        "controller", [update(version=120), records.Unanswered(incarnation=1, joins=0, step=7, reason="broke"),
                       records.Unanswered(incarnation=1, joins=1, step=-1, reason="broke"),
                       records.Restored(version=100, incarnation=2),
                       records.Joined(worker="edge-0", incarnation=1, joins=2)],
        {"edgebed_updates_lost_total{how=unanswered}": 1, "edgebed_updates_lost_total{how=rolled-back}": 20,
         "edgebed_model_version": 100, "edgebed_joins_total{device_class=edge}": 1},
    ),
} | {
    f"{role}: where a shard's time went, as the node said last; lessons by whose module, and their losses": (
        role, [records.ShardPhases(forward_s=1.0, answers_s=2.0), records.ShardPhases(forward_s=1.5, answers_s=2.0),
               records.Taught(shard="edge-0", step=0, loss=2.0), records.Taught(shard="edge-0", step=1, loss=0.5),
               records.Taught(shard="edge-1", step=0, loss=3.0, inputs=True)],
        {"edgebed_shard_phase_seconds_total{phase=forward}": 1.5,
         "edgebed_shard_phase_seconds_total{phase=answers}": 2.0,
         "edgebed_shard_phase_seconds_total{phase=inputs}": 0.0,
         "edgebed_shard_taught_total{shard=edge-0,predicts=gradient}": 2,
         "edgebed_shard_taught_loss_total{shard=edge-0,predicts=gradient}": 2.5,
         "edgebed_shard_taught_total{shard=edge-1,predicts=inputs}": 1,
         "edgebed_shard_taught_loss_total{shard=edge-1,predicts=inputs}": 3.0},
    ) for role in ("worker", "modules")
} | {
    f"{role}: who serves shards has a link": (
        role, [records.Usage(time_s=1.0, cpu_s=0.1, starved_s=0.25), records.Dropped(socket="data", reason="?")],
        {"edgebed_starved_seconds_total": 0.25, "edgebed_messages_dropped_total{socket=data}": 1},
    ) for role in ("store", "modules")
}  # fmt: skip
"""Whose metrics, what is observed (the controller's also with who said it), and series of a scrape after it."""


@pytest.mark.parametrize("case", SAMPLES)
def test_records_go_in_and_samples_come_out(case):
    """And none that says when a series was created, which would double their number."""
    role, observed, expected = SAMPLES[case]
    began_s, metrics = time.time(), metrics_of(role)
    if role == "controller":
        metrics.start_trial(plan(stop_updates=400), RUN, "process", 0.0)
    for each in observed:
        metrics.observe(*(each if isinstance(each, tuple) else (each,)))
    found = {series: value_of(metrics, series, role) for series in expected}

    assert found == {
        series: pytest.approx(value) if value is not NOW_S else pytest.approx((began_s + time.time()) / 2, abs=60)
        for series, value in expected.items()
    }
    assert b"_created" not in generate_latest(metrics.registry)


def value_of(metrics, series, role):
    """The value of `name{label=value,...}`; the controller's series name run and trial, too."""
    name, _, labels = series.removesuffix("}").partition("{")
    find = sample_of_trial if role == "controller" else sample
    return find(metrics, name, **dict(each.split("=") for each in labels.split(",") if each))


def test_payload_is_counted_by_direction_and_kind_and_queues_show_their_last_length():
    """What the shell counts shows up under its kind, and kinds not seen yet show 0."""
    metrics, shard = NodeMetrics("server"), NodeMetrics("worker")
    for direction, kind, size in (("ingress", "push", 12_700), ("ingress", "push", 300), ("egress", "model", 847_000)):
        metrics.count_bytes(direction, kind, size)
    for lengths in ({"inputs": 3, "unanswered": 1}, {"inputs": 0, "unanswered": 2}):
        shard.shard_queues(lengths)

    assert sample(metrics, "edgebed_ps_ingress_bytes_total", kind="push") == 13_000
    assert sample(metrics, "edgebed_ps_ingress_bytes_total", kind="join") == 0
    assert sample(metrics, "edgebed_ps_egress_bytes_total", kind="model") == 847_000
    assert [sample(shard, "edgebed_shard_queue_length", queue=name) for name in lengths] == [0, 2]


@given(st.lists(st.integers(min_value=0, max_value=1000)))
def test_the_staleness_buckets_count_exactly(staleness):
    """Each bucket holds the number of updates at most that stale; staleness 0 is told apart from 1."""
    metrics = NodeMetrics("server")
    for value in staleness:
        metrics.observe(update(staleness=value))

    for bound in table.STALENESS_BUCKETS:
        counted = sample(metrics, "edgebed_ps_update_staleness_versions_bucket", le=f"{float(bound)}")
        assert counted == sum(value <= bound for value in staleness)


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


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_told_by_its_place_among_them(result):
    """Once the trial is over, and not before."""
    metrics = TrialMetrics()
    metrics.start_trial(plan(), RUN, "process", 0.0)
    assert sample_of_trial(metrics, "edgebed_trial_result") is None
    metrics.judge_trial(verdict=None, result=result)

    assert RESULTS[int(sample_of_trial(metrics, "edgebed_trial_result"))] == result


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


def test_observing_an_update_costs_far_less_than_applying_it():
    """As much as ten counters that are increased, by the best of several tries; ten times that is a mistake."""
    metrics, counter = NodeMetrics("server"), Counter("one", "One.", registry=CollectorRegistry())
    record = update(staleness=200)
    observing_s, increasing_s = (
        min(timeit.repeat(each, number=2_000, repeat=5)) for each in (lambda: metrics.observe(record), counter.inc)
    )

    assert observing_s < 100 * increasing_s


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
