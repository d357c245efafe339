"""What commands show on the terminal: tables on stdout, progress and a line of figures on stderr, and what Ctrl-C leaves.

Progress is shown only on a terminal, and only once the work has taken a fifth of a second, whether or not a trial is over by then, with the time
that is left where the number of trials is known.
Where the cursor is not to be moved (TERM=dumb, NO_COLOR) it is a line every ten seconds, each when a trial is over.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from tcpscape import names
from tcpscape.cli import streams
from tcpscape.cli.options import ScreenOptions
from tcpscape.text.screen import Screen, shown
from tcpscape.text.table import PLAIN_WIDTH, Table
from tcpscape.units import NS_PER_S, brief_time, counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from tcpscape.campaign.campaign import Campaign, Case
    from tcpscape.engines.base import Engine
    from tcpscape.store.results import Store
    from tcpscape.trial import Trial


__all__ = ["ProgressLine", "announce", "console", "hook_cost", "note", "prepare", "print_table", "resumable", "show", "to_open"]

SILENT_S = 0.2
"""Nothing is shown before this, s."""
EVERY_S = 0.1
"""Redraws at most this often, s."""
PLAIN_EVERY_S = 10.0
"""Prints a line at most this often where the cursor is not to be moved, s."""
BESIDE = " beside results of other commands"
"""Said of a directory that holds more than what has just been measured."""
LONG_S = 10.0
"""Trials that may take longer than this are announced, s."""
RECENT_S = 60.0
"""The time that is left is estimated from the pace of so long, s."""


def note(text: str) -> None:
    """A sentence about the work on stderr."""
    click.echo(f"note: {text}", err=True)


def announce(engine: Engine, cases: Sequence[Case], seeds: str) -> None:
    """Says on stderr how long the trials of these cases may take, where that is long; of trials in real time, :func:`prepare` says it."""
    from tcpscape.campaign.axes import parse_seeds

    seconds, trials = max(engine.seconds(case.scenario) for case in cases), len(cases) * len(parse_seeds(seeds))
    if seconds < LONG_S or engine.at_once == 1:
        return
    each = f"a trial may take {brief_time(seconds * NS_PER_S)} of a core"
    together = f", {trials} of them {brief_time(trials * seconds * NS_PER_S)}" if trials > 1 else ""
    note(f"{each}{together}; a lower rate or a shorter --duration takes less")


def prepare(campaigns: Sequence[Campaign], jobs: int, *, verified: bool) -> None:
    """Before campaigns run: says how long their trials in real time take, and, with `verified`, measures whether this machine can run them.

    :raises TcpscapeError: the machine cannot, or `verified` with engines that have nothing to measure.
    """
    from tcpscape import engines
    from tcpscape.campaign.axes import parse_seeds
    from tcpscape.campaign.campaign import by_engine

    cases = [(case, len(parse_seeds(campaign.seeds))) for campaign in campaigns for case in campaign.cases()]
    by_name = {name: engines.make(name) for name in dict.fromkeys(case.engine for case, _ in cases)}
    in_real_time = {name: engine for name, engine in by_name.items() if engine.at_once == 1}
    for name, engine in in_real_time.items():
        _announce_real_time(engine, [(case, count) for case, count in cases if case.engine == name], jobs)
    if verified:
        for line in engines.verify(by_engine(case for case, _ in cases)):
            click.echo(line, err=True)


def _announce_real_time(engine: Engine, cases: Sequence[tuple[Case, int]], jobs: int) -> None:
    """How long trials take that run one at a time, each as long as it lasts; each case comes with the number of its trials."""
    seconds, trials = sum(engine.seconds(case.scenario) * count for case, count in cases), sum(count for _, count in cases)
    if seconds >= LONG_S or jobs > 1:
        how = f"{counted(trials, 'trial')} in real time, one at a time" + (", whatever --jobs says" if jobs > 1 else "")
        note(f"{how}: {brief_time(seconds * NS_PER_S)}; a shorter duration or fewer seeds take less")


class ProgressLine:
    """A line that says how far the work is.

    The part that is done never shrinks on it: where the number of trials is not known before the work ends, as in a search or with
    --precision, it counts trials instead, and the steps of the work, of which about the number is known.
    """

    def __init__(
        self,
        what: str = "running",
        *,
        is_open: bool = False,
        steps: int = 0,
        clock: Callable[[], float] = time.monotonic,
        screen: Console | None = None,
    ) -> None:
        """`is_open`: the number of trials depends on the results; `steps`: how often about :meth:`say` will be called, 0 where that is not known.

        `screen`: where the line is drawn, stderr where it is a terminal.
        """
        self.what = what
        self.is_open = is_open
        self.steps = steps
        self.count = 0
        """Trials that are done."""
        self.fraction = 0.0
        """Of the work that is done; stays where it is once the total is open."""
        self._clock, self._screen = clock, screen
        self._began = clock()
        self._drawn = 0.0
        self._terminal = screen is not None or sys.stderr.isatty()
        self._is_plain = screen is None and moves_no_cursor()
        self._before, self._step, self._total = 0, 0, 0
        self._begun = 0
        self._bar: Bar | None = None
        self._drawing = threading.RLock()
        self._first = threading.Timer(SILENT_S, self._draw)
        """Draws the line where no trial is over until then: the first ones may be long."""
        self._first.daemon = True

    def __enter__(self) -> ProgressLine:
        if self._terminal and not self._is_plain:
            self._first.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._first.cancel()
        with self._drawing:
            self._terminal = False
            self._stop()

    def say(self, what: str) -> None:
        """What is being done now, a step of its own."""
        self.what = what
        self._begun += 1

    def now(self, what: str) -> None:
        """What is being done in the present step."""
        self.what = what
        self._draw()

    def update(self, done: int, total: int) -> None:
        """How many trials of how many are done. Fewer than before are those of another step; the total is open from then on."""
        if done < self._step:
            self._before += self._step
        fraction = done / total if total else 0.0
        if not self.is_open and (self._before or total > self._total > 0 or fraction < self.fraction):
            self.is_open = True
            self._stop()
        self.fraction = self.fraction if self.is_open else fraction
        self._step, self._total, self.count = done, total, self._before + done
        self._draw()

    def _draw(self) -> None:
        with self._drawing:
            self._redraw()

    def _redraw(self) -> None:
        now = self._clock()
        if not self._terminal or now - self._began < SILENT_S or now - self._drawn < EVERY_S:
            return
        if self._is_plain:
            self._print_line(now)
            return
        self._drawn = now
        bar = self._bar = self._bar or _bar(is_open=self.is_open, screen=self._screen)
        if not bar.tasks:
            bar.add_task(self.what, total=None, left="")  # not rich's 100, at which its clock would stand still
            bar.start()
        bar.update(
            bar.tasks[0].id, description=self.what, completed=self.count, total=None if self.is_open else self._total or None, left=self._left(now)
        )

    def _print_line(self, now: float) -> None:
        if now - max(self._drawn, self._began) >= PLAIN_EVERY_S:
            self._drawn = now
            left = f", {text}" if (text := self._left(now)) else ""
            print(f"{self.what}: {self.count}{'' if self.is_open else f' of {self._total}'} trials, {now - self._began:.0f} s{left}", file=sys.stderr)

    def _left(self, now: float) -> str:
        """`step 3 of about 8, about 20s left`, at the pace of the steps until now; empty where their number is not known, or is one."""
        if not self.is_open or not self._begun or self._begun > self.steps or self.steps == 1:
            return ""
        half = self._begun - 0.5  # of the present step, half is over on average
        seconds = max(1, round((now - self._began) * (self.steps - half) / half))
        return f"step {self._begun} of about {self.steps}" + (f", about {brief_time(seconds * NS_PER_S)} left" if self._begun > 1 else "")

    def _stop(self) -> None:
        with self._drawing:
            if self._bar:
                self._bar.stop()
            self._bar = None


def moves_no_cursor() -> bool:
    """Whether the user wants, or the terminal understands, nothing but lines of text (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "") in ("dumb", "unknown", "")


