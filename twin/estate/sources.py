"""Contents of the texts of an estate: the TOML file, CFRM policies, MQSC definitions, and memberships.

`twin.estate.stores` and `twin.estate.queues` compose the estate from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twin.estate.cfrm import Policies
from twin.estate.checks import SourceValue
from twin.estate.errors import EstateError, Problems, did_you_mean
from twin.estate.model import QueueManager
from twin.estate.mqsc import Definitions, Owner, Surroundings
from twin.estate.toml_text import Entry, Import, TomlEstate, read_text


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
