"""tc's words in Python: described as the engine's parser reads them, shortened or not, in any order and unit."""

import json
import random
import sys
from dataclasses import asdict

import pytest

import tcpscape
from tcpscape import _core, engines, units
from tcpscape.errors import EngineError, UnitError, WordsError
from tcpscape.scenario import path
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.words import QueueDescription, describe

TIMES = {"s": 1e9, "sec": 1e9, "secs": 1e9, "ms": 1e6, "msec": 1e6, "msecs": 1e6, "us": 1e3, "usec": 1e3, "usecs": 1e3, "": 1e3, "ns": 1, "nsecs": 1}
RATES = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "kibit": 1024, "mibit": 2**20, "bps": 8, "kbps": 8e3, "mbps": 8e6}
SIZES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kbit": 128}
STEP = 2**-32
"""One step of netem's probabilities."""


class Words:
    """Random words of one queue, and what was put into them."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng, self.kind, self.expected = rng, kind, {}
        self.options: list[str] = []

    def coin(self) -> bool:
        return self.rng.random() < 0.5

    def number(self, most: int, units: dict[str, float], factor_most: float) -> tuple[str, int]:
        """A number with one of the units whose factor is at most `factor_most`; text and value."""
        unit, factor = self.rng.choice([(u, f) for u, f in units.items() if f <= factor_most])
        n = self.rng.randint(1, most)
        text = self.rng.choice([str(n), f"{n}.0", f"{n}e0"])
        return text + (unit.upper() if self.coin() else unit), round(n * factor)

    def time(self) -> tuple[str, int]:
        return self.number(99, TIMES, 1e6)

    def rate(self) -> tuple[str, int]:
        text, bits = self.number(99, RATES, 1e9)
        return (text, bits) if bits % 8 == 0 else self.rate()  # tc keeps whole bytes

    def size(self) -> tuple[str, int]:
        return self.number(99, SIZES, 1024)

    def share(self) -> tuple[str, float]:
        percent = self.rng.choice([0.001, 0.1, 1, 2.5, 30])
        return f"{percent:g}" + self.rng.choice(["", "%"]), percent / 100

    def add(self, keyword: str, least: int, *values: str) -> None:
        """An option at a random place; its keyword has at least `least` letters, which is what tc takes for it."""
        shortened = keyword[: self.rng.randint(least, len(keyword))]
        self.options.insert(self.rng.randint(0, len(self.options)), " ".join([shortened, *values]))

    def limit(self, field: str, letters: int = 5, least: int = 1) -> None:
        """`limit`, mostly."""
        n = self.rng.randint(least, 500)
        if self.rng.random() < 0.8:
            self.add("limit", letters, str(n))
            self.expected[field] = n

    def text(self) -> str:
        return " ".join([self.kind, *self.options])


def netem(w: Words) -> None:
    delay, jitter = _delay(w) if w.coin() else (0, 0)
    reorder = 0.0
    if delay and w.coin():
        text, reorder = w.share()
        w.add("reorder", 1, text)
    _loss(w)
    for name, letters in (("duplicate", 2), ("corrupt", 1)):
        if w.coin():
            text, w.expected[name] = w.share()
            w.add(name, letters, text)
    rate = None
    if w.coin():
        text, rate = w.rate()
        w.add("rate", 2, text)
    if slotted := w.coin():
        w.add("slot", 1, "800us", "10ms")
    w.expected |= {"limit_packets": 1000}
    w.limit("limit_packets", 1)
    kept = bool(rate or not jitter) and not reorder
    w.expected |= {"delay_ns": delay, "jitter_ns": jitter, "reorder": reorder, "rate_bps": rate, "slotted": slotted, "in_order": kept}


def _delay(w: Words) -> tuple[int, int]:
    """`delay`, perhaps with jitter, its correlation and its distribution: delay and jitter, ns."""
    text, delay = w.time()
    values, jitter = [text], 0
    if w.coin():
        text, jitter = w.time()
        values += [text, "25%"] if w.coin() else [text]
        w.expected["distribution"] = "uniform"
        if w.coin():
            w.expected["distribution"] = w.rng.choice(["normal", "pareto", "paretonormal"])
            w.add("distribution", 2, w.expected["distribution"])
    w.add(*w.rng.choice([("delay", 1), ("latency", 2)]), *values)
    return delay, jitter


def _loss(w: Words) -> None:
    """No loss, random loss or a chain."""
    text, share = w.share()
    w.expected["loss"] = share
    match w.rng.randrange(5):
        case 0:
            w.expected["loss"] = 0.0
        case 1:
            w.add(*w.rng.choice([("loss", 2), ("drop", 2)]), text)
        case 2:
            w.add("loss", 2, "random", text, "10%")
        case 3:  # p = 1 %, r = 3 %: a quarter of the time in the bad state
            w.add("loss", 2, "gemodel", "1%", "3%", "80%", text)
            w.expected["loss"] = 0.25 * 0.8 + 0.75 * share
        case 4:  # no way out of the bursts but home: p13 / (p13 + p31)
            w.add("loss", 2, "state", "1%", "3%")
            w.expected["loss"] = 0.25


def tbf(w: Words) -> None:
    text, rate = w.rate()
    w.expected["rate_bps"] = rate
    w.add("rate", 1, text)
    w.add(*w.rng.choice([("burst", 1), ("buffer", 3), ("maxburst", 2)]), "6056")
    if w.coin():
        text, size = w.size()
        w.add("limit", 1, text)
    else:
        size = 6056 + rate // 80  # 100 ms at the rate, and the bucket
        w.add("latency", 2, "100ms")
    w.expected["own_queue"] = {"kind": "bfifo", "limit_bytes": size}


def htb(w: Words) -> None:
    text, rate = w.rate()
    w.add("rate", 1, text)
    if w.coin():
        text, ceiling = w.rate()
        w.add("ceil", 1, text)
        rate = min(rate, ceiling)
    w.expected |= {"rate_bps": rate, "own_queue": {"kind": "pfifo", "limit_packets": 1000}}


def jitter(w: Words) -> None:
    (delay, delay_ns), (spread, spread_ns) = w.time(), w.time()
    w.add("delay", 1, delay, spread)
    w.expected |= {"delay_ns": delay_ns, "jitter_ns": spread_ns, "distribution": "uniform", "in_order": True, "limit_packets": 1000}
    if w.coin():
        order = w.rng.choice(["reorder", "clamp", "correlated"])
        w.add("order", 1, order)
        w.expected |= {"in_order": order != "reorder", "distribution": "normal" if order == "correlated" else "uniform"}
    w.limit("limit_packets", 1)


def red(w: Words) -> None:
    w.expected |= {"limit_bytes": 60_000, "ecn": "never"}
    for option in ("limit 60000", "min 6000", "max 18000", "avpkt 1500", "burst 8", "bandwidth 9mbit", "probability 0.1"):
        w.add(option, len(option))
    _ecn(w)


def choke(w: Words) -> None:
    w.expected |= {"limit_packets": 100, "ecn": "never"}
    for option in ("limit 100", "bandwidth 9mbit"):
        w.add(option, len(option))
    _ecn(w)


def _ecn(w: Words, off: str = "") -> None:
    if w.coin():
        w.add(word := w.rng.choice([word for word in ("ecn", off) if word]), len(word))
        w.expected["ecn"] = "never" if word == off else "enabled"


def _aqm(default: int, ecn: str = "never", **limits: int):
    def make(w: Words) -> None:
        w.expected |= {"limit_packets": default, "ecn": ecn, **limits}
        w.limit("limit_packets")
        _ecn(w, "noecn")

    return make


def _plain(**defaults: object):
    def make(w: Words) -> None:
        w.expected |= defaults
        w.limit(next(iter(defaults)), least=2)

    return make


def cake(w: Words) -> None:
    w.expected |= {"ecn": "always", "limit_memory_bytes": 10_240 * 1514}
    if w.coin():
        text, rate = w.rate()
        w.add("bandwidth", 9, text)
        w.expected |= {"rate_bps": rate, "limit_memory_bytes": min(max(4 << 20, rate // 20), 10_240 * 1514)}  # 4 · rate · 100 ms
    if w.coin():
        w.add("memlimit", 8, "5mb")
        w.expected["limit_memory_bytes"] = 5 << 20


def dualpi2(w: Words) -> None:
    _plain(limit_packets=10_000)(w)
    w.expected |= {"ecn": "always", "limit_memory_bytes": w.expected["limit_packets"] * 2 * 1514}


KINDS = {
    "netem": netem,
    "tbf": tbf,
    "htb": htb,
    "jitter": jitter,
    "red": red,
    "choke": choke,
    "cake": cake,
    "codel": _aqm(1000),
    "pie": _aqm(1000),
    "fq_pie": _aqm(10_240),
    "fq_codel": _aqm(10_240, "enabled", limit_memory_bytes=32 << 20),
    "pfifo": _plain(limit_packets=1000),
    "pfifo_head_drop": _plain(limit_packets=1000),
    "bfifo": _plain(limit_bytes=1000 * 1514),
    "fq": _plain(limit_packets=10_000),
    "sfq": _plain(limit_packets=127),
    "dualpi2": dualpi2,
}
"""What makes random words of a discipline; those without an entry have their example's."""
PLAIN = {
    "delay_ns": 0,
    "jitter_ns": 0,
    "distribution": None,
    "loss": 0.0,
    "duplicate": 0.0,
    "corrupt": 0.0,
    "reorder": 0.0,
    "slotted": False,
    "rate_bps": None,
    "limit_packets": None,
    "limit_bytes": None,
    "limit_memory_bytes": None,
    "in_order": True,
    "ecn": "never",
}
"""A queue that nothing was said about."""
PARENTS = ("netem", "tbf", "htb")


