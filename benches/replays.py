"""Replay, zone, winner and gain of a diagnosis against a real kernel on the true path.

    .venv/bin/python benches/replays.py truth CORPUS            # the truth of each case of a corpus (benches/corpus.py), kept in CASE/controls.json
    .venv/bin/python benches/replays.py floor CORPUS            # the errors that remain where path and control are known exactly
    .venv/bin/python benches/replays.py found CORPUS            # of diagnoses of the captures, the control being named

The truth is what the virtual engine does on the case's own path: every control of its kernel in the place of the flow's own, under the same seeds,
and the flow's own control without the path's jitter. A choice is right if it carries at least 95 % of what the best control does.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcpscape import capture, engines
from tcpscape.campaign.execute import Runner
from tcpscape.controls.spelling import LINUX
from tcpscape.engines.virtual import Virtual
from tcpscape.findings.cliff import levels
from tcpscape.findings.diagnosis import limits, path
from tcpscape.findings.diagnosis.fitted import FittedPath, PathChange, RecognisedControl, ReplaySettings
from tcpscape.findings.diagnosis.observed import Cause, LimitInterval, ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.replay.judging import Judged
from tcpscape.findings.diagnosis.replay.judging import judged as judge
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.words import reasons

FEW, SEEDS, ZONE_SEEDS = 1, 4, 12
"""Runs of each control, of those near the best and of the flow's own, and of that with and without jitter."""
NEAR = 0.8
"""Share of the best mean from which a control is run as often as the best."""
FIRST_SEED = 1000
"""Seeds apart from that of the case itself."""
GOOD = 0.95
"""Share of the best control's goodput that a right choice carries."""
RESAMPLES = 500


def truth(case: Path) -> dict[str, Any]:
    """What each control carries on the case's path, by the virtual engine, Mbit/s for each seed; kept beside the case.

    `goodputs`: control → runs; `calm`: runs of the flow's own without jitter, `own`: its name.
    """
    kept = case / "controls.json"
    if kept.exists():
        return dict(json.loads(kept.read_text("utf-8")))
    known = json.loads((case / "truth.json").read_text("utf-8"))
    engine, plain = engines.make("virtual"), known["scenario"]
    assert isinstance(engine, Virtual)
    sysctls = {} if known["timestamps"] else {"net.ipv4.tcp_timestamps": "0"}
    own = plain["flows"][0]["cca"]

    def goodputs(fields: Mapping[str, Any], count: int) -> list[float]:
        scenario = Scenario.model_validate(fields)
        return [engine.record(scenario, FIRST_SEED + i, {}, sysctls=sysctls).flows[0].goodput_mbps for i in range(count)]

    jittery = any(isinstance(hop, dict) and "jitter" in hop for part in ("forward", "reverse") for hop in plain[part])
    runs = {cca: goodputs(_with(plain, cca), FEW) for cca in LINUX if cca != own}
    runs[own] = goodputs(plain, ZONE_SEEDS if jittery else SEEDS)
    best = max(map(np.mean, runs.values()))
    runs |= {cca: goodputs(_with(plain, cca), SEEDS) for cca, few in runs.items() if cca != own and np.mean(few) >= NEAR * best}
    calm = goodputs(without_jitter(plain), ZONE_SEEDS) if jittery else runs[own]
    answer = {"own": own, "goodputs": runs, "calm": calm}
    kept.write_text(json.dumps(answer), "utf-8")
    return answer


def _with(plain: Mapping[str, Any], cca: str) -> dict[str, Any]:
    """The scenario with another control for the first flow; others on the path keep theirs."""
    first, *others = plain["flows"]
    return {**plain, "flows": [{**first, "cca": cca}, *others]}


