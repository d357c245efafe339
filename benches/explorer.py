#!/usr/bin/env python3
"""What the explorer reaches, measured in Chromium: docs/performance-explorer.md.

`--part latency,map` measures these parts again and keeps what was measured of the others (in `out/explorer.json`), so that a part can have a quiet
machine. Each part says how busy the machine was with other things. The page must be built (`make web`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import explorer_page
import explorer_parts
from others import Others

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "out" / "explorer.json"
PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "start": explorer_parts.start,
    "latency": explorer_parts.latency,
    "map": explorer_parts.whole_map,
    "frames": explorer_parts.frames,
    "stale": explorer_parts.stale,
    "size": explorer_parts.size,
    "heap": explorer_parts.heap,
}


def unavailable() -> str | None:
    """Why this machine cannot measure it, if it cannot."""
    if not (explorer_parts.STATIC / "index.html").exists():
        return "the explorer's page is not built: make web"
    return None if shutil.which("chromium") else "chromium is not installed: apt-get install chromium"


def measure(names: list[str], options: argparse.Namespace, kept: pathlib.Path) -> dict[str, Any]:
    """Measures parts, one after the other, and returns what is known of all."""
    known = json.loads(kept.read_text()) if kept.exists() else {}
    for name in names:
        with Others() as others:
            values = PARTS[name](options)
        known[name] = values | {"machine": others.values(), "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known, indent=1))
        print(f"{name}: {json.dumps({k: v for k, v in known[name].items() if not isinstance(v, list)})}", flush=True)
    return known


def write(names: list[str], options: argparse.Namespace, out: pathlib.Path, kept: pathlib.Path = KEPT) -> None:
    """Measures, and writes the page."""
    out.write_text(explorer_page.page(measure(names, options, kept)))


def arguments(text: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--part", default=",".join(PARTS), help=f"which, with commas between: {', '.join(PARTS)}")
    p.add_argument("--movements", type=int, default=60, help="of the slider, for the latencies")
    p.add_argument("--minutes", type=float, default=10, help="of slider movement, for the heap")
    p.add_argument("--hour", action="store_true", help="an hour of slider movement")
    p.add_argument("--quick", action="store_true", help="a look, not a result")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "performance-explorer.md")
    options = p.parse_args(text)
    if options.hour:
        options.minutes = 60
    if options.quick:
        options.movements, options.minutes = min(options.movements, 10), min(options.minutes, 0.5)
    if unknown := set(options.part.split(",")) - PARTS.keys():
        p.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    return options


def main() -> int:
    """The command."""
    options = arguments()
    if why := unavailable():
        print(f"cannot measure: {why}")
        return 2
    write(options.part.split(","), options, options.out)
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
