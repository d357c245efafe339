"""Command lines: good ones of each command, in which options get bad values, are doubled, left out or combined to nonsense.

Commands and options are read from Click. A command without an entry in `GOOD` begins with the examples of its help.
"""

import shlex
from collections.abc import Iterator, Mapping
from functools import cache

import click
from hypothesis import strategies as st

from robustness import values
from robustness.case import Case
from robustness.documents import FILES, RESULTS, needed

QUICK = "--duration 100ms"
PATH = '--forward "netem delay 5ms" --bottleneck "tbf rate 10mbit burst 6056 limit 15000" --reverse "netem delay 5ms"'
GOOD: Mapping[str, tuple[str, ...]] = {
    "run": (
        f"run {PATH} {QUICK} --seeds 1",
        f"run scenario.yaml {QUICK} --seeds 1",
        f"run {PATH} {QUICK} --seeds 1 --out out/run",
        f"run {PATH} {QUICK} --engine mock --seeds 2",
    ),
    "sweep": (
        f"sweep --rtt 10ms --rate 10mbit {QUICK} --seeds 1",
        f"sweep --rtt 10,20ms --jitter 0..2ms/1ms --rate 5mbit {QUICK} --seeds 2 --engine mock",
        f"sweep campaign.yaml {QUICK} --seeds 1",
    ),
    "evaluate": ("evaluate cubic --against reno --clause by-hand --no-report", "evaluate reno --clause 6.2 --cells 1 --no-report --jobs 1"),
    "emulate": ("emulate --delay 1ms", "emulate --delay 1ms --rate 50mbit --loss up=1%"),
    "study run": ("study run baseline --quick --engine mock", "study run jitter-cliff --quick --part geo --engine mock --seeds 1 --no-report"),
    "study show": ("study show starlink",),
    "advise": (
        f"advise --rtt 20ms --rate 10mbit --cca cubic,bbr --seeds 2 {QUICK}",
        f"advise --rtt 20ms --engine mock --seeds 2 {QUICK}",
        f"advise --from ping.txt --rate 5mbit {QUICK} --seeds 2 --cca cubic",
    ),
    "cliff": (f"cliff --rtt 20ms --cca cubic --most 4 --engine mock {QUICK}", f"cliff --rtt 20ms --cca cubic --rate 5mbit --most 2 {QUICK}"),
    "compare": ("compare results results --cca cubic:bbr", "compare rows.csv results", "compare iperf3.json flow.flent.gz"),
    "diagnose": ("diagnose iperf3.json --no-replay", "diagnose flow.flent.gz --no-replay --json", "diagnose results --no-replay --quiet"),
    "explore": ("explore nosuch --port 0",),
    "export": (
        "export results --to csv",
        "export results --to iperf3 --out json",
        "export scenario.yaml --to tc",
        "export results --to flent --cca cubic --seed 0 --out x.flent.gz",
        "export rows.csv --to csv",
    ),
    "plot": ("plot results --what bars", "plot results --what cwnd --cca cubic --formats svg"),
    "report": ("report results", "report results --figures svg"),
    "kernel build": ("kernel build --source no-such-tree",),
    "kernel remove": ("kernel remove nosuch",),
    "kernel info": ("kernel info nosuch",),
    "validate": (
        "validate --engine model --engine mock --conditions conditions.csv --seeds 1 --jobs 1 --out out/v",
        "validate --engine mock --engine mock --random 2 --seeds 1 --jobs 1 --cca cubic --out out/v",
    ),
    "scenario show": ("scenario show baseline", "scenario show scenario.yaml --tc"),
}
"""Command → good command lines that end quickly. They name files of :data:`robustness.documents.FILES`."""
FITTING: Mapping[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(("forward", "bottleneck", "reverse", "queue"), values.tc_words()),
    **dict.fromkeys(("cca", "mix", "listener"), values.labels()),
    "check": values.checks(),
    "change": values.changes(),
    "link": values.links(),
    "transfers": values.traffic(),
    "probe": values.traffic(),
    "axis": values.axis(),
    "at": values.axis(),
    **dict.fromkeys(("metric", "what"), st.sampled_from((*values.METRICS, "cwnd,rtt", "bars", "curve", "cwnd", "queue", "x" * 2000, "[/x]", ""))),
    "formats": st.sampled_from(("png", "svg", "pdf", "png,svg", "png,png", "exe", "", "jpg", "svg,", "../x")),
}
"""Option → values that have its form and are often bad."""
WELL: Mapping[str, tuple[str, ...]] = {
    "rtt": ("10ms", "20ms"),
    "jitter": ("1ms", "2ms"),
    "loss": ("0.1%", "1%"),
    "rate": ("5mbit", "10mbit"),
    "buffer": ("20KB", "1bdp"),
    "queue": ("fq_codel", "pie limit 100"),
    "order": ("keep", "clamp", "reorder"),
    "distribution": ("normal", "uniform", "pareto"),
    "jitter_on": ("forward", "both"),
    "loss_on": ("reverse",),
    "flows": ("1", "3"),
    "app": ("1MB/s", "0"),
    "rcvbuf": ("64KiB",),
    "sndbuf": ("64KiB",),
    "read": ("16KiB/1ms",),
    "player": ("1,2.5mbit",),
    "abr": ("bola", "throughput"),
    "chunk": ("4096",),
    "kernel": ("6.1", "6.12,rmem_max=4MiB"),
    "samples": ("20ms",),
    "seeds": ("1", "0,1"),
    "duration": ("50ms", "100ms"),
    "engine": ("model", "mock"),
    "precision": ("20%",),
    "goal": ("delay",),
    "along": ("loss", "jitter"),
    "threshold": ("0.5", "30%"),
    "to": ("csv", "parquet", "markdown", "iperf3", "flent", "mahimahi", "perfetto", "qlog", "tc"),
    "out": ("out/x", "out/y.csv"),
    "pcap": ("out.pcapng",),
    "jobs": ("1",),
    "max_queue": ("5ms",),
    "packet": ("1000",),
    "from": ("60mbit", "ping.txt", "iperf3.json", "flow.flent.gz", "scenario.yaml"),
    "forward": values.TC,
    "bottleneck": values.TC[6:18],
    "reverse": values.TC[:4],
    "cca": values.CCAS,
    "mix": values.MIXES,
    "change": ("bottleneck@50ms: rate 5mbit", "forward@20ms: delay 8ms"),
    "check": ("goodput > 0.001", "goodput < 0"),
    "axis": ("flow.count=1,2", "bottleneck.buffer=1,2bdp"),
    "executor": ("local",),
    "max_seeds": ("5",),
    "metric": ("rtt_p95", "goodput"),
    "title": ("A title",),
    "listener": ("reno",),
    "link": ("delay 2ms rate 20mbit",),
    "transfers": ("20/s,30kB", "5/s,10kB~up"),
    "probe": ("voice", "ping~interval=50ms"),
    "at": ("jitter=1ms",),
    "what": ("bars", "cwnd"),
    "seed": ("0", "1"),
}
"""Option → good values, for combinations that make no sense together."""


