"""What the site has beside docs/: a page for every other file of the repository that a document links to.

MkDocs knows the files of docs/ alone, while documents link to README.md, to scenarios and to code as they lie in the
repository, so that the links work there, too. Here such a file gets a page under `repository/`: a document as it is,
any other text as a block, a folder as a list of what it has. Links are rewritten to these pages.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
NESTED = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)
"""What GitHub takes as a part of a list's item, where MkDocs wants four spaces."""
MARK = re.compile(r"^ *<!-- check-docs: .*? -->\n", re.MULTILINE)
"""What says to `scripts/check-docs` which commands it runs."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for what is linked to outside docs/, and for what these pages link to."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    waiting += [uri.removeprefix("repository/") for uri in _uris(config.nav) if uri.startswith("repository/")]
    seen = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not (ROOT / path).exists():  # MkDocs itself says which link leads nowhere
            continue
        seen.add(path)
        text = _text_of(path)
        if not path.startswith("docs/"):
            files.append(File.generated(config, _page_of(path), content=text))
        if path.endswith(".md"):
            waiting += [target for target in _targets(path, text) if target == "docs" or _is_outside(target)]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links that leave docs/, or come from outside of it; take out what only scripts read."""
    source = _repository_path(page.file.src_uri)
    folder = PurePosixPath(page.file.src_uri).parent

    def rewritten(match: re.Match[str]) -> str:
        target = _resolved(source, match[1])
        if not (ROOT / target).exists():
            return match[0]
        uri = _page_of(target) if _is_outside(target) else target.removeprefix("docs/")
        return os.path.relpath(uri, folder) + (match[2] or "")

    parts = FENCED.split(MARK.sub("", markdown))
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, NESTED.sub("    ", part)) for part in parts)


def _text_of(path: str) -> str:
    """A page's Markdown; paths are the repository's."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(each.name for each in place.iterdir() if not each.name.startswith(("_", ".")))
        return f"# `{path}/`\n\n" + "".join(f"- `{name}`\n" for name in names)
    text = place.read_text(encoding="utf-8")
    return text if path.endswith(".md") else f"# `{path}`\n\n```{LANGUAGES.get(place.suffix, 'text')}\n{text}```\n"


def _targets(source: str, text: str) -> Iterator[str]:
    outside_blocks = "".join(part for part in FENCED.split(text) if not part.startswith("```"))
    return (_resolved(source, match[1]) for match in LINK.finditer(outside_blocks))


def _uris(nav: object) -> Iterator[str]:
    """Every file that a navigation names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list | dict):
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from _uris(each)


def _resolved(source: str, target: str) -> str:
    """Where a link leads, from the repository's root."""
    return os.path.normpath(PurePosixPath(source).parent / target)


def _is_outside(path: str) -> bool:
    return not path.startswith("docs/")


def _page_of(path: str) -> str:
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _repository_path(uri: str) -> str:
    """The opposite of `_page_of`, and of what docs/ has."""
    if not uri.startswith("repository/"):
        return f"docs/{uri}"
    path = uri.removeprefix("repository/")
    return path if (ROOT / path).exists() else path.removesuffix(".md")
