"""The explorer's work: the order in which trials run, their end, and what is kept of them."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref

import pytest

from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.trial import Capture
from tcpscape.web import pool as working
from tcpscape.web.pages import Page, Pages
from tcpscape.web.pool import FIRST, LAST, SOON, Batch, Cache, Cancelled, Job, Pool, Work, key_of, pickled, size_of
from tcpscape.web.questions import KINDS
from tcpscape.web.state import State
from tcpscape.web.stream import EventStream, Outbox

LONG = {"rate": "1gbit", "duration": "600s"}
"""A trial of half a minute of a core."""


@pytest.fixture
def pool():
    made = Pool(1)
    yield made
    made.close()


def scenario(**fields):
    return State(**{"rate": "5mbit", "duration": "200ms", **fields}).scenario("cubic")


def held(pool):
    """A pool whose thread waits, and what lets it go."""
    begun, go = threading.Event(), threading.Event()
    pool.submit(FIRST, lambda: (begun.set(), go.wait(PATIENCE_S)))
    assert begun.wait(PATIENCE_S)
    return go


def until(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def ended(thread):
    thread.join(PATIENCE_S)
    return not thread.is_alive()


def drain(pool):
    done = threading.Event()
    pool.submit(LAST + 1, done.set)
    assert done.wait(PATIENCE_S)


def test_the_most_urgent_runs_first_and_equally_urgent_in_their_order(pool):
    go, ran = held(pool), []
    for name, urgency in (("map", LAST), ("curve", SOON), ("here", FIRST), ("here too", FIRST)):
        batch = Batch()
        pool.submit(urgency, lambda name=name: ran.append(name), batch)
    go.set()
    drain(pool)
    assert ran == ["here", "here too", "curve", "map"]


def test_pages_take_turns_and_within_a_page_its_questions(pool):
    go, ran = held(pool), []
    batches = {name: Batch(name[0]) for name in ("a1", "a2", "b")}
    for name, batch in batches.items():
        for _ in range(3):
            pool.submit(SOON, lambda name=name: ran.append(name), batch)
    assert pool.waiting == 9
    go.set()
    drain(pool)
    assert ran[:6] == ["a1", "b", "a2", "b", "a1", "b"]
    assert sorted(ran) == ["a1"] * 3 + ["a2"] * 3 + ["b"] * 3


def test_what_nobody_wants_leaves_the_queue(pool):
    go, ran = held(pool), []
    wanted, stale = Batch("page"), Batch("page")
    for batch in (stale, wanted, stale):
        pool.submit(SOON, lambda batch=batch: ran.append(batch), batch)
    pool.drop(stale)
    assert pool.waiting == 1
    go.set()
    drain(pool)
    assert ran == [wanted]


def test_trials_are_those_of_the_engine(pool):
    jobs = [Job(scenario(), seed) for seed in (3, 1, 3)]
    got = dict(Work(pool, lambda block: None).trials(jobs))
    assert [got[place].seed for place in range(3)] == [3, 1, 3]
    assert [got[place] for place in range(2)] == engines.make("model").run(scenario(), [3, 1])


class Counting(Engine):
    """The mock engine, which counts its trials."""

    name, about, version, repeatable = "counting", "", "1", True

    def __init__(self):
        self.inner, self.runs = engines.make("mock"), []

    def check(self, scenario):
        pass

    def run(self, scenario, seeds, *, threads=1, capture=Capture()):
        self.runs += seeds
        return self.inner.run(scenario, seeds, capture=capture)


def test_a_trial_that_ran_does_not_run_again(pool):
    engine, work = Counting(), Work(pool, lambda block: None)
    first = dict(work.trials([Job(scenario(), 1), Job(scenario(), 2)], engine))
    again = dict(work.trials([Job(scenario(), 2), Job(scenario(rtt="80ms"), 2), Job(scenario(), 1)], engine))
    assert engine.runs == [1, 2, 2]
    assert again[0] == first[1]
    assert again[2] == first[0]
    list(work.trials([Job(scenario(), 1, capture=Capture(samples_ns=10**7))], engine))
    assert engine.runs == [1, 2, 2, 1], "what is recorded is part of what a trial is"
    engine.repeatable = False
    list(work.trials([Job(scenario(), 1)], engine))
    assert engine.runs == [1, 2, 2, 1, 1], "a trial that comes out otherwise next time is not kept"
    assert len(pool.trials) == 4


def is_same(found, trial):
    """Whether two trials are the same, with their samples, which equality leaves out."""
    return found == trial and found.samples.equals(trial.samples)


def test_thousands_of_trials_are_kept_in_a_few_megabytes():
    """With their reports of queues, which are 11 kB as objects; an hour of a moving slider is 300,000 trials."""
    trial = engines.make("model").run(scenario(jitter="2ms"), [1])[0]
    cache = Cache()
    for place in range(10_000):
        cache.keep(place, trial)
    assert cache.size <= working.MOST <= 9 << 20
    assert len(cache) > 5000
    assert cache.find(9_999) == trial


def test_the_cache_keeps_what_was_used_last_within_its_bound():
    engine = engines.make("mock")
    ran = {seed: engine.run(scenario(), [seed], capture=Capture(samples_ns=10**6 * (1 + seed % 2)))[0] for seed in range(8)}
    sizes = {seed: size_of(pickled(trial)) for seed, trial in ran.items()}
    cache = Cache(sum(sizes.values()) - 1)
    for seed, trial in ran.items():
        cache.keep(seed, trial)
        if seed == 6:
            assert is_same(cache.find(0), ran[0])
    assert cache.find(1) is None, "the one that was not used for longest"
    assert all(is_same(cache.find(seed), ran[seed]) for seed in (0, *range(2, 8)))
    assert cache.size == sum(sizes[seed] for seed in (0, *range(2, 8)))
    Cache(most=10).keep("large", ran[0])
    small = Cache(most=10)
    small.keep("large", ran[0])
    assert len(small) == small.size == 0


def test_what_the_cache_has_no_room_for_is_not_pickled(monkeypatch):
    trial = engines.make("mock").run(scenario(), [1], capture=Capture(samples_ns=10**6))[0]
    monkeypatch.setattr(working, "pickled", None)
    cache = Cache(most=trial.samples.estimated_size() - 1)
    cache.keep("large", trial)
    assert len(cache) == 0


def test_names_and_recordings_are_part_of_a_trials_key():
    engine, plain = engines.make("mock"), scenario()
    named = plain.model_copy(update={"name": "other"})
    assert engine.address(plain, 1) == engine.address(named, 1)
    keys = {key_of(engine, s, seed, capture) for s in (plain, named) for seed in (1, 2) for capture in (Capture(), Capture(packets=True))}
    assert len(keys) == 8


def test_a_cancelled_question_ends_in_the_middle_of_a_trial(pool):
    work = Work(pool, lambda block: None)
    outcome, running = [], threading.Event()

    class Watched(working._Once):
        def run(self, *args, **options):
            running.set()
            return super().run(*args, **options)

    def question():
        try:
            outcome.append(list(work.trials([Job(State(**LONG).scenario("cubic"), 1)], Watched())))
        except Cancelled:
            outcome.append("cancelled")

    thread = threading.Thread(target=question)
    thread.start()
    assert running.wait(PATIENCE_S)
    work.cancel()
    assert ended(thread)
    assert outcome == ["cancelled"]
    drain(pool)  # the thread of the pool is free, long before the trial would have ended
    with pytest.raises(Cancelled):
        next(work.trials([Job(scenario(), 1)]))


def test_cancelling_empties_the_queue_and_leaves_other_questions_alone(pool):
    go, first, second = held(pool), Work(pool, lambda block: None), Work(pool, lambda block: None)
    outcomes = {}

    def question(name, work, jobs):
        try:
            outcomes[name] = len(list(work.trials(jobs)))
        except Cancelled:
            outcomes[name] = "cancelled"

    threads = [
        threading.Thread(target=question, args=args)
        for args in (
            ("stale", first, [Job(scenario(rtt=f"{n}ms"), 1) for n in range(1, 300)]),
            ("wanted", second, [Job(scenario(), n) for n in range(3)]),
        )
    ]
    for thread in threads:
        thread.start()
    while pool.waiting < 302:
        assert all(thread.is_alive() for thread in threads)
    first.cancel()
    assert pool.waiting == 3
    assert ended(threads[0])
    go.set()
    assert ended(threads[1])
    assert outcomes == {"stale": "cancelled", "wanted": 3}


def test_questions_that_stop_listening_leave_nothing_behind(pool):
    work = Work(pool, lambda block: None)
    for _ in work.trials([Job(scenario(), seed) for seed in range(200)]):
        break
    assert pool.waiting == 0
    assert len(list(work.trials([Job(scenario(), 900)]))) == 1


def test_a_scenario_that_cannot_run_is_one_line_and_the_pool_lives(pool):
    work = Work(pool, lambda block: None)
    for fields, field in (({"rate": "100gbit", "duration": "1h"}, "duration"), ({"rtt": "0", "rate": ""}, None)):
        with pytest.raises(TcpscapeError) as refused:
            list(work.trials([Job(scenario(**fields), 1)]))
        assert field is None or str(refused.value).startswith(f"{field}: ")
        assert "; " in str(refused.value)
    crowd = scenario()
    crowd = crowd.model_copy(update={"flows": (crowd.flows[0].model_copy(update={"count": 100_000}),)})
    with pytest.raises(TcpscapeError, match="flows"):
        list(work.trials([Job(crowd, 1)]))
    with pytest.raises(TcpscapeError, match="seeds: the question is about 50001 trials"):
        next(work.trials([Job(scenario(), 1)] * 50_001))
    assert len(list(work.trials([Job(scenario(), 1)]))) == 1


def test_a_pool_that_is_closed_ends_what_runs_and_what_waits(pool):
    work, outcome, running = Work(pool, lambda block: None), [], threading.Event()

    def question():
        jobs = [Job(scenario(), 1), *(Job(State(**LONG).scenario("cubic"), seed) for seed in range(3))]
        try:
            for _ in work.trials(jobs):
                running.set()
        except Cancelled:
            outcome.append("cancelled")

    thread = threading.Thread(target=question)
    thread.start()
    assert running.wait(PATIENCE_S)
    pool.close(PATIENCE_S)
    assert not any(each.is_alive() for each in pool._threads)
    assert ended(thread)
    assert outcome == ["cancelled"]


def test_a_question_that_is_over_leaves_nothing_to_the_garbage_collector():
    """While a slider moves, two questions end every 50 ms: what only the collector finds stays for minutes."""
    pages = Pages()
    page, works = Page(pages), []
    gc.collect()
    gc.disable()
    try:
        for generation in range(4):
            page.ask(KINDS["answer"](seeds=2), generation, State(rtt=f"{20 + generation}ms", duration="200ms"))
            works.append(weakref.ref(page._asked["answer"][1]))
            if generation % 2:  # the others are stale before they are answered
                until(lambda: not pages.questions)
        until(lambda: [work() is None for work in works] == [True, True, True, False])
    finally:
        gc.enable()
        page.close()
        pages.pool.close()


def test_a_process_that_ends_during_a_trial_ends_quietly():
    code = """
