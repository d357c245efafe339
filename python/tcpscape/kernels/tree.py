"""The files of a kernel tree: which of them a User-Mode Linux kernel needs, and a directory of links to those of a user's own tree.

Two thirds of the files are not needed; leaving them out saves time and disk. Links let a user's tree be built without writing to it, where make
refuses a separate output directory because the tree itself was configured or built. The link directory has real directories and a link for
every source file, and none for the output of a build. An edit of a file is seen through its link; new and removed files are seen at the
next :func:`sync`, with which every build begins.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

OTHER_ARCHITECTURES = re.compile(r"arch/(?!um/|x86/)[^/]+/")
UNUSED = ("Documentation/", "tools/testing/", "tools/perf/")
DEVICES = (
    "drivers/accel/",
    "drivers/clk/",
    "drivers/gpu/",
    "drivers/hwmon/",
    "drivers/iio/",
    "drivers/infiniband/",
    "drivers/media/",
    "drivers/mtd/",
    "drivers/net/ethernet/",
    "drivers/net/wireless/",
    "drivers/pinctrl/",
    "drivers/scsi/",
    "drivers/staging/",
    "drivers/usb/",
    "drivers/video/",
    "sound/isa/",
    "sound/pci/",
    "sound/soc/",
    "sound/usb/",
)
"""Drivers of hardware that such a kernel cannot have. They are large, and make reads their build files only."""
BUILD_FILE = re.compile(r"(?:.*/)?(?:Kconfig|Kbuild|Makefile)[^/]*")
"""Always needed: Kconfig and make read them all."""
TOP_LEVEL = frozenset(("COPYING", "CREDITS", "Documentation", "Kbuild", "Kconfig", "LICENSES", "MAINTAINERS", "Makefile", "README", "arch", "block"))
"""Names of which one comes first in an archive that has no directory around the sources."""
REQUIRED = ("Makefile", "Kconfig", "arch/um/Kconfig")
"""Files without which a directory is no kernel that can be built as User-Mode Linux."""

BUILD_OUTPUT = re.compile(
    r"\..*|.*\.(?:[ao]|o\..*|ko|mod|mod\.c|order|symvers|cmd|so|so\.dbg|s|i|lst|dtb|dtbo|su|gcno|dwo|relocs|bin|elf|gz|xz|zst|bz2|orig|rej)"
    r"|.*\.(?:lex\.c|tab\.[ch]|asn1\.[ch])|(?:vmlinux|System\.map|modules\.builtin|initramfs_data|initramfs_inc_data)(?:\.(?!h$)[a-z]+)?"
    r"|(?:crc32table|crc64table|config_data|cpustr|voffset|zoffset|pasyms|elfconfig|devicetable-offsets|flask|av_permissions|utsversion-tmp)\.h"
    r"|(?:vdso\w*|realmode)\.lds|(?:capflags|inat-tables|consolemap_deftbl|defkeymap|oid_registry_data|vdso-image-\w+)\.c|piggy\.S|linux|bzImage|tags|TAGS"
)
"""Names of files that a build writes, for a tree that git does not describe."""
OUTPUT_DIRECTORIES = re.compile(r"include/(?:config|generated)|arch/[^/]+/include/generated|(?:.*/)?\.[^/]*")
ELF = b"\x7fELF"


def is_needed(relative: str) -> bool:
    """Whether the build can need this file; the path is relative to the top, with slashes."""
    if BUILD_FILE.fullmatch(relative):
        return True
    return not (relative.startswith(UNUSED) or relative.startswith(DEVICES) or OTHER_ARCHITECTURES.match(relative))


def sync(tree: Path, links: Path) -> tuple[int, int]:
    """Makes the directory `links` mirror the files of `tree`; returns the numbers of links created and removed."""
    needed = {name for name in source_files(tree) if is_needed(name)}
    targets, directories = _links(links)
    stale = [name for name in targets if name not in needed or targets[name] != f"{tree}/{name}"]
    for name in stale:
        (links / name).unlink()
    new = needed.difference(targets).union(needed.intersection(stale))
    if directories:
        _remove_empty(links, directories, needed)
    for directory in {os.path.dirname(name) for name in new}:
        (links / directory).mkdir(parents=True, exist_ok=True)
    for name in new:
        os.symlink(f"{tree}/{name}", f"{links}/{name}")
    return len(new), len(stale)


def source_files(tree: Path) -> Iterable[str]:
    """The source files of a tree: by git's index and its rules for ignored files, otherwise by their names."""
    names = _git_files(tree)
    if names is None:
        return _files_by_name(tree)
    return (name for name in names if os.path.lexists(f"{tree}/{name}"))


