"""JSON of amqsevt: statistics, accounting, activity trace, events."""

from __future__ import annotations

import re

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import (
    QUEUE_FULL,
    STATISTICS,
    activity,
    get,
    json_text,
    operation,
    put,
)


def traced(estate, *operations):
    return read("amqsevt", json_text(activity(*operations)), estate=estate)


# --- other spellings --------------------------------------------------------------------------------------------------


def respelled(value, rename, words):
    """Return a message with other names of fields, and enumerations as `words` of their name and number."""
    if isinstance(value, dict):
        if value.keys() == {"name", "value"}:
            return words(value["name"], value["value"])
        return {rename(name): respelled(own, rename, words) for name, own in value.items()}
    return [respelled(own, rename, words) for own in value] if isinstance(value, list) else value


def as_amqsevtg(name):
    """Return the name that IBM's Go formatter gives: MQCA_Q_NAME is qName, not queueName."""
    return name if name == "msgsNotQueued" else name.replace("queue", "q").replace("Queue", "Q")


def as_constant(name):
    return "MQIAMO_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", as_amqsevtg(name)).upper()


SPELLINGS = {
    "amqsevtg": (as_amqsevtg, lambda name, value: {"name": name.upper(), "value": value}),
    "raw constants": (as_constant, lambda name, value: {"name": name, "value": value}),
    "snake case": (lambda name: re.sub(r"(?=[A-Z])", "_", name).lower(), lambda _, value: value),
    "capitals": (lambda name: name[0].upper() + name[1:], lambda name, value: {"Name": name, "Value": str(value)}),
    "translated": (lambda name: name, lambda _, value: {"name": "Erledigt", "value": value}),
}
FAILED = {"compCode": {"name": "Failed", "value": 2}, "reasonCode": {"name": "Storage Medium Full", "value": 2192}}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "message",
    [STATISTICS, QUEUE_FULL, activity(put(1), operation("Cmit", 2), get(3), operation("Back", 4), put(5, **FAILED))],
    ids=["statistics", "queue full", "activity"],
)
def test_every_spelling_of_the_constants_gives_the_same(estate, spelling, message):
    rename, words = SPELLINGS[spelling]
    other = read("amqsevt", json_text(respelled(message, rename, words)), estate=estate)
    events, intake = read("amqsevt", json_text(message), estate=estate)
    assert events
    assert (other[0], other[1].counts) == (events, intake.counts)


def test_options_as_objects_and_enumerations_as_words_are_read(estate):
    options = {"value": 0x2042, "valueHex": "0x00002042", "options": ["Syncpoint", "Fail If Quiescing"]}
    words = {"compCode": "Ok", "reasonCode": "None", "persistence": "Persistent", "putOptions": options}
    commit = operation("MQXF_CMIT", 2) | {"compCode": "MQCC_OK", "reasonCode": "MQRC_NONE"}
    plain = traced(estate, put(1), operation("Cmit", 2))[0]
    assert traced(estate, put(1, operationId="MQXF_PUT", **words), commit)[0] == plain
    assert traced(estate, put(1, operationId=9, **words), operation(15, 2))[0] == plain


@pytest.mark.parametrize("name", ["puts", "put1s", "putBytes", "gets", "msgsNotQueued", "msgsExpired"])
def test_statistics_of_a_queue_without_a_count_are_a_complaint(estate, name):
    other = respelled(STATISTICS, lambda own: "cuenta" if own == name else own, lambda _, value: {"value": value})
    [text] = [own.text for own in read("amqsevt", json_text(other), estate=estate)[1].complaints if own.code == "lacks"]
    assert f"1 statistics queue: 1 without {name.lower()}" in text
