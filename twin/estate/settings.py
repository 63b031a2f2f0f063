"""Settings: attributes of a store as a person would change them, and the config and file that they make.

A setting is an attribute as in the estate, such as offld1_th = 60 or size = "8G"; `smds.QM01.size` is of a data set.
The file keeps its lines and comments as far as it can. TOML overrides the imported texts (docs/estate.md, Precedence),
so a change of what such a text says is a line of its own.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from twin.base.errors import UsageError
from twin.base.units import KIB, format_size
from twin.estate.attributes import SIZES, parse_attributes
from twin.estate.errors import EstateError, known_hint
from twin.estate.model import Smds, StoreConfig, facility_of
from twin.estate.routes import Estate
from twin.estate.sources import toml_string

Setting = int | float | bool | str | None
"""Value of a setting: sizes are bytes or text such as "8G"."""
Settings = dict[str, Setting]
"""Settings of a store by name."""
_TABLE = re.compile(r"\s*\[(?!\[)[^#]*\]\s*(#.*)?")
_ARRAY = re.compile(r"\s*\[\[")
_IMPORTED = re.compile(r"(\s*(?:cfrm|mqsc)\s*=\s*)(\"[^\"]*\"|'[^']*')(.*)", re.DOTALL)

_Changes = dict[tuple[str, ...], Settings]


class DataSetSetting(NamedTuple):
    """Name of an attribute of a data set; its text is `smds.QM01.size`."""

    qmgr: str
    attribute: str

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the name of a setting; None: it is not of a data set."""
        if not name.startswith("smds."):
            return None
        qmgr, _, attribute = name.removeprefix("smds.").rpartition(".")
        return cls(qmgr, attribute)

    def __str__(self) -> str:
        return f"smds.{self.qmgr}.{self.attribute}"


def changed_config(config: StoreConfig, settings: Mapping[str, Setting]) -> StoreConfig:
    """Return a store config with other settings. UsageError: a setting is unknown, or its value is wrong."""
    datasets = {name: value for name, value in settings.items() if DataSetSetting.parse(name)}
    own = {name: value for name, value in settings.items() if name not in datasets}
    try:
        changes = dict(parse_attributes(config, "REBUILD" if config.kind == "structure" else "ALTER", own))
    except EstateError as error:
        raise UsageError(str(error).partition(": ")[2] or str(error)) from None
    if datasets:
        changes["smds"] = _changed_datasets(config, datasets)
    return replace(config, **changes)


def check_scm(estate: Estate, config: StoreConfig, changed: StoreConfig) -> None:
    """Check that there is SCM if another SCMMAXSIZE is requested. UsageError: the coupling facility has none."""
    facility = facility_of(estate.stores, changed)
    if facility is None or facility.size is None or facility.scm:
        return  # without a described one, SCMMAXSIZE alone counts
    if changed.scm_max_size not in (None, config.scm_max_size):
        raise UsageError(
            f"scm_max_size = {format_size(changed.scm_max_size or 0)}: {facility.name} has no SCM; expected: scm in"
            f" [coupling_facility.{facility.name}] of the estate"
        )


def _changed_datasets(config: StoreConfig, settings: Mapping[str, Setting]) -> dict[str, Smds]:
    if not config.smds:
        raise UsageError(f"{next(iter(settings))}: a {config.kind} has no data sets; expected: an attribute of its own")
    datasets = dict(config.smds)
    for name, value in settings.items():
        setting = DataSetSetting.parse(name)
        assert setting is not None
        qmgr, attribute = setting
        if qmgr not in config.queue_managers:
            raise UsageError(f"{name}: no queue manager {qmgr}{known_hint(qmgr, config.queue_managers)}")
        if attribute not in Smds.rows:
            raise UsageError(f"{name}: no attribute {attribute} of a data set{known_hint(attribute, Smds.rows)}")
        try:
            datasets[qmgr] = replace(datasets.get(qmgr, Smds()), **{attribute: Smds.rows[attribute](value)})
        except (ValueError, TypeError) as error:
            raise UsageError(f"{name} = {value}: {error}") from None
    return datasets


