"""`tcpscape conform`: whether a congestion control does what the test cases of a document ask."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Annotated

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import EXIT_INTERRUPTED, instead, refuse


@command(examples=("conform bbr --case drain-by-inflight", "conform bbr bbr --case probe-rtt --rate 20mbit --rtt 40ms"))
def conform(
    suite: Annotated[
        str, Argument("Whose test cases are run: bbr (draft-ietf-ccwg-bbr), or a YAML file of your own.", metavar="DOCUMENT", complete="file")
    ],
    control: Annotated[str | None, Argument("The congestion control; without it, the document's own.", metavar="[CONTROL]", complete="cca")] = None,
    *,
    case: Annotated[str | None, Option("Cases to run, with commas between them; all without it.", metavar="NAME[,NAME…]")] = None,
    rate: Annotated[str | None, Option("Rates of the link, instead of a sample of the document's range.", metavar="RATES")] = None,
    rtt: Annotated[str | None, Option("Round-trip times, likewise.", metavar="TIMES")] = None,
    seed: Annotated[int, Option("Seed of every trial.", least=0)] = 1,
    jobs: options.Jobs = 0,
    check: Annotated[bool, Option("Exit status 1 unless every case that applies passes.")] = False,
    as_json: Annotated[bool, options.json_output("One JSON document")] = False,
    out: Annotated[Path | None, Option("Keep the JSON document in this file.", complete="file")] = None,
    output: options.ScreenOptions,
) -> int | None:
    """Run the test cases of a document about a congestion control, and say which it passes and where it first differs.

    Each case is a path, changes at events and conditions on the control's states and variables, in rates and RTTs over the document's range.
    """
    from tcpscape import units, writing
    from tcpscape.campaign import axes
    from tcpscape.controls import spelling
    from tcpscape.findings import conformance
    from tcpscape.words import conformance as answer

    cases = conformance.suite(suite)
    names = [name.strip() for name in case.split(",")] if case else list(cases.cases)
    if unknown := [name for name in names if name not in cases.cases]:
        refuse("case", f"no case {unknown[0]!r}", instead(unknown[0], cases.cases))
    rates = [units.parse_rate(text, "rate") for text in axes.levels(rate, "rate")] if rate else []
    rtts = [units.parse_time(text, "rtt") for text in axes.levels(rtt, "rtt")] if rtt else []
    label = spelling.label(control or cases.control, "control")
    work = {name: conformance.cells(cases, cases.cases[name], rates, rtts) for name in dict.fromkeys(names)}
    with ProgressLine("conform") as progress:
        run = conformance.run(label, cases, work, jobs=jobs or os.cpu_count() or 1, seed=seed, progress=progress.update)
        results, complete = [], True
        try:
            for result in run:
                results.append(result)
        except KeyboardInterrupt:
            complete = False
            run.close()
    document = answer.document(label, cases, results, complete=complete)
    if out:
        writing.whole(out, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        cell = [word for option, value in (("--rate", rate), ("--rtt", rtt)) if value for word in (option, value)]
        again = shlex.join(["tcpscape", "conform", suite, label, *cell, *(["--seed", str(seed)] if seed != 1 else [])])
        terminal.show(answer.screen(label, cases, results, again, complete=complete), output)
    if not complete:
        return EXIT_INTERRUPTED
    return 1 if check and any(r.verdict == "failed" for r in results) else None
