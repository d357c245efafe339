"""Prints modules that open or parse a file by themselves instead of through `tcpscape.reading`; exit status 1 if there is any.

What comes from outside is read by one package, which refuses what is no regular file, bounds sizes and makes every error one line. A call that opens
or parses something anywhere else needs an entry in :data:`ALLOWED`, with the reason why what it reads does not come from outside, or is guarded.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

from layers import modules

PACKAGE = "reading"
OPENS = frozenset(
    (
        "open",
        "fdopen",
        "read_text",
        "read_bytes",
        "read_csv",
        "read_parquet",
        "read_json",
        "read_ndjson",
        "scan_csv",
        "scan_parquet",
        "connect",
        "fromfile",
        "genfromtxt",
        "loadtxt",
        "memmap",
        "ZipFile",
    )
)
"""Names of functions and methods that open something."""
PARSES = frozenset(
    (
        "json.load",
        "json.loads",
        "from_json",
        "yaml.load",
        "yaml.safe_load",
        "yaml.full_load",
        "yaml.unsafe_load",
        "tomllib.load",
        "tomllib.loads",
        "csv.reader",
        "csv.DictReader",
        "pickle.load",
        "pickle.loads",
        "gzip.decompress",
        "bz2.decompress",
        "lzma.decompress",
        "zlib.decompress",
        "zlib.decompressobj",
        "np.load",
    )
)
"""Functions that parse or unpack, with their module where the name alone says too little."""
ALLOWED = {
    "capture.outputs": "writes",
    "cli.doctor": "/proc alone",
    "cli.streams": "the standard streams and /dev/null",
    "cli.lists": "/dev/tty, and asks it a question only",
    "interchange.bundle": "writes",
    "controls.bpf": "what bpftool says, and /proc",
    "emulation.session": "/dev/null, and a Unix socket of its own, to see whether it is in use",
    "engines.guest.process": "/proc, and what the guest program writes into a directory of this process",
    "engines.guest.programs": "what the guest program writes into a directory of this process",
    "engines.host.leftovers": "/proc alone",
    "engines.host.process": "what the live engine's program writes to this process",
    "engines.linux": "the programs that come with tcpscape",
    "engines.programs": "what the emulation's program writes into a directory of this process, and digests of the files that a command names",
    "engines.live": "/proc alone, and what the compiled engine returns",
    "engines.host.survey": "/proc alone",
    "engines.plan": "what the compiled engine returns",
    "engines.virtual": "what the compiled engine returns",
    "findings.diagnosis.control.classify": "the trained forest that comes with tcpscape",
    "interchange.iperf3": "a text within a document that was read already",
    "kernels.build": "writes the log of a build; reads what make of this build wrote",
    "kernels.cache": "the lock of a build",
    "kernels.patches": "files of two source trees that differ, byte for byte, and what patch of this process wrote",
    "kernels.variants": "the log of a build; files that this search wrote, and what make of this build wrote",
    "kernels.source": "a tarball of hundreds of megabytes as a stream, and the first four bytes of an executable in a tree: regular files by `find`",
    "report.build": "a text that was made a line before",
    "scenario.host": "/proc and this machine's kernel configuration; what the compiled engine returns",
    "scenario.limits": "what the compiled engine returns",
    "scenario.words": "what the compiled engine returns",
    "store.database": "SQLite opens the database itself, which `_expect_file` judges before",
    "store.results": "a row of the database; `campaign.stored` judges it",
    "queue_reports": "a part of a row of the database; the schema beside it judges it",
    "store.rows": "a row of the database; the schemas beside it judge it",
    "cli.explore": "tells the browser to open a page",
    "web.pool": "trials that this process pickled, and keeps in its own memory",
    "web.routes": "the body of a request, bounded while it is read; `reading` judges it",
    "writing": "writes, and takes its own lock files up again",
}
"""Module → what it reads, and why that is no door for others."""


def calls(file: Path) -> Counter[str]:
    """The calls in a file that open or parse, and how often each is there."""
    found: Counter[str] = Counter()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        if last in OPENS or name in PARSES or last in {parse for parse in PARSES if "." not in parse}:
            found[name] += 1
    return found


def main() -> int:
    """Prints the offenders and returns the exit status."""
    offenders, used = [], set()
    for name, file in modules().items():
        if name.partition(".")[0] == PACKAGE or not (found := calls(file)):
            continue
        used.add(name)
        if name not in ALLOWED:
            offenders.append(f"{name} calls {', '.join(sorted(found))}: read it through tcpscape.{PACKAGE}")
    offenders += [f"{name} is in ALLOWED of {Path(__file__).name} and opens nothing" for name in ALLOWED if name not in used]
    for offender in offenders:
        print(f"  {offender}")
    return bool(offenders)


if __name__ == "__main__":
    sys.exit(main())
