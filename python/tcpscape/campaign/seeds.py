"""The grammar of seeds: `20` is 0…19, `5..9` is 5…9, `1,4,7` those three."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcpscape.errors import refuse

MAX_SEEDS = 1_000_000
"""Most trials of one condition."""
MAX_DIGITS = 18
"""Digits of a seed: below 2^63."""


def parse_seeds(text: str) -> list[int]:
    """The seeds that `text` stands for: `20` → 0…19, `5..9` → 5…9, `1,4,7` → these, in ascending order.

    :raises ScenarioError: the text is none of these forms, or names no seed or more than :data:`MAX_SEEDS`.
    """
    if any(len(digits) > MAX_DIGITS for digits in re.findall(r"\d+", text)):
        refuse("seeds", f"{text!r} is too large a number", f"write at most {MAX_DIGITS} digits")
    if match := re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text):
        first, last = int(match.group(1)), int(match.group(2))
        if last < first:
            refuse("seeds", f"{text!r} runs backwards", "write for example 5..9")
        return _limited(range(first, last + 1), text)
    if re.fullmatch(r"\s*\d+\s*", text):
        if int(text) == 0:
            refuse("seeds", "0 trials measure nothing", "write at least 1")
        return _limited(range(int(text)), text)
    if re.fullmatch(r"\s*\d+(\s*,\s*\d+)+\s*", text):
        return _limited(sorted({int(part) for part in text.split(",")}), text)
    refuse("seeds", f"{text!r} is not a number of seeds", "write 20, 5..9 or 1,4,7")


def _limited(seeds: Sequence[int], text: str) -> list[int]:
    if len(seeds) > MAX_SEEDS:
        refuse("seeds", f"{text!r} is {len(seeds)} trials", f"write at most {MAX_SEEDS}")
    return list(seeds)
