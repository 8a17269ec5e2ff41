"""Parts of a live node's shell by themselves: its device, how its time is spent, its records on their way."""

import threading
import time

import msgspec
import numpy as np
import pytest

from edgebed.core import records
from edgebed.core.planned.device_core import Core
from edgebed.metrics.exporter import NodeMetrics
from edgebed.roles.events import Compute
from edgebed.roles.work import EvaluationJob, GradientJob, GradientResult
from edgebed.runtimes.live.rate_limit import TOLD_APART
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.reporter import REPORT_RECORDS_MAX, Reporter
from edgebed.runtimes.live.shell.times import Times
from edgebed.wire.messages import Model, Push

GRADIENT = GradientResult((), (), 0.0, None, 0.3, 0.1)
BATCH = np.zeros(1, np.int64)
"""As many examples as a batch of the tests' task has."""

BUSY_S = 0.02
ROUNDING_S = 1e-9


class Busy:
    """Computes for 20 ms; on a machine that others use as well it takes longer."""

    def run(self, job):
        """The job itself."""
        until_s = time.thread_time() + BUSY_S
        while time.thread_time() < until_s:
            pass
        return job


class Elsewhere(Busy):
    """Computes so in another thread."""

    def run(self, job):
        """The job itself."""
        thread = threading.Thread(target=super().run, args=(job,))
        thread.start()
        thread.join()
        return job


class Sent(list):
    """A connection to the controller that keeps what is sent."""

    def send(self, message, frames):
        """Send a message."""
        self.append(message)


@pytest.fixture
def reporter():
    """A reporter that was asked for nothing yet."""
    return Reporter("edge-0", Sent(), NodeMetrics("worker"), Lifetime(time.monotonic_ns()))


@pytest.mark.parametrize(("paces_cpus", "pace"), [(True, 0.1), (False, 0.5)])
def test_a_device_is_as_fast_as_its_speed_and_the_cap_that_nothing_else_holds(make_node, paces_cpus, pace):
    """Both multiply."""
    assert NodeDevice(make_node(cpus=0.2, compute_speed=0.5), paces_cpus=paces_cpus).pace == pytest.approx(pace)


def test_a_slow_devices_work_is_stretched_and_what_it_waits_besides_is_added(make_node):
    """At a tenth of the speed it takes ten times as long; the stretch is what is left of that."""
    device = NodeDevice(make_node(compute_speed=0.1), Busy())
    began_s, began_cpu_s = time.perf_counter(), time.thread_time()
    result, delay_s = device.compute(Compute("job", pause_s=1.0), lambda: 7.0)
    took_s, cpu_s = time.perf_counter() - began_s, time.thread_time() - began_cpu_s

    assert (result, device.times.busy_until_s) == ("job", 7.0)
    assert max(0.0, 10.0 * BUSY_S - took_s) <= delay_s - 1.0 + ROUNDING_S
    assert delay_s - 1.0 <= 10.0 * cpu_s - cpu_s + ROUNDING_S


def test_a_fast_devices_work_is_not_stretched(make_node):
    """However busy the machine is."""
    assert NodeDevice(make_node(), Busy()).compute(Compute("job", pause_s=0.0), lambda: 7.0) == ("job", 0.0)


@pytest.mark.parametrize(("cpus", "device_s"), [(None, 0.5), (0.5, 1.0)])
def test_a_node_takes_its_devices_time_whatever_this_machine_needs(make_node, cpus, device_s):
    """The rest of it is waited for; a cap makes it longer, as in virtual time, and an evaluation is no gradient."""
    plan = make_node(core=Core(flop_s=1e9, overhead_s=0.4), cpus=cpus)
    plan = msgspec.structs.replace(plan, task=msgspec.structs.replace(plan.task, gradient_flop=10**8))
    device, job = NodeDevice(plan, Busy()), GradientJob(theta=None, batches=(BATCH,), step=0)
    began_s = time.perf_counter()
    _, delay_s = device.compute(Compute(job, pause_s=1.0), lambda: 7.0)
    took_s = time.perf_counter() - began_s

    assert max(0.0, device_s - took_s) <= delay_s - 1.0 + ROUNDING_S
    assert delay_s - 1.0 <= device_s - BUSY_S + ROUNDING_S
    assert (
        device.compute(Compute(EvaluationJob(theta=None, version=1, final=False), pause_s=0.0), lambda: 7.0)[1] == 0.0
    )


def test_a_device_that_is_faster_than_this_machine_waits_for_nothing(make_node):
    """It takes the time it takes, which the verdict says."""
    plan = make_node(core=Core(flop_s=1e12, overhead_s=0.0))
    plan = msgspec.structs.replace(plan, task=msgspec.structs.replace(plan.task, gradient_flop=10**8))
    job = GradientJob(theta=None, batches=(BATCH,), step=0)

    assert NodeDevice(plan, Busy()).compute(Compute(job, pause_s=0.0), lambda: 7.0)[1] == 0.0


