"""Programs of this machine in a guest: the log that a fake guest writes, and real programs on a real kernel in virtual time."""

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tcpscape import diagnose, engines
from tcpscape.emulation.path import build
from tcpscape.engines.guest import process, programs
from tcpscape.engines.guest.process import Boot
from tcpscape.engines.guest.programs import ERROR, MESSAGE, OUTPUT, TIME, GuestProgram
from tcpscape.errors import EngineError
from tcpscape.scenario import options
from tcpscape.scenario.vocabulary import PathWords

FAKE = """
import json, sys
from pathlib import Path

options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
shared = Path(options["TCPSCAPE_IO"])
{script}
"""
"""A fake User-Mode Linux whose `script` does what the guest's program does."""
LIBRARY = """
def log(kind, data, number=0):
    with open(shared / f"j1.log{number}", "ab", buffering=0) as file:
        file.write(bytes([kind]) + len(data).to_bytes(4, "little") + data)

def done(answer="{}"):
    (shared / "j1.json").write_text(answer)
    print("@tcpscape done j1", flush=True)

job = json.loads((shared / "j1.job").read_text())
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Starts a program in a fake guest that runs a script; its standard output and error go into files `out` and `err`."""
    monkeypatch.setattr("tcpscape.engines.guest.process.SHARED_MEMORY", tmp_path)

    def start(script, **job):
        linux = tmp_path / "linux"
        linux.write_text(f"#!{sys.executable}\n" + FAKE.format(script=LIBRARY + script))
        linux.chmod(0o755)
        files = tuple((tmp_path / name).open("wb") for name in ("out", "err"))
        streams = tuple(file.fileno() for file in files)
        running = GuestProgram(Boot(linux, b"", 1), "emulate", {"pcap": None, **job}, seed=7, streams=streams)
        running.files = files
        return running

    return start


def test_what_it_writes_is_copied_and_what_it_says_is_an_event(program, tmp_path):
    script = f"""
log({TIME}, (0).to_bytes(8, "little"))
log({MESSAGE}, b'{{"event": "started"}}\\n{{"event": "li')
log({OUTPUT}, b"one ")
log({ERROR}, b"two")
log({OUTPUT}, b"three")
log({MESSAGE}, b've", "n": 1}}\\n')
log({TIME}, (3 * 10**9).to_bytes(8, "little"))
log({MESSAGE}, b'{{"result": {{"status": 4}}}}\\n')
done()
"""
    with program(script) as running:
        assert list(running.events()) == [{"event": "started"}, {"event": "live", "n": 1}]
        assert (running.result(), running.seconds) == ({"status": 4}, 3.0)
    assert (tmp_path / "out").read_text() == "one three"
    assert (tmp_path / "err").read_text() == "two"
    assert not list(tmp_path.glob("tcpscape-*"))


def test_a_guest_that_is_two_files_ahead_is_told_when_one_was_read(program, tmp_path):
    script = f"""
jobs = open(options["dsp"])
for number in range(6):
    if number > 1:
        assert jobs.readline() == "\\n"
        assert not (shared / f"j1.log{{number - 2}}").exists()
    log({OUTPUT}, bytes([65 + number]) * 100_000, number)
log({MESSAGE}, b'{{"result": 1}}\\n', number)
done()
"""
    with program(script) as running:
        assert list(running.events()) == []
    text = (tmp_path / "out").read_text()
    assert [text[i] for i in range(0, len(text), 100_000)] == list("ABCDEF")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f'log({MESSAGE}, b\'{{"error": "serve: it ended; correct the command"}}\\n\'); done()', "virtual: serve: it ended; correct the command"),
        ('done(\'{"error": "emulate: no root; build it again"}\')', "virtual: emulate: no root; build it again"),
        ("done()", "its program ended without a result"),
        ("print('Kernel panic: no memory', flush=True); sys.exit(3)", "the guest died: it ended with status 3: Kernel panic: no memory"),
        ("print('@tcpscape done j2', flush=True)", "the guest died: it said done j2"),
    ],
)
def test_why_there_is_no_result_is_one_line(program, script, why):
    with program(script) as running, pytest.raises(EngineError) as error:
        list(running.events())
    assert why in str(error.value)
    assert "\n" not in str(error.value)


