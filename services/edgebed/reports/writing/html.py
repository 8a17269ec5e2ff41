"""The few pieces of HTML that a report is made of. Text is escaped here; only `Raw` passes through as it is."""

import html
from collections.abc import Iterable, Mapping, Sequence

from edgebed.reports.writing.drawing import PALETTE, SIZE, Chart

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --quiet: #5b6570; --paper: #fff; --panel: #f6f7f8; --line: #d9dde1;
  --good: #0a7a4b; --bad: #b3261e; --unknown: #8a5a00; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e3e6e9; --quiet: #9aa4ad; --paper: #14171a;
  --panel: #1c2024; --line: #343a40; --good: #4cc38a; --bad: #ff8a80; --unknown: #f0b429; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 74rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { margin: .1rem 0 .8rem; font-size: 1.75rem; line-height: 1.25; text-wrap: balance; }
h2 { margin: 2.6rem 0 .7rem; font-size: 1.15rem; } h3 { margin: 1rem 0 .3rem; font-size: 1rem; }
.name { margin: 0; color: var(--quiet); font-variant-numeric: tabular-nums; } .quiet { color: var(--quiet); }
.good { color: var(--good); } .bad { color: var(--bad); } .unknown { color: var(--unknown); }
.badge { display: inline-block; margin: 0; padding: .3rem .8rem; border: 1px solid; border-radius: .4rem;
  font-weight: 600; }
p, li { max-width: 54rem; } h1, p, li, code { overflow-wrap: break-word; }
.wide { overflow-x: auto;
  background: linear-gradient(to left, var(--paper) 50%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--line), transparent) right / .7rem 100% no-repeat; }
* + .wide { margin-top: .8rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .9rem .32rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.short { white-space: nowrap; } .long { min-width: 9rem; }
thead th { font-weight: 600; } tbody th { color: var(--quiet); font-weight: 400; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1rem; }
figure { margin: 0; padding: .8rem; min-width: 0; overflow-x: auto; background: var(--panel); border-radius: .5rem;
  break-inside: avoid; }
.whole { grid-column: 1 / -1; }
figcaption { margin-bottom: .3rem; font-weight: 600; }
figure svg { display: block; width: 100%; height: auto; margin: 0 auto; }
.bar { display: flex; height: 1.1rem; border-radius: .3rem; overflow: hidden; background: var(--line); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .4rem 0 0; padding: 0; list-style: none; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
summary { cursor: pointer; padding: .2rem 0; }
pre { padding: .8rem 1rem; overflow-x: auto; background: var(--panel); border-radius: .5rem; font-size: .86rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 0; } dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1.2rem .8rem 2rem; font-size: 14px; } h1 { font-size: 1.35rem; }
  h2 { margin-top: 2rem; } figure { padding: .5rem; } ul { padding-left: 1.2rem; } dl { column-gap: .8rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } pre { white-space: pre-wrap; }
  .charts { grid-template-columns: 1fr 1fr; } figure svg { min-width: 0 !important; } h2, h3 { break-after: avoid; }
  .wide { overflow: visible; background: none; } table { font-size: 8pt; } th, td { padding-right: .3rem; }
  .short { white-space: normal; } .long { min-width: 0; } tr { break-inside: avoid; }
  * { print-color-adjust: exact; } }
"""

SHORT_MAX = 16
"""Number of characters up to which a cell is not broken, such as a number with its unit."""
NAME_MAX = 12
"""Number of characters up to which a row's name is not broken."""


class Raw(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> str:
    """The text escaped for HTML; `Raw` stays as it is."""
    return text if isinstance(text, Raw) else html.escape(text)


def page(title: str, body: str) -> str:
    """A document with its style inside, which loads nothing."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} – edgebed</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def section(title: str, body: str) -> str:
    """A titled section."""
    return f"\n<section><h2>{escape(title)}</h2>{body}</section>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    header = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th scope=row{_length(row[0], NAME_MAX)}>{escape(row[0])}</th>{''.join(map(_cell, row[1:]))}</tr>"
        for row in rows
    )
    return f"<div class=wide><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(text: str) -> str:
    return f"<td{_length(text, SHORT_MAX)}>{escape(text)}</td>"


def _length(text: str, short_max: int) -> str:
    return f" class={length_class(text, short_max)}"


def length_class(text: str, short_max: int = SHORT_MAX) -> str:
    """The class of a cell: a short text is not broken into lines, a long one not into too many."""
    return "short" if len(text) <= short_max else "long"


def figures(charts: Iterable[Chart]) -> str:
    """The charts that show anything, side by side where there is room; "" where none does."""
    drawn = [
        f"<figure{' class=whole' if chart.size[0] > 1.2 * SIZE[0] else ''}>"
        f"<figcaption>{escape(chart.title)}</figcaption>{chart.svg}</figure>"
        for chart in charts
        if chart.svg
    ]
    return f"<div class=charts>{''.join(drawn)}</div>" if drawn else ""


def items(lines: Sequence[str], kind: str) -> str:
    """A list of sentences with this class of the style; "" where there are none."""
    return f"<ul class={kind}>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def details(title: str, body: str) -> str:
    """A block that can be unfolded."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def definitions(facts: Mapping[str, str]) -> str:
    """Names and values, one pair a line."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in facts.items())}</dl>"


def bars(parts: Mapping[str, float]) -> str:
    """One bar cut into parts in proportion to their values, and its key."""
    total = sum(parts.values()) or 1.0
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(parts))]
    pieces = "".join(
        f"<span style='width:{100 * value / total:.2f}%;background:{colour}'></span>"
        for value, colour in zip(parts.values(), colours, strict=True)
    )
    key = "".join(
        f"<li><i style='background:{colour}'></i>{escape(name)}</li>"
        for name, colour in zip(parts, colours, strict=True)
    )
    return f"<div class=bar>{pieces}</div><ul class=key>{key}</ul>"
