"""``mqtwin start``."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from cyclopts import Parameter

from deploy.commands.console import play_recording, serve, server_of
from deploy.console import DEFAULT_PORT
from deploy.console.server import Listen
from deploy.options.common import (
    TOKENS,
    FileUse,
    Flag,
    KafkaOptions,
    OutputFolder,
    Repeated,
    parse_address,
    parse_settings,
    words_of,
)
from deploy.options.feeds import FeedChoices, LiveSources, MqwebOptions, parse_groups, qmgr_names
from deploy.show.document import ZONE, Text
from deploy.show.morning import Answer, StoreAnswer, answer_document, store_answers, what_next
from deploy.show.summaries import (
    print_complaints,
    print_intake,
    print_not_understood,
    print_usage,
    show_progress,
    unread_lines,
)
from deploy.show.terminal import emit, kinds, print_command, print_line, print_warnings, printable, show
from streams.collecting.sources import load_position
from streams.kafka.settings import is_secret
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import OwnFolder, is_same_file, locked
from twin.base.units import as_count, as_text
from twin.estate import Estate, EstateError, PageSet, StoreConfig, Structure, load_estate
from twin.estate.sources import toml_string
from twin.feeds.estate_import import CFRM, REST
from twin.feeds.importing import feed_events, recorded, sort_key
from twin.feeds.intake import Intake
from twin.feeds.protocol import FORMATS, FeedOptions, Page, make_feed
from twin.feeds.site import (
    MQSC,
    RECORDING,
    MissingGroup,
    SiteFile,
    SiteRecording,
    UnknownFileError,
    recognise,
    record_site,
    see_estate,
    site_file,
)
from twin.forecast.outlook import MIN_LEVELS
from twin.playback.replays import replay
from twin.playback.timeline import Timeline
from twin.recordings.files import RecordingWriter
from twin.records import read_state_record

if TYPE_CHECKING:
    from deploy.live import Kafka

_DEFAULTS, _SERVER_DEFAULTS, _SOURCE_DEFAULTS = FeedChoices(), MqwebOptions(), LiveSources()
_FOLDER = Path("mqtwin-site")
_ESTATE, _RECORDING, _MISSING = "estate.toml", "recording.arrow", "missing.txt"
_LOCK = ".live.lock"
_RISK = "risk: "  # of an estate's warning about something that is known
_WRONG_USE = 2
_OF_LIVE = "--once, --spans, --smf, --dds, --bootstrap-servers and options of a server"


def _path_of(name: str) -> Path:
    """Return the path in FILE, FORMAT:FILE, mqsc:OWNER=FILE or cfrm:NAME=FILE."""
    prefix, colon, rest = name.partition(":")
    if not colon or prefix not in (RECORDING, CFRM, MQSC, *FORMATS):
        return Path(name)
    return site_file(prefix, rest).path


def start(
    files: Annotated[tuple[Annotated[str, FileUse(path_of=_path_of)], ...], Parameter(name="FILE", negative="")] = (),
    /,
    *,
    output: Annotated[OutputFolder | None, Parameter(name=("--output", "-o"))] = None,
    group: Repeated = (),
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    no_console: Flag = False,
    open_: Flag = False,
    flows: Literal["statistics", "accounting"] = "statistics",
    live: Repeated = (),
    once: Flag = False,
    no_resync: Flag = False,
    json_: Flag = False,
    sources: LiveSources = _SOURCE_DEFAULTS,
    kafka: KafkaOptions | None = None,
    server: MqwebOptions = _SERVER_DEFAULTS,
    choices: FeedChoices = _DEFAULTS,
) -> int | None:
    """Read files that a site has, print what fills next, when, why and what to do first, and show it in the console.

    An estate and a recording are made of them, and what is missing is said; a file that is not read is a line. Each is
    recognised by its content; FORMAT:FILE says what it is, mqsc:OWNER=FILE whose definitions a file of MQSC has, and a
    file .toml is an estate to use instead of the one that the data show. Without files it asks for them. A file of the
    folder that it did not write, or that was changed since, stays: the new one is estate.new.toml. With --live queue
    managers are asked instead, and a live twin runs until Ctrl-C: docs/live.md.

    Args:
        files: Files: SMF, job logs with DISPLAYs, CFRM policies, MQSC, statistics, an estate.
        output: Folder to write estate.toml, recording.arrow and missing.txt to. Default: mqtwin-site.
        group: Queue-sharing group and its queue managers, QSG1=QM01,QM02, where no data name them; may be repeated.
        listen: Address of the console, HOST:PORT on this machine; port 0: a free one.
        no_console: Do not serve the page for a browser: end when the files are written.
        open_: Open the page in the browser of this machine.
        flows: Source of puts and gets in SMF: statistics (115/216) or accounting (116).
        live: URL of the REST interface (mqweb) of the queue managers of --qmgr, whose live twin is to run; may be
            repeated, for one of each system.
        once: Ask once and print the stores, without Kafka and Spark.
        no_resync: Measurements test the live twin, as a collector of your own reports puts and gets.
        json_: Print the answer as JSON, and end.
        sources: What the live twin collects beside the levels.
        kafka: Kafka connection of the live twin. Default: an embedded broker, which keeps its data in the folder.
        server: Server of formats that are asked for by HTTP.
        choices: Facts that the data lack.
    """
    options = choices.feed_options(flows=flows)
    if live:
        feeds = sources.collected(choices, flows, has_kafka=kafka is not None)
        own = _Live(",".join(live), tuple(files), output or _FOLDER, parse_groups(group), choices, server, kafka, feeds)
        if once:
            return _ask_once(own)
        return _run_live(own, None if no_console else listen, opens=open_, has_resync=not (no_resync or feeds))
    if once or no_resync or kafka is not None or server != _SERVER_DEFAULTS or sources != _SOURCE_DEFAULTS:
        raise UsageError(f"{_OF_LIVE} are of a live twin; expected: --live URL")
    names, path = (files, output or _FOLDER) if files else _ask(output)
    again = TOKENS.get() or ("start", *names)
    if not files:
        again = (*again, *names, *(() if output else ("-o", str(path))))
    with redirect_stdout(sys.stderr) if json_ else nullcontext():
        read = _read_files(names, path, options, choices.site_zone, parse_groups(group), again)
        if read is None:
            return _WRONG_USE
        timeline = (
            None if read.recording is None or read.estate is None else play_recording(read.recording, read.estate)
        )
    emit(answer_document(_answer(read, timeline, choices.site_zone)), as_json=json_)
    if timeline is not None and not (no_console or json_):
        host, port = parse_address(listen)
        serve(lambda _: server_of(timeline, Listen(host=host, port=port)), opens=open_)
    return None


class _Read(NamedTuple):
    """Result of reading files. estate, recording: None: there is none, and it was said."""

    described: Path
    files: list[SiteFile]
    not_read: list[UnknownFileError]
    estate: Estate | None = None
    recording: Path | None = None
    clocks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def _answer(read: _Read, timeline: Timeline | None, zone: str) -> Answer:
    stores, others = list[StoreAnswer](), 0
    if timeline is not None:
        ZONE.set(timeline.estate.site.clock)
        states = map(read_state_record, timeline.states(timeline.times[-1]).values())
        stores, others = store_answers(states, timeline.alerts)
    return Answer(
        time=None if timeline is None else as_text(timeline.times[-1]),
        zone=zone if timeline is None else timeline.estate.site.zone,
        stores=tuple(stores),
        others=others,
        estate=str(read.described),
        recording=None if read.recording is None else str(read.recording),
        not_read=tuple(map(str, read.not_read)),
        clocks=read.clocks,
        missing=read.missing,
        next=tuple(what_next(read.files, read.not_read)),
    )


def _read_files(
    names: Sequence[str],
    path: Path,
    options: FeedOptions,
    zone: str,
    groups: Mapping[str, Sequence[str]],
    again: Sequence[str],
) -> _Read | None:
    """Return what was read of files; None: the user has to add something, which was said. zone: "" if not known."""
    estates = [Path(name) for name in names if name.endswith(".toml")]
    if len(estates) > 1:
        raise UsageError(f"{', '.join(map(str, estates))}: several estates; expected: at most one file .toml")
    site_files, not_read = _site_files(names, options)
    if not site_files and not estates:
        return _Read(path / _ESTATE, site_files, not_read)
    folder = OwnFolder(path, [*(own.path for own in site_files), *estates])
    lines: tuple[str, ...] = ()
    if estates:
        described = estates[0]
    else:
        seen = see_estate(site_files, path, options, groups)
        _say_causes(seen.groups, again)
        if any(own.is_needed for own in seen.groups):
            return None
        text = _with_site(seen.text, zone)
        described, lines = _write(folder, _ESTATE, text), seen.missing
        if described.name != _ESTATE:
            print_line("mqtwin: to use the one that stays, run")
            print_command((*again, str(path / _ESTATE)))
    try:
        estate = load_estate(described)
    except EstateError as error:
        for message in (str(error), *error.others, *kinds(lines)):
            print_line(f"mqtwin: {message}")
        print_line(f"mqtwin: correct {described}, then run")
        print_command(again if estates else (*again, str(described)))
        return None
    ZONE.set(estate.site.clock)
    read = _Read(described, site_files, not_read, estate)
    if not _with_events(site_files):
        missing = (*lines, *estate.warnings)
        not_known = _say_missing(folder, missing)
        print(printable(f"{as_count(len(estate.stores), 'store')} in {described}; {not_known}"))
        print_line("mqtwin: no file shows what they hold: add a job log with DISPLAYs, SMF, or statistics")
        return read._replace(missing=missing)
    recording, clocks, missing = _record(site_files, folder, estate, options, lines)
    return read._replace(recording=recording, clocks=clocks, missing=missing)


def _with_site(text: str, zone: str) -> str:
    """Return the text of an estate with the zone of its site. zone: "": it is not known."""
    return f"{text}\n[site]\nzone = {toml_string(zone)}\n" if zone else text


def _say_causes(groups: Sequence[MissingGroup], again: Sequence[str]) -> None:
    """Print which groups no file describes, and the command that does."""
    for own in groups:
        print_line(f"mqtwin: {own.text}")
    if groups:
        print_command((*again, *(word for own in groups for word in ("--group", own.option))))


def _write(folder: OwnFolder, name: str, text: str) -> Path:
    """Write a result into the folder and return its path; a file of that name that is not as `start` wrote it stays."""
    path = folder.write(name, text)
    _say_kept(folder, name, path)
    return path


def _say_kept(folder: OwnFolder, name: str, path: Path) -> None:
    if path.name != name:
        print_line(f"mqtwin: {folder.path / name} is read, or not as `mqtwin start` wrote it: it stays; see {path}")


def _site_files(names: Sequence[str], options: FeedOptions) -> tuple[list[SiteFile], list[UnknownFileError]]:
    """Return the files that are no estate and are read, and the others; print what each is or seems to be. UsageError:
    none is read or of MQ, or one is missing.
    """
    files, unknown = list[SiteFile](), list[UnknownFileError]()
    for name in names:
        try:
            if not name.endswith(".toml"):
                files.append(_site_file(name, options))
        except UnknownFileError as error:
            unknown.append(error)
    if unknown and not files and not any(error.instead for error in unknown):
        first, *others = unknown
        raise UsageError(f"{'; '.join(map(str, others))}; expected: a file that is read; {first}") if others else first
    for own in files:
        print(printable(f"{own.path}: {own.format_name}{f' of {own.owner}' if own.owner else ''}"))
    for reason in unknown:
        print_line(f"mqtwin: not read: {reason}")
    return files, unknown


def _with_events(files: Iterable[SiteFile]) -> list[Path]:
    return [own.path for own in files if own.format_name in (RECORDING, *FORMATS)]


def _record(
    files: Sequence[SiteFile], folder: OwnFolder, estate: Estate, options: FeedOptions, lines: tuple[str, ...]
) -> tuple[Path, tuple[str, ...], tuple[str, ...]]:
    """Write recording.arrow and missing.txt, and say what is in them.

    Return the recording, clocks that do not fit, and what is missing. Its own recording is used as it is, if no other
    file has events. The lines are about what the data do not show of the estate. MqtwinError: no event was made.
    """
    with_events = _with_events(files)
    if len(with_events) == 1 and is_same_file(with_events[0], folder.path / _RECORDING):
        recording = with_events[0]
        written = SiteRecording([], sum(1 for _ in recorded(recording)))
    else:
        recording = folder.free(_RECORDING)
        with show_progress("import") as advance:
            written = record_site(files, recording, estate, options, lambda events: advance(None, events))
        if written.events:
            folder.note_written(recording)
            _say_kept(folder, _RECORDING, recording)
    intakes, events, clocks = written
    for line in clocks:
        print_line(f"mqtwin: warning: {line}")
    for intake in intakes:
        print_intake(intake, printed=len(intake.complaints))
        lines += (*map(str, intake.complaints), *intake.notes)
    few = _lacking_levels(recording, estate) if events else []
    missing = (*lines, *few, *estate.warnings)
    not_known = _say_missing(folder, missing)
    if not events:
        print_not_understood(*intakes)
        raise MqtwinError(f"{', '.join(map(str, with_events))}: no event was made; the lines above say why")
    print(printable(f"{as_count(events, 'event')} in {recording}; {not_known}"))
    print_not_understood(*intakes)
    return recording, clocks, tuple(dict.fromkeys(missing))


def _say_missing(folder: OwnFolder, lines: Sequence[str]) -> str:
    """Write missing.txt and print each kind of its lines; return how many lines are where."""
    missing = tuple(dict.fromkeys(lines))
    place = _write(folder, _MISSING, "".join(f"{printable(line)}\n" for line in missing))
    for line in kinds(missing):
        print_line(f"mqtwin: {line}" if line.startswith(_RISK) else f"mqtwin: not known: {line}")
    return f"{as_count(len(missing), 'line')} about what is not known in {place}"


def _lacking_levels(recording: Path, estate: Estate) -> list[str]:
    """Return a line for each store of which a recording has too few levels, and no puts to forecast it by."""
    times, reported = defaultdict[str, set[object]](set), set[str]()
    for event in recorded(recording):
        if event["op"] == "MEASURE" and event["measured"].get("resync"):
            times[event["store"]].add(event["time"])
        elif event["op"] == "PUT" and (route := estate.queue_routes.get((event["qmgr"], event["queue"]))) is not None:
            reported.add(estate.routes[route].store)
    few = {store: len(own) for store, own in sorted(times.items()) if len(own) < MIN_LEVELS and store not in reported}
    return [f"{store}: time to full not known yet, {known} of {MIN_LEVELS} levels" for store, known in few.items()]


def _site_file(text: str, options: FeedOptions) -> SiteFile:
    """Return the file of an argument: FILE, FORMAT:FILE or mqsc:OWNER=FILE. UsageError: what it is cannot be told."""
    name, colon, rest = text.partition(":")
    if not colon or name not in (RECORDING, CFRM, MQSC, *FORMATS):
        return recognise(Path(text), options)
    return site_file(name, rest)


def _ask(output: Path | None) -> tuple[tuple[str, ...], Path]:
    """Ask for files and for the folder. UsageError: nobody can answer, or there is no file."""
    if not sys.stdin.isatty():
        raise UsageError(
            "there is no file to start with; expected: mqtwin start FILE..., such as SMF, a job log, a CFRM policy"
        )
    names = []
    while name := input("File (SMF, job log, CFRM policy, MQSC, statistics; Enter ends): ").strip():
        if _path_of(name).is_file():
            names.append(name)
        else:
            print_line(f"mqtwin: {name} is not a file")
    if not names:
        raise UsageError("there is no file to start with; expected: SMF, a job log, statistics")
    asked = "" if output is not None else input(f"Folder for the result ({_FOLDER}): ").strip()
    return tuple(names), output or Path(asked or _FOLDER)


# --- a live twin -----------------------------------------------------------------------------------------------------


class _Live(NamedTuple):
    url: str  # several with commas
    files: tuple[str, ...]
    output: Path
    groups: dict[str, list[str]]
    choices: FeedChoices
    server: MqwebOptions
    kafka: KafkaOptions | None
    feeds: Mapping[str, tuple[str, ...]]  # beside the levels: arguments of `mqtwin collect` by name

    @property
    def options(self) -> FeedOptions:
        """Facts that the answers lack; each names its own queue manager."""
        return replace(self.choices.feed_options(), qmgr=None)


class _Asked(NamedTuple):
    """Answers of the definitions and of one round, why others are missing, who did not answer at all, and the cost."""

    answers: list[Page]
    failures: list[str]
    silent: list[str]
    cost: tuple[int, int]  # requests, and bytes of answers, of the round

    def error(self) -> MqtwinError:
        """Return the error where there is no answer."""
        return MqtwinError("; ".join(self.failures) or "no answer shows anything; expected: rights to DISPLAY")


def _ask_once(live: _Live) -> int | None:
    """Ask once, and print the usage of each store, and the queues that hold messages and that nobody reads."""
    asked = _ask_queue_managers(live)
    if not asked.answers:
        raise asked.error()
    estate = _live_estate(live, asked)
    if estate is None:
        return _WRONG_USE
    intake = Intake(estate, resync=True)
    events = sorted(intake.sift(feed_events(make_feed(REST, intake, live.options), asked.answers)), key=sort_key)
    with tempfile.TemporaryDirectory(prefix="mqtwin-start-") as folder:
        recording = Path(folder) / "round.ndjson"
        with RecordingWriter(recording) as writer:
            writer.write(events)
        states = replay(recording, estate, course=False).states if events else {}
    print_complaints(intake)
    print_usage(states.values(), has_forecast=False)
    show(*map(Text, unread_lines(events)))
    _say_cost(live, asked, estate, lambda line: print_line(f"mqtwin: {line}"))
    print_line(f"mqtwin: a forecast needs {MIN_LEVELS} rounds; for a live twin run")
    print_command(word for word in TOKENS.get() if word != "--once")
    return None


def _run_live(live: _Live, listen: str | None, *, opens: bool, has_resync: bool) -> int | None:
    from deploy.live import POSITION, LiveFeed, LiveSettings, LiveTwin, TimedLines, free_address

    began_s, say = time.monotonic(), TimedLines()
    kafka = None if live.kafka is None else _kafka(live.kafka)
    if listen is not None:
        host, port = parse_address(listen)
        Listen(host=host, port=port)
        listen = free_address(host, port) if port == DEFAULT_PORT else listen
    asked = None if live.output.exists() else _ask_queue_managers(live)  # then no twin runs in it
    OwnFolder(live.output).make()
    with locked(live.output / _LOCK, f"{live.output}: a live twin runs in it", "another folder, or its end"):
        asked = asked or _ask_queue_managers(live)
        estate = _live_estate(live, asked)
        if estate is None:
            return _WRONG_USE
        say(f"{estate.source}: {_numbers_of(estate.stores.values())}")
        _say_cost(live, asked, estate, say)
        _begin_anew(live.output / POSITION, live.url, say)
        if {"spans", "smf"} <= live.feeds.keys():
            say("warning: spans and SMF of a queue count its messages twice until a measurement corrects them")
        _prepare(live, say)
        resync = ("--resync",) if has_resync else ()
        settings = LiveSettings(
            folder=live.output,
            estate=Path(estate.source),
            stores=len(estate.stores),
            collect=("rest", f"--url={live.url}", *words_of(live.server), *words_of(live.choices), *resync),
            feeds=tuple(LiveFeed(name=name, collect=words) for name, words in live.feeds.items()),
            kafka=kafka,
            listen=listen,
            opens=opens,
        )
        LiveTwin(settings, say, began_s).run()
    say("stopped; to continue, run")
    print_command(TOKENS.get())
    return None


def _ask_queue_managers(live: _Live) -> _Asked:
    """Ask for the definitions and for one round; again where answers name other members of a group."""
    names = qmgr_names(live.choices.qmgr)
    answers, failures, cost = _round(live, None)
    estate = _provisional(live, answers) if answers else None
    if estate is not None and not estate.queue_managers.keys() <= {*names, *_answering(answers)}:
        answers, failures, cost = _round(live, estate)
    return _Asked(answers, failures, [name for name in names if name not in _answering(answers)], cost)


def _round(live: _Live, estate: Estate | None) -> tuple[list[Page], list[str], tuple[int, int]]:
    """Return the answers about definitions and levels, why others are missing, and the cost of levels."""
    failures: list[str] = []
    mqweb = live.server.mqweb(
        live.url, live.choices.qmgr, estate, lambda _code, place, text: failures.append(f"{place}: {text}")
    )
    if estate is None:
        print_line(f"mqtwin: asking {live.choices.qmgr} at {live.url}")
    try:
        return [*mqweb.definitions(), *mqweb.levels()], failures, mqweb.cost
    finally:
        mqweb.close()


def _say_cost(live: _Live, asked: _Asked, estate: Estate, say: Callable[[str], None]) -> None:
    """Say what the live twin will ask of the queue managers in a minute."""
    mqweb = live.server.mqweb(live.url, live.choices.qmgr, estate, lambda *_: None)
    interval_s = live.server.interval_s or mqweb.usual_interval_s
    commands, size = (number * 60 / interval_s for number in asked.cost)
    say(
        f"live, a round each {interval_s:g} s (--interval-s): this will be {commands:,.0f} commands and"
        f" {size / 1e6:,.1f} MB a minute; --max-commands-per-minute bounds it"
    )


def _answering(answers: Iterable[Page]) -> set[str]:
    return {page.headers.get("mqweb.qmgr", "") for page in answers}


def _provisional(live: _Live, answers: Sequence[Page], files: Sequence[SiteFile] = ()) -> Estate | None:
    """Return the estate that answers and files show, without writing it; None if it cannot be read.

    Answers about the state of queues are left out where there are others: most of all, they show queue files alone.
    """
    defining = [page for page in answers if "QSTATUS" not in page.headers.get("mqweb.command", "")] or answers
    with tempfile.TemporaryDirectory(prefix="mqtwin-start-") as folder:
        path = Path(folder) / _ESTATE
        path.write_text(see_estate(files, Path(folder), live.options, live.groups, defining).text, encoding="utf-8")
        try:
            return load_estate(path)
        except EstateError:
            return None


def _live_estate(live: _Live, asked: _Asked) -> Estate | None:
    """Write estate.toml and missing.txt, say what is not known, and return the estate; None: it cannot be read.

    A file estate.toml that was changed stays, and is the estate; so does one of before where somebody did not answer.
    MqtwinError: There is no answer, and no earlier estate. UsageError: No store was found.
    """
    described, written = live.output / _ESTATE, None
    site_files, _ = _site_files(live.files, live.choices.feed_options())
    folder = OwnFolder(live.output, [own.path for own in site_files])
    missing: tuple[str, ...] = ()
    lacking = _lacking(live, asked, site_files) if described.is_file() else []
    if lacking:
        print_line(f"mqtwin: {described} of before stays: {', '.join(lacking)}; remove it to begin anew")
    elif not asked.answers:
        raise asked.error()
    else:
        seen = see_estate(site_files, live.output, live.options, live.groups, asked.answers)
        _say_causes(seen.groups, TOKENS.get())
        if any(own.is_needed for own in seen.groups):
            return None
        written, missing = _write(folder, _ESTATE, _with_site(seen.text, live.choices.site_zone)), seen.missing
    print_warnings(asked.failures)
    try:
        estate = load_estate(described)
    except EstateError as error:
        for message in (str(error), *error.others, *kinds(missing)):
            print_line(f"mqtwin: {message}")
        instead = "" if written in {None, described} else f", or replace it by {written}"
        print_line(f"mqtwin: correct {described}{instead}")
        return None
    if written is not None:
        silent = [
            f"{name} did not answer: nothing of it is in the estate; start again when it runs" for name in asked.silent
        ]
        print(_say_missing(folder, (*silent, *missing, *estate.warnings)))
    if not estate.stores:
        expected = "rights to DISPLAY CFSTATUS, USAGE, QLOCAL and QSTATUS"
        raise UsageError(f"{live.url}: no structure, page set or queue file in its answers; expected: {expected}")
    return estate


def _lacking(live: _Live, asked: _Asked, files: Sequence[SiteFile]) -> list[str]:
    """Return what answers lack of the estate that is there, a text each: it may be that they failed."""
    lacking = [f"{name} did not answer" for name in asked.silent]
    seen = _provisional(live, asked.answers, files) if asked.answers else None
    try:
        before = load_estate(live.output / _ESTATE)
    except EstateError:
        return lacking
    if seen is not None:  # queue files come and go with their queues
        gone = [store.name for store in before.stores.values() if store.kind in {Structure.kind, PageSet.kind}]
        lacking += [f"no answer shows {name}" for name in gone if name not in seen.stores]
    return lacking


def _numbers_of(stores: Iterable[StoreConfig]) -> str:
    """Return how many stores of each kind there are, and queues: `3 structures, 2 page sets, 41 queues`."""
    numbers = Counter(store.kind.replace("_", " ") for store in stores)
    queues = sum(len(store.queues) for store in stores)
    return ", ".join(as_count(number, name) for name, number in (*sorted(numbers.items()), ("queue", queues)))


def _begin_anew(position: Path, url: str, say: Callable[[str], None]) -> None:
    """Remove the position in another server: nothing in it is of use here."""
    try:
        load_position(position, url)
    except UsageError as error:
        say(f"{error}; it is removed")
        position.unlink(missing_ok=True)


def _prepare(live: _Live, say: Callable[[str], None]) -> None:
    """Fetch jars and compile kernels, once, where that is needed: the parts would do it at the same time."""
    from deploy.java.jars import KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars
    from twin.stores.warm_up import COMPILING, compiles, warm

    for name in (SPARK_CONNECTOR, *(() if live.kafka else (KAFKA_BROKER,))):
        ensure_jars(name)
    if compiles():
        say(COMPILING)
        warm()


def _kafka(options: KafkaOptions) -> Kafka:
    """Return a Kafka that is there. UsageError: a secret would stand in the process list."""
    secrets = [key for key in parse_settings("--kafka", options.kafka) if is_secret(key)]
    if secrets:
        raise UsageError(f"--kafka {secrets[0]}=...; expected: --kafka-file, as all can read a list of processes")
    from deploy.live import Kafka

    return Kafka(words=words_of(options), client=options.client(), prefix=options.topic_prefix)
