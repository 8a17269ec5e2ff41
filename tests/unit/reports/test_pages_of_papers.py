"""The published pages of papers: each follows from the lines that are kept of its runs, and from its prose."""

from pathlib import Path

import numpy as np
import pytest
from repository_files import ROOT

from edgebed.learning.data_sets import cifar10
from edgebed.reports.studies.front_page import ARTIFACT, FRONT, Reproduced, artifact_page, front_page
from edgebed.reports.studies.reproduction_page import reproduction_page
from edgebed.reports.writing.markdown import to_markdown
from edgebed.studies.cells.cells import PaperCells, Size
from edgebed.studies.cells.result_cache import FILE, ResultCache
from edgebed.studies.papers.registry import find_paper, papers
from edgebed.studies.reproduction.analytic_rows import FILE as COMPUTED
from edgebed.studies.reproduction.analytic_rows import AnalyticRows
from edgebed.studies.reproduction.reproduction import evaluate

RESULTS = ROOT / "docs/results"


def reproduced(name: str, runs: Path) -> Reproduced:
    """What the kept lines of a paper come to, without a new run."""
    paper = find_paper(name)
    cells, rows = PaperCells(paper), tuple(paper.rows)
    cache = ResultCache(cells, RESULTS / name / FILE)
    computed = AnalyticRows(paper, RESULTS / name / COMPUTED)
    result, curves = evaluate(cells, runs, cache, rows, Size(), lambda _: None, name, computed.values)
    return Reproduced(paper, result, reproduction_page(paper, result, curves, rows))


@pytest.fixture
def images(data_dir, tmp_path, monkeypatch):
    """A folder with MNIST, and with files of CIFAR-10's size: plans of finished runs need no more of it."""
    (tmp_path / "mnist").symlink_to(data_dir / "mnist")
    (tmp_path / "cifar10").mkdir()
    for name in cifar10.FILES:
        np.zeros((cifar10.RECORDS, 3073), np.uint8).tofile(tmp_path / "cifar10" / name)
    monkeypatch.setenv("EDGEBED_DATA_DIR", str(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("images")
def test_pages_are_what_the_lines_say(tmp_path):
    """Those of the papers, the front page and the appendix, to the byte; `edgebed reproduce --no-run` writes them."""
    found = [reproduced(name, tmp_path) for name in papers()]
    pages = {each.paper.name: each.page for each in found} | {ARTIFACT: artifact_page(found)}
    others = sorted({path.stem for path in RESULTS.glob("*.md")} - {FRONT, *pages})
    pages[FRONT] = front_page(found, others)

    differing = [
        name
        for name, page in pages.items()
        if to_markdown(page) != (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    ]
    assert differing == [], "edgebed reproduce --no-run --output docs/results"
