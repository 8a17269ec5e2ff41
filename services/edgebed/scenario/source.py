"""A scenario file as a tree that remembers where everything stands.

`read_file` turns YAML 1.2 into `SourceNode`s; each knows its place, `scenario.yaml:8:12`, so that whatever is found
wrong with a value later, by whatever rule, can be said with line and column. YAML 1.2 reads `no` as text and 010
as ten; two equal keys are an error.
"""

import datetime as dt
import functools
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.error import MarkedYAMLError, StringMark, YAMLError
from ruamel.yaml.reader import ReaderError

from edgebed.core.errors import OPTION, Location, Place, ScenarioError
from edgebed.core.host import in_container
from edgebed.core.imports import path_of
from edgebed.core.quantities import first_text
from edgebed.core.units import LARGEST, SEED_MAX
from edgebed.scenario.mistakes.problems import Problem

NAMES_MAX = 8
OBJECTS = (("task", "model"), ("task", "data"), ("task", "objective"), ("data", "name"), ("objective", "name"))
"""Last keys of the paths whose values may be functions or classes in Python; a file has their import paths."""
WIDTH = 120
"""Columns of a file that edgebed writes."""
NESTED_MAX = 64
"""Lists and mappings in each other; brackets, and lists in lists on one line, are counted before they are parsed, which
takes minutes for thousands."""
TOO_DEEP = f"more than {NESTED_MAX} lists or mappings in each other; a scenario is 6 deep"
TREES_KEPT = 32
"""Files that are not parsed again while they stay as they are."""
REPEATED_MAX = 100_000
"""Values that aliases may add to those that are written out."""


class SourceNode(NamedTuple):
    """A value with its place and its path in the file."""

    value: Any
    """dict of Nodes by key, list of Nodes, or a scalar."""
    place: Place
    """Place of the value."""
    path: tuple[str, ...]
    """Keys from the top of the file, as the user wrote them."""
    key_place: Place
    """Place of the key that the value stands under."""

    def plain(self) -> Any:
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def of_options(self) -> Iterator["SourceNode"]:
        """Yield the nodes that options brought: this one, or those in it."""
        if self.place.source.startswith(OPTION):
            yield self
            return
        inside = self.value.values() if isinstance(self.value, dict) else self.value
        for child in inside if isinstance(self.value, dict | list) else ():
            yield from child.of_options()

    def items(self) -> Iterator[tuple[str, "SourceNode"]]:
        """Yield the children of a mapping; none for anything else."""
        return iter(self.value.items() if isinstance(self.value, dict) else ())

    def descend(self, keys: Sequence[str]) -> tuple["SourceNode", tuple[str, ...]]:
        """Return the deepest node on the way along `keys`, and the keys that lead on from there to nothing."""
        node: SourceNode = self
        for depth, key in enumerate(keys):
            children = node.value
            if isinstance(children, list) and key.isdecimal() and int(key) < len(children):
                node = children[int(key)]
            elif isinstance(children, dict) and key in children:
                node = children[key]
            else:
                return node, tuple(keys[depth:])
        return node, ()


def read_file(
    path: Path,
    what: str = "a scenario",
    example: str = "name: my-scenario",
    read: Callable[[Path], bytes] = Path.read_bytes,
    above: tuple[str, ...] = (),
) -> SourceNode:
    """The file as a tree; ScenarioError if it cannot be read or is not a YAML mapping.

    Messages say `what` it should be, and how that begins, by an `example`. A user's file may be a pipe; one
    of a run, which a stranger may have written, is to be `read` by `core.reading`. `above`: the keys of a scenario
    under which the file's content stands.
    """
    return _tree(_text(path, read), str(path), what, example, above)


@functools.lru_cache(TREES_KEPT)
def _tree(text: str, source: str, what: str, example: str, above: tuple[str, ...]) -> SourceNode:
    """Return the tree of a text; the same for the same text, since nobody changes a tree, and YAML is slow to parse."""
    value = parse(text, source)
    if value is None:
        raise ScenarioError(f"{source}: the file is empty; {what} begins with `{example}`.")
    if not isinstance(value, CommentedMap):
        raise _mistake(source, 1, 1, f"{what} is a mapping of keys to values, e.g. `{example}`.")
    start = Place(source, 1, 1)
    return _node(value, start, start, above)


