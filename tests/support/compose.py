"""The services of docker-compose.yml as Compose reads them on a machine that sets no variable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

COMPOSE_FILE = Path(__file__).resolve().parents[2] / "docker-compose.yml"


def compose_services() -> dict[str, Any]:
    """Return the services by name, with the defaults of variables; those without one stay as they are."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE_FILE.read_text(encoding="utf-8"))
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services
