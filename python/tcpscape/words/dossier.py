"""A dossier as a screen, as Markdown for the appendix of a draft, and what became worse since a kept one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tcpscape.clauses.changes import Change, Moved
from tcpscape.clauses.dossier import TABLE, CellDocument, ClauseDocument, CriterionDocument, DossierDocument
from tcpscape.clauses.judging import GRAVITY, Verdict
from tcpscape.stats.estimate import Interval
from tcpscape.text.numbers import NONE, joined, number
from tcpscape.text.screen import Code, Screen
from tcpscape.text.table import Table, markdown_text
from tcpscape.units import counted

COLUMNS = ("§", "clause", "verdict", "cells", "what decides it")
NAMED: tuple[Verdict, ...] = ("fails", "worse")
"""Verdicts whose clauses the answer names."""
PHRASES: dict[Verdict, str] = {
    "fails": "fails a MUST in",
    "worse": "is worse than {against} in",
    "better": "is better in",
    "no worse": "is no worse in",
    "not shown": "is not shown in",
    "by hand": "is to be argued by hand in",
}
METHOD = (
    "Excess: by how much a value is worse than that of the nearest reference on the same cell and seeds, with a 95 % interval from resampled "
    "cells and seeds. A cell is worse where further seeds show an excess above the margin over every reference; 5 % for the whole dossier (Holm)."
)


def screen(dossier: DossierDocument) -> Screen:
    """The screen of a dossier."""
    return Screen(
        path(dossier),
        answer(dossier),
        tables=(table(dossier),),
        details=(*(_details(dossier)), METHOD),
        caveats=tuple(f"§ {c['section']} does not show: {text}" for c in dossier["clauses"] for text in c["missing"] if c["level"] != "by hand"),
    )


def path(dossier: DossierDocument) -> str:
    """What was measured, in a line."""
    first, last = dossier["seeds"]
    trials = counted(dossier["trials"], "trial")
    return (
        f"{dossier['control']} against {joined(dossier['against'])} on {dossier['engine']}, {dossier['grid']} grid: {trials}, seeds {first} to {last}"
    )


def answer(dossier: DossierDocument) -> str:
    """The verdicts counted, and the clauses named that fail or are worse."""
    clauses, against = dossier["clauses"], joined(dossier["against"])
    if len(clauses) == 1:
        return f"{dossier['control']} {PHRASES[clauses[0]['verdict']].format(against=against)} clause {clauses[0]['section']} of RFC 9743."
    parts = []
    for verdict in GRAVITY:
        those = [clause for clause in clauses if clause["verdict"] == verdict]
        if those:
            named = f" ({', '.join(clause['section'].replace(', ', '/') for clause in those)})" if verdict in NAMED else ""
            parts.append(f"{PHRASES[verdict].format(against=against)} {len(those)}{named}")
    return f"Of {counted(len(clauses), 'clause')} of RFC 9743 {dossier['control']} {joined(parts)}."


def table(dossier: DossierDocument) -> Table:
    """A row for each clause."""
    rows = [(c["section"], c["title"], c["verdict"], cells(c), decisive(c)) for c in dossier["clauses"]]
    return Table(COLUMNS, rows, words=("clause", "verdict", "what decides it"))


def cells(clause: ClauseDocument) -> str:
    """Cells that are worse of those of its decisive criterion: `10/30`."""
    criterion = _decisive(clause)
    return f"{criterion['bad']}/{criterion['cells']}" if criterion and criterion["cells"] else NONE


def decisive(clause: ClauseDocument) -> str:
    """The criterion that decides, with the excess of its worst cell, or the mean one where no cell is worse."""
    criterion = _decisive(clause)
    if criterion is None or not criterion["cells"]:
        return clause["missing"][0] if clause["missing"] else NONE
    if criterion["worst"] and not criterion["worst"][0]["error"]:
        mean = alone(criterion["excess"], criterion["unit"])
        return f"{criterion['what']}: worse by up to {quantity(criterion['worst'][0]['excess'], criterion['unit'])}, on average by {mean}"
    error = f": {criterion['worst'][0]['error']}" if criterion["worst"] else ""
    value = criterion["excess"]["value"] or 0.0
    size = alone({"value": abs(value), "low": None, "high": None}, criterion["unit"])
    side = "worse" if value > 0 else "better"
    return f"{criterion['what']}: on average {size} {side}{error}" if value else f"{criterion['what']}: the same{error}"


def _decisive(clause: ClauseDocument) -> CriterionDocument | None:
    """The criterion with the gravest verdict, of these the one that is worse in the largest part of its cells."""
    return min(clause["criteria"], key=lambda c: (GRAVITY.index(c["verdict"]), -c["bad"] / max(1, c["cells"])), default=None)


def excess(criterion: CriterionDocument) -> str:
    """`+3.4 % [1.2, 5.9]`: the mean excess over the cells."""
    return quantity(criterion["excess"], criterion["unit"], signed=True)


def quantity(interval: Interval, unit: str, *, signed: bool = False) -> str:
    """A value with its interval and its unit; a fraction in percent."""
    scale = 100 if unit == "%" else 1
    value, low, high = (math.nan if x is None else scale * x for x in (interval["value"], interval["low"], interval["high"]))
    sign = "+" if signed and value > 0 else ""
    ends = "" if math.isnan(low) or low == high else f" [{number(low, 2)}, {number(high, 2)}]"
    return f"{sign}{number(value, 2)}{ends} {unit}".rstrip()


def alone(interval: Interval, unit: str, *, signed: bool = False) -> str:
    """A value without its interval."""
    return quantity({"value": interval["value"], "low": None, "high": None}, unit, signed=signed)


def _details(dossier: DossierDocument) -> Iterator[Table | Code]:
    """Every criterion, and the worst cells with what repeats them."""
    rows = [
        (c["section"], k["what"], k["verdict"], f"{k['bad']}/{k['cells']}", excess(k), k["nearest"])
        for c in dossier["clauses"]
        for k in c["criteria"]
    ]
    yield Table(
        ("§", "criterion", "verdict", "cells", "mean excess", "over"), rows, words=("criterion", "verdict", "mean excess", "over"), title="Criteria"
    )
    listed = [(c["section"], k["what"], cell, k["unit"]) for c in dossier["clauses"] for k in c["criteria"] for cell in k["worst"]]
    if listed:
        names = ("§", "criterion", "cell", "value, and of the references")
        worst = [(section, what, place(cell["at"]), values(cell, unit)) for section, what, cell, unit in listed]
        yield Table(names, worst, words=names[1:], title="The worst cells")
        yield Code([cell["command"] for _, _, cell, _ in listed], "Each again, in this order")


def place(at: dict[str, str]) -> str:
    """`2.62mbit, RTT 176ms, 3.67bdp, 8 flows`: a cell in words; how long its trials are is left out."""
    known = {"rate": "{}", "rtt": "RTT {}", "buffer": "{}"}
    first = [known[axis].format(at[axis]) for axis in known if axis in at]
    return ", ".join([*first, *(f"{axis} {value}" for axis, value in at.items() if axis not in known and axis != "time")])


def values(cell: CellDocument, unit: str) -> str:
    """`13 [11, 15] %; reno 1.0 %, cubic 2.0 %`; of a control that failed, how."""
    if cell["error"]:
        return cell["error"]
    references = ", ".join(f"{name} {alone(one, unit)}" for name, one in cell["references"].items())
    return f"{quantity(cell['value'], unit)}; {references}"


def markdown(dossier: DossierDocument) -> str:
    """The dossier for the appendix of a draft."""
    parts = [f"# {dossier['control']}: evaluation by RFC 9743", markdown_text(path(dossier)) + ".", f"**{markdown_text(answer(dossier))}**"]
    parts += [table(dossier).markdown(), markdown_text(METHOD)]
    for clause in dossier["clauses"]:
        parts += [f"## {clause['section']} {clause['title']}: {clause['verdict']}", markdown_text(f"{clause['about']} {clause['judgement']}".strip())]
        rows = [(k["what"], k["verdict"], f"{k['bad']} of {k['cells']}", excess(k), k["nearest"]) for k in clause["criteria"]]
        parts += [Table(("criterion", "verdict", "cells worse", "mean excess", "over"), rows).markdown()] if rows else []
        worst = [f"- {place(cell['at'])}: {values(cell, k['unit'])} (`{cell['command']}`)" for k in clause["criteria"] for cell in k["worst"]]
        parts += ["The worst cells:", "\n".join(worst)] if worst else []
        parts += ["Not shown:", "\n".join(f"- {markdown_text(text)}" for text in clause["missing"])] if clause["missing"] else []
    versions = ", ".join(f"{name} {version}" for name, version in dossier["versions"].items())
    return "\n\n".join([*parts, f"Measured by `{dossier['command']}` ({markdown_text(versions)})."]) + "\n"


def changes(changed: Sequence[Change]) -> list[str]:
    """A sentence for each clause whose verdict is not the kept dossier's."""
    return [f"§ {c.new['section']} {c.new['title']}: {c.new['verdict']}, was {c.old['verdict']}" for c in changed]


