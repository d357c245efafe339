"""How often `diagnose` is right, silent, or wrong with a certain sentence, domain by domain (`benches/corpus.py --domains`).

    .venv/bin/python benches/diagnosis.py run CORPUS OUT --no-replay     # diagnoses each view, keeps each document in OUT
    .venv/bin/python benches/domains.py CORPUS OUT                       # the goals, and the table by domains
    .venv/bin/python benches/domains.py CORPUS OUT --wrong limit         # the views that are wrong with certainty, what was said and what is true
    .venv/bin/python benches/domains.py CORPUS OUT CORPUS OUT --page docs/diagnosis.md    # goals, domains, names and intervals of the first, jitter of all
    .venv/bin/python benches/run.py --only diagnosis                     # draws both sets, diagnoses them and writes these tables

A number is *right* within its tolerance, *wrong* outside of it where its interval excludes the truth, *unsure* where the interval holds the truth, and
*silent* where none is given. No jitter is told with a bound: one below that is *unsure*. What limits a flow is that which its first sentence about
it names: *wrong* if that held the flow for less than :data:`SOME` of the time by the kernel's own counters (`benches/limits.py`), *unsure* if it held
it for as much and something else for longer.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import diagnosis
import fates
import limits
import table
from corpus import DOMAINS

SOME = 0.3
"""Share of the time from which a cause that is named is not simply wrong."""
GOALS = ("limit", "rtt", "jitter", "direction", "loss", "rate", "buffer", "control")
VERDICTS = ("right", "wrong", "unsure", "silent")
NETWORK = ("congestion_window", "pacing", "recovery", "timeout")
"""Causes that the path and the congestion control have in common: which of them holds a flow is a question of words."""
NAMED = {
    "the bottleneck": "network",
    "the congestion window": "network",
    "the repair of losses": "network",
    "the repair of what was not lost": "network",
    "waiting for retransmission timeouts": "network",
    "the sender's own pacing": "network",
    "the sending application": "application",
    "the sender's socket buffer": "send_buffer",
    "the receiver's window": "receive_window",
    "the handshake": "handshake",
}
"""How the sentence begins → what it blames."""
FAMILIES = ({"reno", "lp", "dctcp"},)
"""Congestion controls that do the same where nothing marks packets."""


def blamed(answer: str) -> tuple[str, ...]:
    """What an answer says holds the flow, two where it says so: in turn, one or the other, or the buffer of an end beside a full bottleneck."""
    _, found, rest = answer.partition("What limits you is ")
    first = (cause for words, cause in NAMED.items() if found and rest.startswith(words))
    return (
        *first,
        *(
            cause
            for words, cause in NAMED.items()
            if any(part in rest for part in (f"({words} held the flow", f"in turn with {words}, ", f" or {words}, "))
        ),
    )


def held(case: Path, truth: Mapping[str, Any]) -> dict[str, float]:
    """What held the flow, as shares of the time, by the kernel's counters."""
    plan = truth["scenario"]["flows"][0]
    samples = pl.read_parquet(case / "info.parquet").filter(pl.col("flow") == 0, pl.col("t_ns") >= truth["shown"]["from_s"] * 1e9)
    mss = truth["scenario"].get("mtu", 1500) - (52 if truth["timestamps"] else 40)
    shares: Counter[str] = Counter()
    for start, end, cause in limits.truth(samples, is_bulk=not plan.get("app"), is_paced=plan["cca"] in limits.PACED, mss=mss):
        shares["network" if cause in NETWORK else cause] += end - start
    return {cause: s / max(sum(shares.values()), 1e-9) for cause, s in shares.most_common()}


def of_value(given: Mapping[str, Any] | None, truth: float, is_right: bool) -> str:
    """The verdict on a number with its interval."""
    if is_right:
        return "right"
    low, high = (given or {}).get("low"), (given or {}).get("high")
    return "unsure" if low is not None and high is not None and low <= truth <= high else "wrong"


