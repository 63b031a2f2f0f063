"""Errors that decoding foreign JSON or MessagePack may raise, apart from `twin.base.errors`: it loads no library."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised where the text makes no sense, is not UTF-8, or is nested too deep."""
