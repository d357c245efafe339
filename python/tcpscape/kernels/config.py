"""The configuration of a kernel: tcpscape's fragment, every congestion control of the sources, the user's fragment; and a check of the result."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tcpscape.errors import EngineError, refuse, shown
from tcpscape.reading import files as reading
from tcpscape.reading import packaged
from tcpscape.reading.files import MIB, Kind

Options = Mapping[str, str]
"""Options without `CONFIG_` and their values as in .config; `n` is off."""

OPTIONAL = "# OPTIONAL"
FRAGMENT = Kind("a fragment of a configuration", "give a file of CONFIG_NAME=value lines", error=EngineError)
SOURCE_FILE = Kind("a file of the sources", "take other sources", most=64 * MIB, error=EngineError)
ALTERNATIVES = {"PREEMPT_NONE": "PREEMPT_VOLUNTARY"}
"""Required option → the one that does as well where the sources do not offer it: from 7.0 on User-Mode Linux can be preempted, and the model
without preemption is for architectures that cannot."""
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
"""Where the names are: directory, prefix of the options, the function that registers an entry, and the structure's field with its name."""
BUILT_IN = {"congestion_controls": ("reno",), "qdiscs": ("noqueue", "pfifo", "pfifo_fast", "bfifo")}


@dataclass(frozen=True)
class RequestedConfig:
    """The options that a configuration should have."""

    options: Options
    required: frozenset[str]
    """Names of tcpscape's options without which trials cannot run, less those that the user's fragment sets."""
    by_user: frozenset[str]
    """Names of the options that the user's fragment sets."""

    def text(self) -> str:
        """A fragment for `make allnoconfig`."""
        return "".join(f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n" for name, value in self.options.items())


def requested(sources: Path, fragment: Path | None) -> RequestedConfig:
    """The options for these sources: tcpscape's, then the sources' congestion controls, then the user's; a later one wins."""
    required, optional = _own_options()
    controls = dict.fromkeys(CCA_OPTION.findall(_text(sources / CCA_KCONFIG)), "y")
    user = fragment_options(fragment) if fragment else {}
    return RequestedConfig({**required, **optional, **controls, **user}, frozenset(required).difference(user), frozenset(user))


def fragment_options(fragment: Path) -> Options:
    """The options in a user's fragment; raises EngineError for a file that is not one."""
    text = reading.text(fragment, FRAGMENT, "config")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#") and not LINE.fullmatch(line.strip()):
            refuse("config", f"{fragment}:{number}: {shown(line.strip())} is no option", "write CONFIG_NAME=value", EngineError)
    return parse_options(text)


def parse_options(text: str) -> dict[str, str]:
    """The options in a fragment or a .config."""
    matches = (LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {m[1] or m[3]: m[2] if m[1] else "n" for m in matches if m}


def check(config: RequestedConfig, options: Options, sources: Path) -> None:
    """Raises EngineError where the resulting `options` lack one that is required or that the user set."""
    if lost := sorted(name for name in config.required if not _is_met(name, config, options)):
        names = ", ".join(f"CONFIG_{name}" for name in lost)
        refuse("source", f"these sources do not take {names}, which trials need", "take a newer Linux, or see docs/kernels.md", EngineError)
    if lost := sorted(name for name in config.by_user if options.get(name, "n") != config.options[name]):
        defined = _defined(sources, lost)
        reasons = "; ".join(_reason(name, config.options[name], options.get(name, "n"), name in defined) for name in lost)
        refuse("config", f"did not take: {reasons}", "switch on what they depend on, or leave them out", EngineError)


def _is_met(name: str, config: RequestedConfig, options: Options) -> bool:
    """Whether a required option, or its alternative, is as asked for."""
    wanted = config.options[name]
    return options.get(name, "n") == wanted or options.get(ALTERNATIVES.get(name, ""), "n") == wanted


def overlay(sources: Path) -> str:
    """The text of Kconfig's root: the sources' own and tcpscape's additions."""
    return _text(sources / "Kconfig") + OVERLAY


def stamp(sources: Path, inputs: Iterable[str]) -> str:
    """A digest of the inputs and of the sources' Kconfig files; where it changes, the configuration must be made again."""
    hashed = hashlib.sha256("\0".join(inputs).encode())
    for path in sorted(_kconfigs(sources)):
        status = os.stat(path)
        hashed.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return hashed.hexdigest()


def recipe() -> str:
    """A digest of tcpscape's part of every configuration: the fragment and the overlay."""
    return hashlib.sha256(f"{_own_options()}{OVERLAY}".encode()).hexdigest()[:16]


def digest(options: Options) -> str:
    """SHA-256 of a configuration, without the options that describe the compiler and its tools."""
    lines = sorted(f"{name}={value}" for name, value in options.items() if value != "n" and not name.startswith(("CC_", "AS_", "LD_", "GCC_")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def registered_names(kind: str, options: Options, sources: Path) -> tuple[str, ...]:
    """The names of the congestion controls or qdiscs that a configuration has, as the sources register them."""
    directory, prefix, function, field = REGISTRIES[kind]
    makefile, names = _text(sources / directory / "Makefile"), set(BUILT_IN[kind])
    for option in (name for name, value in options.items() if name.startswith(prefix) and value == "y"):
        for stem in re.findall(rf"^obj-\$\(CONFIG_{option}\)\s*\+=\s*(\w+)\.o", makefile, re.MULTILINE):
            names.update(_registered(_text(sources / directory / f"{stem}.c"), function, field) or {stem.partition("_")[2]}.difference(("fifo",)))
    return tuple(sorted(names))


def _registered(text: str, function: str, field: str) -> list[str]:
    """The names that a source file registers; other structures in it do not count."""
    structures = re.findall(rf"\b{function}\(\s*&(\w+)", text)
    matches = [re.search(rf'\b{name}\b[^;=]*=\s*{{.*?\.{field}\s*=\s*"([\w-]+)"', text, re.DOTALL) for name in structures]
    return [m[1] for m in matches if m]


def _own_options() -> tuple[Options, Options]:
    """tcpscape's fragment: the required options and the optional ones."""
    required, _, optional = packaged.text("kernels/uml.config").partition(OPTIONAL)
    return parse_options(required), parse_options(optional)


def _reason(name: str, requested_value: str, value: str, is_defined: bool) -> str:
    """Why an option of the user's does not have the requested value."""
    if not is_defined:
        return f"CONFIG_{name} (these sources have no such option)"
    hint = " (there are no modules: say y)" if requested_value == "m" else ""
    return f"CONFIG_{name}={requested_value}{hint}, which stays {value}"


def _defined(sources: Path, names: Iterable[str]) -> set[str]:
    """Which of these options any Kconfig file defines."""
    pattern = re.compile(rf"^\s*(?:menu)?config ({'|'.join(names)})\s*$", re.MULTILINE)
    return {name for path in _kconfigs(sources) for name in pattern.findall(_text(Path(path)))}


def _kconfigs(sources: Path) -> Iterable[str]:
    for where, _, files in os.walk(sources):
        yield from (f"{where}/{name}" for name in files if name.startswith("Kconfig"))


def _text(path: Path) -> str:
    try:
        return reading.content(path, SOURCE_FILE).decode("utf-8", "replace")
    except EngineError:
        return ""
