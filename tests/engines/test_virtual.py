"""The virtual engine and its pool of guests, with a fake kernel that speaks the channel (tests/fake/linux) or misbehaves on it."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import TESTS
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.engines import guest, virtual
from tcpscape.engines.guest import pool, process
from tcpscape.errors import EngineError, TcpscapeError
from tcpscape.scenario import options
from tcpscape.store.results import Store
from tcpscape.trial import Capture

pytestmark = pytest.mark.usefixtures("need_model")
PATH = {"forward": "netem delay 10ms loss 1%", "reverse": "netem delay 10ms"}
FAKE = TESTS / "fake" / "linux"


class Fake:
    """A kernel directory with the fake in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.linux = home / "linux"
        (home / "memory").mkdir(parents=True)
        self.linux.write_text(f"#!{sys.executable} -SEs\n{FAKE.read_text()}")
        self.linux.chmod(0o755)
        (home / "init").write_bytes(b"\x7fELF a program")

    def kernel(self, name=None):
        if name not in (None, "fake"):
            raise EngineError(f"engine: no kernel {name!r}; run `tcpscape kernel build --name {name}`")
        return SimpleNamespace(
            name="fake", path=self.linux, release="6.1.0-fake", digest="0123456789abcdef", hz=100, congestion_controls=("reno", "cubic", "bbr")
        )

    def deeds(self, **todo):
        (self.home / "deeds").write_text(json.dumps({seed[1:]: said for seed, said in todo.items()}))


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = Fake(tmp_path / "kernel")
    monkeypatch.setattr(virtual, "find", made.kernel)
    monkeypatch.setattr(virtual, "INIT", made.home / "init")
    monkeypatch.setattr(process, "SHARED_MEMORY", made.home / "memory")
    monkeypatch.setattr(process, "POLL_S", 0.05)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TCPSCAPE_TRIALS_PER_GUEST", "200")  # what these tests are about; the last ones are about 1
    yield made
    pool.close_all()
    assert not processes(made.linux)


@pytest.fixture
def scenario():
    return options.scenario(PATH, flows=2, duration="2s")


