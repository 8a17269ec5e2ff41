"""What Prometheus reads of the programs of a trial: from records as they come, and again from a journal."""

import io

import msgspec
from program_runs import entries, finished_run
from prometheus_client import generate_latest

from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.program import Program, ProgramPlan
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.running.replay import read_again

OF = {"run": "told/0001", "trial": "slow"}


PROGRAMS = ProgramsPlan(
    scenario="told", trial="slow", question="", seed=1, program=Program(),
    nodes=tuple(
        ProgramPlan(node=f"home-{k}", device_class="home", seed=1, index=k, rank=k, run=("app",)) for k in range(2)
    ),
)  # fmt: skip
NEXT = msgspec.structs.replace(PROGRAMS, trial="fast")


def test_the_controller_tells_what_programs_told_and_used():
    """What each node told last; bytes, CPU time and restarts over all lives, though each life counts anew."""
    metrics = TrialMetrics(clock=lambda: 100.0)
    metrics.start_trial(PROGRAMS, "told/0001", "process", 100.0)
    for _, node, record in entries(PROGRAMS):
        metrics.observe(record, node)
    metrics.judge_trial(verdict="degraded", result="met")

    def told(name: str, node: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, OF | {"device_class": "home", "node": node} | labels)

    assert told("edgebed_program_measure", "home-0", measure="step") == 2.0
    assert told("edgebed_program_link_bytes_total", "home-0", direction="egress") == 3_000_000
    assert told("edgebed_program_link_bytes_total", "home-1", direction="egress") == 3_500_000
    assert told("edgebed_program_link_bytes_total", "home-1", direction="ingress") == 1_750_000
    assert told("edgebed_program_cpu_seconds_total", "home-1") == 0.5
    assert told("edgebed_program_memory_peak_bytes", "home-0") == 9_000_000
    assert (told("edgebed_program_restarts_total", "home-0"), told("edgebed_program_restarts_total", "home-1")) == (
        0,
        1,
    )
    assert metrics.registry.get_sample_value("edgebed_nodes", OF | {"device_class": "home", "state": "stopped"}) == 2
    assert metrics.registry.get_sample_value("edgebed_trial_verdict", OF) == 0


def test_the_next_trial_has_nothing_of_the_last_ones_programs():
    """What was told of a trial's programs is gone when another trial begins."""
    metrics = TrialMetrics(clock=lambda: 100.0)
    metrics.start_trial(PROGRAMS, "told/0001", "process", 100.0)
    for _, node, record in entries(PROGRAMS):
        metrics.observe(record, node)
    metrics.start_trial(NEXT, "told/0001", "process", 101.0)

    told = [line for line in generate_latest(metrics.registry).decode().splitlines() if "edgebed_program" in line]
    assert not [line for line in told if not line.startswith("#")]


def test_a_run_of_programs_is_replayed_from_its_journal(tmp_path):
    """Samples of the controller alone, at the times of the journal; programs have no pages of their own."""
    replayed = read_again(finished_run(tmp_path, seed=1), (), 1.0)
    text = io.StringIO()
    replayed.store.write(text)

    assert "edgebed_program_measure{" in text.getvalue()
    assert 'job="edgebed-nodes"' not in text.getvalue()
