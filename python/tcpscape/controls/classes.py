"""Congestion controls that are Python classes: `path/to/mine.py:MyControl`, `module:MyControl`, or the class itself.

The name of a module's class begins with a capital letter, so that `cubic:hystart` remains a parameter without a value. Parameters follow as for
any other congestion control: `mine.py:MyControl:gain=2` is `MyControl(gain=2)`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from tcpscape.controls import spelling, usercode
from tcpscape.controls.hooks import Control
from tcpscape.errors import ScenarioError, TcpscapeError, refuse
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind

T = TypeVar("T")
Factory = Callable[[int], Any]
"""Makes the congestion control of a flow, from the flow's seed."""
CONTROL = Kind("a Python file", "write for example mine.py:MyControl")
_registered: dict[str, type[Any]] = {}
"""Classes that were given as objects, by their name."""
_modules: dict[tuple[str, int, int], ModuleType] = {}
"""Files that were imported, by path, time of modification and size."""
SYNTAX_ERRORS = (SyntaxError, IndentationError, TabError)
"""What the compiler raises; a class of a user's own that derives from them may answer with code of its own."""
MOST_FRAMES = 10_000
"""Calls inside each other that are looked at for the line of an error."""


@dataclass(frozen=True)
class PythonControl:
    """A Python class that is a congestion control, with parameters."""

    name: str
    """As the user wrote it."""
    cls: type[Any]
    params: Mapping[str, int | float]

    @property
    def file(self) -> str | None:
        """The file of its source; None where there is none (an interactive session)."""
        return _inspected(functools.partial(_source_file, self.cls), self.name)

    def digest(self) -> str:
        """A digest of the class's file, so that an edit changes the content addresses of its trials. Modules that the file imports do not count."""
        return hashlib.sha256(_inspected(functools.partial(_source, self.cls), self.name)).hexdigest()[:12]

    def factory(self) -> Factory:
        """The function that the engine calls for each flow."""
        takes_seed = "seed" in _inspected(functools.partial(_parameters, self.cls), self.name)

        def make(seed: int) -> Any:
            return self.cls(**({"seed": seed} if takes_seed else {}), **self.params)

        return make


def register(cls: type[Any]) -> str:
    """The name under which a class object can be used as a congestion control in this process; another class of that name gets a number."""
    plain = _inspected(functools.partial(_own_name, cls), "a class")
    name = next(n for i in itertools.count(1) if _registered.get(n := plain if i == 1 else f"{plain}_{i}", cls) is cls)
    _registered[name] = cls
    return name


def find(name: str) -> PythonControl:
    """The class that a name stands for. :raises ScenarioError: the file, the class or a parameter is wrong."""
    plain, values = spelling.split(name)
    params = {key: _number(value, key) for key, value in values.items()}
    if plain in _registered:
        return PythonControl(name, _registered[plain], params)
    place, _, class_name = plain.rpartition(":")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    return PythonControl(name, _inspected(functools.partial(_class_in, module, place, class_name), name), params)


def failure(name: str, hook: str, error: BaseException) -> ScenarioError:
    """The one-line error for an exception that a hook raised: the hook, the line of the user's file, the exception."""
    control = find(name)
    frames = _frames(error)
    own_frames = [f for f in frames if f.filename == control.file] or frames
    where = f"{Path(own_frames[-1].filename).name} line {own_frames[-1].lineno}" if own_frames else _definition(control, hook)
    return ScenarioError(f"cca: {name}: {hook}, {where}: {usercode.text(error)}; correct that line")


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Where an exception was raised, the place itself last; of an endless recursion its first calls."""
    return list(traceback.StackSummary.extract(itertools.islice(traceback.walk_tb(usercode.traceback_of(error)), MOST_FRAMES), lookup_lines=False))


def _definition(control: PythonControl, hook: str) -> str:
    """File and first line of a hook, for an error that no line of it raised."""
    f = _inspected(functools.partial(getattr, control.cls, hook, None), control.name)
    return f"{Path(f.__code__.co_filename).name} line {f.__code__.co_firstlineno}" if isinstance(f, FunctionType) else control.name


def _number(text: str, key: str) -> int | float:
    """The value of a parameter."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        refuse(f"cca.{key}", f"{text!r} is no number", "write a plain number; its unit is the class's own")


