"""How figures look and how they are written: ink that reads on light and dark pages, panels, legends, notes, PNG, SVG and PDF."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tcpscape.errors import StoreError, refuse
from tcpscape.plots import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#808080"
"""Mid-grey: contrast of at least 3.9 on white and 4.5 on near-black. In a page it becomes the page's own text colour."""
DARK = "#404040"
"""Ink of figures on a white ground."""
FORMATS = ("png", "svg", "pdf")
"""What a figure can be written as."""
KEY_COLUMNS, KEY_SIZE = 6, 8.0
"""Most columns of a legend; size of its words, points."""
POINTS = 72.0
"""In an inch."""
DPI = 160
"""Of PNG, and of what an SVG holds as an image."""
SALT = "tcpscape"
"""Of the SVG's ids: the same figure has the same bytes."""
NOTE_SIZE, NOTE_LINES, NOTE_STEP = 7.5, 3, 1.4
"""Size of the caveats under a figure, points; how many lines of them; height of a line over its size."""
LONG = 20.0
"""Largest over smallest positive value from which an axis is logarithmic."""
LONG_PATH = 400
"""Characters of a path in an SVG that is a curve."""
LONG_LOG = 2000.0
"""Highest over lowest value from which a logarithmic axis names powers of ten alone."""
LEAST_APART = 0.085
"""Between two ticks' labels, of the panel's width."""
WIDTH_OF_CHARACTER = 0.56
"""Mean width of a character over the size of its font (DejaVu Sans)."""


def colour(cca: str, place: int = 0) -> str:
    """The colour of a congestion control, the same in every figure; others take one by their `place` in it."""
    return palette.looks([cca])[cca].colour if cca in palette.KNOWN else palette.LOOKS[(place + 3) % len(palette.LOOKS)].colour