def verdicts(case: Path, truth: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, str]:
    """Goal → verdict, of those that the view can have."""
    true, path, found = truth["path"], flow["path"], {}
    said, shares = blamed(flow["answer"]), held(case, truth)
    top = next(iter(shares), None)
    most = max((shares.get(cause, 0.0) for cause in said), default=0.0)
    found["limit"] = "silent" if not said else "right" if top in said else "unsure" if most >= SOME else "wrong"
    found |= dict.fromkeys(("rtt", "direction", "control"), "silent")
    if path["rtt_ms"]:
        found["rtt"] = of_value(path["rtt_ms"], true["rtt_ms"], abs(path["rtt_ms"]["value"] - true["rtt_ms"]) <= max(0.02 * true["rtt_ms"], 0.5))
    if true["jitter_ms"]:
        given = path["jitter_ms"]
        found["jitter"] = of_value(given, true["jitter_ms"], abs(given["value"] / true["jitter_ms"] - 1) <= 0.2) if given else "silent"
    if path["jitter_on"]:
        is_left_open = path["jitter_on"] == "none" and true["jitter_ms"] <= path["jitter_ms"]["high"]  # none above that
        found["direction"] = "right" if path["jitter_on"] == true["jitter_on"] else "unsure" if is_left_open else "wrong"
    count, share = diagnosis.lost(truth, case)
    given = path["loss_pct"]
    if count >= diagnosis.FEWEST_LOSSES:
        found["loss"] = of_value(given, share, abs(math.log(max(given["value"], 1e-9) / share)) <= math.log(1.25)) if given else "silent"
    elif not count:
        found["loss"] = of_value(given, 0.0, given["value"] < 0.005) if given else "silent"
    given = path["rate_mbps"]
    if true["rate_mbps"]:
        found["rate"] = of_value(given, true["rate_mbps"], abs(given["value"] / true["rate_mbps"] - 1) <= 0.05) if given else "silent"
        if true["buffer_bytes"]:
            given = path["buffer_bytes"]
            found["buffer"] = of_value(given, true["buffer_bytes"], abs(given["value"] / true["buffer_bytes"] - 1) <= 0.2) if given else "silent"
    else:
        found["rate"] = "wrong" if given else "silent"
    if flow["cca"]["name"] != "unknown":
        same = next((names for names in FAMILIES if truth["cca"][0] in names), {truth["cca"][0]})
        found["control"] = "right" if flow["cca"]["name"] == truth["cca"][0] else "unsure" if flow["cca"]["name"] in same else "wrong"
    return found


CONTROL, LONG_S = "at the sender, not limited, 25 s and more", 25.0
"""The views by which the naming of congestion controls is judged: what else holds a flow hides its window."""
AWAY, FREE = "away from the sender, not limited", ("bulk", "crowd", "change")
"""The views by which naming elsewhere is judged, and the kinds of load that no application, receiver or buffer holds."""
LIMIT_GOALS = {"sender": 0.95, "router": 0.92, "receiver": 0.9}
"""Share of the views whose main limit is to be right, by place of capture."""


def shows_its_control(truth: Mapping[str, Any], flow: Mapping[str, Any] | None) -> bool:
    """Whether a view is one of :data:`CONTROL`: no application, receiver or buffer holds its flow."""
    is_long = flow is not None and (flow["seconds"] or 0.0) >= LONG_S
    return is_long and truth["shown"]["place"] == "sender" and truth["kind"] in FREE


BINS = (0.0, 0.5, 0.8, 0.9, 1.0)
"""Ends of the bins of a probability."""
MOST_LIKELY = "best candidate"
"""What counts where no name is given: the first candidate, with its probability."""
COVERED = ("rtt", "jitter", "loss", "rate", "buffer")
"""Goals whose numbers have intervals of 95 %."""
DRAW, JITTER_DRAW = "judgement-2026-11-29-k7w2", "jitter-2026-11-29-k7w2"
"""The sets by which the tables of the page are written. Nobody may have looked at them before: who changes what a diagnosis says draws others."""
JITTERS = {"order kept": "jitter that keeps the order", "reordering": "jitter that does not", "no timestamps": "no jitter, no timestamps"}
"""Domain → its row in the table of jitter; all others are without jitter."""
JITTER_DOMAINS = (*JITTERS, "reordering", "usual")
"""What the set of jitter is drawn from, in turn."""


