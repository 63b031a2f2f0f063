"""Names of alert conditions, severities, levels and changes, as they stand in records: docs/alerts.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Condition(StrEnum):
    """Conditions that raise an alert."""

    FULL_FORECAST = "full-forecast"
    THRESHOLD = "threshold"
    CANNOT_EXPAND = "cannot-expand"
    FULL = "full"
    QUEUE_FULL = "queue-full"
    QUEUE_FULL_FORECAST = "queue-full-forecast"
    SCM_OVERCOMMITTED = "scm-overcommitted"
    SCM_EXHAUSTED = "scm-exhausted"
    AUGMENTED_EXHAUSTED = "augmented-exhausted"
    NOT_ALTERABLE = "not-alterable"
    CAPACITY = "capacity"
    DRIFT = "drift"
    SOURCE_SILENT = "source-silent"
    IN_DOUBT = "in-doubt"
    SCM_OVERRUN = "scm-overrun"
    FAULT_WAIT = "fault-wait"


OPENED: Final = "opened"
UPDATED: Final = "updated"
CLEARED: Final = "cleared"

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
FULL: Final = "full"  # the severity of Condition.FULL

WATCH: Final = "watch"  # level of an alert that wakes nobody
PAGE: Final = "page"  # level of every other alert
