"""``mqtwin console``."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from datetime import tzinfo
from pathlib import Path

from deploy.console import DEFAULT_PORT
from deploy.console.model import ConsoleModel
from deploy.console.past import LivePast, PastTwins, mark_of
from deploy.console.server import ConsoleServer, Listen, read_token
from deploy.options.common import Flag, KafkaOptions, Repeated, open_estate, parse_address, parse_zone
from deploy.options.files import EstateFile, InputFile, InputFolder, SecretFile
from deploy.options.identity import SignInOptions
from deploy.show.progress import WrongEstate, show_progress
from deploy.show.terminal import print_warnings
from streams.host.signals import StopRequestedError, raise_on_stop
from streams.kafka.topics import Topics
from streams.log import configure_logging
from streams.query.status import stopped_text
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.timeline import Timeline
from twin.recordings.files import Chunk

_NO_SIGN_IN = SignInOptions()
_SOCKET = "unix:"


def console(
    *,
    kafka: KafkaOptions | None = None,
    recording: InputFile | None = None,
    estate: EstateFile | None = None,
    checkpoint: InputFolder | None = None,
    status_file: InputFile | None = None,
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    token_file: InputFile | None = None,
    tls_certificate: InputFile | None = None,
    tls_key: SecretFile | None = None,
    behind_proxy: Flag = False,
    allowed_host: Repeated = (),
    open_: Flag = False,
    zone: str | None = None,
    sign_in: SignInOptions = _NO_SIGN_IN,
) -> None:
    """Serve a page about every store, until Ctrl-C or SIGTERM: what fills, when, why, and what to do.

    It reads the topics of state records, alerts, notes and dead letters, or plays a recording of which the page shows
    every moment. It writes notes of people on alerts, and changes nothing else. Everything that the browser needs comes
    from this machine.

    Args:
        kafka: Kafka connection.
        recording: Recording to show instead of the topics, without Kafka and Spark: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML): that of the recording; or, for what-if, that of the job, whose events topic the
            console then follows with twins of its own.
        checkpoint: Checkpoint folder of the job, on this machine: with its snapshots the page shows past days, too.
        status_file: File of `mqtwin stream --status-file` on this machine: the page says when the job has stopped.
        listen: Address to serve on, HOST:PORT, with port 0 a free one, or unix:PATH for a proxy. A host that others
            reach needs --token-file or a sign-in, and TLS.
        token_file: File with the token that clients must know, readable by its owner only.
        tls_certificate: TLS certificate chain (PEM).
        tls_key: Key of the certificate (PEM).
        behind_proxy: A proxy in front ends TLS.
        allowed_host: A further name by which browsers may call the console; may be repeated.
        open_: Open the page in the browser of this machine.
        zone: Zone of the times on the page, where no estate is given: Europe/Berlin, or +01:00. Default: UTC.
        sign_in: Sign-in and roles.
    """
    if (kafka is None) == (recording is None):
        raise UsageError("expected one of --bootstrap-servers HOST:PORT and --recording FILE")
    if recording is not None and estate is None:
        raise UsageError(f"--recording {recording} without --estate; expected: --estate FILE, the estate of its events")
    if checkpoint is not None:
        if kafka is None or estate is None:
            raise UsageError(f"--checkpoint {checkpoint}; expected: with --bootstrap-servers and --estate")
        from streams.checkpoint.guard import open_stopped

        open_stopped(checkpoint)
    if status_file is not None and kafka is None:
        raise UsageError(f"--status-file {status_file}; expected: with --bootstrap-servers")
    if zone is not None and estate is not None:
        raise UsageError(f"--zone {zone} with --estate; expected: [site] zone in {estate}")
    is_socket = listen.startswith(_SOCKET)
    host, port = ("localhost", 0) if is_socket else parse_address(listen)
    served = Listen(
        host=host,
        port=port,
        path=Path(listen.removeprefix(_SOCKET)) if is_socket else None,
        token=None if token_file is None else read_token(token_file),
        identity=sign_in.identity(),
        certificate=tls_certificate,
        key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=(*allowed_host, *sign_in.hosts),
    )

    def open_server(parts: ExitStack) -> ConsoleServer:
        if recording is not None and estate is not None:
            return server_of(play_recording(recording, open_estate(estate)), served)
        assert kafka is not None
        return _live(kafka, estate, checkpoint, status_file, served, parts, parse_zone(zone or ""))

    serve(open_server, opens=open_)


def serve(open_server: Callable[[ExitStack], ConsoleServer], *, opens: bool) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        open_server: returns the server; gets what takes its parts.
        opens: open the page in the browser of this machine.
    """
    configure_logging()
    try:
        with raise_on_stop(), ExitStack() as parts:
            server = parts.enter_context(open_server(parts))
            print(f"console {server.address}", flush=True)
            print("Open it in a browser. It runs until Ctrl-C.", file=sys.stderr, flush=True)
            if opens:
                webbrowser.open(server.address)
            server.wait()
    except StopRequestedError:
        pass  # a signal is the usual end


def _live(
    kafka: KafkaOptions,
    estate: Path | None,
    checkpoint: Path | None,
    status_file: Path | None,
    listen: Listen,
    parts: ExitStack,
    zone: tzinfo,
) -> ConsoleServer:
    """Return the server of the present. parts: gets what reads the topics; zone: zone of a page without an estate."""
    from deploy.console.live import LiveTwins, NoteTaker, TopicFeed
    from deploy.java.class_archives import find_spark_java
    from streams.query.past import JobPast

    topics, client = Topics(kafka.topic_prefix), kafka.client()
    loaded_estate = None if estate is None else load_estate(estate)
    model = ConsoleModel(
        topics,
        job_problem=str if status_file is None else lambda: stopped_text(status_file, time.time()),
        zone=zone if loaded_estate is None else loaded_estate.site.clock,
    )
    parts.enter_context(TopicFeed(client, topics, model))
    take_note = NoteTaker(client, topics, model).take
    if loaded_estate is None:
        return ConsoleServer(model, listen, take_note=take_note)
    source = JobPast(
        kafka=client,
        topics=topics,
        estate=loaded_estate,
        checkpoint=checkpoint,
        java=find_spark_java(),
        warn=lambda text: print_warnings([text]),
    )
    twins = parts.enter_context(LiveTwins(loaded_estate).follow(source))
    past = LivePast(source, twins, lambda: [mark_of(*call) for call in model.calls()])
    return ConsoleServer(model, listen, past, past, take_note)


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
