"""RMF, Prometheus, mq_json, OMEGAMON and Kafka Connect to events. All values but those of OPERLOG are made up."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.twin.feeds.read import take
from twin.events import Decoder
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
from twin.recordings.files import LinesChunk

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
OF_SYSTEM = {"CFAPTYPE": "LIST", "CFAPSYS": "SY01", "CFAISTRU": "QSG1APP1", "CFAILEM": 250}
CONNECTOR = {"CFAISTRU": "QSG1APP1", "CFAINAM": "CF01", "CFAICNAM": "CSQEQSG1QM0202"}


def answer(*reports):
    return json.dumps({"report": reports, "server": {"name": "RMF-DDS-Server"}}).encode()


def read(name, estate, *pages, **options):
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(**options))
    whole = (p if isinstance(p, Page) else Page(p, f"page {i}", NOON + i * 30_000_000) for i, p in enumerate(pages))
    return take(feed, *whole), intake


def test_a_row_of_cfact_measures_a_structure_for_a_connected_queue_manager(site):
    pages = answer(report("CFACT", COLUMNS, OPERLOG, structure(), OF_SYSTEM, CONNECTOR))
    events, intake = read("dds", site, pages)
    measured = {"size": 2 << 30, "ents_max": 1000, "ents_used": 250, "elems_max": 6000, "elems_used": 1500}
    assert events == [{"time": NOON, "qmgr": "QM02", "op": "MEASURE", "store": "QSG1/APP1", "measured": measured}]
    assert not intake.counts
    assert intake.facts.value("structure", "QSG1/APP1", "size") == 4 << 30
    assert intake.facts.value("structure", "QSG1/APP1", "coupling_facility") == "CF01"


def test_scm_of_a_structure_is_measured_where_it_has_any(site):
    row = structure(CFAISSCM=8 << 30, CFAISSCP="12.5", CFAISLTC=40, CFAISLMC=300)
    events, _ = read("dds", site, answer(report("CFACT", COLUMNS, row)))
    assert events[0]["measured"]["scm"] == {"max": 8 << 30, "used": 1 << 30, "ents": 40, "elems": 300}
    assert events[0]["qmgr"] == "QM01"


def test_cfover_measures_a_coupling_facility(site):
    row = {"CFOPNAM": "CF01", "CFOPTSD": 64 << 30, "CFOPTSF": 50 << 30, "CFOPSCMS": 100, "CFOPSCMA": 60, "CFOPSMSC": 80}
    other = {"CFOPNAM": "CF99", "CFOPTSD": 1, "CFOPTSF": 1}
    events, intake = read("dds", site, answer(report("CFOVER", CF_COLUMNS, row, other)))
    assert [event["store"] for event in events] == ["CF01"]
    assert events[0]["measured"] == {
        "storage_free": 50 << 30,
        "scm_total": 100,
        "scm_committed": 80,
        "scm_used": 40,
    }
    assert intake.facts.value("coupling_facility", "CF99", "size") == 1


def test_an_interval_asked_for_twice_counts_once(site):
    first = answer(report("CFACT", COLUMNS, structure()))
    later = answer(report("CFACT", COLUMNS, structure(CFAILEM=300), end="20261120120100"))
    events, _ = read("dds", site, first, first, later)
    assert [event["measured"]["ents_used"] for event in events] == [250, 300]


def test_of_two_instances_in_a_rebuild_the_active_one_is_taken(site):
    rows = (structure(CFAILEM=1), structure(CFAILEM=2, CFAPSTAT="T"))
    events, intake = read("dds", site, answer(report("CFACT", COLUMNS, *rows)))
    assert [event["measured"]["ents_used"] for event in events] == [1]
    assert intake.counts == {"two-instances": 1}


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


def flows(events):
    sums = Counter()
    for event in events:
        if event["op"] in ("PUT", "GET"):
            sums[event["op"]] += event["count"]
            sums["bytes"] += event["count"] * event.get("length", 0)
    return dict(sums)


def test_gauges_of_version_5_count_since_the_last_scrape(site):
    events, intake = read("prometheus", site, exposition("gauge", 5, 4, 500), exposition("gauge", 7, 3, 701))
    assert flows(events) == {"PUT": 7, "GET": 3, "bytes": 701}
    assert max(event["time"] for event in events) == NOON + 30_000_000
    assert not intake.counts


@pytest.mark.parametrize("suffix", ["", "_total"])
def test_counters_of_version_6_count_from_the_start_and_begin_anew(site, suffix):
    pages = [exposition("counter", *values, suffix) for values in ((5, 4, 500), (12, 7, 1201), (2, 1, 10))]
    events, _ = read("prometheus", site, *pages)
    assert flows(events) == {"PUT": 7 + 2, "GET": 3 + 1, "bytes": 701 + 10}


def test_counters_in_the_names_of_openmetrics_are_counters(site):
    """TYPE has the name without _total, samples have it with: [OpenMetrics: Counter]."""
    pages = [exposition("counter", *values, "_total") for values in ((5, 4, 500), (12, 7, 1201))]
    pages = [
        b"\n".join(line.replace(b"_total ", b" ") if line.startswith(b"#") else line for line in page.split(b"\n"))
        for page in pages
    ]
    events, _ = read("prometheus", site, *pages)
    assert flows(events) == {"PUT": 7, "GET": 3, "bytes": 701}


def test_a_gauge_whose_name_ends_in_total_stays_a_gauge(site):
    pages = [exposition("gauge", *values, "_total") for values in ((5, 4, 500), (12, 7, 1201))]
    events, _ = read("prometheus", site, *pages)
    assert flows(events) == {"PUT": 12, "GET": 7, "bytes": 1201}


def test_a_queue_file_is_measured(site):
    events, _ = read("prometheus", site, exposition("gauge", 5, 4, 500))
    measured = {"messages": 17, "file_bytes": 3 << 20}
    assert events == [{"time": NOON, "qmgr": "QMD1", "op": "MEASURE", "store": "QMD1/INVOICES", "measured": measured}]


@pytest.mark.parametrize("kind", ["gauge", "counter"])
def test_page_sets_have_the_label_pageset_and_pages_total_is_no_counter(site, kind):
    labels = '{bufferpool="3",pageset="4",platform="ZOS",qmgr="QM01"}'
    values = {"total": 20000, "unused": 19000, "persistent": 600, "nonpersistent": 400}
    text = "".join(
        f"# TYPE ibmmq_pageset_pages_{n} {kind}\nibmmq_pageset_pages_{n}{labels} {v}\n" for n, v in values.items()
    )
    events, intake = read("prometheus", site, text.encode())
    assert [event["store"] for event in events] == ["QM01/PS04"]
    assert events[0]["measured"] == {
        "pages_total": 20000,
        "pages_unused": 19000,
        "pages_persistent": 600,
        "pages_nonpersistent": 400,
        "pages_used": 1000,
    }
    assert intake.facts.value("page_set", "QM01/4", "pages") == 20000


def test_counts_of_reset_qstats_have_no_bytes_and_need_a_length(site):
    labels = '{platform="ZOS",qmgr="QM01",queue="ORDERS"}'
    page = f"ibmmq_queue_mqput_mqput1_count{labels} 10\nibmmq_queue_mqget_count{labels} 4\n".encode()
    page, other = (page + f"ibmmq_queue_depth{labels} {depth}\n".encode() for depth in (0, 6))
    events, intake = read("prometheus", site, page, other, length=700)
    assert flows(events) == {"PUT": 10, "GET": 4, "bytes": 7000}
    assert intake.counts == {"no-size": 1}
    assert intake.complaints[0].text == "puts of ORDERS without bytes, 700 bytes each are taken, as --length says"
    _, intake = read("prometheus", site, page, other)
    assert intake.complaints[0].text == (
        "puts of ORDERS without bytes, 1024 bytes each are assumed; expected: --length, or statistics"
    )


def test_a_range_query_of_prometheus_gives_what_the_scrapes_had(site):
    start = NOON // 1_000_000
    series = {"mqput_mqput1_count": ["5", "12"], "mqget_count": ["4", "7"], "mqput_bytes": ["500", "1201"]}
    result = [
        {
            "metric": {"__name__": f"ibmmq_queue_{name}", "qmgr": "QMD1", "queue": "INVOICES", "job": "mq"},
            "values": [[start, values[0]], [start + 30, values[1]]],
        }
        for name, values in series.items()
    ]
    matrix = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    types = {f"ibmmq_queue_{name}": [{"type": "counter", "help": "", "unit": ""}] for name in series}
    metadata = json.dumps({"status": "success", "data": types}).encode()
    events, intake = read("prometheus", site, metadata, matrix)
    assert flows(events) == {"PUT": 7, "GET": 3, "bytes": 701}
    for pages in ([matrix, metadata], [metadata, matrix, matrix]):
        again, intake = read("prometheus", site, *pages)
        assert again == events
        assert not intake.counts
    live = Page(matrix, "http://x", NOON, {"content-type": "application/json"})
    again, intake = read("prometheus", site, metadata, live, live)
    assert again == events
    assert intake.counts["again"] == 2


@pytest.mark.parametrize(
    "page", [b"", b"<html>", b"{}", b'{"data": {"resultType": "matrix", "result": 5}}', b"a{b=} 5", b"\xff"]
)
def test_a_page_without_metrics_of_mq_is_a_complaint(site, page):
    events, intake = read("prometheus", site, page)
    assert events == []
    assert intake.counts


def test_the_openmetrics_page_of_rmf_measures_coupling_facilities(site):
    page = (
        "# TYPE mvs_cf_storage_size_bytes gauge\n"
        'mvs_cf_storage_size_bytes{sysplex="P",cf="CF01"} 6.4e10 1795176060\n'
        "# TYPE mvs_cf_storage_available_bytes gauge\n"
        'mvs_cf_storage_available_bytes{sysplex="P",cf="CF01"} 5e10 1795176060\n# EOF\n'
    )
    events, _ = read("m3", site, page.encode())
    assert events == [
        {
            "time": NOON + 60_000_000,
            "qmgr": "QM01",
            "op": "MEASURE",
            "store": "CF01",
            "measured": {"storage_free": 50_000_000_000},
        }
    ]


# --- the others ------------------------------------------------------------------------------------------------------


def test_mq_json_has_the_metrics_in_camel_case(site):
    def record(second, puts):
        tags = {"qmgr": "QMD1", "queue": "INVOICES"}
        metrics = {"depth": 3, "mqputMqput1Count": puts, "mqputBytes": puts * 100, "mqgetCount": 1}
        point = {"objectType": "queue", "tags": tags, "metrics": metrics}
        return json.dumps({"collectionTime": {"timeStamp": "", "epoch": NOON // 10**6 + second}, "points": [point]})

    events, intake = read("mq_json", site, (record(0, 9) + "\n" + record(10, 4) + "\nnoise\n").encode())
    assert flows(events) == {"PUT": 4, "GET": 1, "bytes": 400}
    assert [event["measured"] for event in events if event["op"] == "MEASURE"] == [{"messages": 3}] * 2
    assert intake.counts == {"unreadable": 1}


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


def test_rows_of_omegamon_measure_structures_data_sets_and_page_sets(site):
    pages = [
        odp(
            "qsg_cfstr",
            qsg_name="QSG1",
            cf_structure_name="APP1",
            maximum_kilobytes_storage=1024,
            maximum_list_entries=1000,
            percent_list_entries_used=25,
        ),
        odp("lh_smds", cf_structure_name="APP1", message_count=7, total_blocks=40, data_block_used_percent=50),
        odp("qmps_lh", page_set_id=4, allocated_data_pages=100, persistent_pages=20, non_persistent_pages=5),
        odp("other"),
    ]
    events, intake = read("odp", site, *pages)
    assert [(event["store"], event["measured"]) for event in events] == [
        ("QSG1/APP1", {"ents_max": 1000, "ents_used": 250}),
        ("QSG1/APP1", {"smds": {"QM01": {"messages": 7, "blocks_total": 40, "blocks_used": 20}}}),
        ("QM01/PS04", {"pages_total": 100, "pages_persistent": 20, "pages_nonpersistent": 5, "pages_used": 25}),
    ]
    assert not intake.counts


def test_rows_of_omegamon_count_puts_and_reads(site):
    first = odp("qmq_lh", queue_name="ORDERS", messages_put=5, messages_read=5)
    second = odp(
        "qmq_lh", queue_name="ORDERS", messages_put=30, messages_read=20, write_time="2026-11-20T12:05:00.000Z"
    )
    events, _ = read("odp", site, first, second, b"{", odp("qmq_lh"), length=10)
    assert flows(events) == {"PUT": 30, "GET": 20, "bytes": 300}


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


def test_the_decoder_takes_what_the_feeds_make(site):
    pages = {
        "dds": [answer(report("CFACT", COLUMNS, structure(CFAISSCM=8 << 30, CFAISSCP="12.5")))],
        "prometheus": [exposition("gauge", 5, 4, 500), exposition("gauge", 7, 3, 701)],
        "odp": [odp("lh_smds", cf_structure_name="APP1", message_count=7, total_blocks=40, data_block_used_percent=50)],
    }
    for name, values in pages.items():
        events, intake = read(name, site, *values)
        lines = b"\n".join(json.dumps(event).encode() for event in intake.sift(events))
        decoded = LinesChunk(0, lines).decode(Decoder(site))
        assert not decoded.rejects
        assert len(decoded) == len(events) > 0
    assert set(pages) < set(FORMATS)