@cache
def commands() -> Mapping[str, click.Command]:
    """Every command by the words that name it, groups' too."""
    from tcpscape.cli.main import app

    def walk(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from walk(command, (*names, name))
            elif command is not None:
                yield " ".join((*names, name)), command

    return dict(walk(app))


def good(name: str) -> tuple[str, ...]:
    """Good command lines of a command: quick ones, or its examples."""
    examples = tuple(example for example in getattr(commands()[name], "examples", ()) if example.startswith(name))
    return GOOD.get(name) or examples or (name,)


def _typed(option: click.Option) -> str:
    return next((word for word in option.opts if word.startswith("--")), option.opts[0])


def _value(option: click.Parameter, *, bad: bool) -> st.SearchStrategy[str]:
    """Values of an option by its name, and by its type where the name is not known."""
    well = st.sampled_from(WELL[option.name]) if option.name in WELL else st.sampled_from(("1", "x"))
    if not bad:
        return well
    if isinstance(option.type, click.Path):
        files = st.sampled_from((*values.PATHS, *FILES, RESULTS, "missing.yaml", "x" * 5000, "\udcff", "a\nb", "\x1b[31m", ""))
        return st.one_of(files, files, values.texts())
    if option.type.name in ("integer", "float", "integer range"):
        return st.one_of(st.sampled_from(values.NUMBERS), values.texts())
    fits = FITTING.get(option.name or "")
    return st.one_of(fits, fits, values.texts()) if fits is not None else st.one_of(values.texts(), well)


@st.composite
def lines(draw: st.DrawFn, name: str) -> Case:
    """A command line of this command with one to four things wrong with it, or unusual."""
    command = commands()[name]
    words = shlex.split(draw(st.sampled_from(good(name))))
    options = [p for p in command.params if isinstance(p, click.Option)]
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    steps = ["bad", "bad", "bad", "well", "well", "twice", "drop", "unknown", "bare"] if options else []
    steps += ["argument", "extra"] if arguments or not options else []
    if name == "emulate":  # a word in the wrong place is a program that runs, so only options are drawn, and none that runs or overwrites something
        steps = ["bad", "bad", "well", "twice"]
        options = [p for p in options if p.name not in ("serve", "pcap", "control", "root")]
    if name == "diagnose":  # half a minute of watching the sockets of this machine
        options = [p for p in options if p.name != "live"]
    if name == "explore":  # what it is given to open is never there: otherwise it would serve until it is ended
        steps = ["bad", "bad", "well", "twice", "unknown", "bare", "extra"]
    for _ in range(draw(st.integers(1, 4))):
        step = draw(st.sampled_from(steps))
        if step in ("bad", "well", "twice"):
            option = draw(st.sampled_from(options))
            words = _with(draw, words, option, bad=step == "bad", twice=step == "twice")
        elif step == "drop" and len(words) > 2:
            at = draw(st.integers(1, len(words) - 1))
            del words[at : at + draw(st.integers(1, 2))]
        elif step == "unknown":
            words.append(
                draw(st.sampled_from(("--nosuch", "--", "-", "-z", "--help=1", "--rt", "--no-x", "---", "--json=1", "--\x1b[31m", "--" + "y" * 3000)))
            )
        elif step == "bare":
            words.append(_typed(draw(st.sampled_from(options))))
        elif step == "argument":
            place = len(name.split())
            words[place : place + 1] = [draw(_argument())]
        elif step == "extra":
            words.append(draw(_argument()))
    words = [word.replace("\0", "") for word in words]
    words += ["--", "true"] if name == "emulate" else []
    if name == "kernel build" and not any(word.startswith("--source") for word in words):
        words.append("--source=no-such-tree")  # without one it builds a kernel
    if "--hunks" in words:
        words = ["no-such-tree" if word in ("6.1", "6.12") else word for word in words]  # Debian's sources would be unpacked and built
    return Case(name, tuple(words), needed(words))


def _argument() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from((*FILES, RESULTS, "baseline", "jitter", "cubic", "goodput")), values.texts())


def _with(draw: st.DrawFn, words: list[str], option: click.Option, *, bad: bool, twice: bool) -> list[str]:
    """The words with this option, instead of the value that it has or beside it."""
    typed = _typed(option)
    if option.is_flag:
        return [*words, *([draw(st.sampled_from((*option.opts, *option.secondary_opts)))] * (2 if twice else 1))]
    value = draw(_value(option, bad=bad))
    kept = list(words)
    if typed in kept and not twice:
        at = kept.index(typed)
        del kept[at : at + 2]
    joined = draw(st.booleans()) or value.startswith("-")
    return [*kept, f"{typed}={value}"] if joined else [*kept, typed, value]