def axes(truth: Mapping[str, Any], flow: Mapping[str, Any]) -> Iterator[str]:
    """The domains that a view lies in, one of each axis that a capture itself shows."""
    shown, facts, scenario = truth["shown"], flow["facts"], truth["scenario"]
    yield "all"
    yield f"drawn as {truth['domain']}"
    yield f"seen at the {shown['place']}"
    yield f"opened by the {shown['opened']}"
    yield "timestamps" if truth["timestamps"] else "no timestamps"
    yield "SACK" if facts.get("sack") else "no SACK"
    yield "super-packets" if scenario.get("offload") else "single segments"
    yield f"segments of {'less than 1,448' if (size := facts.get('segment_size') or 0) < 1448 else '1,448' if size <= 1460 else 'more than 1,460'} bytes"
    per_ack = (facts.get("segments") or 0) / max(1, facts.get("acks") or 0)
    yield "an ACK for each segment" if per_ack < 1.3 else "an ACK for two segments" if per_ack < 2.5 else "an ACK for more than two segments"
    yield f"{shown['snap']} bytes of each packet"


def named(truth: Mapping[str, Any], flow: Mapping[str, Any]) -> tuple[str, float, bool] | None:
    """What is named (a control, a family, the best candidate of an unknown one), with which probability, and whether it is right."""
    cca, true = flow["cca"], truth["cca"][0]
    first = next(iter(cca["candidates"]), None)
    if cca["name"] != "unknown":
        return "name", cca["confidence"], cca["name"] == true
    if first is None or not cca["confidence"]:
        return None
    if "they do the same here" in cca["reason"]:
        return "family", cca["confidence"], any(true in family for family in FAMILIES)
    return MOST_LIKELY, cca["confidence"], first == true


def intervals(case: Path, truth: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, bool]:
    """Goal → whether its interval holds the truth, of the numbers that are given and whose truth is known."""
    true, path = truth["path"], flow["path"]
    count, share = diagnosis.lost(truth, case)
    truths = {"rtt": ("rtt_ms", true["rtt_ms"]), "jitter": ("jitter_ms", true["jitter_ms"]), "rate": ("rate_mbps", true["rate_mbps"])}
    truths |= {
        "loss": ("loss_pct", share if count >= diagnosis.FEWEST_LOSSES or not count else None),
        "buffer": ("buffer_bytes", true["buffer_bytes"]),
    }
    given = {goal: (path[field], value) for goal, (field, value) in truths.items() if value is not None and path[field]}
    return {goal: estimate["low"] <= value <= estimate["high"] for goal, (estimate, value) in given.items() if estimate["low"] is not None}


def calibration(corpus: Path, out: Path) -> dict[str, str]:
    """The tables `names` and `intervals` of docs/diagnosis.md."""
    views, held_in = defaultdict(Counter), defaultdict(Counter)  # type: ignore[var-annotated]
    for name, truth, flow in rows(corpus, out):
        if flow is None:
            continue
        said, covered = named(truth, flow), intervals(corpus / name, truth, flow)
        for axis in axes(truth, flow):
            views[axis]["n"] += 1
            if said:
                kind, probability, is_right = said
                bin_ = next(k for k, end in enumerate(BINS[1:]) if probability <= end or end == 1.0)
                for key in (kind, bin_):
                    views[axis][key, is_right] += 1
            for goal, is_held in covered.items():
                held_in[axis][goal, is_held] += 1
    order = sorted(views, key=lambda axis: (axis != "all", not axis.startswith("drawn"), axis))
    return {"names": _names(views, order), "intervals": _intervals(views, held_in, order)}


