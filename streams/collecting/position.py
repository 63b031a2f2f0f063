"""Position of a collector in its source: a small JSON file, replaced as a whole.

Events are delivered before the position is saved: after a crash the events since the last save come again, after a stop
none.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from streams.files import replace_file
from twin.errors import UsageError


class Position(msgspec.Struct, kw_only=True):
    """Position in a source.

    Attributes:
        source: topic or address; a position of another source is refused.
        offsets: by partition of a topic, as text: the first record to read again.
        read: by partition: the first record that was never read.
        passed: microseconds; events of records before `read` up to this time were published.
        time: microseconds; the end of what was asked of a server.
        coverage: of spans, see `twin.feeds.live_coverage.LiveCoverage.known`.
    """

    source: str
    offsets: dict[str, int] = {}
    read: dict[str, int] = {}
    passed: int = 0
    time: int = 0
    coverage: dict[str, tuple[int, int]] = {}


def load_position(path: Path, source: str) -> Position:
    """Return the position in a file, or that of a new source if there is no file.

    Args:
        path: the file.
        source: topic or address.

    Raises:
        UsageError: the file cannot be read, or belongs to another source.
    """
    try:
        position = msgspec.json.decode(path.read_bytes(), type=Position)
    except FileNotFoundError:
        return Position(source=source)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"--position {path}: {error}; expected: a file that mqtwin collect wrote, or none") from None
    if position.source != source:
        raise UsageError(f"--position {path} is of {position.source}; expected: {source}, or another file")
    return position


def save_position(path: Path, position: Position) -> None:
    """Replace the file. UsageError: it cannot be written."""
    try:
        replace_file(path, msgspec.json.encode(position) + b"\n")
    except OSError as error:
        raise UsageError(
            f"--position {path} cannot be written: {error.strerror}; expected: a file in a folder"
        ) from None
