"""The advice for calls beside uploads. :mod:`tcpscape.words.calls` says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcpscape import metrics, stats, units
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.execute import Runner
from tcpscape.controls.deployment import DEFAULT, Deployment
from tcpscape.controls.routers import FULL_FRAME, USUAL, Router
from tcpscape.errors import refuse, shown
from tcpscape.findings.steps import Tell, untold
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.text.table import ShownAsTable
from tcpscape.trial import ProbeResult, Trial


@dataclass(frozen=True, slots=True, repr=False)
class CallAdvice(ShownAsTable):
    """Which queue to put before a link, and which congestion control to upload with, so that calls stay good. A notebook shows its table."""

    link: HomeLink
    quiet: CallCase
    """The call without uploads."""
    cases: tuple[CallCase, ...]
    """The link as it is under each congestion control, then behind each queue."""
    choice: CallCase
    seeds: int
    """Trials of each case."""
    engine: str
    caveats: tuple[str, ...] = ()
    router: Router = USUAL
    """Where the queue is typed."""
    margins: tuple[Margin, ...] = ()
    """The call behind the recommended queue at other shares of the rate, the largest first; empty where no queue is recommended."""
    measured_ms: float | None = None
    """The round trip during an upload that the buffer was computed from, ms; None where the buffer is given or assumed."""

    @property
    def needed(self) -> tuple[float, float] | None:
        """The largest share of the rate at which the call is as good as at any smaller one, and the next larger one that was tried; None without any.

        Both are 1 where nothing has to be left at all.
        """
        best = max((margin.score.value for margin in self.margins), default=0.0)
        above = 1.0
        for margin in self.margins:
            if margin.score.value >= best - WORTH:
                return margin.share, above
            above = margin.share
        return None

    @property
    def typed_share(self) -> float:
        """The share of the rate to which the router shapes: the usual one, or less where the model needs that."""
        return min(SHAPED, self.needed[0]) if self.needed else SHAPED

    @property
    def before(self) -> CallCase:
        """The link as it is, under Linux's default where that is among those compared."""
        as_it_is = [case for case in self.cases if case.remedy is None]
        return next((case for case in as_it_is if case.cca == DEFAULT), as_it_is[0])

    @property
    def deployment(self) -> Deployment | None:
        """What to type on the router; None where its queue stays."""
        link = self.link
        share = self.typed_share
        return self.router.shaped(self.choice.remedy.name, int(share * link.up_bps), int(share * link.down_bps)) if self.choice.remedy else None

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type until the next start, as root; nothing where its queue stays."""
        return self.deployment.now if self.deployment else ()


@dataclass(frozen=True, slots=True)
class Margin:
    """A call behind a queue that is shaped to a share of the link's rate."""

    share: float
    """Share of the rate, a fraction."""
    score: Estimate
    """The worse of the call's two ways, mean opinion score."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""


SHARES = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8)
"""Shares of the rate that are tried."""
WORTH = 0.1
"""Difference of two scores that nobody hears."""
KEPT = 0.95
"""Share of the uploads' best goodput that makes two queues as good."""
SATISFACTION = (
    (4.34, "everybody is very satisfied"),
    (4.03, "everybody is satisfied"),
    (3.60, "some are dissatisfied"),
    (3.10, "many are dissatisfied"),
    (2.58, "nearly everybody is dissatisfied"),
)
"""Least score of each class of satisfaction (ITU-T G.107, Annex B)."""
LOWEST = "nobody can talk"
BEARABLE = SATISFACTION[-1][0]
"""Least score of a call that some can bear."""


def satisfaction(score: float) -> str:
    """What users say of a call with this score."""
    return next((text for least, text in SATISFACTION if score >= least), LOWEST)


@dataclass(frozen=True, slots=True)
class CallCase:
    """The call beside uploads under one congestion control, behind one queue."""

    cca: str
    remedy: Remedy | None
    score: Estimate
    """The worse of the call's two ways, mean opinion score, 1 to 4.5; mean over the trials."""
    delay: Estimate
    """95th percentile of the one-way delay of the call's packets on the way up, ms."""
    lost: Estimate
    """Share of the call's packets that were lost, the worse way."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""

    @property
    def queue(self) -> str:
        """What the case's queue is called."""
        return self.remedy.name if self.remedy else AS_IT_IS


