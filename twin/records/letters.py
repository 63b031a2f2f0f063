"""The dead letter of a replay."""

from __future__ import annotations

import msgspec


class ReplayedLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dead letter of `mqtwin replay`: docs/commands.md. The bytes are in `value_base64` where they are no text."""

    reason: str
    detail: str
    index: int
    original_length: int | None = None  # bytes, where `value` was cut
    value: str | None = None
    value_base64: bytes | None = None
