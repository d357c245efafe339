"""What there is to choose from: queues, congestion controls, kernel profiles, metrics, statistics, checks, gallery scenarios, studies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from tcpscape import _core, metrics, stats
from tcpscape.campaign import checks as checking
from tcpscape.cli.lists import NOT_IN_LINUX
from tcpscape.controls import documentation, spelling
from tcpscape.controls.documentation import Page
from tcpscape.controls.spelling import Param
from tcpscape.engines.model import Model
from tcpscape.scenario import files
from tcpscape.studies import study
from tcpscape.trial import Capture
from website.markdown import block, code, sentence, table

KEPT = ("", "samples or packets")
BETTER = {"more": "more", "less": "less", "neither": "–"}
STATISTICS = {
    "median": "the median; the default",
    "mean": "the mean, which the table of `run` shows",
    "min": "the smallest value",
    "max": "the largest value",
    "cv": "coefficient of variation: standard deviation / mean",
    "n": "number of runs",
    "low": "lower end of the median's 95 % interval (of a ratio: of the ratio's)",
    "high": "upper end of it",
}
"""What each statistic is."""


def queues() -> str:
    """Every queue with its words, defaults, measured error and page."""
    engine, measured = Model(), documentation.load_fidelity()
    parts = []
    for name, example in sorted(engine.queues()):
        page, full = documentation.find_page(name), engine.full_words(name, example)
        error = _error(measured.errors("queues", name), linux=name not in NOT_IN_LINUX)
        rows = [("Example", code(example)), *([("Defaults, written out", code(full))] if full != name else []), ("Error of the goodput", error)]
        if page:
            rows += [(label, page.paragraph(label)) for label in (documentation.WORDS, documentation.DEFAULTS) if page.paragraph(label)]
            rows.append(("Source", page.source))
        lead = page.lead(documentation.IS).rstrip(":") if page else ""
        parts += [f"## {name}\n\n", f"{lead}\n\n", table(["Property", code(name)], rows), _more(page)]
    return "".join(parts)


def controls() -> str:
    """Every congestion control with its parameters, measured error and page."""
    measured = documentation.load_fidelity()
    entries = sorted(Model().registry(), key=lambda entry: entry.name)
    errors = {e.name: _error(measured.errors("controls", e.name), linux=e.name in spelling.LINUX) for e in entries}
    rows = [(f"[{e.name}](#{e.name})", e.about, errors[e.name]) for e in entries]
    parts = [table(["Name", "What it is", "Error: median / 90th percentile (conditions)"], rows)]
    for entry in entries:
        parts += [f"## {entry.name}\n\n", f"{sentence(entry.about)} Source: {entry.source}.\n\n"]
        if entry.params:
            rows = [(code(p.name), code(_default(p)), p.range, p.about) for p in entry.params]
            parts.append(table(["Parameter", "Default", "Range", "What it is"], rows))
        parts.append(_more(documentation.find_page(entry.name)))
    return "".join(parts)


def metric_list() -> str:
    """Every metric."""
    rows = [
        (code(m.name), m.printed_unit or "1", m.about, BETTER[m.better], KEPT[m.needs != Capture()], "yes" if m.of_flows else "no")
        for m in metrics.REGISTRY.values()
    ]
    return table(["Name", "Unit", "What it is", "Better", "Needs", "`:CCA`"], rows)


def families() -> str:
    """Metrics with an argument."""
    rows = [(code(f.example), f.make(f.example.partition(":")[2]).about) for f in metrics.FAMILIES.values()]
    return table(["Example", "What it is"], rows)


def statistics() -> str:
    """The statistics that a check may name."""
    return table(["Statistic", "What it is"], [*((code(name), STATISTICS[name]) for name in stats.STATISTICS), ("`p1` to `p99`", "a percentile")])


def operators() -> str:
    """The operators of a check."""
    return f"{', '.join(code(op) for op in checking.OPERATORS)}\n"


def profiles() -> str:
    """The kernel profiles and their settings."""
    settings = {name: json.loads(_core.kernel_profile(name)) for name in _core.kernel_profiles()}
    names = [name for name in next(iter(settings.values())) if name != "rules"]
    return table(["Setting", *(code(name) for name in settings)], [(code(n), *(_setting(s[n]) for s in settings.values())) for n in names])


def scenarios() -> str:
    """The scenarios of the gallery, as files."""
    loaded = {name: files.load(name) for name in files.gallery()}
    return "".join(f"### {name}\n\n{sentence(scenario.about)}\n\n{block(files.dump(scenario), 'yaml')}" for name, scenario in loaded.items())


def studies() -> str:
    """The published studies."""
    return table(["Name", "What it is about"], [(code(name), sentence(study.get(name).about)) for name in study.names()])


def _setting(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).lower()


def _default(param: Param) -> str:
    return ("on" if param.default else "off") if param.boolean else str(param.default)


def _error(errors: Sequence[documentation.ModelError], *, linux: bool) -> str:
    """Median and 90th percentile of the first kind of error, with the number of conditions."""
    if not errors:
        return documentation.UNMEASURED if linux else "not in Linux"
    return f"{errors[0].median:.3f} / {errors[0].p90:.3f} ({errors[0].n})"


def _more(page: Page | None) -> str:
    """The way to the page of a model."""
    if page is None:
        return ""
    name = page.file.rpartition("/")[2].removesuffix(".md")
    return f"More, and what is not modelled: [{name}](../{page.file.removeprefix('docs/')}).\n\n"


PARTS: Mapping[str, Callable[[], str]] = {
    "queues": queues,
    "controls": controls,
    "metrics": metric_list,
    "metrics with an argument": families,
    "statistics": statistics,
    "operators": operators,
    "kernel profiles": profiles,
    "scenarios": scenarios,
    "studies": studies,
}
"""Name of a part → the function that writes it."""
