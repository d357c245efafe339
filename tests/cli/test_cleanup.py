"""What `cleanup` finds, and what it leaves alone."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from patience import PATIENCE_S
from tcpscape.engines import host
from tcpscape.engines.host import leftovers

GUEST = "tcpscape-ab_01xyz"
"""A name that a guest's directory may have."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty directory in which guests' are looked for, and no names of namespaces."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(leftovers, "NAMED", tmp_path / "netns")
    return tmp_path


def guest(place: Path, name: str = GUEST) -> Path:
    directory = place / name
    (directory / "io").mkdir(parents=True)
    os.mkfifo(directory / "jobs")
    return directory


def ours(found):
    """Without processes of others that work on this machine."""
    return [leftover for leftover in found if leftover.kind != "process" or "guest" in leftover.about]


@pytest.fixture
def sleeping():
    """Starts processes that sleep, with words of their own; they are ended afterwards."""
    started = []

    def start(words, **options):
        code = "import sys, time; print(flush=True); time.sleep(60)"
        process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, start_new_session=True, **options)
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_nothing(cli, place, monkeypatch):
    monkeypatch.setattr(leftovers, "_processes", lambda: iter(()))
    assert cli("cleanup").out == "nothing to clean up\n"
    assert cli("cleanup", "--yes").out == "nothing to clean up\n"


def test_a_guests_directory_is_listed_first_and_removed_when_asked(cli, place, monkeypatch):
    directory = guest(place)
    monkeypatch.setattr(leftovers, "_processes", lambda: iter(()))
    listed = cli("cleanup")
    assert str(directory) in listed.out
    assert listed.out.endswith("Next: tcpscape cleanup --yes\n")
    assert directory.exists()
    removed = cli("cleanup", "--yes")
    assert removed.status == 0
    assert "removed" in removed.out
    assert not directory.exists()


def test_what_only_looks_like_it_is_left_alone(place):
    guest(place, "tcpscape-my-results")  # no name that mkdtemp makes
    (place / "tcpscape-abcdefgh").mkdir()  # nothing of a guest's in it
    (place / "tcpscape-abcdefg1").symlink_to(guest(place, "elsewhere"))
    (place / "tcpscape-abcdefg2").write_text("")
    assert ours(leftovers.find()) == []


def test_a_directory_that_a_process_uses_is_not_removed(cli, place, sleeping):
    directory = guest(place)
    user = sleeping([], cwd=directory)
    (found,) = ours(leftovers.find())
    assert found.is_used
    assert f"process {user.pid} uses it: end that first" in found.about
    cli("cleanup", "--yes")
    assert directory.exists()
    assert user.poll() is None


def test_a_guest_with_its_janitor_is_no_leftover(place, sleeping):
    directory = guest(place)
    sleeping(["tcpscape-janitor", str(directory)])
    sleeping(["rdinit=/init"], cwd=directory)
    assert ours(leftovers.find()) == []


def test_a_guest_without_its_janitor_is_ended_with_its_directory(cli, place, sleeping):
    directory = guest(place)
    orphan = sleeping(["rdinit=/init"], cwd=directory)
    assert [(f.kind, f.name, f.is_used) for f in ours(leftovers.find())] == [
        ("process", str(orphan.pid), False),
        ("directory", str(directory), False),
    ]
    cli("cleanup", "--yes")
    assert orphan.wait(PATIENCE_S) == -signal.SIGKILL
    assert not directory.exists()


def test_a_program_whose_parent_has_ended_is_found():
    orphan = leftovers._Process(1234, 1, (b"/x/live", b"trial", b"--in", b"3", b"--parent", b"77", b""), "/")
    child = leftovers._Process(1235, 77, orphan.words, "/")
    other = leftovers._Process(1236, 1, (b"/x/live", b""), "/")
    found = list(leftovers._orphaned_programs([orphan, child, other]))
    assert [f.name for f in found] == ["1234"]


def test_a_running_program_is_no_leftover(place):
    if reason := host.unavailable():
        pytest.skip(f"the live engine's program: {reason}")
    with host.HostProcess("probe", {"measure": ["timer"]}) as running:
        next(iter(running.events(20)))
        assert str(running.pid) not in [f.name for f in leftovers.find()]


def test_a_name_of_a_namespace_that_root_gave_is_listed_and_removed(cli):
    """Without `ip`, and without the right to make one, there is nothing to find."""
    if os.geteuid():
        pytest.skip("only root can name network namespaces")
    name = f"tcpscape-test-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("ip is missing: apt-get install iproute2")
    if made.returncode:
        pytest.skip(f"ip netns: {made.stderr.strip()}")
    try:
        inside = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
        until = time.monotonic() + PATIENCE_S
        while not (found := next(f for f in leftovers.find() if f.name == name)).is_used and time.monotonic() < until:
            time.sleep(0.01)
        assert f"process {inside.pid} uses it" in found.about
        inside.kill()
        inside.wait()
        (found,) = (f for f in leftovers.find() if f.name == name)
        assert not found.is_used
        assert found.remove() == ""
        assert name not in [f.name for f in leftovers.find()]
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_processes_of_containers_are_left_alone(place):
    """Their numbers are others than ours, so nothing can be said of their parents; what they use is used."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no process namespace here")
    directory = guest(place)
    code = "import sys, time; print(flush=True); time.sleep(60)"
    words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", sys.executable, "-c", code, "rdinit=/init"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=directory) as container:
        try:
            container.stdout.readline()
            (found,) = ours(leftovers.find())
            assert found.kind == "directory"
            assert found.is_used
        finally:
            container.kill()
