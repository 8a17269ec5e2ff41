"""The documentation site is built without a warning, and loads nothing from elsewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository_files import ROOT
from ruamel.yaml import YAML

IMPORTED = re.compile(r"""<(?:script|img|link rel="stylesheet")[^>]*?(?:src|href)="(https?:[^"]*)""")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder of the site, as the workflow `site` builds it: strict, so that a warning fails."""
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is missing: scripts/setup --dev")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_docs_is_in_the_navigation_once():
    """So that a reader comes by it."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text, re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]

    assert YAML(typ="safe").load(text)["nav"]
    assert sorted(name for name in named if not name.startswith("repository/")) == sorted(pages)


def test_documents_outside_of_docs_have_pages(site):
    """Those that the navigation names, and what documents link to: text, and folders."""
    for name in ("ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG"):
        assert (site / "repository" / name / "index.html").exists()
    scenario = (site / "repository/scenarios/quickstart.yaml/index.html").read_text(encoding="utf-8")
    folder = (site / "repository/scenarios/faults/index.html").read_text(encoding="utf-8")

    assert "quickstart" in scenario
    assert "churn.yaml" in folder


def test_no_link_leads_to_a_source(site):
    """Each link to a document became one to its page, and what scripts read is gone."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}

    assert len(pages) > 50
    assert [str(path) for path, text in pages.items() if re.search(r'href="(?!https?:)[^"]*\.md["#]', text)] == []
    assert [
        str(path) for path, text in pages.items() if "check-docs: long" in text and "repository" not in path.parts
    ] == []


def test_the_site_loads_nothing_from_elsewhere(site):
    """Neither fonts nor scripts nor pictures."""
    texts = [path.read_text(encoding="utf-8") for path in site.rglob("*.html")]

    assert [found for text in texts for found in IMPORTED.findall(text)] == []


def test_what_github_takes_as_nested_is_nested(site):
    """Two spaces are enough there."""
    text = (site / "creating-a-method/index.html").read_text(encoding="utf-8")

    assert re.search(r"<ul>\s*<li><code>push\(worker, update, base, info\)</code>", text)
