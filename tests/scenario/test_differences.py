"""In what two scenarios differ, in words."""

import pytest

from tcpscape.scenario.differences import differences
from tcpscape.scenario.scenario import Scenario

BASE = {"forward": [{"delay": "25ms", "jitter": "8ms"}], "reverse": [{"delay": "25ms"}], "bottleneck": [{"rate": "10mbit"}]}


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({"name": "other", "about": "other"}, []),
        ({"flows": [{"cca": "bbr"}]}, []),
        ({"forward": [{"delay": "25ms", "jitter": "4ms"}]}, ["jitter 8ms / 4ms normal of the data"]),
        ({"forward": [{"delay": "25ms"}]}, ["jitter 8ms normal of the data / none"]),
        ({"forward": [{"delay": "25ms", "jitter": "8ms", "limit": 1000}]}, ["forward limit 100000 / 1000"]),
        ({"bottleneck": []}, ["bottleneck 10mbit / none", "queue a FIFO of 62.5kB (1 BDP) / none"]),
        ({"bottleneck": [{"rate": "10mbit", "queue": "fq_codel"}]}, ["queue a FIFO of 62.5kB (1 BDP) / fq_codel"]),
        ({"ecn": True}, ["none / ECN"]),
        ({"mtu": 9000}, ["mtu 1500 / 9000"]),
        ({"kernel": "6.12,wmem_max=4MiB"}, ["kernel profile 6.1 / 6.12", "kernel wmem_max default / 4MiB"]),
        ({"duration": "20s"}, ["duration 10s / 20s"]),
        ({"flows": [{"count": 3}]}, ["1 flow / 3 flows"]),
        ({"changes": [{"where": "forward", "at": "3s", "set": {"loss": "1%"}}]}, ["changes none / forward loss 1% from 3s on"]),
    ],
)
def test_each_difference_has_both_values(change, texts):
    assert differences(Scenario.of(BASE), Scenario.of({**BASE, **change})) == texts


def test_the_place_of_a_netem_is_a_difference_of_its_own():
    at_sender, at_router = ({**BASE, "forward": [{"at": place, "delay": "25ms", "jitter": "8ms"}]} for place in ("sender", "router"))
    assert differences(Scenario.of(at_sender), Scenario.of(at_router)) == ["netem at the sender (it treats super-packets as one) / none"]


def test_hops_of_another_kind_are_written_out():
    """The same delay as fields at a router and as tc's words at the sender: no phrase differs, the hops do."""
    fields, words = ({**BASE, "forward": [hop]} for hop in ({"at": "router", "delay": "25ms"}, "netem delay 25ms"))
    assert differences(Scenario.of(fields), Scenario.of(words)) == ["forward at router delay 25ms / netem delay 25ms"]
