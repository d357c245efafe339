"""What each congestion control costs beside CUBIC: its hooks alone, the sender's whole work for an ACK, and the simulation.

Instructions are counted by valgrind in two small programs (`crates/tcp/examples/ack_cost.rs`, `crates/sim/examples/trial_cost.rs`), each
run twice with different lengths: the difference has no start-up in it, and is the same on every run. Times are medians of interleaved
repetitions, as noisy as the machine. Without cargo or valgrind those columns stay empty and the simulation's time decides.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import engine
from table import markdown, verdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET, PACED_TARGET, PACED = 1.5, 1.2, ("bbr", "bbr3", "prague")
HOOKS, TRIAL = ("ack_cost", "tcpscape-tcp", (1_000, 51_000)), ("trial_cost", "tcpscape-sim", (2, 8))
"""Example, its crate, lengths: ACKs, s."""
ON_SEGMENT = "--toggle-collect=*Sender*on_segment*"
"""What the sender does from an ACK's arrival until it has let out what may go."""
SECONDS = 30


@dataclasses.dataclass
class Cost:
    """One congestion control's cost; what could not be measured is None."""

    hooks: float | None = None
    """Instructions an ACK, in hooks."""
    hooks_ns: float | None = None
    ack: float | None = None
    """Instructions an ACK, in the sender, hooks included."""
    trial_ns: float = 0
    """CPU time of the simulation a packet arrival, data or ACK."""
    events: float = 0
    """Events per CPU second."""

    def ratio(self, cubic: Cost) -> float:
        """The whole cost of an ACK beside CUBIC's: in instructions where they are counted, otherwise in the simulation's time."""
        return self.ack / cubic.ack if self.ack and cubic.ack else self.trial_ns / cubic.trial_ns


def binary(example: str, crate: str, profile: str = "quick") -> pathlib.Path | None:
    """The example, built without optimisation over crates, so that functions keep their names, or as what is installed; None without cargo."""
    cargo = shutil.which("cargo") or shutil.which(str(pathlib.Path.home() / ".cargo/bin/cargo"))
    if not cargo:
        return None
    command = [cargo, "build", "--profile", profile, "--quiet", "--message-format=json", "-p", crate, "--example", example]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = [json.loads(line) for line in said.splitlines() if '"executable":"' in line]
    return pathlib.Path(built[-1]["executable"])


def instructions(program: pathlib.Path, name: str, length: int, *options: str) -> tuple[int, str]:
    """Instructions of one run under valgrind, and what it printed."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options, str(program), name, str(length)]
    got = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", got.stderr)[1]), got.stdout


def hook_instructions(program: pathlib.Path, name: str) -> float:
    """Instructions of an ACK, the harness's own included."""
    short, long = HOOKS[2]
    return (instructions(program, name, long)[0] - instructions(program, name, short)[0]) / (long - short)


def ack_instructions(program: pathlib.Path, name: str) -> float:
    """Instructions of the sender for an ACK, in a simulation."""
    (few, short), (many, long) = (instructions(program, name, s, ON_SEGMENT) for s in TRIAL[2])
    return (many - few) / (int(long) - int(short))


def times(module, costs: dict[str, Cost], plan, reps: int, scale: float) -> None:
    """CPU time of the same simulation, one repetition of each in turn."""
    texts = {name: json.dumps(plan(name, SECONDS * scale)) for name in costs}
    ns: dict[str, list[float]] = {name: [] for name in costs}
    for _ in range(reps):
        for name, text in texts.items():
            began = time.process_time()
            result = engine.run_text(module, text, [1])[0]
            spent = time.process_time() - began
            ns[name].append(1e9 * spent / result["arrivals"])
            costs[name].events = result["events"] / result["arrivals"]
    for name, cost in costs.items():
        cost.trial_ns = statistics.median(ns[name])
        cost.events *= 1e9 / cost.trial_ns


def measure(module, plan, reps: int, scale: float, jobs: int) -> dict[str, Cost]:
    """Every congestion control of the registry."""
    costs = {row[0]: Cost() for row in module.cca_registry()}
    times(module, costs, plan, reps, scale)
    hooks, trial = binary(*HOOKS[:2]), binary(*TRIAL[:2])
    if hooks:
        said = dict(line.split() for line in subprocess.run([hooks], capture_output=True, text=True, check=True).stdout.splitlines())
        for name, cost in costs.items():
            cost.hooks_ns = max(0.0, float(said[name]) - float(said["none"]))
    if hooks and trial and shutil.which("valgrind"):
        with ThreadPoolExecutor(jobs) as pool:
            counts = dict(zip(["none", *costs], pool.map(lambda n: hook_instructions(hooks, n), ["none", *costs]), strict=True))
            for cost, count in zip(costs.values(), pool.map(lambda n: ack_instructions(trial, n), costs), strict=True):
                cost.ack = count
        for name, cost in costs.items():
            cost.hooks = counts[name] - counts["none"]
    return costs


def limit(name: str) -> float:
    """Most that an ACK may cost, × CUBIC's."""
    return PACED_TARGET if name in PACED else TARGET


def table(costs: dict[str, Cost]) -> str:
    """The costs beside CUBIC's, the dearest first."""
    cubic = costs["cubic"]
    text = lambda x, form: "–" if x is None else format(x, form)  # noqa: E731
    rows = [
        (
            name,
            text(c.hooks, ".0f"),
            text(c.hooks and cubic.hooks and c.hooks / cubic.hooks, ".2f"),
            text(c.hooks_ns, ".0f"),
            text(c.ack, ",.0f"),
            f"**{c.ratio(cubic):.2f}**",
            f"≤ {limit(name)}",
            verdict(c.ratio(cubic) <= limit(name)),
            f"{c.trial_ns:.0f}",
            f"{c.events / 1e6:.1f}",
        )
        for name, c in sorted(costs.items(), key=lambda item: -item[1].ratio(cubic))
    ]
    head = (
        "congestion control",
        "hooks: instructions / ACK",
        "× cubic",
        "hooks: ns / ACK",
        "an ACK: instructions",
        "× cubic",
        "target",
        "",
        "simulation: ns / arrival",
        "M events / CPU s",
    )
    return markdown(head, rows)


def targets(costs: dict[str, Cost]) -> list[tuple]:
    """The lines of the table of targets."""
    cubic = costs["cubic"]
    out = []
    for what, some in (("any that does not pace", [n for n in costs if n not in PACED]), (", ".join(PACED), [n for n in costs if n in PACED])):
        if some:
            dearest = max(some, key=lambda n: costs[n].ratio(cubic))
            worst = costs[dearest].ratio(cubic)
            out.append(
                (f"an ACK beside CUBIC's, {what}", "–", f"≤ {limit(dearest)} ×", f"{worst:.2f} × ({dearest})", verdict(worst <= limit(dearest)))
            )
    return out
