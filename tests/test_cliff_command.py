"""`tcpscape cliff`: edges as a table and as JSON, and what it refuses."""

import pytest

RIG = ("--rcvbuf", "256KiB", "--app", "5MiB/s", "--duration", "5s", "--most", "0")


def test_edges_of_two_paths(cli, need_model):
    got = cli("cliff", "--rtt", "24,50ms", "--cca", "bbr", *RIG, "--json")
    assert got.status == 0, got.err
    for said, rtt in zip(got.lines, (24e6, 50e6), strict=True):
        assert (said["cca"], said["rtt_ns"], said["threshold"]) == ("bbr", rtt, 0.5)
        assert 0.08 < said["edge"] / rtt < 0.25
        assert said["interval"][0] <= said["edge"] <= said["interval"][1]
        assert sum(x["n"] for x in said["levels"]) <= said["runs"]


def test_the_table(cli, need_model):
    got = cli("cliff", "--rtt", "50ms", "--along", "loss", "--threshold", "30%", "--cca", "cubic", *RIG)
    assert got.status == 0, got.err
    assert "Where 30 % of the unimpaired goodput is left, along loss" in got.out
    row = next(line for line in got.out.splitlines() if line.startswith("cubic"))
    assert row.split()[1] == "50ms"
    assert "%" in row.split()[2]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--along", "moon"), "along: 'moon' is no axis of a cliff; write jitter or loss"),
        (("--jitter", "5ms"), "jitter: it is what the search varies; leave --jitter out"),
        (("--threshold", "0%"), "threshold: 0 is no share of the impairment-free rate"),
        (("--rtt", "0ms"), "rtt: 0s is not a path"),
    ],
)
def test_what_is_refused(cli, need_model, args, error):
    got = cli("cliff", *(("--rtt", "50ms") if "--rtt" not in args else ()), *args)
    assert got.status == 2
    assert error in got.err
