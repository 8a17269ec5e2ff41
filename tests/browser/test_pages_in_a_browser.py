"""Every HTML page in a real browser: on a desktop and a phone, light and dark, and on paper.

The pages are of real simulated runs. Made up are a sweep's result and runs that agree, since these take many, and what
was measured of links, since a simulation measures none.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from finished_runs import RISING, finished_run
from swept_result import RATES, swept
from tiny_paper import write_paper

from edgebed.cli import main as cli
from edgebed.journal.verdict.measured import DirectionConditions, NodeConditions
from edgebed.reports.run.trial_charts import links
from edgebed.reports.studies.sweep_page import sweep_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.markdown import write
from edgebed.reports.writing.page import Figures, Page

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: scripts/setup --dev installs it")

SCENARIO = """\
name: shown
question: What do faults and slow links do to the way to an accuracy?
task: { data: digits, model: small, batch_size: 10 }
fleet:
  home: { count: 2, uplink: 2mbit, downlink: 16mbit, latency: 5ms }
  car: { count: 2, uplink: 8mbit, downlink: 30mbit, waiting: { exponential: 20ms } }
evaluation: { every: 50 updates }
stop: { updates: 300 }
faults: [{ freeze: car-1, at: 500ms, for: 200ms }, { kill: home-1, at: 900ms }]
on_failure: restart
expect: { best_accuracy: ">= 0.1" }
variants: { asgd: { method: asgd }, adacomp: { method: adacomp } }
"""
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PAGES = ("report", "links", "comparison", "agreement", "reproduction", "sweep")
DESKTOP, PHONE, PAPER = 1280, 390, 680
"""Widths in pixels; A4 at 96 dots an inch with margins of 15 mm."""
LETTERS_MIN = 7.0
"""Height in pixels of the smallest letters of a chart."""
ROWS_ONLY = re.compile("nodes and what was done|what holds a step up")
"""Charts whose rows have names, so that they need no title upwards."""
CHARTS = """() => [...document.querySelectorAll('figure')].map(figure => {
  const svg = figure.querySelector('svg'), box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')];
  const letters = Math.min(...texts.map(text => parseFloat(getComputedStyle(text).fontSize)));
  return {
    title: figure.querySelector('figcaption').textContent,
    axes: [...svg.querySelectorAll('.axis-title')].map(axis => axis.textContent.trim()),
    letters: letters * box.width / svg.viewBox.baseVal.width,
    box: [box.left, box.top, box.right, box.bottom],
    texts: texts.map(text => {
      const at = text.getBoundingClientRect();
      return [text.textContent, at.left, at.top, at.right, at.bottom];
    }),
  };
})"""
INK_AND_PAPER = """() => {
  const style = getComputedStyle(document.body);
  return [style.color, style.backgroundColor].map(text => text.match(/\\d+/g).slice(0, 3).map(Number));
}"""
WIDE = """() => [...document.querySelectorAll('pre, table')].filter(part => part.checkVisibility())
  .map(part => part.getBoundingClientRect().right).filter(right => right > innerWidth + 1)"""


class Opened(NamedTuple):
    """A page in the browser, and what it complained of."""

    tab: Any
    complaints: list[str]


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all pages."""
    place = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(str(place))
        patch.delitem(sys.modules, "papers_of_mine", raising=False)
        patch.setenv("EDGEBED_RUNS_DIR", str(place / "runs"))
        write_paper(place)
        Path("shown.yaml").write_text(SCENARIO)
        for words in (
            "run shown.yaml --runtime simulation --processes 1",
            "run shown.yaml --runtime simulation --processes 1 --set seed=2",
            "report shown/1 --output report.html",
            "compare shown/1 shown/2 --output comparison.html",
            "reproduce papers_of_mine:PAPER --scale 0.2 --seeds 1 --processes 1 --output .",
            f"agree --from {' '.join(_finished(place))} --output agreement.html",
        ):
            patch.setattr(sys, "argv", ["edgebed", *words.split()])
            with pytest.raises(SystemExit) as left:
                cli.main()
            assert not left.value.code, words
        Path("tiny.html").rename("reproduction.html")
        Path("links.html").write_text(to_html(Page(name="links", parts=[Figures([links("made", _measured())])])))
        result = swept({"fleet.edge.count": ["4", "8"], "fleet.edge.uplink": RATES}, seeds=2)
        write(sweep_page(result, "edgebed sweep tiny.yaml"), place).rename("sweep.html")
        yield place


def _finished(folder: Path) -> list[str]:
    """Runs of three seeds in two runtimes that measured much the same."""
    return [
        str(finished_run(folder / "made", {"asgd": RISING, "adacomp": RISING}, seed=seed, runtime=runtime).path)
        for runtime in ("simulation", "process")
        for seed in (1, 2, 3)
    ]


