"""A recorded night as one page: the console with all that it shows of it, without a server and without a kernel.

`mqtwin demo --recorded` serves it, and it is docs/demo.html. What the page asks for is answered by
`static/recorded.js`, out of the night that stands in the page; `python -m docs.make_demo` makes the night.
"""

from __future__ import annotations

import base64
import gzip
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

NIGHT = Path(__file__).with_name("night.json.gz")
_STATIC = resources.files("deploy").joinpath("console", "static")
_IMPORT = re.compile(r'(?<=from) "(?:\./)?([a-z]+\.js)"')
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


class Line(msgspec.Struct, frozen=True):
    """A line of the terminal. time: seconds since 1970."""

    time: float
    text: str


class Screen(msgspec.Struct, frozen=True):
    """The page at a moment. stores, incidents: places in the parts of the night."""

    meta: msgspec.Raw
    letters: msgspec.Raw
    stores: list[int]
    incidents: list[int]


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded night."""

    moments: dict[str, Any]  # as `deploy.console.past.Moments`, with `plays`
    screens: list[Screen] = msgspec.field(name="shown")  # the page at each moment
    parts: list[msgspec.Raw]  # stores and incidents, which most moments share
    history: dict[str, Any]  # by store
    asked: dict[str, list[float]]  # moments of which questions are answered, seconds since 1970, by store
    what_if: dict[str, object]  # `WhatIfAnswer` of `deploy.console.answers` by `whatif_key`
    advice: dict[str, object]  # `AdviseAnswer` likewise
    lines: list[Line]


def whatif_key(store: str, time: float, name: str = "", value: float = 0) -> str:
    """Return the key of an answer. name: what was changed, an attribute or a factor of traffic; "": nothing."""
    return f"{store}|{time:.0f}" + (f"|{name}|{value:.10g}" if name else "")


class Moments(msgspec.Struct, frozen=True):
    """When the play begins, seconds since 1970."""

    first: float


class Step(msgspec.Struct, frozen=True):
    """A step of a plan."""

    text: str


class Plan(msgspec.Struct, frozen=True):
    """A plan."""

    title: str
    steps: list[Step]


class Advice(msgspec.Struct, frozen=True):
    """Changes that would have helped."""

    note: str
    plans: list[Plan]


class Story(msgspec.Struct, frozen=True):
    """The part of a night that the terminal says; see `Night`."""

    moments: Moments
    advice: dict[str, Advice]
    lines: list[Line]


def read_story() -> Story:
    """Return what the terminal says of the bundled night."""
    return msgspec.json.decode(gzip.decompress(NIGHT.read_bytes()), type=Story)


def recorded_page() -> str:
    """Return the page: the console's own files and the night, in one file that loads nothing."""
    files = (
        (r"static/icon\.svg", lambda _: _data("icon.svg", "image/svg+xml")),
        (r'<link rel="stylesheet" href="static/([\w.]+)">', lambda own: f"<style>\n{_text(own[1])}</style>"),
        (r'<link rel="modulepreload"[^>]*>\n', lambda _: ""),
        (r'<script id="chart-library"[^>]*></script>\n', lambda _: ""),
        (r'<script src="static/console.js" type="module"></script>', lambda _: "\n".join(_scripts())),
        (r"<title>mqtwin console", lambda _: "<title>mqtwin, a recorded night"),
    )
    page = _text("index.html")
    for pattern, own in files:
        page, count = re.subn(pattern, own, page)
        assert count, pattern
    return page


def _scripts() -> tuple[str, ...]:
    modules = {name: _data(name, "text/javascript") for name in sorted(set(_IMPORT.findall(_text("console.js"))))}
    return (
        f'<meta http-equiv="content-security-policy" content="{_POLICY}">',
        f'<script type="text/plain" id="night">{base64.b64encode(NIGHT.read_bytes()).decode()}</script>',
        f"<script>\n{_text('recorded.js')}</script>",
        f'<script id="chart-library">{_text("uPlot.iife.min.js")}</script>',
        f'<script type="importmap">{msgspec.json.encode({"imports": modules}).decode()}</script>',
        f'<script type="module">\n{_text("console.js")}</script>',
    )


def _text(name: str) -> str:
    """Return a file of the console. A module names others as the page's map of imports has them: their names."""
    return _IMPORT.sub(r' "\1"', _STATIC.joinpath(name).read_text(encoding="utf-8"))


def _data(name: str, kind: str) -> str:
    return f"data:{kind};base64," + base64.b64encode(_text(name).encode()).decode()


@contextmanager
def serve_page(port: int) -> Iterator[str]:
    """Serve the page on this machine, and yield its address. port: a free one is taken where it is in use."""
    content = recorded_page().encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(content) if self.path == "/" else 0))
            self.end_headers()
            if self.path == "/":
                self.wfile.write(content)

        @override
        def log_message(self, format: str, *_: object) -> None:
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
