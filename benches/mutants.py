"""Mutants of bbr3: how many wrong versions of it `tcpscape conform bbr` catches.

One build has them all: a copy of the crates in which constants, comparisons, bounds and statements of `crates/tcp/src/cc/bbr3` ask a switch, the
environment variable TCPSCAPE_MUTANT, whether to be wrong. They are generated from the text, not chosen. ECN is left out, of which the draft says nothing.

    .venv/bin/python benches/mutants.py build WORK     # about 3 minutes of a core
    .venv/bin/python benches/mutants.py run WORK       # a table of all mutants, and WORK/mutants.json

A mutant counts where it changes anything that is recorded in the first cell of any case. It is caught where a case differs, the model stops, or a
trial never ends. EVERY=5 judges each fifth of them, FROM=2 those that follow two behind, JOBS=2 two at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ("control", "loss", "mod", "model", "states")
"""Files of bbr3 that are mutated."""
FEW = 8
"""Constants up to here change by one, others by a quarter."""
PATIENCE_S = 240
"""A mutant that takes longer never ends."""
SWITCH = """//! Which mutant is on.
use std::sync::LazyLock;
static CHOSEN: LazyLock<u32> = LazyLock::new(|| std::env::var("TCPSCAPE_MUTANT").ok().and_then(|s| s.parse().ok()).unwrap_or(0));
pub fn on(id: u32) -> bool { *CHOSEN == id }
pub trait Number: Copy { fn near(self, up: bool) -> Self; }
macro_rules! number { ($($t:ty),*) => { $(impl Number for $t {
    fn near(self, up: bool) -> $t { let step = if self <= FEW { 1 } else { self / 4 }; if up { self + step } else { self - step } }
})* } }
number!(u32, u64);
pub fn pick<N: Number>(id: u32, n: N) -> N { if on(id) { n.near(true) } else if on(id + 1) { n.near(false) } else { n } }
pub trait Bound: Ord + Sized {
    fn or_max(self, id: u32, b: Self) -> Self { if on(id) { self.min(b) } else { self.max(b) } }
    fn or_min(self, id: u32, b: Self) -> Self { if on(id) { self.max(b) } else { self.min(b) } }
}
impl<T: Ord + Sized> Bound for T {}
""".replace("FEW", str(FEW))
CONSTANT = re.compile(r"^\s*(?:pub\(super\) )?const (\w+): u(?:32|64)\b")
OTHER = {" >= ": " > ", " > ": " >= ", " <= ": " < ", " < ": " <= ", " == ": " != ", " != ": " == "}
CONDITION = re.compile(r"^(\s*(?:\} else )?if |\s*let \w+ = )(.*)( \{|;)$")
STATEMENT = re.compile(r"^(\s+)((?:self|s|p|w|out|\*self)\b[\w.]*(?: [+\-|&]?= .+|\(.*\));|\((?:self|s|p)\..*\) = .+;)$")


def atoms(text: str) -> list[str]:
    """The parts of a condition between `&&` and `||` outside brackets, with those between them."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and text[i : i + 4] in (" && ", " || "):
            parts += [text[last:i], text[i : i + 4]]
            last = i + 4
    return [*parts, text[last:]]


