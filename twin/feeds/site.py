"""Files that a site has: what each of them is, the estate that they show, and the recording that they make.

Their clocks are compared by what they show: a log that was read in the wrong zone has the right levels too early.
"""

from __future__ import annotations

import heapq
import os
import re
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from twin.base.errors import UsageError
from twin.base.listings import file_lines
from twin.estate import Estate, group_prefix
from twin.estate.errors import Problems
from twin.estate.mqsc import Definitions, Surroundings
from twin.estate.sources import read_text, toml_string
from twin.events import Event
from twin.feeds.estate_import import CFRM, DS_BLOCK, estate_text, is_empty, join_data_sets, look_at, unverified
from twin.feeds.facts import EstateFacts
from twin.feeds.importing import behind_gaps, describe_file, ends_of_gaps, import_files, read_pages, recorded
from twin.feeds.intake import Intake, with_resync
from twin.feeds.json_pages import objects_of
from twin.feeds.protocol import FORMATS, FeedOptions, Page, make_feed
from twin.recordings.files import SUFFIXES, RecordingWriter

# --- clocks of files --------------------------------------------------------------------------------------------------
# Two sources that show the same level of a store (the log of one member and that of another, a log and SMF) must agree.
# Where they do not, but would with one of them moved by half hours, its zone is wrong.

_HALF_HOUR = 1_800_000_000  # microseconds
_MAX_SHIFT = 28  # half hours: zones are 14 h ahead of UTC at most
_NEAR = 10 * 60_000_000  # microseconds within which a level is compared with the next one
_MIN_POINTS = 12
_MAX_POINTS = 2_000
_FITS = 0.02  # of the range of the levels: the mean difference of series that agree
_BETTER = 5.0  # times that a moved clock must fit better
_LEVELS = ("ents_used", "pages_used", "messages", "depth")

Series = list[tuple[int, float]]  # (microseconds, level)
Source = tuple[str, str]  # format, queue manager


def clock_lines(events: Mapping[str, Callable[[], Iterable[Event]]]) -> list[str]:
    """Return a line for each queue manager whose log was read in the wrong zone, by its levels."""
    lines: dict[Source, str] = {}
    for (store, what), sources in sorted(_series(events).items()):
        for source, other in combinations(sorted(sources), 2):
            if not FORMATS[source[0]].has_true_clock and FORMATS[other[0]].has_true_clock:
                source, other = other, source
            shift = _shift(sources[source], sources[other])
            if shift:
                by = source[0].upper() if FORMATS[source[0]].has_true_clock else source[1]
                lines.setdefault(other, _line(other[1], shift, f"{what} of {store}", by))
    return list(lines.values())


def _line(qmgr: str, shift: int, what: str, by: str) -> str:
    """Return the line about a queue manager. shift: half hours; by: whose levels its levels were compared with."""
    hours = "one hour" if abs(shift) == 2 else f"{abs(shift) / 2:g} hours"
    when = "later" if shift > 0 else "earlier"
    return f"{qmgr}: {hours} off: its levels ({what}) are those of {by} {hours} {when}; expected: --zone FILE=ZONE"


def _series(events: Mapping[str, Callable[[], Iterable[Event]]]) -> dict[tuple[str, str], dict[Source, Series]]:
    """Return the measured levels by store and name, and source."""
    series: dict[tuple[str, str], dict[Source, Series]] = defaultdict(lambda: defaultdict(list))
    for name, read in events.items():
        for event in read():
            if event["op"] != "MEASURE":
                continue
            for what, level in _levels(event):
                own = series[event["store"], what][name, event["qmgr"]]
                if len(own) < _MAX_POINTS:
                    own.append((event["time"], level))
    return series


def _levels(event: Event) -> Iterator[tuple[str, float]]:
    measured = event["measured"]
    for name in _LEVELS:
        value = measured.get(name)
        if isinstance(value, int | float):
            yield name, float(value)
    for queue in measured.get("queues") or ():
        if "depth" in queue:
            yield f"depth of {queue['name']}", float(queue["depth"])


def _shift(right: Series, other: Series) -> int:
    """Return the half hours by which the other series is to be moved to agree; 0: it does, or nothing says so."""
    if min(len(right), len(other)) < _MIN_POINTS:
        return 0
    right, other = sorted(right), sorted(other)
    levels = [level for _, level in right]
    spread = max(levels) - min(levels)
    if not spread:
        return 0
    errors = {
        shift: error
        for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1)
        if (error := _difference(right, other, shift * _HALF_HOUR)) is not None
    }
    if not errors:
        return 0
    best = min(errors, key=lambda shift: (errors[shift], abs(shift)))
    if not best or errors[best] > _FITS * spread:
        return 0
    return best if errors.get(0, spread) > max(_BETTER * errors[best], _FITS * spread) else 0


