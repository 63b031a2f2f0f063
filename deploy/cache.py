"""Where downloaded and generated files are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from twin.errors import UsageError


def cache_dir() -> Path:
    """The folder for jars and launchers: ``MQTWIN_CACHE`` where it is set, else the user's. It may not exist yet."""
    override = os.environ.get("MQTWIN_CACHE")
    return Path(override).expanduser().absolute() if override else platformdirs.user_cache_path("mqtwin")


def make_folder(folder: Path) -> None:
    """Make a folder in the cache, where it is missing.

    Raises:
        UsageError: the cache cannot be written; the message says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the cache folder {cache_dir()} cannot be written ({error.strerror})"
        raise UsageError(f"{problem}: set MQTWIN_CACHE to a folder that can") from error
