"""Options that name files: a command says by their type what it reads and what it writes.

Before a command runs, `check_files` refuses an output that would replace one of its inputs or another output.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from cyclopts import Parameter

from twin.errors import UsageError
from twin.outputs import is_same_file, is_stream

_READ_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, kw_only=True)
class FileUse:
    """The way in which a command uses the file or folder that an option names."""

    is_written: bool = False  # otherwise it is read
    is_folder: bool = False
    is_secret: bool = False  # nobody else should read it
    path_of: Callable[[Any], Path | None] = Path  # path in the value of the option; None: it names no file
    parts_of: Callable[[Path], tuple[Path, ...]] = lambda _: ()  # further files that are read with it


class NamedFile(NamedTuple):
    """A file or folder that an argument of a command names."""

    option: str
    use: FileUse
    path: Path


def texts_of(estate: Path) -> tuple[Path, ...]:
    """Return the files that an estate imports; none if it cannot be read, which whoever loads it reports."""
    from twin.estate.errors import EstateError
    from twin.estate.sources import read_toml

    try:
        return tuple(text.path for text in read_toml(estate).imports)
    except EstateError:
        return ()


def _file_or_hyphen(_: Any, value: str | None) -> None:
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"{value} is an option; expected: a file, or - for standard output")


def _unless_hyphen(value: str) -> Path | None:
    return None if value == "-" else Path(value)


def _input_or_hyphen(_: Any, value: Path | None) -> None:
    if value is not None and str(value).startswith("-") and str(value) != "-":
        raise ValueError(f"{value} is an option; expected: a file, or - for standard input")


InputFile = Annotated[Path, FileUse()]
InputOrHyphen = Annotated[
    Path,
    FileUse(path_of=lambda value: _unless_hyphen(str(value))),
    Parameter(allow_leading_hyphen=True, validator=_input_or_hyphen),
]
SecretFile = Annotated[Path, FileUse(is_secret=True)]
InputFolder = Annotated[Path, FileUse(is_folder=True)]
EstateFile = Annotated[Path, FileUse(parts_of=texts_of)]
OutputFile = Annotated[Path, FileUse(is_written=True)]  # written by `twin.outputs`, so that it stays on failure
OutputFolder = Annotated[Path, FileUse(is_written=True, is_folder=True)]
KeptFile = Annotated[Path, FileUse(is_written=True)]  # replaced again and again by a command that runs for long
KeptFolder = Annotated[Path, FileUse(is_written=True, is_folder=True)]
OutputOrHyphen = Annotated[
    str,
    FileUse(is_written=True, path_of=_unless_hyphen),
    Parameter(allow_leading_hyphen=True, validator=_file_or_hyphen),
]


def check_files(command: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check the files that the arguments of a command name, before it runs. Arguments that are not given may be left
    out. UsageError: An output is an input or another output, or cannot be a file or folder of that name.
    """
    named = list(named_files(command, arguments))
    inputs = [own for own in named if not own.use.is_written]
    outputs = [own for own in named if own.use.is_written]
    for place, output in enumerate(outputs):
        _check_place(output)
        for other in inputs:
            for path in (other.path, *other.use.parts_of(other.path)):
                if is_same_file(output.path, path):
                    named_by = "" if path == other.path else f", which {other.path} names"
                    text = f"{output.option} {output.path} is an input ({other.option}{named_by})"
                    raise UsageError(f"{text}; expected: another name")
        for other in outputs[:place]:
            if is_same_file(output.path, other.path):
                options = f"{other.option} and {output.option}"
                raise UsageError(f"{options} {output.path}: two outputs in one file; expected: a file for each")


def open_secrets(command: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return a warning for each file of secrets that others may read. Arguments as of `check_files`."""
    warnings = []
    for own in named_files(command, arguments):
        with suppress(OSError):  # whoever reads it reports that
            mode = stat.S_IMODE(own.path.stat().st_mode) if own.use.is_secret else 0
            if mode & _READ_BY_OTHERS:
                text = f"{own.option} {own.path} can be read by others (mode {mode:o})"
                warnings.append(f"{text}; expected: chmod 600 {own.path}")
    return warnings


def named_files(command: Callable[..., Any], arguments: Mapping[str, Any]) -> Iterator[NamedFile]:
    """Yield the files and folders that arguments of a command name."""
    parameters = inspect.signature(command).parameters
    hints = get_type_hints(command, include_extras=True)
    for name, value in arguments.items():
        kind = parameters[name].kind
        is_positional = kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        option = name.upper() if is_positional else option_name(name, hints[name])
        for item in value if kind is inspect.Parameter.VAR_POSITIONAL else (value,):
            yield from _files_in(option, hints[name], item)


def option_name(parameter: str, annotation: Any) -> str:
    """Return the name of an option by its parameter and type."""
    own = [extra.name for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Parameter)]
    names = [text for name in own for text in ((name,) if isinstance(name, str) else name or ())]
    return next((text for text in names if text.startswith("--")), f"--{parameter.strip('_').replace('_', '-')}")


def _files_in(option: str, annotation: Any, value: Any) -> Iterator[NamedFile]:
    if value is None:
        return
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        use = next((extra for extra in extras if isinstance(extra, FileUse)), None)
        if use is None or isinstance(value, tuple):
            repeated = inner if use is None else tuple[Annotated[str, use], ...]
            yield from _files_in(option, repeated, value)
        elif (path := use.path_of(value)) is not None:
            yield NamedFile(option, use, path)
    elif is_dataclass(annotation) and isinstance(annotation, type):
        hints = get_type_hints(annotation, include_extras=True)
        for field in fields(annotation):
            hint = hints[field.name]
            yield from _files_in(option_name(field.name, hint), hint, getattr(value, field.name))
    elif get_origin(annotation) is tuple:
        for item in value:
            yield from _files_in(option, get_args(annotation)[0], item)
    else:
        for own in get_args(annotation):  # X | None
            yield from _files_in(option, own, value)


def _check_place(output: NamedFile) -> None:
    """Raise UsageError if an output cannot be what its name is already, or has no folder."""
    path, text = output.path, f"{output.option} {output.path}"
    if output.use.is_folder:
        if path.exists() and not path.is_dir():
            raise UsageError(f"{text} is a file; expected: a folder")
    elif path.is_dir():
        raise UsageError(f"{text} is a folder; expected: a file")
    elif not is_stream(path):
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{text}: its folder does not exist; expected: a file in a folder that exists")
        if not all(os.access(place, os.W_OK) for place in (path.absolute().parent, path) if place.exists()):
            raise UsageError(f"{text} may not be written; expected: a file and a folder that may be")
