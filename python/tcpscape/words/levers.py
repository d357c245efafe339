"""Settings beside the congestion control in words: what each is called, what it brings, and on which host it is typed."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from tcpscape.controls.deployment import BUFFERS, Deployment, Host
from tcpscape.findings.advice.answer import Advice
from tcpscape.findings.advice.choice import GOALS
from tcpscape.findings.advice.levers import CAUSES, Buffer, Ecn, InitialWindow, LargerBuffers, Lever, OwnQueue, Pacing, Setting, WindowAfterPause
from tcpscape.stats.comparison import is_alike
from tcpscape.text.numbers import shares
from tcpscape.text.screen import Code
from tcpscape.text.table import Table
from tcpscape.units import format_size
from tcpscape.words.remarks import LEADS, link_mbps

SYSCTLS: Mapping[Buffer, str] = {buffer: BUFFERS[buffer][0].rpartition(".")[2] for buffer in CAUSES}
"""Buffer → the last name of its sysctl."""
OPTIONS: Mapping[Buffer, str] = {"receive": "SO_RCVBUF", "send": "SO_SNDBUF"}
"""Buffer → the socket option that fixes its size."""
OWNERS: Mapping[Buffer, str] = {"receive": "receiver", "send": "sender"}
"""Buffer → the host that has it."""
HOSTS: Mapping[Host, str] = {"sender": "sender", "receiver": "receiver", "client": "host that connects", "router": "router"}
"""Host → what it is called."""
MOST_ROWS = 6
"""Most settings in the table without `verbose`: those that are worth a change, and the queues that were asked for."""


@functools.singledispatch
def name(setting: Setting) -> str:
    """What a setting is called, where it is."""
    raise NotImplementedError(type(setting).__name__)


@name.register
def _(setting: LargerBuffers) -> str:
    return f"{' and '.join(SYSCTLS[buffer] for buffer in setting.buffers)} up to {format_size(setting.size)}"


@name.register
def _(_setting: Pacing) -> str:
    return "fq at the sender"


@name.register
def _(_setting: Ecn) -> str:
    return "ECN"


@name.register
def _(_setting: WindowAfterPause) -> str:
    return "no slow start after a pause"


@name.register
def _(setting: InitialWindow) -> str:
    return f"an initial window of {setting.segments}"


@name.register
def _(setting: OwnQueue) -> str:
    return f"{setting.queue} at the bottleneck"


@functools.singledispatch
def imperative(setting: Setting) -> str:
    """What to do, the beginning of a sentence."""
    return f"Use {name(setting)}"


@imperative.register
def _(setting: LargerBuffers) -> str:
    hosts = " and ".join(f"{SYSCTLS[buffer]} at the {OWNERS[buffer]}" for buffer in setting.buffers)
    return f"Raise {hosts}{''.join(f', without {OPTIONS[buffer]} in its program' for buffer in setting.unset)}"


@imperative.register
def _(_setting: Pacing) -> str:
    return "Pace by fq at the sender"


@imperative.register
def _(setting: InitialWindow) -> str:
    return f"Raise the initial window to {setting.segments} segments"


@imperative.register
def _(setting: OwnQueue) -> str:
    return f"Put {name(setting)}"


def sentence(advice: Advice, lever: Lever) -> str:
    """What a setting brings: `Raise tcp_rmem at the receiver: bbr then carries 9.3 Mbit/s [9.1, 9.4], 1.33 × bbr as it is [1.28, 1.37].`"""
    goodput = f"{lever.goodput.text(most=link_mbps(advice))} Mbit/s"
    return f"{imperative(lever.setting)}: {lever.cca} then carries {goodput}, {_lead(advice, lever)}."


def _lead(advice: Advice, lever: Lever) -> str:
    """`1.33 × bbr as it is [1.28, 1.37]`, `and adds 40 ms less …`."""
    verb, unit = LEADS[advice.goal.name]
    text = lever.lead.text(unit=f"{unit} {advice.choice} as it is")
    return text if advice.goal.is_ratio else f"and {verb} {text}"


def remarks(advice: Advice) -> Iterator[str]:
    """What settings bring that are not the first sentence, and which were tried in vain."""
    for lever in advice.worthwhile:
        if lever.is_as_good:
            yield f"Without another control: {_uncapitalized(sentence(advice, lever))}"
        elif not (lever.is_queue or (advice.is_setting_first and lever is advice.lever)):
            yield sentence(advice, lever)
    yield from _queues(advice)
    kinds = {lever.setting.kind for lever in advice.levers if lever.is_worthwhile or lever.is_as_good}
    others = [lever for lever in advice.levers if lever.setting.kind not in kinds and not lever.is_queue]
    for is_open, beginning in ((False, "Tried, and no better than {} as it is"), (True, "Tried, and undecided beside {} as it is")):
        # The largest lead of each setting.
        each = {name(lever.setting): lever for lever in reversed(others) if (lever.verdict == "undecided" and not lever.is_full) == is_open}
        if each:
            yield f"{beginning.format(advice.choice)}: {', '.join(_tried(lever, advice) for lever in reversed(each.values()))}."


def _tried(lever: Lever, advice: Advice) -> str:
    """`fq at the sender (cubic: 0.654 × [0.602, 0.709])`, `ECN (cubic: the same)`."""
    lead = "the same" if is_alike(lever.lead) else lever.lead.text(unit="×")
    number = f": {lead}" if advice.goal.is_ratio else ""
    return f"{name(lever.setting)} ({lever.cca}{number}{', which it fills too' if lever.is_full else ''})"


def _queues(advice: Advice) -> Iterator[str]:
    """What each queue at a bottleneck of the user's own brings: delay and goodput, since one is paid with the other."""
    if advice.is_setting_first and advice.lever and advice.lever.is_queue:
        return
    queue = advice.queue_of_least_delay
    if queue is None:
        return
    if not _saves(advice, queue):
        saved = queue.less_rtt.text(2, unit="ms")
        is_little = queue.less_rtt.high < GOALS["delay"].worth(advice.path.rtt / 1e6)
        yield (
            f"Another queue at the bottleneck would save little delay: {name(queue.setting)} {saved}."
            if is_little
            else f"Whether another queue at the bottleneck saves delay is undecided: {name(queue.setting)} {saved}."
        )
        return
    own, link = advice.standing(advice.choice or ""), link_mbps(advice)
    yield (
        f"With {name(queue.setting)}, {queue.cca} adds {queue.added_rtt.text(2, unit='ms')} to the RTT instead of {own.added_rtt.text(2)} "
        f"({own.cca} as it is), and carries {queue.goodput.text(most=link)} Mbit/s instead of {own.goodput.text(most=link)}."
    )


