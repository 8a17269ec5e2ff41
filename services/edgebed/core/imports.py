"""Finding what a user wrote: `package.module:name` to what it names, for models, data sets, parts and faults alike.

Each process imports for itself: a node that is to build the user's model imports the user's module, so what stands at
the top of that module runs once in each node.
"""

import contextlib
import difflib
import dis
import functools
import importlib
import inspect
import re
import sys
import sysconfig
import tokenize
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from edgebed.core.errors import ScenarioError
from edgebed.core.package import PACKAGE

PATTERN = r"^\w+(\.\w+)*:\w+$"
"""The pattern of an import path, for editors."""
FORM = "package.module:Name"
"""How it is told."""
MAIN = "__main__"
"""The module that a notebook, or a script that is run, defines its names in."""
MESSAGE_MAX = 400
"""Characters that are told of an exception's message: torch names each of a model's weights that does not fit."""
_SEARCHED: set[str] = set()
"""Folders that modules of one's own have been looked for in."""
ENCODING_COOKIE = re.compile(r"^([ \t\f]*#.*?coding[:=][ \t]*)[-\w.]+", re.ASCII | re.MULTILINE)  # PEP 263


def is_import_path(name: str) -> bool:
    """Whether `name` has the form `package.module:function`, and so cannot be a built-in name."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def is_of_main(name: str) -> bool:
    """Whether an import path names what a notebook or a script has defined: no other program finds that."""
    return name.startswith(f"{MAIN}:")


def path_of(found: Callable[..., Any]) -> str:
    """Return the import path of a function or class; ScenarioError where it cannot be found by a name."""
    module, name = getattr(found, "__module__", ""), getattr(found, "__qualname__", "")
    if getattr(sys.modules.get(module), name, None) is not found:
        what = f"'{name}'" if name else f"an instance of {type(found).__qualname__}"
        raise ScenarioError(
            f"{what} cannot be found by a name; give a function or class that is defined at the top of a notebook, "
            "script or module under its own name, not a lambda, an instance or what a function has made"
        )
    return f"{module}:{name}"


def source_of(name: str) -> str:
    """Return the text of what a notebook or script has defined, with all defined there that it uses, by their names.

    Functions and classes count with their source (their bytecode where there is no source), numbers and texts with
    their values; other values, such as arrays, do not count.
    """
    main, waiting, texts = vars(sys.modules[MAIN]), [name.partition(":")[2]], dict[str, str]()
    while waiting:
        each = waiting.pop()
        value = main.get(each)
        if each in texts or each not in main:
            continue
        if isinstance(value, FunctionType | type) and value.__module__ == MAIN:
            functions, facts, bases = _members(value)
            texts[each] = "\n".join([*facts, *map(_source, functions)])
            waiting += [*bases, *(used for function in functions for used in _globals_of(function.__code__))]
        elif isinstance(value, bool | int | float | str | bytes | None):
            texts[each] = repr(value)
    return "\n".join(f"{each}: {texts[each]}" for each in sorted(texts))


def resolve(name: str, python_path: Sequence[str] = ()) -> Callable[..., Any]:
    """Return the callable that `package.module:function` names.

    The folders of `python_path` are searched before everything else, and stay on `sys.path`, since the user's module
    may import its neighbours later. ScenarioError if the name, the module or the function is not usable.
    """
    if not is_import_path(name):
        raise ScenarioError(f"{name}: not of the form package.module:function, e.g. mypackage.nets:tiny.")
    module_name, _, function_name = name.partition(":")
    module = load_module(name, module_name, python_path)
    found = getattr(module, function_name, None)
    if not callable(found):
        raise ScenarioError(f"{name}: {_what_is_wrong(module, function_name, found)}")
    return found  # type: ignore[no-any-return]  # `callable` narrows to a function of unknown result


def load_module(name: str, module_name: str, python_path: Sequence[str] = ()) -> ModuleType:
    """The module of the import path `name`, found as for `resolve`; ScenarioError where it cannot be imported."""
    search(python_path)
    importlib.invalidate_caches()  # the module may have been written after this process began
    return _import(name, module_name)


def own_folders(folder: Path) -> tuple[str, ...]:
    """Where modules of one's own are looked for: that of the scenario file, then the one that a user is in."""
    return tuple(dict.fromkeys((str(folder), str(Path.cwd()))))


