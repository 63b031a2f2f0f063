"""``mqtwin broker``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.java.broker import Broker
from deploy.options.common import MAX_HOURS, KeptFolder, parse_address
from streams.host.signals import until_stopped
from twin.base.errors import MqtwinError, UsageError


def broker(
    *,
    listen: str | None = None,
    data: KeptFolder | None = None,
    retention_hours: Annotated[float | None, Parameter(validator=Number(gte=1, lte=MAX_HOURS))] = None,
) -> None:
    """Run the embedded Kafka broker in the foreground until Ctrl-C or SIGTERM.

    Prints bootstrap.servers=HOST:PORT on standard output when the broker is ready.

    Args:
        listen: Address to serve on, 127.0.0.1:PORT. Default: the last port of the same data, else a free one.
        data: Folder for topics, settings and log. Default: a temporary folder, removed at the end.
        retention_hours: Hours for which topics keep events. Default: without end, as recordings may be of long ago.
    """
    host, port = ("127.0.0.1", None) if listen is None else parse_address(listen)
    if host not in ("127.0.0.1", "localhost") or port == 0:
        raise UsageError(f"--listen {listen}; expected: 127.0.0.1:PORT, it serves this machine only")
    with until_stopped(), Broker(data=data, port=port, retention_hours=retention_hours) as running:
        print(f"bootstrap.servers={running.bootstrap_servers}", flush=True)
        status = running.wait()
        raise MqtwinError(f"the broker ended by itself (exit status {status}){running.last_error()}")