def processes(*words) -> list[int]:
    """Processes (no zombies) with all of these among their words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            said = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if {str(word) for word in words} <= set(said):
            found.append(int(entry.name))
    return found


def gone(fake, within=PATIENCE_S) -> bool:
    """Whether no process of the fake and no run directory is left after a while."""
    end = time.monotonic() + within
    while (processes(fake.linux) or rooms(fake)) and time.monotonic() < end:
        time.sleep(0.02)
    return not processes(fake.linux) and not rooms(fake)


def rooms(fake) -> set[Path]:
    """Run directories that there are."""
    return set((fake.home / "memory").glob("tcpscape-*"))


def pids(trials):
    return {t.counters["pid"] for t in trials}


def test_a_trial_says_what_the_guest_said(fake, scenario):
    trial = engines.make("virtual:fake").run(scenario, [7], capture=Capture(samples_ns=10_000_000, queue_samples_ns=10_000_000))[0]
    assert (trial.engine, trial.seed, trial.kernel, trial.duration) == ("virtual", 7, "fake (6.1.0-fake)", 2.0)
    assert trial.version.startswith("fake 6.1.0-fake 0123456789ab+guest-")
    assert trial.flows[0].goodput_mbps == pytest.approx(1.0)
    assert (trial.flows[0].undos, trial.flows[0].spurious_retransmits, trial.flows[0].srtt_ms) == (None, None, None)
    assert (trial.events, trial.caveats) == (None, ())
    assert trial.hash is None  # a guest that served others before
    assert (trial.counters["seed"], trial.samples.columns) == (7, ["t_ns", "flow", "cwnd", "ca_state"])
    assert [str(t) for t in trial.samples.dtypes] == ["UInt64", "UInt32", "UInt32", "UInt8"]
    assert trial.samples["cwnd"].to_list() == [(i + 1) * 7 % 251 for i in range(50)]
    assert trial.queue_samples.height == 5


def test_what_is_not_asked_for_is_not_kept(fake, scenario):
    trial = engines.make("virtual").run(scenario, [0])[0]
    assert (trial.samples, trial.queue_samples, trial.packets) == (None, None, None)


def test_a_stored_trial_keeps_everything(fake, scenario, tmp_path):
    store = Store(tmp_path / "o")
    trial = Runner(engines.make("virtual"), store=store).run(scenario, [0])[0]
    assert store.load(trial.address) == trial


def test_guests_are_reused_by_later_runs(fake, scenario):
    first = engines.make("virtual").run(scenario, range(3))
    again = engines.make("virtual").run(scenario, range(3), threads=2)
    assert len(pids(first)) == 1
    assert pids(first) <= pids(again)
    assert [t.seed for t in again] == [0, 1, 2]


def test_every_guest_is_kept_busy(fake, scenario):
    fake.deeds(s0=["await"])
    saved = []

    def progress(done, total):
        saved.append((done, total))
        if done == 10:
            (fake.home / "awaited").touch()

    groups = Runner(engines.make("virtual"), 2, progress=progress).run_all([(scenario, range(4)), (scenario.with_cca("bbr"), range(1, 9))])
    slow = groups[0][0].counters["pid"]
    others = [t.counters["pid"] for trials in groups for t in trials[1:]]
    assert len({slow, *others}) == 2
    assert slow not in others[:-1]  # the other guest took the rest meanwhile
    assert saved == [(i, 12) for i in range(1, 13)]  # and they came one by one


def test_a_guest_is_replaced_after_its_share(fake, scenario):
    few = guest.GuestPool(guest.Boot(fake.linux, b""), per_guest=2)
    content = engines.make("virtual")._job_content(scenario, 0, Capture())
    job = guest.GuestJob(content, guest.Timeouts(30))
    seen = [few.run(job)[0].summary["counters"]["pid"] for _ in range(5)]
    few.close()
    assert [seen[0] == seen[1], seen[1] == seen[2], seen[2] == seen[3]] == [True, False, True]


@pytest.mark.parametrize("what", ["panic", "hang", "spin", "flood", "orphans", "wrong", "garbage", "null", "empty"])
def test_a_guest_that_dies_costs_one_retry(fake, scenario, what, monkeypatch):
    monkeypatch.setattr(virtual.guest, "Timeouts", lambda total: process.Timeouts(total, idle=0.4))
    fake.deeds(s1=[what])
    trials = virtual.Virtual(timeout_s=2.0 if what == "spin" else 20.0).run(scenario, [0, 1, 2])
    assert [t.seed for t in trials] == [0, 1, 2]
    assert [len(t.caveats) for t in trials] == [0, 1, 0]
    assert trials[1].caveats[0].startswith("the guest died once: it")
    assert "repeated" in trials[1].caveats[0]
    if what == "panic":
        assert "its last word: Kernel panic" in trials[1].caveats[0]
    assert len(processes(fake.linux)) == 1
    assert len(rooms(fake)) == 1


def test_a_second_death_names_the_log(fake, scenario):
    fake.deeds(s1=["panic", "panic"])
    with pytest.raises(EngineError) as e:
        virtual.Virtual().run(scenario, [1])
    log = Path(str(e.value).rpartition("see ")[2])
    assert log.read_text().count("Kernel panic") >= 2
    assert gone(fake)


def test_a_kernel_that_does_not_boot_says_so(fake, scenario):
    (fake.home / "broken").touch()
    with pytest.raises(EngineError, match="ended with status 3; its last word: Failed to map"):
        virtual.Virtual().run(scenario, [0])


def test_a_guest_that_dies_waiting_harms_nobody(fake, scenario):
    first = virtual.Virtual().run(scenario, [0])[0]
    os.kill(first.counters["pid"], signal.SIGKILL)
    os.waitid(os.P_PID, first.counters["pid"], os.WEXITED | os.WNOWAIT)
    again = virtual.Virtual().run(scenario, [0])[0]
    assert again.caveats == ()
    assert again.counters["pid"] != first.counters["pid"]


def test_what_the_kernel_refuses_is_one_line_and_the_guest_lives(fake, scenario):
    fake.deeds(s1=["refuse"])
    first = virtual.Virtual().run(scenario, [0])
    with pytest.raises(EngineError, match="the kernel says no"):
        virtual.Virtual().run(scenario, [1])
    assert pids(virtual.Virtual().run(scenario, [2])) == pids(first)


def test_an_error_ends_the_other_guests(fake, scenario):
    fake.deeds(s0=["refuse"], s1=["hang"])
    with pytest.raises(EngineError, match="the kernel says no"):
        Runner(virtual.Virtual(), 2).run(scenario, range(2))
    fake.deeds(s0=["refuse"], s1=["hang"])
    with pytest.raises(EngineError):
        virtual.Virtual().run(scenario, [0, 1], threads=2)


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}, {tests!r} + "/engines"]
from pathlib import Path
from tcpscape.cli import main
from tcpscape.scenario import options
from tcpscape.engines import virtual
from tcpscape.engines.guest import process
from test_virtual import Fake
fake = Fake.__new__(Fake)
fake.home = Path({home!r}); fake.linux = fake.home / "linux"
virtual.find, virtual.INIT, process.SHARED_MEMORY = fake.kernel, fake.home / "init", fake.home / "memory"
virtual.Virtual().run(options.scenario({path!r}, duration="1s"), [0, 3], threads=2)
print("busy", flush=True)
{rest}
"""