def without_jitter(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario without jitter."""
    off = ("jitter", "distribution", "correlation", "order", "tau")
    parts = {
        part: [{k: v for k, v in hop.items() if k not in off} if isinstance(hop, dict) else hop for hop in plain[part]]
        for part in ("forward", "reverse")
    }
    return {**plain, **parts}


def side(answer: Mapping[str, Any]) -> tuple[str, float]:
    """The true side of the cliff, and the share of the resamples of its runs that agree with it."""
    runs, calm = np.array(answer["goodputs"][answer["own"]]), np.array(answer["calm"])
    here = _side(runs, calm)
    rng = np.random.default_rng(1)
    picks = rng.integers(0, len(runs), (RESAMPLES, len(runs)))
    return here, float(np.mean([_side(runs[p], calm[p]) == here for p in picks]))


def _side(runs: np.ndarray, calm: np.ndarray) -> str:
    base = calm.mean()
    below = float((runs < levels.HALF * base).mean())
    cv, calm_cv = (float(x.std(ddof=1) / x.mean()) if x.mean() > 0 else 0.0 for x in (runs, calm))
    retention = float(runs.mean() / base)
    if levels.is_chaotic(retention, cv, calm_cv, below):
        return "chaos zone"
    return "collapsed" if retention < levels.HALF else "stable"


def score(answer: Mapping[str, Any], observed_mbps: float, found: Judged) -> dict[str, Any]:
    """What a diagnosis got right of a case; None where it gave no answer."""
    means = {cca: float(np.mean(runs[:SEEDS])) for cca, runs in answer["goodputs"].items()}
    own, best = answer["own"], max(means.values())
    where, sure = side(answer)
    replayed, advice = found.replay, found.advice
    row: dict[str, Any] = {
        "verdict": replayed.verdict,
        "reason": reasons.text(replayed.reason),
        "side": found.zone.side,
        "true_side": where,
        "sure": sure,
        "zone": found.zone.side == where if found.zone.side else None,
        "published": found.zone.published == where if found.zone.published else None,
        "ln": math.log(replayed.goodput_mbps.value / observed_mbps) if replayed.goodput_mbps and replayed.goodput_mbps.value > 0 else None,
        "choice": advice.choice,
        "best": max(means, key=means.__getitem__),
        "winner": None,
        "gain": None,
        "covered": None,
        "own": own,
        "own_is_best": means[own] >= GOOD * best,
    }
    if advice.choice and advice.gain:
        true_gain = means[advice.choice] / means[own] if means[own] else math.inf
        row |= {
            "winner": means[advice.choice] >= GOOD * best,
            "gain": advice.gain.value / true_gain,
            "true_gain": true_gain,
            "regret": means[advice.choice] / best,
        }
        row["covered"] = advice.gain.low <= true_gain <= advice.gain.high
    return row


def score_document(answer: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, bool | None]:
    """What a flow of `diagnose --json` got right of the case whose truth is `answer`: zone, winner, gain within 25 %; None where it is silent."""
    means = {cca: float(np.mean(runs[:SEEDS])) for cca, runs in answer["goodputs"].items()}
    advice, where = flow["advice"] or {}, (flow["zone"] or {}).get("side")
    right: dict[str, bool | None] = {"zone": where == side(answer)[0] if where else None, "winner": None, "gain": None}
    if choice := advice.get("choice"):
        right["winner"] = means[choice] >= GOOD * max(means.values())
        true_gain = means[choice] / means[answer["own"]] if means[answer["own"]] else math.inf
        right["gain"] = 1 / 1.25 <= advice["gain"]["value"] / true_gain <= 1.25
    return right


def flow_of(case: Path) -> tuple[ObservedFlow, dict[str, Any]]:
    """The observed flow as a perfect analysis would have it, from the kernel's own samples, and the case's truth."""
    known = json.loads((case / "truth.json").read_text("utf-8"))
    info, flow = pl.read_parquet(case / "info.parquet").filter(pl.col("flow") == 0), known["flows"][0]
    t = info["t_ns"].to_numpy() / 1e9
    started = float(flow["start_s"]) - known["path"]["rtt_ms"] / 1e3
    facts: dict[str, Any] = {"window_max": int(flow["max_rwnd"]), "flight_max": int(info["in_flight"].max() or 0) * 1448}
    facts |= {"rtt": {"p50_ms": float(flow["rtt_ms"]["p50"]), "min_ms": float(flow["rtt_ms"]["min"])}}
    facts |= {"retransmissions": flow["retransmits"], "zero_windows": 0}
    samples = {"t_s": t, "srtt_us": info["srtt_us"].to_numpy()}
    seconds = float(flow["stop_s"]) - started
    whole = flow["goodput_mbps"] * flow["seconds"] / seconds
    ends = (SocketAddress("10.0.0.1", 1), SocketAddress("10.0.0.2", 2))
    return ObservedFlow(*ends, None, None, seconds, 0.0, "sender", whole, facts, samples=samples, limits=_limits(info, seconds)), known


def _limits(info: pl.DataFrame, seconds: float) -> list[LimitInterval]:
    """Shares of the causes that the kernel counts, as intervals one after the other."""
    last = info.row(-1, named=True)
    busy, rwnd, sndbuf = (last[name] / 1e6 for name in ("busy_us", "rwnd_limited_us", "sndbuf_limited_us"))
    parts: list[tuple[Cause, float]] = [
        ("receive_window", rwnd),
        ("send_buffer", sndbuf),
        ("congestion_window", max(0.0, busy - rwnd - sndbuf)),
        ("application", max(0.0, seconds - busy)),
    ]
    found, at = [], 0.0
    for cause, length in parts:
        if length > 0:
            found.append(LimitInterval(at, at + length, cause))
            at += length
    return found


def path_of(known: Mapping[str, Any]) -> FittedPath:
    """The path of a case as a perfect fit would have it: the true values with narrow intervals, the realised loss."""
    true = known["path"]

    def exactly(value: float | None, unit: str, share: float = 0.01) -> Estimate | None:
        return None if value is None else Estimate(value, value * (1 - share), value * (1 + share), 100, unit)

    jitter, on = true["jitter_ms"], true["jitter_on"]
    changes = [PathChange(c["at_s"], c["kind"], c["before"], c["after"]) for c in true["changes"]]
    return FittedPath(
        rtt_ms=exactly(true["rtt_ms"], "ms"),
        jitter_ms=exactly(jitter, "ms"),
        jitter_on=on,
        jitter_forward_ms=exactly(jitter if on in ("forward", "both") else 0.0, "ms"),
        jitter_reverse_ms=exactly(jitter if on in ("reverse", "both") else 0.0, "ms"),
        distribution=true["distribution"],
        order_kept=true["order_kept"],
        correlation_ms=None,
        loss_pct=exactly(_lost(known), "%", 0.05),
        queue_loss_pct=None,
        rate_mbps=exactly(true["rate_mbps"], "Mbit/s"),
        buffer_bytes=exactly(true["buffer_bytes"], "bytes"),
        queue="self-induced",
        changes=changes,
    )


def _lost(known: Mapping[str, Any]) -> float:
    """The share of the data that the random loss took in this run, %; of few losses the probability that was asked for."""
    first = next((q for q in known["queues"] if q["where"] == "forward" and q["kind"] == "netem"), None)
    if not known["path"]["loss_pct"] or not first or first["dropped"] < 10:
        return float(known["path"]["loss_pct"])
    return 100.0 * first["dropped"] / (first["sent_packets"] + first["dropped"])


def settings() -> ReplaySettings:
    """The model engine on one core."""
    return ReplaySettings(Runner(engines.make("model"), 1))


def floor(case: Path) -> dict[str, Any]:
    """The score of a case whose path and control are known exactly."""
    flow, known = flow_of(case)
    found = judge(flow, path_of(known), RecognisedControl(known["cca"][0], 1.0), settings())
    return {"case": case.name, "kind": known["kind"], **score(truth(case), flow.goodput_mbps or math.nan, found)}


def found(case: Path, shown: str = "shown") -> dict[str, Any]:
    """The score of a diagnosis of the case's capture, its control being named."""
    known = json.loads((case / "truth.json").read_text("utf-8"))
    flow = capture.read(case / f"{shown}.pcap").flows[0]
    control = RecognisedControl(known["cca"][0], 1.0)
    judged = judge(replace(flow, limits=limits.refined(flow, control)), path.fit(flow), control, settings())
    return {"case": case.name, "kind": known["kind"], **score(truth(case), flow.goodput_mbps or math.nan, judged)}


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """The goals, one line each."""
    lns = [abs(r["ln"]) for r in rows if r["ln"] is not None]
    zones, sure = [r["zone"] for r in rows if r["zone"] is not None], [r["zone"] for r in rows if r["zone"] is not None and r["sure"] >= 0.95]
    rule = [r["published"] for r in rows if r["published"] is not None]
    winners, gains = [r["winner"] for r in rows if r["winner"] is not None], [r["gain"] for r in rows if r["gain"] is not None]
    inside = [1 / 1.25 <= g <= 1.25 for g in gains]
    lines = [f"cases {len(rows)}; verdicts { ({v: sum(r['verdict'] == v for r in rows) for v in ('agrees', 'differs', 'impossible')}) }"]
    if lns:
        lines.append(f"replay |ln goodput|: median {np.median(lns):.3f}, p90 {np.quantile(lns, 0.9):.3f} (n {len(lns)})")
    for name, values in (
        ("zone", zones),
        ("zone where the truth is sure", sure),
        ("published rule", rule),
        ("winner", winners),
        ("gain within 25 %", inside),
        ("gain's interval covers", [r["covered"] for r in rows if r["covered"] is not None]),
    ):
        if values:
            lines.append(f"{name}: {100 * np.mean(values):.1f} % (n {len(values)})")
    return "\n".join(lines)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("truth", "floor", "found"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    cases = sorted(p.parent for p in arguments.corpus.glob("*/truth.json"))[: arguments.cases]
    of: Callable[[Path], dict[str, Any]] = {"truth": truth, "floor": floor, "found": found}[arguments.what]
    with ThreadPoolExecutor(arguments.jobs) as workers:
        rows = []
        for case, row in zip(cases, workers.map(of, cases), strict=True):
            rows.append(row)
            print(case.name, json.dumps({k: v for k, v in row.items() if k not in ("goodputs", "calm")}, default=str), flush=True)
    if arguments.what != "truth":
        print(summary(rows))
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, default=str), "utf-8")


if __name__ == "__main__":
    main()
