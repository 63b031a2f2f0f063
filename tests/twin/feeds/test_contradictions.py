"""Measurements that contradict themselves: the row is left out, in every format that has used values and totals."""

from __future__ import annotations

import json

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import RMF_PRINT, STATUS_PAIRS, USAGE_ROWS
from tests.twin.feeds.smf_made import data_set, record, section
from tests.twin.feeds.test_live_formats import CF_COLUMNS, COLUMNS, NOON, answer, odp, report, structure
from twin.events.fields import contradiction
from twin.feeds import FORMATS, Page
from twin.feeds.smf_layout import QIS1

FACILITY = {"CFOPNAM": "CF01", "CFOPTSD": 64 << 30, "CFOPTSF": 50 << 30, "CFOPSCMS": 100, "CFOPSCMA": 60}
STATUS = f"CSQM201I QM01 CSQMDRTC  DISPLAY CFSTATUS DETAILS\n{STATUS_PAIRS}\n"
USAGE = f"CSQI010I QM01 Page set usage ...\n{USAGE_ROWS}\n"
SMDS = "CSQE280I QM01 SMDS usage ...\n_APP1  123  9999  9998  {used}  0%\n End of SMDS report\n"


def cfact(**values):
    return answer(report("CFACT", COLUMNS, structure(**values)))


def cfover(**values):
    return answer(report("CFOVER", CF_COLUMNS, FACILITY | values))


def rest(**parameters):
    pairs = {"cfstatus": "APP1", "type": "SUMMARY", "sizemax": 1048576} | parameters
    return json.dumps({"commandResponse": [{"completionCode": 0, "reasonCode": 0, "parameters": pairs}]}).encode()


def pages(**values):
    labels = '{pageset="4",platform="ZOS",qmgr="QM01"}'
    return "".join(f"ibmmq_pageset_pages_{name}{labels} {value}\n" for name, value in values.items()).encode()


