"""The Python interface: the commands of the command line as functions, with the same options, the same units and the same answers.

>>> import tcpscape
>>> outcome = tcpscape.run("starlink-baseline", cca=["cubic", "bbr"], seeds=5)  # doctest: +SKIP
>>> outcome.flows()  # a Polars frame, one row for each flow of each trial  # doctest: +SKIP

Quantities are written as on the command line (`"50ms"`, `"10mbit"`, `"0.1%"`, `"256KiB"`, `"2bdp"`); an option that is None is not given. What the
user can mend raises a :class:`tcpscape.TcpscapeError` of one line: field, problem, fix.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from typing_extensions import Unpack

from tcpscape import engines, units
from tcpscape.campaign import execute, executors, record, source
from tcpscape.campaign.campaign import Campaign, by_engine
from tcpscape.campaign.execute import Execution, Runner, TrialsDone
from tcpscape.campaign.outcome import Outcome
from tcpscape.campaign.record import Record
from tcpscape.controls import classes, spelling
from tcpscape.errors import refuse
from tcpscape.scenario import files
from tcpscape.scenario.fields import OPTIONS, validate
from tcpscape.scenario.options import Conditions, ScenarioOptions, given
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import FLOW, HOST, PATH, About, Levels, PathWords, TrialFields, Words, chosen, described
from tcpscape.store.results import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpscape.emulation.summary import Emulated
    from tcpscape.findings.advice.answer import Advice
    from tcpscape.findings.calls import CallAdvice
    from tcpscape.findings.cliff.levels import Cliff
    from tcpscape.findings.diagnosis.diagnosis import Diagnosis
    from tcpscape.findings.spike import Bound
    from tcpscape.interchange.compare import ResultComparison

CcaSpec = str | Mapping[str, Any] | type[Any]
"""A congestion control: `cubic:hystart=off`, `{"name": "cubic", "hystart": False}`, or a class that is one (:mod:`tcpscape.controls.hooks`)."""
CcaSpecs = CcaSpec | Sequence[CcaSpec] | None
"""One congestion control, several to compare, or None: those of the scenario. Text may name several, `"cubic,bbr"`, or all: `"all"`."""
Seeds = int | str | Iterable[int]
"""3 is the seeds 0, 1, 2; `range(5, 10)`, `[1, 4, 7]`, and as on the command line `"5..9"`, `"1,4,7"`."""
Hops = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
"""tc's words, `"netem delay 25ms loss 0.1%"`, a hop with fields, `{"delay": "25ms"}`, or several in a row."""
Entries = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""One entry of a list or several, each as text or with fields."""


P = ParamSpec("P")
R = TypeVar("R")
COMMON: Mapping[str, str] = {
    "cca": "congestion controls to compare, one trial each under the same seeds",
    "mix": 'several congestion controls in one trial, instead of `cca` and `flows`: `"cubic*2~rtt=20ms,bbr~up@5s"` is '
    "CCA[*COUNT][~FIELD…][@START[-STOP]] with the fields `up`, `rtt`, `access`, `enter`, `leave`",
    "link": 'further links of the path, a chain: `"delay 5ms rate 50mbit"`, or fields',
    "transfers": 'connections that arrive at random, `"20/s,30kB"`: as many a second, of this mean size; or fields',
    "probe": 'streams of packets that measure delays, `"voice"`, `"ping~up"`, or fields',
    "engine": '`"model"`, `"virtual"`, `"virtual:KERNEL"`, `"live"`, `"mock"`',
    "executor": 'where trials run: `"local"`, or `"dask://HOST:PORT"`',
    "jobs": "cores; 0 is all",
    "out": "directory that keeps the trials; those that are there already do not run again",
    "verify": 'measure first, on a path without impairments, whether this machine can run it (`engine="live"`)',
    "progress": "called with the trials that are done and those in all",
}
"""Parameters that several functions have, and what each is; a function's docstring says what is its own."""
_PARAM = re.compile(r"^    :param (\w+): (.*?)$\n(?=    :)", re.MULTILINE | re.DOTALL)


