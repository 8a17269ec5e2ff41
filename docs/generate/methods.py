"""docs/methods.md, from the methods.

What is read are the docstrings of the parts' modules, which have the source, the equations and what differs from the
paper; the defaults of their settings; what they send; and the comment above each preset.
"""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from docs.generate.rendering import doc, grid, render
from edgebed.algorithms import registry
from edgebed.algorithms.registry import FAMILIES, KINDS, PRESETS

FAMILY_TITLES = {
    "parameter-server": (
        "Methods with a parameter server",
        "Each worker has the whole model, and pushes updates to it.",
    ),
    "layer-wise": ("Layer-wise methods", "Each worker has a shard of the model: some of its layers."),
}
KIND_TITLES = {
    "aggregation": ("Aggregation", "How the server applies the updates that workers push."),
    "compression": (
        "Compression",
        "What a worker sends of an update; as `downlink`, also what the server sends of a model.",
    ),
    "local_work": ("Local work", "What a worker does between receiving a model and pushing an update."),
    "learning": ("Learning of shards", "Where the gradient of a shard's outputs comes from, and who waits for it."),
    "optimizer": ("Optimizers of shards", "How a shard's parameters follow their gradients."),
    "exchange": ("Exchange between shards", "What shards send of activations and gradients."),
}


def markdown() -> str:
    """The whole document."""
    families = [(*FAMILY_TITLES[family], _presets(kinds)) for family, kinds in FAMILIES.items()]
    kinds = [
        (title, text, [_part(kind, name, module) for name, module in KINDS[kind].items()])
        for kind, (title, text) in KIND_TITLES.items()
    ]
    return render("methods.md", families=families, kinds=kinds)


def _presets(kinds: tuple[str, ...]) -> str:
    comments = _comments()
    rows = [
        (f"`{name}`", comments.get(name, ""), *(_chosen(kind, parts[kind]) for kind in kinds))
        for name, parts in PRESETS.items()
        if set(kinds) <= set(parts)
    ]
    return grid(("name", "what it does", *kinds), rows)


def _chosen(kind: str, part: dict[str, Any]) -> str:
    """A preset's part as a link to what it is, with the settings that the preset makes."""
    settings = ", ".join(f"{key} {value}" for key, value in part.items() if key != "name")
    return f"[{part['name']}](#{kind}-{part['name']})" + (f", {settings}" if settings else "")


def _comments() -> dict[str, str]:
    """The comment above each preset."""
    found = re.findall(r'((?:^    # .*\n)+)    "([\w-]+)": \{', inspect.getsource(registry), re.MULTILINE)
    return {name: " ".join(comment.replace("    # ", "").split()) for comment, name in found}


def _part(kind: str, name: str, module: ModuleType) -> str:
    facts = []
    if kind == "compression":
        held = "; ".join(f"`{piece}`: {text}" for piece, text in module.Compression.travels.items())
        facts.append(f"**What travels**: {held}.")
    defaults = ", ".join(f"`{key}` {_written(value)}" for key, value in _defaults(module) if key != "name")
    if defaults:
        facts.append(f"**Defaults**: {defaults}; [what they mean](scenario.md#{kind}-{name}).")
    return "\n\n".join([f"### {kind}: `{name}`", *_paragraphs(doc(module)), *facts]) + "\n"


def _defaults(module: ModuleType) -> Iterator[tuple[str, Any]]:
    config = module.Config()
    return ((field.name, getattr(config, field.name)) for field in dataclasses.fields(config))


def _written(value: Any) -> str:
    """A default as a scenario would write it."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _paragraphs(text: str) -> Iterator[str]:
    """A docstring in Markdown: indented lines are equations, and what differs from the paper stands out."""
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if all(line.startswith("    ") for line in lines):
            yield "```text\n" + textwrap.dedent(paragraph).rstrip() + "\n```"
            continue
        escaped = re.sub(r"([*<])", r"\\\1", paragraph)
        yield re.sub(r"(Differs(?:\sfrom\sthe\s(?:paper|report))?)(?=[:,])", r"**\1**", escaped)
