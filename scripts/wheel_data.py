"""Writes what the wheel puts below its environment's prefix: manual pages, completions, and the licences of what is linked into it.

    python scripts/wheel_data.py DIRECTORY

Everything is made of the sources: the pages and completions of `tcpscape.cli`, the licences of the crates that cargo has in its registry.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "python"))

from tcpscape.cli import completion, reference  # noqa: E402

DOC = "share/doc/tcpscape"
"""Where the citation and the licences are."""
BINARIES = ("tcpscape-py", "tcpscape-guest", "tcpscape-seed", "tcpscape-live")
"""Crates whose programs and libraries the wheel has."""
RULE = "=" * 100


def main() -> None:
    """Writes the directory anew."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    prefix = target / "data"
    reference.write(prefix / reference.PLACE)
    for shell, place in completion.PLACES.items():
        (prefix / place).parent.mkdir(parents=True, exist_ok=True)
        (prefix / place).write_text(completion.SCRIPTS[shell], "utf-8")
    (prefix / DOC).mkdir(parents=True)
    shutil.copy(ROOT / "CITATION.cff", prefix / DOC)
    (prefix / DOC / "THIRD-PARTY.txt").write_text(third_party(), "utf-8")


def third_party() -> str:
    """The licences of every crate that the wheel's binaries are linked with, in alphabetical order."""
    arguments = ("metadata", "--format-version", "1", "--locked", "--filter-platform", host())
    metadata = json.loads(subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    linked, waiting = set(), [i for i, package in packages.items() if package["name"] in BINARIES]
    while waiting:
        one = waiting.pop()
        if one not in linked:
            linked.add(one)
            waiting += [d["pkg"] for d in nodes[one]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
    others = sorted((packages[i] for i in linked if packages[i]["source"]), key=lambda package: str(package["name"]))
    return "".join(map(described, others))


def described(package: dict[str, str]) -> str:
    """A crate with its licence files."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(f for f in folder.iterdir() if f.is_file() and f.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT")))
    texts = "".join(f"\n--- {f.name}\n{f.read_text('utf-8').strip()}\n" for f in files)
    return f"{RULE}\n{package['name']} {package['version']}: {package['license']}\n{texts or 'It comes without a licence file.'}\n"


def host() -> str:
    """The target triple of this machine."""
    lines = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


if __name__ == "__main__":
    main()