def _of(counts: Counter[Any], key: Any) -> str:
    """`39 of 41`; empty of none."""
    right, wrong = counts[key, True], counts[key, False]
    return f"{right} of {right + wrong}" if right + wrong else ""


def _names(views: Mapping[str, Counter[Any]], order: Sequence[str]) -> str:
    bins = [f"{low:g} to {high:g}" for low, high in pairwise(BINS)]
    head = ["domain", "views", *bins, "names", "families"]
    cells = [[axis, str(views[axis]["n"]), *(_of(views[axis], key) for key in (*range(len(bins)), "name", "family"))] for axis in order]
    return table.markdown(head, [row for row in cells if any(row[2:])])


def _intervals(views: Mapping[str, Counter[Any]], held_in: Mapping[str, Counter[Any]], order: Sequence[str]) -> str:
    head = ["domain", "views", *COVERED]
    return table.markdown(head, [[axis, str(views[axis]["n"]), *(_of(held_in[axis], goal) for goal in COVERED)] for axis in order])


def of_jitter(sets: Sequence[tuple[Path, Path]]) -> str:
    """The table `jitter` of docs/diagnosis.md: by set, by kind of jitter, and by place of capture where there is a jitter."""
    counts: dict[str, dict[str, Counter[Any]]] = defaultdict(lambda: defaultdict(Counter))
    for case, truth, flow in ((corpus / name, truth, flow) for corpus, out in sets for name, truth, flow in rows(corpus, out)):
        if flow is None:
            continue
        found = verdicts(case, truth, flow)
        held_in = intervals(case, truth, flow) if truth["path"]["jitter_ms"] else {}
        keys = [f"`{truth['scenario']['name'].split()[0]}`", JITTERS.get(truth["domain"], "no jitter"), "all"]
        keys += [f"jitter seen at the {truth['shown']['place']}"] if truth["path"]["jitter_ms"] else []
        for key in keys:
            counts[key]["views"]["n"] += 1
            for goal in {"jitter", "direction", "rtt"} & set(found):
                counts[key][goal][found[goal]] += 1
            if "jitter" in held_in:
                counts[key]["interval"]["jitter", held_in["jitter"]] += 1
    kinds = [*JITTERS.values(), "no jitter"]
    order = sorted(counts, key=lambda key: (key == "all", key.startswith("jitter seen"), key in kinds, kinds.index(key) if key in kinds else 0))
    cells = [
        [key, str(of["views"]["n"]), cell(of["jitter"]), _of(of["interval"], "jitter"), cell(of["direction"]), cell(of["rtt"])]
        for key, of in ((key, counts[key]) for key in order)
    ]
    return table.markdown(["set, views", "views", "σ", "interval holds σ", "direction", "round trip"], cells)


Counts = Mapping[str, Mapping[str, Counter[str]]]
"""Domain or axis → goal → verdict → how many views."""


def counted(corpus: Path, out: Path) -> Counts:
    """The verdicts on each view of a set, by its domain, its place, who opened the connection, and all together."""
    tables: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for name, truth, flow in rows(corpus, out):
        shown = truth["shown"]
        keys = (truth["domain"], f"seen at the {shown['place']}", f"opened by the {shown['opened']}", "all")
        keys += (CONTROL,) if shows_its_control(truth, flow) else ()
        by_goal = verdicts(corpus / name, truth, flow) if flow else {}
        for key in keys:
            tables[key]["views"] += Counter(n=1, failed=int(flow is None), contradictions=int(flow is not None and any(contradictions(flow))))
            for goal, verdict in by_goal.items():
                tables[key][goal][verdict] += 1
        kind, _, is_right = (flow and named(truth, flow)) or (MOST_LIKELY, 0.0, False)
        tables[CONTROL]["family"]["n"] += shows_its_control(truth, flow) and kind == "family"
        if flow and truth["kind"] in FREE and shown["place"] != "sender":
            is_right = is_right or by_goal["control"] == "unsure"
            tables[AWAY]["control"]["silent" if kind == MOST_LIKELY else "right" if is_right else "wrong"] += 1
    return tables


