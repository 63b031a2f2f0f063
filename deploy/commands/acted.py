"""``mqtwin acted`` and ``mqtwin acknowledge``: notes on an alert."""

from __future__ import annotations

import getpass
import time

from deploy.options.common import KafkaOptions
from deploy.show.terminal import printable
from streams.kafka.notes import read_noted_alerts, write_note
from streams.kafka.topics import Topics
from streams.log import configure_logging
from twin.errors import UsageError
from twin.records import ACKNOWLEDGED, ACTED, check_note, new_note
from twin.units import as_text


def acted(alert: str, action: str, /, *, kafka: KafkaOptions, who: str | None = None, comment: str = "") -> None:
    """Note that an action of an alert was taken, for all to see; it changes nothing else.

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


def _note(
    kafka: KafkaOptions, alert: str, kind: str, who: str | None, *, action: str | None = None, text: str = ""
) -> None:
    """Write a note and print it."""
    configure_logging(level="warning")
    topics, client = Topics(kafka.topic_prefix), kafka.client()
    now = as_text(round(time.time() * 1e6))
    note = new_note(alert, kind, _user() if who is None else who, now, action=action, text=text)
    check_note(note, read_noted_alerts(client, topics))
    write_note(client, topics, note)
    print(printable(f"{note.alert_id} {note.sentence}"))


def _user() -> str:
    """Return the name of this user. UsageError: it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:  # in a container: before Python 3.13 one of the last two
        raise UsageError(f"this user has no name ({error}); expected: --who NAME") from None
