"""The exceptions for errors that a user can cause, as one tree.

Every message is one line, `field: problem; fix`. The command line prints it and exits with status 2. The exception of a bug is not in this tree
and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr
from typing import NoReturn

EXIT_USER_ERROR = 2
"""Exit status of the command line after a :class:`TcpscapeError`."""
EXIT_OUTPUT = 74
"""Exit status where stdout could not be written, on a full disk for example (`EX_IOERR` of BSD's sysexits.h)."""
EXIT_HUNG_UP = 129
"""Exit status after SIGHUP, a closed terminal; this and the next two are 128 and the signal's number, by the shells' convention."""
EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C."""
EXIT_TERMINATED = 143
"""Exit status after SIGTERM."""
INTERRUPTED = "interrupted"
"""Message after a signal of commands that have no better one."""
MOST_SHOWN = 80
"""Characters of a value that a message shows."""
MOST_MESSAGE = 380
"""Characters of a whole message: with `error: ` less than five lines of a terminal."""
MOST_WORD = 160
"""Characters of a word in a message; of a longer one the beginning and the end are kept, so that a file's name is."""
MOST_BITS = 512
"""Of an integer whose digits are shown: a message is no place for more than 150 of them."""
SPACES = "\u00a0\u2009\u202f"
"""Spaces that are not printable by Python's definition, and harmless: no-break, thin, narrow no-break."""
_LINE_BREAKS = str.maketrans(dict.fromkeys("\t\n\v\f\r\u0085\u2028\u2029", " "))


def is_plain(text: str) -> bool:
    """Whether every character is printable: no control character, line break, change of direction or surrogate (Unicode's Cc, Cf, Cs, Zl, Zp, …)."""
    return text.isprintable() or all(character.isprintable() or character in SPACES for character in text)


def printable(text: str) -> str:
    r"""The text with what is not printable made visible, `\x1b` for ESC: always one line that no terminal interprets."""
    if is_plain(text):
        return text
    return "".join(c if c.isprintable() or c in SPACES else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shown(value: object, most: int = MOST_SHOWN) -> str:
    r"""A value as a message shows it: as Python writes it, without control characters, and cut to `most` characters.

    `shown("50\x1b[2J")` is `'50\x1b[2J'` with the escape written out; of a text of a megabyte the beginning and the length are shown.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > MOST_BITS:
        return f"a number of about {round(value.bit_length() * 0.30103)} digits"
    if isinstance(value, (str, bytes)):
        text = repr(value[:most])
        length = f"… ({len(value)} {'characters' if isinstance(value, str) else 'bytes'})" if len(value) > most else ""
    else:
        text, length = printable(_short_repr(value, most)), ""
    return f"{text if len(text) <= 2 * most else f'{text[:most]}…'}{length}"


def _short_repr(value: object, most: int) -> str:
    """What `repr` gives, of large values only the beginning."""
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = most
    short.maxdict = short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = 6
    short.maxlevel = 4
    try:
        return short.repr(value)
    except Exception:  # a `__repr__` of what Python does not write in digits: a long integer in a list
        return f"a value of the type {type(value).__name__}"


class TcpscapeError(Exception):
    """An error that the user can correct; the message is one line, `field: problem; fix`.

    Whatever a message is made of, what is kept of it is one line without control characters, of at most :data:`MOST_MESSAGE` characters. Its parts
    are attributes: given by :func:`refuse`, taken from the line where there is nothing else, as of what Rust says.
    """

    def __init__(self, message: str = "", parts: tuple[str, str, str] | None = None) -> None:
        line = _one_line(message)
        super().__init__(line)
        self.field, self.problem, self.fix = map(_one_line, parts) if parts else _parts(line)

    @property
    def what(self) -> str:
        """The line without its fix: `field: problem`."""
        return ": ".join(filter(None, (self.field, self.problem)))

    @property
    def reason(self) -> str:
        """The line without its field: `problem; fix`."""
        return "; ".join(filter(None, (self.problem, self.fix)))


def _parts(line: str) -> tuple[str, str, str]:
    """Field, problem and fix of a line; empty where it has none."""
    field, colon, rest = line.partition(": ")
    problem, semicolon, fix = (rest if colon else line).rpartition("; ")
    return (field if colon else "", problem, fix) if semicolon else (field if colon else "", fix, "")


def _one_line(message: str) -> str:
    """A message without line breaks and control characters; of a long one, words are shortened first, then the middle: it ends in the fix."""
    text = printable(message.translate(_LINE_BREAKS))
    if len(text) <= MOST_MESSAGE:
        return text
    return _without_middle(" ".join(_without_middle(word, MOST_WORD) for word in text.split(" ")), MOST_MESSAGE)


def _without_middle(text: str, most: int) -> str:
    """A text of at most so many characters: two thirds from its beginning, the rest from its end."""
    head = most * 2 // 3
    return text if len(text) <= most else f"{text[:head]}…{text[head + 1 - most :]}"


class UnitError(TcpscapeError):
    """A quantity that cannot be read (`10 parsecs`)."""


class ScenarioError(TcpscapeError):
    """A scenario, flow, path or option that is not valid."""


class WordsError(ScenarioError):
    """Words that tc would refuse; the message names the wrong word."""


class EngineError(TcpscapeError):
    """An engine that is unknown, not built or not possible on this machine."""


class StoreError(TcpscapeError):
    """A result store that cannot be read or written."""


class StudyError(TcpscapeError):
    """A study that is unknown or malformed."""


def instead(typed: str, names: Iterable[str]) -> str:
    """What to write in place of a name that is unknown: those that are spelt alike, and all of them."""
    from difflib import get_close_matches

    known = list(names)
    near = get_close_matches(typed.lower().replace("-", "_"), known, n=2)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{meant}choose {', '.join(known)}"


def refuse(field: str, problem: str, fix: str, kind: type[TcpscapeError] = ScenarioError) -> NoReturn:
    """Raises `kind` with the message `field: problem; fix`."""
    shortened = field if len(field) <= 2 * MOST_SHOWN else f"{field[:MOST_SHOWN]}…"
    raise kind(f"{shortened}: {problem}; {fix}", (shortened, problem, fix))
