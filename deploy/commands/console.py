"""``mqtwin console``, and the options of what serves its model: the page, and the tools of ``mqtwin mcp``.

The options say what is served, at which address, and who may sign in.
"""

from __future__ import annotations

import re
import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from deploy.console import DEFAULT_PORT
from deploy.console.model import ConsoleModel
from deploy.console.past import LivePast, PastTwins, mark_of
from deploy.console.server import ConsoleServer, Listen, Site
from deploy.console.sites import SitesModel
from deploy.options.common import (
    EstateFile,
    FileUse,
    Flag,
    InputFile,
    InputFolder,
    KafkaOptions,
    Repeated,
    SecretFile,
    open_estate,
    parse_address,
    parse_zone,
)
from deploy.show.summaries import WrongEstate, show_progress
from deploy.show.terminal import print_warnings
from streams.host.signals import until_stopped
from streams.kafka.topics import DEFAULT_PREFIX
from streams.log import configure_logging
from streams.query.status import stopped_text
from twin.base.errors import UsageError
from twin.base.outputs import read_secret
from twin.estate import Estate, load_estate
from twin.playback.timeline import Timeline
from twin.recordings.files import Chunk

if TYPE_CHECKING:
    from deploy.console.identity import Identity
    from deploy.console.oidc import Client


# --- options: sign-in, source, sites, address -------------------------------------------------------------------------

SIGN_IN = Group("Sign-in", sort_key=5)


@Parameter(name="*", group=SIGN_IN)
@dataclass(frozen=True, kw_only=True)
class SignInOptions:
    """The way in which people say who they are: headers of a proxy, or a provider of OpenID Connect; and roles.

    Args:
        trust_proxy: Address or network of a proxy whose headers say who asks, or unix with --listen unix:PATH; may be
            repeated.
        user_header: Header of --trust-proxy with the name.
        groups_header: Header of --trust-proxy with the groups, with commas between them.
        oidc_issuer: Address of a provider of OpenID Connect.
        oidc_client_id: Name that the provider has for the console.
        oidc_secret_file: File with the secret of this client in its first line.
        public_address: Address of the console as browsers use it, for --oidc-issuer.
        user_claim: Claim of the ID token with the name.
        groups_claim: Claim of the ID token with the groups.
        viewers: Group that may look; '*': all; may be repeated.
        operators: Group that may write notes, too; may be repeated.
        approvers: Group that may approve, too; may be repeated.
    """

    trust_proxy: Repeated = ()
    user_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"
    oidc_issuer: str | None = None
    oidc_client_id: str | None = None
    oidc_secret_file: SecretFile | None = None
    public_address: str | None = None
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    viewers: Repeated = ()
    operators: Repeated = ()
    approvers: Repeated = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names by which browsers call the console."""
        return () if self.public_address is None else (urlsplit(self.public_address).hostname or "",)

    def identity(self) -> Identity | None:
        """Return the way; None: there is none. UsageError: options are wrong, or contradict each other."""
        from deploy.console.identity import Proxy, Roles

        if not self.trust_proxy and self.oidc_issuer is None:
            roles_or_address = [
                name for name in ("viewers", "operators", "approvers", "public_address") if getattr(self, name)
            ]
            if roles_or_address or self.oidc_client_id or self.oidc_secret_file:
                raise UsageError("roles without a sign-in; expected: --trust-proxy ADDRESS or --oidc-issuer URL, too")
            return None
        if self.trust_proxy and self.oidc_issuer is not None:
            raise UsageError("--trust-proxy beside --oidc-issuer; expected: one of them")
        roles = Roles(viewers=self.viewers, operators=self.operators, approvers=self.approvers)
        if self.trust_proxy:
            return Proxy(self.trust_proxy, roles, self.user_header, self.groups_header)
        client = self._client(self.oidc_issuer or "")
        from deploy.console.oidc import Provider

        return Provider(client, roles)

    def _client(self, issuer: str) -> Client:
        try:
            from deploy.console.oidc import Client
        except ImportError as error:
            raise UsageError(f"--oidc-issuer: {error}; expected: pip install 'mqtwin[oidc]'") from None
        if self.oidc_client_id is None or self.oidc_secret_file is None or self.public_address is None:
            needed = "--oidc-client-id ID --oidc-secret-file FILE --public-address URL"
            raise UsageError(f"--oidc-issuer {issuer}; expected: with {needed}")
        return Client(
            issuer=issuer,
            client_id=self.oidc_client_id,
            secret=read_secret("--oidc-secret-file", self.oidc_secret_file),
            address=self.public_address,
            user_claim=self.user_claim,
            groups_claim=self.groups_claim,
        )


if TYPE_CHECKING:
    from deploy.console.server import Listen

DEFAULT_LISTEN = f"127.0.0.1:{DEFAULT_PORT}"
_WITHOUT_SIGN_IN = SignInOptions()
_SOCKET = "unix:"
_SITE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # the first part of an address
_RESERVED = {"/static", "/api", "/login", "/callback", "/logout", "/healthz", "/readyz"}  # addresses of the console


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The source of the stores beside Kafka: a recording, or what is known of the job.

    Args:
        recording: Recording to show instead of the topics, without Kafka and Spark: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML): that of the recording; or, for what-if, that of the job, whose events topic is then
            followed with twins of its own.
        checkpoint: Checkpoint folder of the job, on this machine: with its snapshots past days are shown, too.
        status_file: File of `mqtwin stream --status-file` on this machine: it is said when the job has stopped.
        zone: Zone of times, where no estate is given: Europe/Berlin, or +01:00. Default: UTC.
    """

    recording: InputFile | None = None
    estate: EstateFile | None = None
    checkpoint: InputFolder | None = None
    status_file: InputFile | None = None
    zone: str | None = None

    def check(self, kafka: KafkaOptions | None) -> None:
        """Check that one source is named, and what belongs to it. UsageError: it is not."""
        recording, estate = self.recording, self.estate
        if (kafka is None) == (recording is None):
            raise UsageError("expected one of --bootstrap-servers HOST:PORT and --recording FILE")
        if recording is not None and estate is None:
            raise UsageError(
                f"--recording {recording} without --estate; expected: --estate FILE, the estate of its events"
            )
        if self.checkpoint is not None:
            if kafka is None or estate is None:
                raise UsageError(f"--checkpoint {self.checkpoint}; expected: with --bootstrap-servers and --estate")
            from streams.checkpoint.guard import open_stopped

            open_stopped(self.checkpoint)
        if self.status_file is not None and kafka is None:
            raise UsageError(f"--status-file {self.status_file}; expected: with --bootstrap-servers")
        if self.zone is not None and estate is not None:
            raise UsageError(f"--zone {self.zone} with --estate; expected: [site] zone in {estate}")