def random_queue(rng: random.Random) -> list[Words]:
    """A queue and perhaps its child."""
    kinds = [name for name, _ in _core.qdisc_registry() if name in KINDS]
    chain = [Words(rng, rng.choice(kinds))]
    if chain[0].kind in PARENTS and rng.random() < 0.5:
        # One netem at most: tc refuses copies where another netem stands in the tree.
        chain.append(Words(rng, rng.choice([k for k in kinds if k != "netem"])))
    for w in chain:
        KINDS[w.kind](w)
    return chain


def compare(described: QueueDescription, expected: dict[str, object], text: str) -> None:
    for field, value in (PLAIN | expected).items():
        if field != "own_queue":
            assert getattr(described, field) == (pytest.approx(value, abs=STEP) if isinstance(value, float) else value), f"{text}: {field}"


@pytest.mark.parametrize("seed", range(8))
def test_random_words_mean_what_was_put_into_them(seed):
    rng = random.Random(seed)
    for _ in range(400):
        chain = random_queue(rng)
        text = rng.choice(["; ", ";", " ; parent 1:1 handle 10: "]).join(w.text() for w in chain)
        described = describe(text)
        own = chain[-1].expected.get("own_queue")
        assert [d.kind for d in described] == [w.kind for w in chain] + ([own["kind"]] if own else []), text
        for w, d in zip(chain, described, strict=False):
            compare(d, w.expected, text)
        if own:
            compare(described[-1], {k: v for k, v in own.items() if k != "kind"}, text)


