"""JSON of amqsevt: statistics, accounting, activity trace, events."""

from __future__ import annotations

import json
import re
from datetime import timedelta, timezone

import pytest

from tests.twin.feeds.read import read, total
from tests.twin.feeds.samples import (
    QUEUE_FULL,
    STATISTICS,
    activity,
    envelope,
    get,
    json_text,
    operation,
    put,
)

NOON = 1_795_176_000_000_000


def traced(estate, *operations):
    return read("amqsevt", json_text(activity(*operations)), estate=estate)


class TestStatistics:
    def test_counts_and_bytes_are_exact_and_what_was_handed_over_is_stored_nowhere(self, estate):
        events, intake = read("amqsevt", json_text(STATISTICS), estate=estate)
        assert total(events, "PUT", persistent=True) == 40
        assert total(events, "PUT", direct=True) == 14
        assert total(events, "PUT") == 110
        assert total(events, "PUT", "bytes") == 11_003
        assert total(events, "GET") == 80 - 14
        assert total(events, "EXPIRE") == 5
        cover = intake.coverage["statistics", "QMD1", "INVOICES"]
        assert (cover.puts, cover.gets, cover.longest_us) == (110, 80, 1_800_000_000)

    def test_its_times_are_local(self, estate):
        events, intake = read("amqsevt", json_text(STATISTICS), estate=estate)
        assert (max(event["time"] for event in events), intake.counts["no-zone"]) == (NOON, 1)
        zone = timezone(timedelta(hours=2))
        events, intake = read("amqsevt", json_text(STATISTICS), estate=estate, zone=zone)
        assert (max(event["time"] for event in events), intake.counts["no-zone"]) == (NOON - 7_200_000_000, 0)

    @pytest.mark.parametrize("texts", [[json_text], [lambda *m: json.dumps(m).encode()]], ids=["json", "json_array"])
    def test_all_ways_of_writing_are_read(self, estate, texts):
        events, intake = read("amqsevt", texts[0](STATISTICS, QUEUE_FULL), estate=estate)
        assert (total(events, "PUT", reason=None), intake.counts["bad-json"]) == (110, 0)

    def test_one_object_a_line_is_read(self, estate):
        lines = "\n".join(json.dumps(message) for message in (STATISTICS, QUEUE_FULL)).encode()
        assert total(read("amqsevt", lines, estate=estate)[0], "PUT", reason=None) == 110

    def test_accounting_of_the_same_queue_is_not_added_up(self, estate):
        accounting = json.loads(json.dumps(STATISTICS).replace("queueStatisticsData", "queueAccountingData"))
        accounting["eventType"]["value"] = 168
        events, intake = read("amqsevt", json_text(STATISTICS, accounting), estate=estate)
        assert total(events, "PUT") == 110
        assert intake.counts["two-sources"] == 1
        assert total(read("amqsevt", json_text(accounting), estate=estate)[0], "PUT") == 110


class TestActivityTrace:
    def test_a_put_and_a_get_are_events_with_length_id_and_unit_of_work(self, estate):
        events, intake = traced(estate, put(1), operation("Cmit", 2), get(3), operation("Back", 4))
        message_id, unit = f"{1:048x}", "C1/3"
        common = {"qmgr": "QMD1", "queue": "ORDERS", "uow": unit}
        assert events == [
            {"time": NOON + 1, "op": "PUT", "msgid": message_id, "length": 2048, "priority": 4, "persistent": True}
            | common,
            {"time": NOON + 2, "op": "COMMIT"} | common,
            {"time": NOON + 3, "op": "GET", "msgid": message_id} | common,
            {"time": NOON + 4, "op": "BACKOUT"} | common,
        ]
        assert intake.complaints == []

    def test_a_unit_of_work_ends_for_every_queue_it_touched_also_in_a_later_message(self, estate):
        first = json_text(activity(put(1), put(2, objectName="INVOICES", resolvedQueueName="INVOICES")))
        events, _ = read("amqsevt", first, json_text(activity(operation("Cmit", 3))), estate=estate)
        assert [(event["op"], event["queue"]) for event in events[2:]] == [("COMMIT", "ORDERS"), ("COMMIT", "INVOICES")]

    def test_units_of_other_threads_stay_open(self, estate):
        events, _ = traced(estate, put(1), operation("Cmit", 2, threadId=4))
        assert [event["op"] for event in events] == ["PUT"]

    def test_a_commit_that_was_backed_out_is_a_backout(self, estate):
        failed = {"compCode": {"name": "Failed", "value": 2}, "reasonCode": {"name": "Backed Out", "value": 2003}}
        events, _ = traced(estate, put(1), operation("Cmit", 2, **failed))
        assert [event["op"] for event in events] == ["PUT", "BACKOUT"]

    def test_without_syncpoint_there_is_no_unit_of_work(self, estate):
        events, _ = traced(estate, put(1, putOptions="0x00002044 "), operation("Cmit", 2))
        assert [event["op"] for event in events] == ["PUT"]
        assert "uow" not in events[0]

    def test_browses_and_failed_gets_take_nothing_away(self, estate):
        failed = {"compCode": {"name": "Failed", "value": 2}, "reasonCode": {"name": "No Msg", "value": 2033}}
        assert traced(estate, get(1, getOptions="0x00000010"), get(2, **failed))[0] == []

    @pytest.mark.parametrize("reason", [2192, 2056, 2053])
    def test_a_refused_put_is_an_event_with_its_reason(self, estate, reason):
        failed = {"compCode": {"name": "Failed", "value": 2}, "reasonCode": {"name": "Full", "value": reason}}
        events, _ = traced(estate, put(1, **failed), operation("Cmit", 2))
        assert [(event["op"], event["reason"]) for event in events] == [("PUT", reason)]

    def test_a_get_by_callback_is_a_get(self, estate):
        events, _ = traced(estate, get(1, operationId="Callback", getOptions="0x0"), operation("Callback", 2))
        assert [event["op"] for event in events] == ["GET"]

    def test_a_trace_of_low_level_is_a_complaint(self, estate):
        events, intake = traced(estate, {"operationId": "Put"})
        assert (events, dict(intake.counts)) == ([], {"bad-value": 1})


