"""Options of what serves the console's model, the page and the tools of `mqtwin mcp`: its source, its address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from deploy.console import DEFAULT_PORT
from deploy.options.common import Flag, KafkaOptions, Repeated, parse_address
from deploy.options.files import EstateFile, InputFile, InputFolder, SecretFile
from deploy.options.identity import SignInOptions
from twin.errors import UsageError

if TYPE_CHECKING:
    from deploy.console.server import Listen

DEFAULT_LISTEN = f"127.0.0.1:{DEFAULT_PORT}"
_NO_SIGN_IN = SignInOptions()
_SOCKET = "unix:"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The source of the stores beside Kafka: a recording, or what is known of the job."""

    recording: Annotated[
        InputFile | None,
        Parameter(
            help="Recording to show instead of the topics, without Kafka and Spark: .ndjson, .ndjson.zst or .arrow."
        ),
    ] = None
    estate: Annotated[
        EstateFile | None,
        Parameter(
            help="Estate file (TOML): that of the recording; or, for what-if, that of the job, whose events topic is "
            "then followed with twins of its own."
        ),
    ] = None
    checkpoint: Annotated[
        InputFolder | None,
        Parameter(
            help="Checkpoint folder of the job, on this machine: with its snapshots past days are shown, too.",
        ),
    ] = None
    status_file: Annotated[
        InputFile | None,
        Parameter(
            help="File of `mqtwin stream --status-file` on this machine: it is said when the job has stopped.",
        ),
    ] = None
    zone: Annotated[
        str | None,
        Parameter(help="Zone of times, where no estate is given: Europe/Berlin, or +01:00. Default: UTC."),
    ] = None

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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServedOptions:
    """The address that is served, and who may ask there."""

    token_file: Annotated[
        InputFile | None,
        Parameter(help="File with the token that clients must know, readable by its owner only."),
    ] = None
    tls_certificate: Annotated[InputFile | None, Parameter(help="TLS certificate chain (PEM).")] = None
    tls_key: Annotated[SecretFile | None, Parameter(help="Key of the certificate (PEM).")] = None
    behind_proxy: Annotated[Flag, Parameter(help="A proxy in front ends TLS.")] = False
    allowed_host: Annotated[
        Repeated, Parameter(help="A further name by which clients may call the server; may be repeated.")
    ] = ()

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
