"""Installs the wheel into an empty virtual environment and uses it there as somebody would who has nothing else of tcpscape.

    python scripts/wheel_test.py dist/tcpscape-*.whl [PYTHON]

PYTHON is the interpreter of the environment, python3.10 for example; without it, the one that runs this.

The commands run in a mount namespace where the checkout, cargo and rustup are empty directories (as root), and always with a PATH that has no
compiler. Prints a line for each command; exit status 1 where one does not do what it should.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HIDDEN = (ROOT, Path.home() / ".cargo", Path.home() / ".rustup")
"""Directories that are empty for the commands, where that is possible."""
TOOLS = ("sh", "env", "cat", "man", "groff", "troff", "grotty", "nroff", "preconv", "tbl", "col", "less", "uname", "bash", "ls")
"""Programs on the PATH beside the environment's own: no compiler, no make, no git."""
EXPECTED = (
    "tcpscape/_core.abi3.so",
    "tcpscape/py.typed",
    "tcpscape/data/fidelity.json",
    "tcpscape/data/pages/controls/cubic.md",
    "tcpscape/data/pages/queues/codel.md",
    "tcpscape/engines/guest/init",
    "tcpscape/engines/guest/seed.so",
    "tcpscape/engines/host/live",
    "tcpscape/kernels/uml.config",
    "tcpscape/report/templates/page.html.j2",
    "tcpscape/scenarios/starlink-baseline.yaml",
    "tcpscape/campaigns/step.yaml",
    "tcpscape/studies/jitter-cliff.yaml",
    "tcpscape/clauses/harm.yaml",
    "tcpscape/studies/data/jitter-cliff.csv",
    ".data/data/share/man/man1/tcpscape-run.1",
    ".data/data/share/bash-completion/completions/tcpscape",
    ".data/data/share/zsh/site-functions/_tcpscape",
    ".data/data/share/fish/vendor_completions.d/tcpscape.fish",
    ".data/data/share/doc/tcpscape/CITATION.cff",
    ".data/data/share/doc/tcpscape/THIRD-PARTY.txt",
    ".dist-info/licenses/LICENSE-MIT",
    ".dist-info/licenses/LICENSE-APACHE",
    ".dist-info/licenses/NOTICE",
    ".dist-info/entry_points.txt",
)
"""Ends of names of files that must be in it, besides every file of the package that git knows."""

TERMINATED = 143
"""Exit status after SIGTERM."""


@dataclass(frozen=True)
class Use:
    """A command, and what its output must have."""

    words: str
    holds: Callable[[str], bool]
    status: int = 0
    needs_kernel: bool = False


def line_of_json(text: str) -> bool:
    """Whether each line is a trial with its format."""
    return all(json.loads(line)["format"] == 1 for line in text.splitlines())


USES = (
    Use("tcpscape version", lambda out: "model" in out),
    Use("python -m tcpscape version", lambda out: "model" in out),
    Use("tcpscape doctor", lambda out: "engine model" in out and "not built" not in out.split("engine virtual")[0]),
    Use("tcpscape doctor --json", lambda out: json.loads(out)["format"] == 1 and "not built" not in str(json.loads(out)["live"]["unavailable"])),
    Use("tcpscape cleanup", bool),
    Use("tcpscape advise --rtt 60ms --rtt-jitter 15ms --rtt-loss 0.5% --rate 25mbit --seeds 3 --out out/advice --report", lambda out: "→ " in out),
    Use("tcpscape cca show cubic", lambda out: "measured" in out and "hystart" in out and "page: none" not in out),
    Use("tcpscape qdisc show codel", lambda out: "in full:" in out and "page: none" not in out),
    Use("tcpscape cca list", lambda out: "westwood" in out),
    Use("tcpscape scenario list", lambda out: "starlink-baseline" in out),
    Use("tcpscape scenario show starlink-baseline", lambda out: "duration" in out),
    Use("tcpscape study list", lambda out: "jitter-cliff" in out),
    Use("tcpscape study run baseline --quick --seeds 2 --quiet", lambda out: "→ " in out),
    Use("tcpscape run starlink-baseline --cca cubic,bbr --seeds 2 --duration 2s --json", line_of_json),
    Use("tcpscape run starlink-baseline --cca cubic,bbr --seeds 2 --duration 2s --out out/run --quiet", lambda out: "→ " in out),
    Use("tcpscape report out/run", lambda out: "report.html" in out),
    Use("tcpscape plot out/run --what bars,cwnd", lambda out: out.count(".png") >= 2),
    Use("tcpscape export out/run --to csv", lambda out: out.startswith("scenario,seed")),
    Use("tcpscape compare out/run out/run --cca cubic:bbr --json", line_of_json),
    Use("tcpscape sweep buffers --seeds 2 --out out/sweep --quiet", lambda out: "→ " in out),
    Use("tcpscape run lossy-dsl --cca cubic --seeds 1 --duration 5s --pcap slow.pcapng --quiet", lambda out: "→ " in out),
    Use("tcpscape diagnose slow.pcapng --no-replay --report page.html --out path.yaml", lambda out: "→ Your path has " in out),
    Use("tcpscape bound --from 60mbit --to 20mbit --rtt 50ms", lambda out: "→ " in out),
    Use("tcpscape schema trial", lambda out: json.loads(out)["$id"] == "urn:tcpscape:schema:trial:1"),
    Use("tcpscape schema --out schemas", lambda out: "schemas" in out),
    Use("tcpscape completion bash", lambda out: "complete " in out),
    Use("man tcpscape-run", lambda out: "tcpscape run [OPTIONS] [SCENARIO]" in out),
    Use("tcpscape run --forwrad x", lambda out: "did you mean --forward?" in out, 2),
    Use("tcpscape explore --no-browser", lambda out: out.startswith("error: explore: the package starlette is not installed"), 2),
    Use("tcpscape kernel build", lambda out: out.startswith("error: tools: missing: make, gcc"), 2),
    Use("tcpscape run baseline --engine virtual --seeds 1 --duration 2s --json", line_of_json, needs_kernel=True),
    Use("tcpscape kernel list", lambda out: "6.1" in out, needs_kernel=True),
)


