"""Texts of an estate: the TOML file, with every key and value checked, and the CFRM and MQSC texts it imports.

tomllib gives no line for a key, so errors name the path of the key; syntax errors name the line. The file is described
in docs/estate.md. `twin.estate.load` and `twin.estate.routes` compose the estate from the contents.
"""

from __future__ import annotations

import json
import operator
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from twin.base.listings import decode, has_lines
from twin.base.units import zone_of
from twin.estate.attributes import CFRM_POLICY_NAME, CHOICE, GROUP_NAME, SECTIONS, Section, suggest_key
from twin.estate.cfrm import Policies
from twin.estate.errors import EstateError, Problems, did_you_mean, show
from twin.estate.model import POLICIES, QueueManager, Site
from twin.estate.mqsc import Definitions, Owner, Surroundings
from twin.estate.rows import QMGR_NAME, Check, SourceValue, Values, convert, locate_key, text
from twin.estate.runbook import ActionRow, read_runbook

SCHEMA = 1
_TOP = ("schema", "alerts", "history", "import", "planned", "site")
_OF_ALL_TEXTS = ("queue_manager", "uniform_cluster", "queue_sharing_group")  # memberships, which the imports need

_DEEP = re.compile(
    rb"(?<![A-Za-z0-9_.-])(?:[A-Za-z0-9_-]++\.){100}"
)  # a key of 100 parts: tomllib takes quadratic time
_BRACKETS = re.compile(rb"[\[{]"), re.compile(rb"[\]}]")  # opening, closing

_FILE_NAME = text("[^\\x00-\\x1f]+", "the name of a file, relative to this one")
_SITE_NAME = text("[^\\x00-\\x1f]{1,64}", "a name of 1 to 64 characters")


def _zone(value: object) -> str:
    """Check the name of a zone. ValueError: there is none of that name."""
    right = "a name such as Europe/Berlin, or an offset such as +01:00"
    zone: str = text("[A-Za-z0-9_+:/-]{1,64}", right)(value)
    try:
        zone_of(zone)
    except ValueError:
        raise ValueError(f"must be {right}") from None
    return zone


_SITE: Mapping[str, Check] = {"name": _SITE_NAME, "zone": _zone, "runbook": _FILE_NAME}


@dataclass(frozen=True, slots=True)
class Entry:
    """Table of a section, like [structure."QSG1/APP1"]."""

    key: tuple[str, ...]  # the parts of its name
    where: str  # how an error names it
    values: Values


@dataclass(frozen=True, slots=True)
class Import:
    """[[import]]: a text, the group or queue manager that runs it (of MQSC), the policy to take (of CFRM)."""

    kind: str  # "cfrm" or "mqsc"
    path: Path
    queue_sharing_group: str | None
    queue_manager: str | None
    where: str
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class TomlEstate:
    """Contents of the file."""

    file: str
    imports: tuple[Import, ...]
    sections: Mapping[str, Mapping[tuple[str, ...], Entry]]  # of every section, absent ones empty
    problems: Problems = field(default_factory=Problems)
    history: Path | None = None  # file of `mqtwin warm`
    site: Site = field(default_factory=Site)
    runbook: tuple[ActionRow, ...] = ()
    planned: tuple[Mapping[str, Any], ...] = ()  # tables of [[planned]], unchecked
    needless: float | None = None  # [alerts]: needless calls that a saved filling is worth


_MORE_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029]")  # which JSON leaves as they are