class Watched:
    """A guest of which each look finds what the next of `looks` says: s that pass, s of CPU time that it uses meanwhile, whether it wants a CPU."""

    def __init__(self, monkeypatch, looks):
        self._looks, self._ticks, self.at_s = iter(looks), 0.0, 0.0
        monkeypatch.setattr(programs.time, "monotonic", lambda: self.at_s)

    def activity(self):
        passed, used, wants_cpu = next(self._looks)
        self.at_s += passed
        self._ticks += used * programs.TICKS
        return process.Activity(int(self._ticks), wants_cpu)

    def ends_after(self, most_s):
        """How many looks it takes to find that it stands still, and whether it computes; None where it is not found."""
        still = programs.Standstill(self, most_s)
        for number in itertools.count():
            try:
                if still.is_over():
                    return number, still.is_busy
            except StopIteration:
                return None
            self.at_s += 1e-9


@pytest.mark.parametrize(
    ("looks", "end"),
    [
        ([(0.5, 0.5, True)] * 200, (120, True)),
        ([(0.5, 0.0, False)] * 200, (120, False)),
        ([(5.0, 0.0, True)] * 10_000, None),  # no CPU for it in 14 hours
        ([(5.0, 0.01, True)] * 5_000, None),
        ([(5.0, 0.01, True)] * 7_000, (6_000, True)),  # 60 s of CPU time in 8 hours
        ([(0.5, 0.0, False), (0.5, 0.01, True)] * 2_000, None),  # it does a little, again and again
        ([(600.0, 300.0, True)] * 20, None),  # it was not looked at, and may have moved
        ([(600.0, 0.0, False)] * 20, None),
    ],
)
def test_a_guest_that_a_busy_machine_gives_no_cpu_does_not_stand_still(monkeypatch, looks, end):
    monkeypatch.setattr(programs, "WATCH_S", 0.0)
    found = Watched(monkeypatch, looks).ends_after(60)
    assert (found and found[1]) == (end and end[1])
    assert found is None or abs(found[0] - end[0]) <= 2


def test_what_a_process_and_its_children_do_is_seen():
    def do(code):
        return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    idle, busy = do("input()"), do("while True: pass")
    parent = do("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 's = 0\\nfor i in range(10**7): s += i'])\nprint(flush=True)\ninput()")
    try:
        parent.stdout.readline()  # its child has ended
        waits_until(lambda: not process.activity(parent.pid).wants_cpu and not process.activity(idle.pid).wants_cpu)
        waits_until(lambda: process.activity(busy.pid).ticks > 2)
        assert process.activity(busy.pid).wants_cpu
        assert process.activity(parent.pid).ticks > process.activity(idle.pid).ticks + 20
    finally:
        for each in (idle, busy, parent):
            each.kill()
            each.communicate()
    assert process.activity(busy.pid) == process.Activity(0, wants_cpu=False)


def waits_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_program_that_computes_without_end_is_not_waited_for(program, monkeypatch):
    monkeypatch.setattr(programs, "STANDSTILL_S", 0.3)
    script = f"log({TIME}, (2 * 10**9).to_bytes(8, 'little'))\nwhile True: pass"
    with program(script) as running, pytest.raises(EngineError, match="virtual time stands at 2 s") as error:
        list(running.events())
    assert "programs compute, and none waits" in str(error.value)


