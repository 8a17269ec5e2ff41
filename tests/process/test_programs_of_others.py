"""Frameworks of others as programs, under a cut and a kill; what they did is written to docs/results/programs.md.

`scripts/campaign --only programs` runs it. It needs packages that edgebed does not, and the sources of the two for an
example of each, which is run as it is, but for its data: modules in peers/digits/ are in the place of those that would
download some. The page says what the run's records and the programs' output say, and nothing else.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from warm_command import WarmCommand

from edgebed.core.package import SHIPPED
from edgebed.reports.programs.report import programs_page
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.page import Page, Paragraph, Section
from edgebed.running.results import Run, load

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).with_name("peers")
RECIPES = SHIPPED / "scenarios/programs"
PAGE = ROOT / "docs/results/programs.md"
NEEDED = "pip install flwr torchft torchdata torch==2.13.0 scikit-learn # and its bin/ first on the PATH"
SOURCES = {"flower": "https://github.com/flwrlabs/flower", "torchft": "https://github.com/pytorch/torchft"}
EXAMPLES = {
    "flower-quickstart": ("flower", "examples/quickstart-pytorch", (RECIPES / "flower").glob("*.sh")),
    "torchft-ddp": ("torchft", "train_ddp.py", ()),
}
"""By scenario in peers/: whose sources it is in, where, and what is put beside it."""
PACKAGES = ("flwr", "torchft", "torch")
KEPT = ("Expectations", "How the programs ended", "What was done to the nodes", "Did the conditions hold?",
        "Bytes between nodes", "Events")  # fmt: skip
"""Sections of a run's report that are on the page."""


@pytest.mark.campaign
@pytest.mark.timeout(0)
def test_frameworks_of_others_under_a_cut_and_a_kill(tmp_path: Path) -> None:
    """The recipes meet what they expect; of the examples is written what they do."""
    sources = Path(os.environ.get("EDGEBED_PEERS", ROOT / "peers"))
    if missing := [name for name in ("flwr", "torchft_lighthouse") if not shutil.which(name)]:
        pytest.skip(f"{', '.join(missing)}: not there; python -m venv peers; peers/bin/{NEEDED}")
    if missing := [
        f"git clone {url} {sources / name}" for name, url in SOURCES.items() if not (sources / name).is_dir()
    ]:
        pytest.skip(f"EDGEBED_PEERS names a folder with the sources of both; {'; '.join(missing)}")
    python = shutil.which("python", path=Path(shutil.which("flwr") or "").parent)
    asked = f"from importlib.metadata import version as v; print(', '.join(f'{{n}} {{v(n)}}' for n in {PACKAGES}))"
    versions = subprocess.run([str(python), "-c", asked], capture_output=True, text=True, check=True).stdout.strip()

    parts = []
    for name in ("flower", "torchft"):
        run = ran(RECIPES / f"{name}.yaml", tmp_path)
        parts.append(section(run, f"programs/{name}", "It comes with edgebed."))
        assert run.exit_code == 0, run.path
    for name, (source, place, beside) in EXAMPLES.items():
        scenario = shutil.copy2(PEERS / f"{name}.yaml", tmp_path)
        example, app = sources / source / place, tmp_path / "app"
        shutil.rmtree(app, ignore_errors=True)
        app.mkdir()
        if example.is_dir():
            shutil.copytree(example, app, dirs_exist_ok=True)
        for each in (*beside, *([example] if example.is_file() else [])):
            shutil.copy2(each, app)
        run = ran(Path(scenario), tmp_path, "--set", f"program.env.PYTHONPATH={PEERS / 'digits'}")
        parts.append(section(run, name, origin(source, place, sources)))
    PAGE.write_text(to_markdown(page(versions, parts)), encoding="utf-8")


def origin(source: str, place: str, sources: Path) -> str:
    """Where an example is from."""
    commit = ["git", "-C", str(sources / source), "log", "-1", "--format=, as of %h, %cs"]
    found = subprocess.run(commit, capture_output=True, text=True, check=False).stdout.strip()
    return f"The program is {place} of {SOURCES[source]}{found}."


def page(versions: str, parts: list[Section]) -> Page:
    """What is written."""
    lead = [
        Paragraph(
            f"Written by scripts/campaign --only programs, from one run each in processes, on {os.cpu_count()} cores: "
            f"{versions}. What comes from the sources of others is as it is there; in the place of data that it would "
            "download are digits, by modules of the same names in tests/process/peers/digits."
        )
    ]
    heading = "What Flower and torchft did while a node was cut off and another one was killed"
    return Page(name="programs", title="Frameworks of others", heading=heading, lead=lead, parts=parts)


def ran(scenario: Path, folder: Path, *settings: str) -> Run:
    """Run it to its end, whatever comes of it."""
    command = WarmCommand(
        "run", str(scenario), "--runtime", "process", "--runs-dir", str(folder / "runs"), "--json", *settings
    )
    _, err = command.communicate()
    assert command.returncode in (0, 1), err
    return load("latest", runs_dir=folder / "runs")


def section(run: Run, name: str, what: str) -> Section:
    """What of a run's report is on the page."""
    report = programs_page(run)
    kept = [part for part in report.parts if isinstance(part, Section) and part.title in KEPT]
    return Section(name, [Paragraph(f"{report.heading} {what}"), *report.lead[:2], *kept])
