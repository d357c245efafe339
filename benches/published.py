"""The published jitter-cliff and loss tables: their conditions run through the engine, beside the published numbers.

Rig: netem with the same words in both directions, delay D each way, jitter as `distribution normal`, loss in each
direction; SO_RCVBUF 262144; chunks of 8192 bytes at 5 and 10 MiB/s, pooled, as published; a reader that sleeps 1 ms
before each read of 16 KiB; 10 s. Numbers are true Mbit/s.
"""

from __future__ import annotations

import csv
import dataclasses
import statistics

import engine
from plans import DATA, make_flow, make_plan
from tcpscape.validate.compare import spread as cv

CCAS = ("cubic", "bbr")
# Asked for 5 and 10 MiB/s, in KiB/s. The works pool both. The rig's sleeps overshot by 58 us, which is the timer slack.
RATES_KIB = (5120, 10240)
TIMER_SLACK_NS = 58_000
LOSSES = (0, 0.1, 0.25, 0.5, 1, 2, 5)
OWDS_MS, JITTERS_MS = (12, 25, 50), (0, 4, 8, 12, 16, 20, 24)
CHAOS_JITTERS_MS = (8, 10, 12, 14, 16)
# The works call 15–30 % jitter/RTT the chaos zone; cells in it are shown and not judged.
CHAOS_PCT = (15, 30)
# The rig let a receiver have all of its 256 KiB.
KERNEL = {"profile": "6.12", "rmem_max": 4 << 20}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One published condition."""

    cca: str
    owd_ms: float
    jitter_ms: float = 0
    loss_pct: float = 0

    @property
    def rtt_ms(self) -> float:
        """Twice the one-way delay, as the works count it."""
        return 2 * self.owd_ms

    @property
    def chaotic(self) -> bool:
        """Whether the published works place it in the chaos zone."""
        return CHAOS_PCT[0] <= 100 * self.jitter_ms / self.rtt_ms <= CHAOS_PCT[1]

    def plan(self, parse_tc, rate_kib: float) -> dict:
        """The engine's plan at one application rate."""
        jitter = f" {self.jitter_ms:g}ms distribution normal" if self.jitter_ms else ""
        loss = f" loss {self.loss_pct:g}%" if self.loss_pct else ""
        words = f"netem delay {self.owd_ms:g}ms{jitter}{loss}"
        stop = 10_000_000_000
        flow = make_flow(self.cca, stop, app_Bps=rate_kib * 1024, rcvbuf=262144, read_size=16384, read_delay_ns=1_000_000)
        return make_plan(
            duration_ns=stop,
            # On a third host: netem meets single packets, not the sender's super-packets.
            forward=[{"qdisc": parse_tc(words), "at": "router"}],
            reverse=[{"qdisc": parse_tc(words), "at": "router"}],
            flows=[flow],
            kernel=KERNEL,
        ) | {"timer_slack_ns": TIMER_SLACK_NS}

    def run(self, module, seeds: list[int], threads: int) -> list[float]:
        """Goodput of every run, both application rates pooled."""
        parse = engine.parser(module)
        results = [r for rate in RATES_KIB for r in engine.run_plan(module, self.plan(parse, rate), seeds, threads)]
        return [r["flows"][0]["goodput_mbps"] for r in results]


def loss_cells() -> list[Cell]:
    """The loss-tolerance table: 14 cells."""
    return [Cell(cca, 25, loss_pct=p) for p in LOSSES for cca in CCAS]


def jitter_cells() -> list[Cell]:
    """The jitter-cliff table: 42 cells."""
    return [Cell(cca, d, jitter_ms=j) for d in OWDS_MS for j in JITTERS_MS for cca in CCAS]


def chaos_cells() -> list[Cell]:
    """The chaos-zone runs: 10 cells."""
    return [Cell(cca, 25, jitter_ms=j) for j in CHAOS_JITTERS_MS for cca in CCAS]


def _rows(name: str) -> list[dict[str, str]]:
    with open(DATA / name, newline="") as f:
        return list(csv.DictReader(f))