def toml_string(words: str) -> str:
    """Return a basic string of TOML. Raise EstateError if the text is not Unicode, as a file's name may be."""
    try:
        words.encode()
    except UnicodeEncodeError:
        raise EstateError(
            f"{words!a} has bytes that are not UTF-8; expected: a name that a TOML file can hold"
        ) from None
    text = json.dumps(words, ensure_ascii=False)
    return _MORE_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def read_toml(path: Path) -> TomlEstate:
    """Read and check the file. Unknown or missing keys and invalid values are collected in `problems`. EstateError: it
    cannot be read or is not TOML, or what is wrong concerns every text: the schema, memberships.
    """
    file = str(path)
    content = _parse(path)
    problems = Problems()
    for key in content:
        if key not in (*_TOP, *SECTIONS):
            known = suggest_key(key, (*_TOP, *SECTIONS))
            problems.messages.append(f"{file}: unknown key {show(key)}{known}")
    with problems.collect():
        _check_schema(file, content)
    sections = {}
    for name in sorted(SECTIONS, key=lambda name: name not in _OF_ALL_TEXTS):
        sections[name] = _section(file, name, SECTIONS[name], content.get(name, {}), problems)
        if name == _OF_ALL_TEXTS[-1]:
            is_sound = not problems.messages
    imports = _imports(path, content.get("import", []), problems)
    if not is_sound:
        problems.raise_all()
    history = None
    if "history" in content:
        named = convert(f"{file}: history = {show(content['history'])}", content["history"], _FILE_NAME)
        history = path.parent / str(named.value)
    site = Site()
    runbook: tuple[ActionRow, ...] = ()
    with problems.collect():
        site, own = _site(file, content.get("site", {}))
        runbook = () if own is None else read_runbook(path.parent / own)
    needless = None
    with problems.collect():
        needless = _needless(file, content.get("alerts", {}))
    planned = content.get("planned", [])
    if not isinstance(planned, list) or not all(isinstance(plan, dict) for plan in planned):
        problems.messages.append(f"{file}: planned = {show(planned)}: must be tables like [[planned]]")
        planned = []
    by_section = {name: sections[name] for name in SECTIONS}
    return TomlEstate(file, imports, by_section, problems, history, site, runbook, tuple(planned), needless)


def _site(file: str, table: object) -> tuple[Site, str | None]:
    """Return the site of its table, and the file of its runbook or None. EstateError: no table, a wrong attribute."""
    own = _plain_table(file, "site", table, _SITE)
    runbook = own.pop("runbook", None)
    return Site(**own), runbook


def _needless(file: str, table: object) -> float | None:
    """Return the needless calls that a saved filling is worth by the table [alerts]; None: it does not say.

    EstateError: it is no table, or what it says is wrong.
    """
    own = _plain_table(file, "alerts", table, CHOICE)
    if len(own) > 1:
        raise EstateError(f"{file}: alerts: {' and '.join(own)} are the same choice; keep one of them")
    return POLICIES[own["policy"]] if "policy" in own else own.get("needless_per_saved")


