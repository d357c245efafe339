"""The drawing of a state: `POST /api/diagram` draws its path, or its network, as reports do."""

from __future__ import annotations

from typing_extensions import TypedDict

from tcpscape.controls import palette
from tcpscape.web.routes import Asked, Context, Post
from tcpscape.web.state import PageState


class DiagramDocument(TypedDict):
    """The drawing of a state's path or network, as SVG."""

    wide: str
    narrow: str


class DiagramAsked(Asked):
    """A state that is to be drawn."""

    state: PageState


def diagram(_: Context, asked: DiagramAsked) -> DiagramDocument:
    """The drawing. :raises TcpscapeError: one line, for a state that makes no sense."""
    from tcpscape.report.diagram import PathView

    scenario = asked.state.scenario(next(iter(asked.state.cca), "cubic"))
    scenario.expect_path()
    view = PathView.of("", [scenario], looks=palette.looks(scenario.ccas), name="network")
    return DiagramDocument(wide=str(view.wide), narrow=str(view.narrow))


ROUTES = (Post("diagram", DiagramAsked, diagram),)