def _saves(advice: Advice, queue: Lever) -> bool:
    """Whether a queue surely saves as much delay as is worth a change."""
    return queue.less_rtt.value >= GOALS["delay"].worth(advice.path.rtt / 1e6) and queue.less_rtt.low > 0


def _uncapitalized(text: str) -> str:
    """A sentence behind a colon."""
    return text[:1].lower() + text[1:]


def table(advice: Advice, levers: Sequence[Lever], title: str = "With one setting changed") -> Table:
    """A row for each congestion control and setting."""
    columns = ("cca", "with", "goodput Mbit/s, mean [95 %]", "× as it is [95 %]", "added RTT p95 ms [95 %]", "limited by")
    rows = [
        (
            lever.cca,
            lever.setting.queue if isinstance(lever.setting, OwnQueue) else name(lever.setting),
            lever.goodput.cell(most=link_mbps(advice)),
            lever.gain.cell(),
            lever.added_rtt.cell(),
            shares(lever.limited_by),
        )
        for lever in levers
    ]
    delay_last = advice.goal.name == "goodput" and not any(lever.is_queue for lever in levers)
    return Table(columns, rows, left=2, title=title, drop=("limited by", columns[4 if delay_last else 3]), words=("limited by",))


def shown(advice: Advice) -> list[Lever]:
    """The settings in the table that is always shown: those that are worth a change with their kind, and the queues that were asked for."""
    kinds = {repr(lever.setting) for lever in advice.worthwhile}
    return [lever for lever in advice.levers if repr(lever.setting) in kinds or lever.is_queue][:MOST_ROWS]


def advised(advice: Advice) -> list[Lever]:
    """Each setting that is worth a change, and of the queues that were asked for the one of the answer, or the one that saves most delay."""
    first = advice.lever if advice.is_setting_first and advice.lever and advice.lever.is_queue else None
    queue = first or advice.queue_of_least_delay
    others = [v for v in advice.worthwhile if not v.is_queue]
    return [*others, *([queue] if queue and (queue is first or _saves(advice, queue)) else [])]


def typed(advice: Advice) -> list[Code]:
    """What to type for each of them until the next start."""
    return [Code(d.now, f"As root on the {HOSTS[host]}, for {text}:") for host, text, d in deployments(advice)]


def deployments(advice: Advice) -> list[tuple[Host, str, Deployment]]:
    """Each of them with the host, its name and all that is to type."""
    return [(host, name(lever.setting), d) for lever in advised(advice) for host, d in lever.deployments]
