"""RMF, Prometheus, mq_json, OMEGAMON and Kafka Connect to events. All values but those of OPERLOG are made up."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.cases import FEEDS, pages_of
from tests.twin.feeds.read import take
from twin.feeds import FeedOptions, Intake, Page, make_feed

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z, microseconds
COLUMNS = [
    "CFAPSTRU",
    "CFAPTYPE",
    "CFAPSTAT",
    "CFAPSYS",
    "CFAINAM",
    "CFAISTRU",
    "CFAICNAM",
    "CFAISTRS",
    "CFAISTRX",
    "CFAISTUP",
    "CFAILEL",
    "CFAILEM",
    "CFAIMAE",
    "CFAICUE",
    "CFAISSCM",
    "CFAISSCP",
    "CFAISLTC",
    "CFAISLMC",
]
CF_COLUMNS = ["CFOPNAM", "CFOPTSD", "CFOPTSF", "CFOPSCMS", "CFOPSCMA", "CFOPSMSC"]


def report(name, columns, *rows, end="20261120120000"):
    return {
        "columnHeaders": {"col": [{"type": "T", "value": column} for column in columns]},
        "metric": {"id": name, "format": "report"},
        "resource": {"reslabel": ",SYPLEX01,SYSPLEX"},
        "row": [{"refno": i, "col": [str(row.get(column, "")) for column in columns]} for i, row in enumerate(rows)],
        "timeData": {"utcStart": "20261120115900", "utcEnd": end, "numSystems": 2},
    }


def structure(name="QSG1APP1", **values):
    total = {
        "CFAPSTRU": name,
        "CFAPTYPE": "LIST",
        "CFAPSTAT": "A",
        "CFAPSYS": "*ALL",
        "CFAINAM": "CF01",
        "CFAISTRU": name,
        "CFAISTRS": 2 << 30,
        "CFAISTRX": 4 << 30,
        "CFAISTUP": "<0.1",
        "CFAILEL": 1000,
        "CFAILEM": 250,
        "CFAIMAE": 6000,
        "CFAICUE": 1500,
    }
    return {**total, **values}


OPERLOG = structure(
    "OPERLOG",
    CFAISTRS=20971520,
    CFAISTRX=52428800,
    CFAISTUP="16.8",
    CFAILEL=14599,
    CFAILEM=6372,
    CFAIMAE=29700,
    CFAICUE=13062,
)  # values of IBM's sample of a seven-system sysplex
CONNECTOR = {"CFAISTRU": "QSG1APP1", "CFAINAM": "CF01", "CFAICNAM": "CSQEQSG1QM0202"}


def answer(*reports):
    return json.dumps({"report": reports, "server": {"name": "RMF-DDS-Server"}}).encode()


def read(name, estate, *pages, **options):
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(**options))
    whole = (p if isinstance(p, Page) else Page(p, f"page {i}", NOON + i * 30_000_000) for i, p in enumerate(pages))
    return take(feed, *whole), intake


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"report": 5}',
        b'{"report": [{}]}',
        answer({**report("CFACT", COLUMNS, structure()), "columnHeaders": {}}),
        answer({**report("CFACT", COLUMNS, structure()), "timeData": {"utcEnd": "x"}}),
        answer({**report("CFACT", COLUMNS, structure()), "row": [{"col": ["1"]}]}),
        answer(report("SYSINFO", COLUMNS, structure())),
    ],
)
def test_an_answer_that_is_no_report_is_a_complaint(site, page):
    events, intake = read("dds", site, page)
    assert events == []
    assert sum(intake.counts.values()) == 1


# --- Prometheus ------------------------------------------------------------------------------------------------------


def exposition(kind, puts, gets, size, suffix=""):
    labels = '{platform="UNIX",qmgr="QMD1",queue="INVOICES",usage="NORMAL"}'
    values = {"mqput_mqput1_count": puts, "mqget_count": gets, "mqput_bytes": size}
    lines = []
    for name, value in values.items():
        lines += [f"# TYPE ibmmq_queue_{name}{suffix} {kind}", f"ibmmq_queue_{name}{suffix}{labels} {value}"]
    lines += ["# TYPE ibmmq_queue_depth gauge", f"ibmmq_queue_depth{labels} 17"]
    lines += ["# TYPE ibmmq_queue_qfile_current_size gauge", f"ibmmq_queue_qfile_current_size{labels} 3"]
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    "page", [b"", b"<html>", b"{}", b'{"data": {"resultType": "matrix", "result": 5}}', b"a{b=} 5", b"\xff"]
)
def test_a_page_without_metrics_of_mq_is_a_complaint(site, page):
    events, intake = read("prometheus", site, page)
    assert events == []
    assert intake.counts


def test_an_answer_of_a_live_prometheus_counts_once(site):
    metadata, matrix = pages_of(FEEDS / "prometheus" / "range-query")
    live = dataclasses.replace(matrix, name="http://x", headers={"content-type": "application/json"})
    events, intake = read("prometheus", site, metadata, live, live)
    assert events == read("prometheus", site, metadata, matrix)[0] != []
    assert intake.counts["again"] == 2


# --- the others ------------------------------------------------------------------------------------------------------


def odp(table, **row):
    return json.dumps(
        {
            "product_code": "kmq",
            "table_name": table,
            "write_time": "2026-11-20T12:00:00.000Z",
            "managed_system": "PLEX:QM01:MQESA",
            **row,
        }
    ).encode()


def test_a_record_of_kafka_connect_is_a_put_to_the_original_queue(site):
    digits = "c3e2d840d8d4f0f140404040404040404040a1b2c3d4e5f6"
    headers = {"jms_ibm_mqmd_msgid": f"ID:{digits}", "jms_ibm_mqmd_priority": "4", "jms_ibm_mqmd_persistence": "1"}
    page = Page(b"x" * 300, "t/0@5", NOON, headers)
    by_key = Page(b"y", "t/0@6", NOON, {"kafka.key": digits.upper()})
    events, intake = read("connect", site, page, by_key, qmgr="QM01", queue="ORDERS")
    assert events == [
        {
            "time": NOON,
            "qmgr": "QM01",
            "op": "PUT",
            "queue": "ORDERS",
            "length": 300,
            "msgid": digits,
            "priority": 4,
            "persistent": True,
        }
    ]
    assert intake.counts == {"duplicate": 1}
    assert read("connect", site, page)[1].counts == {"no-queue": 1}