def _inspected(look: Callable[[], T], name: str) -> T:
    """What a look at a user's class tells. A metaclass or a descriptor may answer it: what that raises becomes a one-line error."""
    try:
        return usercode.call(look, f"a look at {name}")
    except TcpscapeError:
        raise
    except BaseException as e:
        if usercode.is_interrupt(e):
            raise
        refuse("cca", f"{name}: its class cannot be inspected: {usercode.text(e)}", "correct its metaclass or its attributes")


def _class_in(module: ModuleType, place: str, name: str) -> type[Any]:
    """The class of this name in a module."""
    cls = vars(module).get(name)
    if not isinstance(cls, type):
        defined = [n for n, c in vars(module).items() if isinstance(c, type) and c.__module__ == module.__name__]
        refuse("cca", f"{place} has no class {name}", f"it has {', '.join(defined)}" if defined else "define it there")
    _check(cls, f"{place}:{name}")
    return cls


def _own_name(cls: type[Any]) -> str:
    """`module:Class` of a class that was given as an object."""
    _check(cls, cls.__qualname__)
    return f"{cls.__module__}:{cls.__name__[0].upper()}{cls.__name__[1:]}"


def _check(cls: type[Any], name: str) -> None:
    """Refuses an object that is not a class with `on_ack`."""
    if not isinstance(cls, type):
        refuse("cca", f"{cls!r} is neither a name nor a class", "give the class itself, not an object of it")
    if getattr(cls, "on_ack", Control.on_ack) is Control.on_ack:
        refuse("cca", f"{name} has no on_ack(sample, window)", "add that method; the other hooks have defaults")


def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}


def _source_file(cls: type[Any]) -> str | None:
    try:
        return inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None


def _source(cls: type[Any]) -> bytes:
    """The content of the class's file, or of an interactive session what is known of its methods."""
    file = _source_file(cls)
    try:
        return reading.content(file, CONTROL, "cca") if file and os.path.isfile(file) else inspect.getsource(cls).encode()
    except (OSError, TypeError):
        return repr(sorted(_code(cls))).encode()


def _code(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, byte code and constants of each method."""
    for name, member in vars(cls).items():
        if isinstance(member, FunctionType):
            yield name, member.__code__.co_code.hex(), repr(member.__code__.co_consts)


def _from_file(path: Path) -> ModuleType:
    with suppress(RuntimeError, OSError, ValueError):  # a home that is not known, a path that is none: refused in the next line
        path = path.expanduser().resolve()
    reading.expect_file(path, CONTROL, "cca")
    stat = path.stat()
    key = (str(path), stat.st_mtime_ns, stat.st_size)
    if key not in _modules:
        name = f"tcpscape_own_{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            refuse("cca", f"{path} is no Python file", "write for example mine.py:MyControl")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look up their module
        with _importing(str(path), path.parent):
            usercode.call(functools.partial(spec.loader.exec_module, module), f"the import of {path.name}")
        _modules[key] = module
    return _modules[key]


def _from_module(name: str) -> ModuleType:
    if reading.is_confined():
        refuse("cca", f"{name} is code that cannot be named here", "name a congestion control of `tcpscape cca list`")
    with _importing(name, Path.cwd()):
        return usercode.call(functools.partial(importlib.import_module, name), f"the import of {name}")


@contextmanager
def _importing(name: str, folder: Path) -> Iterator[None]:
    """Puts `folder` first on the path, as for a script there; an exception of the imported code becomes a one-line error."""
    sys.path.insert(0, str(folder))
    try:
        yield
    except BaseException as e:
        if usercode.is_interrupt(e):
            raise
        syntax = cast("SyntaxError", e) if type(e) in SYNTAX_ERRORS else None
        where = f" line {syntax.lineno}" if syntax else ""
        frames = [f for f in _frames(e) if f.filename == name]
        where = where or (f" line {frames[-1].lineno}" if frames else "")
        text = f"{usercode.class_name(e)}: {syntax.msg}" if syntax else usercode.text(e)
        refuse("cca", f"cannot import {Path(name).name}{where}: {text}", "correct it")
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
