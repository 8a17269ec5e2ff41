"""What a calibration says of a plan, how it is kept, and how it is shown."""

import io

import msgspec
import pytest
from tasks import one_array

from edgebed.core.console import make_console
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Method, Part, ServerPlan, Task, TrainingPlan, WorkerPlan
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.calibration import (
    PAYLOAD_SHARE,
    Beside,
    Bulk,
    Calibration,
    Cpu,
    HostFacts,
    PlaceMeasurements,
    Single,
    Together,
    calibration_path,
    calibration_warnings,
    load,
    save,
)
from edgebed.reports.studies.calibration_table import calibration_parts, result_text
from edgebed.reports.writing.terminal import show

HOST = HostFacts(kernel="Linux 6.1.0", machine="x86_64", cpu="a processor", cores=2, memory_bytes=8 * 2**30)
WHEN = "2026-11-20T13:56:00+00:00"
MBIT = 1_000_000


def bulk(mbit, up, down):
    """Both directions of a rate, each so far off what it leaves for payload."""
    rate = mbit * MBIT
    return tuple(
        Bulk(rate_bit_s=rate, direction=direction, messages=9, goodput_bit_s=rate * PAYLOAD_SHARE * (1 + off))
        for direction, off in (("up", up), ("down", down))
    )


def together(nodes, held, mbit=10):
    """So many links at once."""
    return Together(
        nodes=nodes, rate_bit_s=mbit * MBIT, messages=500, held=held, host_busy=0.31, node_bytes=21_500_000.0
    )  # fmt: skip


MEASURED = PlaceMeasurements(
    when=WHEN,
    bulk=(*bulk(10, 0.001, -0.004), *bulk(50, -0.01, -0.015), *bulk(100, -0.01, -0.06), *bulk(200, -0.2, -0.3)),
    single=(
        Single(rate_bit_s=10 * MBIT, messages=12, bytes=12_700.0, time_s=0.0101, ideal_s=0.0094),
        Single(rate_bit_s=None, messages=12, bytes=12_700.0, time_s=0.0004, ideal_s=0.0),
    ),
    cpu=(Cpu(asked=0.25, got=0.255),),
    together=(together(32, 0.999), together(100, 0.97), together(200, 0.71), together(300, 0.999, mbit=1)),
    beside=(Beside(exchange_s=0.0042, restart_s={"server": 0.71, "others": 1.5}),),
    problems=("cpus-1.0: the node did not report what it used",),
)
CALIBRATION = Calibration(host=HOST, places={"namespaces": MEASURED})


def plan_of(*links, count=1):
    """A plan with `count` workers for each link, each link a class of its own."""
    task = Task(model="small", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="x")
    method = Method(name="x", parts={"aggregation": part, "compression": part, "local_work": part})
    server = ServerPlan(node="server", device_class="server", seed=1, task=task, method=method)
    workers = [
        WorkerPlan(node=f"c{which}-{index}", device_class=f"c{which}", seed=1, task=task, method=method, link=link)
        for which, link in enumerate(links)
        for index in range(count)
    ]
    return TrainingPlan(scenario="s", trial="t", question="?", seed=1, nodes=(server, *workers))


def said(plan, calibration=CALIBRATION, place="namespaces", host=HOST):
    """All doubts in one text."""
    return "\n".join(calibration_warnings(plan, place, calibration, host))


def test_a_plan_within_what_was_measured_raises_no_doubt():
    """Rates, their sum and the number of workers all held."""
    assert said(plan_of(LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=50 * MBIT), count=20)) == ""


def test_a_plan_without_limited_links_needs_no_calibration():
    """Latency alone is no matter of rates."""
    assert said(plan_of(LinkPlan(), LinkPlan(latency_s=0.04)), calibration=None) == ""


def test_a_host_that_was_never_calibrated_is_told_how():
    """Neither at all, nor in the place where this plan would run."""
    limited = plan_of(LinkPlan(uplink_bit_s=MBIT))

    assert "run `edgebed calibrate`" in said(limited, calibration=None)
    assert "the docker runtime" in said(limited, place="docker")


@pytest.mark.parametrize("change", [{"kernel": "Linux 6.2.0"}, {"cores": 4}])
def test_a_calibration_of_another_kernel_or_number_of_cores_does_not_count(change):
    """It says what has changed."""
    now = msgspec.structs.replace(HOST, **change)

    text = said(plan_of(LinkPlan(uplink_bit_s=200 * MBIT)), host=now)

    assert text.startswith("this host has changed since it was calibrated")
    assert str(next(iter(change.values()))) in text
    assert "\n" not in text


def test_a_calibration_still_counts_with_another_amount_of_memory():
    """Only what decides about links and caps makes it stale."""
    assert said(plan_of(LinkPlan(uplink_bit_s=MBIT)), host=msgspec.structs.replace(HOST, memory_bytes=1)) == ""


