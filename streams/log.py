"""Logging of long-running commands to standard error: formatted for a terminal, or JSON lines for a collector."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from streams.kafka.settings import redact
from twin.base.units import as_count


def configure_logging(*, json_lines: bool | None = None, level: str = "info", stream: TextIO | None = None) -> None:
    """Set up structlog for this process. Lines are JSON unless the stream, standard error by default, is a terminal. As
    text, a batch is one short line unless the level is debug.
    """
    out = stream or sys.stderr
    as_json = not out.isatty() if json_lines is None else json_lines
    shorten = [] if as_json or level == "debug" else [_shorten_batch]
    renderer: Any = (
        structlog.processors.JSONRenderer(_dumps) if as_json else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            *shorten,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )


_NEWS_S = 60.0  # the least period of a log of figures that change


class NewsLog:
    """A log of figures that change: none without a change, and at most one line in each period."""

    def __init__(self, log: Any, event: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._event, self._clock = log, event, clock
        self._logged: dict[str, int] = {}
        self._next_s = 0.0

    def note(self, **figures: int) -> None:
        """Log the figures if it is time and they are others than those of the last line; at first: if any is not 0."""
        if figures != (self._logged or dict.fromkeys(figures, 0)) and self._clock() >= self._next_s:
            self._log.info(self._event, **figures)
            self._logged, self._next_s = figures, self._clock() + _NEWS_S


def batch_text(figures: Mapping[str, Any]) -> str:
    """Return the figures of a batch that an operator at a terminal looks at; docs/operations.md explains all."""
    parts = [
        f"batch {figures['batch']}",
        f"{as_count(figures['events'], 'event')} in {figures.get('batch_ms', 0) / 1000:.1f} s",
        as_count(figures["alerts"], "alert"),
    ]
    parts += [f"{figures['behind']:,} behind"] if "behind" in figures else []
    rare = {"held": "held back by open transactions", "dead_letters": "dead letters", "duplicates": "duplicates"}
    parts += [f"{figures[name]:,} {text}" for name, text in rare.items() if figures.get(name)]
    return "  ".join(parts)


def _shorten_batch(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if event.get("event") != "batch" or "events" not in event:
        return event
    return {"event": batch_text(event), **{key: event[key] for key in ("level", "timestamp") if key in event}}


def _dumps(value: Any, **_: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _without_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Redact the values of secret settings, at the top level and in mappings one level down."""
    clean = redact(event)
    return {key: redact(value) if isinstance(value, dict) else value for key, value in clean.items()}
