"""What is known of a scenario before it runs and is easily overlooked.

Socket buffers that the kernel caps, times of tc's without a unit, traces of links that are replayed to another load than they were recorded with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tcpscape import units
from tcpscape.scenario import bottleneck, path
from tcpscape.scenario.scenario import Kernel, Scenario

BUFFERS = (("rcvbuf", "SO_RCVBUF", "rmem_max"), ("sndbuf", "SO_SNDBUF", "wmem_max"))
"""A flow's field, the socket option that it is the argument of, and the sysctl of `net.core` that caps it, silently: socket(7)."""
SUGGESTED = 4 << 20
"""The limit that is suggested, bytes: that of the published rigs."""
LARGE_PART = 0.05
"""Share of a path's RTT above which the time of the hosts is worth a sentence."""


def caveats(scenario: Scenario, *, simulated: bool = True) -> Iterator[str]:
    """A sentence for each socket buffer that the kernel caps, with the limit and how to raise it, and for each of :func:`hints`.

    Where hosts are `simulated`, one for a short path of which their time is a large part, too.
    """
    yield from hints(scenario)
    hosts = 2 * scenario.kernel.host_time
    if simulated and hosts > LARGE_PART * scenario.rtt_ns:
        added, rtt = units.format_time(hosts), units.format_time(scenario.rtt_ns)
        yield f"hosts add {added} to each RTT of {rtt}, as real ones do; without them: --kernel {_with(scenario.kernel, 'host_time', '0')}"
    limits = {**_profile(scenario.kernel.profile), **scenario.kernel.plan()}
    for field, option, sysctl in BUFFERS:
        size, most = max((getattr(flow, field) for flow in scenario.flows), default=0), limits.get(sysctl)
        if most is not None and size > most:
            yield (
                f"{option} of {units.format_size(size)} is capped at net.core.{sysctl}, {units.format_size(most)}; "
                f"to have it: --kernel {_with(scenario.kernel, sysctl, units.format_size(max(size, SUGGESTED)))}"
            )


def hints(scenario: Scenario) -> Iterator[str]:
    """A sentence for each word of the path that means otherwise than many expect, and for each trace that is replayed to another load."""
    yield from dict.fromkeys(_hints(scenario))
    yield from _replayed(scenario)
    yield from _unlimited(scenario)
    yield from _offered(scenario)


def above_link(scenario: Scenario, goodputs: Sequence[float]) -> Iterator[str]:
    """A sentence where the goodputs of a trial's flows, Mbit/s, are or add up to more than the link's rate, with what they count beside it."""
    yield from above_rate(scenario, bottleneck.link_mbps(scenario), goodputs)


def above_rate(scenario: Scenario, link: float | None, goodputs: Sequence[float]) -> Iterator[str]:
    """The same for who knows the link's rate, Mbit/s, already: None where there is none."""
    if link is None or sum(goodputs) <= link:
        return
    rate = units.format_rate(round(link * 1e6))
    if len({(flow.start, flow.stop) for flow in scenario.flows}) > 1 and max(goodputs) <= link:
        yield f"the flows do not run at the same time: their goodputs, each over its own time, add up to more than the link's {rate}"
    else:
        yield (
            f"goodput above the link's {rate}: it counts what a bucket held at the start, and what was on its way when a flow stopped "
            "and was delivered after; a longer --duration makes that small"
        )


def _hints(scenario: Scenario) -> Iterator[str]:
    """What tc's words of the path mean otherwise than many expect."""
    try:
        from tcpscape import _core
    except ImportError:
        return
    for hop in scenario.hops:
        for text in path.words(hop, scenario.rtt_ns):
            yield from _core.hints(text)


def _replayed(scenario: Scenario) -> Iterator[str]:
    """How the load of a trial differs from the one under which a trace of a link is recorded: a sender that always has data, for the trace's time."""
    hops = [hop for hop in scenario.hops if isinstance(hop, path.TracedLink)]
    limited = all(flow.app.rate or flow.app.size or flow.player for flow in scenario.flows)
    for trace in dict.fromkeys(hop.trace for hop in hops):
        name = Path(trace.file).name
        if limited:
            yield (
                f"trace {name} is what a link gave to a sender that always had data, and here every flow is limited by its application: what a link "
                "gives depends on the load, by its scheduler and by who else is there"
            )
        if trace.period < scenario.duration:
            yield (
                f"trace {name} lasts {units.format_time(trace.period)} and begins again: the trial of {units.format_time(scenario.duration)} sees it "
                f"{scenario.duration / trace.period:.3g} times, so later parts are no new observations"
            )


def _unlimited(scenario: Scenario) -> Iterator[str]:
    """A sentence where data of one direction meet a rate and those of the other none: then nothing but windows limits these."""
    limited = {flow.direction for flow in scenario.flows if bottleneck.of_flow(scenario, flow)}
    free = {flow.direction for flow in scenario.flows if not bottleneck.of_flow(scenario, flow)}
    if limited and (alone := free - limited):
        way = alone.pop()
        part = "reverse" if way == "up" else "forward"
        yield f"data that travel {way} meet no rate, and only windows limit these flows; to change it: a rate in {part}, such as {{rate: 5mbit}}"


def _offered(scenario: Scenario) -> Iterator[str]:
    """A sentence where transfers bring more than their link carries: they pile up as long as the trial lasts."""
    for entry in scenario.transfers:
        link, load = bottleneck.of_flow(scenario, entry), entry.rate * entry.size * 8
        if link and load > link.rate_bps:
            share = units.brief_percent(load / link.rate_bps)
            rate = units.format_rate(link.rate_bps)
            yield f"transfers offer {share} of what their slowest link carries, {rate}: they pile up as long as they arrive"


def _with(kernel: Kernel, setting: str, value: str) -> str:
    """The kernel as an option, with another setting."""
    overrides = kernel.model_dump(mode="json", exclude_defaults=True, exclude={"profile"}) | {setting: value}
    return ",".join([kernel.profile, *(f"{name}={value}" for name, value in overrides.items())])


@cache
def _profile(name: str) -> Mapping[str, int]:
    """The limits of a profile; none where it is unknown or the extension is not built: the engine refuses that."""
    try:
        from tcpscape import _core
    except ImportError:
        return {}
    try:
        fields: dict[str, int] = json.loads(_core.kernel_profile(name))
    except ValueError:
        return {}
    return fields
