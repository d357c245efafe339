"""Good files of every format that tcpscape reads; results are made once by tcpscape itself."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "interchange"
SCENARIO = b"""\
about: a path
forward: {delay: 5ms, jitter: 1ms, loss: 0.1%, limit: 100}
bottleneck: {rate: 10mbit, buffer: 1bdp}
reverse: {delay: 5ms}
flows:
  - {cca: cubic, count: 2, rcvbuf: 256KiB}
  - {cca: {name: bbr}, start: 20ms, stop: 90ms, app: 1MB/s, read: 16KiB/1ms}
kernel: {profile: "6.12", rmem_max: 4MiB}
changes:
  - {where: bottleneck, at: 50ms, set: {rate: 5mbit}}
  - {where: forward, ramp: [20ms, 40ms], start: {delay: 5ms}, end: {delay: 8ms}}
duration: 100ms
"""
WORDED = b"""\
forward: [netem delay 5ms 1ms loss 0.1%, {at: router, delay: 1ms}]
bottleneck: {rate: 10mbit, queue: fq_codel limit 100}
reverse: netem delay 5ms
changes:
  - {where: bottleneck, every: 50ms, hold: 10ms, set: {outage: true}}
  - {where: bottleneck, trace: [[0s, 10mbit], [50ms, 5mbit]], repeat: 80ms}
flows: [{player: "1,2.5mbit", abr: bola}]
offload: true
ecn: true
duration: 100ms
"""
NETWORK = b"""\
forward: {at: router, delay: 2ms}
bottleneck: {rate: 10mbit, buffer: 1bdp}
reverse: [{at: router, delay: 2ms}, {rate: 5mbit}]
links:
  - {name: core, between: [r1, far], delay: 1ms, rate: 20mbit, up_rate: 8mbit, queue: fq_codel limit 100}
flows:
  - {cca: cubic, count: 2, rtt: 30ms}
  - {cca: bbr, direction: up, access: {delay: 1ms, rate: 20mbit}}
  - {enter: r1, leave: far, app: {response: 10kB, every: 20ms}}
  - {app: {on: 20ms, off: 10ms}, access: {before: netem delay 1ms, acks_after: [{delay: 2ms}]}}
transfers: ["50/s,10kB", {rate: 10/s, size: 20kB, cca: reno, direction: up, shape: 1.5, most: 100kB}]
probes: [voice, ping~up, {name: own, kind: udp_echo, size: 100B, interval: 10ms, enter: r1}]
changes: [{where: core.reverse, at: 50ms, set: {rate: 4mbit}}]
duration: 100ms
"""
CAMPAIGN = b"""\
name: mine
about: a campaign
scenario:
  forward: netem delay ${d} limit 1000
  bottleneck: {rate: 10mbit, buffer: 1bdp}
  reverse: netem delay ${d} limit 1000
  duration: 100ms
  changes:
    - {where: bottleneck, at: 50ms, set: {rate: "${after}"}}
axes: {d: "5,10ms", r: [2, 3]}
derive: {after: 10mbit / r}
zip:
  - {cca: [cubic, dctcp], ecn: [false, true]}
metric: queue_max
seeds: 1
"""
CONDITIONS = b"""\
name: jit
conditions: {rtt: 10ms, rate: 5mbit, duration: 100ms, flow: {rcvbuf: 64KiB}, kernel: {profile: "6.12"}}
axes: {jitter: 0..2ms/1ms}
pool: []
cca: [cubic, bbr]
engines: [mock]
seeds: 2
precision: 50%
max_seeds: 6
"""
TOML = b'duration = "100ms"\nforward = "netem delay 5ms"\n[bottleneck]\nrate = "5mbit"\nbuffer = "1bdp"\n[[flows]]\ncca = "cubic"\ncount = 2\n'
TRACED = b"forward: {delay: 5ms}\nbottleneck: {trace: link.up, buffer: 20KB}\nreverse: {delay: 5ms}\nduration: 100ms\n"
TRACE = b"".join(b"%d\n" % (2 * i) for i in range(1, 100))
PING = b"""\
PING example.org (192.0.2.1) 56(84) bytes of data.
64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=25.1 ms

--- example.org ping statistics ---
20 packets transmitted, 19 received, 5% packet loss, time 19024ms
rtt min/avg/max/mdev = 24.301/26.112/31.990/1.771 ms
"""
VALIDATED = b"""\
id,cca,rtt_ms,duration_s,jitter_ms,distribution,jitter_on,loss_pct,rate_mbit,buffer_bytes,rcvbuf,flows,app_MBps,listener,kernel
c000,cubic,10,0.1,1,uniform,forward,0.1,5,20000,262144,1,0,,"6.1,max_tcp_header=256"
c001,reno,10,0.1,0,,,,5,20000,,2,1,,
"""
LISTED = b"- {id: a, forward: netem delay 5ms, bottleneck: {rate: 5mbit}, duration: 100ms}\n- {id: b, forward: netem delay 8ms, bottleneck: {rate: 5mbit}, duration: 100ms}\n"
CONTROL = b"""\
from tcpscape import Control


