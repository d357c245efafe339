"""What `cca list | show` and `qdisc list | show` print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tcpscape.controls import documentation, spelling
from tcpscape.controls.documentation import Fidelity, ModelError
from tcpscape.engines.model import CcaEntry, Model
from tcpscape.errors import refuse

OURS = ("jitter",)
"""Queues that no kernel has."""
COMPARED = "compared one by one"
"""What the page says of its own measurements, beside those of all conditions."""
WIDTH = 140
"""Characters of a line of prose."""


def controls() -> list[tuple[str, ...]]:
    """A row for each congestion control: name, about, source, error."""
    known = documentation.load_fidelity()
    return [(c.name, c.about, c.source, _short(known.errors("controls", c.name), linux=c.name in spelling.LINUX)) for c in Model().registry()]


def queues() -> list[tuple[str, ...]]:
    """A row for each queue: name, an example, error."""
    known = documentation.load_fidelity()
    return [(name, example, _short(known.errors("queues", name), linux=name not in OURS)) for name, example in Model().queues()]


def _short(errors: Sequence[ModelError], *, linux: bool) -> str:
    """Median and 90th percentile of the first kind."""
    if not errors:
        return "–" if linux else "not in Linux"
    return f"{errors[0].median:.3f} / {errors[0].p90:.3f} ({errors[0].n})"


def control_text(name: str) -> Iterator[str]:
    """Everything about one congestion control, line by line."""
    found = {c.name: c for c in Model().registry()}
    if name not in found:
        refuse("cca", f"{name!r} is not built", f"choose {', '.join(found)}")
    said, page = found[name], documentation.find_page(name)
    yield f"{name}: {said.about}"
    yield f"source: {said.source}"
    yield f"page: {page.file}" if page else "page: none yet"
    yield from _parameters(said)
    yield from _measured(documentation.load_fidelity(), "controls", name, linux=name in spelling.LINUX)
    yield from _paragraphs(page, (documentation.IS, documentation.MEASURED, documentation.DIFFERS, documentation.NOT_MODELLED))


def _parameters(said: CcaEntry) -> Iterator[str]:
    if not said.params:
        yield "parameters: none"
        return
    first = said.params[0]
    value = ("off" if first.default else "on") if first.boolean else first.default
    yield f"parameters, for example --cca {said.name}:{first.name}={value}"
    wide, most = max(len(p.name) for p in said.params), max(len(_default(p)) for p in said.params)
    for p in said.params:
        yield f"  {p.name:<{wide}}  default {_default(p):<{most}}  {p.about} ({p.range})"


def _default(p: spelling.Param) -> str:
    return ("on" if p.default else "off") if p.boolean else str(p.default)


def queue_text(name: str) -> Iterator[str]:
    """Everything about one queue, line by line."""
    engine = Model()
    found = dict(engine.queues())
    if name not in found:
        refuse("qdisc", f"{name!r} is not built", f"choose {', '.join(found)}")
    page = documentation.find_page(name)
    yield f"{name}: {_first(page.paragraph(documentation.IS))}" if page and page.paragraph(documentation.IS) else name
    if page and page.source:
        yield f"source: {page.source}"
    yield f"page: {page.file}" if page else "page: none yet"
    yield f"example: {found[name]}"
    yield f"in full: {engine.full_words(name, found[name])}"
    yield from _measured(documentation.load_fidelity(), "queues", name, linux=name not in OURS)
    labels = (documentation.WORDS, documentation.DEFAULTS, documentation.MEASURED, documentation.DIFFERS, documentation.NOT_MODELLED)
    yield from _paragraphs(page, labels)


def _first(text: str) -> str:
    """The first sentence."""
    return text.split(". ", maxsplit=1)[0].rstrip(".:") + "."


def _measured(known: Fidelity, what: str, name: str, *, linux: bool) -> Iterator[str]:
    """What was compared with a kernel, or why nothing was."""
    errors = known.errors(what, name)
    if not errors:
        yield f"measured: {documentation.UNMEASURED if linux else documentation.NO_KERNEL}"
        return
    yield f"measured, |ln(model / kernel)| of the goodput ({known.where}):"
    for error in errors:
        yield f"  {error.text}"


def _paragraphs(page: documentation.Page | None, labels: Sequence[str]) -> Iterator[str]:
    for label in labels:
        if page and (said := page.paragraph(label)):
            named = COMPARED if label == documentation.MEASURED else f"{label[0].lower()}{label[1:]}"
            yield from textwrap.wrap(f"{named}: {said}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
