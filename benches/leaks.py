#!/usr/bin/env python3
"""Kills commands that start programs and kernels, and what they started, at random moments, and finds what is left of them.

Each command begins in an empty directory, and SIGKILL ends at a random moment either the command (Python) or the program that it started
(`tcpscape-live`, or the kernel of a guest). Expected each time, within :data:`GRACE_S`:

- no process: this one is made the parent of orphans (`PR_SET_CHILD_SUBREAPER`, prctl(2)), so whatever outlives its parent is found here;
- no namespace, by the kernel's own accounts: all of it runs in a user namespace where only :data:`MOST` of each kind may exist at a time
  (`/proc/sys/user`, namespaces(7)), and after each kill so many can be made. Real root (`--user root`) stays outside: what is tested there is what root
  may do besides;
- no device in this process's network namespace, no mount in its mount namespace, and no file in the directories for temporary files or in /dev/shm,
  which is empty here at first;
- after the program's death the command ends by itself, with a line and without a traceback.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import random
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

PATIENCE_S = 20
"""Most that a command may take to end after its program's death, s."""
GRACE_S = 10
"""Most that everything else may take to vanish, s: the kernel takes namespaces down in the background."""
KERNELS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tcpscape" / "kernels"
"""Kernels of guests, which are not built again for each command."""
LONGEST_S = 4
"""Moments are at most so late, s; a command that would go on longer is killed then."""
MOST = 12
"""Namespaces of each kind that may exist at a time: a command needs about half of them."""
KINDS = {"user": 0x10000000, "net": 0x40000000, "pid": 0x20000000, "mnt": 0x00020000}
"""Kinds of namespaces as `/proc/sys/user` and unshare(2) name them."""
PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE = 36, 4
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MEMORY = pathlib.Path("/dev/shm")
"""Where guests have their memory."""
ENTERED = ("net", "mnt")
"""Namespaces that :func:`killed` enters itself."""
NOBODY = 65534
PROGRAMS = ("live", "linux")
"""Names of the programs' files."""
PROBE = """
from tcpscape.engines.host import HostProcess
from tcpscape.errors import EngineError
try:
    HostProcess("probe", {"measure": ["kinds", "netem", "timer", "timer", "timer"]}).result(60)
except EngineError as e:
    raise SystemExit(str(e))
"""
SERVER = "import socket; far = socket.create_server(('', 7777)).accept()[0]\nwhile far.recv(65536): pass"
CLIENT = "import os, socket; near = socket.create_connection((os.environ['TCPSCAPE_FAR'], 7777))\nwhile True: near.sendall(bytes(65536))"
CHILDREN = "sleep 300 & setsid sleep 300 & (trap '' INT TERM HUP; sleep 300 & setsid -f sleep 300; sleep 300) & sleep 300"
LEAK = """
import ctypes, os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(60)
    os._exit(0)
open(os.environ["TMPDIR"] + "/left", "w")
os.mkdir("/dev/shm/left")
ctypes.CDLL(None).mount(b"tmpfs", b"/dev/shm/left", b"tmpfs", 0, None)  # where it may
time.sleep(1)
"""
EMULATE = ["-m", "tcpscape", "emulate", "--delay", "5ms", "--rate", "50mbit"]
TRANSFER = ["--serve", shlex.join([sys.executable, "-c", SERVER]), "--", "sh", "-c", f"{shlex.join([sys.executable, '-c', CLIENT])} & {CHILDREN}"]
COMMANDS = {
    "leak": ["-c", LEAK],
    "probe": ["-c", PROBE],
    "doctor": ["-m", "tcpscape", "doctor"],
    "trial": ["-m", "tcpscape", *shlex.split("run --forward 'netem delay 10ms loss 1%' --engine live --duration 2s --seeds 1 --out OUT")],
    "emulate": [*EMULATE, *TRANSFER],
    "virtual": [*EMULATE, "--engine", "virtual", *TRANSFER],
}
"""Commands by name, as arguments of Python. The first one leaves what it should not, so that finding it can be tested."""


class Skipped(Exception):
    """Why nothing can be tested here."""


@dataclass
class Count:
    """What the kills of a command came to."""

    kills: int = 0
    hits: int = 0
    """Kills while the program ran."""


libc = ctypes.CDLL(None, use_errno=True)


def unshare(kind: int) -> bool:
    """Moves this process into a new namespace; False where there are no more."""
    return bool(libc.unshare(kind) == 0)


