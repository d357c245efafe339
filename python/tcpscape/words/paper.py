"""A campaign for a paper: its table in LaTeX, and the paragraph that says how it was measured, both from what the result keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from tcpscape import names, units
from tcpscape.campaign.outcome import Outcome
from tcpscape.names import component
from tcpscape.scenario.options import UNNAMED
from tcpscape.stats.order import RANGE
from tcpscape.text import latex as tex
from tcpscape.text.numbers import joined
from tcpscape.text.table import Table
from tcpscape.words import campaign as words
from tcpscape.words import paths, sentences

ENGINES: Mapping[str, str] = {
    "model": "a discrete-event simulation of TCP hosts that follow Linux",
    "virtual": "real Linux kernels in virtual time",
    "live": "this machine's Linux kernel in real time, on network namespaces",
    "mock": "closed forms with noise, which stand for no measurement",
}
"""Kind of an engine → what it is."""
MOST_SEEDS = 8
"""Most seeds that are listed one by one."""
DIGITS = 6
"""Hexadecimal digits of a digest in a label."""


def markdown(outcome: Outcome, _command: str, _version: str) -> str:
    """The answer and its table, to paste."""
    return words.screen(outcome, wide=True).markdown()


def latex(outcome: Outcome, command: str, version: str) -> str:
    """Every table of the answer, with the conditions in its caption, and the paragraph of :func:`methods` as a comment."""
    screen = words.screen(outcome, wide=True)
    tables = [table for table in screen.tables if isinstance(table, Table)]
    comment = "\n".join(f"% {line}" for line in (r"In the preamble: \usepackage{booktabs}", *methods(outcome, command, version).splitlines()) if line)
    caption = f"{screen.path.rstrip('.')}. {_intervals(outcome)}"
    label = _label(outcome)
    parts = [
        tex.tabular(table, f"{table.title}. {caption}" if table.title else caption, f"{label}{f'-{i + 1}' if i else ''}")
        for i, table in enumerate(tables)
    ]
    return "\n".join([f"{comment}\n", *parts])


def _label(outcome: Outcome) -> str:
    """The campaign's name; of one that options made, its metric, its axes and a digest of its conditions, which more seeds leave as they are."""
    if outcome.name != UNNAMED:
        return component(outcome.name)
    conditions = [[cell.engine, cell.cca, *cell.specs] for cell in outcome.cells]
    digest = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()[:DIGITS]
    return component("-".join((outcome.campaign.metric, *outcome.axes, digest)))


def methods(outcome: Outcome, command: str, version: str) -> str:
    """The paragraph of a paper about the measurement: what ran, where, how often, and what repeats it."""
    cells = outcome.cells
    engines = [f"{_engine(engine)} (engine {engine}, version {version})" for engine, version in outcome.versions.items()]
    kernels = f" The kernels were {joined(outcome.kernels)}." if outcome.kernels else ""
    levels = {axis: outcome.levels(axis) for axis in outcome.axes}
    path = paths.together([s for cell in cells for s in cell.scenarios], levels)
    seeds = sorted({seed for cell in cells for of_scenario in cell.seeds for seed in of_scenario})
    shared = len({tuple(map(tuple, cell.seeds)) for cell in cells}) == 1
    counts = sorted({len(cell.trials) for cell in cells})
    number = units.counted(counts[0], "trial") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} trials"
    each = f"Each of {len(cells)} conditions" if len(cells) > 1 else "The condition"
    same = " The same seeds ran in every condition." if shared and len(cells) > 1 else ""
    lines = [
        f"We measured the congestion {'controls' if len(outcome.ccas) > 1 else 'control'} {joined(outcome.ccas)} "
        f"with tcpscape {version}: {joined(engines)}.{kernels}",
        f"The path: {path}.",
        f"{each} has {number} ({outcome.trial_count} in all), with the {_seeds(seeds)}.{same}",
        _intervals(outcome),
    ]
    repeated = [f"Repeated by: {names.command(line)}" for line in command.splitlines()]
    return "\n\n".join((" ".join(lines), *repeated)) + "\n"


def _engine(engine: str) -> str:
    return ENGINES.get(engine.partition(":")[0], "an engine of its own")


def _seeds(seeds: list[int]) -> str:
    """`seeds 0 to 19`, or each of them."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    listed = [str(seed) for seed in seeds[:MOST_SEEDS]]
    return f"seeds {joined(listed) if len(seeds) <= MOST_SEEDS else ', '.join(listed) + f' and {len(seeds) - MOST_SEEDS} more'}"


def _intervals(outcome: Outcome) -> str:
    """What the brackets of the tables are."""
    if sentences.is_of_run(outcome):
        return "Brackets are 95 % confidence intervals of the mean (studentized bootstrap, at least Student's t)."
    fewest, most = (function(len(cell.trials) for cell in outcome.cells) for function in (min, max))
    order = [f"binomial, between order statistics{f' of {RANGE} trials or more' if fewest < RANGE else ''}"] * (most >= RANGE)
    few = [f"the range of fewer than {RANGE} trials, or Student's t where that is wider"] * (fewest < RANGE)
    return f"Brackets are 95 % confidence intervals of medians ({'; '.join(order + few)})."


WRITERS: Mapping[str, Callable[[Outcome, str, str], str]] = {"markdown": markdown, "latex": latex, "methods": methods}
"""Format → its text about one campaign, or part of a study: of the outcome, the commands that measured it (a line each), and tcpscape's version."""
