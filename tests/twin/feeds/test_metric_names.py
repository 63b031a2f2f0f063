"""Names of metrics: both ways of writing each count, halves of pairs, names that are not used, other namespaces."""

from __future__ import annotations

import json

import pytest

from tests.twin.feeds.read import read, total
from twin.events import Event
from twin.feeds import Intake, Page

BEGIN = 1_795_176_000
PUBLICATIONS = {
    "mqput_mqput1_count": 25,
    "mqput_bytes": 2500,
    "mqput_persistent_message_count": 5,
    "mqput1_persistent_message_count": 0,
    "mqput_non_persistent_message_count": 17,
    "mqput1_non_persistent_message_count": 3,
    "destructive_mqget_persistent_message_count": 4,
    "destructive_mqget_non_persistent_message_count": 12,
    "mqget_count": 16,
    "expired_messages": 2,
    "depth": 7,
}
STATISTICS = {
    "mqput_message_count": 22,
    "mqput1_message_count": 3,
    "mqput_persistent_message_count": 5,
    "mqput1_persistent_message_count": 0,
    "mqput_non_persistent_message_count": 17,
    "mqput1_non_persistent_message_count": 3,
    "put_message_bytes_count": 2500,
    "put_persistent_message_bytes_count": 500,
    "put_non_persistent_message_bytes_count": 2000,
    "destructive_mqget_message_count": 16,
    "destructive_mqget_persistent_message_count": 4,
    "destructive_mqget_non_persistent_message_count": 12,
    "expired_message_count": 1,
    "purged_message_count": 1,
    "queue_avoided_put_count": 0,
    "depth": 7,
}
NAMES = {"publications": PUBLICATIONS, "statistics": STATISTICS}
FORMATS = ("page", "mq_json", "answer", "export")


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def collected(form: str, values: dict[str, float], namespace: str = "ibmmq") -> tuple[str, list[bytes]]:
    """Return the format and pages of two collections: zeros, and values. As counters, where the form has types."""
    labels = {"qmgr": "QMD1", "queue": "INVOICES", "platform": "UNIX"}
    if form == "mq_json":
        points = [
            {
                "collectionTime": {"epoch": BEGIN + 60 * number},
                "points": [
                    {
                        "objectType": "queue",
                        "tags": labels,
                        "metrics": {camel(name): value * number for name, value in values.items()},
                    }
                ],
            }
            for number in range(2)
        ]
        return "mq_json", [json.dumps(point).encode() for point in points]
    series = [
        ({"__name__": f"{namespace}_queue_{name}", **labels}, [value if name == "depth" else 0, value])
        for name, value in values.items()
    ]
    types = {own["__name__"]: [{"type": "counter"}] for own, _ in series}
    metadata = json.dumps({"status": "success", "data": types}).encode()
    times = [BEGIN, BEGIN + 60]
    if form == "export":
        lines = [{"metric": own, "values": two, "timestamps": [time * 1000 for time in times]} for own, two in series]
        return "prometheus", [metadata, b"\n".join(json.dumps(line).encode() for line in lines)]
    if form == "answer":
        result = [
            {"metric": own, "values": [[time, str(value)] for time, value in zip(times, two, strict=True)]}
            for own, two in series
        ]
        answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
        return "prometheus", [metadata, json.dumps(answer).encode()]
    pages = []
    for number in range(2):
        lines = []
        for own, two in series:
            text = ",".join(f'{label}="{value}"' for label, value in own.items() if label != "__name__")
            kind = "gauge" if own["__name__"].endswith("_depth") else "counter"
            lines += [f"# TYPE {own['__name__']} {kind}", f"{own['__name__']}{{{text}}} {two[number]}"]
        pages.append("\n".join([*lines, ""]).encode())
    return "prometheus", pages


def seen(form: str, values: dict[str, float], estate, namespace: str = "ibmmq") -> tuple[list[Event], Intake]:
    name, pages = collected(form, values, namespace)
    whole = [Page(data, f"page {i}", (BEGIN + 60 * i) * 1_000_000) for i, data in enumerate(pages)]
    return read(name, *whole, estate=estate)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", NAMES)
def test_both_ways_of_writing_the_counts_give_the_same_events(estate, form, names):
    events, intake = seen(form, NAMES[names], estate)
    assert (total(events, "PUT"), total(events, "PUT", "bytes"), total(events, "GET")) == (25, 2500, 16)
    assert (total(events, "PUT", persistent=True), total(events, "EXPIRE")) == (5, 2)
    assert not intake.counts


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(
    ("gone", "words"),
    [("put", "2 without puts"), ("get", "2 without gets"), ("depth", "2 without depth")],
)
def test_gets_without_any_name_for_puts_are_a_complaint_and_the_reverse(estate, form, names, gone, words):
    values = {name: value for name, value in NAMES[names].items() if gone not in name}
    [text] = [own.text for own in seen(form, values, estate)[1].complaints if own.code == "lacks"]
    assert words in text


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", NAMES)
def test_each_name_that_is_missing_leaves_the_events_as_they_are_or_is_a_complaint(estate, form, names):
    whole, _ = seen(form, NAMES[names], estate)
    for name in NAMES[names]:
        events, intake = seen(form, {own: value for own, value in NAMES[names].items() if own != name}, estate)
        assert events == whole or intake.counts, name


@pytest.mark.parametrize("form", FORMATS)
def test_names_of_its_own_that_are_not_used_are_listed_and_not_read(estate, form):
    _, intake = seen(form, STATISTICS | {"failed_mqput_count": 5}, estate)
    name = "failedMqputCount" if form == "mq_json" else "ibmmq_queue_failed_mqput_count"
    [line] = [own for own in intake.lines_for_passed_over() if "not used" in own]
    assert f"2 of {name}" in line


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "mq_json"])
def test_another_namespace_is_read(estate, form):
    events, intake = seen(form, PUBLICATIONS, estate, "acme_mq")
    assert (total(events, "PUT"), total(events, "GET")) == (25, 16)
    assert not intake.counts


def test_counts_without_a_type_that_never_fall_are_taken_for_counters_and_said(estate):
    times = [BEGIN + 60 * number for number in range(4)]
    labels = {"qmgr": "QMD1", "queue": "INVOICES"}
    lines = [
        {
            "metric": {"__name__": f"ibmmq_queue_{name}", **labels},
            "values": values,
            "timestamps": [1000 * t for t in times],
        }
        for name, values in {
            "mqput_mqput1_count": [700, 730, 742, 742],
            "mqget_count": [690, 700, 742, 742],
            "depth": [9, 3, 3, 3],
        }.items()
    ]
    events, intake = read("prometheus", b"\n".join(json.dumps(line).encode() for line in lines), estate=estate)
    assert (total(events, "PUT"), total(events, "GET")) == (42, 52)
    assert "/api/v1/metadata" in next(own.text for own in intake.complaints if own.code == "no-type")


def test_a_name_as_long_as_a_page_is_no_name_of_mq():
    name = "a_queue_" * 20_000 + "A"
    _, intake = read("prometheus", f'{name}{{qmgr="QMD1",queue="A"}} 1\n'.encode())
    assert intake.counts["no-metrics"] == 1
