"""Functions with the options of the command line as keyword arguments, each declared once, and described in their help."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from tcpscape.scenario.vocabulary import About, described

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


def declares(fields: type | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
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
