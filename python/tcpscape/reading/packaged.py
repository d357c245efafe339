"""What comes with tcpscape: scenarios, campaigns, studies, pages. It is trusted, and read as it is."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable
else:
    from importlib.abc import Traversable


def folder(name: str) -> Traversable:
    """A folder of the package: `scenarios`, `studies/data`."""
    return resources.files("tcpscape").joinpath(*name.split("/"))


def text(file: str) -> str:
    """The text of a file of the package: `scenarios/baseline.yaml`."""
    return folder(file).read_text("utf-8")


def names(folder_name: str, ending: str) -> list[str]:
    """The names of the files of a folder that have this ending, without it, sorted."""
    return sorted(f.name.removesuffix(ending) for f in folder(folder_name).iterdir() if f.name.endswith(ending))


def data(file: Path) -> bytes:
    """The bytes of a file that comes with tcpscape, or that was built into it."""
    return file.read_bytes()