def _measured() -> list[NodeConditions]:
    """Of workers whose links were asked to be anything from slow to fast, some close together."""
    asked = {"up": (250_000, 1_000_000, 1_200_000, 2_000_000), "down": (16_000_000, 30_000_000, 50_000_000, 10**9)}
    return [
        NodeConditions(
            node=f"edge-{index}",
            role="worker",
            device_class="edge",
            **{
                f"{direction}link": DirectionConditions(
                    direction=direction, asked_low_bit_s=rate, asked_high_bit_s=rate, measured_bit_s=0.9 * rate
                )
                for direction, rate in (("up", uplink), ("down", downlink))
            },
        )
        for index, (uplink, downlink) in enumerate(zip(asked["up"], asked["down"], strict=True))
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for all."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def open_page(browser: Any, folder: Path) -> Open:
    """Shows one of the pages as a user with this screen sees it."""
    shown: dict[str, Opened] = {}

    def opened(name: str, width: int, scheme: str = "light", media: str = "screen") -> Opened:
        if name not in shown:
            tab, address, complaints = browser.new_page(), (folder / f"{name}.html").as_uri(), []
            tab.on("console", lambda message: complaints.append(message.text))
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.on("request", lambda request: complaints.append(request.url) if request.url != address else None)
            tab.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
            tab.goto(address)
            shown[name] = Opened(tab, complaints)
        tab = shown[name].tab
        tab.emulate_media(media=media, color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 900})
        return shown[name]

    return opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_screen_and_asks_for_nothing(open_page: Open, name: str, width: int, scheme: str) -> None:
    """No message on the console, no request but for itself, nothing to scroll sideways; dark where that is wanted."""
    tab, complaints = open_page(name, width, scheme)
    ink, paper = tab.evaluate(INK_AND_PAPER)

    assert complaints == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (sum(ink) > sum(paper)) == (scheme == "dark")
    assert abs(sum(ink) - sum(paper)) > 500


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_the_text_of_a_chart_can_be_read(open_page: Open, name: str, width: int) -> None:
    """Letters are not too small, no two texts are on top of each other, and none is cut off."""
    charts = open_page(name, width).tab.evaluate(CHARTS)

    assert charts
    for chart in charts:
        assert chart["letters"] >= LETTERS_MIN, chart["title"]
        left, top, right, bottom = chart["box"]
        texts = [text for text in chart["texts"] if text[0].strip()]
        for place, (text, x0, y0, x1, y1) in enumerate(texts):
            assert left - 1 <= x0 < x1 <= right + 1, (chart["title"], text)
            assert top - 1 <= y0 < y1 <= bottom + 1, (chart["title"], text)
            for other, u0, v0, u1, v1 in texts[:place]:
                apart = min(x1, u1) - max(x0, u0) <= 1 or min(y1, v1) - max(y0, v0) <= 1
                assert apart, (chart["title"], text, other)


@pytest.mark.parametrize("name", PAGES)
def test_the_axes_of_a_chart_have_titles_with_units(open_page: Open, name: str) -> None:
    """Both, but for rows that have names."""
    for chart in open_page(name, DESKTOP).tab.evaluate(CHARTS):
        assert len(chart["axes"]) == (1 if ROWS_ONLY.search(chart["title"]) else 2), chart["title"]
        for axis in chart["axes"]:
            assert re.search(r"\(.+\)", axis), (chart["title"], axis)


POINT = """() => {
  const figure = document.querySelector('figure'), map = figure.querySelector('svg').getScreenCTM();
  const row = figure.querySelector('tbody tr:nth-child(3)'), [x, y] = row.dataset.at.split(' ').map(Number);
  return [map.a * x + map.e, map.d * y + map.f, [...row.cells].map(cell => cell.textContent)];
}"""
"""Where the third point of the first chart is on the screen, and its row of data."""


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_point_says_its_values_where_the_pointer_is(open_page: Open, width: int) -> None:
    """The line, and both values with their units; away from any point there is nothing."""
    tab = open_page("report", width).tab
    left, top, (name, x, y) = tab.evaluate(POINT)
    tip = tab.locator(".tip")
    tab.mouse.move(left + 3, top - 3)

    shown = tip.text_content().splitlines()
    assert shown[0] == name
    assert re.fullmatch(r"up and down ([0-9.]+) (kB|MB)", shown[1])
    assert float(shown[1].split()[3]) == pytest.approx(float(x) / {"kB": 1e3, "MB": 1e6}[shown[1].split()[4]], rel=1e-3)
    assert shown[2] == f"test accuracy (%) {float(y):.4g}"
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    tab.mouse.move(1, 1)
    assert tip.is_hidden()


