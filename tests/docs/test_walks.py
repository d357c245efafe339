"""The guided walks: every number that one says is what the model gives, by the intervals of the runs that the page shows."""

import itertools
import json
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

pytest.importorskip("starlette", reason="tcpscape[web] is not installed")

from conftest import ROOT
from tcpscape import engines, stats
from tcpscape.campaign import outcome
from tcpscape.trial import Capture
from tcpscape.web.state import State

FOLDER = ROOT / "web" / "src" / "walks" / "data"
WALKS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
VIEWS = ("curves", "map", "inside", "mix", "measure", "learn")
SEEDS = 20
"""Trials of each control, as many as the page runs."""
MORE = 60
"""Trials where the page's own leave open what a sentence says of the chaos zone on average."""
MS = 1_000_000


@cache
def cells(walk: str, step: int, seeds: int = SEEDS):
    """The cells of a step, by congestion control."""
    model, state = engines.make("model"), State.model_validate(WALKS[walk]["steps"][step]["state"])
    campaign = state.campaign(seeds=str(seeds))
    cases = campaign.cases()
    runs = [model.run(case.scenario, range(seeds), threads=2) for case in cases]
    return {cell.cca: cell for cell in outcome.gather(campaign, cases, runs, {"model": model.version}).cells}


def mean(walk: str, step: int, cca: str, metric: str = "goodput"):
    return stats.mean(stats.known(cells(walk, step)[cca].values(metric)))


def ratio(walk: str, a: tuple[int, str], b: tuple[int, str], seeds: int = SEEDS):
    return cells(walk, a[0], seeds)[a[1]].over(cells(walk, b[0], seeds)[b[1]])


@cache
def kept(cca: str, rtt: str, jitter: str):
    """The share of its goodput without jitter that a control keeps, as a cell of the map."""
    model = engines.make("model")
    there = []
    for text in (jitter, ""):
        campaign = State(rtt=rtt, jitter=text, cca=(cca,)).campaign(seeds=str(SEEDS))
        (case,) = campaign.cases()
        there += outcome.gather(campaign, [case], [model.run(case.scenario, range(SEEDS), threads=2)], {"model": model.version}).cells
    return there[0].over(there[1])


@cache
def run(walk: str, step: int, cca: str, seed: int = 0):
    state = State.model_validate(WALKS[walk]["steps"][step]["state"])
    return engines.make("model").run(state.scenario(cca), [seed], capture=Capture(MS, MS))[0]


def highest_rtt(walk: str, step: int, cca: str) -> list[float]:
    return [run(walk, step, cca, seed).flows[0].rtt_ms.max for seed in range(5)]


def within(estimate, value: float) -> bool:
    """Whether the interval holds a value that a sentence calls "about"."""
    return estimate.low <= value <= estimate.high


def near(values, value: float, share: float) -> bool:
    return all(abs(v - value) <= share * value for v in values)


def _cycle() -> tuple[set[float], set[float]]:
    """Pacing rates over the middle one, and s between the trials, of BBR between start and PROBE_RTT."""
    rows = run("probes", 0, "bbr").samples
    rows = rows.filter((rows["t_ns"] > 5_000 * MS) & (rows["t_ns"] < 9_500 * MS))
    rates = rows["pacing_rate"].to_numpy().astype(float)
    rates /= np.median(rates)
    rises = rows["t_ns"].to_numpy()[1:][(rates[1:] > 1.1) & (rates[:-1] < 1.1)] / 1e9
    return {round(float(rate), 2) for rate in rates if abs(rate - 1) > 0.1}, {round(float(b - a), 2) for a, b in itertools.pairwise(rises)}


def _dips() -> list[tuple[float, float]]:
    """Begin and length, s, of BBR's windows of 4 packets after its start."""
    rows = run("probes", 1, "bbr").samples
    times, small = rows["t_ns"].to_numpy() / 1e9, rows["cwnd"].to_numpy() <= 4
    begins = [i for i in range(1, len(small)) if small[i] and not small[i - 1]]
    return [(float(times[i]), float(times[i:][~small[i:]][0] - times[i])) for i in begins]