def main() -> int:
    """Runs everything; the exit status."""
    wheel = Path(sys.argv[1]).resolve()
    problems = [f"missing: {name}" for name in missing(wheel)]
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(zipfile.ZipFile(wheel).namelist())} files")
    with tempfile.TemporaryDirectory(prefix="tcpscape-wheel-") as folder:
        problems += list(failures(wheel, Path(folder)))
    print("\n".join(problems) or "the wheel is complete and works")
    return int(bool(problems))


def missing(wheel: Path) -> Iterator[str]:
    """Files that should be in the wheel and are not."""
    names = zipfile.ZipFile(wheel).namelist()
    listed = subprocess.run(["git", "ls-files", "python/tcpscape"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    page = (ROOT / "python/tcpscape/web/static").rglob("*.*")  # git does not know what is built
    built = [f"tcpscape/{file.relative_to(ROOT / 'python/tcpscape').as_posix()}" for file in page]
    for name in (*EXPECTED, *(file.removeprefix("python/") for file in listed), *built):
        if not any(there.endswith(name) for there in names):
            yield name


def failures(wheel: Path, folder: Path) -> Iterator[str]:
    """Installs the wheel below `folder` and runs the commands there; yields what goes wrong."""
    copy = shutil.copy(wheel, folder)
    venv, home, tools = folder / "venv", folder / "home", folder / "tools"
    subprocess.run([sys.argv[2] if sys.argv[2:] else base_python(), "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip"]
    install = [*pip, "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, copy], check=True, cwd=folder)
    subprocess.run([*pip, "check"], check=True, cwd=folder)
    home.mkdir()
    tools.mkdir()
    for tool in TOOLS:
        if program := shutil.which(tool):
            (tools / tool).symlink_to(program)
    kernels = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tcpscape" / "kernels"
    has_kernel = kernels.is_dir() and any(kernels.iterdir())
    env = {"PATH": f"{venv / 'bin'}:{tools}", "HOME": str(home), "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    env |= {"XDG_CACHE_HOME": str(kernels.parents[1])} if has_kernel else {}
    for use in USES:
        if use.needs_kernel and not has_kernel:
            print(f"  skipped, no kernel is built: {use.words}")
            continue
        yield from tried(use, env, home)
    subprocess.run([*install, f"{copy}[web]"], check=True, cwd=folder)
    yield from served(env, home)


def served(env: dict[str, str], cwd: Path) -> Iterator[str]:
    """Opens the explorer's page as a browser does, where it is in the wheel; yields what is wrong with it."""
    words = "tcpscape explore --no-browser"
    with subprocess.Popen([*curtain(), *words.split()], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = (process.stdout.readline() if process.stdout else "").strip()
        if not url:
            said = process.communicate()[1]
            if "the explorer's page is not built" in said:
                print(f"  skipped, the page is not built: {words}")
            else:
                yield f"FAILS: {words}: {said[-2000:]}"
            return
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        page = opener.open(url, timeout=60).read()
        start = json.load(opener.open(f"{url.partition('/?')[0]}/api/start", timeout=60))
        process.terminate()
        said = process.communicate(timeout=60)[1]
    is_right = b"<script" in page and bool(start["controls"]) and process.returncode == TERMINATED and not said
    print(f"  {'works' if is_right else 'FAILS'}: {words}")
    if not is_right:
        yield f"FAILS: {words}: status {process.returncode}\n{said[-2000:]}"


def tried(use: Use, env: dict[str, str], cwd: Path) -> Iterator[str]:
    """Runs one command; yields what is wrong with it."""
    try:
        got = subprocess.run([*curtain(), *use.words.split()], env=env, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        yield f"FAILS: {use.words}: not over after 10 minutes"
        return
    output = got.stdout or got.stderr
    is_right = got.returncode == use.status and use.holds(output) and "Traceback" not in got.stderr
    print(f"  {'works' if is_right else 'FAILS'}: {use.words}")
    if not is_right:
        yield f"FAILS: {use.words}: status {got.returncode}\n{got.stdout[-2000:]}\n{got.stderr[-2000:]}"


def curtain() -> list[str]:
    """What a command begins with so that the hidden directories are empty for it; nothing where that is not allowed."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    mounts = "".join(f"{mount} -t tmpfs none {shlex.quote(str(path))} && " for path in HIDDEN if path.is_dir())
    hide = [str(unshare), "--mount", "/bin/sh", "-c", f'{mounts}exec "$@"', "sh"]
    is_possible = bool(unshare and mount) and subprocess.run([*hide, "true"], capture_output=True, check=False).returncode == 0
    return hide if is_possible else []


def base_python() -> str:
    """The Python that this environment was made with, so that nothing of it is inherited."""
    return os.path.realpath(sys.executable)


if __name__ == "__main__":
    sys.exit(main())
