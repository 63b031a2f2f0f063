"""Small files: one that is replaced as a whole, so that a crash leaves it as it was or as it is to be; a secret."""

from __future__ import annotations

import os
from pathlib import Path

from twin.errors import UsageError
from twin.outputs import is_stream


def write_draft(path: Path, data: bytes, *, is_synced: bool = True) -> Path:
    """Write the future content of a file beside it, and return the path of this draft, to be renamed.

    Args:
        path: the file.
        data: its content.
        is_synced: flush the draft to the disk, so that a crash of the machine cannot leave the file empty.

    Raises:
        OSError: the draft cannot be written.
    """
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        file.write(data)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())
    return draft


def replace_file(path: Path, data: bytes, *, is_synced: bool = True) -> None:
    """Replace a file by a draft of its new content; parameters and errors as in `write_draft`.

    A device or a pipe is written directly.
    """
    if is_stream(path):
        path.write_bytes(data)
        return
    write_draft(path, data, is_synced=is_synced).replace(path)


def read_secret(option: str, path: Path) -> str:
    """Return the secret in the first line of a file.

    Args:
        option: that names the file, for the error.
        path: the file.

    Raises:
        UsageError: the file cannot be read, or its first line is empty or cannot be printed.
    """
    try:
        line = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {path} cannot be read: {error}; expected: a file with one line") from None
    if not line or not line.isprintable():
        raise UsageError(f"{option} {path} has no secret in its first line; expected: a file with one line")
    return line
