"""Good scenarios, drawn at random: short, with a bottleneck, and quick to run."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tcpscape.scenario.scenario import Scenario

QUEUES = (
    "pfifo limit 20", "bfifo limit 15000", "fq_codel limit 100", "codel limit 30 ecn", "pie limit 30", "fq_pie limit 40", "sfq limit 40", "pfifo_head_drop limit 10", "dualpi2 limit 50",
    "red limit 60000 min 6000 max 18000 avpkt 1000 probability 0.1 ecn",
)  # fmt: skip
"""Queues of a bottleneck, in tc's words."""
CCAS = ("cubic", "reno", "bbr", "bbr3", "dctcp", "vegas", "westwood", "illinois", "htcp", "bic", "cubic:hystart=off")


def _ms(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map("{}ms".format)


def netems() -> st.SearchStrategy[dict[str, Any]]:
    """Delay, jitter, loss and their like, as fields."""
    shares = st.sampled_from(("0.1%", "1%", "5%"))
    extra = st.fixed_dictionaries({}, optional={"jitter": _ms(1, 4), "distribution": st.sampled_from(("uniform", "normal", "pareto")), "loss": shares, "duplicate": shares, "limit": st.integers(5, 500)})
    return st.builds(lambda delay, more: {"delay": delay, **more}, _ms(2, 30), extra)


def bottlenecks() -> st.SearchStrategy[dict[str, Any]]:
    """A rate with a buffer, or with a queue."""
    held = st.one_of(st.fixed_dictionaries({"buffer": st.sampled_from(("1bdp", "0.5bdp", "20KB", "60KB"))}), st.fixed_dictionaries({"queue": st.sampled_from(QUEUES)}))
    return st.builds(lambda rate, queue: {"rate": f"{rate}mbit", **queue}, st.integers(1, 20), held)


def flows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """One to three connections that may start later, stop earlier, or be limited by their applications."""
    optional = {"start": _ms(0, 100), "stop": _ms(150, 200), "app": st.sampled_from(("100kB/s", "1MB/s")), "rcvbuf": st.sampled_from(("16KiB", "256KiB")), "read": st.just("16KiB/1ms"), "count": st.integers(1, 2)}
    return st.lists(st.fixed_dictionaries({"cca": st.sampled_from(CCAS)}, optional=optional), min_size=1, max_size=3)


def changes() -> st.SearchStrategy[list[dict[str, Any]]]:
    """None, or one change of the bottleneck's rate or of the forward delay."""
    at = _ms(20, 200)
    rate = st.builds(lambda when, rate: [{"where": "bottleneck", "at": when, "set": {"rate": f"{rate}mbit"}}], at, st.integers(1, 20))
    delay = st.builds(lambda when, delay: [{"where": "forward", "at": when, "set": {"delay": delay}}], at, _ms(5, 30))
    return st.one_of(st.just([]), st.just([]), rate, delay)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario of 250 to 800 ms."""
    fields = {
        "name": "drawn", "forward": draw(netems()), "bottleneck": draw(bottlenecks()), "reverse": draw(netems()), "flows": draw(flows()), "changes": draw(changes()), "duration": draw(_ms(250, 800)),
        "ecn": draw(st.booleans()), "kernel": draw(st.sampled_from(("6.1", "6.12"))), "offload": draw(st.booleans()),
    }  # fmt: skip
    return Scenario.of(fields, "drawn")
