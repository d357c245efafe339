"""Prints the packages that pyproject.toml asks for, with the extras named on the command line."""

import re
import sys
from pathlib import Path


def listed(text: str, key: str) -> list[str]:
    """The strings of a TOML array; enough for our own file, and without a TOML reader on Python 3.10."""
    found = re.search(rf"^{re.escape(key)} = \[(.*?)\]\s*$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]+)"', found.group(1)) if found else []


def main() -> None:
    """Prints one requirement a line."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
    for key in ("dependencies", *sys.argv[1:]):
        print("\n".join(listed(text, key)))


if __name__ == "__main__":
    main()
