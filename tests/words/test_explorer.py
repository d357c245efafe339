"""What the explorer says of a check on a kernel."""

from __future__ import annotations

import pytest

from tcpscape.stats import Estimate
from tcpscape.words import explorer


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ({"cubic": None}, "so far"),
        ({"cubic": Estimate(0.8, float("nan"), float("nan"), 1)}, "one run of each has no interval"),
        ({"cubic": Estimate(0.837, 0.648, 1.08, 3)}, "3 runs of each show no difference, and leave one open: under cubic"),
        ({"cubic": Estimate(1.0, 1.0, 1.0, 3), "bbr": Estimate(0.8, 0.7, 0.9, 3)}, "differ: the kernel carries 0.800 [0.700, 0.900] × under bbr"),
        ({"cubic": Estimate(1.01, 1.005, 1.02, 3)}, "agree within 5 %"),
    ],
)
def test_a_check_tells_a_difference_that_the_interval_shows_and_no_other(ratios: dict[str, Estimate | None], said: str) -> None:
    assert said in explorer.check(ratios, "virtual", 3)
