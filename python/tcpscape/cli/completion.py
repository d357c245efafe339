"""`tcpscape completion SHELL`: the script that completes tcpscape's command line in bash, zsh or fish.

The script asks tcpscape itself: it sets :data:`VARIABLE` to the name of the shell and :data:`LINE` to what is typed up to the cursor, and gets a line
for each completion: its type, its value and what it is, with tabs between them. A value of type `plain` is a whole word, more may follow one of type
`open`; `file` and `dir` leave the names to the shell.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated

import click
from click.shell_completion import CompletionItem, ShellComplete

from tcpscape.cli import candidates
from tcpscape.cli.command import Argument, command
from tcpscape.errors import TcpscapeError, refuse

VARIABLE, LINE = "_TCPSCAPE_COMPLETE", "_TCPSCAPE_LINE"
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
    "bash": "share/bash-completion/completions/tcpscape", "zsh": "share/zsh/site-functions/_tcpscape",
    "fish": "share/fish/vendor_completions.d/tcpscape.fish",
}  # fmt: skip
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


def is_asked() -> bool:
    """Whether a shell's script started this process."""
    return VARIABLE in os.environ


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
        for item in _Complete(app, {"obj": candidates.items}, "tcpscape", VARIABLE).get_completions(words[1:], typed):
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
