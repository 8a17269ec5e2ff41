"""docs/commands.md and docs/python.md, from the command line and from the package's public names."""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from typer.main import get_command

from docs.generate.rendering import doc, field_texts, grid, line, render
from edgebed.cli.help import tidy
from edgebed.cli.main import GROUPS, app
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.columns.updates import Updates
from edgebed.journal.series import Series
from edgebed.reports.studies.study import RunOptions, Study


def commands() -> str:
    """Return docs/commands.md, as text."""
    known: Any = get_command(app)
    return render("commands.md", groups={group: list(_commands_of(group, known.commands)) for group in GROUPS})


def _commands_of(group: str, known: Mapping[str, Any]) -> Iterator[str]:
    for name, command in known.items():
        if command.rich_help_panel == group:
            inner = getattr(command, "commands", None)
            if inner is None:
                yield _command((name,), command)
            else:
                yield from (_command((name, each), below) for each, below in inner.items())


def _command(words: Sequence[str], command: Any) -> str:
    """Return a command's section: how it is called, what it does, its arguments and options."""
    context = command.make_context(words[-1], [], resilient_parsing=True)
    called = " ".join(["edgebed", *words, *command.collect_usage_pieces(context)])
    tidy(command.params)
    rows = [parameter.get_help_record(context) for parameter in command.params if not parameter.hidden]
    cells = [(f"`{line(names)}`", line(text)) for names, text in rows if names != "--help"]
    table = grid(("argument or option", "meaning"), cells) if cells else ""
    text = re.sub(r"Example: (.+)", r"Example: `\1`", inspect.cleandoc(command.help or ""))
    return f"### `edgebed {' '.join(words)}`\n\n```text\n{called}\n```\n\n{text}\n\n{table}"


def python() -> str:
    """Return docs/python.md, as text."""
    package = importlib.import_module("edgebed")
    found = {name: getattr(package, name) for name in sorted(package.HOMES)}
    functions = {name: each for name, each in found.items() if inspect.isfunction(each)}
    errors = {name: each for name, each in found.items() if inspect.isclass(each) and issubclass(each, Exception)}
    classes = {name: each for name, each in found.items() if name not in functions and name not in errors}
    return render(
        "python.md",
        functions=[_function(f"edgebed.{name}", each) for name, each in functions.items()],
        classes=[
            *(_class(f"edgebed.{name}", each) for name, each in classes.items()),
            *(_class(each.__name__, each) for each in (Series, Evaluations, Updates, Study)),
        ],
        run_options=_class("edgebed.reports.studies.study.RunOptions", RunOptions),
        errors=[_error(f"edgebed.{name}", each) for name, each in errors.items()],
    )


def _function(name: str, function: Any) -> str:
    return f"### `{name}`\n\n```python\n{_signature(name, function)}\n```\n\n{doc(function)}\n"


def _signature(name: str, function: Any) -> str:
    """Return a signature with a parameter in each line; types have their names alone."""
    signature = inspect.signature(function)
    lines, is_keyword = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            lines.append("*")
            is_keyword = True
        lines.append(str(parameter))
    returned = "" if signature.return_annotation is signature.empty else f" -> {_type(signature.return_annotation)}"
    return f"{name}(\n" + "".join(f"    {_unqualified(line)},\n" for line in lines) + f"){returned}"


def _class(name: str, described: Any) -> str:
    """Return a class's section: its public members, each with what it says of itself."""
    rows = [(f"`{line(member)}`", line(text)) for member, text in _members(described)]
    return f"### `{name}`\n\n{doc(described)}\n\n{grid(('member', 'what it is'), rows)}"


def _members(described: Any) -> Iterator[tuple[str, str]]:
    """Yield properties and methods with their docstrings, and fields with the text below them."""
    below = field_texts(described)
    fields = (
        {each.name: each.type for each in dataclasses.fields(described)} if dataclasses.is_dataclass(described) else {}
    )
    for name, declared in fields.items():
        yield f"{name}: {_type(declared)}", below.get(name, "")
    for name, member in vars(described).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, property | cached_property):
            function: Any = member.fget if isinstance(member, property) else member.func
            yield f"{name}: {_type(inspect.signature(function).return_annotation)}", doc(function)
        elif inspect.isfunction(member):
            signature = inspect.signature(member)
            rest = signature.replace(parameters=list(signature.parameters.values())[1:])
            yield f"{name}{_unqualified(str(rest))}", doc(member)


def _error(name: str, error: type[Exception]) -> str:
    (base, *_) = error.__bases__
    return f"### `{name}`\n\n{doc(error)} Its base is `{base.__name__}`.\n"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _unqualified(re.sub(r"[~']", "", text))


def _unqualified(text: str) -> str:
    """Leave out the modules of types, and write arrays as they are declared."""
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_]\w*)", "", text)
    return re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", text)
