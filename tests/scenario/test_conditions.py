"""Paths in a user's words: the order of packets, the distribution of jitter, the queue of a bottleneck and its limit."""

import inspect

import pytest

import tcpscape
from tcpscape.campaign import record
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings.cliff import levels
from tcpscape.findings.cliff.levels import level
from tcpscape.report import tables
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.path import Link, Netem
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import PATH
from tcpscape.words import paths

pytestmark = pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")


def path(**fields):
    return Conditions.model_validate({"rtt": "60ms", "rate": "25mbit", **fields})


def bottleneck(**fields):
    scenario = path(**fields).scenario("cubic")
    return scenario.bottleneck[0].words(scenario.rtt_ns)


def test_keep_is_the_order_that_keeps_mean_and_spread_of_the_delay():
    assert path(jitter="5ms", order="keep") == path(jitter="5ms", order="correlated")
    assert Netem(delay="20ms", jitter="5ms", order="keep").words() == ["jitter delay 20ms 5ms distribution normal order correlated limit 100000"]


def test_jitter_in_fields_is_normal_unless_it_says_uniform_and_tcs_own_words_keep_their_meaning():
    assert Netem(delay="20ms", jitter="5ms").words() == ["netem delay 20ms 5ms distribution normal limit 100000"]
    assert Netem(delay="20ms", jitter="5ms", distribution="uniform").words() == ["netem delay 20ms 5ms limit 100000"]
    assert Scenario.of({"forward": "netem delay 20ms 5ms"}).queues("forward")[0][0].distribution == "uniform"


def test_results_of_uniform_and_normal_jitter_have_different_addresses_and_a_file_says_which_it_is():
    normal, uniform = (Scenario.of({"forward": {"delay": "20ms", "jitter": "5ms", "distribution": d}}) for d in ("normal", "uniform"))
    assert normal.address() == Scenario.of({"forward": {"delay": "20ms", "jitter": "5ms"}}).address() != uniform.address()
    for scenario in (normal, uniform):
        assert Scenario.of(scenario.to_dict()) == scenario
        assert scenario.to_dict()["forward"][0]["distribution"] == scenario.forward[0].distribution


def test_an_address_has_no_default_that_does_not_act():
    """Results that were kept before fields had another default, or one more, are found again."""
    address = {"address": True}
    assert Netem(delay="20ms").model_dump(context=address)["distribution"] == "uniform"
    link, written = (Link.model_validate(fields).model_dump(context=address) for fields in ({"rate": "20mbit"}, {"rate": "20mbit", "buffer": "1bdp"}))
    assert link == written
    assert "queue" not in link
    assert Link(rate="20mbit", queue="fq_codel").model_dump(context=address)["queue"] == "fq_codel"


def test_a_directory_of_an_older_version_keeps_its_uniform_jitter():
    hop = {"delay": "20ms", "jitter": "5ms"}
    old = {"campaign": {"scenario": {"forward": hop}}, "base": {"forward": [hop, "netem delay 1ms"]}, "cells": [{"scenarios": [{"reverse": hop}]}]}
    new = record.current(old)
    said = {"distribution": "uniform", **hop}
    assert new["campaign"]["scenario"]["forward"] == new["base"]["forward"][0] == new["cells"][0]["scenarios"][0]["reverse"] == said
    assert new["base"]["forward"][1] == "netem delay 1ms"
    assert record.current({**old, "format": record.FORMAT})["base"]["forward"][0] == hop


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("fq_codel", "tbf rate 25mbit burst 6056 limit 187500; fq_codel limit 124"),
        ("codel", "tbf rate 25mbit burst 6056 limit 187500; codel limit 124"),
        ("bfifo", "tbf rate 25mbit burst 6056 limit 187500; bfifo limit 187500"),
        ("cake", "cake memlimit 338272 bandwidth 25mbit"),
        ("red", "tbf rate 25mbit burst 6056 limit 187500; red limit 187500 avpkt 1500 bandwidth 25mbit"),
        ("choke", "tbf rate 25mbit burst 6056 limit 187500; choke limit 124 bandwidth 25mbit"),
        ("fq_codel target 10ms", "tbf rate 25mbit burst 6056 limit 187500; fq_codel target 10ms limit 124"),
    ],
)
def test_a_buffer_is_a_limit_in_the_unit_of_its_queue(queue, words):
    """25 Mbit/s · 60 ms = 187,500 bytes = 123.8 frames of 1514 bytes; a packet in cake's memory is 1448 + 1280 bytes."""
    assert bottleneck(queue=queue, buffer="1bdp") == words


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("fq_codel", "; fq_codel"),
        ("fq_codel limit 90", "; fq_codel limit 90"),
        ("cake", "cake bandwidth 25mbit"),
        ("red", "; red limit 187500 avpkt 1500 bandwidth 25mbit"),
    ],
)
def test_a_queue_without_a_buffer_has_its_own_limit(queue, words):
    assert bottleneck(queue=queue).endswith(words)
    assert bottleneck() == "tbf rate 25mbit burst 6056 limit 187500"


