"""``mqtwin console``."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from deploy.console.model import ConsoleModel
from deploy.console.past import LivePast, PastTwins, mark_of
from deploy.console.server import ConsoleServer, Listen, Site
from deploy.console.sites import SitesModel
from deploy.options.common import Flag, KafkaOptions, open_estate, parse_zone
from deploy.options.console import DEFAULT_LISTEN, ServedOptions, SignInOptions, SitesOptions, SiteSource, SourceOptions
from deploy.options.files import InputFile
from deploy.show.progress import WrongEstate, show_progress
from deploy.show.terminal import print_warnings
from streams.host.signals import until_stopped
from streams.log import configure_logging
from streams.query.status import stopped_text
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.timeline import Timeline
from twin.recordings.files import Chunk

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
    from twin.planning.allowed import read_allowed

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
    from deploy.java.class_archives import find_spark_java
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
