"""`tcpscape completion SHELL`: the script that completes tcpscape's command line in bash, zsh or fish, and what there is to complete.

The script asks tcpscape itself: it sets :data:`VARIABLE` to the name of the shell and :data:`LINE` to what is typed up to the cursor, and gets a line
for each completion: its type, its value and what it is, with tabs between them. A value of type `plain` is a whole word, more may follow one of type
`open`; `file` and `dir` leave the names to the shell.

Each kind of value has a function in :data:`KINDS`, which an `Option(complete="…")` names; a text with `|` is the values themselves. Values are looked
up when a shell asks, from the registries themselves, so nothing has to be written twice; whatever is imported for it is imported then.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from click.shell_completion import CompletionItem, ShellComplete

from tcpscape.cli.command import Argument, command
from tcpscape.cli.overview import COMPLETION
from tcpscape.errors import TcpscapeError, refuse

if TYPE_CHECKING:
    from types import ModuleType

    from tcpscape.controls.spelling import Param

VARIABLE, LINE = COMPLETION, "_TCPSCAPE_LINE"
"""Environment variables with which a script asks: its shell, and the command line up to the cursor."""
_BREAKS = re.compile(r".*[:=]", re.DOTALL)
"""What bash leaves of a word on the line and does not replace: everything up to the last colon or equals sign."""

BASH = f"""\
# bash completion of tcpscape
_tcpscape() {{
    local type value about
    COMPREPLY=()
    while IFS=$'\\t' read -r type value about; do
        case $type in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            open) compopt -o nospace; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <({VARIABLE}=bash {LINE}="${{COMP_LINE:0:$COMP_POINT}}" "$1" 2>/dev/null)
}}
complete -o nosort -F _tcpscape tcpscape
"""

ZSH = f"""\
#compdef tcpscape
# zsh completion of tcpscape
_tcpscape() {{
    local type value about
    local -a whole open
    while IFS=$'\\t' read -r type value about; do
        case $type in
            file) _path_files -f ;;
            dir) _path_files -/ ;;
            open) open+=("${{value//:/\\\\:}}${{about:+:$about}}") ;;
            plain) whole+=("${{value//:/\\\\:}}${{about:+:$about}}") ;;
        esac
    done < <({VARIABLE}=zsh {LINE}="${{words[1,CURRENT-1]}} $PREFIX" "${{words[1]}}" 2>/dev/null)
    (( $#whole )) && _describe -V tcpscape whole -U
    (( $#open )) && _describe -V tcpscape open -U -S ''
}}
if [ "$funcstack[1]" = "_tcpscape" ]; then
    _tcpscape "$@"
else
    (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
    compdef _tcpscape tcpscape
fi
"""

FISH = f"""\
# fish completion of tcpscape
function __tcpscape_complete
    set -l program (commandline -opc)[1]
    {VARIABLE}=fish {LINE}=(commandline -cp | string collect) $program 2>/dev/null | while read -l -d \\t type value about
        switch $type
            case file
                __fish_complete_path $value
            case dir
                __fish_complete_directories $value
            case '*'
                printf '%s\\t%s\\n' $value $about
        end
    end
end
complete --no-files --keep-order --command tcpscape --arguments '(__tcpscape_complete)'
"""

SCRIPTS: Mapping[str, str] = {"bash": BASH, "zsh": ZSH, "fish": FISH}
"""Shell → its script."""
PLACES: Mapping[str, str] = {
    "bash": "share/bash-completion/completions/tcpscape",
    "zsh": "share/zsh/site-functions/_tcpscape",
    "fish": "share/fish/vendor_completions.d/tcpscape.fish",
}
"""Shell → where it looks for the script, below a prefix such as /usr or a virtual environment."""


@command(examples=("completion bash", "completion fish > ~/.config/fish/completions/tcpscape.fish"))
def completion(shell: Annotated[str, Argument("bash, zsh or fish.", complete="bash|zsh|fish")]) -> None:
    """Print the script that completes tcpscape's command line in a shell: commands, options, and the names that there are.

    In a running shell: `source <(tcpscape completion bash)`; in fish `tcpscape completion fish | source`. To keep it, write it to
    ~/.local/share/bash-completion/completions/tcpscape, to a file _tcpscape in a directory of zsh's fpath, or to
    ~/.config/fish/completions/tcpscape.fish.
    """
    if shell not in SCRIPTS:
        refuse("shell", f"{shell!r} is unknown", f"choose {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])


def answer(app: click.Group) -> int:
    """Prints the completions that a shell's script asks for, nothing for a line that makes no sense; returns the exit status."""
    shell, line = os.environ[VARIABLE], os.environ.get(LINE, "")
    for item in completions(app, line):
        value, about = item.value, (item.help or "").replace("\n", " ").replace("\t", " ")
        print(item.type, _behind_break(value, line) if shell == "bash" and item.type in ("plain", "open") else value, about, sep="\t")
    return 0


def completions(app: click.Group, line: str) -> Iterator[CompletionItem]:
    """The completions of a command line that is typed as far as `line`."""
    words, typed = split(line)
    try:
        for item in _Complete(app, {"obj": items}, "tcpscape", VARIABLE).get_completions(words[1:], typed):
            yield _extended(item, typed)
    except (click.ClickException, TcpscapeError, OSError, ValueError):
        return


class _Complete(ShellComplete):
    """Click's own search, without its scripts."""

    name = "tcpscape"
    source_template = ""


def _extended(item: CompletionItem, typed: str) -> CompletionItem:
    """The item with the option before it, where both are one word: `--engine=mo` is completed as a whole."""
    option, equals, _ = typed.partition("=")
    if typed.startswith("--") and equals:
        item.value = f"{option}={item.value}"
    return item


def split(line: str) -> tuple[list[str], str]:
    """The complete words of a line and what is typed of the last one, empty behind a space; an open quote is closed."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
            break
        except ValueError:
            continue
    else:
        words = line.split()
        closing = ""
    is_complete = not closing and (not line or line[-1].isspace())
    return (words, "") if is_complete or not words else (words[:-1], words[-1])


def _behind_break(value: str, line: str) -> str:
    """The part of a completion that bash puts on the line: a word ends for it at each `:` and `=` outside quotes."""
    raw = line.rpartition(" ")[2]
    if '"' in raw or "'" in raw or "\\" in raw:
        return value
    before = _BREAKS.match(raw)
    return value.removeprefix(before[0]) if before else value


OPEN = "open"
"""Type of a completion that goes on: no space follows it."""
FILE, DIRECTORY = "file", "dir"
"""Types of the completions that leave the names to the shell."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value, and what it is; `goes_on`: more may follow it without a space."""

    value: str
    about: str = ""
    goes_on: bool = False


Candidates = Iterable[Candidate]


def items(kind: str, typed: str, context: click.Context) -> list[CompletionItem]:
    """The completions of a value of which `typed` is there already; `kind` is a name of :data:`KINDS`, or the values with `|` between them."""
    if "|" in kind:
        return _items([Candidate(value) for value in kind.split("|")], typed)
    return KINDS[kind](typed, context)


def _items(candidates: Candidates, typed: str, before: str = "") -> list[CompletionItem]:
    """Those that begin with what is typed behind `before`."""
    word = typed.removeprefix(before)
    return [CompletionItem(f"{before}{c.value}", OPEN if c.goes_on else "plain", help=c.about) for c in candidates if c.value.startswith(word)]


def _of(find: Callable[[], Candidates]) -> Callable[[str, click.Context], list[CompletionItem]]:
    """A kind of one word."""
    return lambda typed, _: _items(find(), typed)


def _listed(find: Callable[[str], Candidates]) -> Callable[[str, click.Context], list[CompletionItem]]:
    """A kind of words with commas between them: the last one is completed. `find` gets what is typed of it."""

    def complete(typed: str, _: click.Context) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",")
        return _items(find(last), typed, before + comma)

    return complete


def _and_files(find: Callable[[], Candidates], kind: str = FILE) -> Callable[[str, click.Context], list[CompletionItem]]:
    """The same, and files (or directories) besides."""
    return lambda typed, _: [*_items(find(), typed), CompletionItem(typed, kind)]


def _shell(kind: str) -> Callable[[str, click.Context], list[CompletionItem]]:
    """Whatever the shell itself completes."""
    return lambda typed, _: [CompletionItem(typed, kind)]


def _core() -> ModuleType | None:
    """The extension module by itself, which is imported more quickly than the engine around it; None where it is not built."""
    try:
        import tcpscape._core as extension
    except ImportError:
        return None
    return extension


def _registry() -> dict[str, tuple[str, tuple[Param, ...]]]:
    """Name of each congestion control → what it is, and its parameters."""
    from tcpscape.controls.spelling import Param

    lib = _core()
    return {name: (about, tuple(Param(*p) for p in params)) for name, about, _, params in lib.cca_registry()} if lib else {}


def _controls() -> Iterator[Candidate]:
    """Names of the congestion controls."""
    yield from (Candidate(name, about) for name, (about, _) in _registry().items())


def _labels(typed: str) -> Iterator[Candidate]:
    """Congestion controls with parameters: `cubic:` is followed by `hystart=`, that by its values."""
    if ":" not in typed:
        yield Candidate("all", "every congestion control")
        yield from _controls()
        return
    name, *given = typed.split(":")
    before = ":".join([name, *given[:-1]])
    for param in _registry().get(name, ("", ()))[1]:
        if param.boolean:
            yield from (Candidate(f"{before}:{param.name}={value}", param.about) for value in ("on", "off"))
        elif given[-1].startswith(f"{param.name}="):
            yield Candidate(f"{before}:{param.name}={param.default}", f"the default; {param.range}")
        else:
            yield Candidate(f"{before}:{param.name}=", f"{param.about} ({param.range})", goes_on=True)


def _kernels() -> Iterator[Candidate]:
    """Kernels that are built."""
    from tcpscape import kernels

    yield from (Candidate(kernel.name, f"Linux {kernel.release}") for kernel in kernels.built_kernels())


def _engines(_: str = "") -> Iterator[Candidate]:
    """Engines, with each kernel that is built."""
    from tcpscape import engines

    yield from (Candidate(name, engine.about) for name, engine in engines.REGISTRY.items())
    yield from (Candidate(f"virtual:{kernel.value}", kernel.about) for kernel in _kernels())


def _profiles() -> Iterator[Candidate]:
    """Kernel profiles of the model."""
    if lib := _core():
        yield from (Candidate(name, "kernel profile") for name in lib.kernel_profiles())


def _sides() -> Iterator[Candidate]:
    """Engines as `validate` takes them: the model also with a profile."""
    yield from _engines()
    yield from (Candidate(f"model:{profile.value}", profile.about) for profile in _profiles())


def _kernel_settings(typed: str, _: click.Context) -> list[CompletionItem]:
    """A profile, or a setting behind its comma."""
    from tcpscape.scenario import host
    from tcpscape.scenario.scenario import Kernel

    before, comma, _last = typed.rpartition(",")
    if not comma:
        return _items([*_profiles(), Candidate(host.NAME, "this machine's")], typed)
    return _items([Candidate(f"{name}=", goes_on=True) for name in Kernel.model_fields if name != "profile"], typed, before + comma)


def _names_in(folder: str) -> list[str]:
    """Names of the YAML files of a folder of the package."""
    from importlib import resources

    files = resources.files("tcpscape").joinpath(folder).iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def _gallery() -> Iterator[Candidate]:
    yield from (Candidate(name, "scenario") for name in _names_in("scenarios"))


def _campaigns() -> Iterator[Candidate]:
    yield from (Candidate(name, "campaign") for name in _names_in("campaigns"))
    yield from _gallery()


def _studies() -> Iterator[Candidate]:
    yield from (Candidate(name) for name in _names_in("studies"))


def _parts(typed: str, context: click.Context) -> list[CompletionItem]:
    """Parts of the study that is named on the line."""
    from tcpscape.studies import study

    name = context.params.get("name") or next(iter(context.args), "")  # Click stops at --part, whose value is being typed
    return _items([Candidate(part.name, part.about) for part in study.get(name).parts], typed) if name in study.names() else []


def _metrics() -> Iterator[Candidate]:
    """Metrics; one of a family goes on with its argument."""
    from tcpscape import metrics

    yield from (Candidate(m.name, f"{m.about}{f', {m.printed_unit}' if m.printed_unit else ''}") for m in metrics.REGISTRY.values())
    yield from (Candidate(f"{name}:", f"as in {family.example}", goes_on=True) for name, family in metrics.FAMILIES.items())


def _checked() -> Iterator[Candidate]:
    """Metrics as a check begins with them."""
    yield from (Candidate(m.value, m.about, goes_on=True) for m in _metrics())


def _queues() -> Iterator[Candidate]:
    """Every queue and impairment, with an example."""
    if lib := _core():
        yield from (Candidate(name, example) for name, example in lib.qdisc_registry())


def _probes() -> Iterator[Candidate]:
    """Probes by a name."""
    from tcpscape.scenario.flows import PRESETS

    yield from (Candidate(name, f"{of['kind']}, every {of['interval']}") for name, of in PRESETS.items())


def _bottlenecks() -> Iterator[Candidate]:
    """Queues that a bottleneck can have."""
    from tcpscape.scenario.path import DELAYING

    yield from (queue for queue in _queues() if queue.value not in (*DELAYING, "tbf", "htb"))


def _pages() -> Iterator[Candidate]:
    """Manual pages, by the words of their commands."""
    from tcpscape.cli.reference import ROOT, entries

    yield from (Candidate(entry.page.removeprefix(f"{ROOT}-"), entry.summary) for entry in entries())


def _schemas() -> Iterator[Candidate]:
    """Documents and tables."""
    from tcpscape.schemas.documents import DOCUMENTS
    from tcpscape.schemas.tables import TABLES

    yield from (Candidate(document.name, document.about) for document in DOCUMENTS.values())
    yield from (Candidate(table.name, table.about) for table in TABLES.values())


def _formats() -> Iterator[Candidate]:
    from tcpscape import interchange

    yield from (Candidate(name, interchange.REGISTRY[name].about) for name in interchange.writable())


def _figures(_: str) -> Iterator[Candidate]:
    """Figures, and quantities over time."""
    from tcpscape import plots
    from tcpscape.plots import traces

    yield from (Candidate(figure.name, figure.about) for figure in plots.FIGURES.values())
    yield from (Candidate(panel.name, "over time") for panel in traces.PANELS.values())


def _file_formats(_: str) -> Iterator[Candidate]:
    from tcpscape.plots.style import FORMATS

    yield from map(Candidate, FORMATS)


def _results(typed: str, _: click.Context) -> list[CompletionItem]:
    """Directories with results below what is typed; where there are none, whatever the shell offers."""
    from tcpscape.store.database import FILE as DATABASE

    folder = Path(typed if typed.endswith("/") else Path(typed).parent)
    found = sorted({file.parent for depth in ("*", "*/*") for file in folder.glob(f"{depth}/{DATABASE}")})
    matching = _items([Candidate(str(place), "results") for place in found], typed)
    return matching or [CompletionItem(typed, FILE)]


KINDS: Mapping[str, Callable[[str, click.Context], list[CompletionItem]]] = {
    "cca": _of(_controls),
    "ccas": _listed(_labels),
    "mix": _listed(_labels),
    "engine": _of(_engines),
    "engines": _listed(_engines),
    "side": _of(_sides),
    "profile": _kernel_settings,
    "kernel": _of(_kernels),
    "scenario": _and_files(_gallery),
    "source": _and_files(_gallery),
    "campaign": _and_files(_campaigns),
    "study": _of(_studies),
    "part": _parts,
    "metric": _of(_metrics),
    "check": _of(_checked),
    "queue": _of(_bottlenecks),
    "qdisc": _of(_queues),
    "format": _of(_formats),
    "figures": _listed(_figures),
    "formats": _listed(_file_formats),
    "probe": _of(_probes),
    "results": _results,
    "page": _of(_pages),
    "schema": _of(_schemas),
    "file": _shell(FILE),
    "directory": _shell(DIRECTORY),
}
"""Kind of value → the completions of what is typed."""
