"""``mqtwin acted``, ``mqtwin acknowledge`` and ``mqtwin judge``: notes on an alert."""

from __future__ import annotations

import getpass
import time
from typing import Literal

from deploy.options.common import KafkaOptions
from deploy.show.terminal import printable
from streams.kafka.notes import read_noted_alerts, tell_store, write_note
from streams.log import configure_logging
from twin.errors import UsageError
from twin.records import ACKNOWLEDGED, ACTED, check_note, new_note
from twin.units import as_text


def acted(alert: str, action: str, /, *, kafka: KafkaOptions, who: str | None = None, comment: str = "") -> None:
    """Note that an action of an alert was taken, for all to see; a page of the forecast was useful then.

    Args:
        alert: Id of the alert, its `alert_id`.
        action: Id of the action in its runbook, such as alter-size.
        kafka: Kafka connection.
        who: Who did it. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, ACTED, who, action=action, text=comment)


def acknowledge(alert: str, /, *, kafka: KafkaOptions, who: str | None = None, comment: str = "") -> None:
    """Note that somebody looks after an alert, for all to see; it changes nothing else.

    Args:
        alert: Id of the alert, its `alert_id`.
        kafka: Kafka connection.
        who: Who did it. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, ACKNOWLEDGED, who, text=comment)


def judge(
    alert: str,
    word: Literal["useful", "useless", "none"],
    /,
    *,
    kafka: KafkaOptions,
    who: str | None = None,
    comment: str = "",
) -> None:
    """Say whether a page of the forecast was useful: its store calls sooner, or later, where the next is like it.

    Args:
        alert: Id of the alert, its `alert_id`, of condition full-forecast.
        word: useful, useless, or none, which takes the word back. A later word replaces an earlier one.
        kafka: Kafka connection.
        who: Who says so. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, word, who, text=comment)


def _note(
    kafka: KafkaOptions, alert: str, kind: str, who: str | None, *, action: str | None = None, text: str = ""
) -> None:
    configure_logging(level="warning")
    topics, client = kafka.topics, kafka.client()
    now = as_text(round(time.time() * 1e6))
    note = new_note(alert, kind, _user() if who is None else who, now, action=action, text=text)
    alerts = read_noted_alerts(client, topics)
    check_note(note, alerts)
    write_note(client, topics, note)
    tell_store(client, topics, note, alerts[note.alert_id])
    print(printable(f"{note.alert_id} {note.sentence}"))


def _user() -> str:
    """Return the name of this user. UsageError: it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:  # in a container: before Python 3.13 one of the last two
        raise UsageError(f"this user has no name ({error}); expected: --who NAME") from None
