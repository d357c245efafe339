"""The small grammars of the command line: congestion controls, mixtures of flows, seeds.

`--cca cubic,cubic:hystart=off` is CCA[:PARAMETER=VALUE…],…; `--mix "cubic*2,bbr@5s-8s"` is CCA[*COUNT][@START[-STOP]],…; a `;` in a path puts a
child into the queue before it (the engine's parser reads it); `--seeds 20` is 0…19, `--seeds 5..9` is 5…9 and `--seeds 1,4,7` those three.
"""

from __future__ import annotations

import re
from typing import Any

from tcpscape.controls import spelling
from tcpscape.errors import refuse

MAX_SEEDS = 1_000_000
"""Most trials of one condition."""
LONGEST_SEED = 18
"""Digits of a seed: below 2^63."""

_MIX = re.compile(r"^([^:*@\s]+(?::[^*@\s]+)?)(?:\*(\d+))?(?:@([^-\s]+)(?:-(\S+))?)?$")


def names(text: str, field: str) -> list[str]:
    """`cubic,bbr` as a list; doubles and gaps are refused."""
    said = [part.strip() for part in text.split(",")]
    if not all(said):
        refuse(field, f"{text!r} has an empty name", f"write for example {'model,virtual' if field == 'engine' else 'cubic,bbr'}")
    if len(set(said)) != len(said):
        refuse(field, f"{text!r} names one twice", "name each once")
    return said


def ccas(text: str) -> list[str]:
    """`cubic:hystart=off,bbr` as a list of labels."""
    labels = [spelling.label(part) for part in names(text, "cca")]
    return names(",".join(labels), "cca")


def seeds(text: str) -> list[int]:
    """`20` → 0…19, `5..9` → 5…9, `1,4,7` → these."""
    if any(len(digits) > LONGEST_SEED for digits in re.findall(r"\d+", text)):
        refuse("seeds", f"{text!r} is too large a number", f"write at most {LONGEST_SEED} digits")
    if found := re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text):
        first, last = int(found.group(1)), int(found.group(2))
        if last < first:
            refuse("seeds", f"{text!r} runs backwards", "write for example 5..9")
        return _few(range(first, last + 1), text)
    if re.fullmatch(r"\s*\d+\s*", text):
        if int(text) == 0:
            refuse("seeds", "0 trials measure nothing", "write at least 1")
        return _few(range(int(text)), text)
    if re.fullmatch(r"\s*\d+(\s*,\s*\d+)+\s*", text):
        return _few(sorted({int(part) for part in text.split(",")}), text)
    refuse("seeds", f"{text!r} is not a number of seeds", "write 20, 5..9 or 1,4,7")


def _few(some: range | list[int], text: str) -> list[int]:
    if len(some) > MAX_SEEDS:
        refuse("seeds", f"{text!r} is {len(some)} trials", f"write at most {MAX_SEEDS}")
    return list(some)


def mix(text: str) -> list[dict[str, Any]]:
    """Flows as plain values from `CCA[*COUNT][@START[-STOP]],…`."""
    flows = []
    for part in text.split(","):
        found = _MIX.match(part.strip())
        if not found:
            refuse("mix", f"{part.strip()!r} is not CCA[*COUNT][@START[-STOP]]", "write for example cubic*2,bbr@5s")
        cca, count, start, stop = found.groups()
        flow: dict[str, Any] = {"cca": cca, "count": int(count or 1)}
        flow |= {"start": start} if start else {}
        flow |= {"stop": stop} if stop else {}
        flows.append(flow)
    return flows
