"""Where downloaded and generated files are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """The folder for jars and launchers: ``MQTWIN_CACHE`` where it is set, else the user's. It may not exist yet."""
    override = os.environ.get("MQTWIN_CACHE")
    return Path(override).expanduser().absolute() if override else platformdirs.user_cache_path("mqtwin")