def figure(panels: int, *, share: bool = True, width: float = 4.2, height: float = 3.6, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """A transparent figure with panels in rows of at most `columns`, each `width` × `height` inches; `share`: one y axis for all."""
    from matplotlib.figure import Figure

    columns = 2 if panels == 4 and columns == 3 else min(panels, columns)
    rows = -(-panels // columns)
    fig = Figure(figsize=(max(6.4, width * columns), 0.7 + height * rows), layout="constrained")
    fig.get_layout_engine().set(h_pad=0.08, w_pad=0.08)  # type: ignore[union-attr, call-arg]
    fig.patch.set_alpha(0)
    axes = list(fig.subplots(rows, columns, sharey=share, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for ax in axes[:panels]:
        ink(ax)
    return fig, axes[:panels]


def rows(panels: int, *, columns: int = 1, width: float = 8.4, height: float = 1.75) -> tuple[Figure, list[list[Axes]]]:
    """A transparent figure with panels below each other over one time axis, `columns` of them."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, 1.2 + height * panels), layout="constrained")
    fig.patch.set_alpha(0)
    axes = fig.subplots(panels, columns, sharex=True, sharey="row", squeeze=False)
    for ax in axes.flat:
        ink(ax)
    return fig, [list(row) for row in axes]


def stacked(panels: int, *, zoom: bool = False, width: float = 9.0, height: float = 1.7) -> tuple[Figure, list[list[Axes]]]:
    """A figure on white with panels below each other over one time axis; `zoom`: a second, narrower column beside them."""
    from matplotlib.figure import Figure

    columns = 2 if zoom else 1
    fig = Figure(figsize=(width * (1 + 0.4 * zoom), 1.0 + height * panels), layout="constrained", facecolor="white")
    axes = fig.subplots(panels, columns, sharex="col", squeeze=False, width_ratios=[5, 3][:columns])
    for ax in axes.flat:
        ink(ax, DARK)
    return fig, [list(row) for row in axes]


def grid(panels: int, columns: int, *, width: float = 3.2, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    """A figure on white with panels in rows, sharing both axes."""
    from matplotlib.figure import Figure

    rows_ = -(-panels // columns)
    fig = Figure(figsize=(0.6 + width * columns, 1.1 + height * rows_), layout="constrained", facecolor="white")
    axes = list(fig.subplots(rows_, columns, sharex=True, sharey=True, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for ax in axes[:panels]:
        ink(ax, DARK)
    return fig, axes[:panels]


def y_label(axes: Sequence[Axes], text: str) -> None:
    """The y axis' label, once a row of panels."""
    for ax in axes:
        spec = ax.get_subplotspec()
        if spec is not None and spec.is_first_col():
            ax.set_ylabel(text)


def ink(ax: Axes, tone: str = INK) -> None:
    """Axes without ground, in ink: two spines, a faint grid."""
    ax.patch.set_alpha(0)
    ax.tick_params(which="both", colors=tone, labelcolor=tone)
    for side, spine in ax.spines.items():
        spine.set_color(tone)
        spine.set_visible(side in ("left", "bottom"))
    ax.grid(True, color=tone, alpha=0.2, linewidth=0.6)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(tone)


def legend(ax: Axes, **more: Any) -> None:
    """A legend without a box, in ink."""
    ax.legend(**{"frameon": False, "labelcolor": INK, "fontsize": 8, **more})


def words(fig: Figure, axes: Sequence[Axes], above: tuple[str, str], caveats: Sequence[str] = (), only: Sequence[str] = ()) -> None:
    """Title and note above the figure; under it one legend for all panels, each label once (`only` these, if any), and the caveats."""
    title, note = above
    fig.suptitle("\n".join([*fold(fig, title, 10), *fold(fig, note, 10)]), color=INK, fontsize=10)
    lines = fold(fig, "; ".join(caveats), NOTE_SIZE)
    if len(lines) > NOTE_LINES:
        lines = [*lines[: NOTE_LINES - 1], lines[NOTE_LINES - 1][:-2] + " …"]
    foot = (len(lines) * NOTE_SIZE * NOTE_STEP + NOTE_SIZE / 2) / POINTS / fig.get_figheight() if lines else 0.0
    if lines:
        fig.text(0.5, 0.004, "\n".join(lines), color=INK, fontsize=NOTE_SIZE, ha="center", va="bottom", linespacing=1.2)
    foot = _key(fig, axes, foot, only)
    fig.get_layout_engine().set(rect=(0, foot, 1, 1 - foot))  # type: ignore[union-attr, call-arg]


def _key(fig: Figure, axes: Sequence[Axes], foot: float, only: Sequence[str]) -> float:
    """The legend, over a foot of so much of the figure's height; published values last. Returns the height of both."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if not only or label in only:
                found.setdefault(label, handle)
    if not found:
        return foot
    found = dict(sorted(found.items(), key=lambda pair: pair[0].endswith("published")))
    fits = max(1, int(fig.get_figwidth() * POINTS / (KEY_SIZE * WIDTH_OF_CHARACTER * (max(map(len, found)) + 7))))
    columns = min(KEY_COLUMNS, fits, len(found))
    fig.legend(
        list(found.values()), list(found), loc="lower center", bbox_to_anchor=(0.5, foot), ncols=columns, frameon=False, fontsize=KEY_SIZE,
        labelcolor=INK, labelspacing=0.5, borderpad=0.4,
    )
    rows = -(-len(found) // columns)
    return foot + KEY_SIZE * (1.6 * rows + 1.3) / POINTS / fig.get_figheight()


def fold(fig: Figure, text: str, size: float) -> list[str]:
    """The lines of a text in a font of `size` points that fit into the figure's width."""
    return wrap(text, max(20, int(fig.get_figwidth() * POINTS / (size * WIDTH_OF_CHARACTER)) - 2))


def wrap(text: str, width: int) -> list[str]:
    """Its lines of at most so many characters; no word is broken that fits into one."""
    return textwrap.wrap(text, width)


def ticks(ax: Axes, at: Sequence[float], names: Mapping[float, str] = MappingProxyType({})) -> None:
    """Ticks of the x axis at these values; logarithmic from 0 where their steps grow, thinned out where they would touch. `names`: of values."""
    positive = [t for t in at if t > 0]
    if len(positive) > 2 and positive[-1] / positive[0] >= LONG:
        ax.set_xscale("symlog", linthresh=positive[0], linscale=0.4) if len(positive) < len(at) else ax.set_xscale("log")
        # Room for the marks at both ends: a symlog axis would start far below zero by itself.
        ax.set_xlim(-0.2 * positive[0] if len(positive) < len(at) else positive[0] / 1.25, positive[-1] * 1.25)
        ax.set_xticks([], minor=True)
    elif at:
        room = 0.04 * ((at[-1] - at[0]) or 1)
        ax.set_xlim(at[0] - room, at[-1] + room)
    shown = _apart(ax, at)
    ax.set_xticks(shown, [names.get(t, f"{t:.4g}") for t in shown], fontsize=8)


def _apart(ax: Axes, at: Sequence[float]) -> list[float]:
    """Those of these values whose labels do not touch: from the left, and the last one."""
    scale, left, right = ax.get_xaxis().get_transform(), *ax.get_xlim()
    low, high = (float(scale.transform([x])[0]) for x in (left, right))
    place = {t: (float(scale.transform([t])[0]) - low) / (high - low) for t in at}
    shown: list[float] = []
    for t in at:
        if not shown or place[t] - place[shown[-1]] >= LEAST_APART:
            shown.append(t)
    return shown


def plain_log(axis: Axis) -> None:
    """Numbers as people write them on a logarithmic axis: 0.5, 2, 40."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < LONG_LOG else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def formats(text: str) -> tuple[str, ...]:
    """`png,svg` → its formats; one that is unknown is refused."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [f for f in found if f not in FORMATS]:
        refuse("figures", f"{unknown[0]!r} is no format", f"choose {', '.join(FORMATS)}")
    if not found:
        refuse("figures", "names no format", f"choose {', '.join(FORMATS)}")
    return found


def save(fig: Figure, stem: Path, kinds: Sequence[str] = ("png", "svg"), drawn: str = "") -> list[Path]:
    """Writes the figure in these formats; the same figure gives the same bytes. `drawn`: its SVG, where it is there already. Returns the files."""
    stem = stem.with_suffix("") if stem.suffix[1:] in FORMATS else stem
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for file, kind in zip(files, kinds, strict=True):
            if kind == "svg" and drawn:
                file.write_text(drawn, "utf-8")
            else:
                _write(fig, file, kind)
    except OSError as e:
        raise StoreError(f"out: cannot write {e.filename or stem.parent}: {e.strerror}; free some space, or choose another directory") from None
    return files


_DATELESS: Mapping[str, Any] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None}, "pdf": {"CreationDate": None}, "png": {},
}
"""Metadata of each format without the time of writing."""
_CANVASES: Mapping[str, tuple[str, str]] = {
    "png": ("backend_agg", "FigureCanvasAgg"), "svg": ("backend_svg", "FigureCanvasSVG"), "pdf": ("backend_pdf", "FigureCanvasPdf"),
}
"""Format → module and class that draw it."""


def _write(fig: Figure, to: Any, kind: str) -> None:
    """Draws it once: `savefig` would draw every figure twice, for backends that need it."""
    import matplotlib as mpl

    settle(fig)
    own, fig.dpi = fig.dpi, DPI
    module, name = _CANVASES[kind]
    canvas: Any = getattr(import_module(f"matplotlib.backends.{module}"), name)(fig)
    with mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "none"}):
        getattr(canvas, f"print_{kind}")(to, metadata=_DATELESS[kind])
    fig.dpi = own


def settle(fig: Figure) -> None:
    """Lays it out, once for every format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(fig)
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.execute(fig)
        fig.set_layout_engine("none")


def svg(fig: Figure) -> str:
    """The figure as an SVG document."""
    out = io.StringIO()
    _write(fig, out, "svg")
    return out.getvalue()


def inline(drawn: str, name: str) -> str:
    """An SVG document as an `<svg>` element for a page: ids begin with `name`, ink is the page's (`currentColor`), the width gives way."""
    text = drawn[drawn.index("<svg") :].replace(INK, "currentColor").strip()
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r'\bd="[^"]*"', lambda found: _short(found.group(0)), text)
    wide = re.search(r'width="([\d.]+)pt" height="[\d.]+pt"', text)
    return text.replace(wide.group(0), f'style="max-width:{wide.group(1)}pt" role="img"', 1) if wide else text


def _short(path: str) -> str:
    """A path's numbers to 0.1 pt; those of small shapes, such as markers, to 0.01."""
    return re.sub(r"(\d\.\d)\d+" if len(path) > LONG_PATH else r"(\d\.\d\d)\d+", r"\1", path)
