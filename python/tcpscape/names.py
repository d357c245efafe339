"""Names and other texts of users where they become more than text: a file's name, a line to copy into a shell.

A name is one path component of printable characters (:func:`expect`). Whatever is made into a file's name goes through :func:`component`, a path in a
command to copy through :func:`argument`, whatever is printed through :func:`tcpscape.errors.printable`, so that no text moves the cursor, breaks a
line, leaves its directory or is read as an option, also where it was not checked: in a damaged result, or in another tool's file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tcpscape.errors import ScenarioError, TcpscapeError, is_plain, printable, refuse, shown

MOST_CHARACTERS = 200
"""Characters of the longest name."""
MOST_BYTES = 150
"""Bytes of the longest file name that :func:`component` makes: file systems take 255, and endings are added."""
LINES = "\t\n\r"
"""Control characters that a text of several lines may have."""
_DIGITS = 8


def expect(value: object, field: str = "name", kind: type[TcpscapeError] = ScenarioError) -> str:
    """A name: one path component of at most 200 printable characters, not like an option. :raises TcpscapeError: one line, of the class `kind`."""
    fix = "write letters, digits and spaces"
    if not isinstance(value, str):
        refuse(field, f"{shown(value)} is not a text", "write it in quotes", kind)
    if not value.strip():
        refuse(field, "it is empty", fix, kind)
    if len(value) > MOST_CHARACTERS:
        refuse(field, f"it has {len(value)} characters", f"write at most {MOST_CHARACTERS}", kind)
    if not is_plain(value):
        refuse(field, f"{shown(value)} has a character that cannot be printed", fix, kind)
    if value in (".", "..") or "/" in value or "\\" in value:
        refuse(field, f"{shown(value)} is a path", f"{fix}: a name is one part of a path", kind)
    if value.startswith("-"):
        refuse(field, f"{shown(value)} begins with -, as an option does", "begin it with a letter or a digit", kind)
    return value


def expect_texts(data: object, source: str) -> None:
    """Refuses control characters, changes of direction and surrogates in the texts of plain values, keys too; lines may end.

    :raises ScenarioError: one line that names the field, or `source`.
    """
    for field, text in _texts(data, source):
        if not is_plain(text) and not is_plain(text.translate(_WITHOUT_LINES)):
            refuse(field, f"{shown(text)} has a character that cannot be printed", "remove it")


def component(text: str, keep: str = "") -> str:
    """The text as one part of a path, never empty, hidden, longer than 150 bytes or like an option.

    What is no letter, digit or one of `._+-` and of `keep` becomes `_`; of a longer text the end becomes a digest of the whole.
    """
    safe = re.sub(r"^[.-]+|^$", "_", re.sub(rf"[^\w.+{re.escape(keep)}-]+", "_", text))
    encoded = safe.encode()
    if len(encoded) <= MOST_BYTES:
        return safe
    from hashlib import sha256  # it takes longer to import than all else here

    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{encoded[: MOST_BYTES - _DIGITS - 1].decode('utf-8', 'ignore')}-{digest}"


def expect_line(value: str, field: str) -> str:
    """A text of one printable line, for example a value of an axis. :raises ScenarioError: one line that names the field."""
    if not is_plain(value):
        refuse(field, f"{shown(value)} has a character that cannot be printed", "remove it")
    return value


def argument(path: object) -> str:
    """A path as a word of a command to copy: quoted, and never read as an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def command(text: str) -> str:
    """A command line from a file as one that is safe to copy: a single command `tcpscape …` with its words quoted; any other text as one word."""
    if _IN_PYTHON.fullmatch(text) and is_plain(text):
        return text
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    return printable(shlex.join(words) if words[:1] == ["tcpscape"] else shlex.quote(text))


def wrapped(line: str, width: int) -> list[str]:
    """A line of shell in lines of at most `width` characters that a shell reads as the same words: each but the last ends with a backslash.

    A comment that does not fit is on lines of its own after the command. A word that is longer than the width goes on after a space between its
    single quotes, which are closed and opened again; without any it stays whole.
    """
    if len(line) <= width:
        return [line]
    words = _WORD.findall(line)
    end = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    command = [part for filled in _filled(words[:end], width, " \\", "    ") for part in _between_quotes(filled, width)]
    return [*command, *_filled(words[end:], width, "", "# ")]


def _between_quotes(line: str, width: int) -> Iterator[str]:
    """A line that is too long in lines that a shell puts together again, as far as it has spaces between single quotes."""
    while len(line) > width and '"' not in line:
        quoted = [place for match in _QUOTED.finditer(line) for place in range(match.start(), match.end())]
        places = [place for place in quoted if line[place] == " " and place + len(" '\\") <= width]
        if not places or places[-1] < 1 + len("' "):
            break
        yield f"{line[: places[-1] + 1]}'\\"
        line = f"'{line[places[-1] + 1 :]}"
    yield line


def _filled(words: Sequence[str], width: int, end: str, begin: str) -> list[str]:
    """The words in lines with this end, each but the first with this begin."""
    lines: list[str] = []
    for place, word in enumerate(words):
        room = width - (len(end) if place < len(words) - 1 else 0)
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{begin if lines else ''}{word}")
    return [*(f"{line}{end}" for line in lines[:-1]), *lines[-1:]]


def with_options(line: str, options: str) -> str:
    """A command line with these options, each with a value, in place of what it says of them: no option is given twice."""
    new = shlex.split(options)
    words, old = [], iter(shlex.split(line))
    for word in old:
        name, equals, _ = word.partition("=")
        if name.startswith("--") and name in new:
            if not equals:
                next(old, None)
        else:
            words.append(word)
    end = words.index("--") if "--" in words else len(words)
    return shlex.join([*words[:end], *new, *words[end:]])


_IN_PYTHON = re.compile(r"tcpscape\.\w+\(…, out='[\w./+ -]*'\) in Python")
"""What a record has in place of the command line, where a function measured it."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|['"\\])+""")
"""A word of a line of shell as it is written, with its quotes; the last alternative is for quotes that nothing closes."""
_QUOTED = re.compile(r"(?<!\\)'[^']*'")
"""A part of a line between single quotes."""
_WITHOUT_LINES = {ord(character): " " for character in LINES}


def _texts(data: object, source: str) -> Iterator[tuple[str, str]]:
    """Each text in plain values, with the field that it is in or, of a key, the field around it."""
    waiting, seen = [(source, data)], set[int]()
    while waiting:
        field, value = waiting.pop()
        if isinstance(value, str):
            yield field, value
        elif isinstance(value, Mapping | list | tuple) and id(value) not in seen:  # a value of YAML may contain itself
            seen.add(id(value))
            if isinstance(value, Mapping):
                waiting += [(field, key) for key in value if isinstance(key, str)]
                waiting += [(key if isinstance(key, str) else field, item) for key, item in value.items()]
            else:
                waiting += [(field, item) for item in value]
