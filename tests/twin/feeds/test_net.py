"""The net under the readers: each half of a pair, each name and each wrapping of each sample of each machine format.

A reader yields the same events, or it complains of something that the sample as it is does not make it complain of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pytest

from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.samples import REST, STATISTICS, SYSPRINT, activity, get, json_text, numbered, operation, put
from tests.twin.feeds.test_live_formats import CF_COLUMNS, COLUMNS, CONNECTOR, answer, odp, report, structure
from tests.twin.feeds.test_metric_names import PUBLICATIONS, collected
from tests.twin.feeds.test_metric_names import STATISTICS as STATISTICS_METRICS
from tests.twin.feeds.test_otlp import MSGID, as_json, span
from twin.estate import Estate, load_estate
from twin.events import Event
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import feed_events, read_page

NOON = 1_795_176_000_000_000
MINUTE = 60_000_000
_FACILITY = {"CFOPNAM": "CF01", "CFOPTSD": 1 << 36, "CFOPTSF": 1 << 35, "CFOPSCMS": 99, "CFOPSCMA": 60, "CFOPSMSC": 80}
_MESSAGE = {
    f"messaging__ibmmq__message__{name}": value for name, value in {"priority": 4, "persistent": "true"}.items()
}
_SPANS = [
    span(
        number,
        kind=4 + number % 2,
        second=number,
        messaging__message__body__size=9,
        messaging__message__id=MSGID,
        **_MESSAGE,
    )
    for number in range(1, 7)
]
_QUEUE = {"objectName": "INVOICES", "resolvedQueueName": "INVOICES"}
SAMPLES: dict[str, tuple[str, list[bytes]]] = {
    "statistics": ("amqsevt", [json_text(STATISTICS)]),
    "activity": (
        "amqsevt",
        [json_text(activity(put(**_QUEUE), operation("Cmit", 1), get(2, **_QUEUE), operation("Cmit", 3)))],
    ),
    "spans": ("otlp", [as_json(*_SPANS, service__name="QM01")]),
    "structure": ("dds", [answer(report("CFACT", COLUMNS, structure(), CONNECTOR))]),
    "facility": ("dds", [answer(report("CFOVER", CF_COLUMNS, _FACILITY))]),
    "rest": ("rest", [REST.encode()]),
    "publications": collected("mq_json", PUBLICATIONS),
    "statistics events": collected("mq_json", STATISTICS_METRICS),
    "answer": collected("answer", PUBLICATIONS),
    "export": collected("export", STATISTICS_METRICS),
    "page": collected("page", PUBLICATIONS),
    "page of statistics": collected("page", STATISTICS_METRICS),
    "m3": ("m3", [*LIVE_PAGES["m3"], b'mvs_cf_storage_size_bytes{cf="CF01"} 6e10 1795176060\n']),
    "OMEGAMON": (
        "odp",
        [
            odp("lh_smds", cf_structure_name="APP1", message_count=7, total_blocks=40, data_block_used_percent=50),
            odp("qmps_lh", page_set_id=4, allocated_data_pages=100, persistent_pages=20, non_persistent_pages=5),
        ],
    ),
}
JSON = [name for name, (_, pages) in SAMPLES.items() if all(page.lstrip()[:1] in (b"{", b"[") for page in pages)]

NO_MATTER = {  # names that an object of a sound input may lack
    "rest": {"curdepth", "entsused", "sizemax"},  # DISPLAY shows the attributes that were asked for
}


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    path = tmp_path_factory.mktemp("net") / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return load_estate(path)


def seen(name: str, pages: list[bytes], estate: Estate, **options: Any) -> tuple[list[Event], set[str]]:
    """Return events, and the complaints by code and text without places."""
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(qmgr="QM01" if name == "rest" else None, late_s=0.0, **options))
    whole = [Page(data, "page", NOON + i * MINUTE) for i, data in enumerate(pages)]
    events = list(intake.sift(feed_events(feed, whole), is_end=True))
    return events, {f"{own.code} {own.text}" for own in intake.complaints}


def names_of(value: Any) -> Iterator[str]:
    """Yield the names in a value, however deep."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield name
            yield from names_of(own)
    elif isinstance(value, list):
        for own in value:
            yield from names_of(own)


def changed(value: Any, name: str, change: Callable[[dict[str, Any], str], None]) -> Any:
    """Return a copy of a value in which each object with a name is changed."""
    if isinstance(value, dict):
        copy = {key: changed(own, name, change) for key, own in value.items()}
        if name in copy:
            change(copy, name)
        return copy
    return [changed(own, name, change) for own in value] if isinstance(value, list) else value


def documents(page: bytes) -> list[Any]:
    decoder, text, values = json.JSONDecoder(), page.decode(), []
    start = 0
    while (match := re.search(r"\S", text[start:])) is not None:
        value, start = decoder.raw_decode(text, start + match.start())
        values.append(value)
    return values


def rewritten(page: bytes, change: Callable[[Any], Any]) -> bytes:
    return b"\n".join(json.dumps(change(own)).encode() for own in documents(page))


def without(copy: dict[str, Any], name: str) -> None:
    del copy[name]


def renamed(copy: dict[str, Any], name: str) -> None:
    copy[f"x_{name}"] = copy.pop(name)


@pytest.mark.parametrize("change", [without, renamed])
@pytest.mark.parametrize("sample", JSON)
def test_a_name_that_is_gone_changes_nothing_or_is_a_complaint(estate, sample, change):
    name, pages = SAMPLES[sample]
    events, complaints = seen(name, pages, estate)
    assert events
    silent = []
    for own in sorted({key for page in pages for document in documents(page) for key in names_of(document)}):
        others = [rewritten(page, lambda value, own=own: changed(value, own, change)) for page in pages]
        new, later = seen(name, others, estate)
        if new != events and later <= complaints and own not in NO_MATTER.get(sample, ()):
            silent.append(own)
    assert silent == []