def mq_json(**values):
    point = {"objectType": "pageset", "tags": {"qmgr": "QM01", "pageset": "4"}, "metrics": values}
    return json.dumps({"collectionTime": {"epoch": NOON // 10**6}, "points": [point]}).encode()


def m3(size, free):
    lines = (f'mvs_cf_storage_size_bytes{{cf="CF01"}} {size}', f'mvs_cf_storage_available_bytes{{cf="CF01"}} {free}')
    return "".join(f"{line}\n" for line in lines).encode()


def row_of_structure(**values):
    usual = {"maximum_kilobytes_storage": 1024, "maximum_list_entries": 1000, "percent_list_entries_used": 25}
    return odp("qsg_cfstr", qsg_name="QSG1", cf_structure_name="APP1", **(usual | values))


def row_of_data_set(**values):
    usual = {"message_count": 7, "total_blocks": 40, "data_block_used_percent": 50}
    return odp("lh_smds", cf_structure_name="APP1", **(usual | values))


def row_of_page_set(**values):
    return odp("qmps_lh", page_set_id=4, **({"allocated_data_pages": 100, "non_persistent_pages": 5} | values))


ONE_STRUCTURE = RMF_PRINT.replace("QSG1APP2", "ABCDAPP2")
SOUND = {
    "smf": [
        record(201, [section(QIS1, 104, page_set=4, total=100, unused=90, persistent=10)]),
        record(2, [data_set(blocks_total=100, blocks_used=30, blocks_free=70)]),
    ],
    "display": [STATUS.encode(), USAGE.encode(), SMDS.format(used=12).encode()],
    "rest": [rest(entsmax=10, entsused=4)],
    "dds": [cfact(), cfover(), cfact(CFAILEL="", CFAILEM="", CFAIMAE="", CFAICUE="")],
    "rmf": [ONE_STRUCTURE.encode()],
    "m3": [m3(64 << 30, 50 << 30)],
    "prometheus": [pages(total=100, unused=70, persistent=10, nonpersistent=20)],
    "mq_json": [mq_json(pagesTotal=100, pagesUnused=70, pagesPersistent=10, pagesNonpersistent=20)],
    "odp": [row_of_structure(), row_of_data_set(), row_of_page_set(persistent_pages=20)],
}
CONTRADICTIONS = {
    "smf": [
        record(201, [section(QIS1, 104, page_set=4, total=100, unused=0, persistent=110)]),
        record(201, [section(QIS1, 104, page_set=4, total=0, unused=0, persistent=110)]),
        record(2, [data_set(blocks_total=100, blocks_used=130, blocks_free=0)]),
        record(2, [data_set(blocks_total=0, blocks_used=130, blocks_free=0)]),
    ],
    "display": [
        STATUS.replace("ENTSUSED(6372)", "ENTSUSED(14600)").encode(),
        STATUS.replace("ENTSMAX(14599)\n", "").encode(),
        STATUS.replace("ENTSMAX(14599)", "ENTSMAX( )").encode(),
        USAGE.replace("     5          3 SYSTEM", "  5000       3000 SYSTEM").encode(),
        SMDS.format(used=99999).encode(),
    ],
    "rest": [rest(entsmax=10, entsused=11), rest(entsused=11)],
    "dds": [
        cfact(CFAILEM=9_999_999),
        cfact(CFAICUE=9_999_999),
        cfact(CFAILEL=""),
        cfact(CFAIMAE=""),
        cfact(CFAISSCM=8 << 30, CFAISSCP="101"),
        cfover(CFOPTSF=65 << 30),
        cfover(CFOPSCMA=101),
    ],
    "rmf": [ONE_STRUCTURE.replace("12        60", text).encode() for text in ("101        60", "12       601")],
    "m3": [m3(64 << 30, 65 << 30)],
    "prometheus": [
        pages(total=100, unused=0, persistent=100, nonpersistent=20),
        pages(total=100, unused=0, persistent=10, nonpersistent=20),
        pages(persistent=10, nonpersistent=20),
    ],
    "mq_json": [
        mq_json(pagesTotal=100, pagesPersistent=100, pagesNonpersistent=20),
        mq_json(pagesPersistent=100, pagesNonpersistent=20),
    ],
    "odp": [
        row_of_structure(percent_list_entries_used=101),
        row_of_data_set(data_block_used_percent=101),
        row_of_page_set(persistent_pages=200),
    ],
}
WITHOUT_TOTALS = {"amqsevt", "otlp", "connect"}


def cases(pages_by_format):
    return [(name, page) for name, several in pages_by_format.items() for page in several]


def ids(pages_by_format):
    return [f"{name} {number}" for number, (name, _) in enumerate(cases(pages_by_format))]


@pytest.mark.parametrize(("name", "page"), cases(CONTRADICTIONS), ids=ids(CONTRADICTIONS))
def test_a_row_that_contradicts_itself_is_left_out_with_a_complaint(site, name, page):
    events, intake = read(name, Page(page, "file", NOON), estate=site, qmgr="QM01")
    assert events == []
    assert intake.counts["inconsistent"] == 1
    assert "expected: " in intake.latest["inconsistent"].text


@pytest.mark.parametrize(("name", "page"), cases(SOUND), ids=ids(SOUND))
def test_a_row_that_does_not_is_measured(site, name, page):
    events, intake = read(name, Page(page, "file", NOON), estate=site, qmgr="QM01")
    assert len(events) == 1
    assert intake.counts["inconsistent"] == 0


def test_every_format_with_used_values_and_totals_is_tried():
    assert SOUND.keys() == CONTRADICTIONS.keys()
    assert CONTRADICTIONS.keys() | WITHOUT_TOTALS == set(FORMATS)


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        ({"ents_used": 5, "ents_max": 5}, None),
        ({"ents_max": 5}, None),
        ({"messages": 5}, None),
        ({"ents_used": 6, "ents_max": 5}, "ents_used 6 of ents_max 5; expected: at most all"),
        ({"elems_used": 0}, "elems_used 0 without elems_max; expected: both"),
        ({"scm": {"used": 6, "max": 5}}, "scm used 6 of max 5; expected: at most all"),
        (
            {"smds": {"QM01": {"blocks_used": 6, "blocks_total": 5}}},
            "smds QM01 blocks_used 6 of blocks_total 5; expected: at most all",
        ),
        (
            {"pages_total": 9, "pages_used": 5, "pages_unused": 5},
            "pages_used 5 and pages_unused 5 of pages_total 9; expected: their sum",
        ),
    ],
)
def test_contradictions_name_both_values(measured, text):
    assert contradiction(measured) == text
