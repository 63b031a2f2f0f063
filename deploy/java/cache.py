"""The cache folder: downloaded and generated files that are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from twin.errors import UsageError


def cache_dir() -> Path:
    """Return the cache folder: ``MQTWIN_CACHE`` where it is set, else the user's. It may not exist yet."""
    override = os.environ.get("MQTWIN_CACHE")
    return Path(override).expanduser().absolute() if override else platformdirs.user_cache_path("mqtwin")


def make_folder(folder: Path) -> None:
    """Make a folder in the cache unless it exists.

    Raises:
        UsageError: The cache cannot be written. The message names the remedy.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the cache folder {cache_dir()} cannot be written ({error.strerror})"
        raise UsageError(f"{problem}: set MQTWIN_CACHE to a writable folder") from error
