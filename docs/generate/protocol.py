"""docs/protocol.md, from the declarations.

Messages, tensors and journal records are declared in wire/messages.py, core/plan.py and core/records.py; their
fields, types, defaults and docstrings are all that is read here.
"""

import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from docs.generate.rendering import codes, doc, field_texts, grid, render
from edgebed.algorithms.registry import COMPRESSIONS
from edgebed.core.records import RECORDS
from edgebed.wire import frames, tensors
from edgebed.wire.messages import DATA, MANAGEMENT, PROTOCOL, Message, Push, Tensor

REFUSALS = {
    "unknown-node": "The sender is not in the plan.",
    "duplicate": "A node of this name and incarnation is here already, on another connection.",
    "stale-incarnation": "A newer incarnation of the sender has joined.",
    "not-joined": "The server does not know this worker, or has given it up: it joins again.",
    "late": "A push came after the end of its round; the model follows.",
    "not-finite": "A push has what is no finite number, and the scenario says to refuse it; the model follows.",
    "malformed": "Readable, but impossible: a tensor of another shape, a version that does not exist yet.",
    "other-code": "The node's code is not the controller's: its image is older or newer.",
    "unasked": "The node has come several times without having been launched.",
    "finished": "No more updates are applied, or the trial is over. No reason to worry.",
}
"""What each code of `refuse` means."""

EXAMPLE = Push(
    sender="phone-3",
    incarnation=1,
    step=17,
    base=201,
    loss=0.5,
    tensors=(Tensor("update", "float32", (211_690,), "sparse", 2_117, 1_000),),
)


def markdown() -> str:
    """The whole document."""
    nested = [struct for kind in (*DATA, *MANAGEMENT) for struct in _structs_in(kind)]
    both = [kind for kind in DATA if kind in MANAGEMENT]
    return render(
        "protocol.md", protocol=PROTOCOL, tensors=tensors, frames=frames, Tensor=Tensor,
        example=msgspec.json.encode(EXAMPLE).decode().replace(",", ", "),
        pieces=_pieces(), refusals=grid(("code", "meaning"), ((f"`{code}`", text) for code, text in REFUSALS.items())),
        data=[kind for kind in DATA if kind not in both],
        management=[kind for kind in MANAGEMENT if kind not in both],
        both=both, records=RECORDS, section=_section, table=_table, tag=_tag, summary=doc,
        structures=[struct for struct in dict.fromkeys(nested) if struct is not Tensor and struct not in RECORDS],
    )  # fmt: skip


def _section(kind: type[msgspec.Struct]) -> str:
    return f"### `{kind.__name__.lower()}`\n\n{doc(kind)}\n\n{_table(kind)}"


def _tag(struct: type[msgspec.Struct]) -> str:
    """Say which field tells a structure apart from the others that may stand in its place."""
    config = struct.__struct_config__
    return f" Its field `{config.tag_field}` is `{config.tag}`." if config.tag_field else ""


def _table(struct: type[msgspec.Struct]) -> str:
    docs = field_texts(struct)
    rows = [
        (f"`{field.name}`", _type(field.type), _default(field), docs.get(field.name, ""))
        for field in msgspec.structs.fields(struct)
        if not (issubclass(struct, Message) and field.name in Message.__struct_fields__)  # said once, for all
    ]
    return grid(("field", "type", "default", "meaning"), rows)


def _pieces() -> str:
    """What each compression sends, as it says itself."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, module in COMPRESSIONS.items():
        alike.setdefault(tuple(module.Compression.travels.items()), []).append(name)
    rows = [
        (codes(names), codes(piece for piece, _ in travels), "; ".join(_held(travels)))
        for travels, names in alike.items()
    ]
    return grid(("compressions", "tensors", "what they hold"), rows)


def _held(travels: Sequence[tuple[str, str]]) -> list[str]:
    """What each tensor holds, by name where there are several."""
    return [f"`{name}`: {text}" if len(travels) > 1 else text for name, text in travels]


def _type(declared: Any) -> str:
    """Write a declared type in words."""
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        members = [argument for argument in arguments if argument is not type(None)]
        text = "a record" if set(members) == set(RECORDS) else " or ".join(map(_type, members))
        return text if len(members) == len(arguments) else f"{text} or null"
    if origin is tuple:
        rest = ", …" if arguments[-1] is ... else ""
        return f"[{', '.join(_type(argument) for argument in arguments if argument is not ...)}{rest}]"
    if origin is dict:
        return f"map of {_type(arguments[0])} to {_type(arguments[1])}"
    return "any" if declared is Any else str(declared.__name__)


def _default(field: msgspec.structs.FieldInfo) -> str:
    default = field.default_factory() if callable(field.default_factory) else field.default
    if default is msgspec.NODEFAULT:
        return ""
    return "" if isinstance(default, msgspec.Struct) else f"`{msgspec.json.encode(default).decode()}`"


def _structs_in(declared: Any) -> list[type[msgspec.Struct]]:
    """Return the structs that the fields of a type are made of, outermost first."""
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        return [found for field in msgspec.structs.fields(declared) for found in _nested(field.type)]
    return []


def _nested(declared: Any) -> list[type[msgspec.Struct]]:
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        return [declared, *_structs_in(declared)]
    return [found for argument in typing.get_args(declared) for found in _nested(argument)]