import threading, time
import scipy.stats  # something to end
from tcpscape.web.state import State
from tcpscape.web.pool import Job, Pool, Work
pool, begun = Pool(), threading.Event()
pool.submit(0, begun.set)
work = Work(pool, print)
scenario = State(duration="2s").scenario("cubic")
threading.Thread(target=lambda: list(work.trials([Job(scenario, seed) for seed in range(5000)])), daemon=True).start()
while not len(pool.trials):
    time.sleep(0.001)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "FATAL" not in done.stderr


def test_a_stopped_model_ends_and_can_run_again():
    engine, outcome = engines.make("model"), []
    begun = threading.Event()

    def run():
        begun.set()
        try:
            engine.run(State(**LONG).scenario("cubic"), [1])
        except TcpscapeError as e:
            outcome.append(str(e))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(PATIENCE_S)
    for _ in range(int(PATIENCE_S) * 20):  # until the trial has begun
        engine.stop()
        thread.join(0.05)
        if not thread.is_alive():
            break
    assert outcome == ["engine: the trial was interrupted; run it again"]
    assert engine.run(scenario(), [1]) == engines.make("model").run(scenario(), [1])


# A page's outbox: order, room, and what a newer question makes stale; and what the server imports before the page is there.


LATER = ("matplotlib", "scipy", "polars", "rich", "jinja2", "tcpscape.findings.diagnosis", "tcpscape.plots", "tcpscape.report")
"""What computes or draws; none of it is needed before the page is there."""


