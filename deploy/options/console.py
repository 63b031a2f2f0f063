"""Options of what serves the console's model, the page and the tools of `mqtwin mcp`: its source, its address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from deploy.console import DEFAULT_PORT
from deploy.options.common import Flag, KafkaOptions, Repeated, parse_address
from deploy.options.files import EstateFile, FileUse, InputFile, InputFolder, SecretFile
from streams.kafka.topics import DEFAULT_PREFIX
from twin.errors import UsageError
from twin.outputs import read_secret

if TYPE_CHECKING:
    from deploy.console.identity import Identity
    from deploy.console.oidc import Client

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
_NO_SIGN_IN = SignInOptions()
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

    def listen(self, address: str, sign_in: SignInOptions = _NO_SIGN_IN) -> Listen:
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