@pytest.mark.parametrize(
    "queue", ["pfifo", "bfifo", "red", "codel", "fq_codel", "pie", "fq_pie", "cake", "dualpi2", "fq", "pfifo_head_drop", "sfq", "choke"]
)
def test_every_queue_carries_packets_by_its_name_alone(queue):
    scenario = path(queue=queue, buffer="2bdp", duration="1s").scenario("cubic")
    assert Runner(make("model"), 1).run(scenario, [0])[0].goodput_mbps > 2


def test_a_steady_mean_at_the_threshold_is_no_chaos():
    """Retention 0.5 with a CV of 1.6 %: half of the runs are below one half, and no two of them disagree about the path."""
    steady, torn = [4.92, 5.08] * 6, [2.0, 9.0] * 6
    assert level(1, steady, [10.0] * 12).cv.value == pytest.approx(0.0167, abs=1e-3)
    assert levels.side(level(1, steady, [10.0] * 12)) != "chaos zone"
    assert levels.side(level(1, torn, [10.0] * 12)) == "chaos zone"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"jitter": "15ms"}, "25 %, published as chaos zone"),
        ({"jitter": "15ms", "order": "keep"}, "25 %"),
        ({"jitter": "15ms", "distribution": "uniform"}, "25 %"),
        ({}, ""),
    ],
)
def test_the_published_zone_is_shown_as_such_and_only_where_it_applies(fields, said):
    assert tables._zone(path(**fields).scenario("bbr")) == said


@pytest.mark.parametrize(("loss", "burst"), [("0.1%", 2), ("1%", 5), ("10%", 20), ("50%", 3), ("75%", 3)])
def test_loss_in_bursts_has_the_share_and_the_mean_run_that_are_asked_for(loss, burst):
    """Gilbert's chain: the share of its bad state is p / (p + r), and a stay there lasts 1 / r packets on average."""
    scenario = path(loss=loss, loss_burst=burst, loss_on="forward").scenario("cubic")
    (queue,) = scenario.forward[0].plan()
    model = queue["loss"]
    one = 2**32 - 1
    p, r = model["p"] / one, model["r"] / one
    assert (model["model"], model["h"], model["k1"]) == ("gemodel", 0, 0)
    assert p / (p + r) == pytest.approx(float(loss.rstrip("%")) / 100, rel=1e-6)
    assert 1 / r == pytest.approx(burst, rel=1e-6)
    assert scenario.queues("forward")[0][0].loss == pytest.approx(float(loss.rstrip("%")) / 100, rel=1e-6)
    assert f"loss {loss} in bursts of {burst} of the data" in paths.in_words(scenario)
    assert Scenario.of(scenario.to_dict()) == scenario


def test_independent_loss_has_the_address_that_it_always_had():
    without = Netem(delay="20ms", loss="1%").model_dump(context={"address": True})
    assert "loss_burst" not in without
    assert Netem(delay="20ms", loss="1%", loss_burst=1) == Netem(delay="20ms", loss="1%")
    assert Netem(delay="20ms", loss="1%", loss_burst=5).model_dump(context={"address": True})["loss_burst"] == 5