def script(fake, rest):
    """A Python process that ran two trials on the fake, and then does the rest."""
    text = SCRIPT.format(tests=str(TESTS), home=str(fake.home), path=PATH, rest=rest)
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "busy\n", child.stderr.read()
    return child


@pytest.mark.parametrize("rest", ["sys.stdin.read()", "import time; time.sleep(1000)", "virtual.Virtual().run(options.scenario({}), [1])"])
def test_nothing_stays_when_python_is_killed(fake, rest):
    fake.deeds(s1=["hang", "hang"])
    child = script(fake, "import time; time.sleep(1000)" if "stdin" in rest else rest.replace("{}", repr(PATH)))
    time.sleep(0.3)
    assert processes(fake.linux)
    child.kill()
    child.communicate()
    assert gone(fake)


def test_a_waiting_guest_leaves_at_end_of_file_by_itself(fake):
    child = script(fake, "import time; time.sleep(1000)")
    left = rooms(fake)
    for directory in left:
        for janitor in processes(directory, "tcpscape-janitor"):
            os.kill(janitor, signal.SIGKILL)
    child.kill()
    child.communicate()
    assert gone(fake, 1.0) is False  # nobody removes the directories then
    assert not processes(fake.linux)
    assert rooms(fake) == left


def test_ctrl_c_cleans_up(fake):
    fake.deeds(s1=["hang", "hang"])
    words = ["run", "--forward", PATH["forward"], "--engine", "virtual", "--seeds", "1,2", "--json"]
    child = script(fake, f"sys.argv[1:] = {words!r}; main.main()")
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, err.count("Traceback")) == (130, 0)
    assert gone(fake)


def test_closing_the_engines_ends_the_guests_that_wait(fake, scenario):
    first = virtual.Virtual().run(scenario, [0])
    assert processes(fake.linux)
    engines.close()
    assert gone(fake)
    assert pids(virtual.Virtual().run(scenario, [1])) != pids(first)


def test_a_forked_child_leaves_the_guests_alone(fake, scenario):
    engine = virtual.Virtual()
    first = engine.run(scenario, [0])
    child = os.fork()
    if not child:
        status = 0 if not pool._pools and not process.Guest.alive else 1
        pool.close_all()
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert pids(engine.run(scenario, [1])) == pids(first)


def test_guests_end_with_the_process(fake):
    child = script(fake, "")
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert gone(fake)


def test_packets_are_copied(fake, cli, tmp_path):
    to = tmp_path / "a.pcap"
    got = cli("run", "--forward", "netem delay 5ms", "--engine", "virtual:fake", "--seeds", "1", "--pcap", to)
    assert (got.status, got.err) == (0, "")
    assert "one more run" in got.out
    assert to.read_bytes()[24:] == b"sender"
    got = cli("run", "--forward", "netem delay 5ms", "--engine", "virtual", "--seeds", "1", "--pcap", "/proc/no/a.pcap")
    assert (got.status, got.err.count("\n")) == (2, 1)


def test_packets_of_several_places_come_from_one_trial(fake, scenario, tmp_path):
    files = {place: tmp_path / place for place in ("sender", "router", "receiver")}
    trial = virtual.Virtual().record(scenario, 3, files, sysctls={"net.ipv4.tcp_timestamps": "0"})
    assert {place: file.read_bytes()[24:].decode() for place, file in files.items()} == {place: place for place in files}
    assert trial.check["sysctls"]["net.ipv4.tcp_timestamps"] == "0"
    assert trial.seed == 3


