"""``mqtwin console``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.console.live import LiveTwins, TopicFeed
from deploy.console.model import ConsoleModel
from deploy.console.server import DEFAULT_PORT, ConsoleServer, Listen, read_token
from deploy.options.common import KafkaOptions
from streams.host.signals import StopRequestedError, raise_on_stop
from streams.kafka.topics import Topics
from streams.log import configure_logging
from twin.estate import load_estate


def console(
    *,
    kafka: KafkaOptions,
    estate: Path | None = None,
    host: str = "127.0.0.1",
    port: Annotated[int, Parameter(validator=Number(gte=0, lt=65536))] = DEFAULT_PORT,
    token_file: Path | None = None,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    behind_proxy: Annotated[bool, Parameter(negative="")] = False,
    allowed_host: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
) -> None:
    """Serve a page about every store, until Ctrl-C or SIGTERM: what fills, when, why, and what to do.

    It reads the topics of state records, alerts and dead letters, and changes nothing. Everything that the browser
    needs comes from this machine.

    Args:
        kafka: Kafka connection.
        estate: Estate file (TOML), for what-if: the console then follows the events topic with twins of its own.
        host: Address to listen on. Any other than this machine's own needs --token-file and TLS.
        port: Port; 0 takes a free one.
        token_file: File with the token that clients must know, readable by its owner only.
        tls_certificate: TLS certificate chain (PEM).
        tls_key: Key of the certificate (PEM).
        behind_proxy: A proxy in front ends TLS.
        allowed_host: A further name by which browsers may call the console; may be repeated.
    """
    listen = Listen(
        host=host,
        port=port,
        token=None if token_file is None else read_token(token_file),
        certificate=tls_certificate,
        key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=allowed_host,
    )
    topics, client = Topics(kafka.topic_prefix), kafka.client()
    model = ConsoleModel(topics)
    twins = None if estate is None else LiveTwins(load_estate(estate))
    configure_logging()
    try:
        with raise_on_stop(), TopicFeed(client, topics, model), ExitStack() as parts:
            if twins is not None:
                parts.enter_context(twins.follow(client, topics))
            what_if, problem = (None, str) if twins is None else (twins.answer, twins.problem)
            server = parts.enter_context(ConsoleServer(model, listen, what_if, problem))
            print(f"console {server.address}", flush=True)
            print("Open it in a browser. It runs until Ctrl-C.", file=sys.stderr, flush=True)
            server.wait()
    except StopRequestedError:
        pass  # a signal is the usual end
