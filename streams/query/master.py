"""A check of the connection to Spark's master; Spark itself takes a minute to fail and does not name the cause."""

from __future__ import annotations

import re
import socket
from contextlib import closing

from twin.errors import MqtwinError, UsageError

SECONDS = 5.0  # limit for a connection
_PORTS = {"spark": 7077, "k8s": 443}


def check_master(master: str) -> None:
    """Connect to the master of a standalone cluster or of Kubernetes; other masters are left to Spark.

    Raises:
        UsageError: the address is malformed.
        MqtwinError: no connection is accepted; the message has the cause.
    """
    match = re.fullmatch(r"(spark|k8s)://(?:https?://)?([^/]+)/?.*", master)
    if match is None:
        return
    scheme, addresses = match.group(1), match.group(2).split(",")
    refusals = []
    for address in addresses:
        host, port = _parse_address(master, address, _PORTS[scheme])
        try:
            with closing(socket.create_connection((host, port), timeout=SECONDS / len(addresses))):
                return
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
    raise MqtwinError(f"--master {master}: nobody answers ({'; '.join(refusals)}); is the master running?")


def _parse_address(master: str, address: str, default_port: int) -> tuple[str, int]:
    host, _, port = address.rpartition(":") if re.search(r":\d+$", address) else (address, "", str(default_port))
    is_ipv6, has_brackets = ":" in host.strip("[]"), host.startswith("[")
    if not host or not 0 < int(port) < 65536 or is_ipv6 != has_brackets:
        raise UsageError(f"--master {master}: {address}: expected: HOST:PORT")
    return host.strip("[]"), int(port)