def comparison(old: DossierDocument, new: DossierDocument, changed: Sequence[Change], moved: Sequence[Moved] | None = None) -> Screen:
    """The screen of two dossiers: which verdicts changed, with what decides each and its mean excess, and which measures, where these are known."""
    rows = [(c.new["section"], c.new["title"], c.old["verdict"], c.new["verdict"], *map(_mean_excess, (c.old, c.new))) for c in changed]
    names = ("§", "clause", "was", "is", "mean excess, was", "is now")
    shown = [Table(names, rows, words=names[1:])] if rows else []
    apart = [one for one in moved or () if one.apart]
    shown += [_moved_table(apart)] if apart else []
    both = " → ".join(dict.fromkeys((path(old), path(new))))
    unread = [f"measures are not compared: they are in {TABLE} beside a dossier; name the directories that have both"] if moved is None else []
    caveats = (*_unlike(old, new), *unread)
    return Screen(both, _changed_answer(old, new, changed, moved), tables=tuple(shown), details=(METHOD,), caveats=caveats)


def _moved_table(moved: Sequence[Moved]) -> Table:
    """The measures of the control that changed, those with the most cells that are worse with intervals apart first."""
    rows = [
        (
            one.section,
            one.criterion["what"],
            f"{one.apart}/{one.cells}",
            *(alone({"value": value, "low": None, "high": None}, one.criterion["unit"]) for value in (one.old, one.new)),
            quantity(one.difference.plain(), one.criterion["unit"], signed=True),
            _intervals_apart(one),
        )
        for one in sorted(moved, key=lambda one: (-one.worse, -one.better))
    ]
    notes = (
        "Means over the cells that both have; the interval is over cells. Apart: cells with intervals that do not overlap, by more than the margin.",
    )
    names = ("§", "measure", "cells", "was", "is", "difference", "apart")
    return Table(names, rows, words=("measure", "apart"), title="Measures that changed", notes=notes, drop=("was", "is"))