def describe(tree: Path) -> str | None:
    """`git describe --always --dirty` of a tree that is a repository of its own, otherwise None."""
    if not (tree / ".git").exists():
        return None
    text = _git("-C", str(tree), "describe", "--always", "--dirty")
    return text.strip() or None if text is not None else None


def _git_files(tree: Path) -> list[str] | None:
    """The source files by git, None where git is no help. A tree that is no repository is read with an empty one, for its ignore rules alone."""
    command = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if (tree / ".git").exists():
        listing = _git("-C", str(tree), *command)
    elif (tree / ".gitignore").exists():
        with tempfile.TemporaryDirectory() as empty:
            created = _git("init", "--quiet", "--bare", empty)
            listing = None if created is None else _git("-C", str(tree), f"--git-dir={empty}", f"--work-tree={tree}", *command)
    else:
        return None
    names = [name for name in (listing or "").split("\0") if name and not name.endswith("/")]
    # The rules of Debian's packages ignore every file: then they are no help.
    return names if set(REQUIRED).issubset(names) else None


def _git(*arguments: str) -> str | None:
    """The output of git; None where it fails. It must not take locks: some commands refresh the index."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        result = subprocess.run(("git", "-c", "core.fsmonitor=false", *arguments), capture_output=True, check=False, env=env)
    except OSError:
        return None
    return os.fsdecode(result.stdout) if result.returncode == 0 else None


def _files_by_name(tree: Path) -> Iterable[str]:
    """The source files, told from build output by their names."""
    for where, directories, names in os.walk(tree):
        relative = os.path.relpath(where, tree)
        prefix = "" if relative == "." else f"{relative}/"
        links = [name for name in directories if os.path.islink(f"{where}/{name}")]
        directories[:] = [name for name in directories if name not in links and not OUTPUT_DIRECTORIES.fullmatch(prefix + name)]
        yield from (prefix + name for name in links)
        yield from (prefix + name for name in names if _is_source(where, name))


def _is_source(directory: str, name: str) -> bool:
    return not BUILD_OUTPUT.fullmatch(name) and ("." in name or not _is_program(f"{directory}/{name}"))


def _is_program(path: str) -> bool:
    """Whether a file is an executable, which a build wrote (fixdep, conf, …)."""
    try:
        if not os.access(path, os.X_OK) or not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False


def _links(root: Path) -> tuple[dict[str, str], list[str]]:
    """The target of each link below `root`, and the directories below it, the deepest last."""
    targets, below = {}, []
    for where, directories, names in os.walk(root):
        prefix = "" if where == str(root) else os.path.relpath(where, root) + "/"
        links = [name for name in directories if os.path.islink(f"{where}/{name}")]
        below += [prefix + name for name in directories if name not in links]
        for name in (*names, *links):
            path = f"{where}/{name}"
            targets[prefix + name] = os.readlink(path) if os.path.islink(path) else ""
    return targets, below


def _remove_empty(root: Path, directories: list[str], needed: set[str]) -> None:
    """Removes directories that hold no needed file any more; a file may take the place of one."""
    parents = {parent for name in needed for parent in _parents(name)}
    for directory in reversed(directories):
        if directory not in parents:
            (root / directory).rmdir()


def _parents(name: str) -> Iterable[str]:
    while name := os.path.dirname(name):
        yield name
