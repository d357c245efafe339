"""What a kernel is configured with: our fragment, every congestion control of the sources, the user's fragment; and whether it took."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from tcpscape.errors import EngineError, refuse

Options = Mapping[str, str]
"""Options without `CONFIG_` and their values as in .config; `n` is off."""

OPTIONAL = "# OPTIONAL"
LINE = re.compile(r"CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set")
CCA_KCONFIG = "net/ipv4/Kconfig"
CCA_OPTION = re.compile(r"^\s*config (TCP_CONG_\w+)", re.MULTILINE)
OVERLAY = """
# Added by tcpscape; the sources' own Kconfig files are as they were. A second definition adds to the first.
config HZ
	int "Ticks a second"

config SOUND
	tristate "Sound without IO memory"
"""
"""UML's Kconfig fixes HZ and hides sound where there is no IO memory, though hostaudio needs none. This makes both settable."""
REGISTRIES = {
    "congestion_controls": ("net/ipv4", "TCP_CONG_", "tcp_register_congestion_control", "name"),
    "qdiscs": ("net/sched", "NET_SCH_", "register_qdisc", "id"),
}
"""Where the names are: directory, prefix of the options, the call that registers one, and the field with its name."""
ALWAYS = {"congestion_controls": ("reno",), "qdiscs": ("noqueue", "pfifo", "pfifo_fast", "bfifo")}


@dataclass(frozen=True)
class Wanted:
    """A configuration that is asked for."""

    options: Options
    required: frozenset[str]
    """Those of ours without which trials cannot run, unless the user's fragment says otherwise."""
    asked: frozenset[str]
    """Those that the user's fragment names."""

    def text(self) -> str:
        """As a fragment for `make allnoconfig`."""
        return "".join(f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n" for name, value in self.options.items())


def wanted(sources: Path, fragment: Path | None) -> Wanted:
    """The options for these sources; in the order ours, found in the sources, the user's: the later wins."""
    ours, optional = _ours()
    found = dict.fromkeys(CCA_OPTION.findall(_text(sources / CCA_KCONFIG)), "y")
    theirs = fragment_options(fragment) if fragment else {}
    return Wanted({**ours, **optional, **found, **theirs}, frozenset(ours).difference(theirs), frozenset(theirs))


def fragment_options(fragment: Path) -> Options:
    """The options in a user's fragment; raises EngineError for a file that is none."""
    try:
        text = fragment.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "it is no text"
        refuse("config", f"cannot read {fragment} ({why})", "give a file of CONFIG_NAME=value lines", EngineError)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#") and not LINE.fullmatch(line.strip()):
            refuse("config", f"{fragment}:{number}: {line.strip()[:60]!r} is no option", "write CONFIG_NAME=value", EngineError)
    return options(text)


def options(text: str) -> dict[str, str]:
    """The options in a fragment or a .config."""
    found = (LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {m[1] or m[3]: m[2] if m[1] else "n" for m in found if m}


def check(asked: Wanted, got: Options, sources: Path) -> None:
    """Raises EngineError where an option that is needed, or that the user asked for, did not take."""
    if lost := sorted(name for name in asked.required if got.get(name, "n") != asked.options[name]):
        what = ", ".join(f"CONFIG_{name}" for name in lost)
        refuse("source", f"these sources do not take {what}, which trials need", "take a newer Linux, or see docs/kernels.md", EngineError)
    if lost := sorted(name for name in asked.asked if got.get(name, "n") != asked.options[name]):
        known = _known(sources, lost)
        what = "; ".join(_why(name, asked.options[name], got.get(name, "n"), name in known) for name in lost)
        refuse("config", f"did not take: {what}", "switch on what they depend on, or leave them out", EngineError)


def overlay(sources: Path) -> str:
    """The Kconfig file to start from: the sources' own and what we add."""
    return _text(sources / "Kconfig") + OVERLAY


def stamp(sources: Path, inputs: Iterable[str]) -> str:
    """Changes when the configuration must be made anew: with the inputs, or with any Kconfig file of the sources."""
    hashed = hashlib.sha256("\0".join(inputs).encode())
    for path in sorted(_kconfigs(sources)):
        at = os.stat(path)
        hashed.update(f"{path}\0{at.st_size}\0{at.st_mtime_ns}\0".encode())
    return hashed.hexdigest()


def recipe() -> str:
    """A digest of what we ask of every kernel, whatever its sources: the fragment and the overlay."""
    return hashlib.sha256(f"{_ours()}{OVERLAY}".encode()).hexdigest()[:16]


def digest(got: Options) -> str:
    """SHA-256 of a configuration; comments and what the tools found out about themselves do not count."""
    said = sorted(f"{name}={value}" for name, value in got.items() if value != "n" and not name.startswith(("CC_", "AS_", "LD_", "GCC_")))
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def registry(kind: str, got: Options, sources: Path) -> tuple[str, ...]:
    """The names of the congestion controls or qdiscs that a configuration has, as the sources register them."""
    directory, prefix, call, member = REGISTRIES[kind]
    makefile, names = _text(sources / directory / "Makefile"), set(ALWAYS[kind])
    for name in (name for name, value in got.items() if name.startswith(prefix) and value == "y"):
        for made in re.findall(rf"^obj-\$\(CONFIG_{name}\)\s*\+=\s*(\w+)\.o", makefile, re.MULTILINE):
            names.update(_registered(_text(sources / directory / f"{made}.c"), call, member) or {made.partition("_")[2]}.difference(("fifo",)))
    return tuple(sorted(names))


def _registered(text: str, call: str, member: str) -> list[str]:
    """The names that a source file registers; structures that it only falls back to do not count."""
    found = [re.search(rf'\b{ops}\b[^;=]*=\s*{{.*?\.{member}\s*=\s*"([\w-]+)"', text, re.DOTALL) for ops in re.findall(rf"\b{call}\(\s*&(\w+)", text)]
    return [m[1] for m in found if m]


def _ours() -> tuple[Options, Options]:
    """Our fragment: what is required, what is not."""
    required, _, optional = package_files("tcpscape.kernels").joinpath("uml.config").read_text("utf-8").partition(OPTIONAL)
    return options(required), options(optional)


def _why(name: str, asked: str, got: str, known: bool) -> str:
    if not known:
        return f"CONFIG_{name} (these sources have no such option)"
    hint = " (there are no modules: say y)" if asked == "m" else ""
    return f"CONFIG_{name}={asked}{hint}, which stays {got}"


def _known(sources: Path, names: Iterable[str]) -> set[str]:
    """Which of these options any Kconfig file defines."""
    pattern = re.compile(rf"^\s*(?:menu)?config ({'|'.join(names)})\s*$", re.MULTILINE)
    return {name for path in _kconfigs(sources) for name in pattern.findall(_text(Path(path)))}


def _kconfigs(sources: Path) -> Iterable[str]:
    for where, _, files in os.walk(sources):
        yield from (f"{where}/{name}" for name in files if name.startswith("Kconfig"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
