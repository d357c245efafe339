"""`list` and `show` of scenarios, congestion controls and queues; the list of metrics; `cca load`: controls in BPF while a command runs."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape.cli import terminal
from tcpscape.cli.command import Argument, CommandGroup, Option, command
from tcpscape.errors import EngineError, printable, refuse
from tcpscape.text.table import Table

if TYPE_CHECKING:
    from tcpscape.controls.documentation import ModelError, Page
    from tcpscape.controls.spelling import Param
    from tcpscape.engines.model import CcaEntry

metric = CommandGroup("metric", "Metrics: numbers of a trial, for tables, figures and checks.")
cca = CommandGroup("cca", "Congestion controls.")
qdisc = CommandGroup("qdisc", "Queues and impairments, in tc's words.")
scenario = CommandGroup("scenario", "The gallery of scenarios.")

ERROR = "error against Linux: median / p90 (n)"
"""A column: |ln ratio| of the goodput on n conditions."""
NOT_IN_LINUX = ("jitter",)
"""Queues that no kernel has."""
COMPARED = "compared one by one"
"""The label of a page's own measurements, beside those of all conditions."""
WIDTH = 140
"""Characters of a line of prose."""
SCREEN = 66
"""Width of a scenario that is shown on a screen of 80: YAML breaks a line after the word that exceeds it."""


@metric.subcommand("list", examples=("metric list", "run baseline --cca cubic,bbr --check 'added_rtt < 60ms'"))
def metric_list() -> None:
    """Metrics with their units and what each is; behind a colon, those of one congestion control's flows: added_rtt:bbr."""
    from tcpscape import metrics

    rows = [(m.name, m.printed_unit, m.about) for m in metrics.REGISTRY.values()]
    families = [(family.example, "", family.make(family.example.partition(":")[2]).about) for family in metrics.FAMILIES.values()]
    terminal.print_table(Table(("name", "unit", "what it is"), [*rows, *families], left=2, words=("what it is",)))


@metric.subcommand("show", examples=("metric show added_rtt", "metric show share:bbr"))
def metric_show(name: Annotated[str, Argument("A metric of `metric list`.", complete="metric")]) -> None:
    """What a metric is: its unit, whether more is better, and what has to be kept of a trial for it."""
    from tcpscape import metrics
    from tcpscape.trial import Capture

    entry = metrics.find(name)
    better = {"more": "More is better.", "less": "Less is better.", "neither": "It describes and does not judge."}[entry.better]
    needs = "" if entry.needs == Capture() else " It needs samples or packets of the trial, which are then kept."
    print(f"{entry.name}{f', {entry.printed_unit}' if entry.printed_unit else ''}: {entry.about}. {better}{needs}")


@cca.subcommand("list", examples=("cca list", "cca show cubic"))
def cca_list() -> None:
    """Congestion controls that the model has."""
    from tcpscape.controls import documentation, spelling
    from tcpscape.engines.model import Model

    measured = documentation.load_fidelity()
    rows = [(c.name, c.about, c.source, _error(measured.errors("controls", c.name), linux=c.name in spelling.LINUX)) for c in Model().registry()]
    terminal.print_table(Table(("name", "about", "source", ERROR), rows, left=1, words=("about", "source"), drop=("source",)))


@cca.subcommand("show", examples=("cca show cubic", "run baseline --cca cubic:hystart=off,cubic"))
def cca_show(name: Annotated[str, Argument("A congestion control of `cca list`.", complete="cca")]) -> None:
    """What a congestion control is: source, page, parameters, measured fidelity, differences from Linux."""
    print("\n".join(control_text(name, terminal.console().width)))


@qdisc.subcommand("list", examples=("qdisc list", "qdisc show fq_codel"))
def qdisc_list() -> None:
    """Queues and impairments that the model has."""
    from tcpscape.controls import documentation
    from tcpscape.engines.model import Model

    measured = documentation.load_fidelity()
    rows = [(name, example, _error(measured.errors("queues", name), linux=name not in NOT_IN_LINUX)) for name, example in Model().queues()]
    terminal.print_table(Table(("name", "example", ERROR), rows, words=("example",)))


@qdisc.subcommand("show", examples=("qdisc show fq_codel", "qdisc show netem"))
def qdisc_show(name: Annotated[str, Argument("A queue of `qdisc list`.", complete="qdisc")]) -> None:
    """What a queue is: page, tc's words with their defaults, an example, measured fidelity, differences from Linux."""
    print("\n".join(queue_text(name, terminal.console().width)))


