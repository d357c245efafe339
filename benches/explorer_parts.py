"""What `explorer.py` measures, a function for each part: its values as plain numbers (ms, bytes, frames), lists of single measurements with them."""

from __future__ import annotations

import argparse
import gzip
import pathlib
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import explorer_stale
import tcpscape.web
from explorer_probe import Explorer, chromium, ended, last_asked, probed, slide

STATIC = pathlib.Path(tcpscape.web.__file__).parent / "static"
BASELINE = "rate=42mbit&rtt=50ms&duration=10s&view=curves&curves.axis=jitter"
"""10 s at 42 Mbit/s, two congestion controls (the page's own defaults), the curve along another axis than the slider that moves."""
SEEDS = 20
MANY_POINTS = "rate=42mbit&duration=10s&view=inside&inside.samples=20000&inside.panels=events,cwnd,in_flight,rtt,queue"
LINES = {"series": 5, "queue": 1}
"""Two runs with so many samples that all charts have 200,000 points: congestion window, ssthresh, bytes in flight, RTT, least RTT; and the queue."""
RECORD = """() => {
  window.deltas = [];
  let last = performance.now();
  const next = (now) => { deltas.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""
"""Records the time from frame to frame, ms."""
LATE_MS = 25


def quantiles(values: list[float]) -> dict[str, Any]:
    """Median, 95th percentile, largest, and the values."""
    return {"p50": float(np.percentile(values, 50)), "p95": float(np.percentile(values, 95)), "most": max(values), "n": len(values), "values": values}


def start(options: argparse.Namespace) -> dict[str, Any]:
    """From the command's start to its address, to a page whose fields can be used, and to the first answer on it, ms."""
    address, usable, answered = [], [], []
    with chromium() as browser:
        for _ in range(3 if options.quick else 12):
            began = time.monotonic()
            with Explorer() as server:
                address.append(1000 * (time.monotonic() - began))
                with probed(browser, server, "") as page:
                    page.get_by_label("RTT").first.wait_for()
                    usable.append(1000 * (time.monotonic() - began))
                    page.wait_for_function("() => probe.blocks.some((b) => b.kind === 'answer')")
                    answered.append(1000 * (time.monotonic() - began))
    return {"address": quantiles(address), "usable": quantiles(usable), "answered": quantiles(answered)}


def latency(options: argparse.Namespace) -> dict[str, Any]:
    """From the last input of a slider that is dragged to the first curve on the screen, and to the answer with 20 seeds, ms."""
    first, curve_block, answer_first, whole, rng = [], [], [], [], random.Random(1)
    with Explorer() as server, chromium() as browser, probed(browser, server, BASELINE) as page:
        slider = page.get_by_role("slider", name="RTT", exact=True)
        slider.wait_for()
        for kind in ("answer", "curve"):
            ended(page, kind)
        for _ in range(options.movements):
            page.evaluate("() => probe.clear()")
            slide(page, slider, rng.uniform(0.2, 0.8))
            ended(page, "answer")
            curve, answer = last_asked(page, "curve"), last_asked(page, "answer")
            came = next(block["at"] for block in curve["blocks"] if block["name"] == "points")
            curve_block.append(came - curve["moved"])
            first.append(next(at for at in curve["painted"] if at >= came) - curve["moved"])
            answers = [block for block in answer["blocks"] if block["name"] == "answer"]
            answer_first.append(answers[0]["at"] - answer["moved"])
            whole.append(next(block["at"] for block in answers if block["values"]["n"] >= SEEDS) - answer["moved"])
    return {"curve": quantiles(first), "curve_block": quantiles(curve_block), "answer": quantiles(answer_first), "seeds": quantiles(whole)}


def whole_map(options: argparse.Namespace) -> dict[str, Any]:
    """From the question for a map of 20 × 20 cells and 5 seeds until every cell has a colour, and until all is done, ms.

    Each map has a server of its own: one keeps its trials, and would show the next map at once.
    """
    coarse, whole = [], []
    with chromium() as browser:
        for _ in range(1 if options.quick else 5):
            with Explorer() as server, probed(browser, server, "rate=42mbit&view=map&map.resolution=20&map.seeds=5") as page:
                page.evaluate("() => (probe.whole = 'cells')")
                ended(page, "map", 300_000)
                asked = last_asked(page, "map")
                coarse.append(covered(asked["blocks"]) - asked["asked"])
                whole.append(asked["blocks"][-1]["at"] - asked["asked"])
    return {"coarse": quantiles(coarse), "whole": quantiles(whole)}