def _difference(right: Series, other: Series, moved: int) -> float | None:
    """Return the mean difference of levels near in time, with the other series moved; None: too few are near."""
    times, total, number = [time for time, _ in right], 0.0, 0
    for time, level in other:
        place = bisect_left(times, time + moved)
        near = min(
            (right[own] for own in (place - 1, place) if 0 <= own < len(right)),
            key=lambda point: abs(point[0] - time - moved),
        )
        if abs(near[0] - time - moved) <= _NEAR:
            total, number = total + abs(near[1] - level), number + 1
    return total / number if number >= _MIN_POINTS else None


# --- files, estate, recording -----------------------------------------------------------------------------------------

MQSC, RECORDING = "mqsc", "recording"
_LOOKED_AT = 8 << 20  # bytes of a file that show its format
_POLICY = re.compile(
    r"\s*(?:[0-9]{1,6}\s+)?(?:DATA\s+TYPE\(CFRM\)|DEFINE\s+POLICY|STRUCTURE\s+NAME\()|ADMINISTRATIVE DATA UTILITY:",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"\s*DEF(?:INE)?\s+(?:QL(?:OCAL)?|QA(?:LIAS)?|QR(?:EMOTE)?|CFSTRUCT|ST(?:GCLASS|C)|PSID)\b", re.IGNORECASE
)
_OWNER = re.compile(r"\* *(?:Queue manager name: *|CSQUTIL\b.*\bMAKEDEF +)(\S{1,48})")  # of dmpmqcfg and of CSQUTIL
_PLATFORM = re.compile(r"\* *Queue manager platform: *(\S+)")
_HEADING = 30  # lines of a file of MQSC that may say whose it is
# Files that sites have and that show nothing of stores: how they begin, what they are, and what shows it.
_RUNMQSC = "the output of runmqsc with DISPLAY QLOCAL(*) ALL and DISPLAY QSTATUS(*) TYPE(QUEUE) ALL"
_KNOWN = (
    (
        re.compile(r"Module Name: qm\.ini|^Log:\n\s+LogPrimaryFiles=", re.MULTILINE),
        "qm.ini of a queue manager",
        _RUNMQSC,
    ),
    (
        re.compile(r"Module Name: mqs\.ini|^QueueManager:\n\s+Name=", re.MULTILINE),
        "mqs.ini of an installation",
        _RUNMQSC,
    ),
    (re.compile(r" - Process\([0-9.]+\) User\("), "an error log of a queue manager (AMQERR01.LOG)", _RUNMQSC),
    (
        re.compile(r"^1? +(?:[A-Z] ){2,}.*\n(?:.*\n){0,4}.*\bRPT VERSION\b", re.MULTILINE),
        "an RMF Postprocessor report without coupling facilities",
        "the report Coupling Facility Activity (REPORTS(CF)), SMF 74 subtype 4, or the DDS",
    ),
)
_ASSUMED_MEMBER = "QM01"  # of a queue-sharing group of which nothing but a policy was seen
_WRITE_EVENTS = 10_000  # events per write
_MAX_NAMED = 8


class UnknownFileError(UsageError):
    """A file in which no reader finds anything; `seen`: what it seems to be, `instead`: what is of use, or ""."""

    def __init__(self, path: Path, seen: str, instead: str, expected: str) -> None:
        self.path, self.seen, self.instead = path, seen, instead
        super().__init__(f"{path}: it looks like {seen}; expected: {instead or expected}")


class SiteFile(NamedTuple):
    """A file of a site."""

    format_name: str  # one of FORMATS, cfrm, mqsc, or recording
    path: Path
    owner: str = ""  # queue manager or queue-sharing group of definitions in MQSC, policy of cfrm; "": not known


def site_file(format_name: str, file: str) -> SiteFile:
    """Return a file of a format; the path has OWNER= in front for mqsc and cfrm."""
    owner, equals, path = file.partition("=")
    if format_name in (MQSC, CFRM) and equals and path and "/" not in owner:
        return SiteFile(format_name, Path(path), owner)
    return SiteFile(format_name, Path(file))


class MissingGroup(NamedTuple):
    """A queue-sharing group that no file describes."""

    text: str  # what is missing, and the option to add
    option: str  # value of --group, with the queue managers that were seen
    is_needed: bool  # the estate cannot be read without it