def enter_outer(user: int) -> None:
    """Enters a user namespace with few namespaces in it; users keep their numbers, root everybody's."""
    ready, tell = os.pipe()
    helper = os.fork()
    if helper == 0:  # only a process outside may map others than itself
        os.close(tell)
        if os.read(ready, 1):
            for file in ("uid_map", "gid_map"):
                pathlib.Path(f"/proc/{os.getppid()}/{file}").write_text("0 0 4294967295")
        os._exit(0)
    if not unshare(KINDS["user"]):
        raise Skipped(f"no user namespaces here ({os.strerror(ctypes.get_errno())})")
    if user:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        for file in ("uid_map", "gid_map"):
            pathlib.Path(f"/proc/self/{file}").write_text(f"{user} {user} 1")
    else:
        os.write(tell, b".")
    os.close(tell)
    os.waitpid(helper, 0)
    for kind in KINDS:
        pathlib.Path(f"/proc/sys/user/max_{kind}_namespaces").write_text(str(MOST + (kind in ENTERED)))


def make_reachable(path: pathlib.Path) -> None:
    """Lets every user enter a directory whose parent only root may enter, in a mount namespace of this process."""
    closed = next((place for place in reversed(path.parents) if not place.stat().st_mode & stat.S_IXOTH), None)
    if closed is None:
        return
    top = closed / path.relative_to(closed).parts[0]
    if not unshare(KINDS["mnt"]):
        raise Skipped("only root can make the interpreter reachable")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    kept = os.open(top, os.O_PATH)
    mount("tmpfs", str(closed), "tmpfs", 0)
    top.mkdir()
    mount(f"/proc/self/fd/{kept}", str(top), None, MS_BIND)
    closed.chmod(0o755)
    os.close(kept)


def mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    """One call of mount without data; Skipped where it is refused."""
    if libc.mount(*(text.encode() if text else None for text in (source, target, kind)), flags, None):
        raise Skipped(f"{target} cannot be mounted ({os.strerror(ctypes.get_errno())})")


def all_free() -> str:
    """Makes as many namespaces of each kind as there may be, at once; the kind of which there are fewer."""
    for kind, flag in KINDS.items():
        made, holding = [os.pipe() for _ in range(MOST)], os.pipe()
        processes = []
        for _, written in made:
            process = os.fork()
            if process == 0:
                os.close(holding[1])
                os.write(written, b"+" if unshare(flag) else b"-")
                os.read(holding[0], 1)  # until all others have tried
                os._exit(0)
            processes.append(process)
        answers = [os.read(read, 1) for read, _ in made]
        for descriptor in (*holding, *(end for pipe in made for end in pipe)):
            os.close(descriptor)
        for process in processes:
            os.waitpid(process, 0)
        if b"-" in answers:
            return kind
    return ""


def children() -> list[int]:
    """The children of this process, with those that it was given."""
    return [int(pid) for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def descendants(pid: int) -> Iterator[int]:
    """The processes that a process started, and those that they started."""
    try:
        found = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return
    for child in found:
        yield child
        yield from descendants(child)


def program_of(pid: int) -> int | None:
    """The program that a command runs; None before and after."""
    for child in descendants(pid):
        try:
            if pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0].endswith(tuple(f"/{name}".encode() for name in PROGRAMS)):
                return child
        except OSError:
            continue
    return None


def collected(until: float) -> list[str]:
    """Collects ended children until there are none; those that are still there at `until`, and kills them."""
    while (left := children()) and time.monotonic() < until:
        for pid in left:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    names = []
    for pid in left:
        names.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() or f"process {pid}")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return names


def devices() -> set[str]:
    """Names of the devices in this process's network namespace."""
    return {line.partition(":")[0].strip() for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]}


def mounts() -> list[str]:
    """What is mounted in this process's mount namespace."""
    return pathlib.Path("/proc/self/mounts").read_text().splitlines()