SAME = {"delay": "delay_ns", "jitter": "jitter_ns", "rate": "rate_bps", "bandwidth": "rate_bps"}
"""Fields of the parser's JSON that the description has too."""


@pytest.mark.parametrize("seed", range(8))
def test_random_words_are_described_as_they_are_parsed_and_printed(seed):
    rng = random.Random(100 + seed)
    texts = ["; ".join(w.text() for w in random_queue(rng)) for _ in range(200)] + [example for _, example in _core.qdisc_registry()]
    for text in texts:
        described, level = describe(text), json.loads(_core.parse_tc(text))
        assert describe(_core.to_tc(json.dumps(level))) == described, text
        for i, d in enumerate(described):
            if level is None:  # the queue that a shaper without a child has
                assert (i, described[i - 1].kind) in ((len(described) - 1, "tbf"), (len(described) - 1, "htb")), text
                break
            assert d.kind == level["kind"], text
            for field, own in SAME.items():
                if field in level and d.kind not in ("htb", "red", "choke"):
                    assert getattr(d, own) == level[field], f"{text}: {field}"
            assert d.distribution == (level["distribution"] if level.get("jitter") else None), text
            level = level.get("child")


def test_a_description_has_the_fields_of_the_engine_and_is_remembered():
    assert [asdict(d) for d in describe("netem delay 25ms 8ms; pfifo limit 3")] == _core.describe("netem delay 25ms 8ms; pfifo limit 3")
    assert describe("netem delay 25ms") is describe("netem delay 25ms")


