"""Look for Spark's master before Spark does, which takes a minute over it and does not name the cause."""

from __future__ import annotations

import re
import socket
from contextlib import closing

from twin.errors import MqtwinError, UsageError

SECONDS = 5.0  # for a master to take a connection
_PORTS = {"spark": 7077, "k8s": 443}


def check_master(master: str) -> None:
    """Connect to the master of a standalone cluster or of Kubernetes; other masters are left to Spark.

    Raises:
        UsageError: the address is not one.
        MqtwinError: nobody takes a connection there; the message says why.
    """
    found = re.fullmatch(r"(spark|k8s)://(?:https?://)?([^/]+)/?.*", master)
    if found is None:
        return
    scheme, places = found.group(1), found.group(2).split(",")
    refusals = []
    for place in places:
        host, port = _address(master, place, _PORTS[scheme])
        try:
            with closing(socket.create_connection((host, port), timeout=SECONDS / len(places))):
                return
        except OSError as error:
            refusals.append(f"{place}: {error.strerror or error}")
    raise MqtwinError(f"--master {master}: nobody answers ({'; '.join(refusals)}); is the master running?")


def _address(master: str, place: str, default: int) -> tuple[str, int]:
    host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", str(default))
    if not host or not 0 < int(port) < 65536 or ":" in host.strip("[]") != host.startswith("["):
        raise UsageError(f"--master {master}: {place}: expected: HOST:PORT")
    return host.strip("[]"), int(port)
