#!/usr/bin/env python3
"""One condition, the kernel's TCP_INFO samples and the model's side by side, as text and as a picture.

    benches/overlay.py --conditions C.csv --id t042 --samples t042.csv --every 0.5 --to 3
    benches/overlay.py --conditions C.csv --id t042 --samples t042.csv --seeds 5 --png t042.png

The samples file has the columns id, flow, t_s, cwnd, ssthresh, srtt_us, min_rtt_us, unacked, retrans, ca_state, …
"""

from __future__ import annotations

import argparse
import bisect
import csv
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
from conditions import DATA, Condition, read_conditions
from metrics import sample_columns

# What is shown: heading, the kernel's column, the model's possible columns, scale, format.
SHOWN = (
    ("cwnd", "cwnd", ("cwnd",), 1, ".0f"),
    ("ssthresh", "ssthresh", ("ssthresh",), 1, ".0f"),
    ("srtt ms", "srtt_us", ("srtt_us",), 1e-3, ".1f"),
    ("rttvar", "rttvar_us", ("rttvar_us", "mdev_us"), 1e-3, ".1f"),
    ("min ms", "min_rtt_us", ("min_rtt_us",), 1e-3, ".1f"),
    ("rto ms", "rto_us", ("rto_us",), 1e-3, ".0f"),
    ("out", "unacked", ("unacked", "packets_out", "in_flight", "inflight"), 1, ".0f"),
    ("retr", "retrans", ("retransmits", "retrans"), 1, ".0f"),
    ("ca", "ca_state", ("ca_state",), 1, ""),
    ("reord", "reordering", ("reordering",), 1, ".0f"),
    ("dsack", "dsack_dups", ("dsack_dups", "dsacks", "spurious_retransmits"), 1, ".0f"),
    ("deliv", "delivered", ("delivered",), 1, ".0f"),
    ("pace Mb", "pacing_Bps", ("pacing_Bps", "pacing_rate_Bps"), 8e-6, ".1f"),
    ("rate Mb", "delivery_Bps", ("delivery_Bps", "delivery_rate_Bps"), 8e-6, ".1f"),
    ("snd_wnd", "snd_wnd", ("snd_wnd", "rwnd"), 1, ".0f"),
)
NO_SSTHRESH = 0x7FFF_FFFF
STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")


class Trace:
    """Samples of one flow: a time axis in seconds and a value at any time (the last sample before it)."""

    def __init__(self, t: list[float], columns: dict[str, list]) -> None:
        self.t, self.columns = t, columns

    def at(self, time_s: float, names: tuple[str, ...]):
        """The value of the first of these columns that exists; None before the first sample."""
        k = bisect.bisect_right(self.t, time_s) - 1
        for name in names:
            if name in self.columns:
                return self.columns[name][k] if k >= 0 else None
        return None


def read_samples(path: pathlib.Path, flow: int) -> Trace:
    """The kernel's samples of one flow; lines that are not whole are left out."""
    with open(path, newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["flow"] == str(flow) and None not in r.values()]
    first = rows[0]["id"] if rows else ""
    rows = [r for r in rows if r["id"] == first]
    names = [n for n in (rows[0] if rows else {}) if n not in ("id", "flow", "t_s")]
    return Trace([float(r["t_s"]) for r in rows], {n: [float(r[n]) for r in rows] for n in names})


def model_samples(module, condition: Condition, seed: int, flow: int, sample_ms: float) -> Trace:
    """The model's samples of one flow."""
    result = engine.run_plan(module, condition.plan(engine.parser(module), sample_ms=sample_ms), [seed], 1)[0]
    columns = sample_columns(result, flow)
    if not columns:
        sys.stderr.write("overlay: the engine returned no samples\n")
        raise SystemExit(2)
    return Trace([t / 1e9 for t in columns["t_ns"]], columns)


def text(value, scale: float, form: str) -> str:
    """A cell: a dash where there is nothing, the state's first letter, ∞ for an unset ssthresh."""
    if value is None:
        return "–"
    if form == "":
        return (value if isinstance(value, str) else STATES[int(value)] if int(value) < len(STATES) else str(value))[:5]
    return "∞" if value >= NO_SSTHRESH and scale == 1 else format(value * scale, form)


