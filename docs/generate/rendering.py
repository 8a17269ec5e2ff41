"""What generators have in common: the prose of a document is a template beside them, to which they give its tables."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2


def line(text: str) -> str:
    """Text for a cell of a table, or for one line."""
    return " ".join(text.split()).replace("|", "\\|")


def codes(names: Iterable[str]) -> str:
    """Names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))


def doc(described: Any) -> str:
    """What a class, a function or a module says of itself."""
    return inspect.getdoc(described) or ""


def field_texts(described: type) -> dict[str, str]:
    """The texts that stand below the fields of a class, and of those of edgebed that it builds on."""
    found: dict[str, str] = {}
    for base in reversed(described.__mro__):
        if not base.__module__.startswith("edgebed."):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    autoescape=False,  # noqa: S701 - Markdown of our own
)
TEMPLATES.filters |= {"commas": "{:,}".format, "codes": codes, "line": line}


def render(template: str, **values: Any) -> str:
    """A document, with one empty line wherever a template or a value leaves several."""
    text = TEMPLATES.get_template(f"{template}.j2").render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