@pytest.mark.parametrize(
    ("status", "flags", "who"),
    [
        (132, [], "'client.py --fast' computed for"),
        (1, ["the server 'spin' ended with status 132"], "the busiest program, a server or one that the command started, computed for"),
    ],
)
def test_a_program_that_computes_without_end_is_ended_and_named(program, monkeypatch, status, flags, who):
    monkeypatch.setattr(programs, "STANDSTILL_S", 0.3)
    result = json.dumps({"result": {"status": status, "flags": flags}}) + "\n"
    script = f"""
import subprocess
log({TIME}, (2 * 10**9).to_bytes(8, "little"))
idle, busy = (subprocess.Popen([sys.executable, "-c", code]) for code in ("input()", "while True: pass"))
assert busy.wait() == -4
log({MESSAGE}, {result.encode()!r})
done()
idle.kill()
"""
    with program(script, command=["client.py", "--fast"]) as running, pytest.raises(EngineError, match="virtual time stood at 2 s") as error:
        list(running.events())
    assert who in str(error.value)
    assert all(flag in str(error.value) for flag in flags)
    assert "\n" not in str(error.value)


def test_a_program_that_writes_without_end_while_no_time_passes_is_ended(program, monkeypatch):
    monkeypatch.setattr(programs, "MOST_STILL_S", 0.3)
    script = f"""
import subprocess
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
while busy.poll() is None:
    log({OUTPUT}, b"y" * 10)
log({MESSAGE}, json.dumps({{"result": {{"status": 132}}}}).encode() + b"\\n")
done()
"""
    with program(script, command=["yes"]) as running, pytest.raises(EngineError, match="'yes' computed for"):
        list(running.events())


def test_the_job_names_what_the_guest_must_know(program, tmp_path):
    script = f"log({MESSAGE}, json.dumps({{'result': job}}).encode() + b'\\n'); (shared / 'packets.pcapng').write_bytes(b'packets'); done()"
    with program(script, seed=3, pcap=str(tmp_path / "a.pcapng")) as running:
        list(running.events())
        job = running.result()
    assert job["mode"] == "emulate"
    assert job["directory"] == os.getcwd()
    assert job["job"] == {"seed": 3, "pcap": "/run/tcpscape/packets.pcapng"}
    assert Path(job["program"]).is_absolute()
    assert (tmp_path / "a.pcapng").read_bytes() == b"packets"


REFUSED = [
    (("--mix", "cubic:hystart=off"), "mix: 'cubic:hystart=0' sets a parameter, and the flows have the kernel's control; write its name alone"),
    (("--engine", "model"), "engine: 'model' runs no programs; choose live or virtual"),
    (("--bind", "/tmp"), "bind: programs on this machine's kernel may change its files anyway; leave it out, or add --engine virtual"),
]
REFUSED_IN_VIRTUAL_TIME = [
    (
        ("--control", "path.sock"),
        "control: programs in virtual time meet nothing of this machine's real time; leave out --control, or --engine virtual",
    ),
    (("--reach", "80"), "reach: programs in virtual time meet nothing of this machine's real time"),
    (("--outside",), "outside: programs in virtual time"),
    (("--bind", "nowhere"), "bind: nowhere is no directory; name one that is there"),
    (("--pcap", "/dev/null/packets.pcapng"), "pcap: cannot write /dev/null/packets.pcapng"),
]


def expect_refusal(command, why):
    assert (command.status, command.out) == (2, "")
    assert command.err.startswith(f"error: {why}"), command.err
    assert command.err.count("\n") == 1


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_what_means_nothing_here_is_refused(shell, words, why):
    expect_refusal(shell("emulate", "--rtt", "20ms", *words, "--", "true"), why)


@pytest.mark.parametrize(("words", "why"), REFUSED_IN_VIRTUAL_TIME)
def test_what_real_time_brings_is_refused(shell, need_programs, words, why):
    expect_refusal(shell("emulate", "--engine", "virtual", "--rtt", "20ms", *words, "--", "true"), why)