def of_domains(counts: Counts) -> str:
    """The table `domains` of docs/diagnosis.md."""
    cells = [
        [key, str(of["views"]["n"]), *(cell(of[goal]) for goal in GOALS), str(of["views"]["contradictions"]), str(of["views"]["failed"])]
        for key, of in ((key, counts[key]) for key in (*DOMAINS, *sorted(set(counts) - set(DOMAINS) - {"all"}), "all") if key in counts)
        if of["views"]["n"]
    ]
    return table.markdown(["domain", "views", *GOALS, "contradictions", "failed"], cells)


def of_goals(counts: Counts) -> str:
    """The table `goals` of docs/diagnosis.md: what is aimed at and what this set has."""
    all_, cells = counts["all"], []

    def row(what: str, part: int, whole: int, goal: float, is_most: bool = False) -> None:
        if whole:
            share = part / whole
            is_met = share < goal if is_most else share >= goal
            cells.append([what, f"{part} of {whole}", f"{share:.1%}", f"{'below' if is_most else 'at least'} {goal:.0%}", table.verdict(is_met)])

    def given(of: Counter[str]) -> int:
        return of.total() - of["silent"]

    for place, goal in LIMIT_GOALS.items():
        of = counts[f"seen at the {place}"]["limit"]
        row(f"main limit right, seen at the {place}", of["right"], of.total(), goal)
    row("… wrong with a certain sentence", all_["limit"]["wrong"], all_["limit"].total(), 0.02, is_most=True)
    row("base RTT within 2 % or 0.5 ms", all_["rtt"]["right"], all_["rtt"].total(), 0.95)
    row("… of those given", all_["rtt"]["right"], given(all_["rtt"]), 0.95)
    row("σ of the jitter within 20 %, where given", all_["jitter"]["right"], given(all_["jitter"]), 0.85)
    row("direction of the jitter, where given", all_["direction"]["right"], given(all_["direction"]), 0.9)
    row("… given", given(all_["direction"]), all_["direction"].total(), 0.7)
    row("random loss within 25 %, where given", all_["loss"]["right"], given(all_["loss"]), 0.9)
    row("rate within 5 %, where given", all_["rate"]["right"], given(all_["rate"]), 0.95)
    row("buffer within 20 %, where given", all_["buffer"]["right"], given(all_["buffer"]), 0.85)
    of, families = counts[CONTROL]["control"], counts[CONTROL]["family"]["n"]
    row(f"control named, {CONTROL}, {families} families apart", given(of), of.total() - families, 0.7)
    of = all_["control"]
    row("… right where named, all views", of["right"], given(of), 0.97)
    of = counts[AWAY]["control"]
    row(f"control or family given, {AWAY}", given(of), of.total(), 0.5)
    row("… the family right where given", of["right"], given(of), 0.8)
    return table.markdown(["what", "views", "share", "goal", ""], cells)


def insert(page: Path, sets: Sequence[tuple[Path, Path]]) -> None:
    """Writes the tables of these sets into the page; all but that of jitter are of the first set alone."""
    counts = counted(*sets[0])
    tables = {"goals": of_goals(counts), "domains": of_domains(counts), **calibration(*sets[0]), "jitter": of_jitter(sets)}
    for name, text in tables.items():
        table.insert(page, name, text)


