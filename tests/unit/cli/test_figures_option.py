"""`--figures` of the commands that make pages: every chart as SVG and PNG, and nothing else changed."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import command_line
from finished_runs import RISING, finished_run
from tiny_paper import write_paper
from tiny_sweep import write_sweep

from edgebed.core.quantities import count_text

pytestmark = pytest.mark.slow

Called = tuple[int, str, str]
CURVES = [f"accuracy-against-{axis}" for axis in ("bytes-down", "bytes-up", "bytes-up-and-down", "time", "updates")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of four runs, two seeds in each of two runtimes."""
    folder = tmp_path_factory.mktemp("runs")
    for runtime in ("simulation", "process"):
        for seed in (1, 2):
            finished_run(folder, {"asgd": RISING, "adacomp": RISING}, seed=seed, runtime=runtime)
    return folder


@pytest.fixture
def call(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Called]:
    """Calls edgebed in a folder with these runs, a paper and a sweep; gives exit code, standard output and error."""
    shutil.copytree(runs, tmp_path / "runs", symlinks=True)
    write_paper(tmp_path)
    write_sweep(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "papers_of_mine", raising=False)
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    (tmp_path / "file").write_text("")

    return command_line(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("report pair/1", [*CURVES, "staleness", "updates-a-second"]),
        ("compare pair/1 pair/2 --json", CURVES),
        (
            "agree --from pair/1 pair/2 pair/3 pair/4 --json",
            [
                "adacomp-accuracy-against-updates",
                "adacomp-staleness-of-all-seeds",
                "asgd-accuracy-against-updates",
                "asgd-staleness-of-all-seeds",
            ],
        ),
        ("sweep tiny.yaml --no-run --json", ["who-is-first"]),
        ("reproduce papers_of_mine:PAPER --no-run --json", []),
    ],
)
def test_every_chart_is_written_twice(call: Callable[..., Called], command: str, names: list[str]) -> None:
    """Where nothing has been run there is none; what is printed stays what it was, and the number is on stderr."""
    code, out, error = call(*command.split(), "--figures", "figures")

    assert code == (1 if command.startswith("agree") else 0)  # one seed is too few to tell
    assert sorted(path.name for path in Path("figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("svg", "png")
    )
    assert f"figures: figures: {count_text(len(names), 'chart')}, each as SVG and PNG" in error
    assert not out.startswith("{") or json.loads(out)
    assert call(*command.split())[1] == out


@pytest.mark.parametrize(
    "command",
    ["report pair/1", "compare pair/1", "agree none.yaml", "sweep tiny.yaml", "reproduce papers_of_mine:PAPER"],
)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "--figures: file is a file; give a folder"),
        ("no/such", "--figures: there is no folder no; make it first, or choose another"),
    ],
    ids=["file", "no folder"],
)
def test_a_place_that_cannot_be_is_told_first(
    call: Callable[..., Called], command: str, place: str, reason: str
) -> None:
    """Before anything is run or read."""
    assert call(*command.split(), "--figures", place) == (2, "", f"error: {reason}\n")
