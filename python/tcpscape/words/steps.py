"""What is being done now, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.steps import Step, Tell

TEXTS: Mapping[Step, str] = {
    "path": "looking at the path",
    "controls": "comparing congestion controls",
    "choice": "{} so far",
    "cliff": "cliff of {}",
    "damage": "{}: taking the ingredients away",
    "other order": "the other order of packets",
    "beside default": f"{{}} beside {DEFAULT}",
    "lever": "{} with another setting",
    "assumption": "whether the choice depends on {}",
    "calls": "calls beside uploads",
    "shares": "{} at other shares of the rate",
    "diagnosis": "diagnosis",
    "flow": "flow {}",
    "queue": "which queue is at the bottleneck",
    "buffer": "the size of the buffer",
    "replay": "{}: replaying the flow",
    "replayed controls": "comparing {} congestion controls",
    "setting": "{}",
    "zone": "{}: the zone of the path",
}
"""Step → its words, with what it is about in place of the braces."""


def told(say: Callable[[str], None]) -> Tell:
    """Hands the words of each step to `say`; once there is a choice, with that before them: `bbr so far; cliff of cubic`."""
    choice = ""

    def tell(step: Step, about: str) -> None:
        nonlocal choice
        text = TEXTS[step].format(about)
        say(f"{choice}{text}")
        if step == "choice":
            choice = f"{text}; "

    return tell
