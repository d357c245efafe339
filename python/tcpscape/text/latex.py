"""Tables and texts for LaTeX: nothing of a text is a command, and what LaTeX's usual fonts lack is written in mathematics.

Source: the documentation of the package booktabs, and Pakin, *The Comprehensive LaTeX Symbol List*, §1 (characters that LaTeX itself means).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcpscape.errors import printable
from tcpscape.text.table import Table

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}"}
_SPECIAL |= {"|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", **{character: f"\\{character}" for character in "&%$#_{}"}}
_MATHEMATICS = {"×": r"\times", "±": r"\pm", "∞": r"\infty", "≥": r"\geq", "≤": r"\leq", "→": r"\rightarrow", "≈": r"\approx", "√": r"\surd"}
_MATHEMATICS |= {"−": "-", "Δ": r"\Delta", "σ": r"\sigma", "α": r"\alpha", "β": r"\beta"}
_TEXT = {"–": "--", "—": "---", "…": r"\ldots{}", "µ": r"\textmu{}", "μ": r"\textmu{}", "·": r"\textperiodcentered{}", "\u00a0": "~", "§": r"\S{}"}
_WRITTEN = _SPECIAL | {character: f"${name}$" for character, name in _MATHEMATICS.items()} | _TEXT
"""Character → how LaTeX writes it."""
BREAK = r" \\ "
"""Ends a line in a heading."""
PAGE = 84
"""Characters of a table that fit across a page of two columns, in \\small."""


def escaped(content: object) -> str:
    """A text in which LaTeX finds no command."""
    text = re.sub(r"(?<=[0-9\]]) %", "\u00a0%", printable(str(content)))
    return "".join(_WRITTEN.get(character, character) for character in text)


def tabular(table: Table, caption: str, label: str) -> str:
    """A `table*` with the rules of booktabs, as wide as a page; columns that do not fit are named in a comment.

    :param caption: a text, which is escaped here; the notes of the table follow it.
    :param label: what a reference calls it, behind `tab:`.
    """
    left_out = table.left_out(PAGE)
    fitting = table.fitted(PAGE)
    words = [i < fitting.left or name in fitting.words for i, name in enumerate(fitting.columns)]
    headings = [_stacked(fitting.heading(i), "l" if is_words else "r") for i, is_words in enumerate(words)]
    lines = [
        *([f"% left out for the width: {', '.join(map(printable, left_out))}"] if left_out else []),
        r"\begin{table*}",
        r"  \centering\small\setlength{\tabcolsep}{4pt}",
        f"  \\caption{{{escaped(' '.join((caption, *table.notes)))}}}",
        f"  \\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', label).strip('-')}}}",
        f"  \\begin{{tabular}}{{@{{}}{''.join('l' if is_words else 'r' for is_words in words)}@{{}}}}",
        r"    \toprule",
        _row(headings),
        r"    \midrule",
        *(_row([_cell(cell) for cell in row]) for row in fitting.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"


def _cell(content: object) -> str:
    """A cell; braces keep one that begins with a bracket or a star from being an argument of the end of the row before it."""
    text = escaped(content)
    return f"{{{text}}}" if text.startswith(("[", "*")) else text


def _stacked(heading: str, side: str) -> str:
    """A heading in its lines, one below the other."""
    lines = [_cell(line) for line in heading.split("\n")]
    return f"\\shortstack[{side}]{{{BREAK.join(lines)}}}" if len(lines) > 1 else lines[0]