class Leaks:
    """The kills of some commands."""

    def __init__(self, package: pathlib.Path, accounts: bool, options: argparse.Namespace) -> None:
        self.package, self.accounts, self.grace_s = package, accounts, options.grace
        self.random = random.Random(options.seed)
        self.devices, self.mounts = devices(), mounts()
        self.problems: list[str] = []

    def start(self, name: str, directory: pathlib.Path) -> subprocess.Popen[bytes]:
        """Starts a command in an empty directory."""
        places = {variable: directory / variable for variable in ("TMPDIR", "HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")}
        for place in places.values():
            place.mkdir()
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.package), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {variable: str(place) for variable, place in places.items()}
        (places["XDG_CACHE_HOME"] / "tcpscape").mkdir()
        (places["XDG_CACHE_HOME"] / "tcpscape" / "kernels").symlink_to(KERNELS)
        words = [word.replace("OUT", str(directory / "out")) for word in COMMANDS[name]]
        with (directory / "stderr").open("wb") as errors:  # a pipe would stay open in what is left
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": errors}
            return subprocess.Popen([sys.executable, *words], env=environment, cwd=directory, **streams)

    def undisturbed(self, name: str) -> float:
        """How long a command takes alone, s, at most :data:`LONGEST_S`."""
        with tempfile.TemporaryDirectory(prefix="leaks-") as directory:
            begin, errors = time.monotonic(), pathlib.Path(directory) / "stderr"
            process = self.start(name, pathlib.Path(directory))
            try:
                if process.wait(LONGEST_S):
                    self.problems.append(f"{name} does not work here: {errors.read_text(errors='replace').strip()[-500:]}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            collected(time.monotonic() + self.grace_s)
            return min(LONGEST_S, time.monotonic() - begin)

    def kill(self, name: str, longest_s: float, count: Count) -> None:
        """Kills a command, or its program, once, and looks for what is left."""
        victim = ("command", "program")[count.kills % 2]
        after = self.random.uniform(0.0, longest_s)
        where = f"{name}, {victim} killed after {after:.3f} s"
        with tempfile.TemporaryDirectory(prefix="leaks-") as temporary:
            directory = pathlib.Path(temporary)
            process = self.start(name, directory)
            if count.kills % 4 < 2:  # half of the moments are those of the program, which begins late
                until = time.monotonic() + LONGEST_S
                while not program_of(process.pid) and process.poll() is None and time.monotonic() < until:
                    time.sleep(0.001)
            time.sleep(after)
            program = program_of(process.pid)
            count.kills += 1
            count.hits += program is not None
            if victim == "command" or program is None:
                process.kill()
            else:
                try:
                    os.kill(program, signal.SIGKILL)
                except ProcessLookupError:
                    process.kill()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.problems.append(f"{where}: it does not end within {PATIENCE_S} s")
                process.kill()
                process.wait()
            errors = (directory / "stderr").read_text(errors="replace")
            if "Traceback" in errors:
                self.problems.append(f"{where}: {errors[-1000:]}")
            self.judge(where, directory)

    def judge(self, where: str, directory: pathlib.Path) -> None:
        """Finds what is left."""
        until = time.monotonic() + self.grace_s
        self.problems += [f"{where}: left the process {process}" for process in collected(until)]
        while (missing := all_free() if self.accounts else "") and time.monotonic() < until:
            time.sleep(0.05)
        if missing:
            self.problems.append(f"{where}: left {missing} namespaces")
        if new := devices() - self.devices:
            self.problems.append(f"{where}: left the devices {', '.join(sorted(new))}")
        if new_mounts := [line for line in mounts() if line not in self.mounts]:
            self.problems.append(f"{where}: left the mounts {', '.join(new_mounts)}")
        for place in ("TMPDIR", "HOME", "XDG_RUNTIME_DIR", MEMORY):
            if left := sorted(path.name for path in (directory / place).rglob("*")):
                self.problems.append(f"{where}: left in {place} {', '.join(left)}")


def main() -> int:
    """Kills what the command line says; exit status 1 where something was left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moments", type=int, default=20, help="kills of each command")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS)[1:], help="commands")
    parser.add_argument("--user", choices=("self", "root", "nobody"), default="self", help="as whom; the last two need root")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grace", type=float, default=GRACE_S, help="seconds that what is killed may take to vanish")
    options = parser.parse_args()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    source = pathlib.Path(__file__).resolve().parent.parent / "python"
    with tempfile.TemporaryDirectory(prefix="tcpscape-leaks-") as temporary:
        os.chmod(temporary, 0o777)
        package = source
        if options.user == "nobody":
            shutil.copytree(source / "tcpscape", pathlib.Path(temporary) / "tcpscape", ignore=shutil.ignore_patterns("__pycache__"))
            package = pathlib.Path(temporary)
        child = os.fork()  # which gives up its rights
        if child == 0:
            status = 1
            try:
                status = killed(options, package)
            except Skipped as e:
                print(f"skipped: {e}")
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(options: argparse.Namespace, package: pathlib.Path) -> int:
    """The kills, in a process of its own."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if options.user == "nobody":
        make_reachable(pathlib.Path(sys.base_prefix))
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # /proc/self belongs to this user again
    if options.user != "root":
        enter_outer(os.geteuid())
    if not unshare(KINDS["net"]):  # trials take turns by a name in it (`engines.host.turn`): these are not to wait for others
        raise Skipped(f"no network namespace here ({os.strerror(ctypes.get_errno())})")
    if not unshare(KINDS["mnt"]):
        raise Skipped(f"no mount namespace here ({os.strerror(ctypes.get_errno())})")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", str(MEMORY), "tmpfs", 0)  # no other guest's memory is in it
    leaks = Leaks(package, options.user != "root", options)
    for name in options.only:
        longest_s, count = leaks.undisturbed(name), Count()
        if any(problem.startswith(f"{name} does not work") for problem in leaks.problems):
            continue
        for _ in range(options.moments):
            leaks.kill(name, longest_s, count)
        print(f"{name}: {count.kills} kills within {longest_s:.1f} s, {count.hits} of them while the program ran", flush=True)
    print("\n".join(leaks.problems) or "nothing is left")
    return int(bool(leaks.problems))


if __name__ == "__main__":
    sys.exit(main())