@contextmanager
def resumable(store: Store | None) -> Iterator[None]:
    """Says after a signal what `store` kept, and ends the command; without a store the command line says that it was interrupted."""
    try:
        yield
    except KeyboardInterrupt as e:
        if store is None:
            raise
        print(f"interrupted: {counted(store.saved, 'trial')} ran, kept in {store.root}; the same command goes on from here", file=sys.stderr)
        raise click.exceptions.Exit(streams.status(e)) from None


@contextmanager
def resumable_in(out: Path) -> Iterator[None]:
    """The same for a command that keeps its trials by itself in this directory."""
    try:
        yield
    except KeyboardInterrupt as e:
        print(f"interrupted; what is kept in {out} stays, and the same command goes on from there", file=sys.stderr)
        raise click.exceptions.Exit(streams.status(e)) from None


def _bar(*, is_open: bool, screen: Console | None) -> Bar:
    """The line on the terminal: a bar with the time that is left, or a count of trials where the total is open."""
    from rich import progress
    from rich.console import Console

    text = progress.TextColumn
    what, elapsed = text("{task.description}", markup=False), progress.TimeElapsedColumn()
    columns: tuple[progress.ProgressColumn, ...] = (
        what,
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        elapsed,
        text("left"),
        progress.TimeRemainingColumn(),
    )
    if is_open:
        columns = (progress.SpinnerColumn(), what, text("{task.completed:.0f} trials"), elapsed, text("{task.fields[left]}"))
    target = screen or Console(stderr=True)
    return progress.Progress(*columns, console=target, transient=True, refresh_per_second=1 / EVERY_S, speed_estimate_period=RECENT_S)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what is waited for; it can be changed by what is handed out, and is gone in the end."""
    if not sys.stderr.isatty() or moves_no_cursor():
        yield lambda what: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield status.update


def console(*, error: bool = False) -> Console:
    """stdout, or stderr, as wide as its terminal (a dumb one, too) or as COLUMNS says; without either so wide that few tables are folded."""
    from rich.console import Console

    columns, lines = shutil.get_terminal_size((PLAIN_WIDTH, 25))
    return Console(highlight=False, width=columns, height=lines, stderr=error)


def print_table(table: Table) -> None:
    """Prints a table on stdout with what the width leaves out."""
    screen = console()
    for part in shown(table, screen.width):
        screen.print(part)


def show(screen: Screen, output: ScreenOptions, *, error: bool = False) -> None:
    """Prints the answer of a command on stdout; `error`: on stderr, where stdout is another program's."""
    screen.print(console(error=error), verbose=output.verbose, quiet=output.quiet)


