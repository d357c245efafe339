"""Prints files over 300 lines and functions over 60: places to think, not errors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
AIM, MOST, FUNCTION = 300, 600, 60
RUST_FN = re.compile(r"^(\s*)(?:pub(?:\([a-z]+\))? )?(?:const |unsafe |async )*fn (\w+)")


def python_functions(text: str) -> list[tuple[str, int]]:
    """Name and length of each function, its signature and docstring left out."""
    lengths = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lengths.append((node.name, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0))
    return lengths


def rust_functions(text: str) -> list[tuple[str, int]]:
    """Name and length of each function, found by its indentation."""
    lengths, lines = [], text.splitlines()
    for i, line in enumerate(lines):
        if (start := RUST_FN.match(line)) and not line.endswith(";"):  # a trait's method without a body has no length
            end = next((j for j in range(i, len(lines)) if lines[j] == f"{start.group(1)}}}"), i)
            lengths.append((start.group(2), end - i + 1))
    return lengths


def production(text: str, suffix: str) -> str:
    """A file without its tests at the end."""
    return text.split("#[cfg(test)]\nmod tests {", 1)[0] if suffix == ".rs" else text


def main() -> None:
    """Prints the offenders."""
    for path in sorted([*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/**/*.py"), *ROOT.glob("benches/**/*.py")]):
        if "tests" in path.parts or path.name == "tests.rs":
            continue
        text = production(path.read_text("utf-8"), path.suffix)
        lines, name = text.count("\n"), path.relative_to(ROOT)
        if lines > AIM:
            print(f"  {lines:5} lines  {name}{'  (over 600)' if lines > MOST else ''}")
        for function, length in python_functions(text) if path.suffix == ".py" else rust_functions(text):
            if length > FUNCTION:
                print(f"  {length:5} lines  {name}: {function}()")


if __name__ == "__main__":
    main()
