"""What all tests share: one thread for arithmetic, a marker for each folder, and an account of what was left out.

A test that cannot run here skips with the reason and what to do about it ("no MNIST: set EDGEBED_DATA_DIR ..."). At the
end these reasons are listed, one line for each. With EDGEBED_TEST_STRICT=1 a skip is a failure, so that a machine that
should run everything cannot leave a part out in silence; but for what a processor makes impossible.
"""

import collections
import functools
import gc
import os
import signal
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import soaking
import typer.main
from xdist.scheduler import LoadFileScheduling

# Before anything imports numpy or torch: the suite shares few cores, and one thread rounds the same way every time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest.register_assert_rewrite("program_laws", "program_mutants")  # else a failure there shows no values

gc.set_threshold(100_000)  # to collect and import all tests makes much that stays and little garbage

# Many tests call a command in this process, which would build the same command line each time.
typer.main.get_command = functools.cache(typer.main.get_command)

# The suite tries each property with a few examples, always the same; `scripts/test soak` with many, which its seed
# decides. Nothing depends on how long an example takes.
hypothesis.settings.register_profile(
    "suite",
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.register_profile(
    "soak", hypothesis.settings.get_profile("suite"), max_examples=200 * soaking.TIMES, derandomize=False, database=None
)
hypothesis.settings.load_profile("soak" if soaking.SEED else "suite")

STRICT = os.environ.get("EDGEBED_TEST_STRICT") == "1"
"""Whether leaving a test out is a failure."""
NO_REMEDY = "not on this processor:"
"""In a reason that nothing which could be installed does away with: it is listed, and no failure."""

CAMPAIGN = os.environ.get("EDGEBED_CAMPAIGN") == "1"
"""Whether `scripts/campaign` runs the tests, which has the time for those that are marked so."""

NETEM = os.environ.get("EDGEBED_NETEM") == "1"
"""Whether this kernel is known to have netem, as one that `scripts/boot` has booted; tests marked so need that."""

MARKED_FOLDERS = ("process", "simulation", "docker")
"""Folders of `tests/` whose tests carry the marker of the same name."""


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets, with `mnist/` in it."""
    folder = os.environ.get("EDGEBED_DATA_DIR")
    if not folder or not (Path(folder) / "mnist").is_dir():
        pytest.skip("no MNIST: set EDGEBED_DATA_DIR to a folder whose mnist/ holds the four IDX files")
    return Path(folder)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without their charts, for tests of what pages say: to draw those of one takes longer than a small run."""
    from edgebed.reports.writing.chart_data import ChartData
    from edgebed.reports.writing.figures import Chart

    monkeypatch.setattr(Chart, "_draw", lambda *_, **__: (b"", ChartData()))


@pytest.fixture(autouse=True)
def own_state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No command takes away what controllers of other tests in containers leave."""
    if request.node.get_closest_marker("docker"):
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@functools.cache
def why_no_containers() -> str | None:
    """What is missing for tests in containers; None if nothing is."""
    from edgebed.core.errors import InfrastructureError
    from edgebed.runtimes.containers.engine import connect
    from edgebed.runtimes.containers.project import ImageNames

    try:
        client = connect()
    except InfrastructureError as error:
        return f"no containers: {error}"
    images = ImageNames.named()
    missing = [name for name in (images.server, images.worker) if not client.images.list(name)]
    client.close()
    return f"no image {missing[0]}: scripts/build-images makes it" if missing else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test in containers needs an engine that has the images."""
    if item.get_closest_marker("docker") and (reason := why_no_containers()):
        pytest.skip(reason)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test in `tests/process/` is marked `process`, and so on; what is for a soak or a campaign is left to it."""
    for item in items:
        parts = item.path.relative_to(config.rootpath / "tests").parts
        if parts[0] in MARKED_FOLDERS:
            item.add_marker(parts[0])
    is_there = {"campaign": CAMPAIGN, "netem": NETEM, "soak": soaking.SEED}
    absent = [mark for mark in is_there if not is_there[mark]]
    left = {
        item for item in items
        if any(map(item.get_closest_marker, absent)) or not soaking.is_in_share(item.nodeid)
    }  # fmt: skip
    if left:
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]
    items.sort(key=lambda item: not item.nodeid.startswith(SWARM))  # they are the longest together, so they begin


SWARM = "tests/swarm/"
"""Folder of the tests on several hosts, which are made once for all of them."""


class ByFileAndSwarm(LoadFileScheduling):
    """Gives a file of tests to one worker, and all those on several hosts."""

    def _split_scope(self, nodeid: str) -> str:
        return SWARM if nodeid.startswith(SWARM) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With `--dist loadfile`; other ways are xdist's own."""
    return ByFileAndSwarm(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure() -> None:
    """Whoever begins the suite beside something else has it ignore Ctrl-C, which tests send to what they begin."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What all tests import is not garbage, and need not be looked through for it again and again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """In strict mode a skipped test has failed; an expected failure stays one."""
    report = yield
    return refuse_skip(report) if STRICT and not hasattr(report, "wasxfail") else report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """In strict mode a skipped module has failed."""
    report = yield
    return refuse_skip(report) if STRICT else report


def refuse_skip(report):
    """The same report, failed if it was skipped for what could be remedied."""
    if report.skipped and NO_REMEDY not in skip_reason(report):
        report.outcome = "failed"
        report.longrepr = f"left out although EDGEBED_TEST_STRICT=1: {skip_reason(report)}"
    return report


def skip_reason(report) -> str:
    """Why a test or module was skipped, in the words of whoever skipped it."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out and why; `scripts/test` gathers the lists of its groups in a file."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if not hasattr(report, "wasxfail")]
    reasons = collections.Counter(skip_reason(report) for report in skipped)
    lines = [f"left out: {reason} ({count} test{'s' * (count > 1)})" for reason, count in sorted(reasons.items())]
    gathered = os.environ.get("EDGEBED_TEST_REPORT")
    if gathered:
        with Path(gathered).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    elif lines:
        terminalreporter.section("left out")
        for line in lines:
            terminalreporter.line(line)