def to_open(page: Path) -> str:
    """What to type to look at a page or picture."""
    return f"open {names.argument(page)}"


def hook_cost(trials: Sequence[Trial]) -> str:
    """How slow a congestion control in Python was, measured in these trials; nothing where there is none."""
    acks, hooks, whole = (sum(t.hook_cost.get(k, 0) for t in trials) for k in ("acks", "hooks_s", "run_s"))
    if not acks or whole <= hooks:
        return ""
    return f"{trials[0].cca}: Python takes {1e6 * hooks / acks:.2g} µs an ACK; the trials ran {whole / (whole - hooks):.0f} × slower for it"


LEAST_ROWS, LEAST_COLUMNS = 5, 20
"""Below this size of the terminal there is no line."""


class StatusLine:
    """The line; nothing where stderr is no terminal, or is not to be moved about in. A context manager."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.is_shown = wanted and sys.stderr.isatty() and not moves_no_cursor()
        """Whether there is one."""
        self._rows = 0

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows:
            _write(f"\x1b7\x1b[r\x1b[{self._rows};1H\x1b[K\x1b8")
            self._rows = 0

    def show(self, text: str) -> None:
        """Writes the line anew, cut to the terminal's width."""
        if not self.is_shown:
            return
        try:
            columns, rows = os.get_terminal_size(2)
        except OSError:
            return
        if rows < LEAST_ROWS or columns < LEAST_COLUMNS:
            return
        if rows != self._rows:
            _write(f"\n\x1b7\x1b[1;{rows - 1}r\x1b8\x1b[1A")
            self._rows = rows
        _write(f"\x1b7\x1b[{rows};1H\x1b[K\x1b[2m{text[:columns]}\x1b[0m\x1b8")


def _write(text: str) -> None:
    """In one piece, so that the program's own writes do not come between."""
    sys.stderr.write(text)
    sys.stderr.flush()