def put(outbox, data, kind="curve", generation=1, *, wanted=lambda: True):
    outbox.put(kind, generation, data, wanted)


def test_events_are_taken_in_order_and_once():
    outbox = Outbox()
    for data in (b"a", b"b", b"c"):
        put(outbox, data, kind=data.decode())
    assert outbox.size == 3
    assert (outbox.take(), outbox.take(), outbox.size) == (b"abc", b"", 0)


def test_what_is_stale_is_dropped():
    outbox = Outbox()
    put(outbox, b"old", generation=1)
    put(outbox, b"other", kind="map", generation=1)
    put(outbox, b"new", generation=2)
    outbox.drop("curve", 2)
    put(outbox, b"nobody's", wanted=lambda: False)
    assert outbox.take() == b"othernew"


@pytest.mark.parametrize("end", ["taken", "stale", "dropped", "closed"])
def test_a_question_waits_for_room(end):
    outbox, wanted = Outbox(most=10), threading.Event()
    wanted.set()
    put(outbox, b"x" * 20)  # one block may be larger than the room
    done = threading.Event()
    thread = threading.Thread(target=lambda: (put(outbox, b"y", generation=2, wanted=wanted.is_set), done.set()))
    thread.start()
    assert not done.wait(0.2)
    assert outbox.size == 20
    {"taken": outbox.take, "stale": wanted.clear, "dropped": lambda: outbox.drop("curve", 2), "closed": outbox.close}[end]()
    assert done.wait(PATIENCE_S)
    thread.join()
    assert outbox.take() == {"taken": b"y", "stale": b"x" * 20, "dropped": b"y", "closed": b""}[end]