class Mine(Control):
    def on_ack(self, sample, window):
        window.additive_increase(window.cwnd, sample.acked)

    def ssthresh(self, sample, window):
        return max(2, window.cwnd // 2)
"""
COLUMNS = b"id,cca,rtt_ms,duration_s,jitter_ms,distribution,jitter_on,loss_pct,rate_mbit,buffer_bytes,rcvbuf,flows,app_MBps,"
VALUES = b"c006,cubic,111.2,10,0,,,0,26.0,505520,0,2,0,"
RECORDED = {
    "recorded_conditions.csv": COLUMNS + b"listener,kernel\n" + VALUES + b",6.1\n",
    "recorded_results.csv": COLUMNS
    + b"repeat,goodput_mbps,flow_goodput_mbps,retransmits,data_segs_out,dsack_dups,reord_seen,min_rtt_us\n"
    + VALUES
    + b"0,24.38111,6.29978;18.08133,38,20619,0,0,111200\n"
    + VALUES
    + b"1,24.41458,6.85076;17.56381,37,20646,0,0,111200\n",
}
FRAGMENT = b"CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n"
RESULTS = "results"
"""The result directory in a case's working directory."""


_PATH = ["--bottleneck", "tbf rate 5mbit burst 6056 limit 15000", "--forward", "netem delay 5ms", "--reverse", "netem delay 5ms"]
_MADE = {
    RESULTS: ["run", *_PATH, "--cca", "cubic,bbr", "--duration", "200ms", "--seeds", "2", "--samples", "50ms", "--out", RESULTS],
    "swept": [
        "sweep",
        "--rtt",
        "10ms",
        "--rate",
        "5mbit",
        "--jitter",
        "0,1ms",
        "--duration",
        "100ms",
        "--seeds",
        "2",
        "--cca",
        "cubic",
        "--out",
        "swept",
    ],
    "studied": ["study", "run", "baseline", "--quick", "--engine", "mock", "--no-report", "--out", "studied"],
    "advised": ["advise", "--rtt", "10ms", "--jitter", "1ms", "--seeds", "2", "--cca", "cubic,bbr", "--engine", "mock", "--out", "advised"],
    "validated": [
        "validate",
        "--engine",
        "model",
        "--engine",
        "mock",
        "--random",
        "2",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--cca",
        "cubic",
        "--worst",
        "0",
        "--out",
        "validated",
    ],
    "rows.csv": ["export", RESULTS, "--to", "csv", "--out", "rows.csv"],
    "rows.parquet": ["export", RESULTS, "--to", "parquet", "--out", "rows.parquet"],
    "samples.csv": ["export", RESULTS, "--to", "csv", "--samples", "--out", "samples.csv"],
    "own.json": ["export", RESULTS, "--to", "iperf3", "--cca", "cubic", "--seed", "0", "--out", "own.json"],
    "own.flent.gz": ["export", RESULTS, "--to", "flent", "--cca", "cubic", "--seed", "0", "--out", "own.flent.gz"],
}
"""What tcpscape writes → the command line that writes it."""


@cache
def made() -> Mapping[str, Mapping[str, bytes]]:
    """Result directories that tcpscape wrote, and files that it exported: name → files. Written by another process: one with threads cannot be forked."""
    program = "import json, sys; from tcpscape.cli.main import call; sys.exit(any([call(words) for words in json.loads(sys.argv[1])]))"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", program, json.dumps(list(_MADE.values()))], cwd=folder, check=True, capture_output=True)
        return {name: _content(Path(folder), name) for name in _MADE}


def _content(folder: Path, name: str) -> dict[str, bytes]:
    found = sorted(path for path in (folder / name, *(folder / name).rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _recorded(pattern: str) -> bytes:
    return next(iter(sorted(DATA.glob(pattern)))).read_bytes()


FILES = (
    "scenario.yaml",
    "worded.yaml",
    "network.yaml",
    "scenario.toml",
    "traced.yaml",
    "campaign.yaml",
    "conditions.yaml",
    "link.up",
    "ping.txt",
    "iperf3.json",
    "flow.flent.gz",
    "conditions.csv",
    "listed.yaml",
    "mine.py",
    "fragment.config",
    "rows.csv",
    "rows.parquet",
    "samples.csv",
    "own.json",
    "own.flent.gz",
)
"""Names of the good files."""


@cache
def content(name: str) -> bytes:
    fixed = {
        "scenario.yaml": SCENARIO,
        "worded.yaml": WORDED,
        "network.yaml": NETWORK,
        "scenario.toml": TOML,
        "traced.yaml": TRACED,
        "campaign.yaml": CAMPAIGN,
        "conditions.yaml": CONDITIONS,
        "link.up": TRACE,
        "ping.txt": PING,
        "conditions.csv": VALIDATED,
        "listed.yaml": LISTED,
        "mine.py": CONTROL,
        "fragment.config": FRAGMENT,
        **RECORDED,
    }
    if name in fixed:
        return fixed[name]
    if name == "iperf3.json":
        return _recorded("iperf3-up-2.json")
    if name == "flow.flent.gz":
        return _recorded("*.flent.gz")
    return made()[name][name]


def needed(words: Iterable[str]) -> dict[str, bytes | str]:
    """The files that a command line names, a result directory among them."""
    named = [part for word in words for part in (word, word.partition("=")[2], word.partition(":")[0], word.partition("=")[2].partition(":")[0])]
    files: dict[str, bytes | str] = {name: content(name) for name in FILES if name in named}
    if "traced.yaml" in files:
        files["link.up"] = TRACE
    for name in (RESULTS, "swept", "studied", "advised", "validated"):
        if name in named:
            files |= made()[name]
    return files
