"""Conditions and the real kernel's results: CSV in, the engine's plan out.

A condition is a row of `random_conditions.csv`: sender, netem at its egress (delay, jitter, loss), a router with tbf
where `rate_mbit` is given, receiver; ACKs return through netem (delay, and jitter where `jitter_on` is `both`).
"""

from __future__ import annotations

import csv
import dataclasses
import pathlib
from collections import defaultdict

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "reference"
FAMILIES = ("clean", "loss only", "jitter only", "loss and jitter", "bottleneck", "bottleneck + impairments")


def _number(text: str | None) -> float:
    return float(text) if text else 0.0


@dataclasses.dataclass(frozen=True)
class Condition:
    """One condition: a path, a congestion control, an application."""

    id: str
    cca: str
    rtt_ms: float
    duration_s: float
    jitter_ms: float
    distribution: str
    jitter_on: str
    loss_pct: float
    rate_mbit: float
    buffer_bytes: int
    rcvbuf: int
    flows: int
    app_MBps: float

    @classmethod
    def of(cls, row: dict[str, str]) -> Condition:
        """From a CSV row."""
        return cls(
            id=row["id"],
            cca=row["cca"],
            rtt_ms=float(row["rtt_ms"]),
            duration_s=_number(row.get("duration_s")) or 10.0,
            jitter_ms=_number(row.get("jitter_ms")),
            distribution=row.get("distribution") or "",
            jitter_on=row.get("jitter_on") or "",
            loss_pct=_number(row.get("loss_pct")),
            rate_mbit=_number(row.get("rate_mbit")),
            buffer_bytes=int(_number(row.get("buffer_bytes"))),
            rcvbuf=int(_number(row.get("rcvbuf"))),
            flows=int(_number(row.get("flows")) or 1),
            app_MBps=_number(row.get("app_MBps")),
        )

    @property
    def family(self) -> str:
        """What impairs this path."""
        impaired = self.loss_pct > 0 or self.jitter_ms > 0
        if self.rate_mbit:
            return "bottleneck + impairments" if impaired else "bottleneck"
        if not impaired:
            return "clean"
        return "loss and jitter" if self.loss_pct and self.jitter_ms else "loss only" if self.loss_pct else "jitter only"

    @property
    def forward(self) -> str:
        """The data direction's netem, in tc's words."""
        loss = f" loss {self.loss_pct:g}%" if self.loss_pct else ""
        return f"netem delay {self.rtt_ms / 2:g}ms{self._jitter}{loss} limit 100000"

    @property
    def reverse(self) -> str:
        """The ACK direction's netem, in tc's words."""
        return f"netem delay {self.rtt_ms / 2:g}ms{self._jitter if self.jitter_on == 'both' else ''} limit 100000"

    @property
    def bottleneck(self) -> str:
        """The router's tbf in tc's words, or nothing."""
        return f"tbf rate {self.rate_mbit:g}mbit burst 6056 limit {self.buffer_bytes}" if self.rate_mbit else ""

    @property
    def _jitter(self) -> str:
        if not self.jitter_ms:
            return ""
        return f" {self.jitter_ms:g}ms" + (" distribution normal" if self.distribution == "normal" else "")

    def describe(self) -> str:
        """One short line: what the path and the application are."""
        parts = [f"{self.cca}" + (f"×{self.flows}" if self.flows > 1 else ""), f"{self.rtt_ms:g} ms"]
        if self.jitter_ms:
            parts.append(f"± {self.jitter_ms:g} {self.distribution[:4]} {'both' if self.jitter_on == 'both' else 'fwd'}")
        if self.loss_pct:
            parts.append(f"loss {self.loss_pct:g} %")
        if self.rate_mbit:
            bdp = self.rate_mbit * self.rtt_ms * 125
            parts.append(f"{self.rate_mbit:g} Mbit/s, {self.buffer_bytes / bdp:.2f} BDP")
        parts.append(f"rcvbuf {self.rcvbuf // 1024}k" if self.rcvbuf else "rcvbuf auto")
        if self.app_MBps:
            parts.append(f"app {self.app_MBps:g} MB/s")
        return ", ".join(parts)

    def plan(self, parse_tc, *, sample_ms: float = 0, kernel: dict | None = None) -> dict:
        """The engine's plan; `parse_tc` turns tc's words into its JSON."""
        stop = round(self.duration_s * 1e9)
        forward = [{"qdisc": parse_tc(self.forward), "at": "sender"}]
        if self.bottleneck:
            forward.append({"qdisc": parse_tc(self.bottleneck), "at": "router"})
        return make_plan(
            duration_ns=stop,
            forward=forward,
            reverse=[{"qdisc": parse_tc(self.reverse), "at": "receiver"}],
            flows=[make_flow(self.cca, stop, app_Bps=self.app_MBps * 1e6, rcvbuf=self.rcvbuf)] * self.flows,
            sample_interval_ns=round(sample_ms * 1e6),
            kernel=kernel or {"profile": "6.1"},
        )


