"""A page of the documentation as a job: its files are written, its commands run, and what it shows of their output is compared.

A block ```console has commands, each after `$ `; one that ends with `# exit status 1` must end with it. A block ```python is carried out too. A
block ```text that follows at once is what the last command or the block printed: every line of it must be printed, in that order, and `…` stands for
lines that are left out. A block with a title (```yaml title="call.yaml") is that file. Blocks ```sh without a title are what a reader does to his machine (installing,
building kernels); nothing carries them out here.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import forked
from conftest import Said
from patience import PATIENCE_S
from tcpscape.engines import host

BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE)
STATUS = re.compile(r"\s+# exit status (\d+)$")
MEASURED = re.compile(r"Python takes [\d.]+ µs an ACK")
"""A line that differs from run to run."""
UPDATE = "UPDATE_PAGES"
"""Environment variable with which what the pages show is written anew."""


@dataclass
class Job:
    page: Path
    place: Path
    """The current directory."""
    cli: Callable[..., Said]
    """The command line in this process, which starts at once."""

    def run(self) -> None:
        """Carries it out from top to bottom; with UPDATE_PAGES=1 the shown output is replaced by the present one."""
        text, printed, at = self.page.read_text("utf-8"), "", -1
        new, end = [], 0
        for block in BLOCK.finditer(text):
            content = block["text"]
            if block["title"]:
                file = self.place / block["title"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            elif block["language"] == "console":
                printed, at = [self.command(line) for line in lines(content)][-1], block.end()
            elif block["language"] == "python":
                printed, at = _python(content), block.end()
            elif block["language"] == "text" and text[at : block.start()].strip() == "" and at >= 0:
                if os.environ.get(UPDATE):
                    content = _shown(printed, content)
                else:
                    compare(content, printed)
            new += [text[end : block.start("text")], content]
            end = block.end("text")
        if os.environ.get(UPDATE):
            self.page.write_text("".join([*new, text[end:]]), "utf-8")

    def command(self, line: str) -> str:
        """What a line of a page prints; its exit status must be the one that the line names."""
        status, words = STATUS.search(line), STATUS.sub("", line)
        emulates = words.startswith("tcpscape emulate ")
        if emulates and (reason := _lacks(words)):
            warnings.warn(f"not carried out: {words}: {reason}", stacklevel=2)
            return ""
        is_ours = words.startswith("tcpscape ") and not emulates and not needs_shell(words)
        said = self.cli(*shlex.split(words, comments=True)[1:]) if is_ours else self._shell(words)
        assert said.status == int(status[1] if status else 0), f"{words}\n{said.out}\n{said.err}"
        return said.out + said.err

    def _shell(self, words: str) -> Said:
        """A command that needs a shell: a pipe, a redirection, another program."""
        tools = self.place / ".bin"
        if not tools.exists():
            tools.mkdir()
            python = shlex.join(forked.python())
            (tools / "tcpscape").write_text(f'#!/bin/sh\nexec {python} -m tcpscape "$@"\n')
            (tools / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
            for tool in tools.iterdir():
                tool.chmod(0o755)
        env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", words], cwd=self.place, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return Said(done.returncode, done.stdout, done.stderr)


def _lacks(words: str) -> str | None:
    """What this machine lacks to emulate a path for a command, or None."""
    program = shlex.split(words.partition(" -- ")[2])[0]
    return host.unavailable() or (None if shutil.which(program) else f"{program} is not installed")


def _python(code: str) -> str:
    """What a Python block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "page", "exec"), {})
    return out.getvalue()


def needs_shell(words: str) -> bool:
    """Whether a pipe, a redirection or another operator of a shell is among the words."""
    lexer = shlex.shlex(words, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return any(token and set(token) <= set("|<>;&()") for token in lexer)


def lines(block: str) -> list[str]:
    """The commands of a block; a backslash at the end of a line continues it."""
    return [line.removeprefix("$ ") for line in block.replace("\\\n", "").splitlines() if line.startswith("$ ")]


def compare(shown: str, printed: str) -> None:
    """Refuses what a page shows and the command does not print; runs of spaces are one space."""
    rest = [" ".join(line.split()) for line in printed.splitlines()]
    for line in (" ".join(line.split()) for line in shown.splitlines()):
        if line not in ("…", "") and not MEASURED.search(line):
            assert line in rest, f"the page shows\n{line}\nwhich is not printed (any more); {UPDATE}=1 writes the page anew:\n{printed}"
            rest = rest[rest.index(line) + 1 :]


def _shown(printed: str, before: str) -> str:
    """The output as a page shows it: all of it, or as many lines as before where `…` ended them."""
    rows = [line.rstrip() for line in printed.strip("\n").splitlines()]
    kept = before.rstrip("\n").removesuffix("…").rstrip("\n").splitlines()
    is_cut = bool(kept) and before.rstrip().endswith("…") and len(kept) < len(rows)
    return "\n".join([*(rows[: len(kept)] if is_cut else rows), *(["…"] if is_cut else [])]) + "\n"
