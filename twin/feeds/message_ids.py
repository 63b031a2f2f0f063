"""Message ids: 24 bytes, of which each source has another form; an event has 48 lower-case hexadecimal digits.

Kafka Connect writes the header JMS_IBM_MQMD_MsgId as text of hexadecimal digits with or without `ID:`, since 2026 as
bytes: raw (ByteArrayConverter) or in Base64 (SimpleHeaderConverter) [IBM: kafka-connect-mq-source, pull request 183].
"""

from __future__ import annotations

import base64
import binascii

ID_BYTES = 24  # MQMD MsgId [IBM: MQ, MQMD]
ID_DIGITS = 2 * ID_BYTES
_BASE64_LENGTH = 4 * ID_BYTES // 3
_NONE = "0" * ID_DIGITS  # MQMI_NONE


def is_no_message_id(text: str) -> bool:
    """Return True for MQMI_NONE as digits: the message had no id."""
    return text.removeprefix("ID:") == _NONE


def message_id(value: str | bytes) -> str | None:
    """Return a message id as events have it; None for MQMI_NONE and for anything else than a message id.

    Args:
        value: 24 bytes, 48 hexadecimal digits with or without `ID:`, or 32 characters of Base64; text in quotes
            likewise. Raw bytes that were decoded with `surrogateescape` are bytes again.
    """
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    if len(raw) != ID_BYTES:
        text = raw.decode("latin-1").strip().strip('"').removeprefix("ID:")
        try:
            if len(text) == ID_DIGITS:
                raw = binascii.unhexlify(text)
            elif len(text) == _BASE64_LENGTH:
                raw = base64.b64decode(text, validate=True)
            else:
                return None
        except ValueError:
            return None
    digits = raw.hex()
    return None if digits == _NONE or len(raw) != ID_BYTES else digits