class Mutator:
    """Rewrites the files and keeps a list of mutants."""

    def __init__(self) -> None:
        self.mutants: dict[int, str] = {}
        self.refused: set[tuple[str, int]] = set()
        """Lines that do not compile when they are changed."""

    def new(self, what: str) -> int:
        """The number of another mutant."""
        self.mutants[len(self.mutants) + 1] = what
        return len(self.mutants)

    def file(self, name: str, text: str, constants: list[str]) -> str:
        """The text of a file with its mutants."""
        lines: list[str] = []
        is_code = True
        for number, line in enumerate(text.splitlines(), 1):
            is_code &= "#[cfg(test)]" not in line
            kept = (
                not is_code
                or line.lstrip().startswith(("//", "use ", "const ", "pub(super) const ", "fn ", "pub fn ", "#["))
                or "=>" in line
                or "self.show(" in line
            )
            lines.append(line if kept or (name, number) in self.refused else self.line(f"{name}.rs:{number}", line, constants))
        head = next(i for i, line in enumerate(lines) if line.startswith("use "))
        return "\n".join([*lines[:head], "use crate::cc::mutants::{self as m, Bound as _};", *lines[head:]]) + "\n"

    def line(self, place: str, line: str, constants: list[str]) -> str:
        """A line with its mutants."""
        code, slash, comment = line.partition(" // ")
        before = code.strip()
        for name in constants:
            if re.search(rf"(?<![\w.:]){name}\b(?!:)", code):
                first = self.new(f"{place}: {name} greater")
                self.new(f"{place}: {name} smaller")
                code = re.sub(rf"(?<![\w.:]){name}\b(?!:)", f"m::pick({first}, {name})", code)
        for method, other in (("max", "min"), ("min", "max")):
            while f".{method}(" in code:
                code = code.replace(f".{method}(", f".or_{method}({self.new(f'{place}: {method} becomes {other}: {before}')}, ", 1)
        if (match := CONDITION.match(code)) and " let " not in f" {match[2]}" and any(op in match[2] for op in (*OTHER, " && ", "!")):
            code = match[1] + "".join(self.atom(place, part) for part in atoms(match[2])) + match[3]
        if (match := STATEMENT.match(code)) and match[2].count("(") == match[2].count(")"):
            code = f"{match[1]}if !m::on({self.new(f'{place}: without {before}')}) {{ {match[2]} }}"
        return code + slash + comment

    def atom(self, place: str, part: str) -> str:
        """A part of a condition that may be the opposite, or have another boundary."""
        if part in (" && ", " || "):
            return part
        op = next((op for op in OTHER if op in part), None)
        if op and op not in (" == ", " != "):
            part = f"(if m::on({self.new(f'{place}: {part} has the other boundary')}) {{ {part.replace(op, OTHER[op], 1)} }} else {{ {part} }})"
        return f"(m::on({self.new(f'{place}: the opposite of {part[-70:]}')}) != ({part}))"


def build(work: Path) -> None:
    """Writes the mutated crates and a package with them."""
    for name in ("Cargo.toml", "Cargo.lock", "crates", "examples", "python/tcpscape"):
        source, target = ROOT / name, work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target, **({"dirs_exist_ok": True} if source.is_dir() else {}))
    cc = work / "crates" / "tcp" / "src" / "cc"
    (cc / "mutants.rs").write_text(SWITCH)
    (cc / "mod.rs").write_text((ROOT / "crates/tcp/src/cc/mod.rs").read_text().replace("mod nv;", "#[allow(warnings)]\npub mod mutants;\nmod nv;"))
    texts = {name: (ROOT / f"crates/tcp/src/cc/bbr3/{name}.rs").read_text() for name in SOURCES}
    constants = [m[1] for text in texts.values() for line in text.splitlines() if (m := CONSTANT.match(line))]
    refused: set[tuple[str, int]] = set()
    while True:
        mutator = Mutator()
        mutator.refused = refused
        for name, text in texts.items():
            (cc / "bbr3" / f"{name}.rs").write_text(mutator.file(name, text, constants))
        errors = _cargo(work, "check", "-p", "tcpscape-tcp")
        wrong = {(m[1], int(m[2]) - 1) for m in re.finditer(r"--> crates/tcp/src/cc/bbr3/(\w+)\.rs:(\d+)", errors or "")}
        if errors is None:
            break
        if not wrong - refused:
            raise SystemExit(errors[-3000:])
        refused |= wrong
    print(f"{len(mutator.mutants)} mutants; {len(refused)} lines stay as they are, as the changed ones do not compile", flush=True)
    if errors := _cargo(work, "build", "--release", "-p", "tcpscape-py"):
        raise SystemExit(errors[-3000:])
    shutil.copy(work / "target" / "release" / "lib_core.so", work / "python" / "tcpscape" / "_core.abi3.so")
    (work / "mutants.list.json").write_text(json.dumps(mutator.mutants))