class SiteEstate(NamedTuple):
    """An estate as its file's text, a line for each thing that the data do not show, and groups to describe first."""

    text: str
    missing: tuple[str, ...]
    groups: tuple[MissingGroup, ...]


class SiteRecording(NamedTuple):
    """An intake a format, the number of events of their recording, and a line for each clock that does not fit."""

    intakes: list[Intake]
    events: int
    clocks: tuple[str, ...] = ()


def recognise(path: Path, options: FeedOptions) -> SiteFile:
    """Return a file with its format: that whose reader finds most in its beginning. A recording is known by its name.
    UnknownFileError: no reader finds anything in it. UsageError: it cannot be read.
    """
    for page in read_pages([path]):
        if path.name.endswith(SUFFIXES):
            return SiteFile(RECORDING, path)
        head = bytes(page.data[:_LOOKED_AT])
        if _has(_POLICY, head):
            return SiteFile(CFRM, path)
        is_empty = not head.strip(b"\0")  # such as a sparse file
        objects = {
            name: 0 if is_empty else _objects(name, head, page, options) for name, own in FORMATS.items() if own.is_file
        }
        best = max(objects, key=objects.__getitem__)
        if objects[best]:
            return SiteFile(best, path)
        if _has(_DEFINITION, head):
            return SiteFile(MQSC, path, _heading(head)[0])
        text = "\n".join(line.text for line in islice(file_lines(head), _HEADING))
        known = next(((seen, instead) for own, seen, instead in _KNOWN if own.search(text)), None)
        seen, instead = known or (describe_file(head), "")
    formats = ", ".join((RECORDING, CFRM, MQSC, *(name for name, own in FORMATS.items() if own.is_file)))
    raise UnknownFileError(path, seen, instead, f"a file of a format that is read: {formats}")


def _has(pattern: re.Pattern[str], head: bytes) -> bool:
    return any(pattern.match(line.text) for line in file_lines(head))


def _heading(head: bytes) -> tuple[str, str | None]:
    """Return the owner that the heading of a file of MQSC names, "" if it does not, and its platform."""
    owner, platform = "", None
    for line in islice(file_lines(head), _HEADING):
        named, on = _OWNER.match(line.text), _PLATFORM.match(line.text)
        owner = owner if named is None else named[1]
        platform = platform if on is None else "zos" if on[1].upper() in {"MVS", "ZOS", "Z/OS"} else "distributed"
    return owner, platform


def _objects(name: str, head: bytes, page: Page, options: FeedOptions) -> int:
    """Return the number of objects of a format in the beginning of a file.

    Some readers look at data only if the queue manager is known: any name will do here.
    """
    feed = make_feed(name, Intake(), replace(options, qmgr=options.qmgr or "QM01"))
    for part in objects_of(feed, Page(head, page.name, page.time)):
        for _ in feed.take(part):
            pass
    return feed.object_count


def see_estate(
    files: Sequence[SiteFile],
    folder: Path,
    options: FeedOptions,
    groups: Mapping[str, Sequence[str]],
    answers: Sequence[Page] = (),
) -> SiteEstate:
    """Return the estate that files and answers show. UsageError: unreadable, nothing of it, MQSC without owner."""
    readable = [own for own in files if own.format_name in (CFRM, *FORMATS)]
    intake = look_at(readable, options, None, groups, answers)
    if answers:
        _add_owners_of_data_sets(intake.facts)
    definitions = [own for own in files if own.format_name == MQSC]
    facts, owners = intake.facts, _owners(definitions, options.qmgr)
    lines_of_policy = _assume_members(facts) if not definitions else ()
    groups_to_add = _missing_groups(facts, owners)
    if is_empty(facts) and not definitions:
        if groups_to_add:
            return SiteEstate("", (), tuple(own._replace(is_needed=True) for own in groups_to_add))
        names = ", ".join([*(str(own.path) for own in files), *sorted({page.name for page in answers})][:_MAX_NAMED])
        raise UsageError(
            f"{names}: nothing of an estate was found; expected: data that show a queue manager or a store"
        )
    known_groups = {key for key, _ in facts.section("queue_sharing_group")}
    for owner in set(owners) - known_groups - _queue_managers(facts):
        facts.add("queue_manager", owner, MQSC, platform=_platform_of(owner, definitions, owners))
    for own, owner in zip(definitions, owners, strict=True):
        _add_block_sizes(own.path, owner, facts)
    join_data_sets(facts)
    seen = estate_text(facts)
    imports = map(_import_of, definitions, owners, repeat(folder), repeat(known_groups))
    complaints = (str(complaint) for complaint in intake.complaints)
    unasked = _unasked(facts, answers) if answers else ()
    lines = (*lines_of_policy, *seen.warnings, *unverified(facts, is_loaded=True), *unasked, *complaints)
    return SiteEstate(seen.text + "".join(imports), lines, groups_to_add)


