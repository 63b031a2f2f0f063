"""Chromium of this machine: MQTWIN_TEST_CHROMIUM=PATH, or the package of the distribution (Debian: chromium)."""

from __future__ import annotations

import os
import shutil

CHROMIUM = os.environ.get("MQTWIN_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
