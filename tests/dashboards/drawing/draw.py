"""Draws the dashboards with Grafana's published packages, in Chromium: a picture each, and what is told of each panel.

    python tests/dashboards/drawing/draw.py --prometheus http://127.0.0.1:9090 --begin 1700000000 --end 1700000300 \
        --out pictures --set run=quickstart/0001 run-overview workers

`npm install` and `npm run build` in this folder come first; README.md has more.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, Route, sync_playwright

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


def main(arguments: Sequence[str]) -> int:
    """Draw what is asked for; 1 if a panel has an error, or is empty without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prometheus", required=True, metavar="URL")
    parser.add_argument("--begin", required=True, type=float, metavar="UNIX_SECONDS")
    parser.add_argument("--end", required=True, type=float, metavar="UNIX_SECONDS")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE")
    parser.add_argument("--width", action="append", type=int, metavar="PIXELS", help="default: 1920 and 1280")
    parser.add_argument("--mode", action="append", choices=("light", "dark"), help="default: both")
    parser.add_argument("boards", nargs="*", default=sorted(path.stem for path in BOARDS.glob("*.json")))
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    given = dict(each.split("=", 1) for each in asked.set)
    shown = Shown(asked.prometheus, asked.begin, asked.end, given)
    mistakes = 0
    for width in asked.width or (1920, 1280):
        with opened(width) as page:
            for name in asked.boards:
                for mode in asked.mode or ("light", "dark"):
                    drawn = draw(page, name, shown, mode, asked.out / f"{name}-{width}-{mode}.png")
                    print(f"{name} {width} {mode}: {len(drawn.panels)} panels, {drawn.chosen}")
                    for mistake in drawn.mistakes():
                        mistakes += 1
                        print(f"  {mistake}")
    return int(mistakes > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
