"""Replacement of whole files: after a crash, a file has its previous content or the new one."""

from __future__ import annotations

import os
from pathlib import Path


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
    """Replace a file by a draft of its new content; parameters and errors as in `write_draft`."""
    write_draft(path, data, is_synced=is_synced).replace(path)
