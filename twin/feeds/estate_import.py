"""An estate of what feeds have seen, and its differences from an existing one.

The text is one that `twin.estate.load_estate` takes: an object without a value that it needs, such as a structure whose
size nothing has shown, is written as a comment and named in a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twin.base.errors import UsageError
from twin.base.listings import decode
from twin.estate import Estate, Structure, format_size, group_prefix
from twin.estate.attributes import LEVELS, SECTIONS, SIZES
from twin.estate.cfrm import Policies
from twin.estate.model import ADMINISTRATION
from twin.estate.rows import WRONG
from twin.estate.sources import toml_string
from twin.feeds.facts import MEASURED, EstateFacts, Fact
from twin.feeds.importing import feed_events, read_pages
from twin.feeds.intake import Intake, PassedOver
from twin.feeds.mqsc_objects import NAME_GROUP
from twin.feeds.protocol import FORMATS, FeedOptions, Page, make_feed

NO_GROUPS: Mapping[str, Iterable[str]] = {}
_GROUP_OPTION = "--group"  # source of groups that the user names
CFRM = "cfrm"  # the format of a CFRM policy text, which has facts and no events
REST = "rest"
_NEEDED = {
    "queue_sharing_group": "queue_managers",
    "structure": "size",
    "smds": "size",
    "page_set": "pages",
    "coupling_facility": "size",
}
_REMEDIES = {"smds": " (MQ's limit of 16 TB is assumed)", "queue_sharing_group": f"; expected: {NAME_GROUP}"}
_ALLOCATED = "CFSTATUS"  # source of sizes now, SIZEMAX
DS_BLOCK = 256 << 10  # bytes; DSBLOCK where a definition has none [IBM: MQ 9.4, DEFINE CFSTRUCT]
_OF_BLOCKS = "blocks of DSBLOCK"  # source of sizes of data sets
_ASSUMED_BLOCK = "DSBLOCK was not seen, MQ's default of 256K is assumed for its size"
_GROUP_LENGTH = 4  # characters of a queue-sharing group in a z/OS structure name, padded with @ [assumed]


@dataclass(slots=True)
class SeenEstate:
    """An estate as text, and warnings about it."""

    text: str
    warnings: list[str] = field(default_factory=list)


def look_at(
    files: Iterable[tuple[str, Path, str]],
    options: FeedOptions,
    estate: Estate | None = None,
    groups: Mapping[str, Iterable[str]] = NO_GROUPS,
    answers: Sequence[Page] = (),
) -> Intake:
    """Return the intake of feeds that have read files and answers only for what they show of an estate. `files`:
    format, path, and the policy to take of CFRM, or "" (`SiteFile`); CFRM comes last, when groups are known.
    UsageError: there is no such format, or a file cannot be read.
    """
    intake = Intake()
    _add_groups(intake.facts, groups, estate)
    if answers:
        for _ in intake.sift(feed_events(make_feed(REST, intake, options), answers)):
            pass
    for name, path, owner in sorted(files, key=lambda file: file[0] == CFRM):
        if name == CFRM:
            _read_policy(path, owner or None, intake)
        elif name not in FORMATS:
            formats = ", ".join(sorted((CFRM, *FORMATS)))
            raise UsageError(f"{name}: no such format; expected: {formats}. An estate takes MQSC by [[import]]")
        else:
            for _ in intake.sift(feed_events(make_feed(name, intake, options), read_pages([path], intake.complain))):
                pass  # facts only
    join_data_sets(intake.facts)
    return intake


def join_data_sets(facts: EstateFacts) -> None:
    """Add the sizes of data sets of which blocks were seen, in whatever order these and their DSBLOCK came."""
    for key, own in facts.section("smds"):
        blocks, size = own.get("blocks_total"), own.get("size")
        if blocks is None or (size is not None and size.source != _OF_BLOCKS):
            continue
        block = facts.value("structure", key.rpartition("/")[0], "ds_block")
        facts.add("smds", key, _OF_BLOCKS, size=blocks.value * (block or DS_BLOCK))


def _add_groups(facts: EstateFacts, groups: Mapping[str, Iterable[str]], estate: Estate | None) -> None:
    """Add the queue managers of queue-sharing groups that no data need to name; arguments as of `look_at`."""
    for group, qmgrs in groups.items():
        facts.add("queue_sharing_group", group, _GROUP_OPTION)
        for qmgr in qmgrs:
            facts.add_member(group, qmgr, _GROUP_OPTION)
    for name, config in () if estate is None else estate.queue_managers.items():
        if config.queue_sharing_group:
            facts.add_member(config.queue_sharing_group, name, estate.source if estate else "")


def is_empty(estate_facts: EstateFacts, estate: Estate | None = None) -> bool:
    """Return True if `look_at` has found nothing in its files. estate: the one that it was given."""
    known = {_GROUP_OPTION, None if estate is None else estate.source}
    return all(
        bool(facts) and all(fact.source in known for fact in facts.values()) for facts in estate_facts.objects.values()
    )


def _read_policy(path: Path, policy: str | None, intake: Intake) -> None:
    """Take the structures and coupling facilities of a CFRM policy; None: the active one that a DISPLAY has shown, or
    the only one. UsageError: it cannot be read, or has several policies and none of them was chosen.
    """
    policies = Policies()
    for page in read_pages([path], intake.complain):
        policies.read(decode(bytes(page.data)), str(path), policy, intake.facts.active_policy)
    for problem in policies.problems.messages:
        intake.complain("bad-value", str(path), f"left out: {problem}")
    for warning in policies.warnings:
        intake.complain("policy", str(path), warning)
    of_mq = {name[:_GROUP_LENGTH] for name in policies.structures if name[_GROUP_LENGTH:] == ADMINISTRATION}
    groups = _groups_of_policy(intake.facts, of_mq)
    unknown = []
    for name, structure in policies.structures.items():
        group = next((key for key, prefix in groups.items() if name.startswith(prefix)), None)
        short = name[_GROUP_LENGTH:]
        if group is None:
            intake.facts.unplaced.add(name[:_GROUP_LENGTH])
            if groups and name[:_GROUP_LENGTH] not in of_mq:  # MQ has its administration structure beside all others
                intake.pass_over(PassedOver("structure of other products", name))
            else:
                unknown.append(name)
        elif short:
            values = {attribute: value.value for attribute, value in structure.values.items()}
            intake.facts.add("structure", f"{group}/{short}", structure.where, **values)
    intake.facts.memberless.update(prefix.rstrip("@") for prefix in of_mq - set(groups.values()))
    if intake.facts.memberless & groups.keys():
        text = f"queue managers of {', '.join(groups)} are not known; expected: {NAME_GROUP}"
        intake.complain("no-group", str(path), text)
    if unknown:
        text = f"structures of no known queue-sharing group: {', '.join(unknown[:8])}; expected: {NAME_GROUP}"
        intake.complain("no-group", str(path), text)


def _groups_of_policy(facts: EstateFacts, of_mq: Iterable[str]) -> dict[str, str]:
    """Return the prefix of the structures of each known group; from a policy alone, those of MQ in it."""
    groups = {key: group_prefix(key) for key, _ in facts.section("queue_sharing_group")}
    if groups or facts.ungrouped or any(facts.section("queue_manager")):
        return groups
    groups = {prefix.rstrip("@"): prefix for prefix in sorted(of_mq)}
    facts.memberless.update(groups)
    return groups


# --- text ------------------------------------------------------------------------------------------------------------


def estate_text(estate_facts: EstateFacts) -> SeenEstate:
    """Return the estate that was seen, in the order of the sections of docs/estate.md."""
    result = SeenEstate("schema = 1\n")
    for section in SECTIONS:
        for key, facts in estate_facts.section(section):
            result.text += _table(estate_facts, section, key, facts, result.warnings)
    return result


def _table(estate_facts: EstateFacts, section: str, key: str, facts: dict[str, Fact], warnings: list[str]) -> str:
    values = _checked(section, key, facts, warnings)
    if values is None:
        return ""
    facility = values.get("coupling_facility")
    if facility is not None and estate_facts.value("coupling_facility", facility, "size") is None:
        del values["coupling_facility"]
        warnings.append(f"structure {key}: the size of its coupling facility {facility} was not seen; it is left out")
    missing = _missing(estate_facts, section, key, values)
    if section == "smds" and _is_block_assumed(estate_facts, key, facts):
        warnings.append(f"smds {key}: {_ASSUMED_BLOCK}")
    lines = [f"[{section}.{_key(key)}]"]
    lines += [f"{name} = {_value(name, value)}" for name, value in values.items()]
    if missing is None:
        return "\n" + "\n".join(lines) + "\n"
    warnings.append(f"{section} {key}: {missing}")
    return "\n" + "\n".join(f"# {line}" for line in (*lines, missing)) + "\n"


def _is_block_assumed(estate_facts: EstateFacts, key: str, facts: Mapping[str, Fact]) -> bool:
    of_blocks = "size" in facts and facts["size"].source == _OF_BLOCKS
    return of_blocks and estate_facts.value("structure", key.rpartition("/")[0], "ds_block") is None


def _missing(estate_facts: EstateFacts, section: str, key: str, values: dict[str, Any]) -> str | None:
    """Return what an object lacks to stand in an estate, or None."""
    needed = _NEEDED.get(section)
    if needed is not None and needed not in values:
        return f"its {needed} was not seen{_REMEDIES.get(section, '; no forecast without it')}"
    owner = key.split("/", maxsplit=1)[0]
    if section in {"structure", "smds"} and not estate_facts.value("queue_sharing_group", owner, "queue_managers"):
        return "the queue managers of its queue-sharing group were not seen"
    if section == "smds" and estate_facts.value("structure", "/".join(key.split("/")[:2]), "size") is None:
        return "its structure has no size"
    if section == "queue":
        return _missing_of_queue(estate_facts, key, values)
    if section == "storage_class":
        page_set = f"{key.split('/', maxsplit=1)[0]}/{values.get('page_set')}"
        if estate_facts.value("page_set", page_set, "pages") is None:
            return f"page set {_page_set(page_set)} was not seen"
    return None


def _missing_of_queue(estate_facts: EstateFacts, key: str, values: dict[str, Any]) -> str | None:
    owner = key.split("/", maxsplit=1)[0]
    structure, storage_class = values.get("structure"), values.get("storage_class")
    if structure is not None:
        store = f"{owner}/{structure}"
        return None if estate_facts.value("structure", store, "size") else f"structure {store} has no size"
    if storage_class is None:
        return "neither a structure nor a storage class was seen"
    page_set = estate_facts.value("storage_class", f"{owner}/{storage_class}", "page_set")
    has_pages = page_set is not None and estate_facts.value("page_set", f"{owner}/{page_set}", "pages") is not None
    return None if has_pages else f"the page set of storage class {storage_class} was not seen"


def _checked(section: str, key: str, facts: dict[str, Fact], warnings: list[str]) -> dict[str, Any] | None:
    """Return the values that an estate takes; None if it does not take the name."""
    form = SECTIONS[section]
    parts = key.split("/", len(form.key) - 1)
    try:
        if len(parts) != len(form.key):
            raise ValueError(f"expected: a name like {form.example}")
        for check, part in zip(form.key, parts, strict=True):
            check(part)
    except WRONG as wrong:
        warnings.append(f"{section} {key}: {wrong}; left out")
        return None
    values = {}
    attributes = LEVELS if section == "structure" and parts[-1] == ADMINISTRATION else form.attributes
    for name, fact in sorted(facts.items()):
        check_value = attributes.get(name)
        if check_value is None:
            continue
        try:
            check_value(fact.value)
        except WRONG as wrong:
            warnings.append(f"{section} {key}: {name} = {fact.value} of {fact.source}: {wrong}; left out")
        else:
            values[name] = fact.value
    return values


def _key(key: str) -> str:
    return key if key.isascii() and key.isalnum() else toml_string(key)


def _value(name: str, value: Any) -> str:
    if name in SIZES and isinstance(value, int) and value >= 1024:
        return json.dumps(format_size(value))
    return json.dumps(value)


# --- advice and differences ------------------------------------------------------------------------------------------


def unverified(estate_facts: EstateFacts, *, is_loaded: bool = False) -> Iterator[str]:
    """Yield a warning per capacity that sources dispute or nothing has shown, without those of a loaded estate."""
    for section, key, name, before, after in estate_facts.conflicts:
        if _is_growth(estate_facts, key, name, before, after):
            continue
        before_text, after_text = _text(name, before.value), _text(name, after.value)
        yield f"{section} {key}: {name} differs: {before_text} in {before.source}, {after_text} in {after.source}"
    for key, facts in estate_facts.section("page_set"):
        if "expand" in facts and facts["expand"].value != "NONE" and not (is_loaded and _cannot_expand(facts)):
            yield f"page set {_page_set(key)}: {_unverified_expansion(facts)}"
    for key, facts in estate_facts.section("structure"):
        if "size" in facts and key not in estate_facts.allocated:
            size = format_size(facts["size"].value)
            yield f"structure {key}: its size {size} is of {facts['size'].source}; it was not seen allocated"
        if not is_loaded:
            yield from _unverified_data_sets(estate_facts, key, facts)
    for key, facts in estate_facts.section("queue_file"):
        if "max_size" not in facts:
            yield f"queue file {key}: its maximum size was not seen, MQ's default of 2 TB is assumed"


def _is_growth(estate_facts: EstateFacts, structure: str, name: str, before: Fact, after: Fact) -> bool:
    """Return True for sizes of a structure that do not contradict each other: allocated, from INITSIZE to SIZE."""
    if name != "size" or before.source.startswith(MEASURED) == after.source.startswith(MEASURED):
        return False
    allocated, defined = (before, after) if before.source.startswith(MEASURED) else (after, before)
    initial = estate_facts.value("structure", structure, "init_size") or defined.value
    return bool(initial <= allocated.value <= defined.value)


def _page_set(key: str) -> str:
    """Return the store of a page set's key: QM01/PS04 of QM01/4."""
    qmgr, _, number = key.partition("/")
    return f"{qmgr}/PS{int(number):02d}" if number.isdecimal() else key


