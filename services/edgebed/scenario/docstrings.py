"""The texts below the fields of a class, which references show: read from its source, when they are asked for."""

import ast
import inspect
import textwrap


def attribute_docstrings(described: type) -> dict[str, str]:
    """Return the string literals that stand below the fields of a class, and of those that it is made from."""
    docs = {}
    for declared in reversed(described.__mro__):
        if not vars(declared).get("__annotations__"):
            continue
        try:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(declared))).body
        except (OSError, TypeError, SyntaxError):  # it was made while the program ran
            continue
        assert isinstance(definition, ast.ClassDef)
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                docs[field.target.id] = inspect.cleandoc(str(ast.literal_eval(text.value)))
    return docs
