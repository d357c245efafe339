"""The style of figures: panels, ticks, legends and notes, legible on light and on dark pages; that of a congestion control is `controls/palette`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tcpscape.errors import is_plain, printable

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
PAGE, NARROW, LEAST_PANEL = 10.0, 4.0, 2.8
"""Width of a figure for a wide page, and for one of 400 px, inches; least width of a panel of a figure whose width is given, inches."""
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


def white_panels(count: int, columns: int, *, width: float = 3.2, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    """A figure on white ground with `count` panels in rows of `columns` that share both axes."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    fig = Figure(figsize=(0.6 + width * columns, 1.1 + height * rows), layout="constrained", facecolor="white")
    return fig, _prepared(list(fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat), count, DARK)


def white_time_panels(count: int, *, zoom: bool = False, width: float = 9.0, height: float = 1.7) -> tuple[Figure, list[list[Axes]]]:
    """A figure on white ground with `count` rows of panels that share the time axis; `zoom`: a second, narrower panel in each row."""
    from matplotlib.figure import Figure

    columns = 2 if zoom else 1
    fig = Figure(figsize=(width * (1 + 0.4 * zoom), 1.0 + height * count), layout="constrained", facecolor="white")
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
            list(legend.handles), list(legend.names), loc="lower center", bbox_to_anchor=(0.5, foot / height), ncols=legend.columns, frameon=False,
            fontsize=KEY_SIZE, labelcolor=INK, labelspacing=0.5, borderpad=0.4,
        )  # fmt: skip
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
