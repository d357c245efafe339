#!/usr/bin/env python3
"""`make bench`: the fidelity and performance benchmarks, written to docs/.

Pages: fidelity.md, cca-sweep.md, performance.md, performance-campaign.md, performance-waits.md, performance-virtual.md,
performance-live.md and performance-explorer.md, and the measured accuracy in diagnosis.md. The performance part runs
first and alone, so that nothing else of ours disturbs its clock.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import campaign
import domains
import engine
import explorer
import fidelity
import live
import packetdrill
import performance
import sweep
import virtual
import waits


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--only", choices=("fidelity", "performance", "acks", "sweep", "virtual", "campaign", "waits", "live", "explorer", "diagnosis", "packetdrill")
    )
    p.add_argument("--quick", action="store_true", help="three seeds and short runs: a look, not a result")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=fidelity.DOCS, help="where the pages go")
    p.add_argument("--fake", action="store_true", help="a stand-in instead of the engine, to try the reports")
    a = p.parse_args()
    module = engine.core(a.fake)
    if a.only in (None, "performance"):
        performance.write(module, 2 if a.quick else 5, 0.1 if a.quick else 1.0, a.jobs, a.out / "performance.md")
        print(f"wrote {a.out / 'performance.md'}")
    if a.only in (None, "campaign") and not a.fake:
        campaign.write(a.quick, a.out / "performance-campaign.md")
        print(f"wrote {a.out / 'performance-campaign.md'}")
    if a.only == "acks":
        print(performance.acks(module, 2 if a.quick else 5, 0.1 if a.quick else 1.0, a.jobs))
    if a.only in (None, "fidelity"):
        fidelity.write(
            module, 3 if a.quick else 20, a.jobs, a.out / "fidelity.md", fake=a.fake, packaged=not (a.fake or a.quick) and a.out == fidelity.DOCS
        )
        print(f"wrote {a.out / 'fidelity.md'} and {a.out / 'fidelity.csv'}")
    if a.only in (None, "sweep") and not a.fake:
        sweep.write(module, 6 if a.quick else 60, a.jobs, a.out / "cca-sweep.md")
        print(f"wrote {a.out / 'cca-sweep.md'}")
    if a.only in (None, "waits") and not a.fake:
        if why := virtual.engines.REGISTRY["virtual"]().unavailable():
            print(f"skipped performance-waits.md: {why}")
        else:
            waits.write(a.quick, a.out / "performance-waits.md")
            print(f"wrote {a.out / 'performance-waits.md'}")
    if a.only in (None, "virtual"):
        if why := virtual.engines.REGISTRY["virtual"]().unavailable():
            print(f"skipped performance-virtual.md: {why}")
        else:
            virtual.write(1 if a.quick else 5, 10 if a.quick else 60, 3 if a.quick else 20, a.out / "performance-virtual.md")
            print(f"wrote {a.out / 'performance-virtual.md'}")
    if a.only in (None, "diagnosis") and not a.fake:
        if why := virtual.engines.REGISTRY["virtual"]().unavailable():
            print(f"skipped the tables of diagnosis.md: {why}")
        else:
            domains.write(a.out / "diagnosis.md", 21 if a.quick else 126, a.jobs)
    if a.only in (None, "packetdrill") and not a.fake:
        if why := packetdrill.no_scripts():
            print(f"skipped the tables of packetdrill.md: {why}")
        else:
            packetdrill.write()
    if a.only in (None, "live"):
        if why := live.unavailable():
            print(f"skipped performance-live.md: {why}")
        else:
            live.write(2 if a.quick else 5, 3 if a.quick else 8, a.out / "performance-live.md")
            print(f"wrote {a.out / 'performance-live.md'}")
    if a.only in (None, "explorer"):
        if why := explorer.unavailable():
            print(f"skipped performance-explorer.md: {why}")
        else:
            explorer.write(list(explorer.PARTS), explorer.arguments(["--quick"] if a.quick else []), a.out / "performance-explorer.md")
            print(f"wrote {a.out / 'performance-explorer.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
