"""The kernel of this machine as fields of a scenario's kernel: `--kernel host`.

What a profile says about rules is that of the latest profile which is not newer than the machine's kernel; sysctls and `CONFIG_HZ` are the
machine's own. The word is replaced where a scenario is read, so addresses and results name the values, never the machine.
"""

from __future__ import annotations

import gzip
import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tcpscape.errors import refuse

NAME = "host"
"""The name of this machine's kernel where a profile's is expected."""
SETTINGS: Mapping[str, str] = {
    "rmem_max": "net.core.rmem_max",
    "wmem_max": "net.core.wmem_max",
    "limit_output_bytes": "net.ipv4.tcp_limit_output_bytes",
    "comp_sack_nr": "net.ipv4.tcp_comp_sack_nr",
    "comp_sack_delay_ns": "net.ipv4.tcp_comp_sack_delay_ns",
    "slow_start_after_idle": "net.ipv4.tcp_slow_start_after_idle",
}
"""Field of :class:`~tcpscape.scenario.scenario.Kernel` → the sysctl that it is."""
AUTOTUNED = {"tcp_rmem": "net.ipv4.tcp_rmem", "tcp_wmem": "net.ipv4.tcp_wmem"}
"""Field without `_default` and `_max` → the sysctl with least, default and most."""
CONFIGURATIONS = ("/proc/config.gz", "/boot/config-{release}")
"""Where a kernel's configuration may be."""


def fields() -> dict[str, Any]:
    """The profile and what differs from it on this machine. Raises a :class:`~tcpscape.errors.TcpscapeError` where there is no Linux."""
    if platform.system() != "Linux":
        refuse("kernel", f"this machine runs {platform.system()}, not Linux", "name a profile of `tcpscape kernel list`, for example 6.12")
    profile, usual = nearest(platform.release())
    return {"profile": profile} | {name: value for name, value in settings().items() if usual.get(name) != value}


def settings() -> dict[str, int]:
    """The settings of this machine's kernel by field, those that it tells: sizes in bytes, `hz` in ticks a second."""
    found = dict(_numbers(SETTINGS))
    for field, sysctl in AUTOTUNED.items():
        sizes = _sysctl(sysctl).split()
        if len(sizes) == 3:
            found |= {f"{field}_default": int(sizes[1]), f"{field}_max": int(sizes[2])}
    if (hz := ticks()) is not None:
        found["hz"] = hz
    return found


def ticks() -> int | None:
    """Ticks of this machine's kernel in a second (`CONFIG_HZ`), where its configuration can be read."""
    for name in CONFIGURATIONS:
        file = Path(name.format(release=platform.release()))
        content = _quietly(file.read_bytes) or b""
        text = gzip.decompress(content) if file.suffix == ".gz" and content else content
        if found := re.search(rb"^CONFIG_HZ=(\d+)$", text, re.MULTILINE):
            return int(found[1])
    return None


def version(release: str) -> tuple[int, ...]:
    """The first two numbers of a kernel's release: (6, 1) of 6.1, 6.1.192 and 6.1.0-rc1."""
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])


def nearest(release: str) -> tuple[str, Mapping[str, Any]]:
    """The latest profile that is not newer than a release, the oldest where all are, with its values."""
    try:
        from tcpscape import _core
    except ImportError:
        refuse("kernel", "the extension module tcpscape._core is not built, so no profile is known", "run `make setup`")
    names = sorted(_core.kernel_profiles(), key=version)
    before = [name for name in names if version(name) <= version(release)]
    name = (before or names[:1])[-1]
    return name, json.loads(_core.kernel_profile(name))


def _numbers(sysctls: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for field, sysctl in sysctls.items():
        text = _sysctl(sysctl)
        if text.isdigit():
            yield field, int(text)


def _sysctl(name: str) -> str:
    """A sysctl's value; empty where this kernel does not have it."""
    content = _quietly(Path("/proc/sys", *name.split(".")).read_bytes)
    return (content or b"").decode().strip()


def _quietly(read: Callable[[], bytes]) -> bytes | None:
    try:
        return read()
    except OSError:
        return None
