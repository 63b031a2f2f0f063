"""Delivery to every Alertmanager of a cluster.

Each peer has a thread that always sends the current content, never a queue: a peer that was away gets what is open now
and what has cleared lately. Alertmanager asks for exactly that of its clients: send to all peers, send again
[Alertmanager: High availability].
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec
import structlog

from deploy.bridge.episodes import RESEND_S, Episodes, chunks
from deploy.bridge.sending import TIMEOUT_S, RefusedError, post, send_until_delivered
from streams.collecting.http import Requester
from streams.kafka.latest import AlertEntry

_MAX_ALERTS = 64  # of one request
_HEADERS = {"Content-Type": "application/json"}

_log = structlog.get_logger("mqtwin.bridge")


class AlertmanagerBridge:
    """The sender to all peers. A context manager: within it a thread per peer sends.

    Args:
        urls: base URLs of the peers.
        headers: of every request, for a login.
        resend_s: seconds between two deliveries of everything.
    """

    def __init__(
        self, urls: Sequence[str], headers: dict[str, str] | None = None, *, resend_s: float = RESEND_S
    ) -> None:
        self._episodes = Episodes()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._resend_s = resend_s
        self._peers = [_Peer(url, self, {**_HEADERS, **(headers or {})}) for url in urls]

    def apply(self, entries: Sequence[AlertEntry]) -> None:
        """Apply records of the topic, in its order, and wake the peers."""
        with self._lock:
            for entry in entries:
                self._episodes.apply(entry)
        for peer in self._peers:
            peer.changed.set()

    def counts(self) -> dict[str, int]:
        """Return the numbers of peers, and of those that have not taken the last content."""
        return {"peers": len(self._peers), "peers_waited_for": sum(peer.is_waited_for for peer in self._peers)}

    def payload(self) -> list[dict[str, object]]:
        """Return the alerts to send now."""
        with self._lock:
            return self._episodes.payload(time.time())

    def __enter__(self) -> Self:
        for peer in self._peers:
            peer.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for peer in self._peers:
            peer.changed.set()
        for peer in self._peers:
            if peer.thread.is_alive():
                peer.thread.join(TIMEOUT_S)

    def serve(self, peer: _Peer) -> None:
        """Send to a peer at each change and every `resend_s`, until the end of the context."""
        with Requester(TIMEOUT_S) as client:
            is_first = True
            while not self._stop.is_set():
                peer.changed.wait(None if is_first else self._resend_s)
                if self._stop.is_set():
                    return
                is_first = False
                peer.is_waited_for = True
                try:
                    if send_until_delivered(lambda: self._send(client, peer), self._stop):
                        peer.is_waited_for = False
                        _log.debug("delivered", to=peer.url)
                except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: the next content is sent
                    _log.error("not delivered", to=peer.url, why=f"{type(error).__name__}: {error}")

    def _send(self, client: Requester, peer: _Peer) -> None:
        """Send the current content once, in requests of bounded size."""
        peer.changed.clear()  # before the content is read: what changes from here on is sent again
        for alerts in chunks(self.payload(), _MAX_ALERTS):
            try:
                post(client, f"{peer.url}/api/v2/alerts", msgspec.json.encode(alerts), peer.headers)
            except RefusedError as error:  # Alertmanager takes the alerts of a request that it can; so do the next ones
                _log.error("refused", why=str(error))


class _Peer:
    """An Alertmanager.

    Args:
        url: base URL.
        bridge: that serves it.
        headers: of every request.
    """

    def __init__(self, url: str, bridge: AlertmanagerBridge, headers: dict[str, str]) -> None:
        self.url = url
        self.headers = headers
        self.changed = threading.Event()
        self.is_waited_for = False  # while it has not taken the present content
        self.thread = threading.Thread(target=bridge.serve, args=(self,), name=f"bridge {url}", daemon=True)
