"""What the page shows in other words: its path in tc's words and as a sentence, and all of it as a command, a file and Python to take along.

`POST /api/path` also says what tc's words that were typed mean for the fields. What `POST /api/take` gives runs the very same trials: a path of
options is one command; what options cannot say (tc's own words, changes on the way) is a campaign's file that the command writes first.
Which of the two, :class:`Take` finds by making the campaign that the options stand for and comparing its scenarios.
"""

from __future__ import annotations

import pprint
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import yaml
from pydantic import Field
from typing_extensions import TypedDict

from tcpscape import engines, units
from tcpscape.campaign import axes as levels
from tcpscape.campaign import source
from tcpscape.campaign.campaign import Campaign
from tcpscape.controls import spelling
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import files
from tcpscape.scenario.path import Netem
from tcpscape.scenario.scenario import PARTS, Part, Scenario
from tcpscape.scenario.vocabulary import PATH
from tcpscape.web import axes, texts
from tcpscape.web.routes import Asked, Context, Post
from tcpscape.web.state import NETWORK, OF_DIRECTIONS, OF_QUEUE, PageState, State
from tcpscape.words import paths

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
    """The answer about a state. :raises TcpscapeError: one line that names the field or the part of the path, the problem and the fix."""
    scenario = state.scenario(next(iter(state.cca), "cubic"))
    scenario.expect_path()
    engines.make("model").check(scenario)
    plain = normalised(state, scenario)
    return PathDocument(
        state=plain,
        fixed=list(plain.fixed),
        says=_says(plain, scenario),
        words={part: texts.words(scenario, part) for part in PARTS},
        text=paths.in_words(scenario),
        notes=list(_notes(plain, scenario)),
    )


def normalised(state: State, scenario: Scenario) -> State:
    """The state with fields in place of its words where they say the same scenario."""
    if not state.words:
        return state
    said, _ = texts.fields(scenario.model_copy(update=dict.fromkeys(NETWORK, ())))
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


FILE = "explorer.yaml"
"""The file that commands and comments name."""
MOST_ADDRESS = 2000
"""Characters of the page's address in a comment."""
MOST_AXES, MOST_LEVELS = 2, 50
"""A curve has one axis, a map two; each has at most so many levels."""
PLAIN = (*(name for name in PATH if name in State.model_fields), "rcvbuf", "app", "read", "duration", "kernel")
"""Fields of the state that are options of `tcpscape sweep` under the same name."""
BY_AXIS = tuple(name for name, field in State.model_fields.items() if field.annotation is str and name not in (*PLAIN, "mix"))
"""Further fields of the state that are text: `tcpscape sweep` has them under `--axis`."""
ENTRIES = {"links": "link", "transfers": "transfers", "probes": "probe"}
"""Field of the state → option of `tcpscape sweep`, one for each entry."""
OF_RATE = ("buffer", "queue")
"""Fields that only a path with a rate has."""
WIDTH = 76
"""Characters of a line of a command, about: a dialog shows it without scrolling."""


class TakenTexts(TypedDict):
    """The three texts."""

    command: str
    yaml: str
    python: str


class Take(Asked):
    """What is to be taken along."""

    state: PageState
    seeds: str = "20"
    """As a campaign has them: `20` is 0 to 19."""
    axes: dict[str, Annotated[tuple[str, ...], Field(max_length=MOST_LEVELS)]] = Field(default_factory=dict, max_length=MOST_AXES)
    """Axis (a name of :data:`tcpscape.web.axes.AXES`) → its levels as written; none: those of its curve, of two axes those of their map."""
    resolution: int = Field(default=20, ge=2, le=50)
    """Cells of a map to each side."""
    address: str = ""
    """Of the page, for the comment of the file."""


def take(_: Context, asked: Take) -> TakenTexts:
    """The three texts. :raises TcpscapeError: one line, for a state or an axis that makes no sense."""
    known = {name: axes.find(name, asked.state) for name in asked.axes}
    varied = {name: values or _shown(asked, known[name]) for name, values in asked.axes.items()}
    copies = Copies(asked.state, asked.seeds, varied)
    copies.expect_sense()
    return TakenTexts(command=copies.command, yaml=copies.file(asked.address), python=copies.python)