def choose(cases: Sequence[CallCase]) -> CallCase:
    """The case to recommend."""
    best = max(case.score.value for case in cases)
    alike = [case for case in cases if case.score.value >= best - WORTH]
    groups = ([c for c in alike if c.remedy is None and c.cca == DEFAULT], [c for c in alike if c.cca == DEFAULT], alike)
    candidates = next(group for group in groups if group)
    most = max(c.upload.value for c in candidates)
    return next(c for c in candidates if c.upload.value >= KEPT * most)


def without_queue(cases: Sequence[CallCase]) -> CallCase:
    """The best that a congestion control alone can do, on the link as it is."""
    return max((case for case in cases if case.remedy is None), key=lambda case: case.score.value)


SHAPED = 0.95
"""Share of the link's rate to which the router shapes."""
MODEM_BUFFER = "256KiB"
"""A modem's buffer of the way up where nobody says: the most frequent one that Netalyzr found behind cable (Kreibich et al., IMC 2010)."""
DURATION = "20s"
"""How long a call is."""
AS_IT_IS = "as it is"
"""Name of the link without a queue in the router."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A queue that the router shapes the way up with."""

    name: str
    """tc's name of the queue."""
    shapes_itself: bool = False
    """Whether it has a rate of its own, as CAKE has; another one is below HTB."""

    def words(self, rate_bps: int) -> str:
        """tc's words of the hop."""
        rate = units.format_rate(rate_bps)
        return f"{self.name} bandwidth {rate}" if self.shapes_itself else f"htb rate {rate} ceil {rate}; {self.name}"


REMEDIES = (Remedy("fq_codel"), Remedy("cake", shapes_itself=True), Remedy("codel"), Remedy("pie"))
"""What a Linux router has. The first of those that are as good is recommended: fq_codel is in every kernel."""


