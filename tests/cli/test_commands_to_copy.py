"""Commands that a screen prints to be copied: at any width a shell reads the words that were meant."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tcpscape.controls.deployment import deployment
from tcpscape.errors import printable
from tcpscape.findings.calls import REMEDIES
from tcpscape.names import wrapped
from tcpscape.text.screen import Code, Screen

LINES = (
    *(line for remedy in REMEDIES for line in remedy.commands(4_750_000)), *deployment("bbr").lines(), *deployment("cubic:hystart=0,fast_convergence=0").lines(),
    deployment("bbr").command, "tcpscape run --name 'a b  c' --forward \"netem delay 25ms 8ms distribution paretonormal loss 0.1%\" --cca cubic,bbr --out 'it'\\''s'",
    "echo a\\ b'c d'e > /dev/null   # a comment that is longer than a narrow screen, with 'a quote",
)  # fmt: skip
WIDTHS = (40, 60, 80)


def words(text: str) -> list[str]:
    """The words of shell, as a parser has them: comments left out, lines joined at backslashes."""
    return shlex.split(text.replace("\\\n", ""), comments=True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", LINES)
def test_a_copied_line_has_the_same_words(line, width):
    parts = wrapped(line, width)
    assert words("\n".join(parts)) == words(line)
    assert re.sub(r"[\s\\#]", "", "".join(parts)) == re.sub(r"[\s\\#]", "", line), "comments too"
    assert all(len(part) <= width or len(words(part.removesuffix("\\"))) <= 1 for part in parts)
    if len(line) <= width:
        assert parts == [line]


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_screen_shows_is_what_a_shell_reads(width):
    """The commands as pasted from the screen, after `set --`, which makes words of them and runs nothing."""
    lines = [line for line in LINES if ">" not in line and "&&" not in line and not line.startswith("#")]
    shown = Screen("a path", "An answer.", tables=(Code(lines),)).text(width).split("\n\n", 1)[1]
    subprocess.run(["bash", "-n"], input=shown, text=True, check=True)
    pasted = "".join(f"set -- {part}\nprintf '%s\\0' \"$@\" --\n" for part in shown.replace("\\\n", "\0").splitlines()).replace("\0", "\\\n")
    read = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True).stdout.split("\0")
    assert [word for word in read[:-1] if word != "--"] == [word for line in lines for word in words(printable(line)) if word != "--"]