def write(page: Path, cases: int, jobs: int) -> None:
    """Draws so many cases of :data:`DRAW` and a fifth of them of :data:`JITTER_DRAW`, diagnoses each view without a replay and writes all tables."""
    here, sets = Path(__file__).parent, []
    with TemporaryDirectory() as work:
        for draw, count, chosen in ((DRAW, cases, ()), (JITTER_DRAW, cases // 5, JITTER_DOMAINS)):
            corpus, out = Path(work, draw), Path(work, f"{draw}-out")
            for command in (
                ["corpus.py", str(corpus), "--draw", draw, "--cases", str(count), "--domains", *chosen],
                ["diagnosis.py", "run", str(corpus), str(out), "--no-replay", "--jobs", str(jobs)],
            ):
                subprocess.run([sys.executable, str(here / command[0]), *command[1:]], check=True)
            sets.append((corpus, out))
        insert(page, sets)
        fates.write(page, [corpus for corpus, _ in sets])


def contradictions(flow: Mapping[str, Any]) -> Iterator[str]:
    """What in an answer speaks against the rest of it."""
    answer, path, shares = flow["answer"], flow["path"], flow["limited_by"] or {}
    if "no random loss" in answer and (path["loss_pct"]["high"] or 0) >= 0.1:
        yield "no random loss, with an interval up to 0.1 % and more"
    jitter = path["jitter_ms"]
    if "hardly any jitter" in answer and jitter and (jitter["high"] or 0) > max(0.5, 0.02 * ((path["rtt_ms"] or {}).get("value") or 0)):
        yield "hardly any jitter, with an interval up to 0.5 ms and more"
    if "it is full" in answer and shares.get("application", 0.0) >= 0.5:
        yield "a full bottleneck, and the application held the flow for most of its time"
    if path["rate_mbps"] and flow["goodput_mbps"] and flow["goodput_mbps"] > 1.02 * (path["rate_mbps"]["high"] or path["rate_mbps"]["value"]):
        yield "more goodput than the bottleneck's rate"
    if "only the application" in answer and blamed(answer) != ("application",):
        yield "only the application could help, and another limit is named"
    if "Nothing to change" in answer and "allow" in answer:
        yield "nothing to change, and a setting is recommended"


def rows(corpus: Path, out: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """Each view: its name, its truth, the diagnosed flow; None where the diagnosis failed."""
    for case in sorted(corpus.glob("*/truth.json")):
        name = case.parent.name
        truth = json.loads(case.read_text("utf-8"))
        if (document := out / f"{name}.json").exists():
            flows = [f for f in json.loads(document.read_text("utf-8"))["flows"] if f["tuple"][3] == diagnosis.PORT]
            if flows:
                yield name, truth, flows[0]
        elif (out / f"{name}.error").exists():
            yield name, truth, None


def cell(counts: Counter[str]) -> str:
    """`30 right, 2 **wrong**, 1 unsure, 9 silent` as numbers."""
    return " / ".join(str(counts[v]) for v in VERDICTS) if counts else ""


def main() -> None:
    """Prints the table, or the wrong ones of a goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("more", type=Path, nargs="*", metavar="CORPUS OUT", help="further sets, of which the table of jitter is made too")
    parser.add_argument("--wrong", choices=(*GOALS, "contradictions"))
    parser.add_argument("--page", type=Path, help="page whose tables are written")
    arguments = parser.parse_args()
    if len(arguments.more) % 2:
        parser.error("argument OUT: there is a CORPUS without one; name both of each set")
    if arguments.page:
        insert(arguments.page, [*zip([arguments.corpus, *arguments.more[::2]], [arguments.out, *arguments.more[1::2]], strict=True)])
        return
    if not arguments.wrong:
        counts = counted(arguments.corpus, arguments.out)
        print(of_goals(counts), of_domains(counts), sep="\n\n")
        return
    for name, truth, flow in rows(arguments.corpus, arguments.out):
        if flow is None:
            continue
        found, against = verdicts(arguments.corpus / name, truth, flow), list(contradictions(flow))
        if found.get(arguments.wrong) == "wrong" or (arguments.wrong == "contradictions" and against):
            true = {k: v for k, v in truth["path"].items() if v not in (None, [], 0.0)}
            shares = {c: round(s, 2) for c, s in held(arguments.corpus / name, truth).items() if s >= 0.02}
            print(
                f"{name} {truth['domain']}, {truth['kind']} {truth['cca'][0]}, {truth['shown']}\n  {flow['answer']}\n  {against or ''} {true} {shares}"
            )
            print(f"  {flow['cca']['name']} {flow['cca']['confidence']:.3f} {flow['facts'].get('limits_doubt', '')}")


if __name__ == "__main__":
    main()