def remedies(names: str | None) -> tuple[Remedy, ...]:
    """The queues of these names, `fq_codel,cake`; all without any."""
    if names is None:
        return REMEDIES
    known = {remedy.name: remedy for remedy in REMEDIES}
    wanted = [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        refuse("queue", f"{shown(unknown[0])} is no queue that a router is advised to have", f"choose among {', '.join(known)}")
    return tuple(known[name] for name in wanted)


@dataclass(frozen=True, slots=True)
class HomeLink:
    """A link as its provider sells it, rates in bit/s, and what is on it."""

    down_bps: int
    up_bps: int
    rtt_ns: int
    """Round trip to where the call and the uploads go, without queues."""
    buffer: int
    """The modem's buffer of the way up, bytes; down it has as many milliseconds."""
    uploads: int = 1
    """Uploads at the same time."""
    duration_ns: int = 20 * units.NS_PER_S
    kernel: str | None = None
    is_assumed: bool = False
    """Whether the buffer is assumed."""

    @classmethod
    def of(cls, words: Mapping[str, str | None], uploads: int = 1) -> HomeLink:
        """A link in a user's words: `rate`, `upload` and `rtt`, and where they are there `buffer`, `duration` and `kernel`.

        :raises ScenarioError: one line for what is missing or wrong.
        """
        if uploads < 1:
            refuse("flows", f"{uploads} uploads: the question is what they do to a call", "write 1 or more, or leave it out")
        for name, example in (("rate", "20mbit"), ("upload", "5mbit"), ("rtt", "30ms")):
            if not words.get(name):
                refuse(name, "an answer about calls needs the link's rates both ways and its RTT", f"write for example --{name} {example}")
        return cls(
            units.parse_rate(str(words["rate"]), "rate"),
            units.parse_rate(str(words["upload"]), "upload"),
            units.parse_time(str(words["rtt"]), "rtt"),
            units.parse_size(words.get("buffer") or MODEM_BUFFER, "buffer"),
            uploads,
            units.parse_time(words.get("duration") or DURATION, "duration"),
            words.get("kernel"),
            not words.get("buffer"),
        )

    @property
    def buffer_ms(self) -> float:
        """How long the modem's full buffer takes, ms."""
        return self.buffer * 8e3 / self.up_bps

    def scenario(self, cca: str | None, remedy: Remedy | None = None, share: float = SHAPED) -> Scenario:
        """The link with a call both ways, uploads under `cca` (None: no uploads) and the router's queue (None: none).

        :param share: share of the rate to which that queue is shaped.
        """
        delay = {"at": "router", "delay": units.format_time(self.rtt_ns // 2)}
        router = [remedy.words(int(share * self.up_bps))] if remedy else []
        down = max(self.buffer, round(self.buffer * self.down_bps / self.up_bps))
        return Scenario.of(
            {
                "name": "calls",
                "forward": [delay],
                "bottleneck": {"rate": units.format_rate(self.down_bps), "buffer": f"{down}B"},
                "reverse": [delay, *router, {"rate": units.format_rate(self.up_bps), "buffer": f"{self.buffer}B"}],
                "flows": [] if cca is None else [{"cca": cca, "count": self.uploads, "direction": "up"}],
                "probes": [{"preset": "voice", "name": "call-down"}, {"preset": "voice", "name": "call-up", "direction": "up"}],
                "duration": units.format_time(self.duration_ns),
                **({"kernel": self.kernel} if self.kernel else {}),
            }
        )

    def with_loaded_rtt(self, loaded_ns: int) -> HomeLink:
        """The link with the buffer that makes a round trip as long as it was during an upload.

        :raises ScenarioError: one line, where it was no longer than without one.
        """
        waited = loaded_ns - self.rtt_ns
        if waited < units.NS_PER_S // 1000:
            times = f"{units.brief_time(loaded_ns)} during the upload is no longer than --rtt {units.brief_time(self.rtt_ns)}"
            refuse("from", f"{times}: no queue was full", "ping while an upload runs, and give the RTT without one as --rtt")
        return replace(self, is_assumed=False, buffer=max(FULL_FRAME, waited * self.up_bps // (8 * units.NS_PER_S)))

    def cases(self, ccas: Sequence[str], remedies: Sequence[Remedy]) -> list[tuple[str, Remedy | None]]:
        """Every congestion control of the uploads on the link as it is, then behind each queue."""
        return [(cca, remedy) for remedy in (None, *remedies) for cca in ccas]


SEEDS = "5"
"""Trials of each case."""


@dataclass
class CallAdviser:
    """Runs the trials, each once, under the same seeds."""

    link: HomeLink
    ccas: Sequence[str]
    runner: Runner
    seeds: str = SEEDS
    remedies: Sequence[Remedy] = REMEDIES
    tell: Tell = untold
    router: Router = USUAL
    measured_ms: float | None = None

    def advise(self) -> CallAdvice:
        """Runs every case and chooses among them."""
        seeds = parse_seeds(self.seeds)
        pairs = self.link.cases(self.ccas, self.remedies)
        self.tell("calls", "")
        quiet, *runs = self.runner.run_all([(self.link.scenario(None), seeds), *((self.link.scenario(cca, remedy), seeds) for cca, remedy in pairs)])
        cases = [case_of(cca, remedy, trials) for (cca, remedy), trials in zip(pairs, runs, strict=True)]
        caveats = tuple(sorted({c for trials in (quiet, *runs) for t in trials for c in t.caveats}))
        engine = f"{quiet[0].engine}" if quiet else self.runner.engine.spec
        choice = choose(cases)
        margins = self._margins(choice, seeds)
        quiet_case = case_of("", None, quiet)
        return CallAdvice(self.link, quiet_case, tuple(cases), choice, len(seeds), engine, caveats, self.router, margins, self.measured_ms)

    def _margins(self, choice: CallCase, seeds: Sequence[int]) -> tuple[Margin, ...]:
        """The recommended queue at each share of the rate."""
        if choice.remedy is None:
            return ()
        self.tell("shares", choice.queue)
        runs = self.runner.run_all([(self.link.scenario(choice.cca, choice.remedy, share), seeds) for share in SHARES])
        cases = [case_of(choice.cca, choice.remedy, trials) for trials in runs]
        return tuple(Margin(share, case.score, case.upload) for share, case in zip(SHARES, cases, strict=True))


def case_of(cca: str, remedy: Remedy | None, trials: Sequence[Trial]) -> CallCase:
    """What the trials of one case say."""
    score = metrics.find("voice_mos").of
    return CallCase(
        cca,
        remedy,
        score=stats.mean([score(t) for t in trials], "1"),
        delay=stats.mean([_up(t).delay_ms.p95 or float("nan") for t in trials], "ms"),
        lost=stats.mean([max(p.loss for p in t.probes) for t in trials], "1"),
        upload=stats.mean([sum(f.goodput_mbps for f in t.flows) for t in trials], "Mbit/s"),
    )


def _up(trial: Trial) -> ProbeResult:
    """The call's way up."""
    return next(p for p in trial.probes if p.direction == "up")
