"""Finding a congestion control that is Python code: `path/to/mine.py:MyControl`, `module:MyControl`, or the class itself.

The name of a module's class begins with a capital, so that `cubic:hystart` stays a parameter without a value. Parameters follow as for any
other: `mine.py:MyControl:gain=2` is `MyControl(gain=2)`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tcpscape.controls import spelling
from tcpscape.errors import ScenarioError, refuse

Maker = Callable[[int], Any]
"""Makes one for a flow, from the flow's seed."""
_given: dict[str, type[Any]] = {}
_loaded: dict[tuple[str, int, int], ModuleType] = {}


@dataclass(frozen=True)
class Own:
    """A class that was found."""

    name: str
    """As written."""
    cls: type[Any]
    params: Mapping[str, int | float]

    @property
    def file(self) -> str | None:
        """The file of its source, None where there is none (an interactive session)."""
        try:
            return inspect.getsourcefile(self.cls)
        except (TypeError, OSError):
            return None

    def digest(self) -> str:
        """Changes when its file does: results of yesterday's class are not today's. What the file imports is not seen."""
        try:
            text = Path(self.file).read_bytes() if self.file and Path(self.file).is_file() else inspect.getsource(self.cls).encode()
        except (OSError, TypeError):
            text = repr(sorted(_code(self.cls))).encode()
        return hashlib.sha256(text).hexdigest()[:12]

    def maker(self) -> Maker:
        """What the engine calls for each flow."""
        takes_seed = "seed" in _parameters(self.cls)

        def make(seed: int) -> Any:
            return self.cls(**({"seed": seed} if takes_seed else {}), **self.params)

        return make


def give(cls: type[Any]) -> str:
    """The name under which a class itself can be used as a congestion control in this process; another class of that name gets a number."""
    _check(cls, cls.__qualname__)
    plain = f"{cls.__module__}:{cls.__name__[0].upper()}{cls.__name__[1:]}"
    name = next(n for i in itertools.count(1) if _given.get(n := plain if i == 1 else f"{plain}_{i}", cls) is cls)
    _given[name] = cls
    return name


def find(name: str) -> Own:
    """The class behind a name; whatever is wrong with it is one line."""
    plain, said = spelling.split(name)
    params = {key: _number(value, key) for key, value in said.items()}
    if plain in _given:
        return Own(name, _given[plain], params)
    place, _, wanted = plain.rpartition(":")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    cls = getattr(module, wanted, None)
    if not isinstance(cls, type):
        there = [n for n, c in vars(module).items() if isinstance(c, type) and c.__module__ == module.__name__]
        refuse("cca", f"{place} has no class {wanted}", f"it has {', '.join(there)}" if there else "define it there")
    _check(cls, name)
    return Own(name, cls, params)


def failure(name: str, hook: str, error: BaseException) -> ScenarioError:
    """What a hook raised, as the house's one line: which hook, which line of the user's file, what."""
    own = find(name)
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if f.filename == own.file] or list(frames)
    where = f"{Path(mine[-1].filename).name} line {mine[-1].lineno}" if mine else _defined(own, hook)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return ScenarioError(f"cca: {name}: {hook}, {where}: {what}; correct that line")


def _defined(own: Own, hook: str) -> str:
    """Where a hook begins, for errors that no line of it raised."""
    f = getattr(own.cls, hook, None)
    return f"{Path(f.__code__.co_filename).name} line {f.__code__.co_firstlineno}" if isinstance(f, FunctionType) else own.name


def _number(text: str, key: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        refuse(f"cca.{key}", f"{text!r} is no number", "write a plain number; its unit is the class's own")


def _check(cls: type[Any], name: str) -> None:
    from tcpscape.controls.hooks import Control

    if not isinstance(cls, type):
        refuse("cca", f"{cls!r} is neither a name nor a class", "give the class itself, not an object of it")
    if getattr(cls, "on_ack", Control.on_ack) is Control.on_ack:
        refuse("cca", f"{name} has no on_ack(sample, window)", "add that method; the other hooks have defaults")


def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}


def _code(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    for name, member in vars(cls).items():
        if isinstance(member, FunctionType):
            yield name, member.__code__.co_code.hex(), repr(member.__code__.co_consts)


def _from_file(path: Path) -> ModuleType:
    try:
        path = path.expanduser().resolve()
        stat = path.stat()
    except OSError as e:
        refuse("cca", f"cannot read {path}: {e.strerror}", "check the path")
    key = (str(path), stat.st_mtime_ns, stat.st_size)
    if key not in _loaded:
        name = f"tcpscape_own_{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            refuse("cca", f"{path} is no Python file", "write for example mine.py:MyControl")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        with _importing(str(path), path.parent):
            spec.loader.exec_module(module)
        _loaded[key] = module
    return _loaded[key]


def _from_module(name: str) -> ModuleType:
    with _importing(name, Path.cwd()):
        return importlib.import_module(name)


@contextmanager
def _importing(what: str, folder: Path) -> Iterator[None]:
    """With `folder` first on the path, as for a script there; whatever the code raises is one line."""
    sys.path.insert(0, str(folder))
    try:
        yield
    except Exception as e:
        where = f" line {e.lineno}" if isinstance(e, SyntaxError) else ""
        mine = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == what]
        where = where or (f" line {mine[-1].lineno}" if mine else "")
        said = e.msg if isinstance(e, SyntaxError) else str(e)
        refuse("cca", f"cannot import {Path(what).name}{where}: {type(e).__name__}: {said}", "correct it")
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