def test_a_rate_that_missed_is_doubted_by_how_much_it_missed():
    """100 mbit down held within 10 % and not within 2 %; 200 mbit held in no direction."""
    slightly = said(plan_of(LinkPlan(uplink_bit_s=100 * MBIT, downlink_bit_s=100 * MBIT)))
    badly = said(plan_of(LinkPlan(uplink_bit_s=200 * MBIT)))

    assert slightly == (
        "c0: downlink 100mbit is above what `edgebed calibrate` found to hold within 2 % on this host; "
        "the highest is 50mbit."
    )
    assert "uplink 200mbit" in badly
    assert "within 10 % on this host; the highest is 100mbit" in badly


def test_a_class_is_doubted_once_however_many_nodes_it_has():
    """And by the highest rate that it ever has."""
    link = LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=3.0, uplink_bit_s=300 * MBIT),))

    text = said(plan_of(link, count=3))

    assert text.count("uplink 300mbit") == 1


def test_links_that_add_up_to_more_than_was_carried_are_doubted():
    """100 links of 10 mbit held, 200 did not."""
    text = said(plan_of(LinkPlan(uplink_bit_s=50 * MBIT), count=21))

    assert "add up to 1050mbit" in text
    assert "1gbit (100 links of 10mbit)" in text


def test_more_workers_than_were_measured_are_doubted():
    """At the rate at which most held: 300 links of 1 mbit did, of 10 mbit only 100."""
    assert "301 workers are more than the 300" in said(plan_of(LinkPlan(uplink_bit_s=MBIT), count=301))
    assert said(plan_of(LinkPlan(uplink_bit_s=MBIT), count=300)) == ""


def test_where_no_rate_held_it_says_so():
    """Instead of naming a rate of nothing."""
    nothing = Calibration(host=HOST, places={"model": PlaceMeasurements(when=WHEN, bulk=bulk(1, -0.5, -0.5))})

    assert "none was" in said(plan_of(LinkPlan(uplink_bit_s=MBIT)), calibration=nothing, place="model")


def test_a_calibration_comes_back_as_it_was_kept(tmp_path):
    """Through JSON, in a folder that is made for it."""
    path = tmp_path / "new" / "calibration.json"

    save(CALIBRATION, path)

    assert load(path) == CALIBRATION


@pytest.mark.parametrize("content", [None, b"", b"[1]", b'{"host": {}}'])
def test_a_file_that_is_no_calibration_counts_as_none(tmp_path, content):
    """Missing, cut off, or of another version."""
    path = tmp_path / "calibration.json"
    if content is not None:
        path.write_bytes(content)

    assert load(path) is None


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    """With a way out."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ScenarioError, match=r"file.calibration\.json: .*--output"):
        save(CALIBRATION, tmp_path / "file" / "calibration.json")


def test_it_is_kept_in_the_users_cache_unless_told_otherwise(tmp_path):
    """EDGEBED_CALIBRATION is a file, XDG_CACHE_HOME the folder of all caches."""
    assert calibration_path({"XDG_CACHE_HOME": "/c", "HOME": "/h"}).as_posix() == "/c/edgebed/calibration.json"
    assert calibration_path({"EDGEBED_CALIBRATION": "/x/y.json", "XDG_CACHE_HOME": "/c"}).as_posix() == "/x/y.json"
    assert calibration_path({}).parts[-3:] == (".cache", "edgebed", "calibration.json")


def test_the_table_has_every_result_and_what_could_not_be_measured():
    """Rates with how far they are off, the push, CPU caps, nodes, and what it comes to."""
    shown = io.StringIO()

    show(calibration_parts(CALIBRATION), make_console(shown, width=80))

    text = shown.getvalue()
    rows = [line.split() for line in text.splitlines()]
    assert ["10mbit", "9.57", "+0.1", "%", "9.53", "-0.4", "%", "10.1", "9.4", "+7.4", "%"] in rows
    assert ["0.25", "0.255", "+2.0", "%"] in rows
    assert ["200", "10mbit", "-29.0", "%", "31.00", "%", "21.5", "MB"] in rows
    assert "within 2 %: up to 100mbit up and 50mbit down" in text
    assert "at once: 100 links of 10mbit, together 1gbit" in text
    assert "at once: up to 300 nodes with slower links" in text
    assert "virtual time may state task.exchange_time: 4.2ms; restart_time: {server: 710ms," in text
    assert "not measured: cpus-1.0" in text


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (MEASURED.bulk[0], "10mbit up: 9.57 Mbit/s of payload, +0.1 %"),
        (MEASURED.single[0], "push of 12.7 kB at 10mbit: 10.1 ms, +7.4 %"),
        (MEASURED.single[1], "push of 12.7 kB at no limit: 0.4 ms"),
        (MEASURED.together[2], "200 links of 10mbit at once: -29.0 %"),
        (MEASURED.beside[0], "task.exchange_time: 4.2ms; restart_time: {server: 710ms, others: 1.5s}"),
    ],
)
def test_each_result_is_a_line_while_others_are_measured(result, line):
    """What it is, how much, how far off."""
    assert result_text(result) == line
