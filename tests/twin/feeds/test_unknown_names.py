"""Names that the estate lacks: every format counts them by name, with the line for the estate."""

from __future__ import annotations

import json

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import RMF_PRINT, STATISTICS, json_text
from tests.twin.feeds.smf_made import queue_statistics, record, section
from tests.twin.feeds.test_live_formats import CF_COLUMNS, COLUMNS, NOON, answer, odp, report, structure
from tests.twin.feeds.test_otlp import as_json, span
from twin.feeds import FORMATS, Intake, Page
from twin.feeds.facts import EstateFacts
from twin.feeds.smf_layout import QIS1

FACILITY = {"CFOPNAM": "CF02", "CFOPTSD": 1 << 36, "CFOPTSF": 1 << 35}
CONNECTOR = {"CFAISTRU": "QSG7APP1", "CFAINAM": "CF07", "CFAICNAM": "CSQEQSG7QM7102"}


def statistics():
    content = json.loads(json.dumps(STATISTICS))
    content["eventData"]["queueStatisticsData"][0]["queueName"] = "NEW"
    return json_text(content)


def exposition(qmgr, platform):
    labels = f'{{platform="{platform}",qmgr="{qmgr}",queue="NEW"}}'
    return f"# TYPE ibmmq_queue_depth gauge\nibmmq_queue_depth{labels} 17\n".encode()


def status(qmgr, more=""):
    return (
        f"CSQM201I {qmgr} CSQMDRTC  DISPLAY QSTATUS DETAILS\nQSTATUS(NEW)\nCURDEPTH(17)\n{more} END QSTATUS\n".encode()
    )