def raw(family: str, cell: Cell) -> dict[str, str] | None:
    """The pooled raw row behind a published cell, where there is one."""
    for r in _rows("published_cells.csv"):
        same = (float(r["rtt_ms"]), float(r["jitter_ms"]), float(r["loss_pct"])) == (cell.rtt_ms, cell.jitter_ms, cell.loss_pct)
        if r["family"] == family and r["cca"] == cell.cca and r["rate_MiBps"] == "pooled" and same:
            return r
    return None


def published_mean(cell: Cell) -> tuple[float, float, str] | None:
    """Published mean in true Mbit/s, its rounding (±) and its table. KiB/s are exact; whole Mbit/s are 2.4 % small units."""
    found = []
    for r in _rows("published_tables.csv"):
        if r["metric"] != "throughput_mean" or r["cca"] != cell.cca or float(r["rtt_ms"] or 0) != cell.rtt_ms:
            continue
        if float(r["jitter_ms"] or 0) != cell.jitter_ms or float(r["loss_pct"] or 0) != cell.loss_pct:
            continue
        if r["unit"] == "KiB/s":
            found.append((float(r["value"]) * 8192e-6, 0.005, f"{r['work']} {r['table'].split()[0]}"))
        else:
            digits = len(r["value"].split(".")[1]) if "." in r["value"] and not r["value"].endswith(".0") else 0
            found.append((float(r["value"]) * 1.024, 0.5 * 10**-digits * 1.024, f"{r['work']} {r['table'].split()[0]}"))
    return min(found, key=lambda x: x[1] / max(x[0], 1e-9)) if found else None


@dataclasses.dataclass(frozen=True)
class Answer:
    """A cell's runs beside its reference."""

    cell: Cell
    runs: list[float]
    reference: float | None
    rounding: float
    reference_cv: float | None
    source: str

    @property
    def mean(self) -> float:
        """Mean of the model's runs (the works publish means)."""
        return statistics.fmean(self.runs)

    @property
    def cv(self) -> float:
        """Coefficient of variation of the model's runs."""
        return cv(self.runs)

    @property
    def ratio(self) -> float | None:
        """Model over reference."""
        return self.mean / self.reference if self.reference else None

    def within(self, tolerance: float) -> bool | None:
        """Whether the mean is within the tolerance of the reference (of its rounding interval); None without one."""
        if not self.reference:
            return None
        low, high = self.reference - self.rounding, self.reference + self.rounding
        return low * (1 - tolerance) <= self.mean <= high * (1 + tolerance)


def answer(module, family: str, cell: Cell, seeds: list[int], threads: int) -> Answer:
    """Run a cell and look up what was measured: the raw mean, else the published one."""
    row, runs = raw(family, cell), cell.run(module, seeds, threads)
    if row:
        return Answer(cell, runs, float(row["thr_mean_Mbps"]), 0.0, float(row["cv_pct"]) / 100, f"raw, n = {row['n']}")
    printed = published_mean(cell)
    if printed:
        return Answer(cell, runs, printed[0], printed[1], None, printed[2])
    return Answer(cell, runs, None, 0.0, None, "")


def cliff(answers: list[Answer]) -> dict[tuple[str, float], float | None]:
    """First jitter step whose mean is below half of the mean without jitter, by congestion control and RTT."""
    out: dict[tuple[str, float], float | None] = {}
    for a in answers:
        out.setdefault((a.cell.cca, a.cell.rtt_ms), None)
    for key in out:
        mine = sorted((a for a in answers if (a.cell.cca, a.cell.rtt_ms) == key), key=lambda a: a.cell.jitter_ms)
        out[key] = next((a.cell.jitter_ms for a in mine if a.mean < mine[0].mean / 2), None)
    return out


def published_cliffs() -> dict[tuple[str, float], float]:
    """The published cliff positions in ms of jitter."""
    return {(r["cca"], float(r["rtt_ms"])): float(r["value"]) for r in _rows("published_tables.csv") if r["metric"] == "cliff_jitter_ms"}


def published_cvs() -> dict[tuple[str, float], float]:
    """Published coefficients of variation at 50 ms RTT, by congestion control and jitter in ms."""
    return {(r["cca"], float(r["jitter_ms"])): float(r["value"]) / 100 for r in _rows("published_tables.csv") if r["metric"] == "cv"}
