"""Fidelity by congestion control and by queue discipline: the tables of docs/fidelity.md, and the data file that the package carries.

Everything comes from the divergences of all sets: those of one kind of flow say how a congestion control does alone, shared bottlenecks how it
does against others. `tcpscape cca show` and `qdisc show` print what `fidelity.json` says.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

from table import markdown
from tcpscape.validate.compare import Divergence, DivergenceSummary, groups, quantile
from tcpscape.words import divergence as tables

PACKAGED = pathlib.Path(__file__).resolve().parent.parent / "python" / "tcpscape" / "data" / "fidelity.json"
AGAINST = "real Linux kernels (6.1, 6.12) in virtual time, on the conditions of docs/fidelity.md"

PAGE = """\
## By congestion control

All conditions of all sets below. *Alone*: every flow of the condition runs it; *shared*: the goodput of its groups on bottlenecks that they share with
another group.

{controls}

## By queue discipline

The queue at the bottleneck: total goodput of all conditions, and of each group where two share it.

{queues}
"""


def page(everything: Sequence[Divergence], names: Sequence[str]) -> str:
    """The section: a row for each congestion control of the model (`names`) that a kernel has, one for each queue."""
    return PAGE.format(controls=controls_table(everything, names), queues=queues_table(everything))


def alone(everything: Sequence[Divergence], cca: str) -> list[Divergence]:
    """Conditions whose flows all run it."""
    return [c for c in everything if c.condition.cca == cca and not c.condition.shared]


def controls_table(everything: Sequence[Divergence], names: Sequence[str]) -> str:
    """Errors by congestion control, alone and shared; what was not compared is left out."""
    rows = []
    for name in names:
        mine, parts = alone(everything, name), tables.parts_of(everything, name)
        if mine or parts:
            s = DivergenceSummary.of(mine)
            numbers = (s.n, *map(tables.fixed, (s.median, s.p90), (".3f",) * 2), tables.fixed(s.bias, "+.3f"))
            chance = f"{tables.fixed(s.chance_median, '.3f')} / {tables.fixed(s.chance_p90, '.3f')}"
            rows.append((name, *numbers, chance, len(parts), *(tables.fixed(quantile(parts, q), ".3f") for q in (0.5, 0.9))))
    return markdown(("cca", "alone: n", "median", "p90", "bias", "chance", "shared: groups", "median", "p90"), rows)


def queues_table(everything: Sequence[Divergence]) -> str:
    """Errors by queue."""
    rows = []
    for name, some in sorted(groups(everything, lambda c: c.queue).items()):
        s = DivergenceSummary.of(some)
        group = (s.group_n, tables.fixed(s.group_median, ".3f"), tables.fixed(s.group_p90, ".3f"))
        rows.append((name, s.n, tables.fixed(s.median, ".3f"), tables.fixed(s.p90, ".3f"), tables.fixed(s.bias, "+.3f"), *group))
    return markdown(("queue", "n", "total: median", "p90", "bias", "groups", "each group: median", "p90"), rows)


def write(everything: Sequence[Divergence], version: str, date: str, file: pathlib.Path = PACKAGED) -> None:
    """The data file of the package."""
    ccas = sorted({f.cca for c in everything for f in c.condition.scenario.flows})
    names = sorted({name for c in everything for name in c.condition.disciplines})
    said = {
        "date": date,
        "model": version,
        "against": AGAINST,
        "controls": {cca: control(everything, cca) for cca in ccas},
        "queues": {name: queue([c for c in everything if name in c.condition.disciplines]) for name in names},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(said, indent=1, allow_nan=False) + "\n", "utf-8")


def control(everything: Sequence[Divergence], cca: str) -> dict[str, dict[str, float | int]]:
    """A congestion control's numbers: alone, and its groups on shared bottlenecks; without those that there are none of."""
    errors = {"alone": [c.error for c in alone(everything, cca)], "shared": tables.parts_of(everything, cca)}
    return {kind: _numbers(some) for kind, some in errors.items() if some}


def queue(some: Sequence[Divergence]) -> dict[str, dict[str, float | int]]:
    """A queue's numbers: the total goodput, and each group's where several share it."""
    errors = {"total": [c.error for c in some], "groups": tables.parts_of(some)}
    return {kind: _numbers(each) for kind, each in errors.items() if each}


def _numbers(errors: Sequence[float]) -> dict[str, float | int]:
    return {"n": len(errors), "median": round(quantile(errors, 0.5), 4), "p90": round(quantile(errors, 0.9), 4)}