def test_a_full_queue_is_a_put_that_was_refused(estate):
    events, _ = read("amqsevt", json_text(QUEUE_FULL), estate=estate)
    assert events == [{"time": NOON, "qmgr": "QMD1", "op": "PUT", "queue": "ORDERS", "length": 0, "reason": 2053}]


def test_both_spellings_of_the_queue_manager_are_read(estate):
    message = json.loads(json.dumps(QUEUE_FULL).replace("queueMgrName", "qMgrName"))
    assert len(read("amqsevt", json_text(message), estate=estate)[0]) == 1


@pytest.mark.parametrize(
    ("text", "code", "puts"),
    [
        (json_text(STATISTICS)[:-40] + b"\n" + json_text(STATISTICS), "truncated", 110),
        (json_text(STATISTICS) + json_text(STATISTICS)[:100], "truncated", 110),
        (b"no JSON", "foreign", 0),
        (json_text({"a": 1}), "foreign", 0),
        (json_text(envelope(165, {"queueStatisticsData": 7})), "bad-value", 0),
        (json_text(STATISTICS).replace(b"11.30.00", b"99.30.00"), "bad-value", 0),
        (json_text(STATISTICS).replace(b"60,", b"{},"), "bad-value", 0),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "bad-json", 0),
    ],
    ids=["cut in the middle", "cut at the end", "text", "other JSON", "no list", "no time", "no number", "deep"],
)
def test_wrong_input_is_a_complaint_and_the_rest_is_read(estate, text, code, puts):
    events, intake = read("amqsevt", text, estate=estate)
    assert intake.counts[code] == 1
    assert total(events, "PUT") == puts


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


@pytest.mark.parametrize("message", [STATISTICS, activity(put())], ids=["statistics", "activity"])
def test_a_message_without_its_list_is_not_read(estate, message):
    names = {"queueStatisticsData": "estadisticas", "activityTrace": "trazas"}
    other = respelled(message, lambda name: names.get(name, name), lambda name, value: {"name": name, "value": value})
    events, intake = read("amqsevt", json_text(other), estate=estate)
    assert (events, intake.counts["no-list"], intake.inputs[0].read) == ([], 1, 0)


@pytest.mark.parametrize("name", ["puts", "put1s", "putBytes", "gets", "msgsNotQueued", "msgsExpired"])
def test_statistics_of_a_queue_without_a_count_are_a_complaint(estate, name):
    other = respelled(STATISTICS, lambda own: "cuenta" if own == name else own, lambda _, value: {"value": value})
    [text] = [own.text for own in read("amqsevt", json_text(other), estate=estate)[1].complaints if own.code == "lacks"]
    assert f"1 statistics queue: 1 without {name.lower()}" in text


def test_temporary_dynamic_queues_are_one_line():
    items = [
        {**STATISTICS["eventData"]["queueStatisticsData"][0], "queueName": f"REPLY.{i}", "definitionType": kind}
        for i, kind in enumerate(("Temporary Dynamic", "MQQDT_TEMPORARY_DYNAMIC", 3, "Predefined"))
    ]
    _, intake = read("amqsevt", json_text(envelope(165, {**STATISTICS["eventData"], "queueStatisticsData": items})))
    assert {name for _, _, name in intake.coverage} == {"REPLY.3"}
    assert "3 events of dynamic queues (3 of QMD1)" in intake.lines_for_passed_over()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"MonitoringType: QueueStatistics\nQueueManager: 'QMD1'\nQueueStatistics: 0\n  QueueName: 'A'\n", "-o json"),
        (b"**** Message #1 (540 Bytes) on Queue A ****\nEvent Type                : Perfm Event [45]\n", "-o json"),
    ],
    ids=["amqsmon", "amqsevt"],
)
def test_text_forms_name_the_option_to_use(estate, text, words):
    _, intake = read("amqsevt", text, estate=estate)
    assert any(words in own.text for own in intake.complaints)
