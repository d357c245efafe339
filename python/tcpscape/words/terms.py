"""Terms of the product: what each means in a few words, and where a text uses it for the first time.

Screens have the meanings as a note below a table (:func:`glossed`); reports and the documentation's site link the first use of a term
(:func:`first_uses`), a report to its own list of terms, the site to docs/glossary.md, where the long meanings are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

GLOSSES: Mapping[str, str] = {
    "cliff": "the level that halves its goodput",
    "zone": "which side of its cliff",
    "chaos zone": "single runs differ much there",
    "not identifiable": "the measurement cannot show it",
    "runs for ±10 %": "so many give that interval",
}
"""A term of ours → what it means in a few words."""


def glossed(terms: Iterable[str]) -> list[str]:
    """One note with what these terms mean; none of none."""
    text = "; ".join(f"{term}: {GLOSSES[term]}" for term in terms)
    return [text] if text else []


def anchor(term: str) -> str:
    """The term's place in docs/glossary.md: `chaos-zone`."""
    return re.sub(r"\W+", "-", term).strip("-")


def first_uses(text: str, used: list[str]) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with the term that it is where it is the first use of one, else empty.

    `used`: the terms that stood before; those of this text are added.
    """
    end = 0
    for match in _TERM.finditer(text):
        term = match[1].lower()
        if term not in used:
            used.append(term)
            yield text[end : match.start()], ""
            yield match[0], term
            end = match.end()
    yield text[end:], ""


_TERM = re.compile(rf"(?<![\w-])({'|'.join(re.escape(term) for term in sorted(GLOSSES, key=len, reverse=True))})s?(?![\w-])", re.IGNORECASE)
