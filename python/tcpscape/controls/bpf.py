"""Congestion controls in BPF, registered in this machine's kernel for a while.

:func:`register` hands an object file (clang's, with a `struct tcp_congestion_ops` in its section `.struct_ops`) to bpftool, :func:`unregister` takes
the controls out of the kernel again; connections that use one keep it until they close. A registration is the whole machine's, whatever the
namespace, and it outlives the process that made it: whoever registers has to unregister.

Source: bpftool-struct_ops(8), Documentation/bpf/ of Linux.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tcpscape.errors import EngineError, refuse
from tcpscape.reading.files import Kind, content

FIELD = "cca load"
"""What messages begin with."""
OBJECT = Kind("an object file of BPF", "compile it with clang -O2 -g -target bpf -c", most=64 * 2**20, error=EngineError)
"""The files that are read."""
ELF = b"\x7fELF"
"""What an object file begins with."""
TYPES = Path("/sys/kernel/btf/vmlinux")
"""The kernel's description of its own types (BTF), which registering needs."""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""The congestion controls that the kernel has now."""
KERNEL_TYPE = "tcp_congestion_ops"
"""The kernel's structure of a congestion control. Linux: include/net/tcp.h."""
NAME_SIZE = 16
"""Bytes of the name in that structure, filled up with zeros. Linux: TCP_CA_NAME_MAX."""
LINKED = b".struct_ops.link\0"
"""The section of controls that live as long as a BPF link, which bpftool alone cannot hold."""
REGISTERED = re.compile(r"^Registered (\S+) (\S+) id (\d+)", re.MULTILINE)
"""What bpftool says of each structure: the kernel's type, the name of its map, and the number by which it is taken out again."""
PATIENCE_S = 60
"""Seconds that bpftool may take; the kernel's verifier may look at a large program for a while."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A congestion control that was registered."""

    name: str
    """Its name for sockets and `--cca`."""
    number: str
    """The kernel's number of its structure."""


def register(file: Path) -> list[Registered]:
    """Registers the congestion controls of an object file; all of them or none.

    :raises EngineError: in one line, where this user, this machine or this kernel cannot, and where a name is taken.
    """
    raw = content(file, OBJECT, FIELD)
    if not raw.startswith(ELF):
        refuse(FIELD, f"{file} is not {OBJECT.what}", OBJECT.fix, EngineError)
    tool = _tool()
    if LINKED in raw:
        refuse(FIELD, f"{file} wants a BPF link, which ends with the program that holds it", 'write SEC(".struct_ops") without .link', EngineError)
    done = _run(tool, "struct_ops", "register", str(file))
    structures = REGISTERED.findall(done.stdout + done.stderr)
    try:
        if done.returncode != 0:
            _explain(file, raw, done.stderr, {name for _, name, _ in structures})
        if not structures:
            refuse(FIELD, "bpftool does not say what it registered", "look at `bpftool struct_ops show`, and report its version", EngineError)
        if other := next((kind for kind, _, _ in structures if kind != KERNEL_TYPE), None):
            refuse(FIELD, f"{file} has a {other}, which is no congestion control", f"take it out, or use {tool} struct_ops register", EngineError)
        return [Registered(_name(tool, number, name), number) for _, name, number in structures]
    except BaseException:
        _take_out(tool, [number for _, _, number in structures])
        raise


def bpftool() -> str | None:
    """The path of bpftool; None where it is not installed. Distributions put it where only root looks."""
    return shutil.which("bpftool", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def unregister(controls: Sequence[Registered]) -> None:
    """Takes controls out of the kernel again; one that somebody else took out already is no error. :raises EngineError: one that the kernel keeps."""
    _take_out(_tool(), [control.number for control in controls])


def _tool() -> str:
    """The path of bpftool, after what else is needed was looked at."""
    if os.geteuid() != 0:
        refuse(FIELD, "the kernel takes congestion controls from root alone", "run it with sudo", EngineError)
    if not TYPES.exists():
        refuse(FIELD, f"this kernel does not describe its types ({TYPES})", "boot one with CONFIG_DEBUG_INFO_BTF=y", EngineError)
    if tool := bpftool():
        return tool
    refuse(FIELD, "bpftool is missing", "apt-get install bpftool", EngineError)


def _run(tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([tool, *words], capture_output=True, encoding="utf-8", errors="replace", timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        refuse(FIELD, f"bpftool took longer than {PATIENCE_S} s", f"see what `{' '.join([tool, *words])}` says", EngineError)


def _explain(file: Path, raw: bytes, output: str, registered: set[str]) -> NoReturn:
    """Refuses a file that bpftool could not register, with the reason as far as it can be told."""
    available = AVAILABLE.read_text("ascii").split()
    taken = [name for name in available if name.encode().ljust(NAME_SIZE, b"\0") in raw and name not in registered]
    if "can't register" in output and taken:
        fix = "change .name in its source, or take the other out (bpftool struct_ops show)"
        refuse(FIELD, f"the kernel has a congestion control {taken[0]!r} already, the name that {file} asks for", fix, EngineError)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("Error:")), lines[0] if lines else "no reason given")
    refuse(FIELD, f"{file}: bpftool: {reason.removeprefix('Error: ')}", f"see what `bpftool struct_ops register {file}` says", EngineError)


def _name(tool: str, number: str, map_name: str) -> str:
    """The name of a registered control for sockets, from the kernel's own copy of the structure; the name of its map where that is not told."""
    done = _run(tool, "-j", "struct_ops", "dump")
    try:
        parts = json.loads(done.stdout)  # the map and the structure in it, by turns
        structures = {str(about["bpf_map_info"]["id"]): structure for about, structure in zip(parts[::2], parts[1::2], strict=True)}
        return str(structures[number][f"bpf_struct_ops_{KERNEL_TYPE}"]["data"]["name"])
    except (ValueError, KeyError, TypeError):
        return map_name


def _take_out(tool: str, numbers: Sequence[str]) -> None:
    kept = []
    for number in numbers:
        done = _run(tool, "struct_ops", "unregister", "id", number)
        if done.returncode != 0 and _run(tool, "struct_ops", "show", "id", number).returncode == 0:
            kept.append(number)
    if kept:
        words = " ".join(f"`bpftool struct_ops unregister id {number}`" for number in kept)
        refuse(FIELD, "the kernel keeps a congestion control that was registered", f"see what {words} says", EngineError)