def metric_names(page: bytes) -> list[str]:
    return re.findall(rb"^# TYPE (\S+)", page, re.MULTILINE) or re.findall(rb"^([a-z_]+)\{", page, re.MULTILINE)


@pytest.mark.parametrize("sample", [name for name in SAMPLES if name not in JSON])
def test_a_metric_that_is_gone_from_a_page_changes_nothing_or_is_a_complaint(estate, sample):
    name, pages = SAMPLES[sample]
    events, complaints = seen(name, pages, estate)
    assert events
    for own in {metric for page in pages for metric in metric_names(page)}:
        gone = [
            b"\n".join(line for line in page.split(b"\n") if own not in line.split(b"{")[0].split()) for page in pages
        ]
        other = [page.replace(own, b"x_" + own) for page in pages]
        for changed_pages in (gone, other):
            new, later = seen(name, changed_pages, estate)
            assert new == events or not later <= complaints, own


@pytest.mark.parametrize("column", [*COLUMNS, *CF_COLUMNS])
def test_a_column_of_a_report_that_is_renamed_changes_nothing_or_is_a_complaint(estate, column):
    for sample in ("structure", "facility"):
        name, pages = SAMPLES[sample]
        events, complaints = seen(name, pages, estate)
        new, later = seen(name, [page.replace(f'"{column}"'.encode(), b'"CFX"') for page in pages], estate)
        assert new == events or not later <= complaints


def text(value: Any) -> str:
    return json.dumps(value)


WRAPPERS: dict[str, Callable[[list[Any]], Any]] = {
    "Elastic": lambda values: {"hits": {"hits": [{"_index": "mq", "_source": value} for value in values]}},
    "Elastic, text": lambda values: {"hits": {"hits": [{"_source": {"message": text(value)}} for value in values]}},
    "Splunk": lambda values: {"results": [{"_raw": text(value), "host": "a"} for value in values]},
    "HTTP Event Collector": lambda values: [{"time": 1795176000.5, "event": value} for value in values],
    "Fluent Bit": lambda values: [{"date": 1795176000.5, "log": text(value)} for value in values],
    "Loki": lambda values: {"streams": [{"stream": {"app": "mq"}, "values": [["1", text(v)] for v in values]}]},
    "CloudWatch": lambda values: {"logEvents": [{"timestamp": 1, "message": text(value)} for value in values]},
    "Google": lambda values: [{"jsonPayload": value} for value in values],
    "Kafka Connect": lambda values: [{"schema": {"type": "string"}, "payload": text(value)} for value in values],
    "Kafka Connect, object": lambda values: [{"schema": {"type": "struct"}, "payload": value} for value in values],
    "OpenTelemetry logs": lambda values: {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": text(v)}} for v in values]}]}]
    },
}


@pytest.mark.parametrize("is_indented", [False, True])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("sample", JSON)
def test_a_wrapper_changes_nothing_under_import_and_collect(estate, sample, wrapper, is_indented):
    name, pages = SAMPLES[sample]
    events, complaints = seen(name, pages, estate)
    wrapped = []
    for page in pages:
        whole = WRAPPERS[wrapper](documents(page))
        parts = whole if isinstance(whole, list) else [whole]
        wrapped.append("\n".join(json.dumps(part, indent=1 if is_indented else None) for part in parts).encode())
    new, later = seen(name, wrapped, estate)
    assert [event | {"time": 0} for event in new] == [event | {"time": 0} for event in events]
    assert len(later) == len(complaints)
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(qmgr="QM01" if name == "rest" else None, late_s=0.0))
    live = [
        event
        for number, data in enumerate(wrapped)
        for event in intake.sift(read_page(feed, Page(data, f"t/0@{number}", NOON + number * MINUTE), "t"))
    ]
    live += intake.sift(feed.finish(), is_end=True)
    assert [event | {"time": 0} for event in live] == [event | {"time": 0} for event in events]


TEXT_WRAPPERS: dict[str, Callable[[list[str]], Any]] = {
    "Elastic": lambda lines: {"hits": {"hits": [{"_source": {"message": line}} for line in lines]}},
    "Splunk": lambda lines: {"results": [{"_raw": line} for line in lines]},
    "HTTP Event Collector": lambda lines: [{"event": line} for line in lines],
    "Fluent Bit": lambda lines: [{"log": line} for line in lines],
    "Loki": lambda lines: {"streams": [{"stream": {"app": "mq"}, "values": [["1", line] for line in lines]}]},
    "CloudWatch": lambda lines: {"logEvents": [{"message": line} for line in lines]},
    "Google": lambda lines: [{"textPayload": line} for line in lines],
    "Kafka Connect": lambda lines: [{"schema": {"type": "string"}, "payload": line} for line in lines],
    "OpenTelemetry logs": lambda lines: {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": line}} for line in lines]}]}]
    },
}


@pytest.mark.parametrize("wrapper", TEXT_WRAPPERS)
def test_lines_of_logs_have_the_same_wrappers(estate, wrapper):
    log = numbered(SYSPRINT)
    events, _ = seen("display", [log.encode()], estate, zone=UTC)
    assert events
    whole = TEXT_WRAPPERS[wrapper](log.splitlines())
    parts = whole if isinstance(whole, list) else [whole]
    page = "\n".join(map(json.dumps, parts)).encode()
    assert seen("display", [page], estate, zone=UTC)[0] == events