_OF_SITE = FileUse(is_secret=True, path_of=lambda value: Path(str(value).partition("=")[2] or str(value)))  # NAME=FILE
SITES = Group("Several sites", sort_key=2)


@dataclass(frozen=True, kw_only=True)
class SiteSource:
    """A job of several in one console. estate: that of the job, for what-if; None: it is not known."""

    name: str
    kafka: KafkaOptions
    estate: Path | None


@Parameter(name="*", group=SITES)
@dataclass(frozen=True, kw_only=True)
class SitesOptions:
    """Several jobs in one console.

    Args:
        site: Site to show beside others, NAME=BOOTSTRAP/PREFIX: its Kafka and the prefix of its topics; repeated.
        site_estate: For what-if at a site: the estate of its job, which has the name in its [site]; may be repeated.
        site_kafka_file: Kafka client settings of a site, NAME=FILE; may be repeated.
    """

    site: Repeated = ()
    site_estate: Annotated[tuple[EstateFile, ...], Parameter(negative="", show_default=False)] = ()
    site_kafka_file: Annotated[tuple[Annotated[str, _OF_SITE], ...], Parameter(negative="", show_default=False)] = ()

    def sources(self) -> list[SiteSource]:
        """Return the sites; none without --site. UsageError: an option is wrong, or names no site."""
        from twin.estate import load_estate

        places = self._named("--site", self.site, "NAME=BOOTSTRAP/PREFIX")
        files = self._named("--site-kafka-file", self.site_kafka_file, "NAME=FILE")
        estates = {load_estate(path).site.name: path for path in self.site_estate}
        for option, names in (("--site-kafka-file", [*files]), ("--site-estate", [*estates])):
            for name in names:
                if name not in places:
                    known = ", ".join(places) or "--site NAME=BOOTSTRAP/PREFIX, too"
                    raise UsageError(f"{option} of site {name or 'without a name'}; expected: {known}")
        sources = []
        for name, place in places.items():
            servers, slash, prefix = place.partition("/")
            settings = None if name not in files else Path(files[name])
            topic_prefix = prefix if slash else DEFAULT_PREFIX
            try:
                kafka = KafkaOptions(bootstrap_servers=servers, topic_prefix=topic_prefix, kafka_file=settings)
            except UsageError as error:
                raise UsageError(f"--site {name}: {error}") from None
            sources.append(SiteSource(name=name, kafka=kafka, estate=estates.get(name)))
        return sources

    @staticmethod
    def _named(option: str, items: tuple[str, ...], form: str) -> dict[str, str]:
        """Return the values by name. UsageError: an item has another form, or a name that is taken."""
        values: dict[str, str] = {}
        for item in items:
            name, equals, value = item.partition("=")
            if not (equals and value and _SITE_NAME.fullmatch(name)):
                raise UsageError(f"{option} {item}; expected: {form}, the name of letters, digits, '.', '_' and '-'")
            if name in values or f"/{name}" in _RESERVED:
                raise UsageError(f"{option} {item}: {name} is taken; expected: another name")
            values[name] = value
        return values


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServedOptions:
    """The address that is served, and who may ask there.

    Args:
        token_file: File with the token that clients must know, readable by its owner only.
        tls_certificate: TLS certificate chain (PEM).
        tls_key: Key of the certificate (PEM).
        behind_proxy: A proxy in front ends TLS.
        allowed_host: A further name by which clients may call the server; may be repeated.
    """

    token_file: InputFile | None = None
    tls_certificate: InputFile | None = None
    tls_key: SecretFile | None = None
    behind_proxy: Flag = False
    allowed_host: Repeated = ()

    def listen(self, address: str, sign_in: SignInOptions = _WITHOUT_SIGN_IN) -> Listen:
        """Return where to listen, HOST:PORT or unix:PATH, and for whom. UsageError: it would be open to others."""
        from deploy.console.server import Listen, read_token

        is_socket = address.startswith(_SOCKET)
        host, port = ("localhost", 0) if is_socket else parse_address(address)
        return Listen(
            host=host,
            port=port,
            path=Path(address.removeprefix(_SOCKET)) if is_socket else None,
            token=None if self.token_file is None else read_token(self.token_file),
            identity=sign_in.identity(),
            certificate=self.tls_certificate,
            key=self.tls_key,
            behind_proxy=self.behind_proxy,
            allowed_hosts=(*self.allowed_host, *sign_in.hosts),
        )


