"""The docstrings below the fields of classes, which Python itself does not keep."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise


@cache
def of_fields(kind: type) -> dict[str, str]:
    """Field of a class → the docstring below it, as one paragraph; those of its base classes too."""
    found: dict[str, str] = {}
    bases = getattr(kind, "__orig_bases__", ())  # of a TypedDict, which has no others
    for base in (*(b for b in bases if isinstance(b, type)), *reversed(kind.__mro__)):
        if base.__module__.startswith("tcpscape"):
            (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
            found |= _below(tree.body) if isinstance(tree, ast.ClassDef) else {}
    return found


@cache
def types(kind: type) -> dict[str, str]:
    """Field of a class → its type as it is written in the source; those of its base classes too."""
    body: list[ast.stmt] = []
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("tcpscape"):
            (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
            body += tree.body if isinstance(tree, ast.ClassDef) else []
    return {item.target.id: ast.unparse(item.annotation) for item in body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)}


def _below(body: list[ast.stmt]) -> dict[str, str]:
    found = {}
    for item, below in pairwise(body):
        target = item.target if isinstance(item, ast.AnnAssign) else item.targets[0] if isinstance(item, ast.Assign) else None
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(target, ast.Name) and isinstance(text, str):
            found[target.id] = " ".join(text.split())
    return found
