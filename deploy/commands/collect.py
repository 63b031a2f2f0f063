"""``mqtwin collect``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from deploy.options.common import EstateFile, Flag, InputFile, KafkaOptions, KeptFile, open_estate
from deploy.options.feeds import FeedChoices, ServerOptions, SpanChoices
from deploy.show.summaries import ComplaintPrinter, print_intake, print_not_understood
from deploy.show.terminal import printable
from streams.host.signals import stop_requests
from twin.base.errors import UsageError
from twin.base.units import as_count
from twin.feeds import FORMATS, Intake, make_feed
from twin.feeds.protocol import COMMANDS, Asked, requests_to

if TYPE_CHECKING:
    from streams.collecting.collect import Statistics
    from streams.collecting.sources import Source
    from twin.feeds import Feed

_FEED_DEFAULTS = FeedChoices()
_SPAN_DEFAULTS = SpanChoices()
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
    from streams.collecting.collect import Statistics
    from streams.collecting.sources import load_position, locked_position
    from streams.log import configure_logging
    from twin.stores.warm_up import warm

    configure_logging(level="warning")
    _check_format(format_name, has_counts=counts is not None)
    loaded_estate = open_estate(estate)
    intake = Intake(loaded_estate, resync=resync)
    options = spans.complete(choices.feed_options(queue=queue, flows=flows), has_counts=counts is not None)
    if _is_asked_by_commands(format_name):  # --qmgr names those to ask; each answer names its own
        options = replace(options, qmgr=None)
    feed = make_feed(format_name, intake, options)
    with locked_position(position):
        sources = {"-": standard_input, "--follow": follow, "--topic": topic}
        source = _open_bytes(format_name, sources, position, feed)
        if source is None:
            assert position is not None, "only standard input has none"
            source = _open_source(format_name, position, kafka, topic, server, intake, choices.qmgr)
        known = {} if counts is None or position is None else load_position(position, source.name).coverage
        statistics = None if counts is None else Statistics(counts, loaded_estate, known, _say)
        warm()
        try:
            _run(format_name, source, feed, kafka, position, statistics, create_topics=create_topics)
        finally:
            source.close()
        print_not_understood(intake)


def _run(
    format_name: str,
    source: Source,
    feed: Feed,
    kafka: KafkaOptions,
    position: Path | None,
    statistics: Statistics | None,
    *,
    create_topics: bool,
) -> None:
    from streams.collecting.collect import EventWriter
    from streams.collecting.collect import collect as run
    from streams.kafka.dead_letters import LetterSender
    from streams.kafka.publish import PublishResult, Sender

    intake, printer, topics = feed.intake, ComplaintPrinter(), kafka.topics
    with (
        stop_requests() as stop,
        Sender(kafka.client(), topics, PublishResult(), linger_ms=5, create_topics=create_topics) as sender,
    ):
        letters = LetterSender(kafka.client(), topics, create_topics=create_topics)
        print(f"collecting {format_name} from {source.name} onto {topics.events}", file=sys.stderr)
        assert intake.estate is not None, "a collector has one"
        run(
            source,
            feed,
            intake,
            EventWriter(sender, letters, intake.estate),
            position,
            statistics=statistics,
            stop=stop.is_set,
            leaving=stop.leaving,
            on_complaint=printer,
        )
    print_intake(intake, printer.printed)
    place = "standard input has no position" if position is None else f"position in {position}"
    print(f"{as_count(intake.events, 'event')} collected; {place}", file=sys.stderr)


def _say(text: str) -> None:
    print(printable(f"mqtwin: {text}"), file=sys.stderr)


def _is_asked_by_commands(name: str) -> bool:
    server = FORMATS[name].server
    return server is not None and server.requests == COMMANDS


def _check_format(name: str, *, has_counts: bool) -> None:
    """Raise UsageError if there is no such format, none that is live, or none that --counts scales."""
    live = sorted(known for known, form in FORMATS.items() if form.is_live)
    if name not in FORMATS:
        raise UsageError(f"{name}: no such format; expected: {', '.join(live)}")
    if name not in live:
        raise UsageError(f"{name} is not live; expected: mqtwin import {name}")
    if has_counts and not FORMATS[name].is_scaled:
        scaled = " or ".join(known for known, form in FORMATS.items() if form.is_scaled)
        raise UsageError(f"--counts scales spans; expected: format {scaled}, not {name}")


def _open_bytes(
    name: str, sources: Mapping[str, str | Path | None], position: Path | None, feed: Feed
) -> Source | None:
    """Return standard input or the file that grows, of the sources by option; None: the source is another.

    UsageError: a format has no files, or more than one of the sources is given.
    """
    from streams.collecting.sources import FollowedFile, StandardInput, load_position

    options = [option for option, value in sources.items() if value is not None]
    has_input, path = sources["-"] is not None, sources["--follow"]
    if not has_input and position is None:
        raise UsageError("--position is missing; expected: a file that keeps the position")
    if not has_input and path is None:
        return None
    if not FORMATS[name].is_file or FORMATS[name].server is not None:
        raise UsageError(f"{name} is not read from files; expected: no - and no --follow")
    if len(options) > 1:
        raise UsageError(f"{' and '.join(options)}: two sources; expected: one of them")
    if path is None or position is None:
        if position is not None:
            raise UsageError(f"--position {position}: standard input has no position; expected: no --position")
        return StandardInput(feed)
    return FollowedFile(Path(path), feed, load_position(position, str(path)), feed.intake.complain)


def _open_source(
    name: str,
    position: Path,
    kafka: KafkaOptions,
    topic: str | None,
    server: ServerOptions,
    intake: Intake,
    qmgr: str | None,
) -> Source:
    """Return the source of a format at its position: a topic, or a server that is asked."""
    from streams.collecting.mqweb import MqwebSource
    from streams.collecting.sources import HttpSource, load_position

    form = FORMATS[name]
    if form.server is None:
        read_topic = topic or form.topic
        if not read_topic:
            others = ", --follow or -" if form.is_file else ""
            raise UsageError(f"{name} comes through Kafka; expected: --topic, that it is written to{others}")
        from streams.collecting.topic_source import TopicSource

        return TopicSource(kafka.client(), read_topic, load_position(position, read_topic), intake.complain)
    if server.url is None:
        raise UsageError(f"{name} is asked for by HTTP; expected: --url")
    if _is_asked_by_commands(name):
        mqweb = server.mqweb(server.url, qmgr, intake.estate, intake.complain, _say)
        return MqwebSource(mqweb, server.interval_s, load_position(position, mqweb.name))
    url = server.address(server.url)
    asked = Asked(url, server.interval_s or form.server.interval_s, server.sysplex, server.query_range)
    requests = requests_to(form.server, asked)
    begin = load_position(position, url)
    return HttpSource(url, server.client(), requests, asked.interval_s, begin, intake.complain)
