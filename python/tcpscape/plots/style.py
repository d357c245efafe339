"""The style of figures: panels, ticks, legends and notes, legible on light and on dark pages; that of a congestion control is `controls/palette`.

A figure is saved as PNG, SVG or PDF with the same bytes for the same figure, or as an SVG element of a page.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.errors import is_plain, printable, refuse, shown
from tcpscape.names import component

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#808080"
"""Colour of text and axes: a grey with a contrast of at least 3.9 on white and 4.5 on near-black. In a page it becomes the page's text colour."""
DARK = "#404040"
"""Colour of text and axes of figures on white ground."""
KEY_COLUMNS, KEY_SIZE, KEY_HANDLE = 6, 8.0, 7
"""Most columns of a legend; size of its font, points; room for the line or marker before a label, characters."""
POINTS = 72.0
"""Points in an inch."""
HEAD_SIZE, HEAD_ROOM, LINE_STEP = 10, 0.7, 1.2
"""Title and note: size of the font, points; room that :func:`panels` leaves for it and the legend, inches; a line over the font's size."""
NOTE_SIZE, NOTE_LINES, NOTE_STEP = 7.5, 3, 1.4
"""Caveats under a figure: size of the font, points; most lines; height of a line over the font's size."""
PAGE, NARROW, COLUMN, LEAST_PANEL = 10.0, 4.0, 3.33, 2.8
"""Width of a figure for a wide page, for one of 400 px, and for a column of a paper (ACM's; IEEE's has 3.5), inches; least
width of a panel of a figure whose width is given, inches."""
LONG = 20.0
"""Ratio of the largest to the smallest positive value from which an x axis is logarithmic."""
LONG_LOG = 2000.0
"""Ratio of the largest to the smallest value from which a logarithmic axis has labels at powers of ten only."""
LEAST_APART, TICK_WIDTH = 0.085, 20.0
"""Smallest distance between the labels of two ticks, as a share of the panel's width, and in points."""
PANEL_SHARE = 0.8
"""Width of the axes as a share of their panel's, about: the rest has the labels of the y axis."""
WIDTH_OF_CHARACTER = 0.56
"""Mean width of a character over the size of its font (DejaVu Sans)."""