def located(root: SourceNode, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems of a file's content with their places in their messages."""
    for problem in problems:
        node, rest = root.descend(problem.path)
        place = node.key_place if problem.at_key else node.place
        yield Problem((), str(Location(place, (*node.path, *rest)).problem(problem.message)))


def from_plain(value: object, place: Place, path: tuple[str, ...] = ()) -> SourceNode:
    """Return a tree of a value that has no lines of its own: every node is at `place`."""
    return _node(value, place, place, path)


def yaml_text(value: Mapping[str, Any]) -> str:
    """Return a mapping of plain values as YAML."""
    stream, yaml = io.StringIO(), YAML(typ="rt", pure=True)
    yaml.width = WIDTH
    yaml.dump(value, stream)
    return stream.getvalue()


def parse(text: str, source: str, *, lines: bool = True) -> Any:
    """Parse a YAML text; ScenarioError with line and column (if `lines` mean anything) where it is not YAML."""
    if (place := _too_deep(text)) is not None:
        line, column = (text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)) if lines else (0, 0)
        raise _mistake(source, line, column, f"{TOO_DEEP}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor may be given twice, which YAML allows
            value = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark, problem = _explained(error, text)
        line, column = (mark.line + 1, mark.column + 1) if mark and lines else (0, 0)
        raise _mistake(source, line, column, f"{problem}.") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        where = f"{source}:{line}" if lines else source
        raise ScenarioError(f"{where}: not YAML: it holds the control character {error.character:#04x}.") from None
    except TypeError:  # what the library says of a mapping that stands where a key should
        raise ScenarioError(f"{source}: not YAML: a mapping or list is a key; a key is a name.") from None
    except RecursionError:
        raise ScenarioError(f"{source}: {TOO_DEEP}.") from None
    except (YAMLError, ValueError) as error:
        raise ScenarioError(f"{source}: not YAML: {' '.join(str(error).split())}.") from None
    if (size := _size(value, {})) > REPEATED_MAX + len(text):
        raise ScenarioError(
            f"{source}: aliases of aliases make {size:,} values of {len(text):,} characters; at most {REPEATED_MAX:,} "
            "may be repeated; write out what is meant."
        )
    return value


def _too_deep(text: str) -> int | None:
    """Return where a text opens one bracket too many, or has lists in lists on one line; None: nowhere."""
    if dashes := re.search(rf"^ *(?:[-?] +){{{NESTED_MAX},}}", text, re.MULTILINE):
        return dashes.start()
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth = max(0, depth + (1 if bracket[0] in "[{" else -1))
        if depth > NESTED_MAX:
            return bracket.start()
    return None


def _mistake(source: str, line: int, column: int, message: str) -> ScenarioError:
    return ScenarioError(Location(Place(source, line, column), ()).problem(message))


def _size(value: object, known: dict[int, int]) -> int:
    """Count the values where each alias is what it stands for; counted once for each that is written."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # what contains itself is found by its depth
        children = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(child, known) for child in children)
    return known[id(value)]


def _explained(error: MarkedYAMLError, text: str) -> tuple[StringMark | None, str]:
    """Return where a text is not what it should be, and why: in the user's words where these are known."""
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    problem = str(error.problem).split("\n", 1)[0]
    opened = _OPENS.get(str(error.context))
    if problem.startswith("found duplicate key"):
        return mark, f"not YAML: {problem.split(' with value')[0]}; a key may stand once in a mapping"
    if "another document" in problem:
        return mark, "a second document begins here (---); a file holds one"
    if "'\\t'" in problem and mark and not text.splitlines()[mark.line][: mark.column].strip():
        return mark, "not YAML: the line is indented with a tab; use spaces"
    if opened and context and "<stream end>" in problem:
        return context, f"not YAML: the {opened} that begins here is never closed"
    if context and "unexpected end of stream" in problem and str(error.context) == "while scanning a quoted scalar":
        return context, "not YAML: the quote that begins here is never closed"
    is_block = str(error.context) == "while scanning a block scalar"
    begin = context if is_block else mark
    if begin and (is_block or re.match(r"found character '\S' that cannot start any token", problem)):
        return begin, f'not YAML: a text that begins with {_character(text, begin)} needs quotes, e.g. ">= 0.9"'
    if "'<block mapping start>'" in problem:
        return mark, "not YAML: this line is indented more than the one that it goes with; give both as many spaces"
    if opened and context:
        return mark, f"not YAML: {problem}, in the {opened} of {context.line + 1}:{context.column + 1}"
    return mark, f"not YAML: {problem}{f', {error.context}' if error.context else ''}"


def _character(text: str, mark: StringMark) -> str:
    return text.split("\n")[mark.line][mark.column]


_OPENS = {"while parsing a flow mapping": "{", "while parsing a flow sequence": "["}


def _text(path: Path, read: Callable[[Path], bytes]) -> str:
    try:
        content = read(path)
    except FileNotFoundError:
        raise ScenarioError(f"{path}: there is no such file{neighbours(path.parent)}.{_in_view()}") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: this is a folder, not a scenario file{neighbours(path)}.") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"{content[error.start]:#04x}"
        raise ScenarioError(f"{path}:{line}: not UTF-8 text (byte {found}); save it as UTF-8.") from None


def neighbours(folder: Path) -> str:
    """Name the scenario files of a folder, then those of its sub-folders, for a message; empty if there are none."""
    try:
        names = [
            str(path.relative_to(folder))
            for pattern in ("*", "[!.]*/*")
            for path in sorted(folder.glob(pattern))
            if path.suffix in (".yaml", ".yml") and not path.name.startswith("docker-compose")
        ]
    except OSError:
        return ""
    where = "this folder" if folder == Path() else str(folder)
    return f"; {where} has {first_text(names, NAMES_MAX)}" if names else ""


def _in_view() -> str:
    """Remark for users whose file a container does not see."""
    return " A container sees ./scenarios alone, e.g. SCENARIO=scenarios/quickstart.yaml" if in_container() else ""


def _node(value: object, place: Place, key_place: Place, path: tuple[str, ...]) -> SourceNode:
    if len(path) >= NESTED_MAX and isinstance(value, Mapping | list | tuple):
        raise ScenarioError(Location(place, (*path[:3], "...")).problem(f"{TOO_DEEP}."))
    if isinstance(value, Mapping):
        children: Any = {}
        for key, child in value.items():
            at_key, at_value = _places(value, key, place)
            children[str(key)] = _node(child, at_value, at_key, (*path, str(key)))
    elif isinstance(value, list | tuple):
        places = [_places(value, i, place)[1] for i in range(len(value))]
        children = [_node(child, places[i], places[i], (*path, str(i))) for i, child in enumerate(value)]
    else:
        children = _scalar(value, place, path)
    return SourceNode(children, place, path, key_place)


def _places(parent: object, key: Any, default: Place) -> tuple[Place, Place]:
    """Return the places of a key and its value; a key that came in by `<<` has that of the mapping it came into."""
    if default.line and isinstance(parent, CommentedMap | CommentedSeq):
        position = (parent.lc.data or {}).get(key)
        if position:
            key_line, key_column, line, column = (*position, *position)[:4]
            return (
                Place(default.source, key_line + 1, key_column + 1),
                Place(default.source, line + 1, column + 1),
            )
    return default, default


def _scalar(value: object, place: Place, path: tuple[str, ...]) -> object:
    """Return the value as the plain Python type; the parser's own number types remember how they were written.

    A function or class, which only Python can give, becomes its import path.
    """
    if isinstance(value, TaggedScalar):
        raise ScenarioError(
            Location(place, path).problem(
                f"YAML tags such as {value.tag.value} are not used here; a text that begins with ! needs quotes."
            )
        )
    largest = SEED_MAX if path == ("seed",) else LARGEST
    if isinstance(value, int | float) and largest < abs(value) < math.inf:
        problem = f"a number that is too large: {'seeds' if largest == SEED_MAX else 'numbers'} are at most {largest:,}"
        raise ScenarioError(Location(place, path).problem(problem))
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, np.generic):
        return _scalar(value.item(), place, path)
    if callable(value) and path[-2:] in OBJECTS:
        try:
            return path_of(value)
        except ScenarioError as error:
            raise ScenarioError(Location(place, path).problem(str(error))) from None
    return value.isoformat() if isinstance(value, dt.date) else value