@pytest.mark.parametrize("hop", ["netem latency 25ms", "netem d 25ms", "netem del 25ms", "netem la 25000", "netem delay 5ms delay 25msecs"])
def test_a_shortened_delay_counts_for_the_round_trip_and_the_buffer(hop):
    scenario = Scenario.of({"forward": hop, "bottleneck": {"rate": "10mbit", "buffer": "2bdp"}, "reverse": "netem delay 25ms", "duration": "1s"})
    assert scenario.rtt_ns == 50_000_000
    assert path.words(scenario.bottleneck[0], scenario.rtt_ns) == ["tbf rate 10mbit burst 6056 limit 125000"]
    for name in ("model", "mock"):
        engines.make(name).check(scenario)


@pytest.mark.parametrize(
    ("hop", "rate"),
    [
        ("tbf r 60mbit b 6056 la 50ms", 60_000_000),
        ("htb r 60mbit c 20mbit; fq_codel", 20_000_000),
        ("netem ra 10mbit", 10_000_000),
        ("cake bandwidth 1mbps", 8_000_000),
        ("red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 bandwidth 9mbit", None),
        ("fq maxrate 10mbit", None),
        ({"rate": "5mbit"}, 5_000_000),
        ({"delay": "5ms"}, None),
    ],
)
def test_the_rate_of_a_hop(hop, rate):
    assert path.rate_bps(Scenario.of({"bottleneck": [hop]}).bottleneck[0]) == rate


def test_structured_hops_are_described_by_the_words_that_they_become():
    spec = {"delay": "25ms", "jitter": "8ms", "loss": "0.1%", "order": "clamp", "floor": "10ms"}
    scenario = Scenario.of({"forward": spec, "bottleneck": {"rate": "10mbit", "buffer": "64KB"}, "duration": "1s"})
    kinds = [[(q.kind, q.delay_ns, q.loss, q.in_order) for q in queue] for queue in scenario.queues("forward", "bottleneck")]
    assert kinds == [
        [("netem", 0, 0.001, True)],
        [("jitter", 15_000_000, 0.0, True)],
        [("netem", 10_000_000, 0.0, True)],
        [("tbf", 0, 0.0, True), ("bfifo", 0, 0.0, True)],
    ]
    assert sum(q.delay_ns for queue in scenario.queues("forward") for q in queue) == scenario.rtt_ns == 25_000_000


def test_wrong_words_make_a_scenario_that_every_reader_refuses_in_the_same_line():
    scenario = Scenario.of({"bottleneck": {"rate": "10mbit", "buffer": "2bdp"}, "reverse": "netem dely 25ms", "duration": "1s"})
    line = r'^reverse: netem: "dely" is not understood: .*; correct the word, `tcpscape qdisc list` shows what there is$'
    for read in (
        lambda: scenario.rtt_ns,
        lambda: scenario.queues("forward"),
        lambda: engines.make("model").check(scenario),
        lambda: engines.make("mock").check(scenario),
    ):
        with pytest.raises(WordsError, match=line):
            read()