def panels(
    count: int, *, share: bool = True, width: float = 4.2, height: float = 3.6, columns: int = 3, page: float | None = None
) -> tuple[Figure, list[Axes]]:
    """A transparent figure with `count` panels in rows of at most `columns`, each `width` × `height` inches.

    :param share: one y axis for all.
    :param page: width of the figure, inches, instead of that of its panels; see :attr:`tcpscape.plots.Context.width`.
    """
    from matplotlib.figure import Figure

    columns = 2 if count == 4 and columns == 3 else min(count, columns)
    columns = max(1, min(columns, int(page / LEAST_PANEL))) if page else columns
    rows = -(-count // columns)
    fig = Figure(figsize=(page or max(6.4, width * columns), HEAD_ROOM + height * rows), layout="constrained")
    fig.get_layout_engine().set(h_pad=0.08, w_pad=0.08)  # type: ignore[union-attr, call-arg]
    fig.patch.set_alpha(0)
    return fig, _prepared(list(fig.subplots(rows, columns, sharey=share, squeeze=False).flat), count, INK)


def time_panels(count: int, *, page: float | None = None, height: float = 1.75) -> tuple[Figure, list[Axes]]:
    """A transparent figure with `count` panels below each other that share the time axis; each `height` inches high. `page`: as in :func:`panels`."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(page or 8.4, 1.2 + height * count), layout="constrained")
    fig.patch.set_alpha(0)
    return fig, _prepared(list(fig.subplots(count, 1, sharex=True, squeeze=False).flat), count, INK)


def white_panels(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure on white ground with `count` panels in rows of `columns` that share both axes."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    fig = Figure(figsize=(0.6 + 3.2 * columns, 1.1 + 2.5 * rows), layout="constrained", facecolor="white")
    return fig, _prepared(list(fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat), count, DARK)


def white_time_panels(count: int, *, zoom: bool) -> tuple[Figure, list[list[Axes]]]:
    """A figure on white ground with `count` rows of panels that share the time axis; `zoom`: a second, narrower panel in each row."""
    from matplotlib.figure import Figure

    columns = 2 if zoom else 1
    fig = Figure(figsize=(9.0 * (1 + 0.4 * zoom), 1.0 + 1.7 * count), layout="constrained", facecolor="white")
    axes = fig.subplots(count, columns, sharex="col", squeeze=False, width_ratios=[5, 3][:columns])
    _prepared(list(axes.flat), axes.size, DARK)
    return fig, [list(row) for row in axes]


def _prepared(axes: list[Axes], count: int, tone: str) -> list[Axes]:
    """The first `count` axes with text and lines in `tone`, two spines and a faint grid; the others are hidden."""
    for ax in axes[count:]:
        ax.set_visible(False)
    for ax in axes[:count]:
        ax.patch.set_alpha(0)
        ax.tick_params(which="both", colors=tone, labelcolor=tone)
        for side, spine in ax.spines.items():
            spine.set_color(tone)
            spine.set_visible(side in ("left", "bottom"))
        ax.grid(True, color=tone, alpha=0.2, linewidth=0.6)
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
            text.set_color(tone)
    return axes[:count]


def y_label(axes: Sequence[Axes], text: str) -> None:
    """Labels the y axis of the first panel of each row."""
    for ax in axes:
        spec = ax.get_subplotspec()
        if spec is not None and spec.is_first_col():
            ax.set_ylabel(text)


def finish(fig: Figure, axes: Sequence[Axes], heading: tuple[str, str], caveats: Sequence[str] = (), labels: Sequence[str] = ()) -> None:
    """Completes a figure: `heading` (title, note) above it; under it the caveats, and a legend of all `axes` with each label once.

    `labels`: the only ones that the legend has; all by default.
    """
    title, note = heading
    head = [*fold(fig, title, HEAD_SIZE), *fold(fig, note, HEAD_SIZE)]
    fig.suptitle("\n".join(head), color=INK, fontsize=HEAD_SIZE)
    lines = fold(fig, "; ".join(caveats), NOTE_SIZE)
    if len(lines) > NOTE_LINES:
        lines = [*lines[: NOTE_LINES - 1], lines[NOTE_LINES - 1][:-2] + " …"]
    foot = len(lines) * NOTE_SIZE * NOTE_STEP + NOTE_SIZE / 2 if lines else 0.0
    legend = _legend(fig, axes, labels)
    if fig.get_figwidth() <= NARROW:  # the panels keep their height where title and legend take many lines
        more = HEAD_SIZE * LINE_STEP * len(head) + foot + (legend.height if legend else 0.0) - HEAD_ROOM * POINTS
        fig.set_figheight(fig.get_figheight() + max(0.0, more) / POINTS)
    height = POINTS * fig.get_figheight()
    if lines:
        fig.text(0.5, 0.004, "\n".join(lines), color=INK, fontsize=NOTE_SIZE, ha="center", va="bottom", linespacing=LINE_STEP)
    if legend:
        fig.legend(
            list(legend.handles),
            list(legend.names),
            loc="lower center",
            bbox_to_anchor=(0.5, foot / height),
            ncols=legend.columns,
            frameon=False,
            fontsize=KEY_SIZE,
            labelcolor=INK,
            labelspacing=0.5,
            borderpad=0.4,
        )
        foot += legend.height
    fig.get_layout_engine().set(rect=(0, foot / height, 1, 1 - foot / height))  # type: ignore[union-attr, call-arg]
    literal(fig)


def literal(fig: Figure) -> None:
    """Shows every text of the figure as it is: a name with `$` is no formula, and what cannot be printed is visible."""
    from matplotlib.text import Text

    for text in fig.findobj(Text):
        content = text.get_text()
        if "$" in content:
            text.set_parse_math(False)
        if not is_plain(content):
            text.set_text("\n".join(map(printable, content.split("\n"))))


@dataclass(frozen=True)
class _Legend:
    """The entries of a legend and its size."""

    handles: Sequence[Any]
    names: Sequence[str]
    """Each folded where it is wider than the figure."""
    columns: int
    height: float
    """Points."""


def _legend(fig: Figure, axes: Sequence[Axes], labels: Sequence[str]) -> _Legend | None:
    """The legend of all axes, published values last; None without entries."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if not labels or label in labels:
                handles.setdefault(label, handle)
    if not handles:
        return None
    handles = dict(sorted(handles.items(), key=lambda pair: pair[0].endswith("published")))
    characters = int(fig.get_figwidth() * POINTS / (KEY_SIZE * WIDTH_OF_CHARACTER))
    folded = [wrap(label, max(10, int(0.9 * characters) - KEY_HANDLE)) for label in handles]
    widest = max(len(line) for name in folded for line in name) + KEY_HANDLE
    columns = min(KEY_COLUMNS, max(1, characters // widest), len(handles))
    rows, more = -(-len(handles) // columns), max(map(len, folded)) - 1
    height = KEY_SIZE * (1.6 * rows + LINE_STEP * rows * more + 1.3)
    return _Legend(tuple(handles.values()), ["\n".join(name) for name in folded], columns, height)


def panel_width(ax: Axes) -> float:
    """Width of a panel, points: that of the figure over the number of columns."""
    spec, fig = ax.get_subplotspec(), ax.get_figure(root=True)
    return POINTS * float(fig.get_figwidth()) / (spec.get_gridspec().ncols if spec else 1)  # type: ignore[union-attr]


def fold(fig: Figure, text: str, size: float) -> list[str]:
    """A text as lines that fit into the figure's width in a font of `size` points."""
    return wrap(text, max(20, int(fig.get_figwidth() * POINTS / (size * WIDTH_OF_CHARACTER)) - 2))


def short(text: str, width: int) -> str:
    """A text of at most `width` characters: of a longer one its beginning and its end."""
    return text if len(text) <= width else f"{text[: width - width // 3 - 1]}…{text[-(width // 3) :]}"


def wrap(text: str, width: int) -> list[str]:
    """A text as lines of at most `width` characters; a word is broken only where it is longer than a line."""
    return textwrap.wrap(text, width)


def ticks(ax: Axes, at: Sequence[float], names: Mapping[float, str] = MappingProxyType({})) -> None:
    """Sets the ticks of the x axis to the values `at`, without those whose labels would touch. `names`: labels of values that are not to be numbers.

    The axis is logarithmic, from 0 if it begins there, where the largest value is at least :data:`LONG` times the smallest.
    """
    positive = [t for t in at if t > 0]
    if len(positive) > 2 and positive[-1] / positive[0] >= LONG:
        ax.set_xscale("symlog", linthresh=positive[0], linscale=0.4) if len(positive) < len(at) else ax.set_xscale("log")
        # Room for the marks at both ends: a symlog axis would start far below zero by itself.
        ax.set_xlim(-0.2 * positive[0] if len(positive) < len(at) else positive[0] / 1.25, positive[-1] * 1.25)
        ax.set_xticks([], minor=True)
    elif at:
        room = 0.04 * ((at[-1] - at[0]) or 1)
        ax.set_xlim(at[0] - room, at[-1] + room)
    shown = _readable(ax, at)
    ax.set_xticks(shown, [names.get(t, f"{t:.4g}") for t in shown], fontsize=8)


def _readable(ax: Axes, at: Sequence[float]) -> list[float]:
    """The values whose labels do not touch, chosen from the left."""
    scale, left, right = ax.get_xaxis().get_transform(), *ax.get_xlim()
    apart = max(LEAST_APART, TICK_WIDTH / (PANEL_SHARE * panel_width(ax)))
    low, high = (float(scale.transform([x])[0]) for x in (left, right))
    place = {t: (float(scale.transform([t])[0]) - low) / (high - low) for t in at}
    shown: list[float] = []
    for t in at:
        if not shown or place[t] - place[shown[-1]] >= apart:
            shown.append(t)
    return shown


def plain_log(axis: Axis) -> None:
    """Labels a logarithmic axis with plain numbers: 0.5, 2, 40."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < LONG_LOG else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


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


def save(fig: Figure, stem: Path, kinds: Sequence[str] = ("png", "svg"), svg_text: str = "", *, named: bool = False) -> list[Path]:
    """Writes a figure and returns the files, one for each format; the same figure gives the same bytes.

    `stem`: path without suffix (a suffix that is a format is dropped); `kinds`: formats of :data:`FORMATS`; `svg_text`: the figure's SVG document
    where the caller has it already; `named`: the user named the file itself, so that a link is followed (:func:`tcpscape.writing.named`).

    :raises StoreError: where a file cannot be written.
    """
    stem = stem.with_suffix("") if stem.suffix[1:] in FORMATS else stem
    write = writing.named if named else writing.whole
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    for file, kind in zip(files, kinds, strict=True):
        if kind == "svg" and svg_text:
            write(file, svg_text)
        else:
            content = io.BytesIO()
            _write(fig, content, kind)
            write(file, content.getbuffer())
    return files


_DATELESS: Mapping[str, Any] = {"svg": {"Date": None, "Creator": None, "Format": None, "Type": None}, "pdf": {"CreationDate": None}, "png": {}}
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
    with _quiet_fonts(), mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "none", "pdf.fonttype": 42}), paper:
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