VIRTUAL = ("emulate", "--engine", "virtual", "--rtt", "20ms", "--rate", "20mbit", "--quiet")


def test_time_is_virtual_for_a_program(shell, need_programs):
    command = shell(*VIRTUAL, "--", "sh", "-c", "date +%s.%N; sleep 500; date +%s.%N; exit 5")
    begin, end = map(float, command.out.split())
    assert command.status == 5
    assert end - begin == pytest.approx(500, abs=1e-3)
    assert re.search(r"ended with status 5 after 500s", command.err)


FETCH = """
import hashlib, os, time, urllib.request
data = urllib.request.urlopen("http://far:8000/file").read()
print(len(data), hashlib.sha256(data).hexdigest(), time.time_ns(), os.urandom(8).hex())
open("left", "w").write("a copy in memory")
"""


def test_a_server_and_a_client_are_repeated_to_the_byte(shell, need_programs, tmp_path):
    data = os.urandom(1_000_000)
    (tmp_path / "file").write_bytes(data)
    serve = f"cd {tmp_path} && exec {sys.executable} -m http.server 8000"
    outputs, digests = [], []
    for seed in (1, 1, 2):
        words = (
            *VIRTUAL,
            "--loss",
            "0.5%",
            "--seed",
            str(seed),
            "--serve",
            serve,
            "--pcap",
            str(tmp_path / "packets.pcapng"),
            "--",
            sys.executable,
            "-c",
            FETCH,
        )
        command = shell(*words, cwd=tmp_path)
        assert command.status == 0, command.err
        outputs.append(command.out)
        digests.append(hashlib.sha256((tmp_path / "packets.pcapng").read_bytes()).hexdigest())
    assert outputs[0].split()[:2] == ["1000000", hashlib.sha256(data).hexdigest()]
    assert outputs[0] == outputs[1] != outputs[2]
    assert digests[0] == digests[1] != digests[2]
    assert not (tmp_path / "left").exists()


BURST = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "take":
    s.bind(("0.0.0.0", 9))
    data, near = s.recvfrom(9)
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT := 103, 1200)
    s.sendto(bytes(9000), near)
else:
    s.settimeout(5)
    s.sendto(b"x", ("far", 9))
    print([len(s.recv(65536)) for _ in range(8)])
