"""A campaign that another process runs into a directory: what is there already, as the outcome that it will be, and how much is to come.

    follower = Follower(store)
    for one in follower.look():
        one.done, one.total, one.outcome

A writer announces its campaign before it runs (:meth:`tcpscape.store.results.Store.announce`), so that each trial in the store has its place in a
cell long before the manifest is written. Nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tcpscape.campaign.adaptive import repetition
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.engines.base import addresses_of
from tcpscape.errors import StoreError
from tcpscape.reading.documents import field_problem
from tcpscape.store.results import FILE, Store
from tcpscape.trial import Trial

MOST_TRIALS = 100_000
"""Most trials of a campaign that is followed."""


class _Plan(BaseModel):
    """What a writer announces."""

    model_config = ConfigDict(strict=True, extra="ignore")
    campaign: dict[str, Any]
    versions: dict[str, str]
    """Engine → its version."""


@dataclass(frozen=True)
class Unfinished:
    """A campaign of which some trials are there."""

    campaign: Campaign
    outcome: Outcome | None
    """Of the cells that have a trial; None before the first one."""
    done: int
    """Trials that are there."""
    total: int
    """Trials in all; where cells are repeated until they are precise, those that are certain."""
    is_running: bool
    """Whether its writer is still there."""


class Follower:
    """Looks at a store again and again; each trial is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Followed] = {}

    def look(self) -> list[Unfinished]:
        """The campaigns that are being run into the store, or were when their writer ended early.

        :raises StoreError: one line, where the store or a plan in it is damaged.
        """
        found = []
        for document, is_running in self._store.announced():
            key = repr(document)
            if key not in self._known:
                self._known[key] = _Followed(document, self._store)
            found.append(self._known[key].look(is_running))
        return found


class _Followed:
    """One campaign."""

    def __init__(self, document: Any, store: Store) -> None:
        try:
            plan = _Plan.model_validate(document)
        except ValidationError as e:
            raise StoreError(f"{store.root / FILE}: a plan in it is damaged ({field_problem(e)}); move the file away and run again") from None
        self._store, self._versions, self._trials = store, plan.versions, dict[str, Trial]()
        self._campaign = Campaign.of(plan.campaign)
        self._cases = self._campaign.cases()
        rule = repetition(self._campaign)
        self._seeds = range(rule.cap) if rule else parse_seeds(self._campaign.seeds)
        self._least = len(self._cases) * (rule.least if rule else len(self._seeds))
        if len(self._cases) * len(self._seeds) > MOST_TRIALS:
            self._seeds = self._seeds[: max(1, MOST_TRIALS // len(self._cases))]
        self._addresses = [self._of(case) for case in self._cases]

    def look(self, is_running: bool) -> Unfinished:
        """What is there now."""
        there = self._store.addresses()
        new = [address for group in self._addresses for address in group if address in there and address not in self._trials]
        self._trials |= self._store.load_many(new)
        done = len(self._trials)
        return Unfinished(self._campaign, self._outcome() if done else None, done, max(done, self._least), is_running)

    def _outcome(self) -> Outcome:
        """The outcome of the cells that have a trial."""
        runs = [[self._trials[address] for address in group if address in self._trials] for group in self._addresses]
        some = [(case, trials) for case, trials in zip(self._cases, runs, strict=True) if trials]
        return gather(self._campaign, [case for case, _ in some], [trials for _, trials in some], self._versions)

    def _of(self, case: Case) -> list[str]:
        return addresses_of(case.engine.partition(":")[0], self._versions.get(case.engine, ""), case.scenario, self._seeds)
