"""Figures as files: PNG, SVG and PDF with the same bytes for the same figure, and SVG as an element of a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.errors import refuse, shown
from tcpscape.names import component
from tcpscape.plots.style import DARK, INK, literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
"""File formats of a figure."""
DPI = 160
"""Resolution of PNG, and of images inside an SVG."""
SOLID, PAPER = ("png", "pdf"), "white"
"""Formats that have a ground of their own, whatever page they are shown on, and its colour."""
COLOURS = ("color", "edgecolor", "facecolor", "markeredgecolor", "markerfacecolor")
"""Properties of Matplotlib's artists that are colours."""
SALT = "tcpscape"
"""Salt of the ids in an SVG: a constant, so that the same figure has the same bytes."""
LONG_PATH = 400
"""Characters of an SVG path from which it is taken for a curve, not for a marker."""


def formats(text: str, field: str = "formats") -> tuple[str, ...]:
    """The formats in a list such as `png,svg`; `field`: what a refusal calls the list.

    :raises TcpscapeError: where a format is unknown, or none is named.
    """
    names = tuple(part.strip() for part in text.split(","))
    if unknown := [name for name in names if name not in FORMATS]:
        refuse(field, f"{shown(unknown[0])} is no format", f"choose {', '.join(FORMATS)}")
    if len(set(names)) < len(names):
        refuse(field, f"{shown(text)} names one twice", "name each once")
    return names


def save(fig: Figure, stem: Path, kinds: Sequence[str] = ("png", "svg"), svg_text: str = "") -> list[Path]:
    """Writes a figure and returns the files, one for each format; the same figure gives the same bytes.

    `stem`: path without suffix (a suffix that is a format is dropped); `kinds`: formats of :data:`FORMATS`; `svg_text`: the figure's SVG document
    where the caller has it already.

    :raises StoreError: where a file cannot be written.
    """
    stem = stem.with_suffix("") if stem.suffix[1:] in FORMATS else stem
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    for file, kind in zip(files, kinds, strict=True):
        if kind == "svg" and svg_text:
            writing.whole(file, svg_text)
        else:
            content = io.BytesIO()
            _write(fig, content, kind)
            writing.whole(file, content.getbuffer())
    return files


_DATELESS: Mapping[str, Any] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None},
    "png": {},
}
"""Metadata of each format that leave out the time of writing."""
_CANVASES: Mapping[str, tuple[str, str]] = {
    "png": ("backend_agg", "FigureCanvasAgg"),
    "svg": ("backend_svg", "FigureCanvasSVG"),
    "pdf": ("backend_pdf", "FigureCanvasPdf"),
}
"""Format → module and class of Matplotlib's canvas."""


def _write(fig: Figure, to: Any, kind: str) -> None:
    """Draws the figure once into a stream. Matplotlib's `savefig` would draw it twice."""
    import matplotlib as mpl

    lay_out(fig)
    screen_dpi, fig.dpi = fig.dpi, DPI
    module, name = _CANVASES[kind]
    canvas: Any = getattr(import_module(f"matplotlib.backends.{module}"), name)(fig)
    paper = on_paper(fig) if kind in SOLID else nullcontext()
    with _quiet_fonts(), mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "none"}), paper:
        getattr(canvas, f"print_{kind}")(to, metadata=_DATELESS[kind])
    fig.dpi = screen_dpi


@contextmanager
def _quiet_fonts() -> Iterator[None]:
    """Without a warning for each character of a name that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@contextmanager
def on_paper(fig: Figure) -> Iterator[None]:
    """The figure on white ground, with text and axes dark instead of the grey that is legible on every page."""
    ground, opacity = fig.get_facecolor(), fig.patch.get_alpha()
    fig.set_facecolor(PAPER)
    fig.patch.set_alpha(1)
    changed = _recoloured(fig, INK, DARK)
    try:
        yield
    finally:
        fig.set_facecolor(ground)
        fig.patch.set_alpha(opacity)
        for artist, name, before in changed:
            getattr(artist, f"set_{name}")(before)


def _recoloured(fig: Figure, old: str, new: str) -> list[tuple[Any, str, Any]]:
    """Gives everything that has the colour `old` the colour `new`, its opacity kept; returns artist, property and value before."""
    from matplotlib.colors import is_color_like, to_hex, to_rgba

    changed = []
    for artist in fig.findobj():
        for name in COLOURS:
            value: Any = getattr(artist, f"get_{name}", lambda: None)()
            if is_color_like(value) and to_hex(value) == old:
                changed.append((artist, name, value))
                getattr(artist, f"set_{name}")((*to_rgba(new)[:3], to_rgba(value)[3]))
    return changed


def lay_out(fig: Figure) -> None:
    """Places the panels, once for every format, in the resolution of the files: small text is narrower in a lower one, and names would be cut."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    engine = fig.get_layout_engine()
    if engine is not None:
        screen_dpi, fig.dpi = fig.dpi, DPI
        FigureCanvasAgg(fig)
        literal(fig)
        with _quiet_fonts():
            engine.execute(fig)
        fig.set_layout_engine("none")
        fig.dpi = screen_dpi


def svg(fig: Figure) -> str:
    """The figure as an SVG document."""
    stream = io.StringIO()
    _write(fig, stream, "svg")
    return stream.getvalue()


def inline(document: str, name: str, label: str) -> str:
    """An SVG document as an `<svg>` element of a page.

    `label`: what it shows, for those who do not see it. Its ids begin with `name`, its ink is the page's text colour (`currentColor`), and it
    shrinks with the page's width. It has no style element, whose rule is in the page's own.
    """
    name = component(name)
    text = document[document.index("<svg") :].replace(INK, "currentColor").strip()
    text = re.sub(r"<style[^>]*>[^<]*</style>", "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r'\bd="[^"]*"', lambda path: _rounded(path.group(0)), text)
    size = re.search(r'width="([\d.]+)pt" height="[\d.]+pt"', text)
    return text.replace(size.group(0), f'style="max-width:{size.group(1)}pt" role="img" aria-label="{escape(label)}"', 1) if size else text


def _rounded(path: str) -> str:
    """A path with its numbers cut to 0.1 pt; those of short paths, such as markers, to 0.01 pt."""
    return re.sub(r"(\d\.\d)\d+" if len(path) > LONG_PATH else r"(\d\.\d\d)\d+", r"\1", path)