@scenario.subcommand("list", examples=("scenario list", "scenario show baseline"))
def scenario_list() -> None:
    """Scenarios in the gallery."""
    from tcpscape.scenario import files

    rows = [(name, files.load(name).about.strip()) for name in files.gallery()]
    terminal.print_table(Table(("name", "about"), rows, words=("about",)))


@scenario.subcommand("show", examples=("scenario show baseline > mine.yaml", "scenario show lossy-dsl --tc"))
def scenario_show(
    name: Annotated[str, Argument("A gallery name or a file.", complete="scenario")],
    tc: Annotated[bool, Option("As a script that builds its path on Linux.")] = False,
) -> None:
    """A scenario as YAML, to copy and change."""
    from tcpscape.scenario import files

    if tc:
        from tcpscape.interchange import tc as script

        print(script.write(files.load(name)).decode(), end="")
        return
    print(files.dump(files.load(name), width=SCREEN), end="")


def control_text(name: str, width: int = WIDTH) -> Iterator[str]:
    """Everything about one congestion control, in lines of at most `width` characters."""
    from tcpscape.controls import documentation, spelling
    from tcpscape.engines.model import Model

    controls = {control.name: control for control in Model().registry()}
    if name not in controls:
        refuse("cca", f"{name!r} is not built", f"choose {', '.join(controls)}")
    control, page = controls[name], documentation.find_page(name)
    yield from _wrapped(f"{name}: {control.about}", width)
    yield from _wrapped(f"source: {control.source}", width)
    yield f"page: {page.file}" if page else "page: none yet"
    yield from _parameters(control, width)
    yield from _measured("controls", name, linux=name in spelling.LINUX, width=width)
    yield from _paragraphs(page, width, (documentation.IS, documentation.MEASURED, documentation.DIFFERS, documentation.NOT_MODELLED))


def queue_text(name: str, width: int = WIDTH) -> Iterator[str]:
    """Everything about one queue, in lines of at most `width` characters."""
    from tcpscape.controls import documentation
    from tcpscape.engines.model import Model

    engine = Model()
    examples = dict(engine.queues())
    if name not in examples:
        refuse("qdisc", f"{name!r} is not built", f"choose {', '.join(examples)}")
    page = documentation.find_page(name)
    about = page.lead(documentation.IS) if page else ""
    yield from _wrapped(f"{name}: {_first_sentence(about)}" if about else name, width)
    if page and page.source:
        yield from _wrapped(f"source: {page.source}", width)
    yield f"page: {page.file}" if page else "page: none yet"
    yield from _wrapped(f"example: {examples[name]}", width)
    yield from _wrapped(f"in full: {engine.full_words(name, examples[name])}", width)
    yield from _measured("queues", name, linux=name not in NOT_IN_LINUX, width=width)
    labels = (documentation.WORDS, documentation.DEFAULTS, documentation.MEASURED, documentation.DIFFERS, documentation.NOT_MODELLED)
    yield from _paragraphs(page, width, labels)


def _error(errors: Sequence[ModelError], *, linux: bool) -> str:
    """Median and 90th percentile of the first kind of error."""
    if not errors:
        return "–" if linux else "not in Linux"
    return f"{errors[0].median:.3f} / {errors[0].p90:.3f} ({errors[0].n})"


def _parameters(control: CcaEntry, width: int) -> Iterator[str]:
    """The parameters of a congestion control in columns, after an example."""
    if not control.params:
        yield "parameters: none"
        return
    first = control.params[0]
    example = ("off" if first.default else "on") if first.boolean else first.default
    yield f"parameters, for example --cca {control.name}:{first.name}={example}"
    name_width, default_width = max(len(p.name) for p in control.params), max(len(_default(p)) for p in control.params)
    for p in control.params:
        head = f"  {p.name:<{name_width}}  default {_default(p):<{default_width}}  "
        yield from _wrapped(f"{head}{p.about} ({p.range})", width, " " * len(head))


def _default(p: Param) -> str:
    return ("on" if p.default else "off") if p.boolean else str(p.default)


def _first_sentence(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".:") + "."


def _measured(kind: str, name: str, *, linux: bool, width: int) -> Iterator[str]:
    """What was compared with a kernel, or why nothing was."""
    from tcpscape.controls import documentation

    measured = documentation.load_fidelity()
    errors = measured.errors(kind, name)
    if not errors:
        yield from _wrapped(f"measured: {documentation.UNMEASURED if linux else documentation.NO_KERNEL}", width)
        return
    yield from _wrapped(f"measured, |ln(model / kernel)| of the goodput ({measured.where}):", width)
    for error in errors:
        yield from _wrapped(f"  {error.text}", width, "    ")