def _plain_table(file: str, name: str, table: object, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Return the checked values of a table of the top level. EstateError: it is no table, or a key is unknown."""
    if not isinstance(table, dict):
        raise EstateError(f"{file}: {name} = {show(table)}: must be a table like [{name}]")
    own = {}
    for key, value in table.items():
        if key not in checks:
            raise EstateError(f"{file}: {name}: unknown key {show(key)}{suggest_key(key, checks)}")
        own[key] = convert(locate_key(file, name, key, value), value, checks[key]).value
    return own


def _check_schema(file: str, content: Mapping[str, Any]) -> None:
    if content.get("schema") != SCHEMA or isinstance(content["schema"], bool):
        problem = f"schema = {show(content['schema'])}" if "schema" in content else "schema is missing"
        raise EstateError(f"{file}: {problem}; write schema = {SCHEMA} at the top")


def read_text(path: Path, where: str) -> str:
    """Read an imported file as UTF-8 or EBCDIC, else as ISO 8859-1 (only descriptions can differ), or raise
    EstateError.
    """
    try:
        data = path.read_bytes()
    except OSError as wrong:
        raise EstateError(
            f"{where}: {path} cannot be read ({wrong.strerror}); give a file, relative to the estate's"
        ) from None
    if not has_lines(data):
        raise EstateError(
            f"{where}: {path} is EBCDIC without ends of lines or records of one length; transfer it as text"
        )
    return decode(data)


def _parse(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as wrong:
        raise EstateError(f"{path}: cannot be read ({wrong.strerror}); give the TOML file of an estate") from None
    deep = _DEEP.search(data)
    if deep is not None:
        number = data.count(b"\n", 0, deep.start()) + 1
        raise EstateError(f"{path}:{number}: a key of more than 100 parts; an estate needs three")
    try:
        return tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as wrong:
        raise EstateError(f"{path}: byte {wrong.start} is not UTF-8; a TOML file is UTF-8 text") from None
    except tomllib.TOMLDecodeError as wrong:
        line = re.search(r"\(at (line (\d+), column \d+|end of document)\)", str(wrong))
        place = f"{path}:{line[2]}" if line and line[2] else str(path)
        raise EstateError(f"{place}: not TOML: {' '.join(str(wrong).split())}") from None
    except (RecursionError, ValueError) as wrong:  # nested too deep; an integer of more digits than Python reads
        raise EstateError(_unread(path, data, wrong)) from None


def _unread(path: Path, data: bytes, wrong: Exception) -> str:
    """Return the message for a text that tomllib rejects without a line: find the line."""
    lines = data.split(b"\n")
    if isinstance(wrong, RecursionError):
        opened, closed = ([len(mark.findall(line)) for line in lines] for mark in _BRACKETS)
        before = [0, *accumulate(map(operator.sub, opened, closed))]
        depths = list(map(operator.add, before, opened))
        return f"{path}:{depths.index(max(depths)) + 1}: nested too deep to read; an estate needs three levels"
    digits = sys.get_int_max_str_digits()
    number = re.compile(rb"[0-9](_?[0-9]){%d}" % digits)
    line = next((place for place, text in enumerate(lines, 1) if number.search(text)), 1)
    return f'{path}:{line}: an integer of more than {digits} digits; give a number of bytes, or a string such as "8G"'


def _section(file: str, name: str, section: Section, content: Any, problems: Problems) -> dict[tuple[str, ...], Entry]:
    entries: dict[tuple[str, ...], Entry] = {}
    if not isinstance(content, dict):
        wrong = f'{file}: {name} = {show(content)}: must be tables like [{name}."{section.example}"]'
        problems.messages.append(wrong)
        return entries
    for key, table in content.items():
        with problems.collect():
            entry = _entry(file, name, section, key, table, problems)
            if entry.key in entries:
                raise EstateError(f"{entry.where}: the same as {entries[entry.key].where}; keep one of them")
            entries[entry.key] = entry
    return entries


def _entry(file: str, name: str, section: Section, key: str, table: Any, problems: Problems) -> Entry:
    path = f"{name}.{key}" if re.fullmatch("[A-Za-z0-9_-]+", key) else f'{name}."{key}"'
    where = f"{file}: {path}"
    if not isinstance(table, dict):
        raise EstateError(f'{where} = {show(table)}: must be a table like [{name}."{section.example}"]')
    parts = key.split("/", len(section.key) - 1)
    if len(parts) < len(section.key):
        raise EstateError(f'{where}: the name must be like "{section.example}"')
    checked = tuple(
        convert(f"{where}: {show(part)}", part, check).value for part, check in zip(parts, section.key, strict=True)
    )
    if name == "page_set":
        checked = (checked[0], str(int(checked[1])))
    values: dict[str, SourceValue] = {}
    for attribute, value in table.items():
        with problems.collect():
            if attribute not in section.attributes:
                raise EstateError(f"{where}: unknown key {show(attribute)}{suggest_key(attribute, section.attributes)}")
            values[attribute] = convert(locate_key(file, path, attribute, value), value, section.attributes[attribute])
    missing = next((attribute for attribute in section.required if attribute not in table), None)
    if missing is not None:
        raise EstateError(f"{where}: {missing} is missing")
    return Entry(checked, where, values)


def _imports(path: Path, content: Any, problems: Problems) -> tuple[Import, ...]:
    if not isinstance(content, list):
        problems.messages.append(f"{path}: import = {show(content)}: must be tables like [[import]]")
        return ()
    imports = []
    for place, entry in enumerate(content):
        with problems.collect():
            imports.append(_import(path, f"import[{place}]", entry))
    return tuple(imports)


def _import(path: Path, name: str, entry: Any) -> Import:
    where = f"{path}: {name}"
    checks = {
        "cfrm": _FILE_NAME,
        "mqsc": _FILE_NAME,
        "queue_sharing_group": GROUP_NAME,
        "queue_manager": QMGR_NAME,
        "policy": CFRM_POLICY_NAME,
    }
    if not isinstance(entry, dict):
        raise EstateError(f"{where} = {show(entry)}: must be a table like [[import]]")
    for key, value in entry.items():
        if key not in checks:
            raise EstateError(f"{where}: unknown key {show(key)}{suggest_key(key, checks)}")
        convert(locate_key(str(path), name, key, value), value, checks[key])
    kinds = [kind for kind in ("cfrm", "mqsc") if kind in entry]
    if len(kinds) != 1:
        raise EstateError(f'{where}: must have cfrm = "FILE" or mqsc = "FILE", one of them')
    kind = kinds[0]
    owners = len({"queue_sharing_group", "queue_manager"} & set(entry))
    if owners != (0 if kind == "cfrm" else 1):
        right = "policy or nothing beside it"
        if kind == "mqsc":
            right = "queue_sharing_group or queue_manager beside it, one of them"
        raise EstateError(f"{where}: {kind} = {show(entry[kind])} must have {right}")
    if kind == "mqsc" and "policy" in entry:
        raise EstateError(f"{where}: policy = {show(entry['policy'])} goes with cfrm, not with mqsc")
    group, qmgr = entry.get("queue_sharing_group"), entry.get("queue_manager")
    return Import(kind, path.parent / entry[kind], group, qmgr, where, entry.get("policy"))


@dataclass(frozen=True, slots=True)
class Sources:
    """Contents of all texts, and warnings about them."""

    toml: TomlEstate
    queue_managers: Mapping[str, QueueManager]
    groups: Mapping[str, tuple[str, ...]]  # queue-sharing group -> its queue managers, sorted
    policies: Policies
    definitions: Definitions
    warnings: list[str] = field(default_factory=list)

    @property
    def problems(self) -> Problems:
        """Errors so far."""
        return self.toml.problems

    def entries(self, section: str) -> Mapping[tuple[str, ...], Entry]:
        """Return the tables of a TOML section by the parts of their names."""
        return self.toml.sections[section]

    def check_group(self, entry: Entry) -> None:
        """Raise EstateError unless the first part of a table's name is a queue-sharing group."""
        if entry.key[0] not in self.groups:
            raise EstateError(f"{entry.where}: {_unknown('queue_sharing_group', entry.key[0], self.groups)}")

    def check_qmgr(self, entry: Entry, platform: str) -> None:
        """Raise EstateError unless the first part of a table's name is a queue manager of that platform."""
        name = entry.key[0]
        if name not in self.queue_managers:
            raise EstateError(f"{entry.where}: {_unknown('queue_manager', name, self.queue_managers)}")
        if self.queue_managers[name].platform != platform:
            raise EstateError(
                f"{entry.where}: {name} is not {platform};"
                f' if it is, write platform = "{platform}" in [queue_manager.{name}]'
            )


def gather(toml: TomlEstate) -> Sources:
    """Read the imports of the file in order and resolve memberships. Raise EstateError."""
    groups = {
        key[0]: entry.values["queue_managers"].value for key, entry in toml.sections["queue_sharing_group"].items()
    }
    queue_managers = _queue_managers(toml)
    clash = next((name for name in groups if name in queue_managers), None)
    if clash is not None:
        where = toml.sections["queue_sharing_group"][(clash,)].where
        raise EstateError(f"{where}: there is a queue manager {clash} too; their names must differ")
    surroundings = Surroundings(
        groups=groups,
        group_of={name: qmgr.queue_sharing_group for name, qmgr in queue_managers.items() if qmgr.queue_sharing_group},
        distributed=frozenset(name for name, qmgr in queue_managers.items() if qmgr.platform == "distributed"),
        elsewhere=lambda space, owner, name: _in_toml(toml, space, owner, name),
    )
    policies, definitions = Policies(problems=toml.problems), Definitions(surroundings, toml.problems)
    sources = Sources(toml, queue_managers, groups, policies, definitions)
    for entry in toml.imports:
        with sources.problems.collect():
            _read_import(sources, entry)
    sources.warnings.extend(dict.fromkeys(sources.policies.warnings + sources.definitions.warnings))
    return sources


def _read_import(sources: Sources, entry: Import) -> None:
    group, qmgr = entry.queue_sharing_group, entry.queue_manager
    if group is not None and group not in sources.groups:
        raise EstateError(f"{entry.where}: {_unknown('queue_sharing_group', group, sources.groups)}")
    if qmgr is not None and qmgr not in sources.queue_managers:
        raise EstateError(f"{entry.where}: {_unknown('queue_manager', qmgr, sources.queue_managers)}")
    text = read_text(entry.path, entry.where)
    if entry.kind == "cfrm":
        sources.policies.read(text, str(entry.path), entry.policy)
    else:
        sources.definitions.read(text, str(entry.path), group=group, qmgr=qmgr)


def _queue_managers(toml: TomlEstate) -> dict[str, QueueManager]:
    """Return the queue managers by name: those with a table and the members of groups and clusters.

    Members of a queue-sharing group are on z/OS, those of a uniform cluster are distributed.
    """
    tables = {key[0]: entry for key, entry in toml.sections["queue_manager"].items()}
    platforms: dict[str, str] = {}
    for name, entry in tables.items():
        platforms[name] = entry.values["platform"].value if "platform" in entry.values else "zos"
    group_of: dict[str, str] = {}
    for section, platform in (("queue_sharing_group", "zos"), ("uniform_cluster", "distributed")):
        for key, entry in toml.sections[section].items():
            for name in entry.values["queue_managers"].value:
                if platforms.setdefault(name, platform) != platform:
                    raise EstateError(
                        f'{entry.where}: its member {name} must be platform = "{platform}"; it is "{platforms[name]}"'
                    )
                if section == "queue_sharing_group" and group_of.setdefault(name, key[0]) != key[0]:
                    raise EstateError(
                        f"{entry.where}: {name} is in {group_of[name]} already; it can be in one group only"
                    )
    queue_managers = {}
    for name in sorted(platforms):
        values = tables[name].values if name in tables else {}
        queue_managers[name] = QueueManager(
            name=name,
            platform="zos" if platforms[name] == "zos" else "distributed",
            version=values["version"].value if "version" in values else None,
            queue_sharing_group=group_of.get(name),
            expiry_interval_s=values["expiry_interval_s"].value if "expiry_interval_s" in values else None,
            silence_s=values["silence_s"].value if "silence_s" in values else None,
            host=_host(toml, tables[name]) if "host" in values else None,
        )
    return queue_managers


def _host(toml: TomlEstate, entry: Entry) -> str:
    """Return the host of a queue manager. Raise EstateError where no table describes it."""
    host: str = entry.values["host"].value
    known = [key[0] for key in toml.sections["host"]]
    if host not in known:
        hint = did_you_mean(host, known) or f'; describe [host."{host}"]'
        raise EstateError(f"{entry.values['host'].where}: unknown host {host}{hint}")
    return host


def _in_toml(toml: TomlEstate, space: str, owner: Owner, name: str) -> bool:
    """Return True if the TOML file describes an object that MQSC alters."""
    if owner[0] != "GROUP" and (owner[1], name) in toml.sections[space]:
        return True
    return space == "queue" and (owner[1], name) in toml.sections["queue_file"]


def _unknown(section: str, name: str, known: Mapping[str, object]) -> str:
    words = {"queue_sharing_group": "queue-sharing group", "queue_manager": "queue manager"}[section]
    return f"unknown {words} {name}{did_you_mean(name, known) or f'; describe it as [{section}.{name}]'}"


def value(values: Mapping[str, SourceValue], attribute: str) -> object:
    """Return the value of an attribute, or None."""
    source_value = values.get(attribute)
    return None if source_value is None else source_value.value
