"""Draws the dashboards with Grafana's published packages, in Chromium: a picture each, and what is told of each panel.

    PYTHONPATH=tests/shared python tests/dashboards/drawing/draw.py --run quickstart/0001 --out pictures run-overview

`npm ci` and `npm run build` in this folder come first; README.md has more.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, Route, sync_playwright
from real_prometheus import showing

from edgebed.running.replay import read_again
from edgebed.running.results import Run, load

HERE = Path(__file__).parent
BOARDS = HERE.parents[2] / "dashboards/grafana/dashboards/edgebed"
ICONS = HERE / "node_modules/@grafana/ui/dist/public/img/icons"
ORIGIN = "http://localhost/"
PAGE = (
    '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/page.css"><style>body{margin:0}</style>'
    '<div id="drawn"></div><script src="/page.js"></script>'
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-features=LocalNetworkAccessChecks",
)
HEIGHT = 1080
STEP_S = 5.0
"""Seconds between two looks of Prometheus at a node."""


class Shown(NamedTuple):
    """What is drawn: of which Prometheus, from when to when (Unix seconds), with which choices at the top."""

    address: str
    begin_s: float
    end_s: float
    given: Mapping[str, str] = {}


class Drawn(NamedTuple):
    """Of one dashboard: what is told of each panel, what each variable became, and what the browser complained of."""

    panels: list[dict[str, Any]]
    chosen: dict[str, str]
    bottom: int
    complaints: list[str]

    def mistakes(self) -> list[str]:
        """Errors, and panels that are empty without saying why."""
        told = [f"{panel['title']}: {panel['error']}" for panel in self.panels if panel["error"]]
        told += [
            f"{panel['title']}: empty, and does not say why"
            for panel in self.panels if panel["isEmpty"] and not panel["reason"] and not panel["error"]
        ]  # fmt: skip
        return told + self.complaints


def is_built() -> bool:
    """Whether `npm run build` has been run here."""
    return (HERE / "built/page.js").exists()


@contextmanager
def replayed(run: Run) -> Iterator[Shown]:
    """A finished or simulated run in a Prometheus of its own, as long as this lasts."""
    again = read_again(run, [], STEP_S)
    with tempfile.TemporaryDirectory() as folder, showing(Path(folder), again.store) as prometheus:
        yield Shown(f"http://{prometheus.address}", again.begin_s, again.end_s, {"run": run.folder.name})


@contextmanager
def opened(width: int) -> Iterator[Page]:
    """An empty page in Chromium, which knows the built files."""
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page(viewport={"width": width, "height": HEIGHT})
        page.route(f"{ORIGIN}**", _serve)
        yield page
        browser.close()


def _serve(route: Route) -> None:
    path = route.request.url.removeprefix(ORIGIN).split("?")[0]
    icon = ICONS / path.partition("img/icons/")[2]
    if path in ("page.js", "page.css"):
        route.fulfill(path=HERE / "built" / path)
    elif "img/icons/" in path and icon.is_file():
        route.fulfill(path=icon)
    else:
        route.fulfill(body=PAGE, content_type="text/html")


def draw(page: Page, name: str, shown: Shown, mode: str, picture: Path | None = None, board: Any = None) -> Drawn:
    """Draw the dashboard of that name, or `board`, in mode light or dark."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"{error}"))
    board = board or json.loads((BOARDS / f"{name}.json").read_text(encoding="utf-8"))
    page.set_viewport_size({"width": page.viewport_size["width"], "height": _height(board)})  # tables draw what is seen
    page.goto(ORIGIN)
    order = {
        "dashboard": board,
        "address": shown.address,
        "from": round(shown.begin_s * 1000),
        "to": round(shown.end_s * 1000),
        "mode": mode,
        "given": dict(shown.given),
    }
    told = page.evaluate("order => window.draw(order)", order)
    if picture is not None:
        page.screenshot(path=picture, full_page=True)
    return Drawn(**told, complaints=complaints)


def _height(board: Any) -> int:
    """Pixels of all its panels, those of closed rows included, and of what is told below them."""
    panels = [each for one in board["panels"] for each in (one, *one.get("panels", []))]
    return 160 + 18 * len(panels) + 38 * max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels)


def _running(address: str, begin_s: str, end_s: str) -> Shown:
    return Shown(address, float(begin_s), float(end_s))


def main(arguments: Sequence[str]) -> int:
    """Draw what is asked for; 1 if a panel has an error, or is empty without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", help="a finished or simulated run, which is replayed: its name or its folder")
    source.add_argument("--prometheus", nargs=3, metavar=("URL", "BEGIN", "END"), help="one that runs; Unix seconds")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE")
    parser.add_argument("--width", action="append", type=int, metavar="PIXELS", help="default: 1920 and 1280")
    parser.add_argument("--mode", action="append", choices=("light", "dark"), help="default: both")
    parser.add_argument("boards", nargs="*", default=sorted(path.stem for path in BOARDS.glob("*.json")))
    asked = parser.parse_args(arguments)
    if not is_built():
        parser.error(f"not built: npm ci && npm run build in {HERE}")
    asked.out.mkdir(parents=True, exist_ok=True)
    mistakes = 0
    with replayed(load(asked.run)) if asked.run else nullcontext(_running(*asked.prometheus)) as shown:
        chosen = shown._replace(given={**shown.given, **dict(each.split("=", 1) for each in asked.set)})
        for width in asked.width or (1920, 1280):
            with opened(width) as page:
                for name in asked.boards:
                    for mode in asked.mode or ("light", "dark"):
                        drawn = draw(page, name, chosen, mode, asked.out / f"{name}-{width}-{mode}.png")
                        print(f"{name} {width} {mode}: {len(drawn.panels)} panels, {drawn.chosen}")
                        for mistake in drawn.mistakes():
                            mistakes += 1
                            print(f"  {mistake}")
    return int(mistakes > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