def changed_text(path: Path, config: StoreConfig, settings: Mapping[str, Setting], folder: Path) -> str:
    """Return the text of an estate file with other settings of a store: as in the estate, `smds.QM01.size` of a data
    set, sizes in bytes. Imported files are named relative to `folder`, where the text will stand. UsageError: the file
    cannot be read, or describes the store in a form that is not a table of its own.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; expected: the estate's file") from None
    changes = _by_table(config, settings)
    done: list[str] = []
    table: tuple[str, ...] = ()
    for line in lines:
        if _ARRAY.match(line) or _TABLE.fullmatch(line.rstrip("\n")):
            _append(done, _rest(changes, table))
            table = () if _ARRAY.match(line) else _path(line)
        done.append(_relative(_changed(line, changes.get(table, {})), path.parent, folder))
    if done and not done[-1].endswith("\n"):
        done[-1] += "\n"
    _append(done, _rest(changes, table))
    for name, values in changes.items():
        if values:
            done.append(f"\n[{name[0]}.{json.dumps('/'.join(name[1:]))}]\n")
            done += _rest(changes, name)
    text = "".join(done)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path}: {config.name} cannot be changed in it ({error}); expected: tables of their own, such as"
            f' [{config.kind}."{config.name}"]'
        ) from None
    return text


def _by_table(config: StoreConfig, settings: Mapping[str, Setting]) -> _Changes:
    """Return the settings by the table that has them; a table is named by section and the parts of its key."""
    changes: _Changes = {}
    for name, value in settings.items():
        if (dataset := DataSetSetting.parse(name)) is not None:
            changes.setdefault(("smds", *config.table_key, dataset.qmgr), {})[dataset.attribute] = value
        else:
            changes.setdefault((config.kind, *config.table_key), {})[name] = value
    return changes


def _path(line: str) -> tuple[str, ...]:
    """Return the name of the table that a line begins, as `_by_table` names it."""
    content: Any = tomllib.loads(line)
    parts: list[str] = []
    while isinstance(content, dict) and content:
        part, content = next(iter(content.items()))
        parts += part.split("/") if parts else [part]
    if parts[0] == "page_set" and parts[-1].isdigit():
        parts[-1] = str(int(parts[-1]))
    return tuple(parts)


def _changed(line: str, values: Settings) -> str:
    """Return a line with the new value if it gives one of the attributes, which is then done."""
    name = line.partition("=")[0].strip().strip("\"'")
    if "=" not in line or name not in values:
        return line
    comment = re.search(r"\s+#[^\"']*$", line.rstrip("\n"))
    return f"{name} = {_value(name, values.pop(name))}{comment[0] if comment else ''}\n"


def _rest(changes: _Changes, table: tuple[str, ...]) -> list[str]:
    """Return lines for what a table does not have yet; they are then done."""
    values = changes.get(table, {})
    lines = [f"{name} = {_value(name, value)}\n" for name, value in values.items()]
    values.clear()
    return lines


def _append(done: list[str], lines: list[str]) -> None:
    end = len(done)
    while end and not done[end - 1].strip():
        end -= 1
    done[end:end] = lines


def _value(name: str, value: Setting) -> str:
    if name in SIZES and isinstance(value, int) and value >= KIB:
        return json.dumps(format_size(value))
    return json.dumps(value)


def _relative(line: str, old: Path, new: Path) -> str:
    """Return a line of an import with its file named from another folder."""
    match = _IMPORTED.fullmatch(line)
    if match is None or old.resolve() == new.resolve():
        return line
    file = tomllib.loads(f"file = {match[2]}")["file"]
    return f"{match[1]}{toml_string(os.path.relpath(old / file, new))}{match[3]}"
