"""Calling what a user wrote, so that it can neither end the process nor hold it up, nor change what the rest of it relies on.

- Whatever it raises, `SystemExit` and `KeyboardInterrupt` too, is a failure of it (:func:`is_interrupt` tells Ctrl-C apart).
- A call may take :func:`patience` seconds, all calls of a trial ten seconds and twenty for each simulated second. Then an exception is raised in it.
  Where it does not come back, because it waits or loops in C, the command line ends the process with one line; in Python nothing more can be
  done (:data:`owns_process`).
- On the command line, what it prints goes to stderr, so that stdout is the command's, and the directory, the locale, the streams and the limits of
  the interpreter are set back after it. In Python the process is the user's own.

What cannot be caught: `os._exit`, a signal that it sends to itself, a crash of a C extension.
"""

from __future__ import annotations

import contextlib
import locale
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from tcpscape.errors import refuse

if TYPE_CHECKING:
    from types import TracebackType

    from tcpscape._core import Watch

T = TypeVar("T")

PATIENCE = "TCPSCAPE_HOOK_PATIENCE"
"""Environment variable: seconds that a call may take; 0 is without end, for a debugger."""
PATIENCE_S = 5.0
"""Without that variable, s."""
TRIAL_CALLS, SECOND_CALLS = 2, 4
"""All calls of a trial together may take so many times a call's, and so many times for each simulated second."""

owns_process = False
"""Whether the process is the command line's, which sets this."""
environment: Mapping[str, str] = os.environ
"""The environment of programs that a user has run: as the command line was given it, before it settles its own."""


class TookTooLong(BaseException):
    """Raised in a call of user code whose time is over."""


def patience() -> float:
    """Seconds that a call may take, perhaps infinitely many. :raises ScenarioError: the environment variable is no number of seconds."""
    text = os.environ.get(PATIENCE, "")
    try:
        seconds = float(text or PATIENCE_S)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        refuse(PATIENCE, f"{text!r} is not a number of seconds", "write for example 60, or 0 for no limit")
    return seconds or math.inf


def trial_patience(duration_s: float) -> float:
    """Seconds that all calls of a trial of so much simulated time may take."""
    return patience() * (TRIAL_CALLS + SECOND_CALLS * duration_s)


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is Ctrl-C, or a signal that ends the command, not something that user code raised."""
    if not issubclass(type(error), KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    return type(error) is not KeyboardInterrupt or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def text(error: BaseException) -> str:
    """An exception in words: its class and message, of one that took too long what to do."""
    if type(error) is TookTooLong:
        return f"a call took more than {patience():g} s, or the calls of the trial together more than their share ({PATIENCE} allows more)"
    try:
        message = str(error)
    except BaseException:
        message = "(it has no message)"
    return " ".join(f"{class_name(error)}: {message}".split())


def class_name(error: BaseException) -> str:
    """The name of an exception's class, whatever its metaclass says."""
    name: str = vars(type)["__name__"].__get__(type(error))
    return name


def class_module(error: BaseException) -> object:
    """The module that an exception's class says it comes from, whatever its metaclass says."""
    return vars(type)["__module__"].__get__(type(error))


def traceback_of(error: BaseException) -> TracebackType | None:
    """Where an exception was raised, whatever its class says."""
    begin: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return begin


@contextlib.contextmanager
def watched(start: Callable[[Callable[[], None], str | None], Watch | None], what: str) -> Iterator[Watch | None]:
    """Watches the time of calls that this thread makes. `start` is given what interrupts the thread, and what to say where that does not help."""
    thread, lock, is_over = threading.get_ident(), threading.Lock(), False

    def interrupt() -> None:
        with lock:
            if not is_over:
                _raise_in(thread, TookTooLong)

    words = f"error: cca: {what} does not come back; correct it, or allow more with {PATIENCE} (seconds, 0 for no limit)"
    watch = start(interrupt, words if owns_process else None)
    try:
        yield watch
    finally:
        with lock:
            is_over = True
            _raise_in(thread, None)
        if watch:
            watch.close()


def call(function: Callable[[], T], what: str) -> T:
    """Calls user code that is no hook, undisturbed and watched."""
    try:
        from tcpscape._core import Watch as CompiledWatch
    except ImportError:
        return function()
    with undisturbed(), watched(lambda interrupt, words: CompiledWatch(patience(), interrupt, words), what) as watch:
        result: T = watch.call(function) if watch else function()
        return result


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Sets back what user code may have changed, where the process is ours; what it prints goes to stderr."""
    if not owns_process:
        yield
        return
    streams, recursion, interval = (sys.stdout, sys.stderr, sys.stdin), sys.getrecursionlimit(), sys.getswitchinterval()
    place, words = _directory(), locale.setlocale(locale.LC_ALL)
    sys.stdout = sys.stderr = _Aside(streams[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.stdin = streams
        sys.setswitchinterval(interval)
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(recursion)
        if place is not None and _directory() != place:
            with contextlib.suppress(OSError):
                os.chdir(place)
        if locale.setlocale(locale.LC_ALL) != words:
            locale.setlocale(locale.LC_ALL, words)


class _Aside:
    """stderr for user code: it can be written to, and closing it does nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Nothing."""


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raises an exception in a thread, as soon as it executes Python; None takes one back that it has not met yet."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)