"""


def test_datagrams_that_a_program_sends_in_one_piece_arrive(shell, need_programs, tmp_path):
    (tmp_path / "burst.py").write_text(BURST)
    command = shell(*VIRTUAL, "--json", "--serve", f"{sys.executable} burst.py take", "--", sys.executable, "burst.py", "ask", cwd=tmp_path)
    assert str([1200] * 7 + [600]) in command.err, command.err
    assert json.loads(command.out)["down"]["packets"] == 8


def test_libraries_are_told_that_there_are_no_random_numbers_beside_the_kernels(shell, need_programs):
    command = shell(*VIRTUAL, "--", "printenv", "OPENSSL_ia32cap")
    assert command.out == programs.WITHOUT_RDRAND["OPENSSL_ia32cap"] + "\n"


def test_a_directory_that_is_bound_keeps_what_programs_write(shell, need_programs, tmp_path):
    script = f"echo kept > {tmp_path}/kept; echo lost > {tmp_path.parent}/lost; cat {tmp_path}/kept {tmp_path.parent}/lost"
    command = shell(*VIRTUAL, "--bind", str(tmp_path), "--", "sh", "-c", script)
    assert (command.status, command.out) == (0, "kept\nlost\n")
    assert (tmp_path / "kept").read_text() == "kept\n"
    assert not (tmp_path.parent / "lost").exists()


def test_what_a_program_takes_is_bounded(shell, need_programs):
    script = "head -c 10G /dev/zero > /tmp/large 2>/dev/null || echo full; ulimit -v unlimited; head -c 30M /dev/zero"
    command = shell(*VIRTUAL, "--json", "--", "sh", "-c", f"({script}) | wc -c")
    summary = json.loads(command.out)
    assert (summary["status"], summary["engine"].partition(":")[0]) == (0, "virtual")
    assert str(30 * 2**20 + len("full\n")) in command.err


def test_what_programs_waited_for_when_the_time_was_over_is_said(shell, need_programs, tmp_path):
    (tmp_path / "deadlock.py").write_text("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n")
    command = shell(*VIRTUAL, "--duration", "30s", "--json", "--", "python3", "deadlock.py", cwd=tmp_path)
    summary = json.loads(command.out)
    assert (summary["status"], summary["timed_out"]) == (124, True)
    said = re.compile(r'when the time was over, "\S*python3 deadlock\.py" waited for a lock or another thread')  # python3 may name itself by its path
    assert any(said.fullmatch(caveat) for caveat in summary["caveats"])


@pytest.mark.skipif(not shutil.which("iperf3"), reason="iperf3 is not installed: apt-get install iperf3")
def test_iperf3_carries_what_our_own_sockets_do(need_programs, shell, tmp_path):
    pcap = tmp_path / "packets.pcapng"
    shell(*VIRTUAL, "--seed", "3", "--pcap", str(pcap), "--serve", "iperf3 -s -1", "--", "iperf3", "-c", "far", "-t", "10", "--logfile", "/dev/null")
    # Its own number has the end of the test in it, whose message may meet a full queue and take a timeout more.
    facts = diagnose(pcap, replay=False, flows=1).flows[0].flow.facts
    theirs = facts["bytes"] * 8e3 / (facts["data_last_ns"] - facts["data_first_ns"])
    path = build(PathWords(rtt="20ms", rate=("20mbit",))).scenario
    scenario = options.scenario({"forward": list(path.forward), "reverse": list(path.reverse)}, cca="cubic", duration="10s")
    ours = engines.make("virtual").run(scenario, [3])[0].flows[0].goodput_mbps
    assert theirs == pytest.approx(ours, rel=0.01)


SHAPER = """
import os, socket, subprocess, time
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
subprocess.run(["tc", "qdisc", "replace", "dev", os.environ["TCPSCAPE_LAN"], "root", "cake", "bandwidth", "2mbit"], check=True)
for host in ("far", "cdn"):
    start = time.monotonic()
    probe.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), (host, 0))
    probe.recv(99)
    print(host, round(1e3 * (time.monotonic() - start), 1), file=open("rtt", "a"))
"""


@pytest.mark.skipif(not (shutil.which("tc") and shutil.which("curl")), reason="tc or curl is not installed: apt-get install iproute2 curl")
def test_a_router_shapes_what_comes_down_from_every_host(need_programs, shell, tmp_path):
    (tmp_path / "page").write_bytes(bytes(500_000))
    (tmp_path / "shaper.py").write_text(SHAPER)
    hosts = ("--host", "cdn", "--serve", "cdn: python3 -m http.server 80")
    fetch = ("curl", "-sf", "-o", "/dev/null", "-w", "%{time_total}\n", "http://cdn/page")

    def outcome(*words: str) -> tuple[float, str]:
        pcap = tmp_path / "packets.pcapng"
        command = shell(*VIRTUAL, *hosts, *words, "--pcap", str(pcap), "--", *fetch, cwd=tmp_path)
        assert command.status == 0, command.err
        return float(command.out), hashlib.sha256(pcap.read_bytes()).hexdigest()

    first = outcome("--bind", str(tmp_path), "--router-command", "python3 shaper.py")
    assert (tmp_path / "rtt").read_text() == "far 20.0\ncdn 20.0\n"
    assert 2.0 < first[0] < 2.4  # 500 kB and their headers at 2 Mbit/s, after two round trips
    assert outcome("--bind", str(tmp_path), "--router-command", "python3 shaper.py") == first
    assert outcome()[0] < 0.5
