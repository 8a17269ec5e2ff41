"""A node's command: `run` as the user wrote it, and the words that are run, with no shell in between.

It is divided into words as a shell would, and its placeholders are filled afterwards: what they stand for is never
divided, and needs no quotes. A brace that is meant is written twice.
"""

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from edgebed.core.errors import Choice

PLACEHOLDERS = ("rank", "world_size", "index", "node", "address", "addresses")
"""Placeholders beside `address.NODE`, the address of another node."""
OF_NODE = "address."
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Member(NamedTuple):
    """A node among all of a program's; its rank is its place among them."""

    node: str
    device_class: str
    number: int
    """Its number in its class, from 0."""
    address: str
    """Its address on the data network; of a plan that nobody has started, empty."""


def placeholders(rank: int, members: Sequence[Member]) -> dict[str, str]:
    """What each placeholder stands for in the command of the node of that rank."""
    own = members[rank]
    values = (rank, len(members), own.number, own.node, own.address, ",".join(each.address for each in members))
    return {
        **dict(zip(PLACEHOLDERS, map(str, values), strict=True)),
        **{f"{OF_NODE}{each.node}": each.address for each in members},
    }


def words(run: str) -> tuple[str, ...]:
    """The words of a command, with its placeholders. ValueError where it is none."""
    try:
        found = tuple(shlex.split(run))
    except ValueError as error:
        raise ValueError(
            f"{run!r} is not to be divided into words: {error}; quotes and backslashes are those of a shell"
        ) from error
    if not found:
        raise ValueError("no command; write what is to be run, e.g. python train.py")
    return found


def filled(word: str, values: Mapping[str, str]) -> str:
    """A word, or the value of a variable, with its `placeholders` filled. ValueError where it has others."""
    return _BRACES.sub(partial(_value, values), word)


def _value(values: Mapping[str, str], found: re.Match[str]) -> str:
    text, name = found[0], found[1]
    if text in ("{{", "}}"):
        return text[0]
    if name is None:
        raise ValueError(f"a lone {text} in a command; one that is meant is written {text}{text}")
    if name not in values:
        nodes = tuple(each for each in values if each.startswith(OF_NODE))
        allowed: tuple[str, ...] = (*PLACEHOLDERS, f"{OF_NODE}NODE")
        if name.startswith(OF_NODE):  # of many nodes those that are most like it
            allowed = tuple(difflib.get_close_matches(name, nodes, 10, 0.0))
        meant = difflib.get_close_matches(name, [*PLACEHOLDERS, *nodes], 1)
        choice = Choice(tuple(map(_braced, allowed)), tuple(map(_braced, meant)))
        raise ValueError(f"no placeholder {text}: {choice}; a brace that is meant is written twice")
    return values[name]


def _braced(name: str) -> str:
    return f"{{{name}}}"
