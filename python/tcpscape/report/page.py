"""A page: the parts of which every report is made, in their order, and the HTML of them.

A report is a :class:`Page`: fill in the parts that it has, leave out the others, and write :func:`render` of it to a file. Its order is always

    answer → path → main figure → what to deploy → further figures → tables → claims → provenance → terms

so that the first screen says what was found, and on which path. A page of another kind is another `Page`, not another template::

    page = Page(
        Heading("advise", "What this path should use"),
        answers=(Answer("bbr carries 3.1 × cubic [2.8, 3.4]", ("0.5 % of loss keeps the window of cubic small",)),),
        paths=(PathView.of("", [scenario], words="25 Mbit/s, RTT 60 ms, 0.5 % loss"),),
        figures=(FigureGroup("", (EmbeddedFigure(…),)),),
        deploy=Deployment("Use bbr at the sender.", (Step("Until the next start", "sysctl -w net.ipv4.tcp_congestion_control=bbr"), …)),
        tables=(table,),
        provenance=Provenance("tcpscape advise …", facts=(("runs", "120"),)),
    )
    writing.whole(root / "report.html", render(page))

Each part is one file in `templates/parts/`. Everything that comes from users or files is escaped; the page loads nothing, and
a policy (:data:`POLICY`) forbids it every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from tcpscape.names import component
from tcpscape.report.tables import PageTable
from tcpscape.words import terms

if TYPE_CHECKING:
    from tcpscape.report.cells import Rerun
    from tcpscape.report.diagram import PathView
    from tcpscape.report.figures import EmbeddedFigure

TEMPLATE, STYLE, SCRIPT = "page.html.j2", "style.css", "sort.js"
POLICY = (
    "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; style-src-elem {style}; style-src-attr 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""What a browser allows the page: its own script and style, known by their hashes, and the style attributes of the drawings. Nothing from outside,
no other script, no handler in an attribute. Browsers without `style-src-elem` use `style-src`."""


@dataclass(frozen=True)
class Heading:
    """What stands above everything else."""

    kind: str
    """The command: `run`, `advise`, …"""
    title: str
    name: str = ""
    """The name of the result."""
    about: Sequence[str] = ()
    """Paragraphs below the answer: what was asked, and from which source."""


@dataclass(frozen=True)
class Answer:
    """One sentence that answers the question, with its interval."""

    text: str
    reasons: Sequence[str] = ()
    """Sentences that say why, or what else holds."""
    part: str = ""
    """The part of the record that it is about, where there are several."""


@dataclass(frozen=True)
class FigureGroup:
    """The figures of one part of a record; the first figure of the first group is the page's main one."""

    part: str
    """Empty where the record has one part."""
    figures: Sequence[EmbeddedFigure]
    about: str = ""
    command: str = ""
    """What measured the part, where the parts differ in it."""


@dataclass(frozen=True)
class Step:
    """One thing to do: what it is for, and the lines to type or to write into a file."""

    title: str
    lines: str
    note: str = ""


@dataclass(frozen=True)
class ToDeploy:
    """What to deploy: a sentence, and the steps from trying it to going back."""

    summary: str
    steps: Sequence[Step] = ()


@dataclass(frozen=True)
class PublishedClaims:
    """Published claims and their verdicts."""

    tally: Sequence[tuple[str, int, str]]
    """Verdict, number of claims, CSS class; failures first."""
    open: PageTable | None
    """Those that were not reproduced, then those that the runs do not decide; None without any."""
    reproduced: PageTable | None
    """The others, which the page folds."""
    works: Sequence[tuple[str, str]] = ()
    """Name and title of each work that is cited."""


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from, and how to measure them again."""

    command: str
    """What to type; several commands on a line each."""
    facts: Sequence[tuple[str, str]] = ()
    """Name and text: runs, engine, kernel, seeds, version."""
    reruns: Sequence[Rerun] = ()
    """How to run each cell again."""
    files: Sequence[str] = ()
    """Paths of the tables' files, from the page."""
    pitfalls: Sequence[str] = ()
    """Known errors of the published numbers."""

    @property
    def unlisted(self) -> int:
        """Number of cells that are in the folder of scenarios only."""
        return sum(not rerun.listed for rerun in self.reruns)


@dataclass(frozen=True)
class Page:
    """The parts of a page, in their order; those that are empty are left out."""

    heading: Heading
    answers: Sequence[Answer] = ()
    caveats: Sequence[str] = ()
    """What limits the validity of the answer; shown right below it."""
    paths: Sequence[PathView] = ()
    figures: Sequence[FigureGroup] = ()
    deploy: ToDeploy | None = None
    tables: Sequence[PageTable] = ()
    claims: PublishedClaims | None = None
    provenance: Provenance | None = None
    summary: PageTable | None = None
    """A table that is part of the answer: the verdict of each clause."""

    @property
    def main(self) -> EmbeddedFigure | None:
        """The figure at full width, before all others."""
        return next((figure for group in self.figures for figure in group.figures), None)

    @property
    def main_part(self) -> str:
        """The part of the main figure; empty where the record has one part."""
        return next((group.part for group in self.figures if group.figures), "")

    @property
    def further(self) -> Sequence[FigureGroup]:
        """The figures after the main one, of the groups that have any."""
        rest = [FigureGroup(g.part, [f for f in g.figures if f is not self.main], g.about, g.command) for g in self.figures]
        return [group for group in rest if group.figures]

    @property
    def links(self) -> Sequence[tuple[str, str]]:
        """Anchor and name of each part that the page's navigation lists."""
        parts = (
            ("path", "Path", self.paths),
            ("deploy", "What to deploy", self.deploy),
            ("figures", "Figures", self.further),
            ("tables", "Tables", self.tables),
            ("claims", "Claims", self.claims),
            ("again", "Run it again", self.provenance),
        )
        return [(anchor, name) for anchor, name, part in parts if part]


class TermLinks:
    """The terms that a page has used so far; the first use of each is a link to the page's list of terms."""

    def __init__(self) -> None:
        self.used: list[str] = []

    @property
    def meanings(self) -> Sequence[tuple[str, str, str]]:
        """Anchor, term and meaning of those that were used, in that order."""
        return [(terms.anchor(term), term, terms.GLOSSES[term]) for term in self.used]

    def linked(self, text: str) -> Markup:
        """A text, escaped, with links where it is the first to use a term."""
        link = Markup('<a class="term" href="#term-{}">{}</a>')
        return Markup().join(link.format(terms.anchor(term), piece) if term else escape(piece) for piece, term in terms.first_uses(text, self.used))

    def prose(self, text: str) -> Markup:
        """The same of a text with `code` in back quotes."""
        parts = text.split("`")
        if len(parts) % 2 == 0:
            return self.linked(text)
        return Markup().join(Markup("<code>{}</code>").format(part) if i % 2 else self.linked(part) for i, part in enumerate(parts))


def _hash(content: str) -> str:
    """An element's content as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def render(page: Page) -> str:
    """The HTML of a page: one file that opens offline, in light and in dark, from 400 px of width."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tcpscape.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    links = TermLinks()
    environment.filters |= {"linked": links.linked, "prose": links.prose, "anchor": component}
    style, script = (Markup(environment.get_template(name).render()) for name in (STYLE, SCRIPT))
    policy = Markup(POLICY.format(script=_hash(script), style=_hash(style)))
    return environment.get_template(TEMPLATE).render(page=page, links=links, style=style, script=script, policy=policy)
