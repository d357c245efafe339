"""Runs the fuzz targets in `fuzz/` and prints executions, coverage and findings of each; exit status 1 if there is a finding.

Usage: `python scripts/fuzz.py SECONDS [TARGET…]`. New inputs go to `fuzz/work`, logs to `fuzz/work/TARGET.log`, findings to `fuzz/artifacts`;
the seeds in `fuzz/corpus` are only read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FUZZ = Path(__file__).parent.parent / "fuzz"
LIMITS = ("-timeout=10", "-rss_limit_mb=500", "-max_len=4096")
"""What an input may take: seconds, MB of memory, bytes. More is a finding."""
MISSING = "cargo-fuzz is missing: cargo install cargo-fuzz, apt-get install g++ (stable Rust suffices)"
STATUS = re.compile(r"^#\d+\s.*?cov: (\d+)", re.MULTILINE)
EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)\s", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What a target's run came to: executions, edges covered, and the files of its findings."""

    target: str
    executions: int
    coverage: int
    findings: tuple[Path, ...]
    failed: bool


def targets() -> list[str]:
    """Every target, by the name of its source."""
    return sorted(source.stem for source in (FUZZ / "fuzz_targets").glob("*.rs"))


def build() -> Path:
    """Compiles all targets; the directory of their binaries. Without sanitizers: the crates have no unsafe code, and stable Rust suffices."""
    cargo_fuzz = shutil.which("cargo-fuzz")
    if cargo_fuzz is None:
        sys.exit(MISSING)
    subprocess.run([cargo_fuzz, "fuzz", "build", "--sanitizer", "none", "--fuzz-dir", str(FUZZ)], check=True, cwd=FUZZ)
    host = re.search(r"^host: (.+)$", subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout, re.MULTILINE)
    assert host is not None, "rustc -vV names its host"
    return Path(os.environ.get("CARGO_TARGET_DIR", FUZZ / "target")) / host.group(1) / "release"


def run(binary: Path, seconds: int) -> Result:
    """Runs one target for so long, or until its first finding."""
    target = binary.name
    work, artifacts = FUZZ / "work" / target, FUZZ / "artifacts"
    work.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(exist_ok=True)
    before = set(artifacts.glob(f"{target}-*"))
    command = [str(binary), f"-max_total_time={seconds}", *LIMITS, "-print_final_stats=1", f"-artifact_prefix={artifacts}/{target}-"]
    dictionary = FUZZ / f"{target}.dict"
    command += [f"-dict={dictionary}"] if dictionary.exists() else []
    log = FUZZ / "work" / f"{target}.log"
    with log.open("wb") as out:
        status = subprocess.run([*command, str(work), str(FUZZ / "corpus" / target)], stdout=out, stderr=out, check=False).returncode
    text = log.read_text("utf-8", "replace")
    executions = [int(a or b) for a, b in EXECUTIONS.findall(text)]
    coverage = [int(cov) for cov in STATUS.findall(text)]
    return Result(target, max(executions, default=0), max(coverage, default=0), tuple(set(artifacts.glob(f"{target}-*")) - before), status != 0)


def main() -> None:
    """Builds, runs as many targets at a time as there are processors, and prints a line for each."""
    seconds, chosen = int(sys.argv[1]), sys.argv[2:] or targets()
    binaries = build()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda target: run(binaries / target, seconds), chosen))
    print(f"{'target':<10} {'executions':>12} {'coverage':>9}  findings")
    for r in results:
        found = " ".join(str(path.relative_to(FUZZ.parent)) for path in r.findings) or ("see fuzz/work/" + r.target + ".log" if r.failed else "none")
        print(f"{r.target:<10} {r.executions:>12,} {r.coverage:>9,}  {found}")
    sys.exit(any(r.failed for r in results))


if __name__ == "__main__":
    main()