def _paragraphs(page: Page | None, width: int, labels: Sequence[str]) -> Iterator[str]:
    """The paragraphs of a page under these labels."""
    from tcpscape.controls import documentation

    for label in labels:
        if page and (text := page.paragraph(label)):
            title = COMPARED if label == documentation.MEASURED else f"{label[0].lower()}{label[1:]}"
            yield from _wrapped(f"{title}: {text}", width)


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    """Lines of at most `width` characters, at most :data:`WIDTH`, all but the first indented; no word is cut."""
    return textwrap.wrap(text, min(width, WIDTH), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False, replace_whitespace=False)


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
"""Signals that end it, or are handed to the command."""
PATIENCE_S = 10
"""Seconds from a signal on that the command has for its end; then it is killed, since what is registered has to be taken out."""
LONG_S = 3600
"""How long it sleeps where nothing happens, s."""
SIGNALLED = 128
"""Exit status after a signal, less its number, by the shells' convention."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses where there is no such command, and where it cannot be started, by the same convention."""


@command(name="load", examples=("cca load mine.bpf.o --\ntcpscape run baseline --engine live --cca mine,cubic", "cca load mine.bpf.o"))
def load(
    file: Annotated[Path, Argument("An object file: clang -O2 -g -target bpf -c mine.bpf.c", metavar="FILE.bpf.o", complete="file")],
    words: Annotated[tuple[str, ...], Argument("A command and its arguments.  [default: wait for Ctrl-C]", metavar="[-- COMMAND]...")] = (),
) -> int:
    """Register congestion controls in BPF with this machine's kernel, run a command, and take them out again.

    It needs root, a kernel with BTF and bpftool. While the command runs every program of this machine can use them; connections that do keep
    theirs until they close. The exit status is the command's. Ctrl-C, SIGTERM and SIGHUP end the command and take them out, too.
    """
    from tcpscape.controls import bpf

    words = words[1:] if words[:1] == ("--",) else words
    if not sys.platform.startswith("linux"):
        refuse(bpf.FIELD, f"it needs Linux, this is {sys.platform}", "use a machine with Linux", EngineError)
    with _signals_wait() as before:
        controls = bpf.register(file)
        try:
            names = ", ".join(control.name for control in controls)
            until = f"until {printable(shlex.join(words))} ends" if words else "until Ctrl-C"
            print(f"{names}: in the kernel {until}; --cca {controls[0].name} uses it", file=sys.stderr, flush=True)
            return _status(words, before) if words else _wait()
        finally:
            bpf.unregister(controls)


@contextmanager
def _signals_wait() -> Iterator[set[signal.Signals]]:
    """Within it signals that end a program are kept until somebody asks for them; the mask of before."""
    before: set[signal.Signals] = signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDS, signal.SIGCHLD))  # type: ignore[assignment]
    try:
        yield before
    finally:
        while signal.sigtimedwait((*ENDS, signal.SIGCHLD), 0):  # asked for the end that is here
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait() -> int:
    """Waits for a signal: Ctrl-C is the way to end it, any other is reported."""
    number = signal.sigwait(ENDS)
    return 0 if number == signal.SIGINT else SIGNALLED + number


def _status(words: tuple[str, ...], mask: set[signal.Signals]) -> int:
    """Runs the command and gives its exit status; signals are handed to it, except a Ctrl-C that it had from the terminal itself."""
    try:
        number = os.posix_spawnp(words[0], words, os.environ, setsigmask=mask, setsigdef=(signal.SIGPIPE,))
    except OSError as e:
        print(f"error: {printable(words[0])}: {e.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(e, FileNotFoundError) else NOT_EXECUTABLE
    ending = False
    while (ended := os.waitpid(number, os.WNOHANG))[0] == 0:
        came = signal.sigtimedwait((*ENDS, signal.SIGCHLD), PATIENCE_S if ending else LONG_S)
        if came is None and ending:
            os.kill(number, signal.SIGKILL)
        elif came is not None and came.si_signo in ENDS and not (came.si_signo == signal.SIGINT and _is_foreground()):
            ending = True
            os.kill(number, came.si_signo)
    status = os.waitstatus_to_exitcode(ended[1])
    return status if status >= 0 else SIGNALLED - status


def _is_foreground() -> bool:
    """Whether a Ctrl-C at the terminal reaches every process of this one's group."""
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


cca.add_command(load)
