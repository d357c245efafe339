"""`tcpscape validate`: the same conditions on two engines, and how far they are apart."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.campaign.execute import TrialsDone as Update
    from tcpscape.validate.validation import ValidationOptions

DEFAULT_OUT = Path("out/validate")
WORST = 5
"""Conditions that are looked into where --worst is not given."""
MISSED = 1
"""Exit status where a bound of --check is missed."""


@dataclass(frozen=True)
class ConditionOptions:
    """What is validated: two engines, and the conditions they run."""

    engine: Annotated[
        tuple[str, ...], Option("Twice, A and B: model, model:6.12, virtual:NAME, live.  [default: model, virtual]", complete="side")
    ] = ()
    conditions: Annotated[str | None, Option("A .csv, or a .yaml or .toml list of scenarios.", complete="file")] = None
    random: Annotated[int | None, Option("Draw so many conditions, evenly over families and congestion controls.")] = None
    shared: Annotated[int | None, Option("Draw so many bottlenecks shared by two groups of flows, evenly over queues.")] = None
    topology: Annotated[int | None, Option("Draw so many chains of 1 to 3 links with groups of own RTTs, both ways, and a ping.")] = None
    exact: Annotated[bool, Option("Compare deterministic paths, or those of --conditions, segment by segment.")] = False
    impaired: Annotated[bool, Option("With --exact: paths with loss, jitter, copies; A replays what B's netem did.")] = False
    n: Annotated[int | None, Option("Paths that --exact draws.  [default: 24]")] = None
    seed: Annotated[int, Option("Of --random, --shared, --topology and --exact.", least=0)] = 0
    cca: Annotated[str | None, Option("Congestion controls to draw or keep: cubic,bbr; all: those that both engines have.", complete="ccas")] = None
    paired: Annotated[bool, Option("Run each path under every one of --cca, and compare the ranks.")] = False
    against: Annotated[str | None, Option("Recorded results as B: STEM of STEM_results.csv, or a directory of validate.")] = None


@dataclass(frozen=True)
class RepetitionOptions:
    """How often each condition runs."""

    seeds: Annotated[str | None, Option("Runs of each condition: 3, or 20/3 for A and B.  [default: 3]")] = None
    precision: Annotated[float | None, Option("More seeds until the ln ratio's interval is ± this: 0.05.")] = None
    most_seeds: Annotated[int | None, Option("Most runs of a condition on a side, with --precision.  [default: 24]", least=1, most=10_000)] = None


@dataclass(frozen=True)
class AnswerOptions:
    """What is printed, checked and kept."""

    worst: Annotated[int | None, Option("Look into so many of the worst conditions: traces, parting, overlay.  [default: 5]", least=0, most=1000)] = (
        None
    )
    explain: Annotated[str | None, Option("Look into this condition of the validation in --out, and do nothing else.")] = None
    check: Annotated[str | None, Option("Bounds; status 1 where one is missed: median<=0.04,p90<=0.2,p90@each<=0.3.")] = None
    out: Annotated[Path, Option("Directory of the report; what is there already is not run again.", complete="directory")] = DEFAULT_OUT
    as_json: Annotated[bool, options.json_output("With --exact one JSON document, without it that of summary.json,")] = False


@command(examples=("validate --random 60 --cca cubic,bbr", "validate --exact --n 6 --engine model --engine model:6.12"))
def validate(
    conditions: ConditionOptions, repetition: RepetitionOptions, answer: AnswerOptions, output: options.ScreenOptions, jobs: options.Jobs = 0
) -> int:
    """Run the same conditions on two engines and report the divergence."""
    from tcpscape.report import validation as pages
    from tcpscape.validate import compare, validation
    from tcpscape.words import divergence
    from tcpscape.words import validation as screens

    if conditions.exact or conditions.impaired or conditions.n is not None:
        return _exact(conditions, repetition, answer, output, jobs)
    out, explain = answer.out, answer.explain
    if answer.as_json and explain:
        refuse("json", "an explanation is a page and no document", "leave out --json or --explain")
    request = _request(conditions, out, jobs, **_given(repetition))
    bounds = compare.read_bounds(answer.check) if answer.check else []
    with terminal.resumable_in(out), ProgressLine("validate", is_open=True) as progress:

        def say(what: str) -> Update:
            progress.say(what)
            return progress.update

        if explain:
            result = validation.look_into(validation.resume(out, explain, request), explain, say)
            page = pages.write_explanation(result, out)
        else:
            result = validation.complete(validation.prepare(request), bounds, WORST if answer.worst is None else answer.worst, out, say)
            page = pages.write(result, out)
    screen = screens.explanation_screen(result.explanations[0]) if explain else screens.validation_screen(result)
    files = () if explain else (validation.NUMBERS, validation.RESULTS, pages.PICTURE)
    kept = f"kept in {out}: {', '.join([*files, *page.pictures.values()])}"
    if answer.as_json:
        print(json.dumps(divergence.document(result), allow_nan=False))
    else:
        terminal.show(replace(screen, kept=kept, next=[terminal.to_open(page.file)]), output)
    return 0 if all(c.met for c in result.checked) else MISSED


def _given(options: RepetitionOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if value is not None}


def _request(conditions: ConditionOptions, out: Path, jobs: int, **more: Any) -> ValidationOptions:
    from tcpscape.validate import validation

    said = asdict(conditions) | more | {"cca": tuple(options.ccas(conditions.cca))}
    return validation.ValidationOptions(out, jobs=jobs, **said)


def _exact(conditions: ConditionOptions, repetition: RepetitionOptions, answer: AnswerOptions, output: options.ScreenOptions, jobs: int) -> int:
    """`validate --exact`: the same conditions segment by segment."""
    from tcpscape.validate import exact, validation
    from tcpscape.words import exact as words

    for name in (*_given(repetition), *(name for name in ("explain", "worst") if getattr(answer, name) is not None)):
        refuse(name, "--exact runs each condition once and names its first difference", "leave one of the two out")
    request = _request(conditions, answer.out, jobs)
    bounds = exact.read_bounds(answer.check) if answer.check else []
    with terminal.resumable_in(answer.out), ProgressLine("validate", is_open=True) as progress:

        def say(what: str) -> Update:
            progress.say(what)
            return progress.update

        session = validation.prepare(request)
        validation.keep_conditions(answer.out, session.plan.conditions)
        result = exact.run(session, bounds, answer.out, say)
    if answer.as_json:
        print(json.dumps(words.document(result), allow_nan=False))
    else:
        kept = f"kept in {answer.out}: {exact.RESULTS}, {validation.CONDITIONS}"
        terminal.show(replace(words.exact_screen(result), kept=kept), output)
    return 0 if all(c.met for c in result.checked) else MISSED
