"""Commands that go on from an advice: more runs where it is undecided, and how the recommended congestion control shares the path."""

from __future__ import annotations

import shlex

from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.advice.data import AdviceData
from tcpscape.names import with_options
from tcpscape.scenario.conditions import PATH_FIELDS, Conditions

MOST_ADVISED = 400
"""Most further runs that are advised."""


def more_runs(advice: AdviceData, typed: str) -> str:
    """The command line that was typed, with as many runs as would probably decide; empty where it is decided, or they are too many."""
    d = advice.decision
    if d.verdict != "undecided" or not d.gain or d.more > MOST_ADVISED:
        return ""
    return f"{with_options(typed, f'--seeds {d.gain.n + d.more}')} (probably enough to decide)"


def sharing(advice: AdviceData) -> str:
    """The command that shows how the recommended congestion control shares the path with Linux's default; empty where that is recommended."""
    if advice.choice in (None, DEFAULT):
        return ""
    words = ["tcpscape", "sweep", *_of_path(advice.path), "--mix", f"{DEFAULT},{advice.choice}"]
    return f"{shlex.join(words)} (how {advice.choice} shares this path with {DEFAULT})"


def _of_path(path: Conditions) -> list[str]:
    """The path as options of `sweep`."""
    values = path.model_dump(mode="json", exclude_defaults=True)
    words = [word for name in PATH_FIELDS if name in values for word in (f"--{name.replace('_', '-')}", str(values[name]))]
    kernel = values.get("kernel", {})
    settings = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in kernel.items() if name != "profile"]
    return [*words, *(["--kernel", ",".join([path.kernel.profile, *settings])] if kernel else [])]
