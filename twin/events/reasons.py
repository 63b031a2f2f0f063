"""Why an event is a dead letter: stable codes, a sentence each.

Source: contract section 5 (header `reason`). Codes are public: add to them, do not rename them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """The code of a dead letter; `sentence` says what it means."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        """A code that is a string, with its sentence."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.sentence = sentence
        return reason

    NOT_JSON = "not-json", "The bytes are not one JSON text in UTF-8."
    NOT_AN_OBJECT = "not-an-object", "The JSON text is not an object."
    MISSING_FIELD = "missing-field", "A field that the operation needs is absent or null."
    WRONG_TYPE = "wrong-type", "A field has another type than the contract gives it."
    BAD_VALUE = "bad-value", "A field has a value outside its range, or one that contradicts another field."
    BAD_TIME = "bad-time", "The time is not RFC 3339, or lies outside the years 2000 to 2100."
    UNKNOWN_OP = "unknown-op", "The operation is none of those the contract names."
    UNKNOWN_QUEUE_MANAGER = "unknown-queue-manager", "The estate has no such queue manager."
    UNKNOWN_QUEUE = "unknown-queue", "The queue manager has no such queue with a store in the estate."
    UNKNOWN_STORE = "unknown-store", "The estate has no such store, or it does not concern that queue manager."
    UNKNOWN_CONTENT_TYPE = "unknown-content-type", "The record's content-type is none of those the contract names."
    BAD_ARROW = "bad-arrow", "The bytes are not, or not to their end, an Arrow IPC stream."
    OVERSIZED = "oversized", "The record decodes to more rows or bytes than one record may, or the event is too long."
    UNDECODABLE = "undecodable", "Decoding the event failed in a way that no rule foresees; the detail names the error."
    MANY_REJECTED = (
        "many-rejected",
        "More events of the record were refused than it may have dead letters; their count.",
    )
    BAD_ATTRIBUTES = "bad-attributes", "The attributes of an ALTER or REBUILD do not fit the store."
    BAD_REPORT = "bad-report", "A record of the reports topic is not what the job itself writes there."
    TOO_LARGE = "too-large", "A record of mqtwin's own, an alert or a state, is larger than its topic takes."


class EventError(ValueError):
    """One event that cannot be taken. `reason`: its code; the message names the value and what would be right."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