REST = {
    "commandResponse": [{"completionCode": 0, "reasonCode": 0, "parameters": {"queue": "NEW", "curdepth": 7}}],
    "overallCompletionCode": 0,
    "overallReasonCode": 0,
}
MQ_JSON = {
    "collectionTime": {"epoch": NOON // 10**6},
    "points": [{"objectType": "queue", "tags": {"qmgr": "QMD1", "queue": "NEW"}, "metrics": {"depth": 17}}],
}
OF_LOCAL = {"flags": 0, "page_set": 4, "group": "", "structure": ""}
SHARED, PRIVATE, FILE = '[queue."QSG1/NEW"] structure = "APP1"', '[queue."QM01/NEW"]', '[queue_file."QMD1/NEW"]'

ONE_UNKNOWN = RMF_PRINT.replace("QSG1APP1", "QSG1APP9").replace("QSG1APP2", "ABCDAPP2").encode()
CASES = [
    ("smf", record(216, [queue_statistics(queue="NEW")]), "QM01/NEW", SHARED),
    ("smf", record(216, [queue_statistics(queue="NEW", **OF_LOCAL)]), "QM01/NEW", f'{PRIVATE} storage_class = "PS04"'),
    (
        "smf",
        record(201, [section(QIS1, 104, page_set=5, total=1078, unused=1000, persistent=78)]),
        "QM01/PS05",
        '[page_set."QM01/5"] pages = 1080',
    ),
    ("display", status("QM01"), "QM01/NEW", PRIVATE),
    ("display", status("QMD1", "CURFSIZE(3)\n"), "QMD1/NEW", FILE),
    ("display", status("QM09"), "QM09/NEW", '[queue."QM09/NEW"]'),
    ("rest", json.dumps(REST).encode(), "QM01/NEW", PRIVATE),
    ("amqsevt", statistics(), "QMD1/NEW", FILE),
    ("otlp", as_json(span(1, queue="NEW")), "NEW", '[queue."OWNER/NEW"]'),
    (
        "dds",
        answer(report("CFACT", COLUMNS, structure("QSG1APP9"))),
        "QSG1/APP9",
        '[structure."QSG1/APP9"] size = "4G"',
    ),
    (
        "dds",
        answer(report("CFACT", COLUMNS, structure("QSG7APP1"), CONNECTOR)),
        "QSG7/APP1",
        '[structure."QSG7/APP1"] size = "4G"',
    ),
    ("rmf", ONE_UNKNOWN, "QSG1/APP9", '[structure."QSG1/APP9"] size = "1M"'),
    ("dds", answer(report("CFOVER", CF_COLUMNS, FACILITY)), "CF02", '[coupling_facility.CF02] size = "64G"'),
    (
        "m3",
        b'# TYPE mvs_cf_storage_size_bytes gauge\nmvs_cf_storage_size_bytes{sysplex="P",cf="CF02"} 68719476736\n',
        "CF02",
        '[coupling_facility.CF02] size = "64G"',
    ),
    ("prometheus", exposition("QM01", "ZOS"), "QM01/NEW", PRIVATE),
    ("prometheus", exposition("QMD1", "UNIX"), "QMD1/NEW", FILE),
    ("prometheus", exposition("QMD9", "UNIX"), "QMD9/NEW", '[queue_file."QMD9/NEW"]'),
    ("mq_json", json.dumps(MQ_JSON).encode(), "QMD1/NEW", FILE),
    ("odp", odp("qmq_lh", queue_name="NEW", messages_put=5, messages_read=5), "QM01/NEW", PRIVATE),
    ("connect", b"body", "QM01/NEW", PRIVATE),
]
IDS = [f"{number} {case[0]} {case[2]}" for number, case in enumerate(CASES)]


def unknown(name, data, estate, queue):
    options = {} if name in {"otlp", "display"} else {"qmgr": "QM01"}
    options |= {"queue": queue} if name == "connect" else {}
    events, intake = read(name, Page(data, "file", NOON), estate=estate, **options)
    return events, intake.lines_for_unknown()


@pytest.mark.parametrize(("name", "data", "label", "line"), CASES, ids=IDS)
def test_a_name_that_the_estate_lacks_is_counted_with_its_line(site, name, data, label, line):
    events, lines = unknown(name, data, site, "NEW")
    (text,) = lines
    assert events == []
    assert f"{label}: " in f"/{text}"
    assert f"; add {line}" in text


@pytest.mark.parametrize(("name", "data", "label"), [case[:3] for case in CASES], ids=IDS)
def test_a_name_of_the_estate_is_none_of_them(site, name, data, label):
    qmgr = label.split("/", maxsplit=1)[0]
    known = data.replace(b"NEW", b"INVOICES" if qmgr == "QMD1" else b"ORDERS").replace(b"QSG1APP9", b"QSG1APP1")
    known = known.replace(b"CF02", b"CF01").replace(b"QM09", b"QM01").replace(b"QMD9", b"QM01")
    assert known == data or unknown(name, known, site, "ORDERS")[1] == []


def test_every_format_is_tried():
    assert {case[0] for case in CASES} == set(FORMATS)


def test_dynamic_queues_that_the_estate_lacks_are_one_line_a_queue_manager():
    """Of any format: MQ ends their names with 16 digits [IBM: MQ, MQOD DynamicQName]."""
    intake = Intake()
    for number in range(50):
        for qmgr, prefix in (("QM01", "CSQ."), ("QMD1", "AMQ."), ("QMD1", "MY.REPLY")):
            intake.note_unknown(qmgr, 1, queue=f"{prefix}{number:016X}")
    intake.note_unknown("QM01", 1, queue="ORDERS.0123456789ABCDE")
    assert list(intake.unknown) == [("QM01", "ORDERS.0123456789ABCDE")]
    assert intake.lines_for_passed_over() == ["150 events of dynamic queues (100 of QMD1, 50 of QM01)"]


def test_an_estate_from_data_has_no_dynamic_queues():
    facts = EstateFacts()
    facts.add("queue_file", "QMD1/AMQ.0123456789ABCDEF", "here")
    facts.add("queue_file", "QMD1/ORDERS", "here")
    assert [key for key, _ in facts.section("queue_file")] == ["QMD1/ORDERS"]
