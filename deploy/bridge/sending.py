"""HTTP requests with retries: what is worth another try, and how long to wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus

import structlog
from tenacity import (
    RetryCallState,
    RetryError,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from streams.collecting.http import Requester, RequestError
from twin.errors import MqtwinError

TIMEOUT_S = 10.0  # for the whole of a request
CLEARED_FOR_S = 300.0  # for which what is over is sent
_MAX_ANSWER_BYTES = 4096
_MAX_TEXT = 200  # characters of an answer in the log
_MIN_WAIT_S = 0.5
_MAX_WAIT_S = 30.0
_RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}

_log = structlog.get_logger("mqtwin.bridge")


class RefusedError(MqtwinError):
    """An answer that another try would not change."""


class UnavailableError(MqtwinError):
    """No answer, or one that another try may change."""


def post(client: Requester, url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send a request once. What follows the status of an answer is of use for the log only.

    Raises:
        RefusedError: the answer is final, such as 400.
        UnavailableError: another try may help.
    """
    try:
        answer = client.ask("POST", url, headers, content=body, max_bytes=_MAX_ANSWER_BYTES)
    except RequestError as error:
        raise UnavailableError(f"{url}: {error}") from error
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    text = f"{url}: {answer.status} {' '.join(answer.body.decode(errors='replace')[:_MAX_TEXT].split())}"
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _RETRIED:
        raise UnavailableError(text)
    raise RefusedError(text)


def send_until_delivered(send: Callable[[], None], stop: threading.Event) -> bool:
    """Call `send` until it returns, with growing waits; return False if `stop` is set first.

    Args:
        send: raises UnavailableError for another try; any other error is passed on.
        stop: ends waiting.
    """
    retries = Retrying(
        retry=retry_if_exception_type(UnavailableError),
        wait=wait_random_exponential(multiplier=_MIN_WAIT_S, min=_MIN_WAIT_S, max=_MAX_WAIT_S),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=_log_retry,
    )
    try:
        retries(send)
    except RetryError:
        return False
    return True


def _log_retry(state: RetryCallState) -> None:
    """Log the first, second, fourth, eighth ... failed try in a row; the others say nothing new."""
    tries = state.attempt_number
    if tries & (tries - 1) == 0 and state.outcome is not None:
        _log.warning("not delivered, trying again", why=str(state.outcome.exception()), tries=tries)
