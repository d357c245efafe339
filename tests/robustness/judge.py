"""What is wrong with how a case ended: one word of a kind, and what shows it. Nothing where it ended as it may."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from robustness.case import Case
from robustness.process import LIMIT_S, Ended

MOST_MB = 500.0
MOST_CHARACTERS = 400
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FORM = re.compile(r"error: \S.*?: \S")
"""`error: field: problem; fix`."""
EXIT_OK, EXIT_CHECK, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130


def findings(case: Case, ended: Ended) -> Iterator[tuple[str, str]]:
    """Every kind of misbehaviour with what shows it."""
    if ended.timed_out:
        was_running = ended.status == EXIT_INTERRUPTED and ended.cpu_s > LIMIT_S / 4
        yield "long" if was_running else "hang", f"stopped after {ended.seconds:.0f} s, {ended.cpu_s:.0f} s of the processor, status {ended.status}"
    elif ended.status not in (EXIT_OK, EXIT_CHECK, EXIT_REFUSED):
        yield "status", f"status {ended.status}: {ended.err[-200:]!r}"
    if "Traceback (most recent call last)" in ended.err or "panicked at" in ended.err:
        yield "traceback", _place(ended.err)
    elif ended.status == EXIT_CHECK and not any(word.startswith("--ch") for word in case.words):
        yield "status", f"status 1 without a check: {ended.err[-200:]!r}"
    elif ended.status == EXIT_REFUSED and not ended.timed_out:
        yield from message(ended.err)
    if case.nonsense and ended.status != EXIT_REFUSED and not ended.timed_out:
        yield "accepted nonsense", f"status {ended.status}"
    if ended.peak_mb > MOST_MB:
        yield "memory", f"{ended.peak_mb:.0f} MB"
    if ended.strays:
        yield "stray file", ", ".join(ended.strays[:4])
    if ended.orphans:
        yield "process left", ""
    if match := CONTROL.search(ended.out):
        yield "control character on stdout", repr(ended.out[max(0, match.start() - 40) : match.end() + 20])
    for name, text in ended.pages.items():
        if live := handlers(text):
            yield "live markup", f"{name}: {live[0]}"


def message(err: str) -> Iterator[tuple[str, str]]:
    lines = err.splitlines()
    if not err.strip():
        yield "no message", ""
    elif len(lines) != 1:
        yield "several lines", f"{len(lines)} lines: {err[:300]!r}"
    elif not FORM.match(err):
        yield "form of message", err[:200]
    if len(err) > MOST_CHARACTERS + 1:
        yield "long message", f"{len(err)} characters: {err[:160]}"
    if CONTROL.search(err):
        yield "control character in message", repr(err[:200])


def _place(err: str) -> str:
    """The last line of a traceback and the innermost line of ours in it."""
    ours = re.findall(r'File ".*?tcpscape/([\w/]+\.py)", line (\d+)', err)
    last = next((line for line in reversed(err.splitlines()) if line.strip()), "")
    return f"{':'.join(ours[-1]) if ours else '?'} {last[:160]}"


class _Handlers(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            outside = name in ("src", "href") and re.match(r"\s*(?:javascript|vbscript|https?|//)", value or "", re.IGNORECASE) and tag != "a"
            if name.startswith("on") or outside or (name == "href" and (value or "").strip().lower().startswith("javascript")):
                self.live.append(f"<{tag} {name}={value!r}>")


def handlers(page: str) -> list[str]:
    """Inline handlers and addresses of other hosts in a page."""
    parser = _Handlers()
    parser.feed(page)
    return parser.live