def _add_block_sizes(path: Path, owner: str, facts: EstateFacts) -> None:
    """Add DSBLOCK of structures with data sets, from a file of MQSC, whose errors come with its import."""
    groups = {key for key, _ in facts.section("queue_sharing_group")}
    group = owner if owner in groups else facts.group_of(owner)
    if group is None:
        return
    problems = Problems()
    texts = Definitions(Surroundings({group: (owner,)}, {owner: group}, frozenset(), lambda *_: False), problems)
    with problems.collect():
        texts.read(read_text(path, str(path)), str(path), group=group)
    structures = texts.objects("structure", ("SHARED", group))
    for store in sorted({key.rpartition("/")[0] for key, _ in facts.section("smds")}):
        definition = structures.get(store.partition("/")[2]) if store.startswith(f"{group}/") else None
        if definition is not None:
            block = definition.values.get("ds_block")
            facts.add("structure", store, str(path), ds_block=DS_BLOCK if block is None else block.value)


def _add_owners_of_data_sets(facts: EstateFacts) -> None:
    """Add the members of groups that nobody asked, but that have data sets."""
    for key in [key for key, _ in facts.section("smds")]:
        group, _, qmgr = key.split("/")
        facts.add_member(group, qmgr, "SMDS")


def _unasked(facts: EstateFacts, answers: Iterable[Page]) -> Iterator[str]:
    """Yield a line for each thing that no queue manager knows, or that none was asked for, with what answers it."""
    structures = [key for key, own in facts.section("structure") if not {"init_size", "full_threshold"} & own.keys()]
    if structures:
        yield (
            f"CFRM policy: INITSIZE, SIZE, ALLOWAUTOALT and FULLTHRESHOLD of {_named(structures)}, which no queue"
            " manager knows; IXCMIAPU with DATA TYPE(CFRM) REPORT(YES) prints them: add its output to the command"
        )
    data_sets = [key for key, own in facts.section("smds") if "size" in own and "max_size" not in own]
    if data_sets:
        yield (
            f"SMDS {_named(data_sets)}: the free space of their volumes, to which they expand and which no queue"
            " manager knows; ISMF or DCOLLECT shows it: set max_size in estate.toml"
        )
    asked = {page.headers.get("mqweb.qmgr") for page in answers}
    for group, own in facts.section("queue_sharing_group"):
        silent = sorted(set(own["queue_managers"].value if "queue_managers" in own else ()) - asked)
        if not any(key.startswith(f"{group}/") for key, _ in facts.section("smds")):
            members = ",".join(own["queue_managers"].value) if "queue_managers" in own else "QM01,QM02"
            yield (
                f"members of {group} that were not asked, if there are any; DISPLAY GROUP shows all:"
                f" add --group {group}={members} with them"
            )
        if silent:
            yield (
                f"{', '.join(silent)} of {group} did not answer: page sets, and who has queues open there;"
                " add it to --qmgr, or start its command server"
            )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")


def _queue_managers(facts: EstateFacts) -> set[str]:
    members = (
        own["queue_managers"].value for _, own in facts.section("queue_sharing_group") if "queue_managers" in own
    )
    return {key for key, _ in facts.section("queue_manager")}.union(*members)


def _missing_groups(facts: EstateFacts, owners: Iterable[str]) -> tuple[MissingGroup, ...]:
    """Return the queue-sharing groups that no file describes: those of definitions, and of queue managers with data."""
    strangers = set(owners) - _queue_managers(facts) - facts.ungrouped
    needed = {owner for owner in strangers if facts.ungrouped or group_prefix(owner) in facts.unplaced}
    others = facts.memberless - needed if facts.ungrouped and not needed else set[str]()
    members = ",".join(sorted(facts.ungrouped))
    groups = []
    for group in sorted(needed | others):
        option = f"{group}={members or 'QM01,QM02'}"
        more = " and its other members, with commas" if members else ""
        text = f"no file names the members of {group}: add --group {option}{more}"
        groups.append(MissingGroup(text, option, group in needed))
    if members and not groups:
        option = f"QSG1={members}"
        text = f"no file names the queue-sharing group of {members}: add --group {option} with its name and all members"
        groups.append(MissingGroup(text, option, is_needed=False))
    return tuple(groups)