@dataclass(frozen=True)
class Copies:
    """A state, seeds and axes in three languages."""

    state: State
    seeds: str = "20"
    axes: Mapping[str, Sequence[str]] | None = None

    @cached_property
    def campaign(self) -> Campaign:
        """What the page runs."""
        varied = {name: list(values) for name, values in (self.axes or {}).items()}
        return self.state.campaign(seeds=self.seeds, **({"axes": varied} if varied else {}))

    def expect_sense(self) -> None:
        """Refuses a state that cannot run. :raises TcpscapeError: one line that names the field."""
        model = engines.make("model")
        for case in self.campaign.cases():
            model.check(case.scenario)

    @cached_property
    def options(self) -> dict[str, str | list[str]] | None:
        """The fields as options of `tcpscape sweep`; None where they cannot say these scenarios."""
        varied = {name: list(values) for name, values in (self.axes or {}).items()}
        left_out = () if self.state.rate or "rate" in varied else OF_RATE
        fields = {name: str(text) for name in (*PLAIN, *BY_AXIS) if name not in left_out and (text := getattr(self.state, name))}
        said: dict[str, str | list[str]] = {**fields, **({"ecn": "yes"} if self.state.ecn else {}), **varied}
        try:
            typed = {name: _typed(value) for name, value in said.items()}
            if any(len(levels.levels(value, name)) != 1 for name, value in typed.items() if name not in varied):
                return None
            if not self.state.mix and tuple(spelling.parse_labels(",".join(self.state.cca))) != self.campaign.cca:
                return None
            controls = {"mix": self.state.mix} if self.state.mix else {"cca": self.campaign.cca}
            meant = source.campaign(None, typed, controls | self.state.network)
            is_same = [c.scenario.address() for c in meant.cases()] == [c.scenario.address() for c in self.campaign.cases()]
        except TcpscapeError:
            return None
        return said if is_same else None

    @property
    def _entries(self) -> dict[str, list[str]]:
        """Links, transfers and probes as arguments of :func:`tcpscape.sweep`."""
        return {ENTRIES[name]: texts for name, texts in self.state.network.items()}

    @cached_property
    def command(self) -> str:
        """What to type: `tcpscape sweep …`, with a file before it where options cannot say the path."""
        if self.options is None:
            text = _yaml(self.campaign)
            end = "END"
            while end in text.splitlines():
                end += "_"
            return f"cat > {FILE} <<'{end}'\n{text}{end}\ntcpscape sweep {FILE}"
        words = []
        for name, value in self.options.items():
            option = [f"--{name.replace('_', '-')}", _typed(value)] if name in PLAIN else ["--axis", f"{name}={_typed(value)}"]
            words.append(shlex.join(option))
        controls = ["--mix", self.state.mix] if self.state.mix else ["--cca", ",".join(self.campaign.cca)]
        words += [shlex.join([f"--{option}", text]) for name, option in ENTRIES.items() for text in getattr(self.state, name)]
        return _lines(["tcpscape sweep", *words, shlex.join(controls), shlex.join(["--seeds", self.seeds])])

    def file(self, address: str = "") -> str:
        """A scenario's file, or that of a campaign where axes vary; its first lines say where it is from and how it is run."""
        from tcpscape import __version__

        shown = "".join(c for c in address if c.isprintable())[:MOST_ADDRESS]
        head = [f"Taken from tcpscape explore {__version__}" + (f", {shown}" if shown else "")]
        if self.axes or self.state.mix:
            return _commented([*head, f"tcpscape sweep {FILE}"], _yaml(self.campaign))
        first = self.campaign.cases()[0].scenario
        run = shlex.join(["tcpscape", "run", FILE, "--cca", ",".join(self.campaign.cca), "--seeds", self.seeds])
        return _commented([*head, run], files.dump(first))

    @cached_property
    def python(self) -> str:
        """A program: the same as a call of :func:`tcpscape.sweep`."""
        if self.options is None:
            said: dict[str, Any] = {"campaign": _plain(self.campaign)}
        else:
            plain = {name: value for name, value in self.options.items() if name in PLAIN}
            others = {name: value for name, value in self.options.items() if name not in PLAIN}
            controls = {"mix": self.state.mix} if self.state.mix else {"cca": list(self.campaign.cca)}
            said = {**plain, **({"axes": others} if others else {}), **self._entries, **controls, "seeds": _seeds(self.seeds)}
        arguments = "".join(_argument(name, value) for name, value in said.items())
        return f"import tcpscape\n\noutcome = tcpscape.sweep(\n{arguments})\nprint(outcome.frame())\n"


ROUTES = (Post("path", PathAsked, lambda _, asked: described(asked.state)), Post("take", Take, take))


def _shown(asked: Take, axis: axes.Axis) -> tuple[str, ...]:
    """The levels of an axis as the page shows them."""
    return axis.levels(asked.state) if len(asked.axes) == 1 else axis.cells(asked.state, asked.resolution)


def _typed(value: str | Sequence[str]) -> str:
    """A value, or several, as the command line has them."""
    return value if isinstance(value, str) else ("|" if any("," in text for text in value) else ",").join(value)


def _argument(name: str, value: object) -> str:
    """A line of a call, or several for a large value."""
    return f"    {name}={pprint.pformat(value, width=WIDTH - 8, sort_dicts=False)},\n".replace("\n ", f"\n    {' ' * len(name)} ")


def _seeds(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _plain(campaign: Campaign) -> dict[str, Any]:
    """A campaign as plain values."""
    return {"name": campaign.name, **campaign.to_dict()}


def _yaml(campaign: Campaign) -> str:
    return yaml.safe_dump(_plain(campaign), sort_keys=False, allow_unicode=True, width=WIDTH)


def _commented(comments: Sequence[str], text: str) -> str:
    return "".join(f"# {line}\n" for line in comments) + text


def _lines(words: Sequence[str]) -> str:
    """A command, broken where a line becomes too long."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) < WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}")
    return " \\\n".join(lines)