REFUSED = [
    ({"kernel": "6.1,hz=250"}, "kernel.hz: kernel fake was built with 100, not 250"),
    ({"kernel": "6.1,window=half"}, "kernel.window"),
    ({"kernel": "6.1,skb_overhead=100"}, "kernel.skb_overhead"),
    ({"kernel": "5.4"}, "5.4"),
    ({"cca": "bbr3"}, "choose reno, cubic, bbr"),
    ({"path": {"forward": {"delay": "10ms", "jitter": "2ms", "order": "clamp", "distribution": "normal"}}}, "forward: the queue 'jitter'"),
    ({"path": {"reverse": "netem delay 1ms; jitter delay 5ms 1ms"}}, "reverse: the queue 'jitter'"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_the_kernel_cannot_do_is_refused_by_name(fake, change, said):
    scenario = options.scenario(
        change.get("path", PATH), cca=change.get("cca", "cubic"), **({"kernel": change["kernel"]} if "kernel" in change else {})
    )
    with pytest.raises(TcpscapeError, match=re.escape(said)):
        virtual.Virtual().check(scenario)
    assert not processes(fake.linux)


def test_ecn_is_a_setting_of_both_ends(fake):
    scenario = options.scenario(PATH, duration="1s", ecn=True)
    assert virtual.Virtual().run(scenario, [0])[0].check["sysctls"]["net.ipv4.tcp_ecn"] == "1"
    assert "net.ipv4.tcp_ecn" not in virtual.Virtual().run(scenario.model_copy(update={"ecn": False}), [0])[0].check["sysctls"]


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([{"cca": "nosuch"}], "cca: 'nosuch' is not in kernel fake; choose reno, cubic, bbr"),
        ([{"listener": "nosuch"}], "listener: 'nosuch' is not in kernel fake"),
        ([{"cca": "cubic:hystart=off"}, {"cca": "cubic"}], "cca: cubic:hystart=0 and cubic in one trial, and a kernel has one setting for all; "),
    ],
)
def test_what_one_kernel_cannot_do_is_refused(fake, flows, said):
    from tcpscape.scenario.scenario import Scenario

    with pytest.raises(TcpscapeError, match="^" + re.escape(said)):
        virtual.Virtual().check(Scenario.of({**PATH, "flows": flows}))


def test_overrides_become_sysctls(fake):
    words = "6.12,hz=100,rmem_max=4MiB,tcp_wmem_max=1MiB,comp_sack_nr=0,slow_start_after_idle=false"
    trial = virtual.Virtual().run(options.scenario(PATH, kernel=words, duration="1s"), [0])[0]
    assert trial.check["sysctls"] == {
        "net.core.rmem_max": "4194304",
        "net.core.wmem_max": "212992",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 1048576",
        "net.ipv4.tcp_comp_sack_nr": "0",
        "net.ipv4.tcp_slow_start_after_idle": "0",
    }
    assert trial.check["sample_ns"] == 1_000_000
    assert trial.caveats == ("scenario names kernel 6.12, this is 6.1.0-fake",)


def test_results_of_different_builds_are_never_mixed(fake, scenario):
    old = virtual.Virtual()
    before, address = old.version, old.address(scenario, 0)
    (fake.home / "init").write_bytes(b"another program")
    assert virtual.Virtual().version != before
    assert virtual.Virtual().address(scenario, 0) != address


@pytest.mark.parametrize(
    ("name", "said"), [("virtual:nosuch", "run `tcpscape kernel build --name nosuch`"), ("virtual:", "names nothing"), ("model:6.12", "no variants")]
)
def test_names_that_are_no_engine_are_one_line(fake, name, said):
    with pytest.raises(EngineError) as e:
        engines.make(name)
    assert str(e.value).startswith("engine: ")
    assert str(e.value).count("engine: ") == 1
    assert said in str(e.value)


def test_a_memory_file_needs_room(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "SHARED_MEMORY", tmp_path / "missing")
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    assert process.memory_directory(1) == tmp_path
    with pytest.raises(EngineError, match="TMPDIR: a guest needs"):
        process.memory_directory(1 << 40)


