"""Every dashboard drawn with Grafana's published packages, in Chromium, of runs that are replayed into a Prometheus.

Needs Node's packages: `npm ci && npm run build` in `drawing/`, whose README has more.
"""

import json
import shutil
from collections.abc import Iterator

import pytest
from boards import FOLDER, boxes_of
from real_prometheus import require_tools

import edgebed

pytest.importorskip("playwright.sync_api", reason="no playwright: scripts/setup --dev installs it")
from draw import Drawn, Shown, draw, is_built, opened, replayed

pytestmark = pytest.mark.campaign

NAMES = sorted(path.stem for path in FOLDER.glob("grafana/dashboards/edgebed/*.json"))
SCENARIO = """\
name: drawn
question: What do dashboards show?
task: { data: digits, model: small, batch_size: 10 }
fleet:
  home: { count: 3, uplink: 2mbit, downlink: 16mbit, latency: 5ms, waiting: { exponential: 100ms } }
  car: { count: 3, uplink: 8mbit, downlink: 30mbit, waiting: { exponential: 300ms } }
evaluation: { every: 50 updates }
stop: { time: 90s }
faults: [{ freeze: car-1, at: 20s, for: 3s }, { kill: server, at: 40s }, { kill: home-1, at: 60s }]
on_failure: restart
variants: { asgd: { method: asgd }, adacomp: { method: adacomp } }
"""
FIRST_SCREEN = 1080
"""Pixels of a common screen's height."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A run of two methods with faults, in a Prometheus."""
    require_tools()
    if not is_built():
        pytest.skip("not built: npm ci && npm run build in tests/dashboards/drawing")
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium: install it (Debian: apt-get install chromium)")
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "drawn.yaml").write_text(SCENARIO, encoding="utf-8")
    run = edgebed.run(folder / "drawn.yaml", runtime="simulation", runs_dir=folder / "runs")
    with replayed(run) as one:
        yield one


@pytest.fixture(scope="module", params=[(1920, "dark"), (1280, "light")], ids=lambda param: f"{param[0]}-{param[1]}")
def drawn(request: pytest.FixtureRequest, shown: Shown) -> dict[str, Drawn]:
    """Every dashboard at a width, in a mode."""
    width, mode = request.param
    with opened(width) as page:
        return {name: draw(page, name, shown if name != "runs" else shown._replace(given={}), mode) for name in NAMES}


def test_no_panel_is_empty_without_saying_why_and_none_has_an_error(drawn: dict[str, Drawn]) -> None:
    """Nor does the browser complain."""
    assert {name: one.mistakes() for name, one in drawn.items()} == {name: [] for name in NAMES}


def test_every_panel_is_drawn(drawn: dict[str, Drawn]) -> None:
    """With what is known: the run's two trials have curves, figures, points and rows."""
    for name, one in drawn.items():
        board = json.loads((FOLDER / f"grafana/dashboards/edgebed/{name}.json").read_text(encoding="utf-8"))
        titles = [panel["title"] for panel in boxes_of(board) if panel["type"] != "row"]
        assert sorted(panel["title"] for panel in one.panels) == sorted(titles)
    overview = {panel["title"]: panel for panel in drawn["run-overview"].panels}
    assert overview["Headline over time"]["names"] == ["adacomp: test accuracy (%)", "asgd: test accuracy (%)"]
    assert overview["Total up and down"]["names"] == ["adacomp up", "asgd up", "adacomp down", "asgd down"]


def test_figures_have_their_trials_in_one_order(drawn: dict[str, Drawn]) -> None:
    """Whatever order Prometheus answers in."""
    for one in drawn.values():
        for panel in one.panels:
            if panel["type"] == "stat" and {"adacomp", "asgd"} == {*panel["names"]}:
                assert panel["names"] == ["adacomp", "asgd"], panel["title"]


def test_the_overviews_first_screen_needs_no_scrolling() -> None:
    """Learning, pace, bytes both ways, who is alive, conditions: above the first row with a title."""
    board = json.loads((FOLDER / "grafana/dashboards/edgebed/run-overview.json").read_text(encoding="utf-8"))
    first = next(panel["gridPos"]["y"] for panel in board["panels"] if panel["type"] == "row")

    assert 96 + 38 * first <= FIRST_SCREEN
    assert {panel["title"] for panel in board["panels"] if panel["gridPos"]["y"] < first} >= {
        "Headline over time", "Updates", "Total up and down", "Workers by state",
        "Conditions against their bounds",
    }  # fmt: skip


def test_a_link_of_the_list_leads_to_a_run_from_its_beginning_to_its_end(drawn: dict[str, Drawn], shown: Shown) -> None:
    """With times in milliseconds that the run is in."""
    (table,) = drawn["runs"].panels
    to_end = next(link for link in table["links"] if "edgebed-run-overview" in link and "to=now" not in link)
    begin, end = (int(to_end.split(f"{word}=")[1].split("&")[0]) / 1000 for word in ("from", "to"))

    assert "var-run=drawn/0001" in to_end.replace("%2F", "/")
    assert shown.begin_s - 1.0 <= begin < end <= shown.end_s + 30.0