def _cannot_expand(facts: dict[str, Fact]) -> bool:
    return facts["expand"].value == "USER" and "secondary_pages" not in facts


def _unverified_expansion(facts: dict[str, Fact]) -> str:
    if _cannot_expand(facts):
        return "EXPAND(USER), and its secondary extent was not seen: it does not expand here; set secondary_pages"
    limit = "MQ's limit of 64 GB is assumed; set max_pages"
    return f"EXPAND({facts['expand'].value}), and the space on its volumes was not seen: {limit}"


def _unverified_data_sets(estate_facts: EstateFacts, key: str, facts: dict[str, Fact]) -> Iterator[str]:
    group, _, structure = key.partition("/")
    if structure == ADMINISTRATION or ("offload" in facts and facts["offload"].value != "SMDS"):
        return
    for qmgr in estate_facts.value("queue_sharing_group", group, "queue_managers") or ():
        if estate_facts.value("smds", f"{group}/{structure}/{qmgr}", "size") is None:
            yield f"SMDS of {qmgr} for {key}: its size was not seen, MQ's limit of 16 TB is assumed"


def differences(estate_facts: EstateFacts, estate: Estate) -> Iterator[str]:
    """Yield a line per difference between what was seen and an existing estate."""
    for section in ("structure", "page_set", "smds", "queue_file", "coupling_facility"):
        for key, facts in estate_facts.section(section):
            yield from _differences_of(section, key, facts, estate)
    yield from _differences_of_queues(estate_facts, estate)
    looked = {(section, key.split("/")[0]) for section, key in estate_facts.objects}
    for name, config in estate.stores.items():
        section = config.kind
        if section in {"structure", "page_set"} and (section, name.split("/")[0]) in looked:
            key = name if section == "structure" else f"{name.split('/')[0]}/{int(name[-2:])}"
            if (section, key) not in estate_facts.objects:
                yield f"{name}: in the estate, not seen"


