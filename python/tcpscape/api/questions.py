"""Questions to which trials, a command behind a path or a capture are the answer: advice, the cliff, a bound, a diagnosis."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typing_extensions import Unpack

from tcpscape import engines, units
from tcpscape.api.arguments import CcaSpecs, Seeds, control_labels, seeds_text, several
from tcpscape.api.declared import declares
from tcpscape.campaign.execute import Runner, TrialsDone
from tcpscape.errors import refuse
from tcpscape.scenario.fields import OPTIONS, validate
from tcpscape.scenario.options import Conditions, expect_owners
from tcpscape.scenario.vocabulary import FLOW, HOST, PATH, PathWords, TrialFields, Words, chosen
from tcpscape.store.results import Store

if TYPE_CHECKING:
    from tcpscape.emulation.summary import Emulated
    from tcpscape.findings.advice.answer import Advice
    from tcpscape.findings.calls import CallAdvice
    from tcpscape.findings.cliff.levels import Cliff
    from tcpscape.findings.diagnosis.diagnosis import Diagnosis
    from tcpscape.findings.spike import Bound


@declares(TrialFields)
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
    :param seeds: trials of each congestion control; None is 20, fewer on fast paths or where 5 agree.
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
        runner, numbers = Runner(engines.make(engine), jobs, store=store, progress=progress), None if seeds is None else seeds_text(seeds)
        command = f"tcpscape.advise(…, out={str(out)!r}) in Python"
        return Adviser(fitted, control_labels(cca, engine), runner, numbers, goal_of(goal, fitted), own_queue, command=command, taken=taken).advise()


@declares()
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
        return CallAdviser(home, control_labels(cca, engine), runner, SEEDS if seeds is None else seeds_text(seeds), remedies(queue)).advise()


@declares(TrialFields)
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
    expect_owners(chosen(options, PATH), {*options, along})
    searched: Conditions = validate(Conditions, chosen(options, (*PATH, *HOST)) | {"flow": chosen(options, FLOW)}, OPTIONS)
    share = units.parse_percent(threshold, "threshold", example="50%")
    effort, runner = search.effort(share, most), Runner(engines.make(engine), jobs, progress=progress)
    cliffs = {label: search.on_path(runner, searched, label, varied, effort) for label in control_labels(cca, engine)}
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


@declares(PathWords)
def emulate(
    command: str | Sequence[str],
    *,
    serve: str | Sequence[str] = (),
    host: str | Sequence[str] = (),
    router_command: str | None = None,
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
    :param serve: command lines of servers, started before: at the far end, `"iperf3 -s -1"`, or at a host that is named first, `"cdn: iperf3 -s"`.
    :param host: names of further hosts at the far end.
    :param router_command: a command line that runs in a router between the command and the path, whose devices are `lan` and `wan`: a shaper.
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
    typed = {name: value if name == "rtt" else several(value) for name, value in words.items() if value is not None}
    request = Request(
        way=PathWords(**typed),  # type: ignore[arg-type]
        command=command_words,
        serve=several(serve),
        host=several(host),
        router_command=router_command,
        reach=several(reach),
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


@declares()
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