def _owners(files: Iterable[SiteFile], qmgr: str | None) -> list[str]:
    """Return whose definitions each file of MQSC has. UsageError: nothing says it of some."""
    owners = [(own.path, own.owner or qmgr or "") for own in files]
    unknown = [path for path, owner in owners if not owner]
    if unknown:
        words = [f"{MQSC}:QM01={path.name}" for path in unknown]
        raise UsageError(
            f"{', '.join(map(str, unknown))}: MQSC does not say whose definitions it has; expected: {' '.join(words)}"
            f" or, of a queue-sharing group, {MQSC}:QSG1={unknown[0].name}"
        )
    return [owner for _, owner in owners]


def _platform_of(owner: str, files: Sequence[SiteFile], owners: Sequence[str]) -> str | None:
    """Return the platform that a heading names of the owner of definitions; None: none does."""
    paths = [own.path for own, name in zip(files, owners, strict=True) if name == owner]
    platforms = [_heading(bytes(page.data[:_LOOKED_AT]))[1] for page in read_pages(paths)]
    return next(filter(None, platforms), None)


def _assume_members(facts: EstateFacts) -> tuple[str, ...]:
    """Give the groups of a policy a member, where no other file shows any queue manager; return what was assumed."""
    if _queue_managers(facts) or facts.ungrouped or len(facts.memberless) != 1:
        return ()
    [group] = facts.memberless
    facts.add_member(group, _ASSUMED_MEMBER, CFRM)
    return (f"queue managers of {group}: {_ASSUMED_MEMBER} is assumed; add --group {group}=QM01,QM02 with its members",)


def _import_of(file: SiteFile, owner: str, folder: Path, groups: Container[str]) -> str:
    """Return the table of an estate that reads a file of MQSC."""
    kind = "queue_sharing_group" if owner in groups else "queue_manager"
    path = os.path.relpath(file.path.absolute(), folder.absolute())
    return f"\n[[import]]\nmqsc = {toml_string(path)}\n{kind} = {toml_string(owner)}\n"


def record_site(
    files: Sequence[SiteFile],
    recording: Path,
    estate: Estate,
    options: FeedOptions,
    progress: Callable[[int], None] | None = None,
) -> SiteRecording:
    """Write the events of all files into one recording, in order of time. Without any, the previous content stays.

    The twin takes over every measurement of a store of which no file has puts and gets. UsageError: a file cannot be
    read, or the recording cannot be written.
    """
    paths: dict[str, list[Path]] = {}
    for own in files:
        if own.format_name in FORMATS:
            paths.setdefault(own.format_name, []).append(own.path)
    recordings = [own.path for own in files if own.format_name == RECORDING]
    with tempfile.TemporaryDirectory(prefix="mqtwin-start-") as folder:
        parts = {name: Path(folder) / f"{name}.ndjson.zst" for name in paths}
        intakes = [
            import_files(name, paths[name], part, estate, options, progress=progress) for name, part in parts.items()
        ]
        counted = _counted_stores((*parts.values(), *recordings), estate)
        ends = ends_of_gaps(intakes, estate)
        of_parts = (_believed(behind_gaps(recorded(part), ends), counted) for part in parts.values())
        merged = heapq.merge(*of_parts, *map(recorded, recordings), key=itemgetter("time"))
        with RecordingWriter(recording) as writer:
            while batch := list(islice(merged, _WRITE_EVENTS)):
                writer.write(batch)
            if not writer.events:
                writer.discard()
        clocks = clock_lines({name: partial(recorded, part) for name, part in parts.items() if part.exists()})
    return SiteRecording(intakes, writer.events, tuple(clocks))


def _counted_stores(files: Sequence[Path], estate: Estate) -> set[str]:
    queues = {
        (event["qmgr"], event["queue"]) for path in files for event in recorded(path) if event["op"] in ("PUT", "GET")
    }
    return {estate.routes[estate.queue_routes[queue]].store for queue in queues if queue in estate.queue_routes}


def _believed(events: Iterable[Event], counted: Container[str]) -> Iterator[Event]:
    """Yield events; a MEASURE of a store without puts and gets asks for a resync."""
    for event in events:
        is_alone = event["op"] == "MEASURE" and event["store"] not in counted
        yield with_resync(event) if is_alone else event