def _differences_of(section: str, key: str, facts: dict[str, Fact], estate: Estate) -> Iterator[str]:
    config: Any
    if section == "smds":
        group, structure, qmgr = (*key.split("/"), "", "")[:3]
        store = estate.stores.get(f"{group}/{structure}")
        config = getattr(store, "smds", {}).get(qmgr)
        name = f"SMDS {key}"
    else:
        name = _page_set(key) if section == "page_set" else key
        config = estate.stores.get(name)
    if config is None:
        if section != "smds":
            yield f"{name}: seen ({_source(facts)}), not in the estate"
        return
    for attribute, fact in sorted(facts.items()):
        expected = getattr(config, attribute, None)
        if section == "structure" and attribute == "size" and _is_between(config, fact):
            continue
        if attribute in SECTIONS[section].attributes and expected is not None and expected != fact.value:
            before_text, after_text = (_text(attribute, value) for value in (expected, fact.value))
            yield f"{name}: {attribute} differs: {before_text} in the estate, {after_text} seen ({fact.source})"


def _is_between(config: Structure, fact: Fact) -> bool:
    """Return True for the size of an allocated structure from INITSIZE to SIZE: it may have any of these."""
    allocated = fact.source.startswith(_ALLOCATED)
    return allocated and (config.init_size or config.size) <= fact.value <= config.size


def _differences_of_queues(estate_facts: EstateFacts, estate: Estate) -> Iterator[str]:
    places = {
        (owner, route.queue): route.store
        for route in estate.routes
        if route.queue is not None
        for owner in (route.qmgr, route.store.split("/")[0])
    }
    for key, facts in estate_facts.section("queue"):
        owner, _, queue = key.partition("/")
        store = places.get((owner, queue))
        if store is None:
            yield f"queue {key}: seen ({_source(facts)}), not in the estate"
        elif "structure" in facts and store != f"{owner}/{facts['structure'].value}":
            fact = facts["structure"]
            yield f"queue {key}: store differs: {store} in the estate, {owner}/{fact.value} seen ({fact.source})"


def _source(facts: dict[str, Fact]) -> str:
    return next((fact.source for fact in facts.values()), "by name")


def _text(attribute: str, value: Any) -> str:
    return format_size(value) if attribute in SIZES and isinstance(value, int) else str(value)