CLAIMS: dict[tuple[str, int, str], Callable[[], bool]] = {
    ("cliff", 0, "both fill more than nine tenths of the 42 Mbit/s"): lambda: all(mean("cliff", 0, cca).low > 0.9 * 42 for cca in ("cubic", "bbr")),
    ("cliff", 1, "about a sixth of its goodput is gone"): lambda: within(ratio("cliff", (1, "cubic"), (0, "cubic")), 5 / 6),
    ("cliff", 1, "single runs lie far apart"): lambda: cells("cliff", 1, MORE)["cubic"].cv("goodput").low > 0.1,
    ("cliff", 1, "still carries 97 % or more"): lambda: ratio("cliff", (1, "bbr"), (0, "bbr")).low > 0.97,
    ("cliff", 2, "BBR has fallen to about half"): lambda: within(ratio("cliff", (2, "bbr"), (0, "bbr")), 0.5),
    ("cliff", 2, "CUBIC still carries about three quarters"): lambda: within(ratio("cliff", (2, "cubic"), (0, "cubic")), 0.75),
    ("cliff", 2, "some runs nearly everything and some less than a third"): lambda: (
        min(runs := cells("cliff", 2)["cubic"].values("goodput")) < mean("cliff", 0, "cubic").value / 3
        and max(runs) > 0.97 * mean("cliff", 0, "cubic").value
    ),
    ("cliff", 2, "the order turns around"): lambda: (
        ratio("cliff", (1, "bbr"), (1, "cubic")).low > 1 > ratio("cliff", (2, "bbr"), (2, "cubic"), MORE).high
    ),
    ("cliff", 3, "less than a seventh of their goodput"): lambda: all(ratio("cliff", (3, cca), (0, cca)).high < 1 / 7 for cca in ("cubic", "bbr")),
    ("cliff", 3, "Nothing has been lost on the way"): lambda: State.model_validate(WALKS["cliff"]["steps"][3]["state"]).loss == "",
    ("cliff", 4, "CUBIC carries ten times as much"): lambda: within(ratio("cliff", (4, "cubic"), (3, "cubic")), 10),
    ("cliff", 4, "BBR more than five times"): lambda: ratio("cliff", (4, "bbr"), (3, "bbr")).low > 5,
    ("cliff", 5, "At 8 ms it keeps less than a quarter on a path of 20 ms"): lambda: kept("bbr", "20ms", "8ms").high < 1 / 4,
    ("cliff", 5, "more than nine tenths on one of 200 ms"): lambda: kept("bbr", "200ms", "8ms").low > 0.9,
    ("hystart", 0, "carry the same to 1 %"): lambda: abs(ratio("hystart", (0, "cubic:hystart=0"), (0, "cubic")).value - 1) < 0.01,
    ("hystart", 1, "about a third of the goodput is missing"): lambda: within(ratio("hystart", (1, "cubic"), (1, "cubic:hystart=0")), 2 / 3),
    ("hystart", 1, "not one of its packets was lost"): lambda: (
        run("hystart", 1, "cubic", int(WALKS["hystart"]["steps"][1]["options"]["inside.seed"])).flows[0].retransmits == 0
    ),
    ("hystart", 1, "one of those with less than half"): lambda: (
        run("hystart", 1, "cubic", int(WALKS["hystart"]["steps"][1]["options"]["inside.seed"])).goodput_mbps
        < 0.5 * mean("hystart", 1, "cubic:hystart=0").value
    ),
    ("hystart", 2, "about 6 % are still missing"): lambda: within(ratio("hystart", (2, "cubic"), (2, "cubic:hystart=0")), 0.94),
    ("hystart", 3, "sends sixty times as many segments again"): lambda: near(
        [mean("hystart", 3, "cubic:hystart=0", "retransmits").value], 60 * mean("hystart", 3, "cubic", "retransmits").value, 0.05
    ),
    ("hystart", 3, "carries the same for that"): lambda: near([ratio("hystart", (3, "cubic:hystart=0"), (3, "cubic")).value], 1, 0.01),
    ("probes", 0, "every eight round trips, here every third of a second"): lambda: all(0.3 <= gap <= 0.36 for gap in _cycle()[1]),
    ("probes", 0, "1.25 times that rate"): lambda: 1.25 in _cycle()[0],
    ("probes", 0, "0.75 times the rate"): lambda: 0.75 in _cycle()[0],
    ("probes", 1, "its window to 4 packets for at least 0.2 s"): lambda: all(length >= 0.2 for _, length in _dips()),
    ("probes", 1, "at 10 s and 20 s"): lambda: [round(begin / 10) for begin, _ in _dips()] == [1, 2] and all(abs(b % 10) < 1 for b, _ in _dips()),
    ("probes", 1, "Every 10 s"): lambda: all(10 <= b - a < 11 for (a, _), (b, _) in itertools.pairwise(_dips())),
    ("probes", 1, "about 2 % of the time"): lambda: 0.015 < sum(length for _, length in _dips()) / 25 < 0.025,
    ("probes", 2, "half of its packets take longer than 170 ms"): lambda: mean("probes", 2, "cubic", "rtt_p50").low > 170,
    ("probes", 2, "44 ms in the middle"): lambda: round(mean("probes", 2, "bbr", "rtt_p50").value) == 44,
    ("probes", 2, "less than 3 % less goodput"): lambda: ratio("probes", (2, "bbr"), (2, "cubic")).low > 0.97,
    ("probes", 3, "carries a sixth of the link"): lambda: within(mean("probes", 3, "cubic"), 20 / 6),
    ("probes", 3, "BBR nine tenths and more"): lambda: mean("probes", 3, "bbr").low > 0.9 * 20,
    ("bufferbloat", 0, "by about 400 ms, ten times that of the path"): lambda: near([mean("bufferbloat", 0, "cubic", "added_rtt").value], 400, 0.01),
    ("bufferbloat", 0, "adds less than 15 ms"): lambda: mean("bufferbloat", 0, "bbr", "added_rtt").high < 15,
    ("bufferbloat", 1, "CUBIC adds 40 ms"): lambda: round(mean("bufferbloat", 1, "cubic", "added_rtt").value) == 40,
    ("bufferbloat", 1, "within 2 % what it carried"): lambda: ratio("bufferbloat", (1, "cubic"), (0, "cubic")).low > 0.98,
    ("bufferbloat", 2, "adds less than 4 ms"): lambda: mean("bufferbloat", 2, "cubic", "added_rtt").high < 4,
    ("bufferbloat", 2, "carries about 15 % less"): lambda: near([ratio("bufferbloat", (2, "cubic"), (0, "cubic")).value], 0.85, 0.01),
    ("bufferbloat", 3, "CUBIC adds 7 ms"): lambda: round(mean("bufferbloat", 3, "cubic", "added_rtt").value) == 7,
    ("bufferbloat", 3, "carries 95 % of what"): lambda: near([ratio("bufferbloat", (3, "cubic"), (0, "cubic")).value], 0.95, 0.01),
    ("bufferbloat", 4, "the retransmissions of CUBIC are 0"): lambda: mean("bufferbloat", 4, "cubic", "retransmits").high == 0,
    ("bufferbloat", 4, "Delay and goodput stay as they were"): lambda: near([ratio("bufferbloat", (4, "cubic"), (3, "cubic")).value], 1, 0.01),
    ("spike", 0, "the RTT peaks at 100 ms"): lambda: near(highest_rtt("spike", 0, "fixed:cwnd=248"), 100, 0.01),
    ("spike", 1, "the peak is 150 ms"): lambda: near(highest_rtt("spike", 1, "fixed:cwnd=248"), 150, 0.01),
    ("spike", 2, "BBR peaks above 300 ms"): lambda: min(highest_rtt("spike", 2, "bbr")) > 300,
    ("spike", 2, "CUBIC peaks at 650 ms"): lambda: near(highest_rtt("spike", 2, "cubic"), 650, 0.01),
    ("spike", 3, "down to the bound, 150 ms"): lambda: near(highest_rtt("spike", 3, "cubic"), 150, 0.05),
    ("spike", 3, "more than 300 ms again"): lambda: min(highest_rtt("spike", 3, "bbr")) > 300,
    ("spike", 4, "nobody peaks above 130 ms"): lambda: max(p for cca in ("fixed:cwnd=248", "cubic") for p in highest_rtt("spike", 4, cca)) < 130,
    ("spike", 4, "sends more than a thousand segments again"): lambda: mean("spike", 4, "fixed:cwnd=248", "retransmits").low > 1000,
    ("fairness", 0, "Jain's index is above 0.9"): lambda: mean("fairness", 0, "cubic", "jain").low > 0.9,
    ("fairness", 1, "BBR takes 87 %"): lambda: round(100 * mean("fairness", 1, "bbr+cubic", "share:bbr").value) == 87,
    ("fairness", 2, "CUBIC has about 74 %"): lambda: within(mean("fairness", 2, "bbr+cubic", "share:cubic"), 0.74),
    ("fairness", 3, "both have half, to 2 %"): lambda: abs(mean("fairness", 3, "bbr+cubic", "share:bbr").value - 0.5) < 0.02,
}
"""What a sentence of a walk's step says → whether it is so."""
FACTS = {
    "Slow start doubles the window",
    "100 Mbit/s",
    "RTT of 100 ms",
    "5 s",
    "30 s",
    "8 ms",
    "12 ms",
    "4 ms of jitter",
    "95 % intervals",
    "half a bandwidth-delay product",
    "four bandwidth-delay products",
    "path of 40 ms",
    "One packet of a hundred",
    "ten bandwidth-delay products",
    "At a third of the rate",
    "at 6 s",
    "from 60 to 30 Mbit/s",
    "rate halves",
    "50 ms plus (2 - 1) times 50 ms",
    "(r - 1) times the RTT",
    "a third of the rate",
    "40 Mbit/s",
    "where 1 is equal shares and 0.5 is all for one",
    "150 ms long when it is full",
    "takes three times as long",
    "twice as long",
    "A tenth of it",
    "two bandwidth-delay products",
}
"""Numbers that are of the state itself, or arithmetic with it."""
NUMBER = re.compile(r"\d|\b(half|third|quarters?|fifth|sixth|seventh|tenths?|twice|times|doubles|double|thousand|hundred)\b")


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_short_and_its_states_make_sense(name):
    walk = WALKS[name]
    assert walk["id"] == name
    assert 3 <= len(walk["steps"]) <= 6
    for step in walk["steps"]:
        assert len(step["text"]) == 2
        assert all(re.fullmatch(r"[^.!?]*([.]\d[^.!?]*|\?[\"”][^.!?]*)*[.]", text) for text in step["text"]), step["text"]
        assert step["view"] in VIEWS
        assert all(option.startswith(f"{step['view']}.") for option in step["options"])
        for case in State.model_validate(step["state"]).campaign().cases():
            engines.make("model").check(case.scenario)


def test_the_walks_are_the_six():
    assert set(WALKS) == {"cliff", "hystart", "probes", "bufferbloat", "spike", "fairness"}


@pytest.mark.parametrize(("name", "step"), [(name, i) for name, walk in WALKS.items() for i in range(len(walk["steps"]))])
def test_every_number_is_claimed_or_of_the_state(name, step):
    """What is left of a text without what is tested or of the state has no number in it."""
    text = " ".join(WALKS[name]["steps"][step]["text"])
    known = [said for walk, i, said in CLAIMS if (walk, i) == (name, step)]
    for said in known:
        assert said in text
    for said in sorted((*known, *FACTS), key=len, reverse=True):
        text = text.replace(said, "")
    assert not NUMBER.search(text), text


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize(
    ("walk", "step", "said"), [pytest.param(*key, marks=[pytest.mark.slow] if key[0] in ("hystart", "fairness") else []) for key in CLAIMS]
)
def test_what_a_walk_says_is_so(walk, step, said):
    assert CLAIMS[walk, step, said](), f"{walk}, step {step + 1}: {said}"
