"""Options about feeds, and those of servers that are asked by HTTP.

Feeds: facts that the data lack, whose spans to take, and what a live twin collects beside levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number
from typing_extensions import override

from deploy.options.common import (
    MAX_SECONDS,
    FileUse,
    Flag,
    InputFile,
    Repeated,
    SecretFile,
    parse_settings,
    parse_zone,
    words_of,
)
from twin.base.errors import UsageError
from twin.feeds.protocol import FeedOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.collecting.http import HttpClient
    from streams.collecting.mqweb import Mqweb
    from twin.estate import Estate


# --- servers ----------------------------------------------------------------------------------------------------------

SERVER = Group("Server", sort_key=4)


def qmgr_names(text: str | None) -> list[str]:
    """Return the names of --qmgr, with commas between them. UsageError: there is none."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if not names:
        raise UsageError("no queue manager to ask; expected: --qmgr QM01,QM02")
    return names


@Parameter(name="*", group=SERVER)
@dataclass(frozen=True, kw_only=True)
class MqwebOptions:
    """The REST interface of queue managers (mqweb), and what is asked there.

    Args:
        queues: Names of queues to ask for, such as 'APP*', for rest.
        gateway: Gateway queue manager through which the server reaches the others, for rest.
        interval_s: Seconds between two requests. Default: 60; 30 for prometheus; rest: 30 to 300, by the site's size.
        max_commands_per_minute: Ceiling of requests in any minute, for rest.
        user: User, for basic authentication.
        password_file: File with the password in its first line.
        token_login: Log in for a token, instead of sending the password each time, for rest.
        allow_http: Send a password or a token by http, too, in clear to another machine.
        client_cert: Certificate of this client (PEM).
        client_key: Its private key (PEM), not encrypted.
        ca_file: Certificates (PEM) that sign the server's.
    """

    queues: str = "*"
    gateway: str | None = None
    interval_s: Annotated[float | None, Parameter(validator=Number(gte=0.1, lte=MAX_SECONDS))] = None
    max_commands_per_minute: Annotated[int | None, Parameter(validator=Number(gte=1, lte=100_000))] = None
    user: str | None = None
    password_file: SecretFile | None = None
    token_login: Flag = False
    allow_http: Flag = False
    client_cert: InputFile | None = None
    client_key: SecretFile | None = None
    ca_file: InputFile | None = None

    def client(self) -> HttpClient:
        """Return the client for its requests. UsageError: options contradict each other, a file cannot be read."""
        from streams.collecting.http import HttpClient

        return HttpClient(
            user=self.user,
            password_file=self.password_file,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )

    def address(self, url: str) -> str:
        """Return the address of a server. UsageError: it is none, or a secret would be sent there in clear."""
        from streams.collecting.http import check_url

        return check_url(url, has_secret=not self.allow_http and self.client().has_secret)

    def mqweb(
        self,
        url: str,
        qmgr: str | None,
        estate: Estate | None,
        complain: Callable[[str, str, str], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> Mqweb:
        """Return the client of queue managers. UsageError: an option is wrong."""
        from streams.collecting.mqweb import Mqweb

        return Mqweb(
            [self.address(own) for own in url.split(",")],
            qmgr_names(qmgr),
            self.client(),
            estate,
            complain=complain,
            queues=self.queues,
            gateway=self.gateway,
            has_token=self.token_login,
            max_per_minute=self.max_commands_per_minute,
            say=say,
        )


@Parameter(name="*", group=SERVER)
@dataclass(frozen=True, kw_only=True)
class ServerOptions(MqwebOptions):
    """The server of formats that are asked for by HTTP.

    Args:
        url: Base URL of the server, http or https.
        sysplex: Name of the sysplex, for dds.
        query_range: The server is Prometheus itself: ask for what was missed, too.
        token_file: File with a bearer token in its first line.
    """

    url: str | None = None
    sysplex: str | None = None
    query_range: Flag = False
    token_file: SecretFile | None = None

    @override
    def client(self) -> HttpClient:
        return replace(super().client(), token_file=self.token_file)


# --- feeds ------------------------------------------------------------------------------------------------------------

FACTS = Group("Facts that the data lack", sort_key=2)

SPANS = Group("OpenTelemetry spans", sort_key=3)

LIVE = Group("A live twin", sort_key=5)


Sampled = Annotated[
    float | None,
    Parameter(
        help="Share of the messages that have spans, such as 0.05, each of which then counts for 20. Default: as the"
        " trace state of a span says, else all.",
        validator=Number(gte=0.0001, lte=1),
    ),
]


@Parameter(name="*", group=FACTS)
@dataclass(frozen=True, kw_only=True)
class FeedChoices:
    """Facts that the data of a feed lack. UsageError: a value is wrong.

    Args:
        zone: Zone of local times: Europe/Berlin, or +01:00; that of one file: FILE=ZONE; may be repeated. Default: UTC.
        date: Date of the first time of day, YYYY-MM-DD.
        qmgr: Queue manager of data that name none. Of rest those to ask live: QM01,QM02.
        prefix: Command prefix and its queue manager, '!MQ1=QM01'; may be repeated.
        slice_s: Seconds; counts of an interval are spread over slices of it.
        poll_s: Seconds of the pollInterval of mq_prometheus or mq_json. Default, on z/OS: as the values change.
    """

    zone: Repeated = ()
    date: str | None = None
    qmgr: str | None = None
    prefix: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    slice_s: float = 10.0
    poll_s: Annotated[float | None, Parameter(validator=Number(gt=0, lte=86_400))] = None

    sampled: Sampled = None

    @property
    def site_zone(self) -> str:
        """The zone of all files that have none of their own; "": none is given. UsageError: several are."""
        zones = [zone for name, _, zone in map(_split, self.zone) if not name]
        if len(zones) > 1:
            raise UsageError(f"--zone {zones[0]} --zone {zones[1]}; expected: one, and --zone FILE=ZONE of other files")
        return zones[0] if zones else ""

    def feed_options(self, *, queue: str | None = None, flows: str = "statistics") -> FeedOptions:
        """Return the options of a feed."""
        if not 0.1 <= self.slice_s <= 3600:
            raise UsageError(f"--slice-s {self.slice_s:g}; expected: 0.1 to 3600 seconds")
        return FeedOptions(
            slice_s=self.slice_s,
            zone=None if not self.site_zone else parse_zone(self.site_zone),
            zones={name: parse_zone(zone) for name, _, zone in map(_split, self.zone) if name},
            date=None if self.date is None else _date(self.date),
            qmgr=self.qmgr,
            prefixes=parse_settings("--prefix", self.prefix),
            queue=queue,
            flows=flows,
            poll_s=self.poll_s,
            sampled=self.sampled,
        )


def parse_groups(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the values of --group: queue managers by queue-sharing group, none of a group alone. UsageError: QSG1=."""
    groups: dict[str, list[str]] = {text.strip(): [] for text in texts if text.strip() and "=" not in text}
    for name, text in parse_settings("--group", [text for text in texts if "=" in text]).items():
        groups[name] = [qmgr.strip() for qmgr in text.split(",") if qmgr.strip()]
        if not groups[name]:
            raise UsageError(f"--group {name}={text}; expected: its queue managers, such as {name}=QM01,QM02")
    return groups


def _split(zone: str) -> tuple[str, str, str]:
    """Return file, = and zone of a value of --zone; without a file "", "" and the zone."""
    return zone.rpartition("=")


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"--date {text}; expected: YYYY-MM-DD") from None


@Parameter(name="*", group=SPANS)
@dataclass(frozen=True, kw_only=True)
class SpanChoices:
    """Facts that spans lack, and whose spans to take.

    Args:
        lpar: LPAR of spans and its queue manager, LPAR=QMGR; may be repeated.
        spans: Whose spans to take, if applications write spans of the same calls.
        length: Bytes of messages whose size is not reported. Default: the mean of the queue.
        late: Seconds by which a span may come later than younger ones.
    """

    lpar: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    spans: Literal["queue-manager", "application"] = "queue-manager"
    length: Annotated[int | None, Parameter(validator=Number(gte=0, lte=104_857_600))] = None
    late: Annotated[float, Parameter(validator=Number(gte=0, lte=86_400))] = 30.0

    def complete(self, options: FeedOptions, *, has_counts: bool = False) -> FeedOptions:
        """Return the options of a feed with these. With `has_counts` statistics scale the spans, whatever their trace
        state says. UsageError: a value is wrong, or --sampled scales them, too.
        """
        lpars = parse_settings("--lpar", self.lpar)
        if has_counts:
            if options.sampled is not None:
                raise UsageError(f"--sampled {options.sampled:g} beside --counts: both scale spans; expected: one")
            options = replace(options, sampled=1.0)
        return replace(options, lpars=lpars, emitter=self.spans, length=self.length, late_s=self.late)


_TOPIC = "topic:"


def _followed(source: str) -> Path | None:
    """Return the file that grows; None: the source is topic:NAME."""
    return None if str(source).startswith(_TOPIC) else Path(source)


_Sources = tuple[Annotated[str, FileUse(path_of=_followed)], ...]


@Parameter(name="*", group=LIVE)
@dataclass(frozen=True, kw_only=True)
class LiveSources:
    """Feeds that a live twin collects beside the levels.

    Args:
        spans: OpenTelemetry spans to take as well: a file that a collector writes, or topic:NAME; may be repeated.
        smf: SMF to take as well: a file that grows, or topic:NAME; may be repeated.
        dds: RMF's Distributed Data Server of a sysplex to ask as well, PLEX1=http://HOST:8803; may be repeated.
    """

    spans: Annotated[_Sources, Parameter(negative="", show_default=False)] = ()
    smf: Annotated[_Sources, Parameter(negative="", show_default=False)] = ()
    dds: Repeated = ()

    def collected(self, choices: FeedChoices, flows: str, *, has_kafka: bool) -> dict[str, tuple[str, ...]]:
        """Return by name the arguments of `mqtwin collect`, the source last. Queue managers of the choices are those to
        ask, by --qmgr. Only a Kafka of the site may have topics. UsageError: A file is missing, a topic cannot be
        there, or a source is named twice.
        """
        feeds = dict[str, tuple[str, ...]]()
        sampled = () if choices.sampled is None else (f"--sampled={choices.sampled}",)
        of_smf = (f"--flows={flows}", *words_of(replace(choices, qmgr=None)))
        for option, form, words, sources in (("spans", "otlp", sampled, self.spans), ("smf", "smf", of_smf, self.smf)):
            own = [_source_words(f"--{option}", source, has_kafka=has_kafka) for source in sources]
            if len(set(own)) < len(own):
                raise UsageError(f"--{option} {', '.join(sources)}: a source twice; expected: each once")
            for number, source in enumerate(own, 1):
                feeds[option if number == 1 else f"{option}-{number}"] = (form, *words, source)
        for number, (sysplex, url) in enumerate(parse_settings("--dds", self.dds).items(), 1):
            address = ServerOptions().address(url)
            feeds["dds" if number == 1 else f"dds-{number}"] = ("dds", f"--sysplex={sysplex}", f"--url={address}")
        return feeds


def _source_words(option: str, source: str, *, has_kafka: bool) -> str:
    """Return the argument of `mqtwin collect` for a source. UsageError: it is not there."""
    path = _followed(source)
    if path is None:
        if not (topic := source.removeprefix(_TOPIC)):
            raise UsageError(f"{option} {source}; expected: topic:NAME, or a file that grows")
        if not has_kafka:
            raise UsageError(f"{option} {source}: a topic of which Kafka? Expected: --bootstrap-servers, or a file")
        return f"--topic={topic}"
    if not path.is_file():
        raise UsageError(f"{option} {source} is not a file; expected: a file that grows, or topic:NAME")
    return f"--follow={path.absolute()}"