def test_the_nodes_of_a_path_are_those_of_its_hops():
    scenario = path(loss="1%", reverse_at="sender").scenario("cubic")
    assert (scenario.forward[0].at, scenario.reverse[0].at) == ("router", "sender")


def test_bursts_are_an_axis_of_a_sweep():
    outcome = tcpscape.sweep(rtt="20ms", rate="10mbit", loss="2%", duration="1s", axes={"loss_burst": "1,10"}, cca="reno", seeds=2)
    independent, bursts = (cell.scenarios[0].forward[0] for cell in outcome.cells)
    assert (independent.loss_burst, bursts.loss_burst) == (1, 10)
    assert "gemodel 0.2040816327% 10%" in bursts.words()[0]


@pytest.mark.parametrize("command", ["run", "sweep", "advise", "cliff"])
def test_every_command_that_takes_a_path_takes_all_of_it(cli, command):
    """On the command line and in Python."""
    offered = cli(command, "--help").out
    assert [name for name in PATH if f"--{name.replace('_', '-')} " not in offered] == []
    assert set(PATH) <= inspect.signature(getattr(tcpscape, command)).parameters.keys()
    assert set(PATH) <= Conditions.model_fields.keys()


def test_a_run_of_a_path_in_numbers_is_a_cell_of_its_sweep():
    path = {
        "rtt": "26ms",
        "jitter": "4ms",
        "loss": "0.1%",
        "loss_burst": 3,
        "corrupt": "0.2%",
        "rate": "10mbit",
        "queue": "fq_codel",
        "order": "keep",
        "jitter_on": "forward",
    }
    run, sweep = (f(**path, cca="bbr", seeds=1, duration="1s") for f in (tcpscape.run, tcpscape.sweep))
    assert [s.address() for s in run.cells[0].scenarios] == [s.address() for s in sweep.cells[0].scenarios]
    (scenario,) = run.cells[0].scenarios
    assert [hop.corrupt for hop in (*scenario.forward, *scenario.reverse)] == [0.002, 0.002]


def test_a_function_has_the_fields_of_a_path_and_no_others():
    with pytest.raises(TypeError, match=r"run\(\) got an unexpected keyword argument 'jiter'"):
        tcpscape.run(rtt="5ms", jiter="1ms")
    assert ":param loss_burst: mean number of packets lost in a row, `loss` staying the share" in tcpscape.cliff.__doc__


def test_a_cliff_says_what_kind_of_loss_and_where(cli, need_model):
    """Bursts of loss on the data alone; each level of it is that kind."""
    words = ["cliff", "--rtt", "20ms", "--along", "loss", "--most", "0", "--cca", "cubic", "--duration", "2s", "--rate", "10mbit"]
    assert "loss comes in bursts of 5, of the data; " in " ".join(cli(*words, "--loss-burst", "5", "--loss-on", "forward").out.split())
    assert "loss is random, of each direction; " in " ".join(cli(*words).out.split())


@pytest.mark.parametrize(
    "fields",
    [
        {"jitter": "0ms", "order": "keep", "distribution": "normal", "jitter_on": "forward"},
        {"axes": {"forward.jitter": "0ms,4ms", "jitter_on": "both,forward"}},
        {"loss": ["0%", "1%"], "loss_on": "forward", "loss_burst": "3"},
    ],
)
def test_what_belongs_to_jitter_or_loss_is_taken_with_either_also_with_none_of_it(fields):
    assert tcpscape.sweep(rtt="20ms", engine="mock", seeds=1, cca="reno", **fields).cells


def test_what_belongs_to_jitter_or_loss_is_refused_without_it_also_in_python():
    for ask in (tcpscape.run, tcpscape.sweep, tcpscape.advise, tcpscape.cliff):
        with pytest.raises(tcpscape.TcpscapeError, match=r"^loss-on: there is no loss that it could belong to; give --loss too, or leave it out$"):
            ask(rtt="20ms", loss_on="forward", engine="mock", cca="reno")
