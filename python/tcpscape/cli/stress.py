"""`tcpscape stress`: the worst cell for a congestion control, searched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import EXIT_INTERRUPTED, instead, refuse

if TYPE_CHECKING:
    from tcpscape.findings.stress import GoalName, Search
    from tcpscape.words.stress import StressDocument


@command(examples=("stress bbr --goal loss", "stress vegas --goal starve --trials 48 --no-proof"))
def stress(
    control: Annotated[str, Argument("The congestion control.", metavar="CONTROL", complete="cca")],
    *,
    goal: Annotated[str, Option("What is searched: starve, stall, loss or delay.", complete="starve|stall|loss|delay")] = "stall",
    against: Annotated[str | None, Option("Control to be worse than on the same path; of starve, the other flow's.", complete="cca")] = None,
    trials: Annotated[int, Option("Trials that the search may take.", least=48, most=1_000_000)] = 300,
    time: Annotated[str, Option("Longest time of the search; what is found by then is shown.")] = "1min",
    seed: Annotated[int, Option("Seed of the search.", least=0)] = 1,
    jobs: options.Jobs = 0,
    no_proof: Annotated[bool, Option("Leave out the trials on a kernel in virtual time.")] = False,
    as_json: Annotated[bool, options.json_output("One JSON document")] = False,
    out: Annotated[Path | None, Option("Keep worst.yaml, its figure and stress.json in this directory.", complete="directory")] = None,
    output: options.ScreenOptions,
) -> int | None:
    """Search paths, schedules and cross traffic for the cell where a congestion control does worst, and make it as simple as it may be.

    Ctrl-C ends the search and shows the worst so far. The same seed finds the same, unless the time runs out.
    """
    from tcpscape import units
    from tcpscape.controls import spelling
    from tcpscape.engines import REGISTRY
    from tcpscape.engines.model import Model
    from tcpscape.findings import stress as searching
    from tcpscape.words import stress as answer

    if goal not in searching.KINDS:
        refuse("goal", f"{goal!r} is unknown", instead(goal, searching.GOALS))
    label = spelling.label(control, "control")
    kind = searching.KINDS[cast("GoalName", goal)]
    other = spelling.label(against, "against") if against else searching.reference(kind.name, label)
    seconds, complete = units.parse_time(time, "time") / units.NS_PER_S, True
    with ProgressLine("stress") as progress:
        search = searching.Search(Model(), label, kind, other, seed, trials, seconds, jobs or os.cpu_count() or 1, progress=progress.update)
        try:
            search.run()
            for place, finding in enumerate(search.findings if not no_proof else ()):
                search.findings[place] = searching.prove(search, finding, REGISTRY["virtual"]())
        except KeyboardInterrupt:
            complete = False
            search.keep()
    is_whole = complete and not search.was_cut
    document = answer.document(search, complete=is_whole)
    files = _keep(out, search, document) if out and search.findings else []
    if as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        next_ = [f"tcpscape run {files[0]} --seeds 10" if files else "add --out DIR to keep the worst cell as a scenario, with a figure"]
        kept = f"kept in {out}: {', '.join(file.name for file in files)}" if files else ""
        terminal.show(answer.screen(search, kept, next_, complete=is_whole), output)
    return None if complete else EXIT_INTERRUPTED


def _keep(out: Path, search: Search, document: StressDocument) -> list[Path]:
    """Writes the worst cell as a scenario, the document, and a figure of the worst cell over time."""
    from tcpscape import plots, writing
    from tcpscape.api import trials
    from tcpscape.scenario import files

    out.mkdir(parents=True, exist_ok=True)
    worst = search.findings[0].scenario
    kept = [writing.whole(out / "worst.yaml", files.dump(worst)), writing.whole(out / "stress.json", json.dumps(document, indent=1) + "\n")]
    outcome = trials.run(worst, seeds=1, samples="100ms")
    return [*kept, *plots.save(plots.draw(outcome, "series"), out / "worst")]