def search(python_path: Sequence[str]) -> None:
    """Look for modules in these folders before everything else.

    A module that was imported from another such folder, and whose name these have too, is forgotten: in a notebook one
    runs scenarios of several folders, each with its own `mytask.py`.
    """
    wanted = list(dict.fromkeys(python_path))
    if sys.path[: len(wanted)] == wanted:
        return
    others = _SEARCHED - set(wanted)
    sys.path[:] = [*wanted, *(folder for folder in sys.path if folder not in wanted)]
    _SEARCHED.update(wanted)
    for name, _ in list(_modules(sorted(others))):
        top = name.partition(".")[0]
        if any(Path(folder, each).exists() for folder in wanted for each in (f"{top}.py", f"{top}/__init__.py")):
            sys.modules.pop(name, None)


@contextlib.contextmanager
def forgetting(*folders: Path) -> Iterator[None]:
    """Context at whose end imports from these folders are forgotten: other folders may have modules of these names."""
    path, known = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        for name in [name for name, _ in _modules([str(folder) for folder in folders])]:
            if name.partition(".")[0] not in known:
                del sys.modules[name]
        sys.path[:] = path


def sources(python_path: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (relative path, text) of every module imported from `python_path`, for nodes that do not see its folders.

    A module that is imported later, or a file that is no module, is not among them. A text is to be written as UTF-8,
    whatever its file was in.
    """
    return tuple((path, _text(file)) for _, (path, file) in _modules(python_path))


def takes(function: Callable[..., Any], parameter: str) -> bool:
    """Whether `call` gives the function something of that name, if it is offered."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return False
    return parameter in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def call(name: str, function: Callable[..., Any], **offers: Any) -> Any:
    """Call a user's function with those of the `offers` that its parameters name, or with all if it takes `**kwargs`.

    ScenarioError where a parameter is none of them and has no default, and with the reason if the call raises.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C do not tell
        parameters = {}.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    by_keyword = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    unknown = [p.name for p in parameters if p.name in by_keyword - offers.keys() and p.default is p.empty]
    if unknown:
        known, none = (", ".join(offers), "is none of these and ") if offers else ("nothing", "")
        raise ScenarioError(
            f"{name}: it is called with {known}, as far as it names them; {', '.join(unknown)} {none}needs a default"
            f"{begins(function)}"
        )
    taken = {key: value for key, value in offers.items() if takes_all or key in by_keyword}
    try:
        return function(**taken)
    except ScenarioError as error:
        raise ScenarioError(
            *(f"{name}: {problem.removesuffix('.')}{_place(error, function)}" for problem in error.problems)
        ) from error
    except (Exception, SystemExit) as error:  # whatever the user's code raises is the user's to read
        arguments = ", ".join(f"{key}={value!r}" for key, value in taken.items())
        raise ScenarioError(f"{name}: calling it with ({arguments}) failed: {reason(error)}") from error


def reason(error: BaseException, called: Callable[..., Any] | None = None) -> str:
    """An exception in one line: its type, its message, and the last line of the user's own that was gone through.

    Where none was, such as where arguments do not fit, the line where the user's function that was `called` begins.
    """
    if isinstance(error, SyntaxError) and _is_users(error.filename or ""):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    message = " ".join(str(error).split())
    if isinstance(error, ScenarioError):  # it says in plain words what is wrong
        return f"{message}{_place(error, called)}"
    if len(message) > MESSAGE_MAX:
        message = f"{message[:MESSAGE_MAX]}..."
    return ": ".join(filter(None, (type(error).__name__, message))) + _place(error, called)


def _place(error: BaseException, called: Callable[..., Any] | None) -> str:
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [frame for frame in frames if _is_users(frame[0])]
    if not places and called is not None and (place := begins(called)):
        return place
    file, line = [*frames, *places][-1] if frames else ("", 0)
    return f" ({file}:{line})" if frames else ""


def _is_users(file: str) -> bool:
    """Whether a file with code is neither Python's, nor of an installed package, nor edgebed's."""
    return Path(file).is_absolute() and not any(Path(file).is_relative_to(folder) for folder in _installed())


@functools.cache
def _installed() -> frozenset[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return frozenset((*(sysconfig.get_path(name) for name in names), str(PACKAGE)))


def begins(function: Callable[..., Any]) -> str:
    """The line where a function or class begins, in brackets; "" for what was typed, or compiled."""
    try:
        return f" ({inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]})"
    except (OSError, TypeError):
        return ""


def _members(found: FunctionType | type) -> tuple[list[FunctionType], list[str], list[str]]:
    """The functions of a function or class, its plain values and the names of its bases."""
    if isinstance(found, FunctionType):
        return [found], [], []
    functions, facts = list[FunctionType](), list[str]()
    for name, member in vars(found).items():
        inner = getattr(member, "__func__", getattr(member, "fget", member))  # of a static method, of a property
        if isinstance(inner, FunctionType):
            functions.append(inner)
        elif name not in ("__module__", "__doc__", "__firstlineno__") and isinstance(member, bool | int | float | str):
            facts.append(f"{name} = {member!r}")
    return functions, facts, [base.__name__ for base in found.__bases__]


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return _bytecode(function.__code__)


def _bytecode(code: CodeType) -> str:
    inside = [
        _bytecode(each)
        if isinstance(each, CodeType)
        else repr(sorted(map(repr, each)))  # sets have no order
        if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {inside}"


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the global names that a function reads, and those that functions in it do."""
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(each.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _modules(folders: Sequence[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each module imported from these folders: its name, the path in its folder, its file."""
    meant = {Path(folder).absolute() for folder in folders}
    is_meant = functools.cache(lambda folder: Path(folder) in meant)  # thousands of modules are from a few folders
    for name, module in sorted(sys.modules.items()):
        file = str(getattr(module, "__file__", None) or "")
        stem = name.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if file.endswith(f"/{path}") and is_meant(file.removesuffix(path)):
                yield name, (path, file)


def _text(file: str) -> str:
    """Return a module's text, which says UTF-8 where it said another encoding."""
    with tokenize.open(file) as source:
        text = source.read()
        return text if source.encoding.startswith("utf-8") else ENCODING_COOKIE.sub(r"\1utf-8", text, count=1)


def _import(name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{module_name}.".startswith(f"{missing}."):
            searched = ", ".join(folder or "the current folder" for folder in sys.path[:4])
            close = difflib.get_close_matches(missing, _names_in(sys.path[:2]), n=1)
            advice = (
                f"Did you mean '{close[0]}'?" if close else "Put it next to the scenario file, or install the package."
            )
            raise ScenarioError(f"{name}: there is no module '{missing}' in {searched} ... {advice}") from None
        raise ScenarioError(f"{name}: the module needs '{missing}', which is not installed.") from None
    except (Exception, SystemExit) as error:  # a script without a main guard may end the process on import
        raise ScenarioError(f"{name}: importing '{module_name}' failed: {reason(error)}") from error


def _names_in(folders: Sequence[str]) -> Iterator[str]:
    """Yield the names of the modules in these folders."""
    for folder in folders:
        with contextlib.suppress(OSError):
            yield from (path.stem for path in Path(folder).glob("*.py"))


def _what_is_wrong(module: ModuleType, function_name: str, found: object) -> str:
    if found is not None:
        return f"'{function_name}' is a {type(found).__name__}, not a function or class."
    callables = [
        key
        for key, value in vars(module).items()
        if callable(value) and not key.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    if module.__name__ == MAIN:
        return f"this program has no '{function_name}'; it was defined in a notebook or script. Define it here again."
    close = difflib.get_close_matches(function_name, callables, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else f" It has: {', '.join(sorted(callables)) or 'no functions'}."
    return f"module '{module.__name__}' has no '{function_name}'.{hint}"