def _command(fields: type | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function with the declared `fields` as keyword arguments of their own, any other being refused as Python does.

    Its help describes every parameter: as its docstring does, as the field is declared, or as :data:`COMMON` has it.
    """
    declared = described(fields) if fields else {}

    def make(function: Callable[P, R]) -> Callable[P, R]:
        own = list(inspect.signature(function).parameters.values())
        new = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=about.kind) for name, about in declared.items()]
        first = next((place for place, p in enumerate(own) if p.kind is inspect.Parameter.KEYWORD_ONLY), len(own))
        every = [*own[:first], *new, *(p for p in own[first:] if p.kind is not inspect.Parameter.VAR_KEYWORD)]
        signature = inspect.signature(function).replace(parameters=every)

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            try:
                signature.bind(*args, **options)
            except TypeError as e:
                raise TypeError(f"{function.__name__}() {e}") from None
            return function(*args, **options)

        doc = function.__doc__ or ""
        texts = {name: f"{text}." for name, text in COMMON.items()} | {name: _about(about) for name, about in declared.items()}
        texts |= {name: " ".join(text.split()) for name, text in _PARAM.findall(doc)}
        params = "".join(f"{_wrapped(f':param {name}: {texts[name]}')}\n" for name in signature.parameters if name in texts)
        call.__doc__ = _PARAM.sub("", doc).replace("    :return:", f"{params}    :return:", 1)
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return make


_wrapped = functools.partial(
    textwrap.fill, width=150, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
)
"""A line of a docstring, in lines of the source's width."""


def _about(about: About) -> str:
    """What a declared field is, as help says it of a parameter: its options are parameters, and values are quoted."""
    text = re.sub(r"--([\w-]+)", lambda m: f"`{m[1].replace('-', '_')}`", about.help).rstrip(".")
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    fields = ", or fields" if about.kind == "Fields" else ""
    return f"{text}{'' if about.example in text else f', for example `{chr(34)}{about.example}{chr(34)}`'}{fields}."


@_command(TrialFields)
def run(
    scenario: Scenario | str | Path | Mapping[str, Any] | None = None,
    *,
    forward: Hops = None,
    bottleneck: Hops = None,
    reverse: Hops = None,
    change: str | Sequence[str] = (),
    cca: CcaSpecs = None,
    flows: int | None = None,
    mix: str | None = None,
    link: Entries = (),
    transfers: Entries = (),
    probe: Entries = (),
    listener: str | None = None,
    offload: bool | None = None,
    ecn: bool | None = None,
    seeds: Seeds = 10,
    samples: str | None = None,
    queue_samples: str | None = None,
    engine: str = "model",
    executor: str = "local",
    jobs: int = 0,
    out: str | Path | None = None,
    verify: bool = False,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> Outcome:
    """Runs a scenario once for each congestion control and seed.

    Without `scenario`, the options describe the path and its flows; with it, they change what it says.

    :param scenario: a :class:`tcpscape.Scenario`, a `.yaml` or `.toml` file, a gallery name (`"starlink-baseline"`) or plain values.
    :param forward: hops of the data, the first at the sender, further ones at routers: `"netem delay 25ms 8ms distribution normal loss 0.1%"`.
        At the sender netem treats a super-packet as a whole, so that loss costs less there than at a router, where :func:`sweep` has it:
        `{"at": "router", "delay": "25ms", "loss": "0.1%"}`.
    :param bottleneck: the queue at the router, `"tbf rate 10mbit burst 6056 limit 62500"` or `{"rate": "10mbit", "buffer": "2bdp"}`.
    :param reverse: hops of the ACKs.
    :param change: changes on the way, `"bottleneck@8s: rate 20mbit"`.
    :param cca: congestion controls to compare, one trial each under the same seeds; None: those of the scenario, or cubic.
    :param flows: flows in a trial, all alike.
    :param listener: congestion control of the listening sockets.
    :param offload: whether there are TSO/GSO/GRO bursts.
    :param ecn: whether both ends negotiate ECN.
    :param seeds: trials of each congestion control: 10 are the seeds 0 to 9.
    :param samples: interval of the samples kept of each flow, `"100ms"`: `outcome.trials[0].samples` is a Polars frame.
    :param queue_samples: the same of each queue.
    :param jobs: cores of the local executor; 0 is all.
    :param out: directory that keeps the results; trials that are there already do not run again.
    :return: one cell for each congestion control: `outcome.frame()`, `outcome.flows()`, `outcome.trials`, `outcome.find("bbr").median()`. It prints
        itself as a table of medians; the table of the command `run` has means, to which ratios (`over`) belong.
    :raises TcpscapeError: one line, before anything runs, for what makes no sense or cannot run.
    """
    flow = chosen(options, FLOW) | given({"listener": listener})
    fields = {**chosen(options, HOST), "offload": offload, "ecn": ecn}
    changes = [change] if isinstance(change, str) else change
    words = {"forward": forward, "bottleneck": bottleneck, "reverse": reverse}
    said = ScenarioOptions(words, flows, mix, flow, fields, changes, **_more(link, transfers, probe), conditions=chosen(options, PATH))
    labels = _labels(cca, engine)
    if scenario is None and said.is_empty and not labels:
        refuse("scenario", "none given", 'name a file or a gallery scenario, or give rtt="50ms"')
    compared = bool(labels)
    base = said.scenario(compared=compared) if scenario is None else said.over(_scenario(scenario), compared=compared)
    interval = samples or source.samples(base, kept=out is not None)
    campaign = source.single(
        base, {"cca": labels, "engines": [engine], "seeds": _seeds(seeds), "samples": interval, "queue_samples": queue_samples or "0s"}
    )
    if verify:
        engines.verify(by_engine(campaign.cases()))
    return _measure("run", campaign, executor, jobs, out, progress)


@_command(TrialFields)
def sweep(
    campaign: str | Path | Mapping[str, Any] | None = None,
    *,
    flows: Levels | int = None,
    axes: Mapping[str, Levels] | None = None,
    cca: CcaSpecs = None,
    mix: str | None = None,
    link: Entries = (),
    transfers: Entries = (),
    probe: Entries = (),
    command: str | None = None,
    serve: str | Sequence[str] = (),
    engine: str | Sequence[str] | None = None,
    seeds: Seeds | None = None,
    precision: str | None = None,
    max_seeds: int | None = None,
    metric: str | None = None,
    samples: str | None = None,
    executor: str = "local",
    jobs: int = 0,
    out: str | Path | None = None,
    verify: bool = False,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> Outcome:
    """Runs a path at every point of some axes, for each congestion control.

    A condition with one value describes the path, one with several is an axis; axes are crossed: `sweep(rtt="50ms", jitter="0..24ms/4ms",
    loss=["0%", "0.1%"], cca="cubic,bbr")` has 7 × 2 × 2 cells.

    :param campaign: a campaign (`.yaml`, `.toml`, a name such as `"jitter"`, or plain values) or a scenario; the options change what it says.
    :param flows: flows in a trial.
    :param command: a program at the near end instead of flows, with its arguments, on the engines `virtual` and `live`; `far` is the other end.
    :param serve: command lines of servers at the far end, started before.
    :param axes: any other field of a scenario or of its flows, or `${NAME}` in it, and its values.
    :param engine: engines; several are compared.
    :param seeds: trials of each cell, 10 where nothing says another number.
    :param precision: repeats each cell until the interval of `metric` is ± this of its value, `"5%"`.
    :param max_seeds: most trials of a cell with `precision`.
    :param metric: what tables show, and what `precision` is about: `"goodput"`, `"rtt_p95"`, `"share:bbr"`, …
    :param samples: interval of the samples kept of each flow.
    :param jobs: cores of the local executor; 0 is all.
    :param out: directory that keeps the results; trials that are there already do not run again.
    :return: one cell for each point, congestion control and engine: `outcome.frame()`, `outcome.curve("jitter", "bbr")`.
    :raises TcpscapeError: one line, before anything runs, for what makes no sense or cannot run.
    """
    levels = {**chosen(options, PATH), **given({"flows": flows}), **chosen(options, FLOW), **chosen(options, HOST), **(axes or {})}
    names = [engine] if isinstance(engine, str) else list(engine or ())
    fields = {
        "engines": names or None,
        "seeds": None if seeds is None else _seeds(seeds),
        "precision": precision,
        "max_seeds": max_seeds,
        "metric": metric,
        "samples": samples,
        "mix": mix,
        "cca": _labels(cca, names[0] if names else "model") or None,
    }
    programs = source.programs(command, _several(serve))
    plan = source.campaign(campaign, given(levels), given(fields) | _more(link, transfers, probe) | ({"programs": programs} if programs else {}))
    if verify:
        engines.verify(by_engine(plan.cases()))
    return _measure("sweep", plan, executor, jobs, out, progress)


@_command(TrialFields)
def advise(
    *,
    source: str | Path | None = None,
    rtt_jitter: str | None = None,
    rtt_loss: str | None = None,
    cca: CcaSpecs = "cubic,bbr,reno",
    goal: Literal["goodput", "delay", "video"] | None = None,
    flows: int | None = None,
    own_queue: bool = False,
    seeds: Seeds | None = None,
    engine: str = "model",
    jobs: int = 0,
    out: str | Path | None = None,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> Advice:
    """Runs congestion controls on a path and says which to use, how certain that is, what would change it, and what to type.

    :param source: a file that describes the path, the command's `--from`: ping's output, iperf3's JSON, a Flent file, a scenario, a result
        directory. What the other parameters say comes first.
    :param rtt_jitter: instead of `jitter`, the standard deviation of the round trip, ping's mdev.
    :param rtt_loss: instead of `loss`, the share of the round trips that were lost, ping's packet loss.
    :param goal: what counts: `goodput`; `delay`, the least added RTT among those that keep half of the best goodput; `video`, the QoE of a
        viewer. None is goodput, and video with a `player`.
    :param flows: flows that share the path, all under the same congestion control.
    :param own_queue: whether the queue of the bottleneck is yours: fq_codel and cake are tried there.
    :param seeds: trials of each congestion control; None is 20, fewer on fast paths.
    :return: `advice.choice` (None where nothing can be recommended), `advice.decision` with its verdict,
        `advice.deployment`, `advice.ranking`: one entry for each congestion control, the best first, `advice.outcome`: the trials on the path itself.
    :raises TcpscapeError: one line, for what makes no sense or cannot run.
    """
    from tcpscape.findings.advice.adviser import Adviser
    from tcpscape.findings.advice.choice import goal_of
    from tcpscape.interchange import measured
    from tcpscape.words import advice  # noqa: F401 (has its table)

    fields = {"rtt_jitter": rtt_jitter, "rtt_loss": rtt_loss, "flows": flows, "flow": chosen(options, FLOW) or None}
    fitted, taken = measured.conditions(chosen(options, (*PATH, *HOST)) | fields, None if source is None else Path(source))
    with nullcontext() if out is None else Store(out) as store:
        runner, numbers = Runner(engines.make(engine), jobs, store=store, progress=progress), None if seeds is None else _seeds(seeds)
        command = f"tcpscape.advise(…, out={str(out)!r}) in Python"
        return Adviser(fitted, _labels(cca, engine), runner, numbers, goal_of(goal, fitted), own_queue, command=command, taken=taken).advise()


@_command()
def advise_calls(
    *,
    rate: str,
    upload: str,
    rtt: str,
    buffer: str | None = None,
    queue: str | None = None,
    cca: CcaSpecs = "cubic,bbr",
    flows: int = 1,
    duration: str | None = None,
    kernel: str | None = None,
    seeds: Seeds | None = None,
    engine: str = "model",
    jobs: int = 0,
    out: str | Path | None = None,
    progress: TrialsDone | None = None,
) -> CallAdvice:
    """Says which queue to put before a home's link, and which congestion control to upload with, so that a call stays good beside uploads.

    The command line's `advise --goal calls`.

    :param rate: rate of the link's way down, `"20mbit"`.
    :param upload: rate of its way up.
    :param rtt: round-trip time without queues to where calls and uploads go.
    :param buffer: the modem's buffer of the way up; None is 256 KiB.
    :param queue: queues to compare, `"fq_codel,cake"`; None is all that a Linux router has.
    :param cca: congestion controls of the uploads.
    :param flows: uploads at the same time.
    :param duration: how long each call is; None is 20 s.
    :param kernel: kernel profile with overrides, `"6.12,rmem_max=4MiB"`.
    :param seeds: trials of each case; None is 5.
    :param engine: `"model"`, `"virtual"`, `"virtual:KERNEL"`.
    :return: `advice.choice` with its `queue`, `cca` and `score`, `advice.commands` for the router, `advice.cases`.
    :raises TcpscapeError: one line, for what makes no sense or cannot run.
    """
    from tcpscape.findings.calls import SEEDS, CallAdviser, HomeLink, remedies
    from tcpscape.words import calls  # noqa: F401 (has their table)

    home = HomeLink.of({"rate": rate, "upload": upload, "rtt": rtt, "buffer": buffer, "duration": duration, "kernel": kernel}, flows)
    with nullcontext() if out is None else Store(out) as store:
        runner = Runner(engines.make(engine), jobs, store=store, progress=progress)
        return CallAdviser(home, _labels(cca, engine), runner, SEEDS if seeds is None else _seeds(seeds), remedies(queue)).advise()


@_command(TrialFields)
def cliff(
    *,
    along: Literal["jitter", "loss"] = "jitter",
    threshold: str = "50%",
    cca: CcaSpecs = "cubic,bbr",
    most: int = 1200,
    engine: str = "model",
    jobs: int = 0,
    out: str | Path | None = None,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> dict[str, Cliff]:
    """Finds where goodput falls below a share of what it is without the impairment: the edge, its interval and the chaos zone around it.

    :param along: the impairment that the search varies: jitter (levels in ns) or loss (fractions).
    :param threshold: share of the unimpaired goodput that counts as fallen.
    :param most: runs that each search may take for a narrow interval; 0 is a quick look.
    :param out: directory for `edges.csv` and `levels.csv`.
    :return: congestion control → its cliff; `cliff.edge` is None where there is none on the axis.
    :raises TcpscapeError: one line, for what makes no sense or cannot run.
    """
    from tcpscape.findings.cliff import search
    from tcpscape.words import cliff as answer

    varied = search.impairment(along, {"jitter": options.get("jitter"), "loss": options.get("loss")})
    searched: Conditions = validate(Conditions, chosen(options, (*PATH, *HOST)) | {"flow": chosen(options, FLOW)}, OPTIONS)
    share = units.parse_percent(threshold, "threshold", example="50%")
    effort, runner = search.effort(share, most), Runner(engines.make(engine), jobs, progress=progress)
    cliffs = {label: search.on_path(runner, searched, label, varied, effort) for label in _labels(cca, engine)}
    if out is not None:
        searches = [answer.CliffSearch(label, searched, varied, share, result) for label, result in cliffs.items()]
        answer.write(searches, {"name": runner.engine.name, "version": runner.engine.version}, Path(out))
    return cliffs


def bound(
    before: str,
    after: str,
    *,
    rtt: str | None = None,
    flows: Mapping[str, float] | None = None,
    max_queue: str | None = None,
    packet: str | int | None = None,
) -> Bound:
    """The latency spike that a sudden drop of a full link's rate must make, or what must be lost instead. Nothing is run.

    :param before: the link's rate before the drop, `"60mbit"`.
    :param after: its rate after the drop, `"20mbit"`.
    :param rtt: round trip from the bottleneck to the sender and back.
    :param flows: instead of `rtt`, for several flows: RTT → share of the bandwidth, `{"50ms": 0.7, "20ms": 0.3}`.
    :param max_queue: longest delay that the queue lets a packet wait, `"20ms"`; None is no limit.
    :param packet: a packet as the link counts it; None is a full frame, 1514 bytes.
    :return: `bound.spike_ns`, `bound.excess_lost`, …
    :raises TcpscapeError: one line, for what makes no sense.
    """
    from tcpscape.findings.spike import FULL_FRAME, Bound
    from tcpscape.words import bound  # noqa: F401 (has its table)

    if (rtt is None) == (flows is None):
        refuse("rtt", "none given" if rtt is None else "given twice, with flows", 'write rtt="50ms", or flows={"50ms": 0.7, "20ms": 0.3}')
    shares = {rtt: 1.0} if rtt is not None else dict(flows or {})
    return Bound(
        units.parse_rate(before, "before", example="60mbit"),
        units.parse_rate(after, "after", example="20mbit"),
        tuple((units.parse_time(text, "rtt"), share) for text, share in shares.items()),
        None if max_queue is None else units.parse_time(max_queue, "max_queue", example="20ms"),
        FULL_FRAME if packet is None else units.parse_size(packet, "packet", example="1514B"),
    )


@_command(PathWords)
def emulate(
    command: str | Sequence[str],
    *,
    serve: str | Sequence[str] = (),
    reach: str | Sequence[str] = (),
    outside: bool = False,
    cca: str | None = None,
    mix: str | None = None,
    duration: str | None = None,
    seed: int = 0,
    offload: bool = True,
    engine: str = "live",
    bind: str | Path | Sequence[str | Path] = (),
    root: bool = False,
    pcap: str | Path | None = None,
    **words: Words,
) -> Emulated:
    """Runs a command behind an emulated path and waits for its end. It needs Linux.

    A value of the path is for both directions, or for one: `rate=["20mbit", "up=2mbit"]`; up is from the command to the far end, which is called
    `far`. The command's standard output is in the result, its standard error is this process's.

    :param command: the command and its arguments, or one text that is split as a shell does.
    :param serve: command lines of servers at the far end, started before: `"iperf3 -s -1"`.
    :param reach: ports of this machine's loopback at the far end: `"8000"`, or `"FAR:HERE"`.
    :param outside: whether the far end is the world outside, through slirp4netns.
    :param cca: congestion control of both ends.
    :param mix: flows of ours beside the command, on the same path: `"cubic*2,bbr~up@5s"`.
    :param duration: ends the command after this time, with the status 124.
    :param seed: seed of losses and delays; in virtual time of all random numbers.
    :param offload: whether hosts send TSO/GSO/GRO bursts; the path still treats each packet.
    :param engine: `"live"`, this machine's kernel in real time; `"virtual"` or `"virtual:KERNEL"`, a kernel of `tcpscape kernel list` in
        virtual time, where a run with a seed is repeated to the byte.
    :param bind: directories that programs in virtual time may change.
    :param root: as root, without a user namespace.
    :param pcap: a file for the packets with what the path did to each, pcapng: `tcpscape.diagnose(result.capture)`.
    :return: `result.status`, `result.output`, `result.seconds`, `result.summary["down"]["loss"]`, `result.capture`.
    :raises TcpscapeError: one line, where the path, the command or a server makes no sense or cannot run here. A command that fails is no error:
        see `status`.
    """
    from tcpscape.emulation import summary
    from tcpscape.emulation.request import Request
    from tcpscape.emulation.session import Session
    from tcpscape.words import emulation  # noqa: F401 (has their table)

    try:
        command_words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as e:
        refuse("command", f"{e}"[:1].lower() + f"{e}"[1:], "close the quotation, or give a list of words")
    typed = {name: value if name == "rtt" else _several(value) for name, value in words.items() if value is not None}
    request = Request(
        way=PathWords(**typed),  # type: ignore[arg-type]
        command=command_words,
        serve=_several(serve),
        reach=_several(reach),
        outside=outside,
        engine=engine,
        bind=[Path(directory) for directory in ([bind] if isinstance(bind, (str, Path)) else bind)],
        cca=cca,
        mix=mix,
        duration=duration,
        seed=seed,
        offload=offload,
        root=root,
        pcap=None if pcap is None else Path(pcap),
    )
    if not request.command:
        refuse("command", "there is none", "name a program, for example 'ping -c 5 far'")
    with tempfile.TemporaryFile() as output:
        settings = request.settings(stdout=output.fileno())
        result = Session(settings).run()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    document = summary.document(result, settings.path, settings.command, settings.seed, settings.engine)
    return summary.Emulated(text, document, settings.pcap)


@_command()
def diagnose(
    source: str | Path | None = None,
    *,
    live: str | None = None,
    duration: str | None = None,
    flow: str | None = None,
    flows: int = 3,
    cca: str | None = None,
    kernel: str | None = None,
    replay: bool = True,
    quick: bool = False,
    jobs: int = 0,
    out: str | Path | None = None,
    progress: TrialsDone | None = None,
) -> Diagnosis:
    """What a capture, or another tool's measurement, says of its path, what limits its flows, and what would be better by how much.

    :param source: a capture (pcap, pcapng), iperf3's JSON, a Flent file, the output of `ss -tin`, or a result directory.
    :param live: instead of a file, the sockets of this machine that this filter of ss lets through, `"dport = :443"`; empty is all.
    :param duration: how long they are watched, with `live`; None is 30 s.
    :param flow: only this flow, `"10.0.0.1:40000-10.0.0.2:5201"`, or those with one of its ends.
    :param flows: most flows that are diagnosed, the largest first.
    :param cca: congestion control of the senders, where you know it.
    :param kernel: kernel profile of the senders with overrides, `"6.12,rmem_max=4MiB"`; None is not known.
    :param replay: whether the model repeats the observation and compares other congestion controls; without it there is no advice.
    :param quick: few trials for that: wider intervals.
    :param out: file for the fitted path of the largest flow as a scenario, for :func:`run`.
    :param progress: called with the trials of the replay that are done and those in all.
    :return: `diagnosis.flows[0].path.rtt_ms`, `.limited_by`, `.control`, `.advice`; what is not identifiable is None, with its reason in
        `.not_identifiable`.
    :raises TcpscapeError: one line, for a file that cannot be read, and for what makes no sense.
    """
    from tcpscape.findings.diagnosis import diagnosis
    from tcpscape.findings.diagnosis.fitted import DiagnosisSettings, ReplaySettings, expect_known
    from tcpscape.interchange import observing, tcp_info
    from tcpscape.words import diagnosis as answer  # noqa: F401 (has its table)
    from tcpscape.words import fitted_path

    expect_known(cca, kernel)
    replaying = ReplaySettings(Runner(engines.make("model"), jobs, progress=progress), kernel, quick) if replay else None
    if (source is None) == (live is None):
        refuse("source", "none given" if source is None else "given twice, with live", 'name a file, or write live="" for sockets of this machine')
    if source is not None and duration is not None:
        refuse("duration", "nothing is watched without live", "leave it out, or write live instead of the source")
    seconds = units.parse_time(duration or "30s", "duration", example="30s") / units.NS_PER_S
    observation = observing.observe(source) if source is not None else tcp_info.watch(live or "", seconds)
    result = diagnosis.diagnose(observation, DiagnosisSettings(flows, flow or "", cca, replaying))
    if out is not None:
        fitted_path.write(result, Path(out), kernel)
    return result


def compare(
    a: Outcome | Record | str | Path,
    b: Outcome | Record | str | Path,
    *,
    metric: str = "goodput",
    cca: str | None = None,
    at: Mapping[str, str] | None = None,
) -> ResultComparison:
    """Whether two results differ: ratio of means and win probability with their intervals, condition by condition; runs of the same seeds are pairs.

    :param a: an outcome, a result directory (its path, or what :func:`load` returned), a file of iperf3 or Flent, a table, or a directory of such
        files.
    :param b: another one.
    :param metric: what to compare: `"goodput"`, `"rtt_p95"`, …; of a table a column.
    :param cca: only these congestion controls: `"bbr"` of both, or `"cubic:bbr"`, A's and B's.
    :param at: only conditions with these values of axes, `{"jitter": "4ms"}`.
    :return: `answer.rows`, one for each condition: its `comparison` (`comparison.ratio`, by which it judges), its `verdict`, and `is_same` where both
        sides are the very same trials; `answer.table()` names in what the paths differ, and `answer.table().markdown()` is to paste.
    :raises TcpscapeError: one line, where nothing can be read or compared.
    """
    from tcpscape.interchange import compare as comparing
    from tcpscape.interchange import sources
    from tcpscape.words import comparison  # noqa: F401 (has its table)

    sides = [sources.load(Path(side), sources.SAMPLES) if isinstance(side, str | Path) else sources.of_outcome(_outcome(side)) for side in (a, b)]
    return comparing.compare(*comparing.choose(sides[0], sides[1], cca, at), metric)


def plot(result: Outcome | Record, figure: str | None = None, *, file: str | Path | None = None) -> Figure:
    """Draws a result as a Matplotlib figure.

    :param result: what :func:`run` or :func:`sweep` returned, or :func:`load` of a directory.
    :param figure: its name in :data:`tcpscape.plots.FIGURES` (`"curve"`, `"bars"`, `"strip"`, `"cdf"`, `"series"`, …; what each
        shows: :func:`tcpscape.plots.draw`), or quantities over time, `"cwnd,rtt"`; None is the first that fits the result.
    :param file: where to write it too, `.png`, `.svg` or `.pdf`.
    :raises TcpscapeError: one line, where the figure is unknown or the result lacks the data for it.
    """
    from tcpscape import plots
    from tcpscape.plots import traces

    quantities = traces.names(figure or "")
    drawn = plots.draw(_outcome(result), "series", context=plots.Context(what=quantities)) if quantities else plots.draw(_outcome(result), figure)
    if file is not None:
        plots.save(drawn, Path(file), plots.formats(Path(file).suffix[1:], "file"), named=True)
    return drawn


def load(source: str | Path) -> Scenario | Record:
    """The scenario in a `.yaml` or `.toml` file or of a gallery name; of a directory that `out` or `--out` named, its results.

    :param source: the file, the name or the directory.
    :return: a :class:`tcpscape.Scenario`, or a :class:`tcpscape.Record`, whose `parts` are the outcomes.
    :raises TcpscapeError: one line, where there is no such thing or it cannot be read.
    """
    from tcpscape.words import campaign  # noqa: F401 (has the tables of outcomes)

    return record.load(Path(source)) if os.path.isdir(source) else files.load(source)


def _measure(kind: record.Kind, campaign: Campaign, executor: str, jobs: int, out: str | Path | None, progress: TrialsDone | None) -> Outcome:
    """Runs a campaign, and keeps it in `out` where there is one."""
    from tcpscape.words import campaign as answer  # noqa: F401 (has its table)

    place = executors.make(executor, jobs)
    if out is None:
        return execute.run(campaign, Execution(progress=progress, executor=place))
    with Store(out) as store:
        command = f"tcpscape.{kind}(…, out={str(out)!r}) in Python"
        return record.measure(kind, campaign, Execution(store=store, progress=progress, executor=place), command)[0]


def _outcome(result: Outcome | Record) -> Outcome:
    """The outcome itself, or the only one of a directory; several are refused by name."""
    if isinstance(result, Outcome):
        return result
    if len(result.parts) > 1:
        refuse("result", f"the directory has {len(result.parts)} parts", f"choose one of .parts: {', '.join(result.parts)}")
    return result.outcomes[0]


def _scenario(value: Scenario | str | Path | Mapping[str, Any]) -> Scenario:
    """A scenario from whatever names one."""
    if isinstance(value, Scenario):
        return value
    return Scenario.of(dict(value)) if isinstance(value, Mapping) else files.load(value)


def _labels(controls: CcaSpecs, engine: str) -> list[str]:
    """The labels of congestion controls, `all` included; none where none is given."""
    if controls is None:
        return []
    if isinstance(controls, str):
        return sorted(engines.make(engine).ccas()) if controls == "all" else spelling.parse_labels(controls)
    several = [controls] if isinstance(controls, (type, Mapping)) else controls
    return [spelling.label(classes.register(one) if isinstance(one, type) else one) for one in several]


def _several(texts: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _more(link: Entries, transfers: Entries, probe: Entries) -> dict[str, list[Any]]:
    """The fields of a scenario that are added to."""
    entries = {"links": link, "transfers": transfers, "probes": probe}
    return {name: [of] if isinstance(of, (str, Mapping)) else list(of) for name, of in entries.items() if of}


def _seeds(seeds: Seeds) -> str:
    """Seeds as a campaign has them: `10`, `5..9`, `1,4,7`."""
    if isinstance(seeds, (int, str)):
        return str(seeds)
    numbers = list(seeds)
    if not numbers:
        refuse("seeds", "no trial measures nothing", "give at least one")
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}..{numbers[-1]}" if numbers[0] or len(numbers) == 1 else str(len(numbers))
    return ",".join(map(str, numbers))