# --- the command ------------------------------------------------------------------------------------------------------

_SOURCE, _SERVED, _NO_SIGN_IN, _NO_SITES = SourceOptions(), ServedOptions(), SignInOptions(), SitesOptions()


def console(
    *,
    kafka: KafkaOptions | None = None,
    source: SourceOptions = _SOURCE,
    listen: str = DEFAULT_LISTEN,
    served: ServedOptions = _SERVED,
    open_: Flag = False,
    sign_in: SignInOptions = _NO_SIGN_IN,
    sites: SitesOptions = _NO_SITES,
    actions: InputFile | None = None,
) -> None:
    """Serve a page about every store, until Ctrl-C or SIGTERM: what fills, when, why, and what to do.

    It reads the topics of state records, alerts, notes and dead letters, or plays a recording of which the page shows
    every moment. It writes notes of people on alerts and, with --actions, what they request and approve; it executes
    nothing. Everything that the browser needs comes from this machine.

    Args:
        kafka: Kafka connection.
        source: What is shown.
        listen: Address to serve on, HOST:PORT, with port 0 a free one, or unix:PATH for a proxy. A host that others
            reach needs --token-file or a sign-in, and TLS.
        served: Who may ask.
        open_: Open the page in the browser of this machine.
        sign_in: Sign-in and roles.
        sites: Several jobs in one console, in place of one.
        actions: File with the changes that may be requested (TOML), of mode 600. Without it none may be.
    """
    several = sites.sources()
    if not several:
        source.check(kafka)
    elif kafka is not None or source != _SOURCE:
        raise UsageError("--site beside another source; expected: --site, --site-estate and --site-kafka-file only")
    address = served.listen(listen, sign_in)
    if actions is not None:
        check_desk(actions, address, source)

    def open_server(parts: ExitStack) -> ConsoleServer:
        if several:
            own = {site.name: _follow_site(site, parts) for site in several}
            return ConsoleServer(SitesModel({name: site.model for name, site in own.items()}), address, sites=own)
        if source.recording is not None and source.estate is not None:
            return server_of(play_recording(source.recording, open_estate(source.estate)), address)
        assert kafka is not None
        from deploy.console.acts import ActDesk
        from deploy.console.live import NoteTaker
        from streams.kafka.notes import ActLog

        model, past = follow_job(kafka, source, parts)
        notes = NoteTaker(kafka.client(), kafka.topics, model)
        desk = None
        if actions is not None and past is not None:
            desk = ActDesk(ActLog(kafka.client(), kafka.topics), past, actions)
        return ConsoleServer(model, address, past, past, notes.take, desk=desk)

    serve(open_server, opens=open_)