def make_flow(cca: str, stop_ns: int, *, app_Bps: float = 0, rcvbuf: int = 0, sndbuf: int = 0, read_size: int = 65536, read_delay_ns: int = 0) -> dict:
    """One flow of a plan: bulk, or chunks of 8192 bytes at a rate without catch-up."""
    app = {"kind": "paced", "chunk": 8192, "rate_Bps": round(app_Bps)} if app_Bps else {"kind": "bulk", "chunk": 8192}
    return {
        "cca": cca,
        "start_ns": 0,
        "stop_ns": stop_ns,
        "app": app,
        "read": {"size": read_size, "delay_ns": read_delay_ns},
        "rcvbuf": rcvbuf,
        "sndbuf": sndbuf,
        "nodelay": True,
    }


def make_plan(*, duration_ns: int, forward: list, reverse: list, flows: list, sample_interval_ns: int = 0, kernel: dict) -> dict:
    """A plan from its stages and flows."""
    return {
        "duration_ns": duration_ns,
        "mtu": 1500,
        "kernel": kernel,
        "offload": False,
        "forward": {"stages": forward, "schedule": []},
        "reverse": {"stages": reverse, "schedule": []},
        "flows": flows,
        "sample_interval_ns": sample_interval_ns,
        "queue_sample_interval_ns": 0,
        "trace_packets": False,
        "arp": True,
    }


@dataclasses.dataclass(frozen=True)
class Truth:
    """What the real kernel did: one entry a repetition."""

    goodput: tuple[float, ...]
    retransmits: tuple[float, ...]
    mean_rtt_ms: tuple[float, ...]
    min_rtt_ms: tuple[float, ...]


def read_conditions(path: pathlib.Path) -> dict[str, Condition]:
    """All conditions of a CSV file, by id, in the file's order."""
    with open(path, newline="") as f:
        return {row["id"]: Condition.of(row) for row in csv.DictReader(f)}


def _grouped(path: pathlib.Path) -> dict[str, list[dict[str, str]]]:
    """The rows of a file by their `id`; nothing for a file that is not there or for rows without a goodput."""
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    if path.exists():
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                if row.get("goodput_mbps"):
                    rows[row["id"]].append(row)
    return dict(rows)


def read_results(path: pathlib.Path) -> dict[str, Truth]:
    """The kernel's repetitions of each condition, by id. Columns that a file does not have stay empty.

    Mean RTTs may come from a file beside it (`X_rtt.csv` for `X_results.csv`), measured in runs of their own. They are
    used for single flows only: samples of several flows came through one file and lost lines.
    """
    rows, rtts = _grouped(path), _grouped(path.with_name(path.name.replace("_results", "_rtt"))) if "_results" in path.name else {}

    def column(group: list[dict[str, str]], name: str, scale: float = 1.0) -> tuple[float, ...]:
        return tuple(float(r[name]) * scale for r in group if r.get(name))

    return {
        id: Truth(
            column(group, "goodput_mbps"),
            column(group, "retransmits"),
            (column(group, "mean_srtt_us", 1e-3) or column(rtts.get(id, []), "mean_srtt_us", 1e-3)) if group[0]["flows"] == "1" else (),
            column(group, "min_rtt_us", 1e-3),
        )
        for id, group in rows.items()
    }
