"""``mqtwin collect``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from deploy.options.common import Flag, KafkaOptions, open_estate
from deploy.options.feeds import FeedChoices, SpanChoices
from deploy.options.files import EstateFile, InputFile, KeptFile
from deploy.options.server import ServerOptions
from deploy.show.summaries import ComplaintPrinter, print_intake, print_not_understood
from deploy.show.terminal import printable
from streams.host.signals import stop_requests
from twin.errors import UsageError
from twin.feeds import FORMATS, Intake, make_feed
from twin.units import as_count

if TYPE_CHECKING:
    from streams.collecting.sources import Source

_FEED_DEFAULTS = FeedChoices()
_SPAN_DEFAULTS = SpanChoices()
_TOPICS = {"otlp": "otlp_spans"}  # names that the sources themselves use by default
_INTERVALS_S = {"dds": 60.0, "m3": 60.0, "prometheus": 30.0, "rest": 30.0}  # rest: at least
_PROMETHEUS_QUERY = '{__name__=~".+_(queue|pageset)_.+",qmgr!=""}'  # the namespace is the collector's


_SERVER_DEFAULTS = ServerOptions()


def collect(
    format_name: Annotated[str, Parameter(name="FORMAT")],
    standard_input: Annotated[
        Literal["-"] | None, Parameter(name="IN", allow_leading_hyphen=True, help="- for standard input.")
    ] = None,
    /,
    *,
    estate: EstateFile,
    position: KeptFile | None = None,
    kafka: KafkaOptions,
    topic: str | None = None,
    follow: InputFile | None = None,
    queue: str | None = None,
    flows: Literal["statistics", "accounting"] = "statistics",
    counts: InputFile | None = None,
    resync: Flag = False,
    create_topics: Flag = False,
    server: ServerOptions = _SERVER_DEFAULTS,
    choices: FeedChoices = _FEED_DEFAULTS,
    spans: SpanChoices = _SPAN_DEFAULTS,
) -> None:
    """Collect live data (spans, REST, SMF, logs, RMF) as events, until Ctrl-C, SIGTERM or the end of the input.

    Begins where it was stopped. Wrong data are reported and passed over.

    Args:
        format_name: Format of the data; docs/feeds.md lists them.
        standard_input: - for standard input, of formats that have files.
        estate: Estate file (TOML).
        position: File that keeps the position in the source; standard input has none.
        kafka: Kafka connection.
        topic: Topic to read, of formats that come through Kafka.
        follow: File that grows, to read instead of a topic, of formats that have files.
        queue: Original queue of a streaming queue, for connect.
        flows: Source of puts and gets in SMF: statistics (115/216) or accounting (116).
        counts: Recording of statistics, read again when it changes, by which spans (otlp) are scaled.
        resync: Have the twin take over every measurement: for stores of which no puts and gets are known, as with rest.
        create_topics: Create the topics of events and dead letters if they are missing.
        server: Server of formats that are asked for by HTTP.
        choices: Facts that the data lack.
        spans: OpenTelemetry spans.
    """
    from streams.collecting.collect import EventWriter, Statistics
    from streams.collecting.collect import collect as run
    from streams.collecting.growing import FollowedFile, StandardInput
    from streams.collecting.sources import load_position, locked_position
    from streams.kafka.dead_letters import LetterSender
    from streams.kafka.publish import PublishResult, Sender
    from streams.kafka.topics import Topics
    from streams.log import configure_logging
    from twin.stores.warm_up import warm

    configure_logging(level="warning")
    _check_format(format_name, has_counts=counts is not None)
    loaded_estate = open_estate(estate)
    intake = Intake(loaded_estate, resync=resync)
    options = spans.complete(choices.feed_options(queue=queue, flows=flows))
    if format_name == "rest":  # --qmgr names those to ask; each answer names its own
        options = replace(options, qmgr=None)
    feed = make_feed(format_name, intake, options)
    with locked_position(position):
        source: Source
        if standard_input is not None:
            _check_bytes(format_name, {"-": standard_input, "--follow": follow, "--topic": topic})
            if position is not None:
                raise UsageError(f"--position {position}: standard input has no position; expected: no --position")
            source = StandardInput(feed)
        elif position is None:
            raise UsageError("--position is missing; expected: a file that keeps the position")
        elif follow is not None:
            _check_bytes(format_name, {"--follow": follow, "--topic": topic})
            source = FollowedFile(follow, feed, load_position(position, str(follow)), intake.complain)
        else:
            source = _open_source(format_name, position, kafka, topic, server, intake, choices.qmgr)
        statistics, printer = None, ComplaintPrinter()
        if counts is not None:
            known = {} if position is None else load_position(position, source.name).coverage
            statistics = Statistics(counts, loaded_estate, known, _say)
        warm()
        try:
            topics = Topics(kafka.topic_prefix)
            with (
                stop_requests() as stop,
                Sender(kafka.client(), topics, PublishResult(), linger_ms=5, create_topics=create_topics) as sender,
            ):
                letters = LetterSender(kafka.client(), topics, create_topics=create_topics)
                print(f"collecting {format_name} from {source.name} onto {topics.events}", file=sys.stderr)
                run(
                    source,
                    feed,
                    intake,
                    EventWriter(sender, letters, loaded_estate),
                    position,
                    statistics=statistics,
                    stop=stop.is_set,
                    leaving=stop.leaving,
                    on_complaint=printer,
                )
        finally:
            source.close()
        print_intake(intake, printer.printed)
        place = "standard input has no position" if position is None else f"position in {position}"
        print(f"{as_count(intake.events, 'event')} collected; {place}", file=sys.stderr)
        print_not_understood(intake)


def _say(text: str) -> None:
    print(printable(f"mqtwin: {text}"), file=sys.stderr)


def _check_format(name: str, *, has_counts: bool) -> None:
    """Raise UsageError if there is no such format, none that is live, or none with spans that --counts scales."""
    live = sorted(known for known, form in FORMATS.items() if form.is_live)
    if name not in FORMATS:
        raise UsageError(f"{name}: no such format; expected: {', '.join(live)}")
    if name not in live:
        raise UsageError(f"{name} is not live; expected: mqtwin import {name}")
    if has_counts and name != "otlp":
        raise UsageError(f"--counts scales spans; expected: format otlp, not {name}")


def _check_bytes(name: str, sources: Mapping[str, object]) -> None:
    """Raise UsageError if a format has no files, or more than one of some sources is given, by option."""
    if not FORMATS[name].is_file or name in _INTERVALS_S:
        raise UsageError(f"{name} is not read from files; expected: no - and no --follow")
    options = [option for option, value in sources.items() if value is not None]
    if len(options) > 1:
        raise UsageError(f"{' and '.join(options)}: two sources; expected: one of them")


def _open_source(
    format_name: str,
    position: Path,
    kafka: KafkaOptions,
    topic: str | None,
    server: ServerOptions,
    intake: Intake,
    qmgr: str | None,
) -> Source:
    """Return the source of a format at its position."""
    from streams.collecting import sources
    from streams.collecting.mqweb import MqwebSource
    from streams.collecting.sources import load_position

    if format_name not in _INTERVALS_S:
        name = topic or _TOPICS.get(format_name)
        if name is None:
            others = ", --follow or -" if FORMATS[format_name].is_file else ""
            raise UsageError(f"{format_name} comes through Kafka; expected: --topic, that it is written to{others}")
        return sources.TopicSource(kafka.client(), name, load_position(position, name), intake.complain)
    if server.url is None:
        raise UsageError(f"{format_name} is asked for by HTTP; expected: --url")
    if format_name == "rest":
        mqweb = server.mqweb(server.url, qmgr, intake.estate, intake.complain, _say)
        return MqwebSource(mqweb, server.interval_s, load_position(position, mqweb.name))
    url = server.address(server.url)
    interval_s = server.interval_s or _INTERVALS_S[format_name]
    if format_name == "dds":
        if server.sysplex is None:
            raise UsageError("dds has reports of a sysplex; expected: --sysplex")
        requests = sources.dds_requests(url, server.sysplex)
    elif server.query_range:
        requests = sources.range_requests(url, _PROMETHEUS_QUERY, interval_s, 3600.0)
    else:
        requests = sources.page_requests(url)
    begin = load_position(position, url)
    return sources.HttpSource(url, server.client(), requests, interval_s, begin, intake.complain)
