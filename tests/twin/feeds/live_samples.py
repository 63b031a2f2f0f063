"""A page or more of each live format, to be damaged."""

from __future__ import annotations

from tests.twin.feeds.test_live_formats import (
    CF_COLUMNS,
    COLUMNS,
    CONNECTOR,
    OPERLOG,
    answer,
    exposition,
    odp,
    report,
    structure,
)
from tests.twin.feeds.test_otlp import as_json, as_proto, span

_SPANS = [span(i, kind=4 + i % 2, second=i, messaging__message__body__size=i * 10) for i in range(1, 6)]
_FACILITY = {"CFOPNAM": "CF01", "CFOPTSD": 1 << 36, "CFOPTSF": 1 << 35, "CFOPSCMS": 99, "CFOPSCMA": 60, "CFOPSMSC": 80}
_MATRIX = (
    b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"ibmmq_queue_mqget_count",'
    b'"qmgr":"QMD1","queue":"INVOICES"},"values":[[1795176000,"17"],[1795176030,"19"]]}]}}'
)
_MQ_JSON = (
    b'{"collectionTime":{"timeStamp":"2026","epoch":1795176000},"points":[{"objectType":"queue","tags":{"qmgr":"QMD1",'
    b'"queue":"INVOICES"},"metrics":{"depth":17,"mqputMqput1Count":9,"mqputBytes":4096}}]}'
)

LIVE_PAGES = {
    "otlp": [as_json(*_SPANS), as_proto(*_SPANS), as_json(_SPANS[0]) + b"\n" + as_json(_SPANS[1]) + b"\n"],
    "dds": [
        answer(report("CFACT", COLUMNS, OPERLOG, structure(CFAISSCM=8 << 30, CFAISSCP="12.5"), CONNECTOR)),
        answer(report("CFOVER", CF_COLUMNS, _FACILITY)),
    ],
    "m3": [b'# TYPE mvs_cf_storage_available_bytes gauge\nmvs_cf_storage_available_bytes{cf="CF01"} 5e10 1795176060\n'],
    "prometheus": [exposition("gauge", 5, 4, 500), exposition("counter", 7, 5, 900), _MATRIX],
    "mq_json": [_MQ_JSON, _MQ_JSON.replace(b"6000", b"6030")],
    "odp": [
        odp("lh_smds", cf_structure_name="APP1", message_count=7, total_blocks=40, data_block_used_percent=50),
        odp("qmq_lh", queue_name="ORDERS", messages_put=5, messages_read=5),
        odp("qmps_lh", page_set_id=4, allocated_data_pages=100, persistent_pages=20, non_persistent_pages=5),
    ],
    "connect": [b"body"],
}
