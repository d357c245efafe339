"""The parts of an advice's page that others do not have: its figures, what to deploy, and the tables of its details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.findings.advice.answer import Advice
from tcpscape.plots import Context, bars, base, style
from tcpscape.report import figures, tables
from tcpscape.report.figures import EmbeddedFigure
from tcpscape.report.page import Heading, Step, ToDeploy
from tcpscape.report.tables import PageTable
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table
from tcpscape.words import advice as words
from tcpscape.words import levers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.figure import Figure

    from tcpscape.controls.deployment import Deployment

TITLES = {
    "before": "Before: note the value, to go back to it",
    "now": "Until the next start",
    "permanent": "After every start",
    "verify": "Verify it",
    "undo": "Go back",
}
"""Part of a deployment → its heading."""


def heading(result: Advice) -> Heading:
    """The goal as the page's title."""
    return Heading("advise", title(result))


def title(result: Advice) -> str:
    """The question that the page answers."""
    wish = {"goodput": "carries the most", "delay": "adds the least delay", "video": "serves a viewer best"}.get(result.goal.name, result.goal.name)
    return f"Which congestion control {wish} on this path?"


def screen(result: Advice) -> Screen:
    """The answer as the command shows it, but with what was taken for the path behind the path: the page's first lines are the answer."""
    shown, taken = words.screen(result), result.taken
    return replace(shown, path=" ".join((f"{shown.path}.", *taken)) if taken else shown.path, remarks=shown.remarks[len(taken) :])


def drawn(result: Advice, formats: Sequence[str], root: Path) -> Iterator[tuple[EmbeddedFigure, list[Path]]]:
    """Draws the figures of an advice and writes their files into `root`; yields each with its files, the main one first."""
    shapes: list[tuple[str, str, Callable[[Advice, Context], Figure]]] = [
        ("standings", "goodput and added RTT of each congestion control; hollow: with the other order of packets", bars.standings)
    ]
    if result.goal.name == "video":
        about = "what a viewer sees under each congestion control: bit rate, start-up, time stopped; hollow: with the other order of packets"
        shapes.insert(0, ("viewers", about, bars.viewers))
    if bars.damaged(result).damage:
        shapes.append(("damage", "what the same path carries without each of its impairments", bars.advice_damage))
    for name, about, draw in shapes:
        figure = draw(result, Context(width=style.PAGE))
        svg_text = style.svg(figure)
        written = style.save(figure, root / figures.FOLDER / name, formats, svg_text)
        yield figures.embedded(name, about, svg_text, draw(result, Context(width=style.NARROW)), written), written


def deploy(result: Advice) -> ToDeploy:
    """What to type, from trying it to going back; where nothing has to change or nothing can be recommended, that."""
    commands = result.deployment
    if commands is None:
        return ToDeploy(words.sentence(result))
    steps = list(_steps(commands)) if commands.now else [Step(TITLES["verify"], "\n".join(commands.verify))]
    steps += [
        replace(step, title=f"{step.title} ({text}, on the {levers.HOSTS[host]})")
        for host, text, own in levers.deployments(result)
        for step in _steps(own)
    ]
    return ToDeploy(" ".join(commands.notes), steps)


def _steps(commands: Deployment) -> Iterator[Step]:
    """From trying it to going back."""
    for name, title in TITLES.items():
        if lines := getattr(commands, name):
            yield Step(title, "\n".join(lines))


def detail_tables(result: Advice) -> list[PageTable]:
    """The runs, the cliff and the damage."""
    looks = base.looks(result.outcome)
    return [tables.of_screen(table, looks) for table in words.screen(result).details if isinstance(table, Table)]
