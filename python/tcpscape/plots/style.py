"""How figures look: a palette that colour-blind readers can tell apart (Okabe and Ito 2008), ink that reads on light and dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.errors import StoreError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#808080"
"""Mid-grey: contrast of at least 3.9 on white and 4.5 on near-black."""
DARK = "#404040"
"""Ink of figures on a white ground."""
COLOURS = {"cubic": "#e69f00", "bbr": "#0090d0", "reno": "#009e73"}
SPARE = ("#cc79a7", "#d55e00", "#56b4e9", "#b8a800", "#7a6fd0", "#44aa99", "#cc6677", "#999933", "#aa4499", "#6699cc", "#c08040", "#117733")
"""Of all others, in the order in which a figure names them (Okabe and Ito, then Tol)."""
MARKERS = {"cubic": "o", "bbr": "s", "reno": "^"}


def colour(cca: str, place: int = 0) -> str:
    """The colour of a congestion control; the same in every figure."""
    return COLOURS.get(cca, SPARE[place % len(SPARE)])


def figure(panels: int, *, share: bool = True, width: float = 4.2, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A transparent figure with panels side by side; `share`: one y axis for all."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(max(6.0, width * panels), height), layout="constrained")
    fig.patch.set_alpha(0)
    axes = fig.subplots(1, panels, sharey=share, squeeze=False)[0]
    for ax in axes:
        _ink(ax)
    return fig, list(axes)


def stacked(panels: int, *, zoom: bool = False, width: float = 9.0, height: float = 1.7) -> tuple[Figure, list[list[Axes]]]:
    """A figure on white with panels below each other over one time axis; `zoom`: a second, narrower column beside them."""
    from matplotlib.figure import Figure

    columns = 2 if zoom else 1
    fig = Figure(figsize=(width * (1 + 0.4 * zoom), 1.0 + height * panels), layout="constrained", facecolor="white")
    axes = fig.subplots(panels, columns, sharex="col", squeeze=False, width_ratios=[5, 3][:columns])
    for ax in axes.flat:
        _ink(ax, DARK)
    return fig, [list(row) for row in axes]


def grid(panels: int, columns: int, *, width: float = 3.2, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    """A figure on white with panels in rows, sharing both axes."""
    from matplotlib.figure import Figure

    rows = -(-panels // columns)
    fig = Figure(figsize=(0.6 + width * columns, 1.1 + height * rows), layout="constrained", facecolor="white")
    axes = list(fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for ax in axes[:panels]:
        _ink(ax, DARK)
    return fig, axes[:panels]


def _ink(ax: Axes, ink: str = INK) -> None:
    ax.patch.set_alpha(0)
    ax.tick_params(colors=ink, labelcolor=ink)
    for side, spine in ax.spines.items():
        spine.set_color(ink)
        spine.set_visible(side in ("left", "bottom"))
    ax.grid(True, color=ink, alpha=0.2, linewidth=0.6)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(ink)


def legend(ax: Axes) -> None:
    """A legend without a box, in ink."""
    ax.legend(frameon=False, labelcolor=INK, fontsize=8)


def save(fig: Figure, stem: Path) -> list[Path]:
    """Writes PNG and SVG; returns the files."""
    files = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for file in files:
            fig.savefig(file, dpi=160, metadata={"Date": None} if file.suffix == ".svg" else None)
    except OSError as e:
        raise StoreError(f"out: cannot write {e.filename}: {e.strerror}; choose another directory") from None
    return files