def test_the_data_of_a_chart_can_be_saved(open_page: Open) -> None:
    """A click away, as CSV with a head and a line a point."""
    tab, complaints = open_page("report", DESKTOP)
    *_, cells = tab.evaluate(POINT)
    tab.locator(".data summary").first.click()
    with tab.expect_download() as download:
        tab.locator(".data button").first.click()
    lines = Path(download.value.path()).read_text().splitlines()
    tab.locator(".data summary").first.click()

    assert download.value.suggested_filename == "Accuracy against bytes up and down.csv"
    assert lines[0] == ",up and down: pushes and the models sent (bytes),test accuracy (%)"
    assert lines[3] == ",".join(cells)
    assert [each for each in complaints if not each.startswith("blob:")] == []
    complaints.clear()


def test_the_page_of_all_runs_can_be_sorted_and_searched(open_page: Open) -> None:
    """By a column up and down, what is not known last; words are found anywhere in a row; nothing is asked for."""
    tab, complaints = open_page("runs/index", PHONE)

    def names() -> list[str]:
        """Of the rows that are shown, in their order."""
        rows = tab.locator("tbody tr:visible")
        return [rows.nth(place).locator("th").text_content() for place in range(rows.count())]

    every = names()
    assert {"shown/0001", "shown/0002"} < set(every)
    tab.get_by_role("button", name="run", exact=True).click()
    assert names() == sorted(every)
    tab.get_by_role("button", name="run", exact=True).click()
    assert names() == sorted(every, reverse=True)
    tab.get_by_role("button", name="best accuracy", exact=True).click()
    places = tab.evaluate("[...document.querySelectorAll('tbody tr')].map(row => row.cells[3].dataset.order ?? 'x')")
    known = [float(place) for place in places if place != "x"]
    assert known == sorted(known)
    assert "x" not in places[: len(known)]
    tab.get_by_role("searchbox").fill("SHOWN 0002")
    assert names() == ["shown/0002"]
    tab.get_by_role("searchbox").fill("")
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert complaints == []


def test_the_page_of_all_runs_fits_a_desktop(open_page: Open) -> None:
    """The questions, too, which are in its last column."""
    tab, _ = open_page("runs/index", DESKTOP)

    assert tab.evaluate("(wide => wide.scrollWidth - wide.clientWidth)(document.querySelector('.wide'))") <= 1


def test_questions_have_room_on_a_phone(open_page: Open) -> None:
    """The table is scrolled sideways in any case, and a narrow column of them would make its rows high."""
    tab, _ = open_page("runs/index", PHONE)
    widths = tab.evaluate("[...document.querySelectorAll('tbody td.long:last-child')].map(each => each.clientWidth)")

    assert min(widths) > PHONE / 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_that_scrolls_a_table_still_shows_whose_row_it_is(open_page: Open, scheme: str) -> None:
    """The names stay at the left, above what passes below them."""
    tab, _ = open_page("runs/index", PHONE, scheme)
    before, after, top = tab.evaluate("""() => {
      const wide = document.querySelector('.wide'), name = wide.querySelector('tbody th');
      const left = () => name.getBoundingClientRect().left, before = left();
      wide.scrollLeft = 200;
      const box = name.getBoundingClientRect();
      const found = [before, left(), name.contains(document.elementFromPoint(box.left + 5, box.top + 5))];
      wide.scrollLeft = 0;
      return found;
    }""")

    assert (after, top) == (before, True)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_printed(open_page: Open, name: str) -> None:
    """Dark on white, also where screens are dark; no table or command goes beyond the paper."""
    tab, _ = open_page(name, PAPER, "dark", "print")
    ink, paper = tab.evaluate(INK_AND_PAPER)

    assert (sum(ink) < 200, sum(paper)) == (True, 3 * 255)
    assert tab.evaluate(WIDE) == []


def test_the_pages_have_the_charts_that_they_are_for(open_page: Open) -> None:
    """Among them nodes over time, links and marks of what was done."""
    found = {name: [chart["title"] for chart in open_page(name, DESKTOP).tab.evaluate(CHARTS)] for name in PAGES}

    assert {name: len(titles) for name, titles in found.items()} == {
        "report": 7 + 2, "links": 1, "comparison": 5, "agreement": 4, "reproduction": 1, "sweep": 19
    }  # fmt: skip
    assert "asgd: nodes and what was done to them" in found["report"]
    texts = {text[0] for chart in open_page("report", DESKTOP).tab.evaluate(CHARTS) for text in chart["texts"]}
    assert {"freeze", "kill", "home-1"} <= texts
    texts = {text[0] for chart in open_page("links", DESKTOP).tab.evaluate(CHARTS) for text in chart["texts"]}
    assert {"uplink", "downlink", "250 kbit"} <= texts