def device_of(make_node, **more):
    """A node's device whose gradients take 0.5 s."""
    plan = make_node(core=Core(flop_s=1e9, overhead_s=0.4), **more)
    return NodeDevice(msgspec.structs.replace(plan, task=msgspec.structs.replace(plan.task, gradient_flop=10**8)))


def job_of(gradients):
    """Work for a push."""
    return GradientJob(theta=None, batches=(BATCH,) * gradients, step=0)


def test_what_is_late_on_a_device_is_each_job_by_itself(make_node):
    """One that took less waits for the rest, and makes up for no other; a cap makes no difference to CPU time."""
    jobs = device_of(make_node, cpus=0.2).jobs
    jobs.did(job_of(100), 20.0, 300.0, 0.2)
    jobs.did(job_of(10), 6.0, 31.0, 0.2)
    jobs.did(EvaluationJob(theta=None, version=1, final=False), 7.0, 7.0)

    beside_s = jobs.plan.compression_s
    times = {"device_s": round(55.0 + 2 * beside_s, 6), "device_late_s": round(1.0 - beside_s, 6)}
    waits_s = round(300.0 - (50.0 + beside_s) / 0.2 + 1.0, 6)
    assert jobs.account() == {**times, "device_waits_s": waits_s, "device_jobs": 2}


@pytest.mark.parametrize(("gflops", "is_late"), [(1e9, False), (1e12, True)])
def test_a_device_counts_the_cpu_time_of_all_threads(make_node, gflops, is_late):
    """Busy has 20 ms in another thread, which this one waits for."""
    plan = make_node(core=Core(flop_s=gflops, overhead_s=0.0))
    plan = msgspec.structs.replace(plan, task=msgspec.structs.replace(plan.task, gradient_flop=10**8))
    device = NodeDevice(plan, Elsewhere())
    device.compute(Compute(job_of(1), pause_s=0.0), lambda: 7.0)

    assert (device.jobs.late_s > 0.9 * BUSY_S) is is_late


def test_a_node_without_a_device_has_no_account_of_its_jobs(make_node):
    """Its class is as fast as this host lets it."""
    device = NodeDevice(make_node())
    device.jobs.did(job_of(10), 25.0, 25.0)

    assert device.jobs.account() == {}


def test_a_workers_time_is_spent_on_computing_encoding_pausing_and_waiting():
    """Between what was computed and the push it pauses; from the push to the model it waits."""
    times = Times()
    times.computed(GRADIENT, 1.0)
    times.sent(Push(sender="edge-0", incarnation=1, step=0, base=0, loss=0.0, tensors=()), 1.5)
    times.computed("an evaluation is no step", 1.6)
    times.received(Model(sender="server", version=1, final=False, tensors=()), 3.5)

    assert times.record() == records.Phases(steps=1, compute_s=0.3, encode_s=0.1, wait_s=2.0, pause_s=0.5)
    assert times.busy_until_s == 1.6


def test_a_push_that_is_sent_once_more_is_no_pause():
    """As after the server's death: from the first time on the worker waits."""
    times = Times()
    times.computed(GRADIENT, 1.0)
    for sent_s in (1.5, 4.0):
        times.sent(Push(sender="edge-0", incarnation=1, step=0, base=0, loss=0.0, tensors=()), sent_s)
    times.received(Model(sender="server", version=1, final=False, tensors=()), 4.5)

    assert times.record() == records.Phases(steps=1, compute_s=0.3, encode_s=0.1, wait_s=3.0, pause_s=0.5)


def test_records_are_reported_once_in_order_and_in_parts(reporter):
    """A report says how many came before it, so that the controller sees what is lost."""
    for k in range(REPORT_RECORDS_MAX + 1):
        reporter.journal(records.Note(text=str(k)))
    reporter.report()
    reporter.report()

    first, second = reporter.management
    assert (first.first, len(first.records), second.first) == (0, REPORT_RECORDS_MAX, REPORT_RECORDS_MAX)
    assert [record.text for _, record in second.records] == [str(REPORT_RECORDS_MAX)]


def test_a_record_that_the_controller_acts_upon_makes_a_report_urgent(reporter):
    """Until it is sent."""
    reporter.journal(records.Note(text="no hurry"))
    assert not reporter.urgent
    reporter.journal(records.Finished(version=3, reason="enough"))
    assert reporter.urgent
    reporter.report()
    assert not reporter.urgent


def test_what_is_looked_at_is_journaled_when_it_has_changed(reporter):
    """By kind of record."""
    for pushed in (1, 1, 2, 1):
        reporter.journal_change(records.Pushes(incarnation=1, begun=pushed, pushed=pushed))
    assert [record.pushed for _, record in reporter.unreported] == [1, 2, 1]


def test_a_flood_of_bad_messages_becomes_a_count(reporter):
    """Which comes with the next second."""
    for _ in range(TOLD_APART + 5):
        reporter.complain("not a message")
    assert len(reporter.unreported) == TOLD_APART
    reporter.release()
    assert reporter.unreported[-1][1].count == 5
