"""Good scenarios, drawn at random: short, with a bottleneck, and quick to run."""

from typing import Any

from hypothesis import strategies as st

from tcpscape.scenario.scenario import Scenario

QUEUES = (
    "pfifo limit 20",
    "bfifo limit 15000",
    "fq_codel limit 100",
    "codel limit 30 ecn",
    "pie limit 30",
    "fq_pie limit 40",
    "sfq limit 40",
    "pfifo_head_drop limit 10",
    "dualpi2 limit 50",
    "red limit 60000 min 6000 max 18000 avpkt 1000 probability 0.1 ecn",
)
"""Queues of a bottleneck, in tc's words."""
CCAS = ("cubic", "reno", "bbr", "bbr3", "dctcp", "vegas", "westwood", "illinois", "htcp", "bic", "cubic:hystart=off")


def _ms(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map("{}ms".format)


def netems() -> st.SearchStrategy[dict[str, Any]]:
    """Delay, jitter, loss and their like, as fields."""
    shares = st.sampled_from(("0.1%", "1%", "5%"))
    extra = st.fixed_dictionaries(
        {},
        optional={
            "jitter": _ms(1, 4),
            "distribution": st.sampled_from(("uniform", "normal", "pareto")),
            "loss": shares,
            "duplicate": shares,
            "limit": st.integers(5, 500),
        },
    )
    return st.builds(lambda delay, more: {"delay": delay, **more}, _ms(2, 30), extra)


def bottlenecks() -> st.SearchStrategy[dict[str, Any]]:
    held = st.one_of(
        st.fixed_dictionaries({"buffer": st.sampled_from(("1bdp", "0.5bdp", "20KB", "60KB"))}),
        st.fixed_dictionaries({"queue": st.sampled_from(QUEUES)}),
    )
    return st.builds(lambda rate, queue: {"rate": f"{rate}mbit", **queue}, st.integers(1, 20), held)


def flows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """One to three connections that may start later, stop earlier, or be limited by their applications."""
    optional = {
        "start": _ms(0, 100),
        "stop": _ms(150, 200),
        "app": st.sampled_from(("100kB/s", "1MB/s")),
        "rcvbuf": st.sampled_from(("16KiB", "256KiB")),
        "read": st.just("16KiB/1ms"),
        "count": st.integers(1, 2),
    }
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
        "name": "drawn",
        "forward": draw(netems()),
        "bottleneck": draw(bottlenecks()),
        "reverse": draw(netems()),
        "flows": draw(flows()),
        "changes": draw(changes()),
        "duration": draw(_ms(250, 800)),
        "ecn": draw(st.booleans()),
        "kernel": draw(st.sampled_from(("6.1", "6.12"))),
        "offload": draw(st.booleans()),
    }
    return Scenario.of(fields, "drawn")


def links() -> st.SearchStrategy[list[Any]]:
    """None to two links behind the path, alike or not in both directions."""
    short = st.fixed_dictionaries(
        {"delay": _ms(1, 10), "rate": st.integers(2, 30).map("{}mbit".format)},
        optional={"up_rate": st.just("3mbit"), "queue": st.sampled_from(("fq_codel", "pie limit 30"))},
    )
    ways = st.fixed_dictionaries({"forward": netems(), "reverse": netems()})
    return st.lists(st.one_of(short, short, ways, st.just("delay 1ms")), max_size=2)


@st.composite
def networks(draw: st.DrawFn) -> Scenario:
    """A network of 250 to 600 ms: a chain of one to three links, flows of several places and directions, probes and transfers."""
    chain = draw(links())
    ends = range(len(chain) + 2)

    def place() -> dict[str, Any]:
        first, last = sorted(draw(st.lists(st.sampled_from(ends), min_size=2, max_size=2, unique=True)))
        up = draw(st.booleans())
        enter, leave = (last, first) if up else (first, last)
        said = (
            {"direction": "up" if up else "down", "enter": f"r{enter}", "leave": f"r{leave}"}
            if draw(st.booleans())
            else {"direction": "up"}
            if up
            else {}
        )
        apart = draw(
            st.sampled_from(
                (
                    {},
                    {"rtt": "400ms"},
                    {"access": {"delay": "3ms", "rate": "20mbit"}},
                    {"access": {"before": "netem delay 2ms", "acks_before": {"delay": "1ms"}}},
                )
            )
        )
        return {**said, **apart}

    apps = ({}, {"rate": "1MB/s"}, {"response": "20kB", "every": "50ms"}, {"response": "5kB", "think": "10ms"}, {"on": "50ms", "off": "20ms"})
    groups = [
        {"cca": draw(st.sampled_from(CCAS)), "count": draw(st.integers(1, 2)), "app": draw(st.sampled_from(apps)), **place()}
        for _ in range(draw(st.integers(1, 3)))
    ]
    arrivals = [{"rate": "40/s", "size": "8kB", "cca": draw(st.sampled_from(CCAS)), **place()} for _ in range(draw(st.integers(0, 1)))]
    probes = [
        {"preset": name, "interval": "20ms", "name": name, **place()}
        for name in draw(st.lists(st.sampled_from(("voice", "ping", "udp_ping")), max_size=2, unique=True))
    ]
    fields = {
        "name": "drawn",
        "forward": {**draw(netems()), "at": "router"},
        "bottleneck": draw(bottlenecks()),
        "reverse": [{**draw(netems()), "at": "router"}, {"rate": f"{draw(st.integers(1, 10))}mbit", "buffer": "30KB"}],
        "links": chain,
        "flows": groups,
        "transfers": arrivals,
        "probes": probes,
        "duration": draw(_ms(250, 600)),
        "ecn": draw(st.booleans()),
        "kernel": draw(st.sampled_from(("6.1", "6.12"))),
    }
    return Scenario.of(fields, "drawn")
