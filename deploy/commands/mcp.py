"""``mqtwin mcp``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import lru_cache, partial

from deploy.ask.server import http_tools, serve_stdio
from deploy.ask.tools import Questions
from deploy.commands.console import ServedOptions, SourceOptions, follow_job, play_recording
from deploy.commands.report import report_of_job
from deploy.console.app import TOOLS_PATH
from deploy.console.model import ConsoleModel
from deploy.console.past import PastTwins
from deploy.console.server import ConsoleServer
from deploy.options.common import KafkaOptions, open_estate
from streams.host.signals import until_stopped
from streams.log import configure_logging
from twin.reporting.report import report

_SOURCE, _SERVED = SourceOptions(), ServedOptions()
_REPORTS = 4  # periods of a recording that are kept


def mcp(
    *,
    kafka: KafkaOptions | None = None,
    source: SourceOptions = _SOURCE,
    listen: str | None = None,
    served: ServedOptions = _SERVED,
) -> None:
    """Answer programs that ask by the Model Context Protocol (MCP): what fills, when, why, what would help.

    The program that asks starts this command and talks to it by standard input and output; with --listen it asks by
    HTTP. Every tool only reads. It needs the package mcp: pip install 'mqtwin[mcp]'.

    Args:
        kafka: Kafka connection.
        source: What is asked about.
        listen: Address to serve on by HTTP, HOST:PORT, instead; port 0: a free one. A host that others reach needs
            --token-file and TLS.
        served: Who may ask by HTTP.
    """
    source.check(kafka)
    address = None if listen is None else served.listen(listen)
    configure_logging(level="warning")
    with until_stopped(), ExitStack() as parts:
        model, questions = _open(kafka, source, parts)
        if address is None:
            serve_stdio(questions)
            return
        tools = http_tools(questions, address.hosts, is_tls=address.is_tls)
        server = parts.enter_context(ConsoleServer(model, address, tools=tools))
        print(f"mcp {server.address}{TOOLS_PATH.removeprefix('/')}", flush=True)
        print("A program asks there. It runs until Ctrl-C.", file=sys.stderr, flush=True)
        server.wait()


def _open(kafka: KafkaOptions | None, source: SourceOptions, parts: ExitStack) -> tuple[ConsoleModel, Questions]:
    """Return the model and the answers. parts: gets what reads the topics."""
    estate = None if source.estate is None else open_estate(source.estate)
    if source.recording is not None and estate is not None:
        past = PastTwins(play_recording(source.recording, estate))
        model = past.model_at(past.moments.times[-1])
        of_recording = partial(report, source.recording, estate)
        reports = lru_cache(_REPORTS)(lambda since, until: of_recording(since=since, until=until))
        return model, Questions(model, past, estate, reports)
    assert kafka is not None
    model, job = follow_job(kafka, source, parts)
    return model, Questions(model, job, estate, None if estate is None else partial(report_of_job, kafka, estate))