def test_the_timeout_follows_the_duration_or_the_setting(fake, monkeypatch):
    scenario = options.scenario(PATH, duration="10s", flows=20)
    assert virtual.Virtual().timeout_s(scenario) == 120 + 20 * 10 * 3
    monkeypatch.setenv(virtual.PATIENCE, "7.5")
    assert virtual.Virtual().timeout_s(scenario) == 7.5
    assert virtual.Virtual(timeout_s=3).timeout_s(scenario) == 3
    monkeypatch.setenv(virtual.PATIENCE, "long")
    with pytest.raises(EngineError, match="TCPSCAPE_PATIENCE: 'long' is not"):
        virtual.Virtual().timeout_s(scenario)


def test_the_initial_file_system_is_a_cpio_archive():
    data, found = process.initrd(b"\x7fELF!"), {}
    while data:
        numbers = [int(data[6 + 8 * i : 14 + 8 * i], 16) for i in range(13)]
        assert data[:6] == b"070701"
        size, length = numbers[6], numbers[11]
        name = data[110 : 110 + length - 1].decode()
        begin = -(-(110 + length) // 4) * 4
        found[name] = (numbers[1], data[begin : begin + size], tuple(numbers[9:11]))
        data = data[-(-(begin + size) // 4) * 4 :]
    assert found["init"] == (stat.S_IFREG | 0o755, b"\x7fELF!", (0, 0))
    assert found["dev/dsp"] == (stat.S_IFCHR | 0o666, b"", (14, 3))
    assert {"dev", "proc", "sys", "host", "tmp", "dev/console", "dev/null", "TRAILER!!!"} <= set(found)


def test_a_guest_of_its_own_makes_a_trial_repeatable(fake, scenario, monkeypatch):
    monkeypatch.delenv("TCPSCAPE_TRIALS_PER_GUEST")
    engine = engines.make("virtual:fake")
    first, second = engine.run(scenario, [3, 4], threads=2)
    assert engine.repeatable
    assert (first.counters["seed"], second.counters["seed"]) == (3, 4)  # what the guest's random numbers come from
    assert first.hash != second.hash
    assert engine.run(scenario, [3]) == [first]
    assert not processes(fake.linux)  # each ended with its trial


def test_results_of_shared_guests_are_never_mixed_with_repeatable_ones(fake, monkeypatch):
    shared = engines.make("virtual:fake").version
    monkeypatch.setenv("TCPSCAPE_TRIALS_PER_GUEST", "1")
    assert engines.make("virtual:fake").version != shared
    monkeypatch.setenv("TCPSCAPE_TRIALS_PER_GUEST", "0")
    with pytest.raises(EngineError, match=r"TCPSCAPE_TRIALS_PER_GUEST: '0' is not a number of trials"):
        engines.make("virtual:fake")


def test_a_guest_that_dies_over_its_only_trial_costs_one_retry(fake, scenario, monkeypatch):
    monkeypatch.delenv("TCPSCAPE_TRIALS_PER_GUEST")
    fake.deeds(s3=["die"])
    trial = engines.make("virtual:fake").run(scenario, [3])[0]
    assert "the guest died once" in trial.caveats[0]


def test_a_scenario_without_a_kernel_takes_the_limits_of_the_one_that_runs(fake, scenario, monkeypatch):
    released, (old, new) = fake.kernel("fake"), (("212992", "6291456"), ("4194304", "33554432"))
    small_hosts = scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update={"host_time": 0})})
    large = scenario.model_copy(update={"flows": tuple(flow.model_copy(update={"rcvbuf": 1 << 20}) for flow in scenario.flows)})
    for release, (cap, most) in (("6.12.7-mine", old), ("6.19.0", new), ("5.4.1", old)):
        released.release = release
        monkeypatch.setattr(virtual, "find", lambda name: released)
        for asked in (scenario, small_hosts, large):
            trial = virtual.Virtual().run(asked, [0])[0]
            sysctls = trial.check["sysctls"]
            assert (sysctls["net.core.rmem_max"], sysctls["net.ipv4.tcp_rmem"]) == (cap, f"4096 131072 {most}"), release
            assert any("SO_RCVBUF of 1MiB is capped" in caveat for caveat in trial.caveats) == (asked is large and cap == old[0]), release
