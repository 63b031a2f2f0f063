"""``mqtwin broker``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.java.broker import Broker
from deploy.options.files import KeptFolder
from streams.host.signals import StopRequestedError, raise_on_stop
from twin.errors import MqtwinError


def broker(
    *,
    port: Annotated[int | None, Parameter(validator=Number(gte=1, lte=65535))] = None,
    data: KeptFolder | None = None,
) -> None:
    """Run the embedded Kafka broker in the foreground until Ctrl-C or SIGTERM.

    Prints bootstrap.servers=HOST:PORT on standard output when the broker is ready.

    Args:
        port: Port on the loopback address. Default: that of the last start on the same data, else any free one.
        data: Folder for topics, settings and log. Default: a temporary folder, removed at the end.
    """
    try:
        with raise_on_stop(), Broker(data=data, port=port) as running:
            print(f"bootstrap.servers={running.bootstrap_servers}", flush=True)
            status = running.wait()
            raise MqtwinError(f"the broker ended by itself (exit status {status}){running.last_error()}")
    except StopRequestedError:
        return