def serve(open_server: Callable[[ExitStack], ConsoleServer], *, opens: bool) -> None:
    """Serve the page until Ctrl-C or SIGTERM."""
    configure_logging()
    with until_stopped(), ExitStack() as parts:
        server = parts.enter_context(open_server(parts))
        print(f"console {server.address}", flush=True)
        print("Open it in a browser. It runs until Ctrl-C.", file=sys.stderr, flush=True)
        if opens:
            webbrowser.open(server.address)
        server.wait()


def _follow_site(site: SiteSource, parts: ExitStack) -> Site:
    """Return one of several sites, whose Kafka may answer later. parts: gets what reads the topics."""
    from deploy.console.live import NoteTaker

    model, past = follow_job(site.kafka, SourceOptions(estate=site.estate), parts, waits=True)
    return Site(model=model, past=past, take_note=NoteTaker(site.kafka.client(), site.kafka.topics, model).take)


def check_desk(actions: Path, address: Listen, source: SourceOptions) -> None:
    """Check that changes can be requested. UsageError: people are not verified, or their effect is not known."""
    from twin.planning.proposals import read_allowed

    read_allowed(actions)
    if address.identity is None:
        raise UsageError(f"--actions {actions} without a sign-in; expected: --trust-proxy ADDRESS or --oidc-issuer URL")
    if source.recording is not None or source.estate is None:
        raise UsageError(f"--actions {actions}; expected: with --bootstrap-servers and --estate")


def follow_job(
    kafka: KafkaOptions, source: SourceOptions, parts: ExitStack, *, waits: bool = False
) -> tuple[ConsoleModel, LivePast | None]:
    """Return the model of a job, which its topics fill, and its past; None without an estate. With `waits` it begins
    later where no Kafka answers at the start.
    """
    from deploy.console.live import LiveTwins, TopicFeed
    from deploy.java.jars import find_spark_java
    from streams.query.past import JobPast

    topics, client, status_file = kafka.topics, kafka.client(), source.status_file
    loaded_estate = None if source.estate is None else load_estate(source.estate)
    model = ConsoleModel(
        topics,
        job_problem=str if status_file is None else lambda: stopped_text(status_file, time.time()),
        zone=parse_zone(source.zone or "") if loaded_estate is None else loaded_estate.site.clock,
    )
    parts.enter_context(TopicFeed(client, topics, model, waits=waits))
    if loaded_estate is None:
        return model, None
    job = JobPast(
        kafka=client,
        topics=topics,
        estate=loaded_estate,
        checkpoint=source.checkpoint,
        java=find_spark_java(),
        warn=lambda text: print_warnings([text]),
    )
    twins = parts.enter_context(LiveTwins(loaded_estate).follow(job))
    return model, LivePast(job, twins, lambda: [mark_of(*call) for call in model.calls()])


def play_recording(recording: Path, estate: Estate) -> Timeline:
    """Return a recording, played with its progress shown."""
    wrong_estate = WrongEstate(recording)
    with show_progress("replay", recording) as advance:

        def note_chunk(chunk: Chunk, events: int) -> None:
            wrong_estate.check(events)
            advance(chunk, events)

        return Timeline(recording, estate, note_chunk, wrong_estate.note)


def server_of(timeline: Timeline, listen: Listen) -> ConsoleServer:
    """Return the server of a recording."""
    past = PastTwins(timeline)
    return ConsoleServer(past.model_at(past.moments.first), listen, past, past)