def test_whoever_reads_is_woken_and_the_one_before_leaves():
    outbox, woken = Outbox(), []

    def first():
        woken.append("first")

    def second():
        woken.append("second")

    put(outbox, b"before")
    outbox.attach(first)
    put(outbox, b"a")
    assert (woken, outbox.is_attached(first)) == (["first", "first"], True)
    outbox.attach(second)
    assert woken[2:] == ["first", "second"]
    outbox.detach(first)
    assert outbox.is_attached(second)
    put(outbox, b"b")
    assert woken[4:] == ["second"]
    outbox.detach(second)
    put(outbox, b"c")
    assert len(woken) == 5
    assert outbox.take() == b"beforeabc"


@pytest.mark.parametrize("end", ["taken over", "left"])
def test_a_stream_that_is_over_takes_nothing_from_the_next(end):
    async def run() -> tuple[list[bytes], bytes]:
        outbox, sent, is_open, leaves = Outbox(), [], asyncio.Event(), asyncio.Event()

        async def receive():
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message.get("body", b""))

        stream = asyncio.create_task(EventStream(outbox, is_open.set, lambda: None)({}, receive, send))
        await asyncio.wait_for(is_open.wait(), PATIENCE_S)
        await asyncio.sleep(0)
        if end == "left":
            leaves.set()
            await asyncio.sleep(0)
        put(outbox, b"a block")
        if end == "taken over":
            outbox.attach(lambda: None)
        await asyncio.wait_for(stream, PATIENCE_S)
        return sent, outbox.take()

    sent, left = asyncio.run(run())
    assert b"a block" not in sent
    assert left == b"a block"


def test_what_computes_is_not_imported_before_the_page_is_there():
    code = f"""
import sys
import tcpscape.cli.explore, tcpscape.web.serve
from tcpscape.web.routes import Application
app = Application()
assert "controls" in app.api.find("start").answer(app.pages)
print(*(name for name in {LATER!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout.split() == []
