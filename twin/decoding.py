"""What decoding JSON or MessagePack of others may raise, apart from `twin.errors`, which loads no library."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding JSON or MessagePack of others: it has no sense, is not UTF-8, or is nested too deep."""
