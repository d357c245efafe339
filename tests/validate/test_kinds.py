"""Fidelity by congestion control and queue, as the benches write it."""

import json
import sys

import pytest

from conftest import ROOT
from tcpscape.scenario.scenario import Scenario
from tcpscape.validate.compare import Divergence
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.runs import Runs, TrialNumbers


@pytest.fixture
def kinds(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import kinds

    yield kinds
    sys.modules.pop("kinds")


def compared(id, ratio, flows, bottleneck="tbf rate 10mbit burst 6056 limit 64000"):
    one = NamedScenario(id, Scenario.of({"forward": "netem delay 10ms", "bottleneck": bottleneck, "flows": [{"cca": cca} for cca in flows]}))
    sides = [Runs(tuple(TrialNumbers(g * len(flows), 0, parts=(g,) * len(flows), seed=i) for i in range(2))) for g in (ratio, 1.0)]
    return Divergence(one, *sides)


def test_alone_and_shared_are_told_apart(kinds, tmp_path):
    codel = "tbf rate 10mbit burst 6056 limit 64000; codel limit 40 ecn"
    some = [compared("a", 1.1, ["cubic"]), compared("b", 1.2, ["cubic", "bbr"], codel), compared("c", 1.0, ["bbr"], ())]
    kinds.write(some, "model-1", "2026-11-21", tmp_path / "f.json")
    said = json.loads((tmp_path / "f.json").read_text())
    assert said["controls"]["cubic"] == {"alone": {"n": 1, "median": 0.0953, "p90": 0.0953}, "shared": {"n": 1, "median": 0.1823, "p90": 0.1823}}
    assert said["controls"]["bbr"]["shared"]["n"] == 1
    assert {name: said["queues"][name]["total"]["n"] for name in ("netem", "tbf")} == {"netem": 3, "tbf": 2}
    assert {name: said["queues"][name] for name in ("bfifo", "codel")} == {
        "bfifo": {"total": {"n": 1, "median": 0.0953, "p90": 0.0953}},
        "codel": {"total": {"n": 1, "median": 0.1823, "p90": 0.1823}, "groups": {"n": 2, "median": 0.1823, "p90": 0.1823}},
    }
    text = kinds.page(some, ["bbr", "cubic", "fixed"])
    assert "| cubic | 1 | 0.095 | 0.095 | +0.095 |" in text
    assert "| codel ecn | 1 | 0.182 |" in text
    assert "fixed" not in text


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import topology

    yield topology
    sys.modules.pop("topology")


def test_the_section_of_real_networks_takes_the_place_of_the_old_one(bench, tmp_path):
    page = tmp_path / "fidelity.md"
    page.write_text(f"# Fidelity\n\n{bench.kept_section(page)}\n\n## Further\n")
    bench.insert("## Real networks\n\nfirst\n", page)
    bench.insert("## Real networks\n\nsecond\n", page)
    text = page.read_text()
    assert text.count("## Real networks") == text.count(bench.BEGIN) == text.count(bench.END) == 1
    assert "first" not in text
    assert bench.kept_section(page) == text[text.index(bench.BEGIN) : text.index("\n\n## Further")]
