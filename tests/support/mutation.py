"""Change one place of the running code, and put it back: a constant, a function, a method or a default.

Kernels must run as Python (`tests.support.uncompiled`): compiled code does not change with its source.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field
from types import FunctionType, ModuleType
from typing import Any

_PACKAGES = ("kernels", "twin", "streams", "deploy")
Undo = Callable[[], None]


@contextmanager
def mutated(module_name: str, before: str, after: str) -> Iterator[None]:
    """Run the body with one place of a module's source changed.

    Args:
        module_name: the module.
        before: text that stands in its source once.
        after: text in its place.
    """
    module = importlib.import_module(module_name)
    source = inspect.getsource(module)
    assert source.count(before) == 1, f"{module_name} has {before!r} {source.count(before)} times; expected: once"
    changed = source.replace(before, after)
    pairs = zip(ast.parse(source).body, ast.parse(changed).body, strict=True)
    undo = [step for old, new in pairs if ast.dump(old) != ast.dump(new) for step in _change(module, old, new)]
    assert undo, f"{module_name}: {before!r} is no code"
    try:
        yield
    finally:
        for step in reversed(undo):
            step()


def _change(module: ModuleType, old: ast.stmt, new: ast.stmt) -> list[Undo]:
    if isinstance(new, ast.Assign | ast.AnnAssign):
        return _change_constants(module, new)
    if isinstance(new, ast.FunctionDef):
        return [_change_code(module, vars(module)[new.name], new)]
    assert isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef), ast.dump(new)
    owner = vars(module)[new.name]
    undo = []
    for before, after in zip(old.body, new.body, strict=True):
        if ast.dump(before) == ast.dump(after):
            continue
        if isinstance(after, ast.FunctionDef):
            undo.append(_change_code(module, vars(owner)[after.name], after))
        else:
            assert isinstance(after, ast.AnnAssign) and isinstance(after.target, ast.Name), ast.dump(after)
            assert after.value is not None
            value = eval(compile(ast.Expression(after.value), module.__name__, "eval"), vars(module))
            undo.append(_change_default(owner, after.target.id, value.default if isinstance(value, Field) else value))
    return undo


def _change_constants(module: ModuleType, new: ast.Assign | ast.AnnAssign) -> list[Undo]:
    """Change module-level names here and wherever they were imported."""
    scope = dict(vars(module))
    exec(compile(ast.Module([new], []), module.__name__, "exec"), scope)
    undo: list[Undo] = []
    for name, was in list(vars(module).items()):
        value = scope[name]
        if value is was or value == was:
            continue
        for other in [other for key, other in sys.modules.items() if key.partition(".")[0] in _PACKAGES]:
            if vars(other).get(name) is was or (other is module):
                undo.append(_setter(other, name, was))
                setattr(other, name, value)
    return undo


def _setter(owner: Any, name: str, value: Any) -> Undo:
    return lambda: setattr(owner, name, value)


def _change_code(module: ModuleType, live: Any, new: ast.FunctionDef) -> Undo:
    """Give a function the code of another text."""
    function = live
    for attribute in ("fget", "py_func", "__func__", "__wrapped__"):
        function = getattr(function, attribute, function)
    assert isinstance(function, FunctionType), new.name
    bare = ast.FunctionDef(**{**{name: getattr(new, name, None) for name in new._fields}, "decorator_list": []})
    scope: dict[str, Any] = {}
    tree = ast.fix_missing_locations(ast.Module([bare], []))
    future = compile(tree, module.__name__, "exec", flags=__import__("__future__").annotations.compiler_flag)
    exec(future, dict(vars(module)), scope)
    was = function.__code__
    function.__code__ = scope[new.name].__code__

    def undo() -> None:
        function.__code__ = was

    return undo


def _change_default(owner: type, name: str, value: Any) -> Undo:
    """Change the default of a field of a dataclass whose fields are named in calls."""
    defaults = owner.__init__.__kwdefaults__  # type: ignore[misc]
    was = defaults[name]
    defaults[name] = value

    def undo() -> None:
        defaults[name] = was

    return undo