def _cargo(work: Path, *args: str) -> str | None:
    """What cargo says where it fails."""
    done = subprocess.run(
        ["cargo", *args],
        cwd=work,
        env={**os.environ, "CARGO_TARGET_DIR": str(work / "target"), "RUSTFLAGS": "-Awarnings"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else None


def judge(is_whole: bool) -> None:
    """In the process of one mutant: the first case that differs, and a digest of everything recorded."""
    from tcpscape.engines.model import Model
    from tcpscape.findings import conformance

    suite, digest, engine = conformance.suite("bbr"), hashlib.sha256(), Model()
    for name, case in suite.cases.items():
        cells = conformance.cells(suite, case)
        for cell in cells if is_whole else cells[:1]:
            result = conformance.judge(engine, "bbr3", suite, name, cell)
            if result.differences or result.unknown:
                print(json.dumps({"case": name, "cell": cell.text, "statement": result.first.statement if result.first else result.unknown}))
                return
            record = conformance._Rig(engine, "bbr3", suite, case, cell, 1).record()
            for values in record.values.values():
                digest.update(getattr(values, "tobytes", lambda v=values: repr(v).encode())())
    print(json.dumps({"digest": digest.hexdigest()}))


def _of(work: Path, number: int, *, is_whole: bool) -> dict[str, str]:
    """What becomes of a mutant."""
    env = {**os.environ, "PYTHONPATH": str(work / "python"), "TCPSCAPE_MUTANT": str(number)}
    command = [sys.executable, __file__, "judge", "whole" if is_whole else "part"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S * (4 if is_whole else 1), check=False)
    except subprocess.TimeoutExpired:
        return {"case": "a trial never ends"}
    if done.returncode == 0:
        return json.loads(done.stdout)
    if "PanicException" not in done.stderr and "gets nowhere" not in done.stderr:
        raise SystemExit(done.stderr[-2000:])
    return {"case": "the model stops", "statement": done.stderr.strip().splitlines()[-1][:120]}


def run(work: Path) -> None:
    """Judges mutants, first in one cell of each case, then, those that change something and are not caught, in all."""
    every, behind = int(os.environ.get("EVERY", "1")), int(os.environ.get("FROM", "0"))
    listed = {int(number): what for number, what in json.loads((work / "mutants.list.json").read_text()).items()}
    mutants = {number: what for number, what in listed.items() if number % every == behind % every}
    before = json.loads(kept.read_text()) if (kept := work / "mutants.json").exists() else {}
    results: dict[int, dict[str, str]] = {n: before[what] for n, what in mutants.items() if what in before}
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for is_whole in (False, True):
            original = _of(work, 0, is_whole=is_whole)
            left = [n for n in mutants if (n not in results if not is_whole else "case" not in results[n] and not results[n]["same"])]
            for number, result in zip(left, pool.map(lambda n: _of(work, n, is_whole=is_whole), left), strict=True):  # noqa: B023
                results[number] = result | {"same": result == original}
                print(number, mutants[number], result.get("case", "no difference" if result == original else "SURVIVES"), flush=True)
                (work / "mutants.json").write_text(json.dumps(before | {mutants[n]: r for n, r in results.items()}, indent=1))
    caught = sum("case" in r for r in results.values())
    survivors = [mutants[n] for n, r in results.items() if "case" not in r and not r["same"]]
    print(
        f"{len(mutants)} mutants: {caught + len(survivors)} change something, {caught} of them are caught ({caught / (caught + len(survivors)):.0%})"
    )
    print("\n".join(f"survives: {what}" for what in survivors))


if __name__ == "__main__":
    if sys.argv[1] == "judge":
        judge(sys.argv[2] == "whole")
    else:
        {"build": build, "run": run}[sys.argv[1]](Path(sys.argv[2]).resolve())
