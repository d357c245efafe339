"""The parts of the reference's pages that are written from the source, so that they cannot be out of date.

A page in docs/reference/ asks for a part by a line `<!-- from the source: NAME -->`. :data:`PARTS` has the function of each name, which returns
Markdown; links in it are those of a page in docs/reference/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from website.reference import commands, fields, limits, lists, python, schemas

PARTS: Mapping[str, Callable[[], str]] = {**commands.PARTS, **fields.PARTS, **limits.PARTS, **lists.PARTS, **python.PARTS, **schemas.PARTS}
"""Name of a part → the function that writes it."""
PLACE = re.compile(r"^<!-- from the source: (.+) -->$", re.MULTILINE)
"""The line that a part takes the place of."""


def filled(markdown: str) -> str:
    """A page with its parts; a name that is unknown is a KeyError."""
    return PLACE.sub(lambda match: PARTS[match[1]](), markdown)
