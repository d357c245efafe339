"""A forest of links to somebody's kernel tree, so that it can be built without a byte written to it.

make refuses a separate output directory where the tree itself was configured or built. The forest has real directories and a link
for every source file, and none for what a build leaves behind. An edit is seen through its link; new and removed files are seen when
the forest is brought up to date, which every build does first.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tcpscape.kernels import files

Changed = tuple[int, int]
"""Links made and links removed."""

LEFT_BEHIND = re.compile(
    r"\..*|.*\.(?:[ao]|o\..*|ko|mod|mod\.c|order|symvers|cmd|so|so\.dbg|s|i|lst|dtb|dtbo|su|gcno|dwo|relocs|bin|elf|gz|xz|zst|bz2|orig|rej)"
    r"|.*\.(?:lex\.c|tab\.[ch]|asn1\.[ch])|(?:vmlinux|System\.map|modules\.builtin|initramfs_data|initramfs_inc_data)(?:\.(?!h$)[a-z]+)?"
    r"|(?:crc32table|crc64table|config_data|cpustr|voffset|zoffset|pasyms|elfconfig|devicetable-offsets|flask|av_permissions|utsversion-tmp)\.h"
    r"|(?:vdso\w*|realmode)\.lds|(?:capflags|inat-tables|consolemap_deftbl|defkeymap|oid_registry_data|vdso-image-\w+)\.c|piggy\.S|linux|bzImage|tags|TAGS"
)
"""Names that a build makes, for a tree where git cannot be asked."""
MADE_DIRECTORIES = re.compile(r"include/(?:config|generated)|arch/[^/]+/include/generated|(?:.*/)?\.[^/]*")
ELF = b"\x7fELF"


def sync(tree: Path, forest: Path) -> Changed:
    """Brings the links in `forest` in step with the files of `tree`."""
    want = {name for name in listing(tree) if files.wanted(name)}
    have, directories = _links(forest)
    stale = [name for name in have if name not in want or have[name] != f"{tree}/{name}"]
    for name in stale:
        (forest / name).unlink()
    fresh = want.difference(have).union(want.intersection(stale))
    _clear(forest, directories, want, fresh)
    for directory in {os.path.dirname(name) for name in fresh}:
        (forest / directory).mkdir(parents=True, exist_ok=True)
    for name in fresh:
        os.symlink(f"{tree}/{name}", f"{forest}/{name}")
    return len(fresh), len(stale)


def listing(tree: Path) -> Iterable[str]:
    """The source files of a tree: what git says, by its index and its rules for what to ignore; else by name."""
    said = _git_listing(tree)
    if said is None:
        return _walk(tree)
    return (name for name in said if os.path.lexists(f"{tree}/{name}"))


def describe(tree: Path) -> str | None:
    """`git describe --always --dirty` of a tree that is a repository of its own, else none."""
    if not (tree / ".git").exists():
        return None
    said = _git("-C", str(tree), "describe", "--always", "--dirty")
    return said.strip() or None if said is not None else None


def _git_listing(tree: Path) -> list[str] | None:
    """What git takes for sources. A tree that is no repository is shown to it with an empty one, for its rules alone."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if (tree / ".git").exists():
        said = _git("-C", str(tree), *words)
    elif (tree / ".gitignore").exists():
        with tempfile.TemporaryDirectory() as empty:
            made = _git("init", "--quiet", "--bare", empty)
            said = None if made is None else _git("-C", str(tree), f"--git-dir={empty}", f"--work-tree={tree}", *words)
    else:
        return None
    names = [name for name in (said or "").split("\0") if name and not name.endswith("/")]
    # Debian's own rules ignore everything: then they are no help.
    return names if set(files.PROOF).issubset(names) else None


def _git(*words: str) -> str | None:
    """What git says; none where it cannot be asked. It must not take locks: some commands refresh the index on the way."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        got = subprocess.run(("git", "-c", "core.fsmonitor=false", *words), capture_output=True, check=False, env=env)
    except OSError:
        return None
    return os.fsdecode(got.stdout) if got.returncode == 0 else None


def _walk(tree: Path) -> Iterable[str]:
    """The source files by their names alone."""
    for where, directories, names in os.walk(tree):
        at = os.path.relpath(where, tree)
        prefix = "" if at == "." else f"{at}/"
        linked = [name for name in directories if os.path.islink(f"{where}/{name}")]
        directories[:] = [name for name in directories if name not in linked and not MADE_DIRECTORIES.fullmatch(prefix + name)]
        yield from (prefix + name for name in linked)
        yield from (prefix + name for name in names if _is_source(where, name))


def _is_source(where: str, name: str) -> bool:
    return not LEFT_BEHIND.fullmatch(name) and ("." in name or not _is_program(f"{where}/{name}"))


def _is_program(path: str) -> bool:
    """Whether a file is an executable that a build made (fixdep, conf, …)."""
    try:
        if not os.access(path, os.X_OK):
            return False
        with open(path, "rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False


def _links(forest: Path) -> tuple[dict[str, str], list[str]]:
    """The links in a forest and where each leads, and its directories, the deepest last."""
    have, found = {}, []
    for where, directories, names in os.walk(forest):
        prefix = "" if where == str(forest) else os.path.relpath(where, forest) + "/"
        linked = [name for name in directories if os.path.islink(f"{where}/{name}")]
        found += [prefix + name for name in directories if name not in linked]
        for name in (*names, *linked):
            path = f"{where}/{name}"
            have[prefix + name] = os.readlink(path) if os.path.islink(path) else ""
    return have, found


def _clear(forest: Path, directories: list[str], want: set[str], fresh: set[str]) -> None:
    """Removes directories that hold no link any more; one may have to make way for a file."""
    if not fresh and not directories:
        return
    needed = {parent for name in want for parent in _parents(name)}
    for directory in reversed(directories):
        if directory not in needed:
            (forest / directory).rmdir()


def _parents(name: str) -> Iterable[str]:
    while name := os.path.dirname(name):
        yield name
