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
COLOURS = {"cubic": "#e69f00", "bbr": "#0090d0", "reno": "#009e73"}
SPARE = ("#cc79a7", "#d55e00", "#56b4e9", "#b8a800")
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


def _ink(ax: Axes) -> None:
    ax.patch.set_alpha(0)
    ax.tick_params(colors=INK, labelcolor=INK)
    for side, spine in ax.spines.items():
        spine.set_color(INK)
        spine.set_visible(side in ("left", "bottom"))
    ax.grid(True, color=INK, alpha=0.2, linewidth=0.6)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(INK)


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
