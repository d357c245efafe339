"""What the page needs to begin: congestion controls with their looks, presets, choices and defaults."""

from __future__ import annotations

from typing import Any

from tcpscape import engines
from tcpscape.plots import style
from tcpscape.web.opened import Opened
from tcpscape.web.routes import Get
from tcpscape.web.state import State


def document(opened: Opened | None = None) -> dict[str, Any]:
    """The document of `/api/start`; `opened`: what the command line named."""
    model = engines.make("model")
    looks = style.looks([*style.KNOWN, *(name for name in model.ccas() if name not in style.KNOWN)])
    return {
        "version": model.version,
        "opened": opened.document() if opened else None,
        "state": State().model_dump(mode="json"),
        "controls": [
            {"name": name, "colour": look.colour, "dash": style.DASHES.index(look.dash), "marker": look.marker} for name, look in looks.items()
        ],
    }  # fmt: skip


ROUTES = (Get("start", lambda pages: document(pages.opened)),)