def print_side_by_side(kernel: Trace, model: Trace, times: list[float], wanted: list[str]) -> None:
    """Kernel | model for each quantity at each time."""
    shown = [s for s in SHOWN if s[0] in wanted or s[1] in wanted] if wanted else [s for s in SHOWN if any(n in model.columns for n in s[2])]
    print("each cell: kernel | model   ('out' is packets_out in the kernel; the model's nearest column)")
    print(f"{'t s':>7} " + " ".join(f"{s[0]:^15}" for s in shown))
    for t in times:
        cells = (f"{text(kernel.at(t, (s[1],)), s[3], s[4]):>7}|{text(model.at(t, s[2]), s[3], s[4]):<7}" for s in shown)
        print(f"{t:7.3f} " + " ".join(cells))


def draw(kernel: Trace, models: list[Trace], condition: Condition, path: pathlib.Path, span: tuple[float, float]) -> None:
    """cwnd, srtt, min RTT and retransmits over time: the kernel thick, the model's seeds thin."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [s for s in SHOWN if s[1] in ("cwnd", "srtt_us", "min_rtt_us", "retrans", "reordering") and (any(n in models[0].columns for n in s[2]))]
    fig, axes = plt.subplots(len(panels), 1, sharex=True, figsize=(11, 2.3 * len(panels)), squeeze=False)
    for ax, (name, theirs, ours, scale, _) in zip(axes[:, 0], panels, strict=True):
        for k, m in enumerate(models):
            column = next(n for n in ours if n in m.columns)
            ax.step(m.t, [v * scale for v in m.columns[column]], where="post", lw=0.8, color="C1", alpha=0.7, label="model" if k == 0 else None)
        ax.step(kernel.t, [v * scale for v in kernel.columns[theirs]], where="post", lw=1.4, color="C0", label="kernel")
        ax.set_ylabel(name)
        ax.set_ylim(bottom=0)
    axes[0, 0].legend(loc="upper right")
    axes[0, 0].set_title(f"{condition.id}: {condition.describe()}", fontsize=9)
    axes[-1, 0].set_xlabel("s")
    axes[-1, 0].set_xlim(*span)
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def main() -> int:
    """The command."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--conditions", type=pathlib.Path, default=DATA / "random_conditions.csv")
    p.add_argument("--id", required=True)
    p.add_argument("--samples", type=pathlib.Path, required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seeds", type=int, default=1, help="how many of the model's seeds to draw")
    p.add_argument("--flow", type=int, default=0)
    p.add_argument("--every", type=float, default=0.5, help="seconds between lines")
    p.add_argument("--from", dest="start", type=float, default=0.0)
    p.add_argument("--to", type=float, default=0.0, help="seconds; 0 for the end")
    p.add_argument("--sample-ms", type=float, default=10)
    p.add_argument("--columns", default="", help="comma-separated headings, for example cwnd,ssthresh,'srtt ms'")
    p.add_argument("--png", type=pathlib.Path)
    p.add_argument("--fake", action="store_true")
    a = p.parse_args()
    conditions = read_conditions(a.conditions)
    if a.id not in conditions:
        sys.stderr.write(f"overlay: --id {a.id} is not in {a.conditions}\n")
        return 2
    condition, kernel, module = conditions[a.id], read_samples(a.samples, a.flow), engine.core(a.fake)
    models = [model_samples(module, condition, a.seed + k, a.flow, a.sample_ms) for k in range(max(1, a.seeds))]
    end = a.to or condition.duration_s
    print(f"{condition.id}: {condition.describe()}; flow {a.flow}, model seed {a.seed}")
    times = [a.start + k * a.every for k in range(int((end - a.start) / a.every + 1e-9) + 1)]
    print_side_by_side(kernel, models[0], times, [c for c in a.columns.split(",") if c])
    if a.png:
        draw(kernel, models, condition, a.png, (a.start, end))
        print(f"picture: {a.png}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
