"""Reasons of dead letters: a stable code and a sentence each.

The codes are public (header `reason`, docs/events.md): codes may be added, not renamed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Code of a dead letter, with its sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        """Make a code, which is a string, with its sentence."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.sentence = sentence
        return reason

    NOT_JSON = "not-json", "The bytes are not one JSON text in UTF-8."
    NOT_AN_OBJECT = "not-an-object", "The JSON text is not an object."
    MISSING_FIELD = "missing-field", "A field that the operation needs is absent or null."
    WRONG_TYPE = "wrong-type", "A field has the wrong type."
    BAD_VALUE = "bad-value", "A field has a value outside its range, or one that contradicts another field."
    BAD_TIME = "bad-time", "The time is not RFC 3339, or lies outside the years 2000 to 2100."
    UNKNOWN_OP = "unknown-op", "The operation is unknown."
    UNKNOWN_QUEUE_MANAGER = "unknown-queue-manager", "The estate has no such queue manager."
    UNKNOWN_QUEUE = "unknown-queue", "The queue manager has no such queue with a store in the estate."
    UNKNOWN_STORE = "unknown-store", "The estate has no such store, or it does not concern that queue manager."
    UNKNOWN_CONTENT_TYPE = "unknown-content-type", "The record's content-type is unknown."
    BAD_ARROW = "bad-arrow", "The bytes are not, or not to their end, an Arrow IPC stream."
    OVERSIZED = "oversized", "The record decodes to more rows or bytes than one record may, or the event is too long."
    UNDECODABLE = "undecodable", "Decoding the event failed with an unexpected error, which the detail names."
    MANY_REJECTED = (
        "many-rejected",
        "More events of the record were refused than its limit of dead letters; the detail counts them.",
    )
    BAD_ATTRIBUTES = "bad-attributes", "The attributes of an ALTER or REBUILD do not fit the store."
    IMPOSSIBLE_DIRECT = (
        "impossible-direct",
        "A put to a waiting getter inside syncpoint, or of a persistent message on z/OS, which MQ does not make.",
    )
    UNREADABLE_SPANS = "unreadable-spans", "A record of the OpenTelemetry topic is no request with spans."
    BAD_REPORT = "bad-report", "A record of the reports topic was not written by the job."
    TOO_LARGE = "too-large", "An alert or a state record is larger than its topic accepts."


class EventError(ValueError):
    """Event that is refused, with its reason; the message names the value and the expected value."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
