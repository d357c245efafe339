"""Captures as other programs read them: tshark checks every checksum, follows the windows and finds the retransmissions; tcptrace counts them."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import need
from tcpscape import engines
from tcpscape.scenario import files, options
from tcpscape.trial import Capture

CASES = {
    "lossy": lambda: files.load("lossy-dsl"),
    "jittered": lambda: files.load("jitter-cliff"),
    "several flows": lambda: options.scenario(
        {"forward": "netem delay 15ms loss 0.2%", "bottleneck": "tbf rate 20mbit burst 16kb latency 50ms", "reverse": "netem delay 15ms"},
        mix="cubic*2,bbr@1s,reno@2s-4s",
    ),
    "duplicates, offload, small windows": lambda: options.scenario(
        {"forward": "netem delay 10ms loss 0.5% duplicate 1%", "reverse": "netem delay 10ms 2ms loss 1% duplicate 1%"},
        flow={"rcvbuf": 65_536},
        offload=True,
    ),
}
CHECKS = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
GOOD = "1"  # of ip.checksum.status and tcp.checksum.status
AGAIN = ("retransmission", "out_of_order")  # fast and spurious ones count as retransmissions too
FIELDS = [
    "tcp.stream",
    "ip.src",
    "ip.checksum.status",
    "tcp.checksum.status",
    "tcp.window_size",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    *(f"tcp.analysis.{a}" for a in AGAIN),
    "tcp.flags.syn",
    "_ws.malformed",
    "frame.time_epoch",
    "tcp.len",
    "frame.protocols",
]
SENDER = "10.0.0.1"
PROTOCOLS = {("eth:ethertype:ip:tcp", False), ("eth:ethertype:ip:tcp", True), ("eth:ethertype:ip:tcp:data", True)}  # nothing read into the payload

pytestmark = pytest.mark.slow


def tool(name: str, package: str) -> str:
    """Where a program is; skips where it is missing."""
    if found := shutil.which(name):
        return found
    pytest.skip(f"{name} is missing: apt-get install {package}")


@pytest.fixture(scope="module", params=CASES)
def captured(request, tmp_path_factory):
    """A trial with its packets, and its capture."""
    model = engines.make("model")
    need("model")
    scenario = CASES[request.param]().model_copy(update={"duration": 5_000_000_000})
    file = tmp_path_factory.mktemp("pcap") / "x.pcapng"
    model.write_pcap(scenario, 3, file)
    return model.run(scenario, [3], capture=Capture(packets=True))[0], file


@pytest.fixture(scope="module")
def seen(captured):
    """The trial, and each packet as tshark sees it."""
    trial, file = captured
    tshark = tool("tshark", "tshark")
    said = subprocess.run(
        [tshark, *CHECKS, "-r", file, "-T", "fields", *(x for f in FIELDS for x in ("-e", f))], capture_output=True, text=True, check=True
    )
    return trial, [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in said.stdout.splitlines()]


def test_every_packet_is_sound(seen):
    _, rows = seen
    assert len(rows) > 500
    assert {(r["ip.checksum.status"], r["tcp.checksum.status"], r["_ws.malformed"]) for r in rows} == {(GOOD, GOOD, "")}
    assert {(r["frame.protocols"], r["tcp.len"] != "0") for r in rows} <= PROTOCOLS


def test_bytes_and_times_are_the_trials(seen):
    trial, rows = seen
    sent = [(r["frame.time_epoch"], int(r["tcp.len"])) for r in rows if r["ip.src"] == SENDER]
    assert sum(n for _, n in sent) == trial.packets.filter(received=0)["len"].sum()
    assert {int(t.replace(".", "")) for t, _ in sent} == set(trial.packets.filter(received=0)["t_ns"])
    assert max(n for _, n in sent) == 1448


def test_windows_are_scaled_back(seen):
    trial, rows = seen
    ours = trial.packets.filter(received=1)["wnd"].to_list()
    assert [int(r["tcp.window_size"]) for r in rows if r["ip.src"] != SENDER] == ours
    sent = {(r["tcp.flags.syn"] in ("1", "True"), int(r["tcp.window_size"])) for r in rows if r["ip.src"] == SENDER and r["tcp.window_size"] != "0"}
    assert sent == {(True, 64_240), (False, 64_256)}


def test_sack_blocks_are_decoded(seen):
    trial, rows = seen
    received = trial.packets.filter(received=1)
    for edge, field in (("start", "le"), ("end", "re")):
        ours = received.select("nsack", *(f"sack{k}_{edge}" for k in range(3))).iter_rows()
        want = [",".join(map(str, row[1 : 1 + row[0]])) for row in ours]
        assert [r[f"tcp.options.sack_{field}"] for r in rows if r["ip.src"] != SENDER] == want
    assert received["nsack"].sum() > 0


def test_tshark_finds_our_retransmissions(seen):
    trial, rows = seen
    found = Counter(int(r["tcp.stream"]) for r in rows if r["ip.src"] == SENDER and any(r[f"tcp.analysis.{a}"] for a in AGAIN))
    for stream, flow in enumerate(trial.flows):
        assert found[stream] == pytest.approx(flow.retransmits, rel=0.02, abs=3)
    assert sum(found.values()) > 0


def test_tcptrace_finds_our_retransmissions(captured, tmp_path: Path):
    trial, file = captured
    editcap, tcptrace = tool("editcap", "wireshark-common"), tool("tcptrace", "tcptrace")
    old = tmp_path / "x.pcap"
    subprocess.run([editcap, "-F", "pcap", file, old], check=True)
    said = subprocess.run([tcptrace, "-l", old], capture_output=True, text=True, check=True).stdout
    again = [int(n) for n in re.findall(r"rexmt data pkts:\s+(\d+)\s+rexmt", said)]
    assert again == pytest.approx([f.retransmits for f in trial.flows], rel=0.02, abs=3)


def test_a_path_that_cannot_be_written_is_one_line(need_model, cli, tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    got = cli("run", "lossy-dsl", "--duration", "1s", "--seeds", "1", "--pcap", file / "x.pcapng")  # not even root can write there
    assert got.status != 0
    assert got.err.count("\n") == 1
    assert str(file / "x.pcapng") in got.err
