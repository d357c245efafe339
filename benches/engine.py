"""The model engine as the benchmarks see it: `tcpscape._core`, or a stand-in to try the benchmarks without it."""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
from concurrent.futures import ThreadPoolExecutor


class EngineMissing(SystemExit):
    """The extension module is not built."""


def core(fake: bool = False):
    """The extension module (or the stand-in)."""
    if fake:
        return Fake()
    try:
        from tcpscape import _core
    except ImportError as e:
        sys.stderr.write(f"tcpscape._core cannot be imported ({e}); build it with `make setup`\n")
        raise EngineMissing(2) from e
    return _core


def parser(module):
    """`parse_tc` of the module, giving parsed JSON whether the module answers with text or with objects."""

    def parse(words: str):
        answer = module.parse_tc(words)
        return json.loads(answer) if isinstance(answer, (str, bytes)) else answer

    return parse


def run_plan(module, plan: dict, seeds: list[int], threads: int) -> list[dict]:
    """The engine's results, one a seed."""
    return run_text(module, json.dumps(plan), seeds, threads)


def run_text(module, plan_json: str, seeds: list[int], threads: int = 1) -> list[dict]:
    """The same for a plan's JSON; older modules, which one may want to compare with, and the stand-in read it with `run`."""
    if not hasattr(module, "Plan"):
        return module.run(plan_json, seeds, threads)
    plan = module.Plan(plan_json)
    if threads <= 1:
        return [plan.run(seed) for seed in seeds]
    with ThreadPoolExecutor(threads) as workers:
        return list(workers.map(plan.run, seeds))


class Fake:
    """A stand-in with the engine's interface: a closed form with noise, good for trying the reports only."""

    def parse_tc(self, words: str) -> str:
        return json.dumps({"words": words})

    def run(self, plan_json: str, seeds: list[int], threads: int) -> list[dict]:
        return [self._one(json.loads(plan_json), seed) for seed in seeds]

    def _one(self, plan: dict, seed: int) -> dict:
        rng = random.Random(hashlib.sha256(f"{json.dumps(plan['flows'])}{seed}".encode()).digest())
        netem = plan["forward"]["stages"][0]["qdisc"]["words"].split()
        rtt = 2 * float(netem[2].removesuffix("ms")) / 1e3
        loss = float(netem[netem.index("loss") + 1].removesuffix("%")) / 100 if "loss" in netem else 0
        rate = float(plan["forward"]["stages"][1]["qdisc"]["words"].split()[2].removesuffix("mbit")) if len(plan["forward"]["stages"]) > 1 else 1e4
        flows, n, seconds = [], len(plan["flows"]), plan["duration_ns"] / 1e9
        for f in plan["flows"]:
            window = (min(f["rcvbuf"], 212992) or 2_000_000) * 8e-6 / rtt
            mathis = 1448 * 8e-6 / rtt * 1.22 / math.sqrt(loss) if loss else 1e9
            app = f["app"].get("rate_Bps", 0) * 8e-6 or 1e9
            goodput = min(window, app, rate / n * 0.95, mathis) * rng.lognormvariate(0, 0.1)
            packets = goodput * seconds * 1e6 / 8 / 1448
            flows.append(
                {
                    "cca": f["cca"],
                    "goodput_mbps": goodput,
                    "retransmits": int(packets * loss),
                    "spurious_retransmits": 0,
                    "rtos": 0,
                    "rtt_ms": {"min": rtt * 1e3, "p50": rtt * 1e3, "p95": rtt * 1e3, "p99": rtt * 1e3, "max": rtt * 1e3, "mean": rtt * 1e3},
                    "min_rtt_ms": rtt * 1e3,
                    "data_segs_out": int(packets),
                    "segs_in": int(packets / 2),
                }
            )
        out = {"flows": flows, "queues": [], "events": int(sum(f["data_segs_out"] for f in flows) * 4), "hash": "0", "caveats": []}
        if plan["sample_interval_ns"]:
            t = list(range(0, plan["duration_ns"], plan["sample_interval_ns"]))
            ones = [(x, i) for x in t for i in range(n)]
            out["samples"] = {
                "t_ns": [x for x, _ in ones],
                "flow": [i for _, i in ones],
                "cwnd": [10 + x // 10**8 for x, _ in ones],
                "ssthresh": [100] * len(ones),
                "srtt_us": [int(rtt * 1e6)] * len(ones),
                "min_rtt_us": [int(rtt * 1e6)] * len(ones),
                "in_flight": [10] * len(ones),
                "retransmits": [x // 10**9 for x, _ in ones],
                "ca_state": [0] * len(ones),
                "reordering": [3] * len(ones),
            }
        return out