def _intervals_apart(one: Moved) -> str:
    """`3 worse, 1 better`."""
    return ", ".join(f"{count} {side}" for count, side in ((one.worse, "worse"), (one.better, "better")) if count) or NONE


def _changed_answer(old: DossierDocument, new: DossierDocument, changed: Sequence[Change], moved: Sequence[Moved] | None) -> str:
    count = len({c["name"] for c in old["clauses"]} & {c["name"] for c in new["clauses"]})
    worse = sum(c.is_worse for c in changed)
    behind = "" if moved is None else f" {_moved_answer(moved)}"
    if not changed:
        return f"No verdict differs in the {counted(count, 'clause')} that both dossiers have.{behind}"
    return f"Of {counted(count, 'clause')} that both dossiers have, {worse} became worse and {len(changed) - worse} better.{behind}"


def _moved_answer(moved: Sequence[Moved]) -> str:
    """`12 of 20 measures changed; of 96 values, intervals are apart in 4: 3 worse, 1 better.`"""
    if not moved:
        return "No measure can be compared: no cell has a value in both."
    changed = [one for one in moved if one.apart]
    if not changed:
        return f"No difference in {counted(len(moved), 'measure')}."
    worse, better, values = (sum(counts) for counts in zip(*((one.worse, one.better, one.cells) for one in changed), strict=True))
    compared = f"{len(changed)} of {counted(len(moved), 'measure')} changed; of {counted(values, 'value')}, intervals are apart in {worse + better}"
    return f"{compared}: {worse} worse, {better} better." if worse + better else f"{compared}."


def _mean_excess(clause: ClauseDocument) -> str:
    criterion = _decisive(clause)
    return f"{criterion['what']}: {excess(criterion)}" if criterion and criterion["cells"] else NONE


def _unlike(old: DossierDocument, new: DossierDocument) -> Iterator[str]:
    """In what the dossiers differ besides their verdicts."""
    for name, one, other in (
        ("controls", old["control"], new["control"]),
        ("references", joined(old["against"]), joined(new["against"])),
        ("engines", old["engine"], new["engine"]),
        ("grids", old["grid"], new["grid"]),
        ("seeds", *("{} to {}".format(*one["seeds"]) for one in (old, new))),
    ):
        if one != other:
            yield f"the {name} differ: {one}, then {other}"
    alone = [[c["section"] for c in a["clauses"] if c["name"] not in {d["name"] for d in b["clauses"]}] for a, b in ((old, new), (new, old))]
    yield from (f"only the {age} dossier has § {joined(sections)}" for age, sections in zip(("older", "newer"), alone, strict=True) if sections)
