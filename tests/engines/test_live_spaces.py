"""The live engine's program as a process: what it may do on this machine, how it ends, and what its measurements find."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

from conftest import ROOT, need
from tcpscape import engines
from tcpscape.engines import guest, host
from tcpscape.engines.host import process
from tcpscape.errors import EngineError

ANSWER_S = 20


@pytest.fixture
def need_spaces():
    if reason := host.unavailable():
        pytest.skip(f"the live engine's program: {reason}")


def probe(*measure, **job):
    with host.HostProcess("probe", {"measure": measure, **job}) as running:
        return running.result(ANSWER_S)


@pytest.mark.parametrize(("program", "line"), [("live", "not built; run `make setup`"), (".", r"cannot start .*: Permission denied")])
def test_a_program_that_is_not_built_or_cannot_be_started_is_one_line(program, line, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "PROGRAM", tmp_path / program)
    with pytest.raises(EngineError, match=line):
        host.HostProcess("probe", {})


def test_a_job_that_is_refused_is_in_the_programs_words(need_spaces):
    with host.HostProcess("probe", {"nonsense": 1}) as running, pytest.raises(EngineError, match="engine: live: job: unknown field `nonsense`"):
        running.result(ANSWER_S)


def test_a_program_that_is_killed_is_one_line(need_spaces):
    with host.HostProcess("probe", {"measure": ["kinds"]}) as running:
        os.kill(running.pid, signal.SIGSTOP)
        running.kill()
        with pytest.raises(EngineError, match="its program ended by signal 9"):
            running.result(ANSWER_S)


FAKES = {
    "sleep 60": "did not answer in time",
    "echo nonsense >&$5": "wrote garbage",
    "echo '[1]' >&$5": "wrote garbage",
    "echo why >&2; exit 3": "ended with status 3: why; run it again",
    "kill -9 $$": "ended by signal 9; run it again",
    """echo '{"event": "x"}' >&$5; echo '{"panic": "here"}' >&$5; exit 101""": "ended with status 101: here; run it again",
    """echo '{"error": "delay: no"}' >&$5; exit 1""": "^engine: live: delay: no$",
}
"""Programs that misbehave, and what is said of them; $5 is the descriptor of --out."""


@pytest.mark.parametrize("script", FAKES)
def test_a_program_that_misbehaves_is_one_line(script, tmp_path, monkeypatch):
    fake = tmp_path / "live"
    fake.write_text(f"#!/bin/bash\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(process, "PROGRAM", fake)
    with host.HostProcess("probe", {}) as running, pytest.raises(EngineError, match=FAKES[script]):
        running.result(0.5 if "sleep" in script else ANSWER_S)


def test_arguments_that_make_no_sense_are_one_line():
    if not process.PROGRAM.exists():
        pytest.skip("the live engine's program is not built; run `make setup`")
    for words, line in ((["nonsense"], "nonsense is no mode"), (["probe", "--in"], "--in is no option with a number"), ([], "a mode is missing")):
        got = subprocess.run([process.PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert got.returncode == 2
        assert line in got.stderr
        assert got.stderr.count("\n") == 1


def test_a_program_whose_parent_has_ended_already_does_nothing():
    if not process.PROGRAM.exists():
        pytest.skip("the live engine's program is not built; run `make setup`")
    other = os.getppid()
    got = subprocess.run([process.PROGRAM, "probe", "--parent", str(other)], input="{}\n", capture_output=True, text=True, check=False)
    assert got.returncode == 2
    assert "has ended already" in got.stderr


def test_it_ends_with_its_input(need_spaces):
    """Also where it is busy, and its parent lives."""
    with host.HostProcess("probe", {"measure": ["timer"] * 60}) as running:
        next(iter(running.events(ANSWER_S)))
        os.close(running._in)
        running._in = -1
        running._keeper.join(ANSWER_S)
        assert running._keeper.process.returncode == 1


def test_it_ends_with_its_parent_and_not_with_a_thread(need_spaces):
    """The thread that asked for it ends at once; the program goes on."""
    made = []
    asking = threading.Thread(target=lambda: made.append(host.HostProcess("probe", {"measure": ["timer"]})))
    asking.start()
    asking.join()
    with made[0] as running:
        assert running.result(ANSWER_S)["timer"]["ordinary"]["p50_us"] > 0


def run_as(program, job, *prefix, **options):
    """The last line of the program, started by other means than `HostProcess`."""
    words = [*prefix, str(program), "probe"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as running:
        running.stdin.write(json.dumps(job) + "\n")
        running.stdin.flush()
        lines = running.stdout.read().splitlines()
        assert lines, running.stderr.read()
        return json.loads(lines[-1])


@pytest.fixture
def nobody():
    """A copy of the program that uid 65534 can run, and how."""
    if os.geteuid():
        pytest.skip("only root can become uid 65534")
    with tempfile.TemporaryDirectory(prefix="tcpscape-test-") as directory:
        os.chmod(directory, 0o755)
        yield shutil.copy(process.PROGRAM, directory), {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}


def test_uid_65534_without_capabilities_has_the_emulator(need_spaces, nobody):
    program, options = nobody
    found = run_as(program, {"measure": ["backends", "kinds"]}, **options)["result"]
    assert found["backends"]["packet"] is None
    assert next(kind for kind in found["kinds"] if kind["name"] == "tbf")["problem"] is None


def test_without_a_user_namespace_only_root_may(need_spaces, nobody):
    program, options = nobody
    refused = run_as(program, {"root": True}, **options)["error"]
    assert refused == "network namespaces without a user namespace need CAP_SYS_ADMIN; run as root, or leave +root out"
    assert "realtime" in run_as(program, {"root": True})["result"]


LIMITS = {
    "user": "user.max_user_namespaces = 0: no user namespaces are allowed; sudo sysctl -w user.max_user_namespaces=10000, or run as root with +root",
    "net": "network namespaces are used up (user.max_net_namespaces); sudo sysctl -w user.max_net_namespaces=10000",
}


@pytest.mark.parametrize("kind", LIMITS)
def test_the_setting_that_forbids_namespaces_is_named_with_the_fix(need_spaces, kind):
    """In a user namespace of its own, where the test may forbid them."""
    if not shutil.which("unshare"):
        pytest.skip("unshare is missing: apt-get install util-linux")
    forbid = f'echo 0 > /proc/sys/user/max_{kind}_namespaces && exec "$@"'
    answer = run_as(process.PROGRAM, {}, "unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    assert answer["error"] == LIMITS[kind]


def test_it_knows_which_queues_this_kernel_has(need_spaces):
    kinds = {kind["name"]: kind["problem"] for kind in probe("kinds")["kinds"]}
    assert kinds["pfifo"] is None
    assert {"netem", "tbf", "htb", "fq_codel", "cake"} <= set(kinds)
    assert all(problem is None or problem for problem in kinds.values())


def test_it_measures_what_this_kernels_netem_does(need_spaces):
    report = probe("netem")["netem"]
    if report["present"]:
        assert {check["what"] for check in report["checks"]} >= {"delay", "jitter", "loss", "rate", "tree"}
        return
    assert report["problem"].startswith("this kernel has no netem: modprobe sch_netem, or ")
    assert not report["checks"]


@pytest.mark.slow
def test_the_netem_of_a_real_kernel_behaves_and_an_old_one_has_no_seed():
    """Linux 6.1 in virtual time, where chance is all that moves a number; netem has a seed since 6.6."""
    engine = engines.REGISTRY["virtual"]()
    need("virtual")
    for seed in (1, 2, 3):
        answer, deaths = engine._pool.run(guest.GuestJob({"probe": "netem", "seed": seed}, guest.Timeouts(120)))
        report = answer.summary["probe"]
        assert not deaths
        assert report["present"], report
        assert report["problem"] is None
        assert all(check["ok"] for check in report["checks"]), report["checks"]
        assert report["seeded"] == (tuple(int(part) for part in engine.kernel.release.split(".")[:2]) >= (6, 6))


# Commands of the live engine, and of `emulate` in virtual time, that are killed at random moments: nothing is left of them (benches/leaks.py says what that is).


KILLED = [
    ("nobody", "trial"),
    ("nobody", "emulate"),
    ("nobody", "doctor"),
    ("root", "trial"),
    ("root", "emulate"),
    ("self", "trial"),
    ("root", "virtual"),
    ("self", "virtual"),
]
"""As whom, and what; `self` is root in a user namespace here, where the kernel counts its namespaces."""


def kill(moments, only, user="self", grace=10):
    words = [sys.executable, ROOT / "benches" / "leaks.py", "--moments", str(moments), "--user", user, "--grace", str(grace), "--only", *only]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.strip())
    return done


def test_what_is_left_is_found(need_spaces):
    done = kill(1, ["leak"], grace=0.5)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "left the process" in done.stdout
    assert "left in TMPDIR left" in done.stdout
    assert "left in /dev/shm left" in done.stdout
    assert ("left the mounts tmpfs /dev/shm/left" in done.stdout) == (os.geteuid() == 0)


@pytest.mark.slow
def test_nothing_is_left_of_what_is_killed(need_spaces):
    done = kill(1, ["trial", "emulate"])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("user", "command"), KILLED)
def test_nothing_is_left_after_twenty_kills(need_spaces, user, command):
    if os.geteuid() and user != "self":
        pytest.skip(f"only root can become {user}; run `sudo make test-all`")
    if command == "virtual" and (reason := engines.REGISTRY["virtual"]().unavailable()):
        pytest.skip(f"engine virtual: {reason}")
    done = kill(20, [command], user)
    assert done.returncode == 0, done.stdout + done.stderr