def covered(blocks: list[dict[str, Any]]) -> float:
    """When the cells that had come covered the whole map."""
    import base64

    grid = next(block for block in blocks if block["name"] == "grid")
    side = grid["rows"]
    there = np.zeros((side, side), bool)
    for block in blocks:
        if block["name"] != "cells":
            continue
        columns = decoded(base64.b64decode(block["data"]))
        for i, j, span in zip(columns["i"].astype(int), columns["j"].astype(int), columns["span"].astype(int), strict=True):
            there[i - span // 2 : i + span // 2 + 1, j - span // 2 : j + span // 2 + 1] = True
        if there.all():
            return block["at"]
    raise AssertionError(f"{int((~there).sum())} cells of {side} × {side} never came")


def decoded(data: bytes) -> dict[str, np.ndarray]:
    """The columns of a block."""
    import json

    length = int.from_bytes(data[:4], "little")
    at, columns = 4 + length, {}
    for column in json.loads(data[4:at])["columns"]:
        kind = np.dtype({"f64": "<f8", "f32": "<f4"}[column["type"]])
        columns[column["name"]] = np.frombuffer(data, kind, column["length"], at)
        at += -(-column["length"] * kind.itemsize // 8) * 8
    return columns


def frames(options: argparse.Namespace) -> dict[str, Any]:
    """Frames per second while a chart of 200,000 points is dragged to and fro, beside those of a page at rest."""
    seconds = 3 if options.quick else 20
    with Explorer() as server, chromium() as browser, probed(browser, server, MANY_POINTS) as page:
        ended(page, "inside", 300_000)
        points = sum(block["rows"] * LINES.get(block["name"], 0) for block in last_asked(page, "inside")["blocks"])
        page.evaluate("() => { probe.keep = false; }")
        page.wait_for_timeout(1000)
        page.evaluate(RECORD)
        page.wait_for_timeout(2000)
        idle = page.evaluate("() => deltas.splice(0)")
        shown = page.get_by_role("slider", name="start of the shown time")
        moved = pan(page, seconds, lambda: shown.get_attribute("aria-valuenow"))
        assert moved > 1, "the chart was not moved"
        deltas = page.evaluate("() => deltas")
    late = sum(delta > LATE_MS for delta in deltas) / len(deltas)
    return {
        "points": points,
        "seconds": sum(deltas) / 1000,
        "fps": 1000 * len(deltas) / sum(deltas),
        "idle_fps": 1000 * len(idle) / sum(idle),
        "late": late,
        "frame": quantiles(deltas),
    }


def pan(page: Any, seconds: float, place: Callable[[], Any]) -> int:
    """Zooms the stack of charts to a part of its time and drags it to and fro, Shift and the mouse; how many places it had in between."""
    chart = page.get_by_role("application", name="The run over time").and_(page.locator("[aria-roledescription=chart]"))
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    left, width, y = box["x"] + 0.2 * box["width"], 0.65 * box["width"], box["y"] + box["height"] / 2
    page.mouse.move(left, y)
    page.mouse.down()
    page.mouse.move(left + width, y, steps=5)
    page.mouse.up()
    page.keyboard.down("Shift")
    page.mouse.move(left + width / 2, y)
    page.mouse.down()
    began, step, places = time.monotonic(), 0, set()
    page.evaluate("() => { deltas.length = 0; }")
    while time.monotonic() - began < seconds:
        step += 1
        page.mouse.move(left + width * (0.5 + 0.2 * np.sin(step / 12)), y)
        if step % 50 == 0:
            places.add(place())
    page.mouse.up()
    page.keyboard.up("Shift")
    return len(places)


def stale(options: argparse.Namespace) -> dict[str, Any]:
    """From a new question to the end of the last trial of the one that it replaces, ms."""
    return quantiles(explorer_stale.measure(10 if options.quick else 60))


def size(options: argparse.Namespace) -> dict[str, Any]:
    """The built page, gzipped file by file as a server sends it, bytes."""
    files = {str(file.relative_to(STATIC)): len(gzip.compress(file.read_bytes(), 9)) for file in sorted(STATIC.rglob("*")) if file.is_file()}
    return {"all": sum(files.values()), "files": [[name, count] for name, count in files.items()]}


AT_REST = (
    "() => !document.querySelector('main [aria-busy=true]') && ![...document.querySelectorAll('main progress')].some((bar) => bar.value < bar.max)"
)
"""Whether everything that the page has asked is answered."""


def heap(options: argparse.Namespace) -> dict[str, Any]:
    """The page's heap while a slider moves all the time, bytes, and the server's memory, with the minutes of each.

    It is counted after garbage collection, once what was asked last is answered: what is on its way is no growth.
    """
    samples, rng, moves = [], random.Random(2), 0
    with Explorer() as server, chromium() as browser, probed(browser, server, BASELINE) as page:
        page.evaluate("() => { probe.keep = false; }")
        slider = page.get_by_role("slider", name="RTT", exact=True)
        slider.wait_for()
        tools = page.context.new_cdp_session(page)
        began, every = time.monotonic(), max(5.0, options.minutes)
        while (elapsed := time.monotonic() - began) < 60 * options.minutes + 1:
            if not samples or elapsed - 60 * samples[-1]["minutes"] >= every:
                page.wait_for_function(AT_REST)
                tools.send("HeapProfiler.collectGarbage")
                samples.append(
                    {
                        "minutes": elapsed / 60,
                        "heap": tools.send("Runtime.getHeapUsage")["usedSize"],
                        "nodes": tools.send("Memory.getDOMCounters")["nodes"],
                        "server": memory(server),
                    }
                )
            slide(page, slider, rng.uniform(0.1, 0.9), steps=20)
            moves += 1
            page.wait_for_timeout(300)
    tenth = max(1, len(samples) // 10)
    settled = [sample["heap"] for sample in samples[tenth:]] or [samples[0]["heap"]]
    middle = float(np.median(settled[:tenth]))
    return {
        "moves": moves,
        "minutes": options.minutes,
        "first": middle,
        "last": float(np.median(settled[-tenth:])),
        "least": min(settled),
        "most": max(settled),
        "server_first": samples[0]["server"],
        "server_last": samples[-1]["server"],
        "samples": samples,
    }


def memory(server: Explorer) -> int:
    """The server's resident memory, bytes."""
    line = next(line for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])