def test_without_the_extension_words_are_refused_with_the_way_to_build_it(monkeypatch):
    monkeypatch.delattr(tcpscape, "_core")
    monkeypatch.setitem(sys.modules, "tcpscape._core", None)
    describe.cache_clear()
    with pytest.raises(EngineError, match="make setup"):
        describe("netem delay 25ms")
    assert Scenario.of({"forward": {"delay": "25ms"}}).rtt_ns == 25_000_000
    with pytest.raises(EngineError, match=r"engine: mock cannot run here: .*make setup"):
        engines.make("mock")


@pytest.mark.parametrize("example", [example for _, example in _core.qdisc_registry()])
def test_the_mock_answers_for_every_queue(example):
    scenario = Scenario.of({"forward": "netem la 25ms", "bottleneck": example, "duration": "1s"})
    assert engines.make("mock").run(scenario, [0])[0].flows[0].goodput_mbps > 0


# Quantities as people write them.


@pytest.mark.parametrize(
    ("parse", "values"),
    [
        (units.parse_time, {"50ms": 50_000_000, "1.5s": 1_500_000_000, "2min": 120_000_000_000, "10us": 10_000, "7 ns": 7, 0: 0, "0": 0}),
        (units.parse_size, {"256KiB": 262_144, "262144": 262_144, 4096: 4096, "1MB": 10**6, "1.5k": 1536, "10B": 10}),
        (units.parse_rate, {"10mbit": 10**7, "1gbit": 10**9, "1.25MB/s": 10**7, "2.3Mbit/s": 2_300_000}),
        (units.parse_byte_rate, {"1MB/s": 10**6, "1MiB/s": 2**20, "10mbit": 1_250_000, 0: 0, "4940KiB/s": 4940 * 1024}),
        (units.parse_percent, {"0.1%": pytest.approx(0.001)}),
    ],
)
def test_quantities_in_base_units(parse, values):
    assert {text: parse(text) for text in values} == values


@pytest.mark.parametrize(
    ("parse", "bad", "word"),
    [
        (units.parse_time, "10", "unit"),
        (units.parse_time, 10, "unit"),
        (units.parse_time, "-1ms", "negative"),
        (units.parse_time, "2 years", "unit"),
        (units.parse_time, "400d", "day"),
        (units.parse_time, "fast", "quantity"),
        (units.parse_time, None, "quantity"),
        (units.parse_time, "1e999s", "finite"),
        (units.parse_rate, "0mbit", "rate 0"),
        (units.parse_rate, "10mbps", "bits or bytes"),
        (units.parse_percent, "120%", "100%"),
        (units.parse_percent, "0.1", "unit"),
        (units.parse_size, "-1KiB", "negative"),
        (units.parse_size, True, "quantity"),
    ],
)
def test_bad_quantities_name_field_problem_and_fix(parse, bad, word):
    with pytest.raises(UnitError) as e:
        parse(bad, "field")
    assert str(e.value).startswith("field: ")
    assert word in str(e.value)
    assert "; write" in str(e.value) or "; leave" in str(e.value)


@pytest.mark.parametrize(
    ("parse", "format_", "values"),
    [
        (units.parse_time, units.format_time, [1, 999, 1_000, 50_000_000, 1_058_000, 10**9, 86_400 * 10**9]),
        (units.parse_size, units.format_size, [1, 1023, 1024, 262_144, 10**6, 2**30 + 1]),
        (units.parse_rate, units.format_rate, [1, 1000, 2_300_000, 10**7, 10**9 + 1]),
    ],
)
def test_quantities_round_trip(parse, format_, values):
    assert [parse(format_(value)) for value in values] == values


def test_bdp():
    # 10 Mbit/s x 50 ms = 62 500 B
    assert units.buffer_bytes("2bdp", 10**7, 50_000_000) == 125_000
    assert units.buffer_bytes("64KiB", 10**7, 0) == 65_536
    with pytest.raises(UnitError, match="needs a delay"):
        units.buffer_bytes("2bdp", 10**7, 0)
