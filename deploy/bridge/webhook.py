"""Delivery of alert records to a webhook, in the order of the topic, with a signed body.

The signature follows the scheme of Standard Webhooks, for which receivers have libraries: HMAC-SHA256 over id, time and
body, in base64 [Standard Webhooks: specification, Signature scheme].
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

from deploy.bridge.sending import CLEARED_FOR_S, TIMEOUT_S, RefusedError, post, send_until_delivered
from streams.collecting.http import Requester
from streams.kafka.latest import AlertEntry
from twin.errors import UsageError
from twin.records import AlertRecord, IncidentChange, Incidents

MIN_SECRET_BYTES = 24  # as the specification asks
_CONTENT_TYPE = "application/cloudevents+json"
_PREFIX = "whsec_"  # of a secret in base64

_log = structlog.get_logger("mqtwin.bridge")


def read_signing_key(path: Path) -> bytes:
    """Return the secret of a file: base64 after `whsec_`, otherwise the bytes without space around them.

    Raises:
        UsageError: it cannot be read, or is shorter than 24 bytes.
    """
    try:
        text = path.read_bytes().strip()
        secret = base64.b64decode(text[len(_PREFIX) :], validate=True) if text.startswith(_PREFIX.encode()) else text
    except OSError as error:
        raise UsageError(f"--secret-file {path}: {error.strerror}; expected: a file that can be read") from error
    except ValueError as error:
        raise UsageError(
            f"--secret-file {path}: what follows {_PREFIX} is not base64; expected: letters, digits, + and /"
        ) from error
    if len(secret) < MIN_SECRET_BYTES:
        raise UsageError(f"--secret-file {path} has {len(secret)} bytes; expected: {MIN_SECRET_BYTES} or more")
    return secret


def signature(secret: bytes, record_id: str, time_s: int, body: bytes) -> str:
    """Return the value of the header webhook-signature."""
    digest = hmac.new(secret, f"{record_id}.{time_s}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


class Webhook:
    """A receiver of alerts.

    Args:
        url: address.
        secret: for the signature.
        client: HTTP client.
        stop: ends retries.
        wall: wall clock, seconds since 1970.
    """

    def __init__(
        self,
        url: str,
        secret: bytes,
        client: Requester,
        stop: threading.Event,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._secret = secret
        self._client = client
        self._stop = stop
        self._wall = wall
        self.delivered = 0
        self.refused = 0

    def counts(self) -> dict[str, int]:
        """Return the numbers of alert records delivered and refused."""
        return {"delivered": self.delivered, "refused": self.refused}

    def deliver(self, alert: AlertRecord) -> bool:
        """Deliver an alert, however long that takes; return False if `stop` was set first, or if it was refused.

        A refused alert, such as one answered with 400, is logged and left: another try would not change the answer.
        """
        try:
            if not send_until_delivered(lambda: self._send(alert), self._stop):
                return False
        except RefusedError as error:
            self.refused += 1
            _log.error("refused", id=alert.id, why=str(error))
            return False
        self.delivered += 1
        return True

    def _send(self, alert: AlertRecord) -> None:
        identifier = _header_text(alert.id)
        time_s = int(self._wall())
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "webhook-id": identifier,
            "webhook-timestamp": str(time_s),
            "webhook-signature": signature(self._secret, identifier, time_s, alert.value),
        }
        post(self._client, self._url, alert.value, headers)


class Notices:
    """Notices of incidents: the records that make one a page, worse, or end it."""

    def __init__(self) -> None:
        self._incidents = Incidents()
        self._last: dict[str, AlertEntry] = {}  # by id of the incident, of the records before the first delivery

    def learn(self, entries: Iterable[AlertEntry]) -> None:
        """Take records of which nobody has to be told now, in the order of the topic."""
        for entry in entries:
            for change in self._take(entry):
                self._last[change.incident.id] = AlertEntry(change.record, entry.written_s)

    def take(self, entries: Iterable[AlertEntry]) -> list[AlertRecord]:
        """Return what people are told now: of records learnt the last of each incident that calls or ended lately."""
        limit_s = time.time() - CLEARED_FOR_S
        calling = {incident.id for incident in self._incidents.open() if incident.is_calling}
        learnt, self._last = self._last, {}
        notices = [entry.alert for id_, entry in learnt.items() if id_ in calling or entry.written_s > limit_s]
        return notices + [change.record for entry in entries for change in self._take(entry)]

    def _take(self, entry: AlertEntry) -> list[IncidentChange]:
        return [change for change in self._incidents.take(entry.alert) if change.is_notice]


def _header_text(text: str) -> str:
    """Return a text without what a header cannot carry: names of MQ objects have only letters, digits and ./_%."""
    return "".join(letter if " " < letter <= "~" else "?" for letter in text)


def new_client() -> Requester:
    """Return an HTTP client for webhooks."""
    return Requester(TIMEOUT_S)
