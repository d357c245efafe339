"""`POST /api/path`: a state's path in tc's words and in a sentence, and what words that were typed mean for the fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typing_extensions import TypedDict

from tcpscape import engines, units
from tcpscape.scenario import summary
from tcpscape.scenario.path import Netem
from tcpscape.scenario.scenario import PARTS, Part, Scenario
from tcpscape.web import texts
from tcpscape.web.routes import Asked, Post
from tcpscape.web.state import OF_DIRECTIONS, OF_QUEUE, PageState, State

DIRECTIONS: tuple[Part, Part] = ("forward", "reverse")


class PathDocument(TypedDict):
    """The answer about a state."""

    state: State
    """The same with words turned into fields where these can say them (then `words` is without that part); otherwise as it was."""
    fixed: list[str]
    """Names of the fields that words replace."""
    says: dict[str, str]
    """What the words say of these, as texts."""
    words: dict[Part, str]
    """tc's words (`then` between hops, `none` without one), which the state's `words` take."""
    text: str
    """The path in a sentence, as `tcpscape run` prints it."""
    notes: list[str]
    """What is to be known of these words."""


class PathAsked(Asked):
    """A state whose path is asked for."""

    state: PageState


def described(state: State) -> PathDocument:
    """The answer about a state.

    :raises TcpscapeError: one line that names the field or the part of the path, the problem and the fix.
    """
    scenario = state.scenario(next(iter(state.cca), "cubic"))
    scenario.expect_path()
    engines.make("model").check(scenario)
    plain = normalised(state, scenario)
    return PathDocument(
        state=plain, fixed=list(plain.fixed), says=_says(plain, scenario),
        words={part: texts.words(scenario, part) for part in PARTS}, text=summary.in_words(scenario), notes=list(_notes(plain, scenario)),
    )  # fmt: skip


def normalised(state: State, scenario: Scenario) -> State:
    """The state with fields in place of its words where they say the same scenario."""
    if not state.words:
        return state
    said, _ = texts.fields(scenario)
    left = said.get("words", {})
    groups = ((DIRECTIONS, OF_DIRECTIONS), (("bottleneck",), ("rate", *OF_QUEUE)))
    fields: dict[str, Any] = {}
    kept = dict(state.words)
    for parts, names in groups:
        if any(part in state.words for part in parts) and not any(part in left for part in parts):
            fields |= {name: said.get(name, "") for name in names}
            kept = {part: text for part, text in kept.items() if part not in parts}
    return state.replace(**fields, words=kept)


def _says(state: State, scenario: Scenario) -> dict[str, str]:
    """What words say of the fields that they replace, of the data where the directions differ."""
    said: dict[str, str] = {}
    if any(part in state.words for part in DIRECTIONS):
        queues = [queue for nested in scenario.queues("forward", "reverse") for queue in nested]
        said["rtt"] = units.format_time(scenario.path_rtt_ns)
        said["jitter"] = units.format_time(next((q.jitter_ns for q in queues if q.jitter_ns), 0))
        said["distribution"] = next((q.distribution for q in queues if q.distribution), "") or ""
        said["loss"] = units.brief_percent(next((q.loss for q in queues if q.loss), 0.0))
    if "bottleneck" in state.words:
        rate = next((q.rate_bps for nested in scenario.queues("bottleneck") for q in nested if q.rate_bps), None)
        said["rate"] = units.format_rate(rate) if rate else ""
    return said


def _notes(state: State, scenario: Scenario) -> Iterator[str]:
    """What is to be known of the words."""
    for part in DIRECTIONS:
        first = next(iter(getattr(scenario, part)), None)
        if part in state.words and isinstance(first, str):
            yield f"{part}: these words stand at the sending host's egress, where netem treats a super-packet as a whole"
    if state.words and "reverse" not in state.words and "forward" in state.words:
        yield "reverse: the ACKs still have what the fields say"
    if any(isinstance(hop, Netem) and hop.jitter and hop.order != "reorder" for part in DIRECTIONS for hop in getattr(scenario, part)):
        yield "jitter that keeps the order is tcpscape's own queue: a usual tc does not have it"


ROUTES = (Post("path", PathAsked, lambda _, asked: described(asked.state)),)
